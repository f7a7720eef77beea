"""``torchrun -m gce fit``: the model of one process, also when a process is killed and all are started again."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import torch.distributed as dist

import gce
from gce.distributed.meeting import agree_on_start
from test_sharded_fits import numbers, written

ROUNDS = 60
SETTINGS = {"basis": "tree", "max_iter": ROUNDS, "n_iter_no_change": None}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Files, new rows, and the scores of a fit of this process."""
    frame, y = numbers(600)
    files = written(tmp_path_factory.mktemp("rows") / "data", frame, y)
    new = numbers(200, seed=5)[0]
    model = gce.GCERegressor(random_state=3, **SETTINGS).fit(gce.Shards(files, target="y"))
    return files, new, model.raw_predict(new).numpy()


@contextmanager
def launched(files, folder):
    """The command of docs/scaling.md, started; it is ended where a test fails meanwhile."""
    words = ["fit", files, "--target", "y", "--checkpoint", folder / "rounds", "--out", folder / "m.safetensors"]
    words += ["--seed", "3", "--timeout", "60"]
    words += [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    # not the address of this machine's name, which may have none
    here = ["--standalone", "--local-addr=127.0.0.1"]
    launcher = [sys.executable, "-m", "torch.distributed.run", *here, "--nproc-per-node=2", "--max-restarts=1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*launcher, "-m", "gce", *map(str, words)], **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def rounds(folder):
    return len(list((folder / "rounds").glob("*round-*.safetensors")))


def workers(launcher):
    """The processes that torchrun has started."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return sorted(pid for pid, parent in pairs if parent == launcher)


def test_the_command_gives_the_model_of_one_process(fitted, tmp_path):
    files, new, expected = fitted
    with launched(files, tmp_path) as process:
        stdout, stderr = process.communicate(timeout=90)
    assert process.returncode == 0, stderr
    assert rounds(tmp_path) == ROUNDS
    assert stdout.count("600 rows, 4 columns, target 'y'") == 1
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").raw_predict(new).numpy(), expected)


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_a_killed_worker_is_started_again_and_the_model_is_the_same(fitted, tmp_path):
    files, new, expected = fitted
    until = time.monotonic() + 90
    with launched(files, tmp_path) as process:
        while rounds(tmp_path) < 5:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.002)
        before = workers(process.pid)
        assert len(before) == 2
        os.kill(before[1], signal.SIGKILL)
        killed_after = rounds(tmp_path)
        stdout, stderr = process.communicate(timeout=90)
    assert process.returncode == 0, stderr
    assert "exitcode: -9" in stderr
    assert killed_after < ROUNDS == rounds(tmp_path)
    # it said so at both starts
    assert stdout.count("600 rows, 4 columns, target 'y'") == 2
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").raw_predict(new).numpy(), expected)


def met(store, ranks, size, timeout=20):
    """What some processes of a start agree on; the last error where they do not."""
    with ThreadPoolExecutor(size) as threads:
        names = [threads.submit(agree_on_start, store, rank, size, timeout) for rank in ranks]
        return [name.exception() or name.result() for name in names]


def test_a_start_has_nothing_to_do_with_the_dead():
    store, seen = dist.HashStore(), set()
    for size in (3, 3, 2, 3):
        # some of an earlier start came, and were killed
        assert all(isinstance(error, RuntimeError) for error in met(store, range(1, size), size, timeout=0.05))
        (name,) = set(met(store, reversed(range(size)), size))
        seen.add(name)
    assert len(seen) == 4
    # the first one alone: what the dead have left is not taken for them
    (error,) = met(store, [0], 2, timeout=0.05)
    assert "process 1 of 2 did not come within 0.05 seconds" in str(error)
