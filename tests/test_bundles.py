"""Bundles of exclusive columns: what they hold, and that trees are the same to the bit as without them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gce
from gce.bases.trees import binned as binned_module
from gce.bases.trees import bundles as bundles_module
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.bundles import bundle_codes
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData
from gce.preprocessing.sparse import SparseRows
from mixed_tables import draw_columns, mixed_rows

seeds = st.integers(0, 10**6)
SHAPES = [Shape(9, 2**31 - 1, symmetric=False), Shape(16, 4, symmetric=True)]


def blocks(columns):
    """Codes ``(n, d)`` in blocks of four columns."""
    n, d = columns.shape
    out = np.zeros((-(-d // 4), n, 4), np.uint8)
    for c in range(d):
        out[c // 4, :, c % 4] = columns[:, c]
    return out


def draw_codes(rng, n, flags=12, groups=3):
    """Codes of numbers, of flags of which a row has at most one of each group, and of rare bins of any column."""
    numbers = rng.integers(0, 5, (n, 3))
    level = rng.integers(0, flags, (n, groups))
    away = (level[:, :, None] == np.arange(flags)).reshape(n, -1)
    # what flags are away to, from a most frequent bin that is the first, the last or between the others
    usual = rng.integers(0, 3, away.shape[1])
    other = (usual + rng.integers(1, 3, away.shape)) % 3
    rare = np.where(rng.random((n, 4)) < 0.05, rng.integers(0, 4, (n, 4)), 2)
    every = np.concatenate([numbers, np.where(away, other, usual), rare], axis=1)
    every = every[:, rng.permutation(every.shape[1])].astype(np.uint8)
    # bins that no row has are there, too
    return every, every.max(0).astype(np.int64) + 1 + rng.integers(0, 2, every.shape[1])


def check_bundles(codes, widths, stored, bundles):
    """Brute force: no row has two columns of a bundle away from their most frequent bins, and codes can be read."""
    assert bundles.widths.max() <= 256
    assert stored.shape[0] == -(-len(bundles.widths) // 4)
    for s in range(len(bundles.widths)):
        members = np.flatnonzero(bundles.store == s)
        if (bundles.common[members] < 0).any():
            assert len(members) == 1
            continue
        assert len(members) > 1
        assert ((codes[:, members] != bundles.common[members]).sum(1) <= 1).all()
        taken = np.concatenate([bundles.offset[c] + np.arange(widths[c] - 1) for c in members])
        assert np.array_equal(np.sort(taken), np.arange(1, bundles.widths[s]))
    assert np.array_equal(bundles.unfold(stored, widths), blocks(codes))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n=st.integers(1, 120), flags=st.integers(1, 60), groups=st.integers(1, 5))
def test_bundled_columns_are_exclusive_and_codes_can_be_read(seed, n, flags, groups):
    codes, widths = draw_codes(np.random.default_rng(seed), n, flags, groups)
    stored, bundles = bundle_codes(blocks(codes), widths)
    if bundles is None:
        assert np.array_equal(stored, blocks(codes))
    else:
        check_bundles(codes, widths, stored, bundles)


def test_the_flags_of_each_category_make_one_bundle():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 40, (2000, 5))
    flags = (level[:, :, None] == np.arange(40)).reshape(2000, 200)
    X = torch.from_numpy(np.concatenate([rng.normal(size=(2000, 10)), flags], axis=1))
    binned = BinnedRows.of(X, 256)
    assert binned.bundles is not None
    assert binned.stored.shape == (4, 2000, 4)
    assert len(binned.bundles.widths) == 10 + 5
    assert binned.codes.shape == (53, 2000, 4)
    assert np.array_equal(binned.codes[10 // 4 :, :, :].transpose(0, 2, 1).reshape(-1, 2000)[2:202].T, flags)


def test_numbers_are_not_looked_at(monkeypatch):
    def refuse():
        raise AssertionError("there is nothing to be bundled")

    monkeypatch.setattr(bundles_module, "_kernels", refuse)
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 6)))
    assert BinnedRows.of(X, 256).bundles is None


def both(codes, widths, stored, bundles, draw, **given):
    """The trees of two members of two outputs, without and with bundles."""
    rng = np.random.default_rng(draw)
    n, rows = int(rng.integers(1, codes.shape[1] + 1)), codes.shape[1]
    D, H = rng.normal(size=(2, n, 2)), rng.uniform(0.1, 1, (2, n, 2))
    # rows of weight 0 are not learned from
    unused = rng.random((2, n)) < 0.2
    unused[:, 0] = False
    D[unused], H[unused] = 0, 0
    d, unit = len(widths), np.full(2, 1 / n)
    names = rng.integers(0, 2**63, rows).astype(np.uint64)
    sampling = Sampling(
        rng.integers(0, 2**63, 2).astype(np.uint64), names, float(rng.choice([0.6, 1.0])), int(rng.integers(1, d + 1))
    )
    signs = rng.choice([-1, 0, 1], d) if rng.random() < 0.5 else None
    groups = rng.integers(1, 8, (d, 1)).astype(np.uint64) if rng.random() < 0.5 else None
    common = D, H, rng.choice([0.0, 1.0, 4.0]) * unit, rng.choice([0.0, 1.0]) * unit
    shape = SHAPES[int(rng.integers(2))]
    for own, some in ((codes, None), (stored, bundles)):
        data = TreeData(own, widths, *common, given.get("kinds"), unit, some)
        yield GrownTrees(data, shape, sampling, Constraints(signs, groups), Scratch())


def check_equal(one, two):
    assert np.array_equal(one.size, two.size)
    assert all(np.array_equal(a, b) for a, b in zip(one.nodes(), two.nodes(), strict=True))
    assert np.array_equal(one.leaf, two.leaf)
    bound = np.array([1.0, 2.0])
    for a, b in zip(one.scale(bound, free=True), two.scale(bound, free=True), strict=True):
        assert np.array_equal(a, b)


@settings(max_examples=80, deadline=None)
@given(seed=seeds, n=st.integers(20, 150))
def test_trees_are_the_same_to_the_bit(seed, n):
    codes, widths = draw_codes(np.random.default_rng(seed), n)
    stored, bundles = bundle_codes(blocks(codes), widths)
    if bundles is not None:
        check_equal(*both(blocks(codes), widths, stored, bundles, seed))


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(30, 120))
def test_missing_values_and_categories_beside_flags_change_nothing(seed, n):
    rng = np.random.default_rng(seed)
    kinds = [False, True, False, True, True]
    some = draw_columns(rng, n, kinds)
    # columns with a most frequent value: of numbers, of missing ones and of categories
    some[:, 2:4][rng.random((n, 2)) < 0.9] = [np.nan, 1.0][int(rng.integers(2))]
    some[:, 4][rng.random(n) < 0.95] = 2.0
    level = rng.integers(0, 15, n)
    flags = (level[:, None] == np.arange(15)).astype(float)
    flags[rng.random(flags.shape) < 0.01] = np.nan
    binned = BinnedRows.of(mixed_rows(np.concatenate([some, flags], axis=1), kinds + [False] * 15), 256)
    assert binned.bundles is not None
    check_bundles(
        binned.codes.transpose(0, 2, 1).reshape(-1, n)[:20].T,
        *(binned.bins.widths, binned.stored_codes, binned.bundles),
    )
    check_equal(
        *both(binned.codes, binned.bins.widths, binned.stored_codes, binned.bundles, seed, kinds=binned.bins.kinds)
    )


def draw_words(rng, n, d):
    """Counts of words, few in each row but of some columns, as a sparse matrix with explicit zeros."""
    share = rng.choice([0.02, 0.05, 0.5], d, p=[0.6, 0.3, 0.1])
    X = np.where(rng.random((n, d)) < share, rng.integers(0, 4, (n, d)), 0)
    kept = (X > 0) | (rng.random((n, d)) < 0.01)
    rows, columns = np.nonzero(kept)
    return csr_array((X[kept].astype(float), (rows, columns)), shape=(n, d))


@settings(max_examples=40, deadline=None)
@given(seed=seeds, n=st.integers(20, 120), d=st.integers(1, 60), bins=st.sampled_from([2, 3, 256]))
def test_sparse_rows_have_the_codes_and_trees_of_dense_ones(seed, n, d, bins):
    rng = np.random.default_rng(seed)
    centre = torch.from_numpy(rng.normal(size=d)) * float(rng.integers(0, 2))
    rows = SparseRows(SparseRows.from_matrix(draw_words(rng, n, d)).matrix, centre)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles_module, "MOST_BINS", 0)
        plain = BinnedRows.of(torch.from_numpy(rows.toarray()), bins)
    assert plain.bundles is None
    sparse = BinnedRows.of(rows, bins)
    assert all(np.array_equal(a, b) for a, b in zip(sparse.bins.edges, plain.bins.edges, strict=True))
    assert np.array_equal(sparse.codes, plain.codes)
    check_equal(*both(plain.codes, plain.bins.widths, sparse.stored_codes, sparse.bundles, seed))


@pytest.mark.parametrize("basis", ["tree", "symmetric", "forest", gce.bases.SignTree()], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_fits_are_the_same_to_the_bit(basis, sparse, monkeypatch):
    rng = np.random.default_rng(1)
    level = rng.integers(0, 8, (300, 2))
    X = (level[:, :, None] == np.arange(8)).reshape(300, 16) * rng.integers(1, 3, (300, 1)).astype(float)
    y = level[:, 0] % 3 + (level[:, 1] > 4) + 0.1 * rng.normal(size=300)
    monkeypatch.setattr("gce.preprocessing.sparse.DENSE_TRAINING_LIMIT", 0)
    true, seen, found = BinnedRows.of, [], []
    monkeypatch.setattr(BinnedRows, "of", lambda *given: seen.append(true(*given)) or seen[-1])
    for most in (128, 0):
        monkeypatch.setattr(bundles_module, "MOST_BINS", most)
        model = gce.GCERegressor(basis=basis, max_atoms=6, cv=2, random_state=0)
        found.append(model.fit(csr_array(X) if sparse else X, y).predict(X))
        assert (seen[-1].bundles is not None) == (most > 0)
        assert isinstance(seen[-1].X, SparseRows) == sparse
    assert np.array_equal(*found)


def test_the_limit_of_sparse_rows_counts_bundles(monkeypatch):
    words = SparseRows.from_matrix(np.repeat(np.eye(40), 3, axis=0))
    monkeypatch.setattr(binned_module, "BINNED_BYTES", 120 * 10)
    binned = BinnedRows.of(words, 256)
    assert len(binned.bundles.widths) == 1
    with pytest.raises(ValueError, match=r"120 rows of 40 columns would take .* use basis='neural'"):
        _ = binned.codes
