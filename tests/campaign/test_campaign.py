"""What reads and writes the results of a campaign."""

import json

from campaign.outcomes import Outcome, Tally, tallied
from campaign.page import page


def outcomes():
    yield Outcome(0, "fine")
    yield Outcome(1, "fine")
    yield Outcome(2, "lost", "a file is missing")


def test_what_held_is_counted_and_faults_are_kept():
    tally = tallied(outcomes())
    assert tally.held == {"fine": 2}
    assert tally.faults == [(2, "lost", "a file is missing")]
    assert tally.cases == 3
    assert Tally.from_json(json.loads(json.dumps(tally.to_json()))) == tally


def test_the_page_shows_counts_and_faults():
    text = page({"kills": tallied(outcomes())}, seed=7)
    assert "seed 7" in text
    assert "| fine | 2 |" in text
    assert "- case 2, lost: a file is missing" in text
