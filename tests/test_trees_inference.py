"""Rows dropped through trees: cut by cut, by levels, by walking, by tensor operations, all to the same bits."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gce._utils import native, parallel
from gce.bases import ForestAtoms, TreeAtoms
from gce.bases.trees import TreeArrays, predictor, tree_arrays
from gce.frank_wolfe.ensemble import ConvexEnsemble
from helpers import GPU, random_trees

INPUTS = 4
#: The instruction sets that this processor has.
LEVELS = native.LEVELS[: 1 + native._load("baseline").gce_cpu_level()]


def by_hand(grove, X, weights, into, count):
    """Each row through each tree, one after another, in plain Python."""
    out = np.zeros((count, len(X), grove.outputs))
    feature, threshold, left, value = (t.tolist() for t in (grove.feature, grove.threshold, grove.left, grove.value))
    for t, first in enumerate(grove.first.tolist()):
        for i, row in enumerate(X.tolist()):
            node = 0
            while left[first + node]:
                node = left[first + node] + (row[feature[first + node]] > threshold[first + node])
            for j in range(grove.outputs):
                out[into[t], i, j] += weights[t, j] * value[first + node][j]
    return out


def rows_for(rng, n):
    """Rows of which many are right on thresholds."""
    return np.where(
        rng.random((n, INPUTS)) < 0.5, rng.integers(-6, 7, (n, INPUTS)) / 2, rng.normal(size=(n, INPUTS)) * 3
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 300),
    st.integers(1, 3),
    st.integers(1, 9),
    st.sampled_from([torch.float64, torch.float32]),
)
def test_all_ways_find_the_same_bits(seed, n, outputs, trees, dtype):
    rng = np.random.default_rng(seed)
    grove = random_trees(rng, INPUTS, outputs, trees, dtype)
    X, weights = rows_for(rng, n), rng.normal(size=(trees, outputs))
    count = int(rng.integers(1, trees + 1))
    into = rng.integers(0, count, trees)
    given_ = torch.from_numpy(X), torch.from_numpy(weights), torch.from_numpy(into), count
    expected = by_hand(grove, X, weights, into, count)
    assert np.array_equal(grove.summed(*given_), expected)
    by_tensors = grove._summed_by_tensors(given_[0], given_[1], into.tolist(), count)
    assert np.array_equal(by_tensors, expected)
    assert by_tensors.dtype == torch.float64


def spread_tree(rng, leaves, outputs, thresholds):
    """A tree of so many leaves, of random shape."""
    left, ends = np.zeros(2 * leaves - 1, np.int32), [0]
    for nodes in range(1, 2 * leaves - 1, 2):
        node = ends.pop(int(rng.integers(len(ends))))
        left[node], ends = nodes, [*ends, nodes, nodes + 1]
    size = len(left)
    return rng.integers(0, INPUTS, size).astype(np.int32), thresholds(size), left, rng.normal(size=(size, outputs))


def symmetric_tree(rng, depth, outputs, thresholds):
    """A tree that cuts all nodes of a level alike."""
    nodes = 2 ** (depth + 1) - 1
    level = np.log2(np.arange(1, nodes + 1)).astype(int)
    feature, threshold = rng.integers(0, INPUTS, depth + 1)[level].astype(np.int32), thresholds(depth + 1)[level]
    left = np.where(level < depth, 2 * np.arange(nodes) + 1, 0).astype(np.int32)
    return feature, threshold, left, rng.normal(size=(nodes, outputs))


@pytest.fixture(params=LEVELS)
def instruction_set(request):
    """Kernels of one instruction set in place of the best."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: native._load(request.param))
        for name in ("_prepare", "_sum", "_widest", "_free", "_restore"):
            patch.setattr(predictor, name, getattr(predictor, name).__wrapped__)
        yield request.param


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10**6),
    n=st.one_of(st.integers(0, 5), st.integers(6, 80), st.integers(500, 600)),
    outputs=st.integers(1, 4),
    shapes=st.lists(st.sampled_from(["leaf", "symmetric", "small", "chain", "deep", "fine"]), min_size=1, max_size=6),
    dtype=st.sampled_from([torch.float64, torch.float32]),
)
def test_every_instruction_set_finds_what_a_walk_in_python_finds(instruction_set, seed, n, outputs, shapes, dtype):
    """Trees of every kind in one sequence; "fine" has more thresholds in a column than a byte can tell apart."""
    rng = np.random.default_rng(seed)
    coarse, exact = (lambda size: rng.integers(-6, 7, size) / 2), (lambda size: rng.normal(size=size))
    make = {
        "leaf": lambda: spread_tree(rng, 1, outputs, coarse),
        "symmetric": lambda: symmetric_tree(rng, int(rng.integers(1, 10)), outputs, coarse),
        "small": lambda: spread_tree(rng, int(rng.integers(2, 257)), outputs, exact),
        "chain": lambda: spread_tree(rng, int(rng.integers(250, 260)), outputs, coarse),
        "deep": lambda: spread_tree(rng, int(rng.integers(257, 400)), outputs, coarse),
        "fine": lambda: spread_tree(rng, 1500, outputs, exact),
    }
    grove = TreeArrays.of([make[shape]() for shape in shapes], dtype)
    X = rows_for(rng, n)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[rng.random(X.shape) < 0.02] = -0.0
    count = int(rng.integers(1, len(shapes) + 1))
    weights, into = rng.normal(size=(len(shapes), outputs)), rng.integers(0, count, len(shapes))
    found = grove.summed(*map(torch.from_numpy, (X, weights, into)), count)
    assert np.array_equal(found, by_hand(grove, X, weights, into, count))


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"size": [2, 4]}, "are no trees"),
        ({"left": [1, 0, 0, 0, 0, 0]}, "are no trees"),
        ({"left": [1, 0, 0, 2, 0, 0]}, "are no trees"),
        ({"feature": [-1, 0, 0, 0, 0, 0]}, "are no trees"),
        ({"feature": [4, 0, 0, 0, 0, 0]}, "rows have 4 columns, but trees look at 5"),
        ({"feature": [0, 0, 0]}, "other parts have other lengths"),
    ],
)
def test_what_is_no_tree_is_refused(changed, fault):
    given_ = {"size": [3, 3], "feature": [0] * 6, "threshold": [0.0] * 6, "left": [1, 0, 0, 1, 0, 0], **changed}
    kinds = np.int64, np.int32, np.float64, np.int32
    parts = [torch.from_numpy(np.array(part, kind)) for part, kind in zip(given_.values(), kinds, strict=True)]
    grove = TreeArrays(*parts, torch.zeros(6, 1).double())
    with pytest.raises(ValueError, match=fault):
        grove.summed(torch.zeros(2, INPUTS).double(), torch.ones(2, 1), torch.tensor([0, 0]), 1)


