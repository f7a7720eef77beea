"""A short form of the campaign of hostile names."""

import html

import pytest

from campaign import outputs, shown_pages
from campaign.hostile_words import WORDS
from campaign.model_uses import BrokenPromiseError
from campaign.outcomes import tallied
from campaign.outputs import WAYS, Named


def test_names_are_shown_and_not_obeyed(tmp_path):
    # a browser is asked by the tests of reports
    ways = [i for i, way in enumerate(WAYS) if way.__name__ != "page_in_a_browser"]
    cases = [len(WAYS) * word + ways[word % len(ways)] for word in range(len(WORDS))]
    tally = tallied(outputs.outcomes(cases, 0, tmp_path))
    assert tally.faults == []
    assert tally.cases == len(cases)


@pytest.mark.parametrize("name", ["end of style", "attribute", "path"])
def test_a_page_that_obeys_a_name_or_loses_it_is_a_fault(tmp_path, monkeypatch, name):
    named = Named(WORDS[name], tmp_path)
    assert shown_pages.report(named) == "shown"
    made, written = shown_pages._report, html.escape(named.word)
    instead = "a name" if name == "path" else named.word

    def report(named):
        path = made(named)
        page = path.read_text("utf-8")
        assert written in page
        path.write_text(page.replace(written, instead), "utf-8")
        return path

    monkeypatch.setattr(shown_pages, "_report", report)
    with pytest.raises(BrokenPromiseError):
        shown_pages.report(named)
