"""What reads and writes the results of a campaign."""

import json

import pytest

from campaign import __main__ as campaign
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
    text = page({"kills": tallied(outcomes())}, 7, {"kills": "two cores"})
    assert "seed 7), two parts at a time on two cores." in text
    assert "| fine | 2 |" in text
    assert "- case 2, lost: a file is missing" in text


@pytest.fixture
def written(tmp_path, monkeypatch):
    """What a run on a machine writes: the parts by name, and the page."""
    monkeypatch.setattr(campaign, "HERE", tmp_path)

    def write(machine, parts, seed=0):
        monkeypatch.setattr(campaign, "machine", lambda: machine)
        campaign.write_results({name: tallied(outcomes()) for name in parts}, seed)
        return json.loads((tmp_path / "results.json").read_text())["parts"], (tmp_path / "results.md").read_text()

    return write


def test_parts_of_another_machine_keep_its_name(written):
    _, page = written("torch 2.6", ["kills", "disks"])
    assert "two parts at a time on torch 2.6." in page
    parts, page = written("torch 2.9", ["disks"])
    assert {name: part["machine"] for name, part in parts.items()} == {"kills": "torch 2.6", "disks": "torch 2.9"}
    assert "- kills: torch 2.6\n- disks: torch 2.9\n" in page
    _, page = written("torch 2.9", ["kills"], seed=1)
    assert "torch 2.6" not in page
    assert "[disks]" not in page


def test_a_part_that_names_no_machine_is_not_shown_under_this_one(written, tmp_path):
    written("torch 2.6", ["kills"])
    results = json.loads((tmp_path / "results.json").read_text())
    del results["parts"]["kills"]["machine"]
    (tmp_path / "results.json").write_text(json.dumps(results))
    _, page = written("torch 2.9", ["disks"])
    assert "- kills: a machine that was not written down\n" in page