@pytest.mark.parametrize("n", [0, 1, 40])
def test_leaves_need_no_columns(n):
    leaf = np.zeros(1, np.int32), np.zeros(1), np.zeros(1, np.int32), np.full((1, 1), 0.25)
    found = TreeArrays.of([leaf, leaf]).summed(torch.zeros(n, 0).double(), torch.ones(2, 1), torch.tensor([0, 0]), 1)
    assert torch.equal(found, torch.full((1, n, 1), 0.5).double())


def test_weights_and_sums_of_other_trees_are_refused():
    grove, X = random_trees(np.random.default_rng(0), INPUTS, 2, 3), torch.zeros(2, INPUTS).double()
    with pytest.raises(ValueError, match="3 trees of 2 output"):
        grove.summed(X, torch.ones(3, 1), torch.tensor([0, 0, 0]), 1)
    with pytest.raises(ValueError, match="sums from 0 to 1"):
        grove.summed(X, torch.ones(3, 2), torch.tensor([0, 2, 0]), 2)


@pytest.mark.parametrize("leaves", [1, 2, 63, 64, 65, 200, 255, 256, 257, 600])
@pytest.mark.parametrize("side", ["left", "right"])
def test_chains_around_the_length_of_a_mask(leaves, side):
    """The longest trees of so many leaves, cut at 1, 2, 3, ... from one end or the other."""
    left, threshold, node = np.zeros(2 * leaves - 1, np.int32), np.zeros(2 * leaves - 1), 0
    for step in range(leaves - 1):
        left[node], threshold[node] = 2 * step + 1, leaves - step if side == "left" else step + 1
        node = int(left[node]) + (side == "right")
    value = np.arange(2 * leaves - 1.0)[:, None] / 1000
    grove = TreeArrays.of([(np.zeros(2 * leaves - 1, np.int32), threshold, left, value)])
    X = np.arange(0, leaves + 2, 0.5)[:, None]
    X = np.concatenate([X, np.nextafter(X, np.inf), np.nextafter(X, -np.inf), [[np.inf], [-np.inf], [np.nan]]])
    one = torch.ones(1, 1, dtype=torch.float64)
    found = grove.summed(torch.from_numpy(X), one, torch.tensor([0]), 1)
    assert np.array_equal(found, by_hand(grove, X, one.numpy(), [0], 1))
    assert len(np.unique(found)) == leaves


def atoms_of(rng, kind):
    k = 3 if kind in ("trees", "log") else 1
    bound, offset = torch.full((k,), 4.0).double(), torch.from_numpy(rng.normal(size=k))
    if kind == "trees":
        return TreeAtoms(random_trees(rng, INPUTS, 1, 5 * k), bound)
    grove = random_trees(rng, INPUTS, k, 15, torch.float32)
    if kind != "identity":
        grove.value.abs_()
    return ForestAtoms(grove, offset, bound, 5, kind)


KINDS = ["trees", "identity", "logit", "log"]


