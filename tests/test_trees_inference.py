"""Rows dropped through trees: by a sieve, by walking, by tensor operations, all to the same bits."""

import pickle
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce._utils import parallel
from gce.bases import ForestAtoms, TreeAtoms
from gce.bases.trees import TreeArrays, tree_arrays
from gce.bases.trees.bin_thresholds import ThresholdBins
from gce.frank_wolfe.ensemble import ConvexEnsemble
from helpers import GPU, random_trees

falling = pytest.importorskip("gce.bases.trees.predictor")
INPUTS = 4


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


@pytest.mark.parametrize("leaves", [1, 2, 63, 64, 65, 200])
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
            patch.setattr(tree_arrays, "predictor_kernels", lambda: None)
        patch.setattr(falling, "WORTH_A_THREAD", 1)
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


def test_what_compiled_loops_know_of_trees_is_found_out_once(monkeypatch):
    atoms, found = atoms_of(np.random.default_rng(0), "trees"), []
    sieve = falling.sieve
    monkeypatch.setattr(falling, "sieve", lambda *given_: found.append(1) or sieve(*given_))
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


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_cuts_of_a_level_are_one(depth):
    """Of a tree that cuts all nodes of a level alike."""
    rng = np.random.default_rng(depth)
    nodes = 2 ** (depth + 1) - 1
    level = np.log2(np.arange(1, nodes + 1)).astype(int)
    feature, threshold = rng.integers(0, INPUTS, depth + 1)[level].astype(np.int32), rng.normal(size=depth + 1)[level]
    left = np.where(level < depth, 2 * np.arange(nodes) + 1, 0).astype(np.int32)
    grove = TreeArrays.of([(feature, threshold, left, rng.normal(size=(nodes, 1)))])
    _, coding, (begin, column, code, out, *_) = grove._prepared(falling)
    assert coding[3].sum() == depth
    # each eight leaves meet a cut once, if at all, and four at a time
    for first, last in pairwise(begin[0].tolist()):
        cuts = set(zip(column[first:last][out[first:last] > 0], code[first:last][out[first:last] > 0], strict=True))
        assert len(cuts) == (out[first:last] > 0).sum() <= depth
        assert last - first == -(-len(cuts) // 4) * 4
    X, one = rows_for(rng, 200), torch.ones(1, 1, dtype=torch.float64)
    found = grove.summed(torch.from_numpy(X), one, torch.tensor([0]), 1)
    assert np.array_equal(found, by_hand(grove, X, one.numpy(), [0], 1))


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
    coding = ThresholdBins.of(*(t.numpy() for t in (grove.size, grove.feature, grove.threshold, grove.left)))
    assert set(coding.column) == {0, 3}
    assert coding.number.max() <= 255
    assert (len(coding.group) > 2) == (trees > 5)
    assert coding.group[0] == 0
    assert coding.group[-1] == trees
    one, into = torch.ones(trees, 1, dtype=torch.float64), torch.zeros(trees, dtype=torch.long)
    found = grove.summed(torch.from_numpy(X), one, into, 1)
    assert np.array_equal(found, by_hand(grove, X, one.numpy(), into.tolist(), 1))


PROGRAM = """
import logging, sys
logging.basicConfig(level="WARNING")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise ModuleNotFoundError("no numba here")

if sys.argv[1] == "plain":
    sys.meta_path.insert(0, Absent())
import numpy as np
import gce
from gce.bases import Forest, Tree
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
given = {"cv": 2, "random_state": 0, "max_atoms": 3}
for basis in (Tree(max_leaf_nodes=4, min_samples_leaf=4), Forest(n_estimators=2, min_samples_leaf=3)):
    model = gce.GCERegressor(basis=basis, **given).fit(X, X[:, 0] * X[:, 1])
    trees = model.ensemble_.parts[-1].trees
    print(trees.size.tolist(), trees.feature.tolist(), trees.left.tolist(), trees.threshold.tolist())
    print(np.round(model.predict(X), 9).tolist())
"""


def test_without_numba_the_same_trees_grow_slowly():
    done = [
        subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
        for how in ("compiled", "plain")
    ]
    assert done[0].stdout == done[1].stdout
    assert "gce.bases.trees.predictor cannot be compiled (no numba here): tensor operations stand in" in done[1].stderr
    assert "gce.bases.trees.grower cannot be compiled (no numba here): it runs as plain Python" in done[1].stderr
    assert done[1].stderr.count("gce.bases.trees.grower cannot") == 1
    assert "RuntimeWarning" not in done[1].stderr


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
