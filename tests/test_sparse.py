"""Sparse rows: the model of the same numbers written out, without ever writing them out."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

import gce
from gce.bases import Neural, Neuron, Pool
from gce.preprocessing.row_hashes import hash_row_set
from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.sparse import SparseRows, append_ones, matmul_into, matmul_transposed, stack_rows, to_device
from helpers import random_sparse

NET = {"hidden": 4, "max_epochs": 30}
GREEDY = {"max_atoms": 3, "cv": 2, "random_state": 0}
AT_ONCE = {"max_epochs": 10, "cv": 2, "random_state": 0}
FORMATS = [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.lil_matrix, sp.dok_array]


def table(n=90, d=12, seed=0):
    """Sparse rows, one column constant and one empty, and a target."""
    rng = np.random.default_rng(seed)
    X = random_sparse(rng, (n, d), density=0.3, format="lil")
    X[:, 3], X[:, 4] = 2.0, 0.0
    X = sp.csr_array(X)
    return X, 2 * X[:, [0]].sum(1) - X[:, [1]].sum(1) + np.sin(X.sum(1)) + 0.1 * rng.normal(size=n)


def labels(y, k=2):
    return np.digitize(y, np.quantile(y, np.arange(1, k) / k))


MODELS = {
    "neural": gce.GCERegressor(basis=Neural(**NET), **GREEDY),
    "inherited": gce.GCERegressor(basis=Neural(**NET, inherit=0.5, restarts=2), **GREEDY),
    "nonlinear": gce.GCERegressor(algorithm="nonlinear", basis=Neural(**NET, activation="tanh"), **GREEDY),
    "neuron": gce.GCERegressor(basis=Neuron(max_epochs=30), **GREEDY),
    "each": gce.GCERegressor(basis=Neural(**NET), scale="each", **GREEDY),
    "common": gce.GCERegressor(basis=Neural(**NET), scale="common", clip=None, **GREEDY),
    "monotone": gce.GCERegressor(basis=Neural(**NET), monotonic_cst=[1, -1] + [0] * 10, **GREEDY),
    "classes": gce.GCEClassifier(basis=Neural(**NET), **GREEDY),
    "separate": gce.GCEClassifier(basis=Neural(**NET, shared=False), **GREEDY),
    "nongreedy": gce.NGCERegressor(n_atoms=4, hidden=3, **AT_ONCE),
    "nongreedy classes": gce.NGCEClassifier(n_atoms=4, hidden=3, **AT_ONCE),
    "network": gce.NNRegressor(hidden=10, **AT_ONCE),
    "network classes": gce.NNClassifier(hidden=10, **AT_ONCE),
}


@pytest.fixture(autouse=True)
def _nothing_is_written_out(monkeypatch):
    """Small tables are trained on as sparse rows too."""
    monkeypatch.setattr("gce.preprocessing.sparse.DENSE_TRAINING_LIMIT", 0)


@pytest.fixture
def trained_on(monkeypatch):
    """The kinds of rows that slopes were taken from."""
    kinds = set()

    def noted(back, X, into):
        kinds.add(type(X))
        matmul_into(back, X, into)

    monkeypatch.setattr("gce.bases.neural.network.matmul_into", noted)
    return kinds


def scores(model, X):
    return model.predict(X) if not hasattr(model, "classes_") else model.predict_proba(X)


@pytest.mark.parametrize("name", MODELS)
def test_a_sparse_fit_is_the_dense_fit_of_the_same_numbers(name, trained_on):
    X, y = table()
    if "class" in name or name == "separate":
        y = labels(y, 3)
    sparse = clone(MODELS[name]).fit(X, y)
    assert trained_on == {SparseRows}
    dense = clone(MODELS[name]).fit(X.toarray(), y)
    np.testing.assert_allclose(scores(sparse, X), scores(dense, X.toarray()), rtol=1e-8, atol=1e-8)
    assert np.ptp(scores(sparse, X), axis=0).max() > 0.01


@pytest.mark.parametrize("model", [MODELS["neural"], MODELS["nongreedy"]], ids=["greedy", "at once"])
def test_mini_batches_agree_to_single_precision(model):
    X, y = table(300)
    few = {"batch_size": 60, "max_epochs": 3}
    small = {"basis": Neural(hidden=4, **few)} if hasattr(model, "algorithm") else few
    sparse = clone(model).set_params(**small).fit(X, y)
    dense = clone(model).set_params(**small).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), atol=1e-4 * y.std())


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_every_format_is_the_same_table(kind):
    X, y = table()
    model = clone(MODELS["neural"]).fit(X, y)
    expected = model.predict(X)
    assert np.array_equal(model.predict(kind(X)), expected)
    assert np.array_equal(clone(model).fit(kind(X), y).predict(X), expected)


def test_dense_and_sparse_rows_are_both_read_by_either_model():
    X, y = table()
    for fitted_on in (X, X.toarray()):
        model = clone(MODELS["neural"]).fit(fitted_on, y)
        np.testing.assert_allclose(model.predict(X), model.predict(X.toarray()), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["neural", "classes", "nongreedy"])
def test_small_tables_are_written_out_to_be_trained_on(name, monkeypatch, trained_on):
    X, y = table()
    y = labels(y) if name == "classes" else y
    kept = clone(MODELS[name]).fit(X, y)
    trained_on.clear()
    monkeypatch.setattr("gce.preprocessing.sparse.DENSE_TRAINING_LIMIT", X.shape[0] * X.shape[1])
    out = clone(MODELS[name]).fit(X, y)
    assert SparseRows not in trained_on
    np.testing.assert_allclose(scores(out, X), scores(kept, X), rtol=1e-8, atol=1e-8)


def test_what_a_row_gets_does_not_depend_on_its_neighbours():
    X, y = table()
    model = clone(MODELS["neural"]).fit(X, y)
    alone = np.concatenate([model.predict(X[[i]]) for i in range(10)])
    assert np.array_equal(alone, model.predict(X)[:10])


def test_a_sparse_model_is_pickled_staged_and_resumed():
    X, y = table()
    model = clone(MODELS["inherited"]).set_params(warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict(X), model.predict(X))
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X), rtol=0, atol=1e-12)
    whole = clone(MODELS["inherited"]).set_params(max_atoms=5).fit(X, y)
    assert np.array_equal(copy.set_params(max_atoms=5).fit(X, y).predict(X), whole.predict(X))


def test_a_sparse_model_goes_through_files(tmp_path):
    X, y = table()
    model = clone(MODELS["neural"]).fit(X, y, checkpoint=tmp_path / "rounds")
    again = clone(MODELS["neural"]).fit(X, y, checkpoint=tmp_path / "rounds")
    model.save(tmp_path / "m.safetensors")
    loaded = gce.load(tmp_path / "m.safetensors")
    for other in (again, loaded):
        assert np.array_equal(other.predict(X), model.predict(X))
    other = X.copy()
    other.data[0] += 1
    with pytest.raises(ValueError, match="belongs to another fit"):
        clone(model).fit(other, y, checkpoint=tmp_path / "rounds")


def test_validation_rows_may_be_of_either_kind():
    X, y = table()
    model = gce.GCERegressor(basis=Neural(**NET), max_atoms=3, random_state=0)
    fits = [
        clone(model).fit(rows, y, X_val=held_out, y_val=y[:20]).predict(X)
        for rows in (X, X.toarray())
        for held_out in (X[:20], X[:20].toarray())
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.array_equal(fits[2], fits[3])
    np.testing.assert_allclose(fits[0], fits[2], rtol=1e-8, atol=1e-8)


def test_weights_are_repetitions():
    X, y = table()
    count = np.random.default_rng(0).integers(0, 3, len(y))
    train = np.flatnonzero(count)
    split = [(train[::2], train[1::2])]
    weighted = clone(MODELS["neural"]).set_params(cv=split).fit(X, y, count)
    again = np.repeat(np.arange(len(y)), count)
    where = [tuple(np.flatnonzero(np.isin(again, part)) for part in split[0])]
    repeated = clone(MODELS["neural"]).set_params(cv=where).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-8)


def test_a_given_matrix_is_left_as_it_is():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([2, 0, 2]), np.array([0, 3, 3])), shape=(2, 3))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    rows = SparseRows.from_matrix(X)
    assert np.array_equal(rows.matrix.toarray(), [[2, 0, 6], [0, 0, 0]])
    assert rows.matrix.has_canonical_format
    assert all(np.array_equal(a, b) for a, b in zip(before, (X.data, X.indices, X.indptr), strict=True))


# What is refused.


def test_sparse_rows_stay_on_the_cpu():
    with pytest.raises(ValueError, match="sparse rows need device='cpu', got device='meta'"):
        to_device(SparseRows.from_matrix(table(3)[0]), torch.device("meta"))


def test_what_sparse_rows_cannot_do_is_refused():
    X, y = table(30)
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        gce.GCERegressor().fit(bad, y)
    with pytest.raises(ValueError, match="sparse rows can only hold numbers"):
        gce.GCERegressor(categorical_features=[0]).fit(X, y)
    with pytest.raises(ValueError, match="functions of a Pool take dense rows"):
        gce.GCERegressor(basis=Pool([np.sin])).fit(X, y)
    model = clone(MODELS["neural"]).fit(X, y)
    with pytest.raises(ValueError, match="bound report needs dense rows"):
        model.bound_report(X, y)
    report = model.bound_report(X.toarray(), y, random_state=0)
    assert report.total > report.risk
    with pytest.raises(ValueError, match="report looks at dense rows"):
        model.report("report.html", X, y)
    colours = gce.GCERegressor(basis=Neural(**NET), **GREEDY).fit([["a", 1.0], ["b", 2.0]] * 10, np.arange(20.0))
    with pytest.raises(ValueError, match="fitted on categories, which sparse rows cannot hold"):
        colours.predict(X[:, :2])


# The pieces, against dense arithmetic.

numbers = st.sampled_from([0.0, 0.0, 0.0, -0.0, 1.0, -2.5, 1e-3, 7.0])
matrices = arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 5)), elements=numbers)


@given(matrices, st.booleans())
@settings(max_examples=100, deadline=None)
def test_products_are_dense_products(X, centred):
    rng = np.random.default_rng(0)
    centre = torch.from_numpy(rng.normal(size=X.shape[1])) * centred
    rows, dense = SparseRows(SparseRows.from_matrix(sp.coo_array(X)).matrix, centre), torch.from_numpy(X) + centre
    W, back = (torch.from_numpy(rng.normal(size=(3, size))) for size in X.shape[::-1])
    torch.testing.assert_close(matmul_transposed(W, rows), matmul_transposed(W, dense))
    into, other = torch.empty(3, X.shape[1], dtype=torch.float64), torch.empty(3, X.shape[1], dtype=torch.float64)
    matmul_into(back, rows, into)
    matmul_into(back, dense, other)
    torch.testing.assert_close(into, other)
    order = torch.from_numpy(rng.permutation(len(X)))
    for ours, theirs in (
        (append_ones(rows), append_ones(dense)),
        (rows[order], dense[order]),
        (rows[1:3], dense[1:3]),
        (stack_rows(SparseRows.from_matrix(X), X), torch.from_numpy(np.concatenate([X, X]))),
    ):
        assert ours.shape == tuple(theirs.shape)
        assert ours.matrix.has_canonical_format
        assert np.array_equal(ours.toarray(), theirs.numpy())
    assert [len(part) for part in rows.split(2)] == [len(part) for part in dense.split(2)]
    assert rows.to(torch.float32).new_zeros(2).dtype == torch.float32


@given(matrices)
@settings(max_examples=100, deadline=None)
def test_rows_have_one_name_whether_zeros_are_kept_or_not(X):
    kept = sp.csr_array(X)
    explicit = sp.csr_array((X.ravel(), np.tile(np.arange(X.shape[1]), len(X)), np.arange(len(X) + 1) * X.shape[1]))
    assert (
        hash_row_set(SparseRows.from_matrix(kept)) == hash_row_set(SparseRows.from_matrix(explicit)) == hash_row_set(X)
    )


@given(matrices, st.sampled_from(["each", "common", "robust", "auto"]), st.data())
@settings(max_examples=100, deadline=None)
def test_columns_are_scaled_as_dense_columns_are(X, scale, data):
    weight = np.array(data.draw(st.lists(st.floats(0.1, 3), min_size=len(X), max_size=len(X))))
    dense, sparse = (Standardizer.fit(rows, weight, 4.0, scale) for rows in (X, SparseRows.from_matrix(X)))
    np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-9)
    np.testing.assert_allclose(sparse.mean, dense.mean, rtol=1e-9, atol=1e-12)
    scaled = sparse.transform_sparse(SparseRows.from_matrix(X))
    np.testing.assert_allclose(scaled.toarray(), sparse.transform(X), rtol=0, atol=1e-14)
    assert scaled.matrix.nnz <= np.count_nonzero(X)


# Wide data.

WIDE = """
import resource, sys
import numpy as np, scipy.sparse as sp
import gce
rng = np.random.default_rng(0)
n, d, each = 20_000, 50_000, 20
columns = rng.integers(0, d, n * each)
X = sp.csr_array((rng.normal(size=n * each), columns, np.arange(n + 1) * each), shape=(n, d))
y = X @ (rng.normal(size=d) * (np.arange(d) < 100)) + X[:, [0]].sum(1)
model = gce.GCERegressor(basis=gce.bases.Neural(hidden=2, max_epochs=1), max_atoms=2, cv=None, random_state=0).fit(X, y)
assert model.predict(X).shape == (n,)
sys.stdout.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def test_wide_rows_are_never_written_out():
    done = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 2**21  # KiB, half of it for a first compilation: written out the rows take 8 GB