def by_tensors(grove, X, weights, into, count):
    return grove._summed_by_tensors(X, weights, into.tolist(), count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compiled", [True, False])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), first=st.integers(0, 250), count=st.integers(1, 60), threads=st.integers(1, 4))
def test_a_row_gets_the_same_bits_wherever_it_stands(kind, compiled, seed, first, count, threads):
    rng = np.random.default_rng(seed)
    atoms, X = atoms_of(rng, kind), torch.from_numpy(rows_for(rng, 310))
    weights = torch.from_numpy(rng.random((len(atoms), 1)))
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(TreeArrays, "summed", by_tensors)
        patch.setattr(predictor, "WORTH_A_THREAD", 1)
        with parallel.limited(threads):
            out, mixed = atoms(X), atoms.mix(X, weights)
        some = X[first : first + count].clone()
        assert torch.equal(atoms(some), out[:, first : first + count])
        assert torch.equal(atoms.mix(some, weights), mixed[first : first + count])
    torch.testing.assert_close(mixed, torch.einsum("ak,ank->nk", weights.expand(-1, out.shape[2]), out))
    assert (out.abs() <= atoms.bound).all()


@pytest.mark.parametrize("kind", KINDS)
def test_chosen_joined_and_scaled_atoms_say_what_they_said(kind):
    rng = np.random.default_rng(1)
    atoms, X = atoms_of(rng, kind), torch.from_numpy(rows_for(rng, 40))
    out = atoms(X)
    assert torch.equal(atoms.select(torch.tensor([2, 0]))(X), out[[2, 0]])
    assert torch.equal(type(atoms).cat([atoms, atoms.select(torch.tensor([1]))])(X), torch.cat([out, out[1:2]]))
    assert torch.equal(pickle.loads(pickle.dumps(atoms))(X), out)
    if kind == "trees":
        torch.testing.assert_close(atoms.scaled(0.3)(X), 0.3 * out)


def test_what_kernels_know_of_trees_is_found_out_once(monkeypatch):
    atoms, found = atoms_of(np.random.default_rng(0), "trees"), []
    prepared = tree_arrays.PreparedTrees
    monkeypatch.setattr(tree_arrays, "PreparedTrees", lambda *given_: found.append(1) or prepared(*given_))
    X = torch.zeros(3, INPUTS).double()
    for _ in range(3):
        atoms.mix(X, torch.ones(len(atoms), 1).double())
    assert len(found) == 1
    # buffers that were replaced are looked at again
    atoms.register_buffer("size", atoms.size.clone())
    atoms(X)
    assert len(found) == 2


def test_trees_beside_something_to_differentiate():
    atoms = atoms_of(np.random.default_rng(0), "identity")
    ensemble = ConvexEnsemble([atoms], torch.full((3,), 1 / 3).double(), torch.zeros(3, 2), atoms.offset, atoms.bound)
    X = torch.zeros(2, INPUTS, dtype=torch.float64, requires_grad=True)
    assert torch.equal(ensemble(X), ensemble(X.detach()))


def test_other_weights_are_not_mistaken_for_those_before():
    atoms, X = atoms_of(np.random.default_rng(0), "trees"), torch.from_numpy(rows_for(np.random.default_rng(1), 9))
    ones, halves = torch.ones(len(atoms), 1).double(), torch.full((len(atoms), 1), 0.5).double()
    first = atoms.mix(X, ones)
    assert torch.equal(atoms.mix(X, halves), 0.5 * first)
    assert torch.equal(atoms.mix(X, ones), first)
    assert torch.equal(atoms.scaled(2.0).mix(X, ones), 2 * first)


@pytest.mark.parametrize("trees", [1, 5, 9, 40])
@pytest.mark.parametrize("n", [5, 40, 1100])
def test_more_cuts_than_bytes_can_tell_apart(trees, n):
    """Groups of trees have bytes of their own; what is not a number is beyond no cut."""
    rng = np.random.default_rng(trees)
    grown = []
    for _ in range(trees):
        left = np.zeros(127, np.int32)
        left[:63] = 2 * np.arange(63) + 1
        feature = rng.integers(0, 2, 127).astype(np.int32)
        grown.append((3 * feature, rng.normal(size=127), left, rng.normal(size=(127, 1))))
    grove, X = TreeArrays.of(grown), rng.normal(size=(n, INPUTS))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = np.inf
    one, into = torch.ones(trees, 1, dtype=torch.float64), torch.zeros(trees, dtype=torch.long)
    found = grove.summed(torch.from_numpy(X), one, into, 1)
    assert np.array_equal(found, by_hand(grove, X, one.numpy(), into.tolist(), 1))


@GPU
@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_finds_the_same_leaves(kind):
    rng = np.random.default_rng(0)
    atoms, X = atoms_of(rng, kind), torch.from_numpy(rows_for(rng, 310))
    here = atoms(X)
    there = atoms.to("cuda")(X.to("cuda")).cpu()
    if kind in ("trees", "identity"):
        assert torch.equal(here, there)
    else:
        torch.testing.assert_close(here, there)
