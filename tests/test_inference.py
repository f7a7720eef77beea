"""Prediction: by loops and by tensors the same, in blocks, on threads, and no more memory than is told."""

import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
import pytest
import torch

from gce import GCEClassifier, GCERegressor
from gce._utils import memory
from gce.bases import Basis, Networks, Neural, Proposal, Zero
from gce.bases.neural.network import TwoLayer
from gce.frank_wolfe import Exact, FrankWolfe
from gce.frank_wolfe.ensemble import ConvexEnsemble
from helpers import PoolProblem, by_tensor_operations, oracle_problem

FORMS = [TwoLayer(5, "relu", "hardtanh"), TwoLayer(3, "tanh", "tanh"), TwoLayer(60, "relu", "hardtanh")]


def atoms(architecture, dtype, models):
    """Seven random atoms of three outputs."""
    _, _, start = oracle_problem(architecture, 10, 4, 3 // models, members=7 * models, dtype=dtype)
    return Networks(architecture, start, torch.tensor([1.0, 2.0, 0.3], dtype=torch.float64), models)


@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", FORMS, ids=lambda a: f"{a.hidden}-{a.activation}")
def test_loops_and_tensors_evaluate_the_same(architecture, dtype, models, monkeypatch):
    nets = atoms(architecture, dtype, models)
    X = torch.randn(250, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    looped, mixed = nets(X), nets.mix(X, weights)
    by_tensor_operations(monkeypatch)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    assert looped.dtype == dtype
    torch.testing.assert_close(looped, nets(X), **tolerance)
    torch.testing.assert_close(mixed, nets.mix(X, weights), **tolerance)
    torch.testing.assert_close(mixed, torch.einsum("ak,ank->nk", weights, looped.double()), rtol=1e-12, atol=1e-12)


def rounding(nets, X, weights):
    """How far rounding may move ``nets.mix(X, weights)`` whatever the order of its sums, ``(n, k)``.

    A sum of ``m`` products is off by at most ``m eps`` of the sum of their sizes; nonlinearities pass on at most what
    they are given, and are off by less than ``4 eps`` themselves. Twice that holds more than terms of second order.
    """
    eps = torch.finfo(nets.parameters_[0].dtype).eps
    W1, b1, W2, b2 = (p.double().abs() for p in nets.parameters_)
    d, h = W1.shape[2], W1.shape[1]
    hidden = torch.einsum("ahd,nd->anh", W1, X.abs()) + b1[:, None, :, 0]
    off = (d + 5 + h + 5) * torch.einsum("akh,anh->ank", W2, hidden) + (h + 5) * b2[:, None, :, 0]
    return 2 * eps * torch.einsum("a,ank->nk", weights, nets.bound * (off + len(nets) + 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("architecture", FORMS, ids=lambda a: f"{a.hidden}-{a.activation}")
def test_by_tensor_operations_a_row_gets_the_same_to_rounding(architecture, dtype, monkeypatch):
    """The bits are promised of compiled loops alone (tests/test_same_bits.py): BLAS rounds as it likes."""
    by_tensor_operations(monkeypatch)
    nets = atoms(architecture, dtype, 1)
    weights = torch.full((7,), 1 / 7, dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    ensemble = ConvexEnsemble([nets], weights, torch.zeros(7, 2), zero, nets.bound)
    row = torch.randn(1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    alone = ensemble(row)
    crowd = torch.randn(2_100, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    places = [*range(121), 1_023, 1_024, 2_099]
    crowd[places] = row
    # each of the two may be off
    assert ((ensemble(crowd)[places] - alone).abs() <= 2 * rounding(nets, row, weights)).all()


def test_estimators_predict_the_same_in_blocks(monkeypatch):
    X = np.random.default_rng(0).normal(size=(500, 3))
    model = GCERegressor(max_atoms=4, random_state=0).fit(X, X[:, 0] * X[:, 1])
    whole = model.predict(X)
    monkeypatch.setattr("gce.training.scores._BLOCK_ROWS", 77)
    assert np.array_equal(model.predict(X), whole)
    assert np.array_equal(model.set_params(n_jobs=2).predict(X), whole)
    assert np.array_equal([model.predict(X[i : i + 1])[0] for i in (0, 119, 120, 499)], whole[[0, 119, 120, 499]])


def test_a_fit_that_cannot_fit_says_so(monkeypatch):
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "available", lambda device: 2**12)
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.raises(MemoryError, match=r"needs about .* GiB of memory beside its data \(300 rows, 10 member"):
        GCERegressor(basis="neural", max_atoms=2).fit(X, X[:, 0])


def test_with_little_memory_atoms_are_evaluated_again(monkeypatch, caplog):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 3, 300)
    model = GCEClassifier(basis="neural", max_atoms=6, random_state=0, cv=2)
    plenty = model.fit(X, y).predict_proba(X)
    need = 8 * 300 * memory._WORKING * 2 * 3
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


def test_atoms_of_another_kind_stand_beside_the_old_ones():
    X = np.random.default_rng(0).normal(size=(80, 2))
    y = X[:, 0] * X[:, 1]
    settings = {"cv": None, "n_iter_no_change": None, "tol": 0, "random_state": 0, "warm_start": True}
    model = GCERegressor(basis=Neural(hidden=4), max_atoms=3, **settings).fit(X, y)
    model.set_params(basis=Neural(hidden=4, activation="tanh", inherit=0.5), max_atoms=6).fit(X, y)
    model.set_params(basis=Neural(hidden=7, inherit=0.5), max_atoms=8).fit(X, y)
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_allclose(model.predict(X), last, rtol=1e-10)
    assert len({part.form for part in model.ensemble_.parts}) >= 3


def test_an_ensemble_can_be_differentiated():
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = GCERegressor(basis="neural", max_atoms=3, random_state=0).fit(X, X[:, 0])
    rows = torch.from_numpy(X[:3]).requires_grad_()
    model.ensemble_(rows).sum().backward()
    assert rows.grad.abs().sum() > 0


def test_a_fitted_model_pickles_without_ballast():
    X = np.random.default_rng(0).normal(size=(80, 20))
    model = GCERegressor(basis=Neural(hidden=50, max_epochs=2), max_atoms=10, cv=None, random_state=0).fit(X, X[:, 0])
    numbers = 2 * 10 * (50 * 20 + 50 + 50 + 1)  # in the ensemble, and in the course of the fit
    assert len(pickle.dumps(model)) < 8 * numbers * 1.5 + 60_000


class Level(Zero):
    """Constants."""

    def __init__(self, values):
        super().__init__(len(values), 1)
        self.values = values

    def forward(self, X):
        return self.values[:, None, None].expand(-1, len(X), 1)

    def select(self, index):
        return Level(self.values[index])


class Constants(Basis):
    """Either end of the bound, written as CONTRIBUTING.md says."""

    def minimize(self, objective, X, *, rng, context):
        return Proposal(Level(-torch.sign(objective.gradient.sum((1, 2))) * objective.bound))


def test_a_basis_written_by_the_book_is_asked_by_the_book():
    problem = PoolProblem(0)
    problem.basis = Constants()
    risks = [float(step.risk.mean()) for step in islice(problem.iterate(FrankWolfe(), Exact()), 5)]
    assert np.diff(risks).max() < 1e-12


def test_predictions_on_many_threads_leave_torch_alone():
    X = np.random.default_rng(0).normal(size=(300, 3))
    model = GCERegressor(max_atoms=3, random_state=0, n_jobs=1).fit(X, X[:, 0])
    expected, before = model.predict(X), torch.get_num_threads()
    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(lambda _: model.predict(X), range(20)):
            assert np.array_equal(answer, expected)
    assert torch.get_num_threads() == before


def test_a_plain_array_is_read_as_scikit_learn_reads_it(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80, 3))
    model = GCERegressor(basis="tree", max_atoms=2, cv=2, random_state=0).fit(X, X[:, 0])
    some = X[:4].copy()
    some[1, 1] = np.nan
    fine = [some, some.astype(np.float32), np.asfortranarray(some), some[::2], some[:1], some[:0]]
    wrong = [np.where(some > 1, np.inf, some), some[:, :2], some[0], some.astype(np.complex128)]
    found = [model.read_rows(rows).matrix for rows in fine]
    errors = []
    for rows in wrong:
        with pytest.raises(ValueError, match=r".") as error:
            model.predict(rows)
        errors.append(str(error.value))
    monkeypatch.setattr("gce.estimators._validation._needs_no_check", lambda *given: False)
    for rows, matrix in zip(fine, found, strict=True):
        checked = model.read_rows(rows).matrix
        assert matrix.dtype == checked.dtype == np.float64
        assert matrix.flags.c_contiguous
        np.testing.assert_array_equal(matrix, checked)
    for rows, message in zip(wrong, errors, strict=True):
        with pytest.raises(ValueError, match=re.escape(message)):
            model.predict(rows)
