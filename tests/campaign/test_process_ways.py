"""A few cases of the campaign's processes, and that it notices what it looks for."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from campaign.growth import Footprint, growth, too_much

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs fork and /proc")

CASES = """
import json, sys, time
from pathlib import Path
from campaign import process_ways as ways
from campaign.processes import Processes

folder = Path(sys.argv[1])
processes = Processes(0, folder)
tried = [(ways.fork_after_a_fit, "mixed"), (ways.preload, "trees"), (ways.pool_spawn, "trees")]
tried += [(ways.threads_predict, "networks"), (ways.fit_beside_predictions, "trees")]
faults = [processes.outcome(case, *each).fault for case, each in enumerate(tried)]

def other_bits(asked):
    return [*ways.threads_predict(asked), asked._replace(seed=1).answer().replace("0", "1")]

def dies(asked):
    return ways.Forks([lambda: str(1 / 0)]).answers()

def hangs(asked):
    return ways.Forks([lambda: time.sleep(600)]).answers()

hasty = Processes(0, folder, seconds=30)
noticed = [hasty.outcome(0, way, "trees").fault for way in (other_bits, dies)]
hasty._seconds = 1.0
noticed.append(hasty.outcome(0, hangs, "trees").fault)
json.dump([faults, noticed], sys.stdout)
"""

GROWTH = """
import json, sys
from pathlib import Path
from campaign import process_models, processes

for name in set(process_models.MODELS) - {"trees", "networks"}:
    del process_models.MODELS[name]
json.dump(processes.Processes(0, Path(sys.argv[1])).long(0, 10, 200).fault, sys.stdout)
"""


def run(program, *words):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=300, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_a_few_processes_and_what_is_noticed(tmp_path):
    faults, (other, dead, hanging) = run(CASES, tmp_path)
    assert faults == [None] * 5
    assert "where one alone has another" in other
    assert "ended with status 1" in dead
    assert hanging.startswith("trees, n_jobs=None: no end within 1 s")


def test_fits_and_predictions_leave_nothing_behind(tmp_path):
    assert run(GROWTH, tmp_path) is None


def test_growth_is_noticed(monkeypatch):
    monkeypatch.setattr("campaign.growth.ENDING", 0.0)
    kept, end = [], threading.Event()

    def leak_thread(_):
        kept.append(threading.Thread(target=end.wait))
        kept[-1].start()

    def leak_handle(_):
        kept.append(os.open(os.devnull, os.O_RDONLY))

    larger = too_much(growth(lambda i: kept.append(bytearray(os.urandom(1)) * 2**20), 20, 4))
    assert larger.startswith("memory grew by 1")
    try:
        assert too_much(growth(leak_thread, 7, 2)).startswith("5 threads more: ")
        assert too_much(growth(leak_handle, 5, 2)) == "3 open files more"
    finally:
        end.set()
        for each in kept:
            if isinstance(each, threading.Thread):
                each.join()
            elif not isinstance(each, bytearray):
                os.close(each)
    assert too_much(growth(lambda i: bytearray(2**20), 20, 4)) is None
    assert too_much(Footprint(0, -1, -1, Counter())) is None
