"""A few cases of the campaign's disks: every fault once, and that it notices what it looks for."""

import json
import os

import pytest
from test_kills import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

#: Jobs of a fault that is in their work: what comes of each is written.
JOBS = """
import json, sys
from functools import partial
from pathlib import Path
from campaign import disk_faults
from campaign.disks import Disks
from campaign.kill_jobs import Job
from campaign.kills import BrokenError

def careless(folder, materials, tick):
    try:
        (folder / "m.onnx").write_text("half")
        raise OSError(28, "No space left on device")
    except OSError:
        pass

def unnamed(name, folder, materials, tick):
    raise OSError(28, "No space left on device", str(folder / name))

def result(folder):
    return (folder / "m.onnx").read_text()

disks, found = Disks(Path(sys.argv[1])), {}
works = {
    "careless": careless,
    "temporary": partial(unnamed, ".m.onnx.1.tmp"),
    "folder": partial(unnamed, ""),
    "named": partial(unnamed, "m.onnx"),
}
whole = lambda folder, materials, tick: (folder / "m.onnx").write_text("half and half")
for name, work in works.items():
    disks.reference(Job(name, whole, result, "m.onnx"))
    job = Job(name, work, result, "m.onnx")
    folder = disks.fresh(job, name)
    try:
        found[name] = disks.disturbed(job, folder, disk_faults.nothing)
        disks.check_left(job, folder, found[name])
    except BrokenError as broken:
        found[name] = str(broken)
print(json.dumps(found))
"""

#: A folder is removed before each operation of a job in turn.
REMOVED = """
import json, random, sys
from pathlib import Path
from campaign.disks import REMOVED, Disks
from campaign.kill_jobs import FILE_JOBS

class Given(random.Random):
    def randint(self, first, last):
        return given

disks, job, found = Disks(Path(sys.argv[1])), FILE_JOBS[0], []
for given in range(1, 1 + disks.reference(job).files):
    found.append(disks.tried(job, REMOVED, given, Given()))
print(json.dumps(found))
"""


def test_a_few_disks(tmp_path):
    run("-m", "campaign", "disks", "--cases", "8", "--tally", str(tmp_path / "tally.json"))
    tally = json.loads((tmp_path / "tally.json").read_text())
    assert tally["faults"] == []
    assert len(tally["held"]) == 8


def test_half_a_file_and_errors_without_its_name_are_noticed(tmp_path):
    found = json.loads(run("-c", JOBS, str(tmp_path), capture_output=True, text=True).stdout)
    assert found["careless"] == "it ended well, but left something else than an undisturbed call"
    assert found["temporary"].startswith("an error that does not name the file")
    assert found["folder"].startswith("an error that does not name the file")
    assert found["named"] == "an error names the file"


def test_a_folder_is_removed_before_every_operation(tmp_path):
    found = json.loads(run("-c", REMOVED, str(tmp_path), capture_output=True, text=True).stdout)
    assert len(found) >= 5
    # the last one clears up, when the new file is in its place
    assert found[:-1] == ["an error names the file"] * (len(found) - 1)
    assert found[-1] == "removed after it was done"


def test_root_that_may_not_mount_is_noticed(tmp_path):
    mount = tmp_path / "mount"
    mount.write_text("#!/bin/sh\nexit 32\n")
    mount.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    words = f"import os; os.environ['PATH'] = {path!r}; from campaign.disk_faults import can_mount; print(can_mount())"
    assert run("-c", words, capture_output=True, text=True).stdout == "False\n"
