import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from gce.losses import (
    CrossEntropy,
    Logistic,
    LogMixture,
    Loss,
    MultiLabel,
    Ordinal,
    Power,
    PseudoHuber,
    Quantile,
    Squared,
    weighted_quantile,
)
from helpers import LOSSES, outputs_of, targets

everything = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())


def some(loss, seed, n=20):
    rng = np.random.default_rng(seed)
    pred = torch.from_numpy(2 * rng.normal(size=(2, n, outputs_of(loss))))
    return pred, targets(loss, n, rng), torch.from_numpy(rng.uniform(0.1, 1, n))


@everything
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_gradient_is_the_derivative(loss, seed):
    pred, y, _ = some(loss, seed)
    step = 1e-6
    # the third derivative of |r|^1.5 grows as r^-1.5, and central differences err by it times step^2
    away_from_kinks = (pred - y).abs().amin() > 1000 * step
    if not away_from_kinks:
        return
    for j in range(pred.shape[-1]):
        e = torch.zeros_like(pred)
        e[..., j] = step
        numeric = (loss.value(pred + e, y) - loss.value(pred - e, y)) / (2 * step)
        torch.testing.assert_close(loss.gradient(pred, y)[..., j], numeric, rtol=1e-5, atol=1e-7)


@everything
def test_gradient_agrees_with_automatic_differentiation(loss):
    pred, y, _ = some(loss, 3)
    torch.testing.assert_close(loss.gradient(pred, y), Loss.gradient(loss, pred, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("score", [1.0, 20.0, 40.0, 300.0])
def test_gradients_keep_their_digits_where_a_prediction_is_nearly_certain(score):
    rare = np.exp(-score)  # of each wrong class, in units of the right one
    sure = torch.tensor([[score], [-score]], dtype=torch.float64)
    right = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    expected = torch.tensor([[-1.0], [1.0]], dtype=torch.float64) * (rare / (1 + rare))
    torch.testing.assert_close(Logistic().gradient(sure, right), expected, rtol=1e-14, atol=0)
    three = torch.tensor([[score, 0.0, 0.0]], dtype=torch.float64)
    expected = torch.tensor([[-2.0, 1.0, 1.0]], dtype=torch.float64) * (rare / (1 + 2 * rare))
    found = CrossEntropy().gradient(three, torch.eye(3, dtype=torch.float64)[:1])
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("score", [1.0, 20.0, 40.0, 300.0])
def test_values_keep_their_digits_where_a_prediction_is_nearly_certain(score):
    rare = np.exp(-score)
    sure = torch.tensor([[score], [-score]], dtype=torch.float64)
    right = torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    expected = torch.full((2,), np.log1p(rare), dtype=torch.float64)
    torch.testing.assert_close(Logistic().value(sure, right), expected, rtol=1e-14, atol=0)
    three = torch.tensor([[score, 0.0, 0.0]], dtype=torch.float64) + 1000
    found = CrossEntropy().value(three, torch.eye(3, dtype=torch.float64)[:1])
    torch.testing.assert_close(found, torch.log1p(torch.tensor([2 * rare])), rtol=1e-14, atol=0)
    wrong = CrossEntropy().value(three, torch.eye(3, dtype=torch.float64)[1:2])
    torch.testing.assert_close(wrong, torch.log(torch.tensor([2 + np.exp(score)])), rtol=1e-14, atol=0)


def test_values_of_classes_that_are_known_by_their_probabilities():
    """Calibration smooths its targets."""
    rng = np.random.default_rng(0)
    pred, y = torch.from_numpy(rng.normal(size=(30, 3))), torch.from_numpy(rng.dirichlet(np.ones(3), 30))
    expected = -(y * torch.log_softmax(pred, -1)).sum(-1)
    torch.testing.assert_close(CrossEntropy().value(pred, y), expected, rtol=1e-13, atol=1e-14)
    expected = -(y[:, :1] * torch.sigmoid(pred[:, :1]).log() + (1 - y[:, :1]) * torch.sigmoid(-pred[:, :1]).log())
    torch.testing.assert_close(Logistic().value(pred[:, :1], y[:, :1]), expected[:, 0], rtol=1e-13, atol=1e-14)


@everything
def test_no_constant_beats_the_start(loss):
    for seed in range(5):
        _, y, weight = some(loss, seed)

        def risk(c, y=y, weight=weight):
            return float((weight * loss.value(torch.as_tensor(c).expand(len(y), -1), y)).sum())

        start = loss.start(y, weight)
        best = minimize(risk, start.numpy() + 0.1, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        assert risk(start) <= best.fun + 1e-9


@everything
def test_start_counts_weighted_rows_as_repeated_rows(loss):
    _, y, _ = some(loss, 7)
    times = torch.arange(len(y)) % 4
    repeated = loss.start(y.repeat_interleave(times, 0), torch.ones(int(times.sum()), dtype=torch.float64))
    torch.testing.assert_close(loss.start(y[times > 0], times[times > 0].double()), repeated, rtol=1e-12, atol=1e-12)


@everything
@given(seed=st.integers(0, 10**6), bound=st.floats(0.1, 5))
@settings(max_examples=25, deadline=None)
def test_constants_hold_on_the_bounded_range(loss, seed, bound):
    rng = np.random.default_rng(seed)
    k = outputs_of(loss)
    a, b = (torch.from_numpy(rng.uniform(-bound, bound, (50, k))) for _ in range(2))
    y = targets(loss, 50, rng)
    y = y if isinstance(loss, Logistic | CrossEntropy | MultiLabel | Ordinal) else y.clamp(-bound, bound)
    distance = (a - b).norm(dim=-1)
    change = (loss.gradient(a, y) - loss.gradient(b, y)).norm(dim=-1)
    assert (change <= loss.smoothness(bound) * distance * (1 + 1e-9) + 1e-12).all()
    if isinstance(loss, MultiLabel | Ordinal):
        with pytest.raises(NotImplementedError, match="depends on how many"):
            loss.lipschitz(bound)
        return
    assert ((loss.value(a, y) - loss.value(b, y)).abs() <= loss.lipschitz(bound) * distance * (1 + 1e-9)).all()


def test_constants_of_the_paper():
    assert Power(3.0).lipschitz(2.0) == 3 * 4.0**2
    assert Squared().lipschitz(2.0) == Power(2.0).lipschitz(2.0)
    assert Logistic().lipschitz(10.0) == 1
    assert np.isinf([Power(1.0).smoothness(1), Power(1.5).smoothness(1), Quantile(0.3).smoothness(1)]).all()


def test_probabilities_are_on_the_simplex_even_far_out():
    for loss, k in ((Logistic(), 1), (CrossEntropy(), 4)):
        p = loss.predict(torch.linspace(-800, 800, 12 * k, dtype=torch.float64).reshape(12, k))
        assert (p >= 0).all()
        torch.testing.assert_close(p.sum(-1), torch.ones(12, dtype=torch.float64))
    assert torch.isfinite(Logistic().value(torch.tensor([[800.0], [-800.0]]), torch.tensor([[0.0], [1.0]]))).all()


def test_pseudo_huber_keeps_small_residuals():
    tiny = torch.tensor([1e-9], dtype=torch.float64)
    assert PseudoHuber(1.0).phi(tiny).item() == pytest.approx(0.5e-18, rel=1e-9)


def test_weighted_quantile_by_hand():
    y = torch.tensor([[3.0], [1.0], [2.0]], dtype=torch.float64)
    weight = torch.tensor([1.0, 2.0, 1.0], dtype=torch.float64)
    assert [weighted_quantile(y, weight, q).item() for q in (0.5, 0.51, 0.75, 0.76)] == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Power(0.5), r"q must be in \[1, 100\]"),
        (PseudoHuber(0), "delta must be .auto., in"),
        (Quantile(1.0), r"quantile must be in \(0, 1\)"),
    ],
)
def test_a_loss_that_is_not_one_says_so(loss, words):
    with pytest.raises(ValueError, match=words):
        loss.value(torch.zeros(1, 1), torch.zeros(1, 1))


