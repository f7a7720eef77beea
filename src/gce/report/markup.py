"""HTML from parts. What is not markup already is escaped on its way in: names come from data, and may be hostile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

#: What stands where there is no number.
NOTHING = "\N{EN DASH}"

#: What a share of sums may be off by rounding alone.
_ROUNDING = 1e-12
#: Characters of a name in a table: those of a column or a class may be as long as a page.
_NAME = 60

_VOID = frozenset({"br", "link", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(element: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element; children that are no markup are escaped, attributes always.

    ``class_`` is class and ``aria_label`` is aria-label; an attribute that is None or False is left out.

    Examples
    --------
    >>> tag("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    >>> tag("p", "see ", tag("b", "this"), hidden=True, title=None)
    '<p hidden>see <b>this</b></p>'
    """
    parts = [f"<{element}"]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        parts.append(f" {name}" if value is True else f' {name}="{escape(str(value))}"')
    parts.append(">")
    if element not in _VOID:
        parts += [*map(safe, children), f"</{element}>"]
    return Markup("".join(parts))


def safe(text: str) -> str:
    """Text as HTML: itself where it is markup, otherwise escaped."""
    return text if isinstance(text, Markup) else escape(text)


def join(parts: Iterable[str]) -> Markup:
    """Parts one after another."""
    return Markup("".join(map(safe, parts)))


def shown(value: float, digits: int = 4) -> str:
    """A number for readers: so many significant digits, thousands apart, no needless exponent.

    Examples
    --------
    >>> [shown(v) for v in (1234567, 0.123456, 98765.4321, 1.5, 2e-7, 3.2e12, float("nan"))]
    ['1,234,567', '0.1235', '98,770', '1.5', '2e-07', '3.2e+12', '–']
    """
    if not math.isfinite(value):
        return NOTHING if math.isnan(value) else "∞" if value > 0 else "-∞"
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{int(value):,}"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size < 9:
        return f"{value:.{digits}g}"
    text = _fixed(value, digits - 1 - size)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(value: float, unit: float, digits: int = 2) -> str:
    """A number as far as it matters: to the place where ``unit``, a number of its kind, has so many digits.

    Examples
    --------
    >>> rounded(0.0000221, 0.00098), rounded(604245.0, 28883.0), rounded(999137.25, 0.4, 1), rounded(0.25, 0.0)
    ('0.00002', '604,000', '999,137.2', '0.25')
    """
    if not (math.isfinite(value) and math.isfinite(unit) and unit > 0):
        return shown(value)
    place = digits - 1 - math.floor(math.log10(unit))
    return _fixed(value, place) if place <= 9 and abs(value) < 1e12 else f"{value:.{digits + 1}g}"


def _fixed(value: float, place: int) -> str:
    """A number to so many places after the point, before it where that is negative."""
    return f"{round(value, place):,.{max(0, place)}f}"


def percent(share: float) -> str:
    """A share in %, with two digits after the point where it is small; what is not nothing is not shown as nothing.

    Examples
    --------
    >>> [percent(share).replace("\\N{NO-BREAK SPACE}", " ") for share in (0.01333, 1 - 0.9, 0.5, 0.0, 1e-6, 1 - 1e-6)]
    ['1.33 %', '10.0 %', '50.0 %', '0 %', '< 0.01 %', '> 99.99 %']
    """
    if math.isnan(share):
        return NOTHING
    value = round(100 * share, 2)
    if share < _ROUNDING or abs(share - 1) < _ROUNDING:
        text = f"{value:.0f}"
    elif value in (0, 100):
        text = "< 0.01" if value == 0 else "> 99.99"
    else:
        text = f"{value:.2f}" if value < 10 or value > 99 else f"{value:.1f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def counted(count: int, noun: str) -> str:
    """So many of something.

    Examples
    --------
    >>> counted(1, "column"), counted(1200, "row")
    ('1 column', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: str, most: int) -> str:
    """Text of at most so many characters.

    Examples
    --------
    >>> short("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def seconds(value: float) -> str:
    """A time in the unit that suits it.

    Examples
    --------
    >>> seconds(0.0000042), seconds(0.0123), seconds(2.5), seconds(754)
    ('4.2 µs', '12.3 ms', '2.5 s', '12.6 min')
    """
    for unit, size in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if value < (1000 if unit != "s" else 120) * size:
            return f"{shown(value / size, 3)} {unit}"
    return f"{shown(value / 60, 3)} min"


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    anchor, title : str
    lead : str
        One or two sentences: what is shown, and how to read it.
    cards : sequence of str
    """

    anchor: str
    title: str
    lead: str
    cards: Sequence[str]

    def html(self) -> Markup:
        name = f"{self.anchor}-title"
        words = [tag("h2", self.title, id=name), tag("p", self.lead, class_="lead")]
        return tag("section", *words, tag("div", *self.cards, class_="cards"), id=self.anchor, aria_labelledby=name)


def card(title: str, *body: str, note: str = "", wide: bool = False) -> Markup:
    """A box with a title, what it shows, and a sentence on how to read it."""
    words = [tag("p", note, class_="note")] if note else []
    return tag("div", tag("h3", title), *words, *body, class_="card wide" if wide else "card")


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """Names and values, one below the other."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")


def heading(name: str, scope: str) -> Markup:
    """A cell that names its row or column, cut where it is long; the whole name is there when pointed at."""
    return tag("th", short(name, _NAME), scope=scope, title=name)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, class_: str = "") -> Markup:
    """A table whose first column names the rows and whose other columns are numbers, unless a class says otherwise."""
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = [tag("tr", heading(first, "row"), *(tag("td", cell) for cell in cells)) for first, *cells in rows]
    parts = [tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", *body)]
    inner = tag("table", *parts, class_=class_ or None)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
