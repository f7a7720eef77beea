"""Threads: who gets them, that they are given back, and that a child process has its own."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from threadpoolctl import ThreadpoolController

from gce import GCERegressor
from gce._utils import parallel
from gce._utils.random import Streams
from gce.losses import CrossEntropy, Logistic, Squared
from gce.losses.risk import Risk
from gce.training.problem import Problem


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_threads_are_left_to_loops_and_given_back(three_threads):
    def interrupted():
        with parallel.alone():
            assert (torch.get_num_threads(), parallel.threads()) == (1, 3)
            with parallel.together():
                assert torch.get_num_threads() == 3
            assert torch.get_num_threads() == 1
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert (torch.get_num_threads(), parallel.threads()) == (3, 3)


def test_a_limit_of_the_user_holds_within(three_threads):
    with parallel.limited(2), parallel.alone():
        assert parallel.threads() == 2
        with parallel.together():
            assert torch.get_num_threads() == 2


def test_a_fit_leaves_torch_as_it_was(three_threads):
    seen = []
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = GCERegressor(basis="tree", max_iter=2, callbacks=[lambda step: seen.append(torch.get_num_threads())])
    model.fit(X, X[:, 0])
    assert seen == [1, 1]
    assert torch.get_num_threads() == 3


def in_thread(work):
    """What work returns in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(timeout=60)


def blas_threads():
    return {found["num_threads"] for found in ThreadpoolController().select(user_api="blas").info()}


def test_threads_that_overlap_leave_the_numbers_of_the_user(three_threads):
    # the second begins within the first and ends after it
    def second():
        with parallel.one_blas_thread(), parallel.torch_threads(2):
            inside.wait(60)
            first_done.wait(60)
        return torch.get_num_threads(), parallel.threads()

    inside, first_done = threading.Barrier(2), threading.Event()
    with ThreadpoolController().select(user_api="blas").limit(limits=2), ThreadPoolExecutor(1) as pool:
        before = blas_threads()
        with parallel.one_blas_thread(), parallel.alone():
            assert blas_threads() == {1}
            # threads that meet torch beside a fit
            assert in_thread(parallel.threads) == 3
            other = pool.submit(second)
            inside.wait(60)
        first_done.set()
        assert other.result(timeout=60) == (3, 3)
        assert blas_threads() == before
        assert torch.get_num_threads() == in_thread(torch.get_num_threads) == 3


def test_the_calling_thread_does_what_no_other_can_be_started_for(monkeypatch):
    def refuse(*given):
        raise RuntimeError("can't start new thread")

    with parallel.workers(2) as run:
        monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse)
        assert run([lambda i=i: i for i in range(5)]) == list(range(5))


AT_THE_END = """
import atexit
import threading
from gce._utils import parallel

def twice():
    with parallel.workers(2) as run:
        assert run([lambda: 1, lambda: 2]) == [1, 2]

def later():
    threading.main_thread().join()
    twice()

twice()
atexit.register(twice)
threading.Thread(target=later).start()
"""


def test_tasks_are_run_while_the_interpreter_ends():
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")


CHILD = """
import os
from gce._utils import parallel

def twice():
    with parallel.workers(2) as run:
        return run([lambda: 1, lambda: 2])

assert twice() == [1, 2]
child = os.fork()
if not child:
    os._exit(0 if twice() == [1, 2] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_child_process_has_threads_of_its_own():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHILD], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_generators_are_made_once_and_draw_what_they_always_drew():
    members = torch.tensor([0, 1, 2])
    rng = Streams(7, (11, 12, 13)).at(4, members, torch.tensor([3, 3, 5]))
    last, first = rng.members[-1], rng.members[0]
    assert rng.members[2] is last
    drawn = torch.randint(1000, (3,), generator=last), torch.randint(1000, (3,), generator=first)
    alone = Streams(7, (13,)).at(9, torch.tensor([0]), torch.tensor([5])).members[0]
    assert torch.equal(drawn[0], torch.randint(1000, (3,), generator=alone))
    assert not torch.equal(*drawn)
    assert [len(rng.members), len(rng.members[1:])] == [3, 2]


@pytest.mark.parametrize("loss", [Squared(), Logistic(), CrossEntropy()])
@pytest.mark.parametrize("members", [[0, 1, 2], [2, 0], [1]])
def test_held_out_rows_are_asked_about_by_who_holds_them_out(loss, members):
    rng = np.random.default_rng(0)
    n, k = 40, 1 if not isinstance(loss, CrossEntropy) else 3
    fold = rng.integers(3, size=n)
    held_out = torch.from_numpy(np.where(fold == np.arange(3)[:, None], rng.uniform(0.5, 1, n), 0.0))
    held_out /= held_out.sum(1, keepdim=True)
    y = torch.from_numpy(rng.normal(size=(n, k)) if isinstance(loss, Squared) else np.eye(k + 1)[fold % (k + 1), :k])
    offset = torch.zeros(k, dtype=torch.float64)
    problem = Problem(loss, torch.zeros(n, 1), y, 1.0 - (held_out > 0).double(), held_out, offset, offset + 1)
    pred = torch.from_numpy(rng.normal(size=(len(members), n, k)))
    wanted = Risk(loss, y, held_out[members], offset).value(pred)
    torch.testing.assert_close(problem.held_out_loss(pred, members), wanted, rtol=1e-13, atol=0)
    # a row that others hold out may carry any score
    pred[0, fold != members[0]] = np.inf
    torch.testing.assert_close(problem.held_out_loss(pred, members), wanted, rtol=1e-13, atol=0)
