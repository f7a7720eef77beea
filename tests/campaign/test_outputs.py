"""A short form of the campaign of hostile names."""

from campaign import outputs
from campaign.hostile_words import WORDS
from campaign.outcomes import tallied
from campaign.outputs import WAYS


def test_names_are_shown_and_not_obeyed(tmp_path):
    # a browser is asked by the tests of reports
    ways = [i for i, way in enumerate(WAYS) if way.__name__ != "page_in_a_browser"]
    cases = [len(WAYS) * word + ways[word % len(ways)] for word in range(len(WORDS))]
    tally = tallied(outputs.outcomes(cases, 0, tmp_path))
    assert tally.faults == []
    assert tally.cases == len(cases)
