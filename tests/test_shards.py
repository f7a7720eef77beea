"""Trees of rows that are divided into shards are those of all rows, to the bit."""

import threading

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gce.bases.trees.binning import Kinds
from gce.bases.trees.grower import GrownTrees, Reduce, Scratch, Shards
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData

BINS = 12


class Meeting:
    """What several threads add up or compare, each in turn of the same calls."""

    def __init__(self, count):
        self._met, self._numbers, self._lock = threading.Barrier(count, timeout=10), [], threading.Lock()
        self.calls = 0

    def reduce(self, address, count, how):
        own = np.ctypeslib.as_array(address, (count,))
        with self._lock:
            self._numbers.append(own.copy())
        self._met.wait()
        found = np.max(self._numbers, 0) if how else np.sum(self._numbers, 0)
        if self._met.wait() == 0:
            self._numbers, self.calls = [], self.calls + 1
        self._met.wait()
        own[:] = found


def blocks(codes):
    """Codes ``(N, d)`` in blocks of four columns."""
    n, d = codes.shape
    padded = np.zeros((n, -(-d // 4) * 4), np.uint8)
    padded[:, :d] = codes
    return np.ascontiguousarray(padded.reshape(n, -(-d // 4), 4).transpose(1, 0, 2))


def grown(codes, gradient, hessian, some, shape, subsample, kinds, shards=None):
    d, members = codes.shape[1], len(gradient)
    unit = np.full(members, 0.02)
    parts = [np.ascontiguousarray(part[:, some]) for part in (gradient, hessian)]
    widths = np.full(d, BINS)
    data = TreeData(blocks(codes[some]), widths, *parts, unit, unit, kinds, unit)
    names = np.random.default_rng(5).integers(0, 2**63, len(codes)).astype(np.uint64)[some]
    sampling = Sampling(
        np.arange(3, 3 + members).astype(np.uint64), np.ascontiguousarray(names), subsample, max(1, d - 1)
    )
    return GrownTrees(data, shape, sampling, Constraints(), Scratch(), shards)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    symmetric=st.booleans(),
    subsample=st.sampled_from([1.0, 0.6, 1e-9]),
    mixed=st.booleans(),
    cut=st.floats(0, 1),
)
@example(seed=1, symmetric=False, subsample=1.0, mixed=False, cut=0.0)
@example(seed=2, symmetric=True, subsample=0.6, mixed=True, cut=1.0)
def test_shards_grow_the_trees_of_all_rows(seed, symmetric, subsample, mixed, cut):
    rng = np.random.default_rng(seed)
    n, d, members, k = int(rng.integers(2, 80)), int(rng.integers(1, 7)), 2, int(rng.integers(1, 3))
    codes = rng.integers(0, BINS, (n, d)).astype(np.uint8)
    gradient = rng.normal(size=(members, n, k)) * 10.0 ** rng.integers(-3, 4, (1, n, 1))
    hessian = rng.integers(0, 3, (members, n, 1)) * rng.uniform(0.1, 1, (members, n, k))
    kinds = Kinds(*(rng.integers(0, 2, (2, d)).astype(np.uint8))) if mixed else None
    shape = Shape(9, 3, symmetric)
    whole = grown(codes, gradient, hessian, slice(None), shape, subsample, kinds)
    first, meeting, found = int(cut * n), Meeting(2), {}

    def work(number, some):
        found[number] = grown(
            codes, gradient, hessian, some, shape, subsample, kinds, Shards(Reduce(meeting.reduce), n)
        )

    threads = [threading.Thread(target=work, args=a) for a in ((0, slice(0, first)), (1, slice(first, n)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert meeting.calls > 0
    for own in found.values():
        assert np.array_equal(own.size, whole.size)
        for one, other in zip(own.nodes(), whole.nodes(), strict=True):
            assert np.array_equal(one, other)
    assert np.array_equal(np.concatenate([found[0].leaf, found[1].leaf], 2), whole.leaf)
