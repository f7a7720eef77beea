"""Rounds of boosting that kernels run by themselves are those of the loop that reads like the algorithm."""

import numpy as np
import pytest
import torch

import gce
from gce._utils import parallel
from gce.bases import FitContext, SymmetricTree, Tree
from gce.bases.boosted import BoostingState
from gce.losses import (
    CrossEntropy,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Power,
    Quantile,
    Quantiles,
    Squared,
    Tweedie,
)
from gce.losses.risk import Risk, ScaledRisk

RNG = np.random.default_rng(0)
N, TRAIN = 240, 200
X = RNG.normal(size=(N, 5))
SIGNAL = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
CLASSES = (SIGNAL > 0).astype(int) + (SIGNAL > 1)
TARGETS = {
    "one number": (Squared(), SIGNAL[:, None]),
    "two numbers": (Squared(), np.column_stack([SIGNAL, X[:, 3] ** 2])),
    "two classes": (Logistic(), (SIGNAL > 0).astype(float)[:, None]),
    "three classes": (CrossEntropy(), np.eye(3)[CLASSES]),
    "counts": (Poisson(), np.round(np.exp(SIGNAL))[:, None]),
    "amounts": (Gamma(), np.exp(np.column_stack([SIGNAL, X[:, 3]]))),
    "claims": (Tweedie(1.4), np.maximum(np.exp(SIGNAL) - 0.5, 0)[:, None]),
    "median": (Power(1.0), SIGNAL[:, None]),
    "quantile": (Quantile(0.2), SIGNAL[:, None]),
    "quantiles": (Quantiles([0.2, 0.9]), np.column_stack([SIGNAL, SIGNAL])),
    "huber": (Huber(0.5), SIGNAL[:, None]),
}
#: Losses with logarithms, which are rounded otherwise by kernels.
LOGARITHMS = "counts", "amounts", "claims"
KEYS = RNG.integers(0, 2**63, (6, 3)).astype(np.uint64)


def state(kind, scale=0.0):
    """Three members that each train on two thirds of the first rows, from predictions that are not all 0."""
    loss, targets = TARGETS[kind]
    y = torch.from_numpy(targets)
    fold = torch.arange(TRAIN) % 3
    train = torch.stack([(fold != m).double() * torch.linspace(0.5, 2, TRAIN) for m in range(3)])
    held_out = torch.cat([torch.stack([(fold == m).double() for m in range(3)]), torch.ones(3, N - TRAIN)], 1)
    risk = Risk(loss, y[:TRAIN], train / train.sum(1, keepdim=True), y.mean(0) if kind[-1] == "s" else y[0])
    pred = scale * torch.from_numpy(np.random.default_rng(1).normal(size=(3, N, y.shape[1])))
    bound = torch.full(y.shape[1:], 60.0, dtype=torch.float64)
    held_out = held_out / held_out.sum(1, keepdim=True)
    return BoostingState(risk, y, held_out.double(), bound, pred, torch.ones(3).double(), 0.1, [0, 1, 2])


def run(basis, begin, rounds, threads=1):
    rows, context = torch.from_numpy(X), FitContext()
    with parallel.limited(threads):
        booster = basis.booster(begin.risk.loss, begin.bound, rows, context)
        return booster.run(begin, KEYS[:rounds])


