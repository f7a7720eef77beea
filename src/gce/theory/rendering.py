"""A small table as text and as HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape

_WIDTH = 88


@dataclass(frozen=True)
class Table:
    """Columns with named rows.

    Parameters
    ----------
    title : str
    names : list of str
        Of the rows.
    columns : dict
        A column's name and its numbers, one a row; None where it has none, a str where it is written already.
    notes : list of str
    """

    title: str
    names: list[str]
    columns: dict[str, list[float | str | None]]
    notes: list[str]

    def cells(self) -> list[list[str]]:
        """Rows as they are shown, the header first."""
        columns = [["", *self.names], *([name, *map(_shown, values)] for name, values in self.columns.items())]
        return [list(row) for row in zip(*columns, strict=True)]


def _shown(value: float | str | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int | str) else f"{value:.4g}"


def text(table: Table) -> str:
    """As plain text, at most 88 columns wide.

    Examples
    --------
    >>> print(text(Table("Title", ["one", "two"], {"a": [1, 22.0], "b": [0.5, None]}, ["A note."])))
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


def html(table: Table) -> str:
    """As HTML, for notebooks.

    Examples
    --------
    >>> html(Table("T", ["one < two"], {"a": [1]}, []))
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
