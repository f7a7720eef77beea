"""Pages: the parts of a report are gce's own, whatever the names say, and a browser asks and runs nothing."""

from __future__ import annotations

from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from campaign.model_uses import check
from tests.browser import CHROMIUM, Browser

#: The width of a phone in pixels.
PHONE = 390
#: Elements that load, run or send something: a page has those of any other report and no more.
ACTIVE = ("base", "embed", "form", "iframe", "link", "meta", "object", "script", "style")
#: Letters beyond which a page may shorten a name.
SHORT = 40


class Elements(HTMLParser):
    """Counts the elements of a page by name and attributes, and reads its text."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[str, ...]] = Counter()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[(tag, *sorted(name for name, _ in attrs))] += 1

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def elements(path: Path) -> Elements:
    """The elements and the text of a page."""
    parser = Elements()
    parser.feed(path.read_text("utf-8"))
    return parser


@cache
def _plain(folder: Path) -> Counter[tuple[str, ...]]:
    """The elements of a report with names that mean no harm."""
    from campaign.outputs import Named

    return elements(_report(Named("name", folder))).found


def active(found: Counter[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
    """How many elements that do something a page has."""
    return {one: count for one, count in found.items() if one[0] in ACTIVE}


def _report(named: Any) -> Path:
    path: Path = named.folder / "report.html"
    named.fitted().report(path, named.X, named.y)
    return path


def report(named: Any) -> str:
    """No element or attribute of a page comes from a name, and its text has the names."""
    known, path = _plain(named.folder), _report(named)
    page = elements(path)
    found = page.found
    check(active(found) == active(known), f"{active(found)} where another report has {active(known)}")
    check(not _lost(named, " ".join(page.text)), "a name is not on the page")
    strange = {one for one in found if one not in known and any(name.startswith("on") for name in one[1:])}
    tags = {one[0] for one in found} - {one[0] for one in known}
    check(not strange and not tags, f"elements of a stranger: {strange or tags}")
    text = path.read_text("utf-8")
    control = {letter for letter in text if ord(letter) < 160 and not letter.isprintable()} - set("\n\r\t\xa0")
    check(not control, f"the page has {control}")
    return "shown"


def _lost(named: Any, text: str) -> bool:
    """Whether a name that can be shown as it is is not in a text."""
    words = " ".join(named.word.split())
    as_it_is = named.word.isprintable() and len(named.word) <= SHORT
    return as_it_is and words not in " ".join(text.split())


_browser: list[Browser] = []


def page_in_a_browser(named: Any) -> str:
    """A page asks for itself alone, runs its own script, and is not wider than a phone."""
    if CHROMIUM is None:
        return "no browser here"
    if not _browser:
        _browser.append(Browser().__enter__())
    browser, path = _browser[0], _report(named)
    browser.open(path, width=PHONE)
    check(browser.asked == [path.resolve().as_uri()], f"the page asked for {browser.asked[1:]}")
    check(browser.complaints == [], f"the page complains: {browser.complaints}")
    check(browser.evaluate("document.title") == "GCEClassifier: report", "a name changed the title")
    wide = browser.evaluate("document.documentElement.scrollWidth")
    check(wide <= PHONE, f"the page is {wide} wide on a screen of {PHONE}")
    return "asked nothing, ran nothing"


WAYS = [report, page_in_a_browser]
