"""Trees for all outputs, with a vector in each leaf: by brute force, and as trees of one output where they agree."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gce
from gce.bases import FitContext, SymmetricTree, Tree, TreeAtoms
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.growth import tree_grower
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
CLASSES = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 0.5)
BASES = {
    "tree": Tree(max_leaf_nodes=6, min_samples_leaf=3, outputs_per_tree="all"),
    "symmetric": SymmetricTree(max_depth=3, outputs_per_tree="all"),
}
SMALL = {"max_atoms": 8, "cv": 2, "random_state": 0}


def grow(codes, D, H, shape, *, least=0.0, l2=0.0, columns=None, groups=None, subsample=1.0):
    """Trees of one member; codes ``(n, d)``, gradients and Hessians ``(n, k)``, ``least`` and ``l2`` in rows."""
    n, d = codes.shape
    blocks = np.zeros((-(-d // 4), n, 4), np.uint8)
    for c in range(d):
        blocks[c // 4, :, c % 4] = codes[:, c]
    widths = codes.max(0).astype(np.int64) + 1
    data = TreeData(blocks, widths, D[None].copy(), H[None].copy(), np.full(1, least / n), np.full(1, l2 / n))
    names = np.arange(n).astype(np.uint64)
    sampling = Sampling(np.full(1, 7, np.uint64), names, subsample, d if columns is None else columns)
    return GrownTrees(data, shape, sampling, Constraints(None, groups), Scratch())


def reduction(D, H, rows, l2):
    return float((D[rows].sum(0) ** 2 / (H[rows].sum(0) + l2)).sum())


def gain_of(codes, D, H, rows, split, least, l2):
    """What a split gains in a node; None where it leaves too little in a leaf."""
    column, cut = split
    sides = rows[codes[rows, column] <= cut], rows[codes[rows, column] > cut]
    if min(H[side].sum() for side in sides) < least * H.sum() / len(H) * (1 - 1e-9) or not min(map(len, sides)):
        return None
    return sum(reduction(D, H, side, l2) for side in sides) - reduction(D, H, rows, l2)


def best_split(codes, D, H, nodes, least, l2):
    """The split with the largest sum of gains over nodes, the first of equals."""
    best = (0.0, None)
    for column in range(codes.shape[1]):
        for cut in range(int(codes[:, column].max())):
            found = [gain_of(codes, D, H, rows, (column, cut), least, l2) for rows in nodes]
            gain = sum(own for own in found if own is not None)
            if gain > best[0] * (1 + 1e-6):
                best = gain, (column, cut)
    return best


def parts(codes, rows, split):
    left = codes[rows, split[0]] <= split[1]
    return [rows[left], rows[~left]]


def by_brute_force(codes, D, H, shape, least, l2):
    """The rows of each leaf."""
    nodes = [np.arange(len(codes))]
    if shape.symmetric:
        for _ in range(shape.max_depth):
            _, split = best_split(codes, D, H, nodes, least, l2)
            if split is None:
                break
            nodes = [part for rows in nodes for part in parts(codes, rows, split)]
        return nodes
    while len(nodes) < shape.max_leaf_nodes:
        found = [best_split(codes, D, H, [rows], least, l2) for rows in nodes]
        at = int(np.argmax([gain for gain, _ in found]))
        if found[at][1] is None:
            break
        nodes[at : at + 1] = parts(codes, nodes[at], found[at][1])
    return nodes


@pytest.mark.parametrize("symmetric", [False, True])
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), k=st.sampled_from([2, 3, 9]), least=st.integers(1, 3), l2=st.sampled_from([0.5, 2.0])
)
def test_growth_equals_brute_force(symmetric, seed, k, least, l2):
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=(16, 5))
    D, H = rng.normal(size=(16, k)), rng.uniform(0.5, 2, (16, k))
    shape = Shape(5, 2 if symmetric else 64, symmetric, vector_leaves=True)
    grown = grow(codes, D, H, shape, least=least, l2=l2)
    leaf, value = grown.leaf[0, 0], grown.nodes()[3]
    extra = l2 * H.mean(0)
    wanted = [rows for rows in by_brute_force(codes, D, H, shape, least, extra) if len(rows)]
    assert {tuple(rows) for rows in wanted} == {tuple(np.flatnonzero(leaf == own)) for own in np.unique(leaf)}
    for rows in wanted:
        # a leaf of a symmetric tree with too few rows is clipped to the range of the others
        if H[rows].sum() >= least * H.sum() / 16:
            expected = -D[rows].sum(0) / (H[rows].sum(0) + extra)
            np.testing.assert_allclose(value[leaf[rows[0]]], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("copies", [False, True])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.sampled_from([1, 5, 60, 400]))
def test_one_output_beside_nothing_or_itself_has_the_tree_of_one_output(symmetric, copies, seed, n):
    """To the bit: what another output adds to every gain is 0, or as much again."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(6, size=(n, 7))
    D, H = rng.normal(size=(n, 1)), rng.uniform(0.1, 2, (n, 1))
    groups = rng.integers(1, 8, (7, 1)).astype(np.uint64)
    asked = {"least": 2, "l2": 1.0, "columns": 5, "groups": groups, "subsample": 0.8}
    shape = (8, 3 if symmetric else 64, symmetric)
    one = grow(codes, D, H, Shape(*shape), **asked)
    both = [np.hstack([some, some if copies else 0 * some]) for some in (D, H)]
    two = grow(codes, *both, Shape(*shape, vector_leaves=True), **asked)
    np.testing.assert_array_equal(one.leaf, two.leaf)
    for mine, theirs in zip(one.nodes()[:3], two.nodes()[:3], strict=True):
        np.testing.assert_array_equal(mine, theirs)
    value = two.nodes()[3]
    np.testing.assert_array_equal(value[:, :1], one.nodes()[3])
    np.testing.assert_array_equal(value[:, 1:], one.nodes()[3] if copies else 0 * value[:, 1:])


