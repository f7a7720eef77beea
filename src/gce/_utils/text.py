"""Small tables as text and as HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape

_WIDTH = 88


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
    header = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        f"<tr><th>{escape(name)}</th>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in rows
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    return f"<p><b>{escape(table.title)}</b></p><table><tr>{header}</tr>{body}</table><ul>{notes}</ul>"
