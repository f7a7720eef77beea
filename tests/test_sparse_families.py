"""Sparse rows for every family: the model of the same numbers written out, some of them at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import gce
from gce.preprocessing.scaling import Standardizer, share_a_unit
from gce.preprocessing.sparse import SparseRows
from gce.training.families import choose_bases
from helpers import random_sparse

FAST = {"max_atoms": 6, "cv": 2, "random_state": 0, "verbose": False}


def table(n=120, d=30, seed=0):
    """Sparse rows and a target that bends with a column."""
    rng = np.random.default_rng(seed)
    X = random_sparse(rng, (n, d), density=0.2, format="csr")
    first, second = X[:, [0, 1]].toarray().T
    return X, 2 * first - np.abs(second) + 0.1 * rng.normal(size=n)


def documents(n=300, words=1500, seed=0):
    """Frequencies of words in documents of four kinds that share most of their words, rows of length 1."""
    rng = np.random.default_rng(seed)
    usual = 1 / np.arange(1, words + 1)
    own = usual * np.exp(rng.normal(size=(4, words)))
    y, length = np.arange(n) % 4, rng.lognormal(4, 1, n).astype(int) + 5
    counts = np.stack([rng.multinomial(k, own[c] / own[c].sum()) for k, c in zip(length, y, strict=True)])
    counts = counts[:, (counts > 0).sum(0) >= 2] * 1.0
    rare = counts * np.log(n / (counts > 0).sum(0))
    return sp.csr_array(rare / np.linalg.norm(rare, axis=1, keepdims=True)), y


@pytest.fixture(autouse=True)
def _nothing_is_written_out(monkeypatch):
    """Small tables are trained on as sparse rows too."""
    monkeypatch.setattr("gce.preprocessing.sparse.DENSE_TRAINING_LIMIT", 0)


@pytest.fixture
def written(monkeypatch):
    """How many numbers were written out, time by time."""
    sizes, plain = [], SparseRows.toarray

    def noted(self):
        sizes.append(self.shape[0] * self.shape[1])
        return plain(self)

    monkeypatch.setattr(SparseRows, "toarray", noted)
    return sizes


def at_once(monkeypatch, numbers):
    for place in ("gce.preprocessing.sparse.DENSE_BLOCK_SIZE", "gce.training.scores.DENSE_BLOCK_SIZE"):
        monkeypatch.setattr(place, numbers)


def test_a_default_fit_of_sparse_rows_is_that_of_dense_ones():
    X, y = table()
    sparse, dense = gce.GCERegressor(**FAST).fit(X, y), gce.GCERegressor(**FAST).fit(X.toarray(), y)
    assert [family.name for family in sparse.result_.families] == ["tree", "symmetric", "forest", "neural"]
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "basis", [gce.bases.Tree(max_leaf_nodes=4, min_samples_leaf=1), "symmetric", "forest"], ids=str
)
def test_trees_take_sparse_rows_and_classes(basis):
    X, y = table()
    y = np.digitize(y, np.quantile(y, [0.3, 0.7]))
    sparse, dense = (
        gce.GCEClassifier(basis=basis, **FAST | {"cv": None}).fit(rows, y, X_val=rows, y_val=y)
        for rows in (X, X.toarray())
    )
    np.testing.assert_allclose(sparse.predict_proba(X), dense.predict_proba(X.toarray()), rtol=1e-8, atol=1e-8)
    assert np.ptp(sparse.predict_proba(X), axis=0).max() > 0.01


def coded(X):
    return gce.bases.Tree(max_bins=8).binned(X, gce.bases.FitContext())


def test_codes_are_those_of_the_same_numbers_written_out(monkeypatch):
    X, _ = table()
    rows = SparseRows(SparseRows.from_matrix(X).matrix, torch.linspace(-1, 1, X.shape[1], dtype=torch.float64))
    dense = coded(torch.from_numpy(rows.toarray()))
    at_once(monkeypatch, 100)
    sparse = coded(rows)
    assert np.array_equal(sparse.codes, dense.codes)
    assert np.array_equal(sparse.names, dense.names)
    assert np.array_equal(sparse.bins.widths, dense.bins.widths)


def test_beyond_a_size_networks_serve_alone_and_trees_are_refused_by_name(monkeypatch):
    X, y = table()
    monkeypatch.setattr("gce.training.families.SPARSE_FOR_TREES", X.shape[0] * X.shape[1] - 1)
    alone = gce.GCERegressor(**FAST).fit(X, y)
    assert len(alone.result_.families) == 1
    assert alone.bound_report(X.toarray(), y, draws=1).total > 0
    monkeypatch.setattr("gce.bases.trees.binned.BINNED_BYTES", X.shape[0] * X.shape[1] - 1)
    with pytest.raises(ValueError, match=r"120 rows of 30 columns would take .* use basis='neural'"):
        gce.GCERegressor(basis="tree", **FAST).fit(X, y)


@pytest.mark.parametrize("basis", [gce.bases.Tree(max_leaf_nodes=4, min_samples_leaf=1), "forest"], ids=str)
def test_predictions_write_out_some_rows_at_a_time(basis, monkeypatch, written):
    X, y = table()
    model = gce.GCERegressor(basis=basis, **FAST).fit(X, y)
    whole = model.predict(X)
    *_, last = model.staged_predict(X)
    written.clear()
    at_once(monkeypatch, 7 * X.shape[1] + 3)
    assert np.array_equal(model.predict(X), whole)
    *_, again = model.staged_predict(X)
    assert np.array_equal(again, last)
    assert max(written) == 7 * X.shape[1]
    assert sum(written) >= 2 * X.shape[0] * X.shape[1]


def test_rows_with_flags_are_written_out_some_at_a_time(monkeypatch, written):
    X, y = table()
    gaps = X.toarray()
    gaps[:3, 0] = np.nan
    model = gce.GCERegressor(basis=gce.bases.Neural(hidden=3, max_epochs=5), **FAST).fit(gaps, y)
    expected = model.predict(X.toarray())
    at_once(monkeypatch, 7 * X.shape[1] + 3)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    assert max(written) == 7 * X.shape[1]


# Text.


def uneven():
    """Words whose ranges differ by more than those of columns in one unit otherwise may."""
    X, _ = documents()
    X = sp.csr_array(X.multiply(np.random.default_rng(1).lognormal(0, 0.6, X.shape[1])))
    ranges = np.ptp(X.toarray(), axis=0)
    assert not share_a_unit(ranges)
    return X, np.ones(X.shape[0])


def test_words_are_divided_by_one_number():
    X, weight = uneven()
    sparse, common = (Standardizer.fit(SparseRows.from_matrix(X), weight, 4.0, scale) for scale in ("auto", "common"))
    dense = Standardizer.fit(X.toarray(), weight, 4.0, "auto")
    assert np.array_equal(sparse.scale, common.scale)
    np.testing.assert_allclose(dense.scale, common.scale, rtol=1e-12)


def test_numbers_of_another_unit_among_words_keep_their_own_scale():
    X, weight = uneven()
    years = 2000.0 + np.arange(X.shape[0])[:, None] % 50
    both = sp.csr_array(sp.hstack([X, years]))
    for rows in (SparseRows.from_matrix(both), both.toarray()):
        scaling = Standardizer.fit(rows, weight, 4.0, "auto")
        assert scaling.scale[-1] > 5
        assert scaling.scale[:-1].max() < 1


def test_networks_are_trained_for_less_time_where_columns_outnumber_rows():
    for trees in (True, False):
        assert choose_bases("auto", 100, 101, trees=trees)["neural"].epochs(100) == 10
        assert choose_bases("auto", 100, 100, trees=trees)["neural"].epochs(100) == 40
