"""The pages that ``make docs`` built: links, words, and what Chromium shows and complains of."""

import io
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import matplotlib.image
import numpy as np
import pytest

SITE = Path(__file__).resolve().parents[2] / "build" / "docs" / "html"
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="`make docs` builds the pages")
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)
#: One page of each kind, looked at in every size and colour.
KINDS = ["docs/index", "docs/start", "docs/guide", "docs/gallery/index", "docs/gallery/plot_geometry", "docs/api/index",
         "docs/api/generated/gce.GCERegressor", "docs/theory", "docs/gap", "docs/benchmarks", "CHANGELOG"]  # fmt: skip
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "gallery"


class Links(HTMLParser):
    """Addresses that a page points to or loads, and the names that others may point to."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.names = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.addresses += [(tag, given[key]) for key in ("href", "src") if given.get(key)]


@pytest.fixture(scope="module")
def links():
    return {path: Links(path.read_text("utf-8")) for path in PAGES}


def test_links_within_the_site_lead_somewhere(links):
    lost = []
    for page, found in links.items():
        for tag, address in found.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            known = links[target].names if target in links else None
            if not target.is_file() or (
                tag == "a" and parts.fragment and known and unquote(parts.fragment) not in known
            ):
                lost.append(f"{page.relative_to(SITE)}: {address}")
    assert lost == []


def test_nothing_is_loaded_from_elsewhere(links):
    loaded = [(page.name, a) for page, found in links.items() for tag, a in found.addresses if tag != "a" and "//" in a]
    assert loaded == []


def test_every_example_has_a_page_with_its_output():
    names = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))
    assert len(names) >= 12
    for name in names:
        text = (SITE / "docs" / "gallery" / f"{name}.html").read_text("utf-8")
        assert "sphx-glr-script-out" in text or "sphx-glr-single-img" in text, name


@pytest.mark.parametrize(
    "page", [name for path in PAGES if (name := path.relative_to(SITE).as_posix()) != "index.html"]
)
def test_a_page_has_words_and_no_complaints(browser, page):
    browser.open(SITE / page, width=390)
    assert browser.complaints == []
    assert [address for address in browser.asked if not address.startswith(("file:", "data:"))] == []
    assert browser.evaluate("document.querySelectorAll('main h1').length") == 1
    assert page == "search.html" or browser.evaluate("document.querySelector('main').innerText.length") > 60
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", KINDS)
def test_a_screen_is_not_empty_and_has_the_colours_of_its_scheme(browser, page, width, dark):
    browser.open(SITE / f"{page}.html", width=width, dark=dark)
    png = browser.screenshot()
    folder = SITE.parent / "screens"
    folder.mkdir(exist_ok=True)
    (folder / f"{page.replace('/', '_')}_{width}_{'dark' if dark else 'light'}.png").write_bytes(png)
    grey = matplotlib.image.imread(io.BytesIO(png))[..., :3].mean(2)
    background = np.median(grey)
    assert background < 0.3 if dark else background > 0.8
    assert 0.01 < (abs(grey - background) > 0.25).mean() < 0.6
