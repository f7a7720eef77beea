"""Weights over a finite pool: moves that are optimal, certificates that hold, nothing copied."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce.frank_wolfe.simplex import Outputs, backward_elimination, certify_weights, greedy_selection, solve_simplex
from gce.losses import CrossEntropy, LogMixture, Loss, NonFiniteError, Power, PseudoHuber, Quantile, Squared
from gce.losses.risk import Risk
from helpers import GPU, LOSSES, outputs_of, targets

POOLS = {**LOSSES, "log_mixture": LogMixture()}
every_loss = pytest.mark.parametrize("loss", POOLS.values(), ids=POOLS)


class Blind(Loss):
    """A loss that knows its value alone: no curvature, no gradient of its own."""

    def value(self, pred, y):
        return (pred - y).square().sum(-1)


def pool(loss, seed, models=7, n=25):
    """Models that are right to different degrees, and row weights."""
    rng = np.random.default_rng(seed)
    weight = torch.from_numpy(rng.uniform(0, 1, (1, n)))
    if isinstance(loss, LogMixture):
        y = torch.ones(n, 1, dtype=torch.float64)
        answers = rng.beta(rng.uniform(0.5, 4, (models, 1, 1)), 1.0, (models, n, 1))
    else:
        y = targets(loss, n, rng)
        signs = 2 * y.numpy() - 1 if not isinstance(loss, CrossEntropy) and y.unique().numel() == 2 else y.numpy()
        answers = rng.uniform(0.2, 2, (models, 1, 1)) * signs + rng.normal(size=(models, n, outputs_of(loss)))
    offset = torch.zeros(y.shape[1], dtype=torch.float64)
    return Risk(loss, y, weight / weight.sum(), offset), Outputs([torch.from_numpy(a) for a in answers])


def value(risk, outputs, weights):
    return float(risk.value(outputs.combine(np.asarray(weights))[None]))


@every_loss
def test_the_hessian_is_the_derivative_of_the_slopes_along_moves(loss):
    risk, outputs = pool(loss, 3)
    if loss.smoothed(1.0) is not None:
        risk = Risk(loss.smoothed(0.3), risk.y, risk.weight, risk.offset)
    weights, step = np.full(7, 1 / 7), 1e-6

    def slopes(w):
        return outputs.inner(risk.gradient(outputs.combine(w)[None])[0])

    numeric = [(slopes(weights + step * e) - slopes(weights - step * e)) / (2 * step) for e in np.eye(7)]
    some = np.array([5, 0, 2])
    found = outputs.hessian(risk, outputs.combine(weights), some)
    moves = np.array([[1, -1, 0], [0, 1, -1], [2, -1, -1]])  # sums of 0
    expected = moves @ np.array(numeric)[np.ix_(some, some)] @ moves.T
    np.testing.assert_allclose(moves @ found @ moves.T, expected, rtol=1e-5, atol=1e-7)


def test_the_hessian_is_a_sum_over_blocks_of_rows(monkeypatch):
    risk, outputs = pool(CrossEntropy(), 0)
    pred, some = outputs.combine(np.full(7, 1 / 7)), np.arange(7)
    whole = outputs.hessian(risk, pred, some)
    monkeypatch.setattr("gce.frank_wolfe.simplex.outputs._BLOCK", 100)
    np.testing.assert_allclose(outputs.hessian(risk, pred, some), whole, rtol=1e-13)


def test_answers_are_kept_as_they_are():
    _, outputs = pool(Squared(), 0)
    more = outputs.select([2, 0]).append(outputs.predictions[1])
    assert all(
        kept is given for kept, given in zip(more.predictions, [outputs.predictions[j] for j in (2, 0, 1)], strict=True)
    )
    with pytest.raises(ValueError, match="at least one"):
        Outputs([])


def test_single_precision_is_added_up_in_double():
    risk, outputs = pool(Squared(), 0)
    single = Outputs([a.float() for a in outputs.predictions])
    exact = Outputs([a.float().double() for a in outputs.predictions])
    found, expected = solve_simplex(risk, single, 1e-10), solve_simplex(risk, exact, 1e-10)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-12, atol=1e-14)
    assert found.loss == pytest.approx(expected.loss, rel=1e-14)


# The solution.


@every_loss
@given(seed=st.integers(0, 10**6), models=st.integers(1, 15))
@settings(max_examples=20, deadline=None)
def test_no_other_weights_beat_the_certificate(loss, seed, models):
    risk, outputs = pool(loss, seed, models)
    found = solve_simplex(risk, outputs, 1e-7)
    assert found.converged
    assert found.gap <= 1e-7 * abs(found.loss)
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1, abs=1e-15)
    # the same sums, which may be added in another order: a unit in the last place for each row and model
    terms = risk.y.numel() + models
    assert found.loss == pytest.approx(value(risk, outputs, found.weights), rel=terms * np.finfo(float).eps, abs=1e-300)
    rng = np.random.default_rng(seed)
    others = [*np.eye(models), *rng.dirichlet(np.full(models, 0.3), 20), np.full(models, 1 / models)]
    assert min(value(risk, outputs, w) for w in others) >= found.loss - found.gap


@every_loss
def test_alignment_says_why_a_model_is_not_used(loss):
    risk, outputs = pool(loss, 6, models=20)
    found = solve_simplex(risk, outputs, 1e-9)
    unit = np.abs(found.alignment).max()
    assert 1 < len(found.used) < 20
    # complementary slackness, to the tolerance that the weights are solved to
    assert np.abs(found.alignment[found.weights > 1e-9]).max() <= 1e-4 * unit
    unused = np.setdiff1d(np.arange(20), found.used)
    assert (found.alignment[unused] > 1e-4 * unit).all()


def test_the_history_tells_of_every_round():
    risk, outputs = pool(LogMixture(), 2, models=40, n=60)
    found = solve_simplex(risk, outputs, 1e-10)
    assert [h["t"] for h in found.history] == list(range(len(found.history)))
    losses, gaps = [h["loss"] for h in found.history], [h["gap"] for h in found.history]
    assert losses == sorted(losses, reverse=True)
    assert found.history[-1]["gap"] == found.gap
    assert found.history[-1]["used"] == len(found.used)
    assert all(loss - gap <= found.loss for loss, gap in zip(losses, gaps, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_pairwise_steps_alone_find_the_same_optimum(seed):
    risk, outputs = pool(Squared(), seed)
    blind = Risk(Blind(), risk.y, risk.weight, risk.offset)
    found, expected = solve_simplex(blind, outputs, 1e-6, max_iter=5000), solve_simplex(risk, outputs, 1e-10)
    assert found.converged
    assert not Blind.has_hessian
    assert expected.loss - expected.gap <= found.loss <= expected.loss + found.gap


@pytest.mark.parametrize("loss", [Power(1.0), Quantile(0.2), Power(1.2)])
def test_losses_with_a_kink_are_solved_from_below(loss):
    risk, outputs = pool(loss, 1, models=30, n=40)
    found = solve_simplex(risk, outputs, 1e-7)
    assert found.converged
    assert found.loss == value(risk, outputs, found.weights)


@pytest.mark.parametrize("loss", [Squared(), PseudoHuber(1.0), LogMixture()])
def test_a_start_changes_the_way_and_not_the_end(loss):
    risk, outputs = pool(loss, 3, models=20)
    cold = solve_simplex(risk, outputs, 1e-9)
    warm = solve_simplex(risk, outputs, 1e-9, start=cold.weights)
    assert len(warm.history) < len(cold.history)
    other = solve_simplex(risk, outputs, 1e-9, start=np.eye(20)[4])
    assert abs(other.loss - cold.loss) <= max(other.gap, cold.gap)


def test_equal_models_are_not_all_used():
    risk, outputs = pool(Squared(), 0)
    found = solve_simplex(risk, Outputs([outputs.predictions[0]] * 4), 1e-9)
    assert len(found.used) == 1
    assert found.converged


def test_what_float64_cannot_reach_is_said():
    risk, outputs = pool(LogMixture(), 0)
    found = solve_simplex(risk, outputs, 0.0)
    assert not found.converged
    assert 0 < found.gap < 1e-13 * found.loss


class Exponential(Loss):
    """Costs that overflow for scores that are far off."""

    has_hessian = True

    def value(self, pred, y):
        return (pred.exp() - y * pred).sum(-1)

    def hessian_root(self, pred, y, d):
        return (pred / 2).exp() * d


def test_a_far_start_does_not_make_a_wide_gap_small():
    """Next to the first loss of 1e100 and more any other is nothing; the constant among the models costs about 1."""
    risk, outputs = pool(Squared(), 0)
    counts = Risk(Exponential(), risk.y.abs(), risk.weight, risk.offset)
    wild = Outputs([*(300 * a for a in outputs.predictions), torch.zeros_like(risk.y)])
    found = solve_simplex(counts, wild, 1e-6)
    assert found.history[0]["loss"] > 1e30
    assert found.loss <= value(counts, wild, np.eye(8)[-1])
    assert found.converged
    assert found.gap <= 1e-6 * abs(found.loss)


def test_an_infinite_loss_is_an_error():
    risk, outputs = pool(Squared(), 0)
    counts = Risk(Exponential(), risk.y, risk.weight, risk.offset)
    with pytest.raises(NonFiniteError, match=r"weights of \d+ models: the risk of Exponential\(\) is inf at scores of"):
        solve_simplex(counts, Outputs([1e4 * a.abs() for a in outputs.predictions]), 1e-6)


@pytest.mark.parametrize("loss", [Power(1.0), Quantile(0.001), Power(1.05)])
@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("seed", [3, 4])
def test_models_between_which_the_targets_lie_are_mixed_without_complaint(loss, unit, seed):
    """More models than rows: the best loss is 0, and what is found is the rounding of it."""
    risk, outputs = pool(loss, seed, models=9, n=2)
    between = Risk(loss, unit * outputs.combine(np.full(9, 0.1) + 0.1 * np.eye(9)[0]), risk.weight, risk.offset)
    found = solve_simplex(between, Outputs([unit * a for a in outputs.predictions]), 1e-6)
    assert found.converged
    # a sum of nine products is right to nine units in the last place of its terms' sizes
    rounding = 9 * np.finfo(float).eps * unit * max(float(a.abs().max()) for a in outputs.predictions)
    assert found.loss <= max(float(loss.value(between.y + off, between.y).max()) for off in (-rounding, rounding))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("seed", [1, 8])
def test_the_certificate_counts_the_rounding_that_an_offset_brings(seed, offset):
    """The same to all classes, it changes no cost; the reference has none, and the digits of extended precision."""
    risk, outputs = pool(CrossEntropy(), seed)
    moved = Risk(risk.loss, risk.y, risk.weight, risk.offset + offset)
    weights = solve_simplex(risk, outputs, 0.0).weights.astype(np.longdouble)
    f = np.tensordot(weights / weights.sum(), np.array([a.numpy() for a in outputs.predictions], np.longdouble), 1)
    cost = np.log(np.exp(f).sum(-1)) - (risk.y.numpy() * f).sum(-1)
    found = solve_simplex(moved, outputs, 0.0)
    assert found.loss - float(risk.weight[0].numpy() @ cost) <= found.gap


@pytest.mark.parametrize("above", [1e-7, 1e-3])
def test_probabilities_above_one_do_not_close_the_gap(above):
    rng = np.random.default_rng(0)
    risk, _ = pool(LogMixture(), 0)
    outputs = Outputs([torch.from_numpy(1 + above * (rng.random((25, 1)) < 0.5)) for _ in range(6)])
    judged = certify_weights(risk, outputs, np.eye(6)[0])
    assert judged.loss - min(value(risk, outputs, w) for w in np.eye(6)) <= judged.gap
    assert judged.gap > 1e-2 * above
    assert solve_simplex(risk, outputs, 1e-6).converged


def test_a_start_without_any_weight_is_none():
    risk, outputs = pool(Squared(), 0)
    found, expected = solve_simplex(risk, outputs, start=np.zeros(7)), solve_simplex(risk, outputs)
    np.testing.assert_array_equal(found.weights, expected.weights)


@pytest.mark.parametrize("seed", range(5))
def test_a_softened_search_that_is_cut_short_keeps_the_best_it_saw(seed):
    risk, outputs = pool(Power(1.0), seed, models=20, n=40)
    near = solve_simplex(risk, outputs, 1e-3)
    for rounds in range(1, 6):
        assert solve_simplex(risk, outputs, 1e-9, start=near.weights, max_iter=rounds).loss <= near.loss * (1 + 1e-14)


def test_rounds_are_counted_from_the_average_on():
    """Where the average stays in use the search goes on without it, in the same rounds."""
    risk, outputs = pool(Squared(), 1, models=5, n=60)
    found = solve_simplex(risk, outputs, 1e-9)
    assert found.history[0]["loss"] == pytest.approx(value(risk, outputs, np.full(5, 0.2)), rel=1e-12)
    assert [h["t"] for h in found.history] == list(range(len(found.history)))
    assert found.history[-1]["loss"] == found.loss


def test_rows_that_nobody_gave_a_chance_leave_the_optimum_as_it_was():
    risk, outputs = pool(LogMixture(), 0)
    hopeless = [a.clone() for a in outputs.predictions]
    for a in hopeless:
        a[:3] = 0.0
    found = solve_simplex(risk, Outputs(hopeless), 1e-9)
    rest = Risk(risk.loss, risk.y[3:], risk.weight[:, 3:] / risk.weight[:, 3:].sum(), risk.offset)
    expected = solve_simplex(rest, Outputs([a[3:] for a in hopeless]), 1e-9)
    assert np.isfinite(found.loss)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)


def test_one_chance_is_enough_for_a_row():
    """All models but one call the row impossible: that one must be used, and the others lose little."""
    risk, outputs = pool(LogMixture(), 0)
    answers = [a.clone() for a in outputs.predictions]
    for j, a in enumerate(answers):
        a[0] = 0.9 if j == 4 else 0.0
    found = solve_simplex(risk, Outputs(answers), 1e-9)
    assert found.weights[4] > 0
    assert found.converged


# Caruana's selection.


@pytest.mark.parametrize("loss", [Squared(), LogMixture()])
def test_selection_adds_the_best_model_each_round(loss):
    risk, outputs = pool(loss, 1)
    found = greedy_selection(risk, outputs, 12, 1, 0.5, np.random.default_rng(0))
    bag, path = [], []
    for _ in range(12):
        tries = [(value(risk, outputs, np.bincount([*bag, j], minlength=7) / (len(bag) + 1)), j) for j in range(7)]
        bag.append(min(tries)[1])
        path.append((min(tries)[0], len(bag)))
    size = min(path)[1]
    np.testing.assert_allclose(found.weights, np.bincount(bag[:size], minlength=7) / size)
    best = solve_simplex(risk, outputs, 1e-10)
    assert best.loss - best.gap <= found.loss <= best.loss + found.gap


def test_bags_draw_some_of_the_models():
    risk, outputs = pool(Squared(), 1)
    alone = greedy_selection(risk, outputs, 5, 40, 1e-9, np.random.default_rng(0))
    counts = np.zeros(7)
    rng = np.random.default_rng(0)
    for _ in range(40):
        counts[rng.choice(7, 1, replace=False)] += 1 / 40
    np.testing.assert_allclose(alone.weights, counts)


def test_certified_judges_any_weights():
    risk, outputs = pool(LogMixture(), 4)
    weights = np.full(7, 1 / 7)
    judged, best = certify_weights(risk, outputs, weights), solve_simplex(risk, outputs, 1e-10)
    np.testing.assert_allclose(judged.weights, weights, rtol=1e-15)
    assert judged.loss == pytest.approx(value(risk, outputs, weights), rel=1e-14)
    assert 0 < judged.loss - best.loss <= judged.gap


@pytest.mark.parametrize("loss", [Power(1.0), Quantile(0.2)])
def test_weights_are_judged_well_at_a_kink_too(loss):
    risk, outputs = pool(loss, 4, n=60)
    best = solve_simplex(risk, outputs, 1e-8)
    judged = certify_weights(risk, outputs, best.weights)
    assert judged.loss == pytest.approx(best.loss, rel=1e-14)
    assert 0 <= judged.gap <= 0.1 * judged.loss


# Ever fewer models.


@pytest.mark.parametrize("loss", [Squared(), LogMixture(), Power(1.0), CrossEntropy()])
def test_every_step_of_a_shrinking_path_is_optimal_for_its_models(loss):
    risk, outputs = pool(loss, 6, models=8)
    path = backward_elimination(risk, outputs, solve_simplex(risk, outputs, 1e-8), 1e-8)
    sizes, losses = [len(step.used) for step in path], [step.loss for step in path]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    assert losses == sorted(losses)
    for step in path[1:]:
        alone = solve_simplex(risk, outputs.select(step.used), 1e-8)
        assert abs(alone.loss - step.loss) <= max(alone.gap, step.gap)
        assert step.loss == value(risk, outputs, step.weights)
    assert losses[-1] == min(value(risk, outputs, w) for w in np.eye(8))


def test_the_easiest_model_to_spare_is_spared_first():
    """All pairs of three models are compared by hand."""
    risk, outputs = pool(Squared(), 8, models=3)
    path = backward_elimination(risk, outputs, solve_simplex(risk, outputs, 1e-10), 1e-10)
    assert len(path[0].used) == 3
    pairs = [solve_simplex(risk, outputs.select([i, j]), 1e-10).loss for i, j in ((0, 1), (0, 2), (1, 2))]
    assert path[1].loss == pytest.approx(min(pairs), rel=1e-9)


@pytest.mark.parametrize("loss", [Squared(), LogMixture(), Power(1.0)])
def test_a_perfect_model_is_found_without_complaint(loss):
    risk, outputs = pool(loss, 2)
    found = solve_simplex(risk, outputs.append(risk.y), 1e-6)
    assert found.converged
    assert found.loss <= 1e-15
    np.testing.assert_allclose(found.weights[-1], 1.0, atol=1e-12)


@GPU
@every_loss
def test_answers_on_a_gpu_have_the_same_optimum(loss):
    risk, outputs = pool(loss, 3)
    there = Risk(loss, risk.y.cuda(), risk.weight.cuda(), risk.offset.cuda())
    found = solve_simplex(there, Outputs([a.cuda() for a in outputs.predictions]), 1e-7)
    expected = solve_simplex(risk, outputs, 1e-7)
    assert found.converged
    assert abs(found.loss - expected.loss) <= max(found.gap, expected.gap)


def test_models_that_are_free_stay_available_and_are_not_counted():
    risk, outputs = pool(Squared(), 6, models=8)
    outputs = Outputs([torch.zeros_like(outputs.predictions[0]), *outputs.predictions])
    path = backward_elimination(risk, outputs, solve_simplex(risk, outputs, 1e-9), 1e-9, free=(0,))
    sizes = [len(set(step.used) - {0}) for step in path]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-2:] == [1, 0]
    assert [step.loss for step in path] == sorted(step.loss for step in path)
    for step in path:
        among = sorted({0, *step.used})
        assert abs(solve_simplex(risk, outputs.select(among), 1e-9).loss - step.loss) <= 1e-9 * step.loss + step.gap
    pairs = min(solve_simplex(risk, outputs.select([0, j]), 1e-9).loss for j in range(1, 9))
    assert path[-2].loss == pytest.approx(pairs, rel=1e-8)
    np.testing.assert_array_equal(path[-1].weights, np.eye(9)[0])
