"""What is shown: results on standard output, everything said beside them on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table


def say(text: str) -> None:
    """A line on standard error."""
    _said().print(text, markup=False)


def warn(text: str) -> None:
    """A warning on standard error."""
    _said().print(f"[yellow]warning:[/yellow] {escape(text)}")


def fail(text: str) -> None:
    """An error on standard error."""
    _said().print(f"[red]error:[/red] {escape(text)}")


class Harmless(Console):
    """A console that shows control characters instead of sending them: names come from files that strangers wrote.

    A terminal obeys them: they move its cursor, set its title, or write to the clipboard.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What is printed, in segments: styles are rich's own, and text is the only part that came from elsewhere."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)


def harmless(text: str) -> str:
    """Text with what cannot be printed, but for the ends of lines, as an escape of Python's: ``\\x1b``."""
    if text.isprintable():
        return text
    seen = (letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text)
    return "".join(seen)


def _said() -> Console:
    return Harmless(file=sys.stderr, highlight=False, soft_wrap=True)


def show(*parts: RenderableType) -> None:
    """Results on standard output."""
    console = Harmless(file=sys.stdout, highlight=False)
    for part in parts:
        # a line is left to the terminal to break: whoever copies a path gets it whole
        console.print(part, soft_wrap=isinstance(part, str))


def json_of(document: dict[str, Any]) -> str:
    """A JSON document; what is not finite is null, which JSON has a word for."""
    text = json.dumps(_finite(document), indent=2, ensure_ascii=False, allow_nan=False)
    # JSON leaves some control characters as they are
    parts = (letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
    return "".join(parts) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(number: int, noun: str) -> str:
    """``1 row``, ``1,600 rows``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def size(count: int) -> str:
    """Bytes for people."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def some(names: list[str], most: int = 8) -> str:
    """The first of a list of names, and how many more there are."""
    listed = ", ".join(map(repr, names[:most]))
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


def grid(rows: Sequence[Sequence[str]]) -> Table:
    """Short lines under each other, a label and what it says, without a frame."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan")
    for label, *cells in rows:
        table.add_row(f"  {escape(label)}", *map(escape, cells))
    return table
