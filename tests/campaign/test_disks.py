"""A few cases of the campaign's disks: every fault once."""

import json
import os

import pytest
from test_kills import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_few_disks(tmp_path):
    run("-m", "campaign", "disks", "--cases", "8", "--tally", str(tmp_path / "tally.json"))
    tally = json.loads((tmp_path / "tally.json").read_text())
    assert tally["faults"] == []
    assert len(tally["held"]) == 8