def test_an_own_loss_needs_only_its_value():
    class LogCosh(Loss):
        def value(self, pred, y):
            return (torch.logaddexp(pred - y, y - pred) - math.log(2)).sum(-1)

    pred, y, weight = some(Squared(), 0)
    torch.testing.assert_close(LogCosh().gradient(pred, y), torch.tanh(pred - y))
    start = LogCosh().start(y, weight)
    assert (weight * torch.tanh(start - y)[:, 0]).sum().abs() < 1e-9


@everything
@pytest.mark.parametrize("width", [1.0, 1e-3])
def test_a_softened_loss_lies_below_and_close(loss, width):
    soft = loss.smoothed(width)
    if soft is None:
        assert loss.smoothness(1.0) < np.inf
        return
    pred, y, _ = some(loss, 1, n=200)
    below = loss.value(pred, y) - soft.value(pred, y)
    assert (below >= -1e-12).all()
    assert (below <= width ** getattr(loss, "q", 1.0) + 1e-12).all()


@everything
def test_minorants_lie_below_the_loss_they_stand_for(loss):
    soft = loss.smoothed(0.1) or loss
    here, y, _ = some(loss, 1, n=200)
    there, _, _ = some(loss, 2, n=200)
    line = soft.minorant(here, y) + (soft.gradient(here, y) * (there - here)).sum(-1)
    assert (line <= loss.value(there, y) + 1e-12).all()
    assert (soft.minorant(here, y) <= loss.value(here, y) + 1e-12).all()