@pytest.mark.parametrize("name", BASES)
def test_fits_have_one_tree_per_atom_and_survive_files_and_edits(name, tmp_path):
    model = gce.GCEClassifier(basis=BASES[name], **SMALL).fit(X, CLASSES)
    (atoms,) = (part for part in model.ensemble_.parts if isinstance(part, TreeAtoms))
    assert atoms.trees.outputs == 3
    assert len(atoms.trees) == len(atoms)
    p = model.predict_proba(X)
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_allclose(last, p, atol=1e-9)
    model.save(tmp_path / "model")
    assert np.array_equal(gce.load(tmp_path / "model").predict_proba(X), p)
    rows = torch.from_numpy(X)
    with torch.no_grad():
        weights = torch.rand(len(atoms), 1, dtype=torch.float64)
        mixed = (weights[:, None] * atoms(rows)).sum(0)
        torch.testing.assert_close(atoms.mix(rows, weights), mixed)
        some = torch.tensor([2, 0])
        assert torch.equal(atoms.select(some)(rows), atoms(rows)[some])


def test_a_table_with_gaps_has_a_tree_for_every_output():
    rows = X.copy()
    rows[::7, 1] = np.nan
    fits = [
        gce.GCEClassifier(basis=Tree(5, min_samples_leaf=3, outputs_per_tree=each), **SMALL).fit(rows, CLASSES)
        for each in ("one", "all")
    ]
    assert np.array_equal(*(model.predict_proba(rows) for model in fits))


def test_monotone_targets_need_trees_of_their_own():
    model = gce.GCERegressor(basis=BASES["tree"], monotonic_cst=[1, 0, 0, 0], **SMALL)
    with pytest.raises(ValueError, match="monotonic_cst with 2 targets needs trees of their own"):
        model.fit(X, X[:, :2])
    model.fit(X, X[:, 0])


def test_a_device_grows_them_on_the_processor_and_says_so():
    binned = BinnedRows.of(torch.zeros(3, 1, dtype=torch.float64), 4)
    elsewhere = BinnedRows(binned.X, binned.bins, binned.tensor.to("meta"))
    with pytest.warns(UserWarning, match="grown on the processor, not on meta: it has no kernels for outputs_per_tree"):
        tree_grower(elsewhere, FitContext(), Shape(6, 3, symmetric=False, vector_leaves=True))
