"""Processes as users run them: forked after a fit or a load, asked for a million threads, interrupted."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from gce import GCERegressor
from gce._utils import parallel
from gce.bases.trees import grower

forks = pytest.mark.skipif(sys.platform == "win32", reason="no fork")

START = """
import os, sys
import numpy as np
import torch

torch.set_num_threads(2)
from gce import GCERegressor, load
from gce._utils import parallel

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = X[:, 0] * X[:, 1]

def fitted(n_jobs=None):
    return GCERegressor(basis="tree", max_iter=2, random_state=0, n_jobs=n_jobs).fit(X, y)

def forked(work):
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""

FIT_AND_PREDICT = """
model = fitted()
many = rng.normal(size=(20_000, 5))

def child():
    assert torch.get_num_threads() == (2 if parallel._fork._pause else 1)
    for n_jobs in (None, 2):
        assert np.array_equal(fitted(n_jobs).predict(many), model.predict(many))
    forked(lambda: fitted(2))

forked(child)
model.predict(many)
forked(child)
"""

LOAD_AND_PREDICT = """
model = load(sys.argv[1])
many = rng.normal(size=(33_000, 5))
forked(lambda: model.predict(many))
wanted = model.predict(many)

def child():
    assert np.array_equal(model.predict(many), wanted)

forked(child)
"""

POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

def answer(n_jobs):
    return fitted(n_jobs).predict(X)

wanted = answer(2)
with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    assert all(np.array_equal(got, wanted) for got in pool.map(answer, [1, 2, None]))
"""

OLD_OPENMP = """
parallel._fork._pause = None
model = fitted()

def child():
    assert (torch.get_num_threads(), parallel.threads()) == (1, 2)
    with parallel.torch_threads(2), parallel.together():
        assert torch.get_num_threads() == 1
    assert np.array_equal(fitted(2).predict(X), model.predict(X))
    forked(lambda: fitted(2))

forked(child)
"""

WORKERS = """
import math, multiprocessing
from joblib.externals.loky import get_reusable_executor
from sklearn.utils.parallel import delayed
from gce._utils.worker_processes import worker_processes

def roots():
    assert list(worker_processes(2)(delayed(math.sqrt)(i) for i in (0, 1, 4, 9))) == [0, 1, 2, 3]

def child():
    roots()
    get_reusable_executor().shutdown()

roots()
forked(child)
roots()
child = multiprocessing.get_context("fork").Process(target=roots)
child.start()
child.join(60)  # joblib's idle workers end after 300 s
assert child.exitcode == 0
"""

A_MILLION_THREADS = """
many = rng.normal(size=(70_000, 5))
model = fitted(1_000_000)
model.save(sys.argv[1])
assert np.array_equal(load(sys.argv[1]).predict(many), model.predict(many))
"""


def run(program, *given):
    # fork beside other threads is deprecated from Python 3.12 on: just what is tried here
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + program, *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@forks
@pytest.mark.parametrize("program", [FIT_AND_PREDICT, POOL, OLD_OPENMP], ids=["fork", "pool", "old OpenMP"])
def test_a_forked_child_fits_and_predicts_after_its_parent_has(program):
    run(program)


@forks
def test_a_forked_child_predicts_with_a_model_its_parent_loaded(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 5))
    GCERegressor(basis="tree", max_iter=2, random_state=0).fit(X, X[:, 0]).save(tmp_path / "model")
    run(LOAD_AND_PREDICT, tmp_path / "model")


@forks
def test_a_forked_child_has_worker_processes_of_its_own_and_ends_them():
    run(WORKERS)


def test_no_number_of_jobs_is_too_large_to_be_survived(tmp_path):
    run(A_MILLION_THREADS, tmp_path / "model")


def test_jobs_are_bounded_and_small_numbers_kept():
    with parallel.limited(10**30):
        assert parallel.threads() == parallel.MOST_THREADS >= 64
    assert [parallel.bounded(n_jobs) for n_jobs in (None, -1, 1, 64)] == [None, -1, 1, 64]


def test_one_pool_serves_every_number_of_threads():
    before = {thread for thread in threading.enumerate() if thread.name.startswith("gce")}
    for threads in (40, *range(2, 40)):
        with parallel.workers(threads) as run:
            assert run([lambda i=i: i for i in range(threads)]) == list(range(threads))
    after = {thread for thread in threading.enumerate() if thread.name.startswith("gce")}
    assert len(after - before) <= 40


def test_a_large_pool_runs_no_more_tasks_at_once_than_asked_for():
    lock, active, most = threading.Lock(), 0, 0

    def task(i):
        nonlocal active, most
        with lock:
            active, most = active + 1, max(most, active + 1)
        threading.Event().wait(0.001)
        with lock:
            active -= 1
        return i

    for threads in (8, 2):
        most = 0
        with parallel.workers(threads) as run:
            assert run([lambda i=i: task(i) for i in range(40)]) == list(range(40))
        assert most <= threads


def test_tasks_that_use_workers_themselves_end():
    def inner(i):
        with parallel.workers(2) as run:
            return run([lambda j=j: (i, j) for j in range(4)])

    with parallel.workers(2) as run:
        waiting = threading.Thread(
            target=lambda: found.extend(run([lambda i=i: inner(i) for i in range(8)])), daemon=True
        )
        found = []
        waiting.start()
        waiting.join(30)
    assert found == [[(i, j) for j in range(4)] for i in range(8)]
    assert not getattr(parallel._task, "runs", False)


def test_after_an_error_no_task_is_begun():
    begun = []

    def failing():
        raise KeyError("one")

    with parallel.workers(2) as run:
        with pytest.raises(KeyError, match="one"):
            run([failing] * 2 + [lambda: begun.append(1)] * 100)
        assert begun == []
        assert run([lambda: 1, lambda: 2]) == [1, 2]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
def test_an_interruption_of_a_loop_is_a_keyboard_interrupt():
    rng = np.random.default_rng(0)
    n, d = 100_000, 10
    codes = rng.integers(256, size=(3, n, 4)).astype(np.uint8)
    few = np.full(1, 1e-4)
    data = grower.TreeData(codes, np.full(d, 256), rng.normal(size=(1, n, 1)), np.ones((1, n, 1)), few, few)
    sampling = grower.Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, d)
    asked = data, grower.Shape(64, 10, symmetric=False), sampling, grower.Constraints(), grower.Scratch()
    assert grower.GrownTrees(*asked).size == 127

    def grow_on():
        while True:
            grower.GrownTrees(*asked)

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for delay in (0.01, 0.015, 0.02, 0.03, 0.05):
            signal.setitimer(signal.ITIMER_REAL, delay)
            with pytest.raises(KeyboardInterrupt):
                grow_on()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