@everything
def test_roots_are_square_roots_of_the_hessian(loss):
    curved = loss.smoothed(0.3) or loss
    pred, y, _ = some(loss, 4)
    pred, step = pred[0], 1e-5
    rng = np.random.default_rng(0)
    d = torch.from_numpy(rng.normal(size=(3, *pred.shape)))
    root = curved.hessian_root(pred, y, d)
    found = torch.einsum("anr,bnr->abn", root, root)
    slope = torch.stack([(curved.gradient(pred + step * e, y) - curved.gradient(pred - step * e, y)) for e in d])
    numeric = torch.einsum("ank,bnk->abn", d, slope / (2 * step))
    torch.testing.assert_close(found, numeric, rtol=1e-4, atol=1e-6)


def mixtures(n=200):
    rng = np.random.default_rng(0)
    p = torch.from_numpy(rng.dirichlet(np.full(3, 0.3), n))
    return p, torch.eye(3, dtype=torch.float64)[torch.from_numpy(rng.integers(0, 3, n))]


def test_the_mixture_loss_is_minus_the_log_of_the_true_class():
    p, y = mixtures()
    truth = p[y.bool()]
    torch.testing.assert_close(LogMixture().value(p, y), -truth.log(), rtol=1e-14, atol=0)
    alone = LogMixture().value(truth[:, None], torch.ones(len(p), 1, dtype=torch.float64))
    assert torch.equal(alone, LogMixture().value(p, y))
    torch.testing.assert_close(LogMixture().gradient(p, y), Loss.gradient(LogMixture(), p, y), rtol=1e-12, atol=0)


def test_the_mixture_loss_is_safe_at_zero_and_convex_through_it():
    loss, one = LogMixture(), torch.ones(1, dtype=torch.float64)
    grid = torch.cat([torch.linspace(-2, 3, 501).double() * loss.TINY, torch.logspace(-15, 0, 200).double()])
    grid = grid.sort().values
    value, slope = loss.value(grid[:, None], one), loss.gradient(grid[:, None], one)[:, 0]
    assert value.isfinite().all()
    assert (slope.diff() >= 0).all()
    numeric = value.diff() / grid.diff()
    assert ((slope[:-1] - 1e-3 * slope[:-1].abs() <= numeric) & (numeric <= slope[1:] + 1e-3 * slope[1:].abs())).all()
    assert float(loss.value(torch.zeros(1, 1).double(), one)) == pytest.approx(1.5 - np.log(loss.TINY))


@everything
def test_no_row_costs_less_than_the_least(loss):
    assert loss.lower_bound == 0
    pred, y, _ = some(loss, 1, n=500)
    assert (loss.value(pred, y) >= loss.lower_bound).all()
