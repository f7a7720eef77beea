"""Terminal output: results on standard output, messages on standard error."""

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
from rich.text import Text

from gce._utils.text import escape_control

#: Letters of ours in the encoding of ASCII.
_PLAIN = str.maketrans({"\u00b1": "+/-", "\u2026": "...", "\u2013": "-", "\u00b2": "2", "\u00d7": "x"})
#: Columns that a table needs.
_LEAST_WIDTH = 72


def say(text: str) -> None:
    """Print a line on standard error."""
    _stderr().print(text, markup=False)


def warn(text: str) -> None:
    """Print a warning on standard error."""
    _stderr().print(f"[yellow]warning:[/yellow] {escape(text)}")


def fail(text: str) -> None:
    """Print an error on standard error."""
    _stderr().print(f"[red]error:[/red] {escape(text)}")


class SafeConsole(Console):
    """A console that escapes control characters, since names may come from untrusted files.

    A terminal would interpret them: they move its cursor, set its title, or write to the clipboard. Letters that its
    encoding lacks are escaped too.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Escape the text of rendered segments; control segments are rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(self._shown(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Text:
        """Escape the letters of a cell before its width is measured."""
        return super().render_str(self._shown(text), **options)

    def _shown(self, text: str) -> str:
        text = escape_control(text)
        return text if encodable(text, self.encoding) else in_encoding(text, self.encoding)


class WideConsole(SafeConsole):
    """A console of at least the columns that a table needs.

    In a narrow terminal columns of a few letters would be less readable than lines that it wraps.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.width = max(self.width, _LEAST_WIDTH)


def encodable(text: str, encoding: str | None) -> bool:
    """Whether an encoding has all letters of a text."""
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def in_encoding(text: str, encoding: str | None) -> str:
    """A text with the letters that an encoding lacks in plain ones, or escaped as in Python: ``\\xf6``."""
    return text.translate(_PLAIN).encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def _stderr() -> Console:
    return SafeConsole(file=sys.stderr, highlight=False, soft_wrap=True)


def show(*parts: RenderableType) -> None:
    """Print results on standard output."""
    console = WideConsole(file=sys.stdout, highlight=False)
    for part in parts:
        # lines are left to the terminal to wrap, so that copied paths are whole
        console.print(part, soft_wrap=isinstance(part, str))


def print_json(document: dict[str, Any]) -> None:
    """Print a JSON document on standard output, in ASCII where its encoding lacks a letter."""
    text, encoding = json_of(document), getattr(sys.stdout, "encoding", None)
    sys.stdout.write(text if encodable(text, encoding) else json_of(document, ascii_only=True))


def json_of(document: dict[str, Any], *, ascii_only: bool = False) -> str:
    """A JSON document, with null for numbers that are not finite."""
    text = json.dumps(_finite(document), indent=2, ensure_ascii=ascii_only, allow_nan=False)
    # json.dumps leaves some control characters unescaped
    parts = (letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
    return "".join(parts) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def size(count: int) -> str:
    """A file size in B, kB or MB."""
    if count < 1000:
        return f"{count} B"
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def some(names: Sequence[Any], most: int = 8) -> str:
    """The first names or values of a list, and how many more there are."""
    listed = ", ".join(map(repr, names[:most]))
    return listed if len(names) <= most else f"{listed} and {len(names) - most:,} more"


def grid(rows: Sequence[Sequence[str]]) -> Table:
    """A table of labels and values without a frame."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    for _ in range(max((len(row) for row in rows), default=1) - 1):
        table.add_column(overflow="fold")
    for label, *cells in rows:
        table.add_row(f"  {escape(label)}", *map(escape, cells))
    return table
