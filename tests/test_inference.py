"""Prediction: the same bits for a row whoever stands beside it, and no more memory than is told."""

import numpy as np
import pytest
import torch

from gce import GCEClassifier, GCERegressor, Neural, memory, native
from gce.basis import Networks
from gce.basis.network import TwoLayer
from gce.ensemble import ConvexEnsemble
from helpers import oracle_problem

FORMS = [TwoLayer(5, "relu", "hardtanh"), TwoLayer(3, "tanh", "tanh"), TwoLayer(60, "relu", "hardtanh")]
NEEDS_LOOPS = pytest.mark.skipif(native.loops() is None, reason="needs numba")


def atoms(architecture, dtype, models):
    """Seven random atoms of three outputs."""
    _, _, start = oracle_problem(architecture, 10, 4, 3 // models, members=7 * models, dtype=dtype)
    return Networks(architecture, start, torch.tensor([1.0, 2.0, 0.3], dtype=torch.float64), models)


@NEEDS_LOOPS
@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", FORMS, ids=lambda a: f"{a.hidden}-{a.activation}")
def test_loops_and_tensors_evaluate_the_same(architecture, dtype, models, monkeypatch):
    nets = atoms(architecture, dtype, models)
    X = torch.randn(250, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    looped, mixed = nets(X), nets.mix(X, weights)
    monkeypatch.setattr(native, "loops", lambda: None)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    assert looped.dtype == dtype
    torch.testing.assert_close(looped, nets(X), **tolerance)
    torch.testing.assert_close(mixed, nets.mix(X, weights), **tolerance)
    torch.testing.assert_close(mixed, torch.einsum("ak,ank->nk", weights, looped.double()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", FORMS, ids=lambda a: f"{a.hidden}-{a.activation}")
def test_a_row_gets_the_same_bits_wherever_it_stands(architecture, dtype, compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(native, "loops", lambda: None)
    nets = atoms(architecture, dtype, 1)
    weights = torch.full((7,), 1 / 7, dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    ensemble = ConvexEnsemble([nets], weights, torch.zeros(7, 2), zero, nets.bound)
    row = torch.randn(1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alone = ensemble(row)
    crowd = torch.randn(2_100, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for place in [*range(121), 1_023, 1_024, 2_099]:
        crowd[place] = row
    among = ensemble(crowd)
    for place in [*range(121), 1_023, 1_024, 2_099]:
        assert torch.equal(among[place], alone[0]), place


def test_estimators_predict_the_same_in_blocks(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = GCERegressor(max_atoms=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    whole = model.predict(X)
    monkeypatch.setattr("gce.base._ROWS_AT_ONCE", 77)
    assert np.array_equal(model.predict(X), whole)
    assert np.array_equal(model.set_params(n_jobs=2).predict(X), whole)
    assert np.array_equal([model.predict(X[i : i + 1])[0] for i in (0, 119, 120, 499)], whole[[0, 119, 120, 499]])


def test_a_fit_that_cannot_fit_says_so(monkeypatch):
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda device: 2**12)
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.raises(MemoryError, match=r"needs about .* GiB of memory \(300 rows, 2 columns, 5 member"):
        GCERegressor(max_atoms=2).fit(X, X[:, 0])


def test_with_little_memory_atoms_are_evaluated_again(monkeypatch, caplog):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    model = GCEClassifier(max_atoms=6, random_state=0, cv=2)
    plenty = model.fit(X, y).predict_proba(X)
    need = 8 * 300 * (2 * 2 + 3 + 2 * 2 + memory._WORKING * 2 * 3)
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda device: need + 1000)
    little = model.fit(X, y).predict_proba(X)
    assert "free for cached outputs" in caplog.text
    np.testing.assert_allclose(little, plenty, atol=1e-6)


def test_memory_is_read_where_the_system_tells_it():
    free = memory.available(torch.device("cpu"))
    assert free is None or 0 < free < 2**50


def test_features_pass_from_atom_to_atom_and_survive_a_pause():
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] * X[:, 1]
    basis = Neural(hidden=5, max_epochs=4, inherit=0.9, batch_size=64)
    settings = {"cv": 2, "n_iter_no_change": None, "tol": 0, "random_state": 0}
    whole = GCERegressor(basis=basis, max_atoms=6, **settings).fit(X, y)
    paused = GCERegressor(basis=basis, max_atoms=4, warm_start=True, **settings).fit(X, y)
    paused.set_params(max_atoms=6).fit(X, y)
    assert np.array_equal(whole.predict(X), paused.predict(X))
    fresh = GCERegressor(basis=Neural(hidden=5, max_epochs=4, inherit=0.0, batch_size=64), max_atoms=6, **settings)
    assert not np.array_equal(whole.predict(X), fresh.fit(X, y).predict(X))


def test_inherited_features_are_the_last_atoms():
    fresh = [torch.full(shape, 1.0) for shape in ((2, 5, 3), (2, 5, 1), (2, 1, 5), (2, 1, 1))]
    last = [torch.full(p.shape, 2.0) for p in fresh]
    kept = Neural(inherit=1.0).start(fresh, last, rows=10)
    assert all(torch.equal(a, b) for a, b in zip(kept, [*last[:2], *fresh[2:]], strict=True))
    small, large = (Neural().start(fresh, last, rows=n) for n in (4096, 4097))
    assert torch.equal(small[0], fresh[0])
    assert torch.allclose(large[0], torch.tensor(0.95 * 2 + np.sqrt(1 - 0.95**2), dtype=torch.float32))
    with pytest.raises(ValueError, match=r"inherit must be in \[0, 1\]"):
        Neural(inherit=2.0).start(fresh, last, rows=10)