BASES = [
    Tree(max_leaf_nodes=8, min_samples_leaf=3, subsample=0.7, max_features=0.6),
    SymmetricTree(max_depth=3),
    Tree(max_leaf_nodes=8, min_samples_leaf=3, subsample=0.7, max_features=0.6, outputs_per_tree="all"),
    SymmetricTree(max_depth=3, outputs_per_tree="all"),
]
IDS = ["tree", "symmetric", "tree vectors", "symmetric vectors"]


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("scale", [0.0, 3.0, 500.0])
def test_risks_are_those_of_the_loss(kind, scale):
    # exp(500) is beyond any mean
    begin = state(kind, min(scale, 5.0) if kind in LOGARITHMS else scale)
    block = run(BASES[0], begin, 3)
    for t in range(3):
        pred = block.pred(t)
        torch.testing.assert_close(block.risk[t], begin.risk.value(pred[:, :TRAIN]), rtol=1e-12, atol=1e-300)
        whole = Risk(begin.risk.loss, begin.y, begin.held_out, begin.risk.offset)
        torch.testing.assert_close(block.validation[t], whole.value(pred), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("kind", TARGETS)
def test_gradients_are_those_of_the_loss_or_of_its_smooth_minorant(kind):
    """The gap of a round is made of them: the first one's, by tensor operations."""
    begin = state(kind, 0.5)
    block = run(SymmetricTree(max_depth=3), begin, 1)
    model = begin.risk.modelled
    pred = begin.pred[:, :TRAIN]
    gradient = model.gradient(pred)
    with torch.no_grad():
        inner = (gradient * block.atoms(0)(torch.from_numpy(X))[:, :TRAIN]).sum((1, 2))
    gap = ((gradient * pred).sum((1, 2)) - inner.clamp(max=0)).clamp(min=0)
    most = model.scale.max() if isinstance(model, ScaledRisk) else 1.0
    torch.testing.assert_close(block.gap[0], gap / most, rtol=1e-9, atol=0)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("basis", BASES, ids=IDS)
def test_predictions_are_sums_of_atoms(kind, basis):
    begin = state(kind, 0.5)
    block = run(basis, begin, 4)
    pred = begin.pred
    for t in range(4):
        with torch.no_grad():
            pred = pred + block.size[t, :, None, None] * block.atoms(t)(torch.from_numpy(X))
        torch.testing.assert_close(block.pred(t), pred, rtol=1e-13, atol=1e-13)
        assert (block.size[t] <= block.limit[t]).all()


@pytest.mark.parametrize("basis", BASES, ids=IDS)
@pytest.mark.parametrize("kind", TARGETS)
def test_rounds_that_run_ahead_are_those_one_by_one(kind, basis):
    begin = state(kind, 0.5)
    ahead, here = run(basis, begin, 6, threads=2), run(basis, begin, 2)
    assert torch.equal(ahead.pred(1), here.pred(1))
    for name in ("size", "gap", "risk", "validation"):
        assert torch.equal(getattr(ahead, name)[:2], getattr(here, name)), name
    for t in range(2):
        one, other = ahead.atoms(t), here.atoms(t)
        assert all(torch.equal(a, b) for a, b in zip(one.buffers(), other.buffers(), strict=True))


def by_loop(monkeypatch):
    for basis in (Tree, SymmetricTree):
        monkeypatch.setattr(basis, "booster", lambda *_: None)


@pytest.mark.parametrize("basis", ["tree", "symmetric"])
def test_a_regression_is_that_of_the_loop_to_the_bit(basis, monkeypatch):
    def fit():
        return gce.GCERegressor(basis=basis, max_atoms=40, cv=3, random_state=0).fit(X, SIGNAL)

    ahead = fit()
    by_loop(monkeypatch)
    loop = fit()
    assert np.array_equal(ahead.predict(X), loop.predict(X))
    for one, other in zip(ahead.history_, loop.history_, strict=True):
        assert one["running"] == other["running"]
        assert one["validation"] == pytest.approx(other["validation"], rel=1e-12)
        assert one["gap_lower"] == pytest.approx(other["gap_lower"], rel=1e-9)


@pytest.mark.parametrize("labels", [CLASSES > 0, CLASSES], ids=["two", "three"])
def test_a_classification_is_that_of_the_loop(labels, monkeypatch):
    def fit():
        return gce.GCEClassifier(basis="symmetric", max_atoms=25, cv=3, random_state=0).fit(X, labels)

    ahead = fit()
    by_loop(monkeypatch)
    loop = fit()
    # exponentials round in the last digit: gains that differ by less are ties, which the same tree wins
    np.testing.assert_allclose(ahead.predict_proba(X), loop.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("last", [1, 5, 16, 17, 23])
def test_a_callback_stops_within_rounds_that_were_run_ahead(last):
    def fit(**others):
        return gce.GCERegressor(basis="tree", cv=3, random_state=0, n_iter_no_change=None, **others).fit(X, SIGNAL)

    seen = []
    stopped = fit(max_atoms=40, callbacks=[lambda step: seen.append(step.t) or step.t == last])
    limited = fit(max_atoms=last)
    assert seen == list(range(1, last + 1))
    assert stopped.n_iter_ == limited.n_iter_ == last
    assert np.array_equal(stopped.predict(X), limited.predict(X))


def test_a_scorer_sees_the_predictions_of_its_own_round(monkeypatch):
    def fit():
        return gce.GCERegressor(basis="tree", cv=3, max_atoms=20, scoring="r2", random_state=0).fit(X, SIGNAL)

    scores = [entry["validation"] for entry in fit().history_]
    by_loop(monkeypatch)
    assert scores == [entry["validation"] for entry in fit().history_]


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_extreme_scores_have_finite_losses(kind):
    begin = state(kind, 1e5)
    block = run(BASES[1], begin, 2)
    assert torch.isfinite(block.risk).all()
    assert torch.isfinite(block.pred(1)).all()
