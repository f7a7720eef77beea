"""Trees of rows that are divided into shards are those of all rows, to the bit."""

import threading

import numpy as np
import pytest
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


def grown(codes, gradient, hessian, some, shape, subsample, kinds, shards=None, unit=0.02):
    d, members = codes.shape[1], len(gradient)
    unit = np.full(members, unit)
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
    meeting = assert_shards_grow(whole, int(cut * n), codes, gradient, hessian, shape, subsample, kinds)
    assert meeting.calls > 0


def assert_shards_grow(whole, first, codes, gradient, hessian, shape, subsample, kinds, **others):
    """Two shards, of the rows up to ``first`` and of the others, must grow the trees of all rows; where they met."""
    meeting, found, n = Meeting(2), {}, len(codes)

    def work(number, some):
        shards = Shards(Reduce(meeting.reduce), n)
        found[number] = grown(codes, gradient, hessian, some, shape, subsample, kinds, shards, **others)

    threads = [threading.Thread(target=work, args=a) for a in ((0, slice(0, first)), (1, slice(first, n)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for own in found.values():
        assert np.array_equal(own.size, whole.size)
        for one, other in zip(own.nodes(), whole.nodes(), strict=True):
            assert np.array_equal(one, other)
    assert np.array_equal(np.concatenate([found[0].leaf, found[1].leaf], 2), whole.leaf)
    return meeting


def large(seed, leaves, depth, mixed, symmetric=False):
    """What a tree of many leaves is grown from; steep gradients, so that some leaves are split again and again."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, BINS, (3000, 5)).astype(np.uint8)
    steep = 2.0 ** (codes[:, :2].sum(1) // 2) * np.where(codes[:, 2] > 4, 1, -1)
    gradient = steep + rng.integers(-8, 9, 3000)
    kinds = Kinds(*(rng.integers(0, 2, (2, 5)).astype(np.uint8))) if mixed else None
    return codes, gradient.reshape(1, -1, 1), np.ones((1, 3000, 1)), Shape(leaves, depth, symmetric), 1.0, kinds


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("leaves", "depth"), [(63, 60), (40, 60), (63, 6), (63, 4), (7, 60), (2, 60), (1, 60)])
@pytest.mark.parametrize("seed", range(3))
def test_histograms_of_many_nodes_travel_together(leaves, depth, mixed, seed):
    codes, gradient, hessian, *how = large(seed, leaves, depth, mixed)
    # a leaf may have few rows
    whole = grown(codes, gradient, hessian, slice(None), *how, unit=1e-4)
    meeting = assert_shards_grow(whole, 1100, codes, gradient, hessian, *how, unit=1e-4)
    # the largest gradient, the root and the leaves, and less than one message for two splits of a large tree
    splits = int(whole.size[0, 0]) // 2
    assert splits >= 0.8 * (min(leaves, 2**depth) - 1)
    assert meeting.calls <= 3 + min(splits, 6 + leaves // 4)


@pytest.mark.parametrize("depth", [1, 3, 5])
def test_a_level_of_a_symmetric_tree_is_one_message(depth):
    codes, gradient, hessian, *how = large(0, 2**depth, depth, False, symmetric=True)
    whole = grown(codes, gradient, hessian, slice(None), *how, unit=1e-4)
    meeting = assert_shards_grow(whole, 1100, codes, gradient, hessian, *how, unit=1e-4)
    assert whole.size[0, 0] == 2 ** (depth + 1) - 1
    # the largest gradient, each level but the last, and the leaves
    assert meeting.calls == 2 + depth
