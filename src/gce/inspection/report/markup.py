"""HTML elements. Text that is not markup is escaped, since names come from data and may be hostile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gce._utils.text import escape_html

#: Shown in place of a missing number.
NOTHING = "\N{EN DASH}"

#: Rounding error of a ratio of sums.
_ROUNDING = 1e-12
#: Most characters of a name in a table; names of columns and classes may be arbitrarily long.
_NAME = 60

_VOID = frozenset({"br", "link", "meta"})


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def tag(element: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element; children that are not markup are escaped, attributes always.

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
        parts.append(f" {name}" if value is True else f' {name}="{escape_html(str(value))}"')
    parts.append(">")
    if element not in _VOID:
        parts += [*map(safe, children), f"</{element}>"]
    return Markup("".join(parts))


def safe(text: str) -> str:
    """Text as HTML: escaped unless it is markup."""
    return text if isinstance(text, Markup) else escape_html(text)


def join(parts: Iterable[str]) -> Markup:
    """Concatenated parts."""
    return Markup("".join(map(safe, parts)))


def shown(value: float, digits: int = 4) -> str:
    """A number with ``digits`` significant digits, thousands separators and no needless exponent.

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
    """A number rounded to the place at which ``unit``, such as its standard error, has ``digits`` digits.

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
    """A number with ``place`` decimals; a negative ``place`` rounds to tens, hundreds, and so on."""
    return f"{round(value, place):,.{max(0, place)}f}"


def percent(share: float) -> str:
    """A share in %, with two decimals if it is small; only 0 is shown as 0.

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


def short(text: str, most: int) -> str:
    """Text cut to at most ``most`` characters.

    Examples
    --------
    >>> short("a long name", 6)
    'a lon…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def seconds(value: float) -> str:
    """A duration in a suitable unit.

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
    """A section of the page.

    Parameters
    ----------
    anchor, title : str
    lead : str
        One or two sentences on what is shown and how to read it.
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
    """A box with a title, a note on how to read it, and its content."""
    words = [tag("p", note, class_="note")] if note else []
    return tag("div", tag("h3", title), *words, *body, class_="card wide" if wide else "card")


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """A list of names and values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs), class_="facts")


def heading(name: str, scope: str) -> Markup:
    """A header cell; a long name is cut and shown in full as a tooltip."""
    return tag("th", tag("span", short(name, _NAME), class_="name"), scope=scope, title=name)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, class_: str = "") -> Markup:
    """A table whose first column names the rows; other columns are numbers unless ``class_`` says otherwise."""
    top = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = [tag("tr", heading(first, "row"), *(tag("td", cell) for cell in cells)) for first, *cells in rows]
    parts = [tag("caption", caption, class_="unseen"), tag("thead", top), tag("tbody", *body)]
    inner = tag("table", *parts, class_=class_ or None)
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)
