"""A few cases of the campaign's kills, and that it notices what it looks for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

#: A job that writes its file in two steps: killed between them it leaves half a file.
CARELESS = """
import random, signal, sys
from pathlib import Path
from campaign.children import Moment
from campaign.kill_jobs import Job
from campaign.kills import BrokenError, Kills

def work(folder, materials, tick):
    with open(folder / "m.onnx", "w") as file:
        file.write("half")
    with open(folder / "m.onnx", "a") as file:
        file.write(" and half")

def result(folder):
    return (folder / "m.onnx").read_text()

kills, job = Kills(Path(sys.argv[1])), Job("careless", work, result, "m.onnx")
folder = kills.fresh(job, "case")
assert kills.killed(job, folder, signal.SIGKILL, Moment(file=2)) == (-9, 0)
try:
    kills.check_standing(job, folder, "half and half", signal.SIGKILL)
except BrokenError as broken:
    sys.stdout.write(str(broken))
"""

#: A job of three rounds that keeps none of them.
FORGETFUL = """
import signal, sys
from pathlib import Path
from campaign.children import Moment
from campaign.kill_jobs import Job
from campaign.kills import BrokenError, Kills

def work(folder, materials, tick):
    for t in range(3):
        (folder / f"round-{t}").write_text("kept")
        tick()
    (folder / "course").write_text("the same each time")

def result(folder):
    return (folder / "course").read_text()

kills, job = Kills(Path(sys.argv[1])), Job("forgetful", work, result, goes_on=True)
folder = kills.fresh(job, "case")
status, ticks = kills.killed(job, folder, signal.SIGKILL, Moment(file=3))
assert (status, ticks) == (-9, 2)
try:
    kills.repeated(job, folder, ticks)
except BrokenError as broken:
    sys.stdout.write(str(broken))
"""


def run(*words, **more):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    return subprocess.run([sys.executable, *words], cwd=ROOT, env=environment, check=True, timeout=300, **more)


def test_a_few_kills(tmp_path):
    run("-m", "campaign", "kills", "--cases", "6", "--tally", str(tmp_path / "tally.json"))
    tally = json.loads((tmp_path / "tally.json").read_text())
    assert tally["faults"] == []
    assert sum(tally["held"].values()) == 6
    assert sum(count for kind, count in tally["held"].items() if "resumed" in kind) >= 3


def test_half_a_file_is_noticed(tmp_path):
    done = run("-c", CARELESS, str(tmp_path), capture_output=True, text=True)
    assert done.stdout == "m.onnx is not what an undisturbed call writes"


def test_a_fit_that_starts_again_is_noticed(tmp_path):
    done = run("-c", FORGETFUL, str(tmp_path), capture_output=True, text=True)
    assert done.stdout.startswith("it did not resume: it made 2 rounds, and 3 when it was called again")
