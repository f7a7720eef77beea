"""Names from data as text that terminals and pages show and do not obey; small tables as text and as HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape

_WIDTH = 88
#: Control characters, which no page may hold, and those that turn the direction of all text that follows.
_IN_PAGES = (*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SHOWN_IN_PAGES = {code: repr(chr(code))[1:-1] for code in _IN_PAGES}


def escape_control(text: str) -> str:
    """Text with unprintable characters except newlines escaped as in Python: ``\\x1b``.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str

    Examples
    --------
    >>> escape_control("a name\\x1b[31m")
    'a name\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    escaped = (letter if letter.isprintable() or letter == "\n" else repr(letter)[1:-1] for letter in text)
    return "".join(escaped)


def escape_line(text: str) -> str:
    """The same on one line: newlines are escaped too.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
    """
    return escape_control(text).replace("\n", "\\n")


def escape_html(text: str) -> str:
    """Text for a page, without markup and control characters.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str

    Examples
    --------
    >>> escape_html("<b>\\x1b")
    '&lt;b&gt;\\\\x1b'
    """
    return escape(text).translate(_SHOWN_IN_PAGES)


@dataclass(frozen=True)
class TextTable:
    """A table with named rows and columns.

    Parameters
    ----------
    title : str
        Title above the table.
    names : list of str
        Names of the rows.
    columns : dict of str to list
        Values by column, one for each row: numbers, formatted strings, or None for empty cells.
    notes : list of str
        Notes below the table.
    """

    title: str
    names: list[str]
    columns: dict[str, list[float | str | None]]
    notes: list[str]

    def cells(self) -> list[list[str]]:
        """The formatted rows, starting with the header."""
        columns = [["", *self.names], *([name, *map(_format, values)] for name, values in self.columns.items())]
        columns = [[escape_line(cell) for cell in column] for column in columns]
        return [list(row) for row in zip(*columns, strict=True)]


def _format(value: float | str | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int | str) else f"{value:.4g}"


def render_text(table: TextTable) -> str:
    """A table as plain text; notes are wrapped at 88 columns.

    Examples
    --------
    >>> print(render_text(TextTable("Title", ["one", "two"], {"a": [1, 22.0], "b": [0.5, None]}, ["A note."])))
    Title
    <BLANKLINE>
          a    b
    one   1  0.5
    two  22
    <BLANKLINE>
    - A note.
    """
    rows = table.cells()
    first, *widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))])
        for name, *cells in rows
    ]
    notes = [textwrap.fill(note, _WIDTH, initial_indent="- ", subsequent_indent="  ") for note in table.notes]
    return "\n".join([table.title, "", *(line.rstrip() for line in lines), "", *notes])


def render_html(table: TextTable) -> str:
    """A table as HTML, for notebooks.

    Examples
    --------
    >>> render_html(TextTable("T", ["one < two"], {"a": [1]}, []))
    '<p><b>T</b></p><table><tr><th></th><th>a</th></tr><tr><th>one &lt; two</th><td>1</td></tr></table><ul></ul>'
    """
    head, *rows = table.cells()
    header = "".join(f"<th>{escape_html(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape_html(name)}</th>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in table.notes)
    return f"<p><b>{escape_html(table.title)}</b></p><table><tr>{header}</tr>{body}</table><ul>{notes}</ul>"
