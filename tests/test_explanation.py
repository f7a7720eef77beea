"""Explanations: every figure is what it says, by another way of getting it, and every rendering shows it."""

import doctest
import re
import sys
import warnings

import cvxpy as cp
import matplotlib as mpl
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from gce._utils import numerals, text
from gce.frank_wolfe.simplex import (
    Outputs,
    backward_elimination,
    certify_weights,
    greedy_selection,
    solve_simplex,
)
from gce.inspection.explanation import Explanation, PathStep, PruningPath, explain, explanation, pruning_path, removals
from gce.losses import LogMixture, Power, Squared
from gce.losses.risk import Risk

mpl.use("Agg")
import matplotlib.pyplot as plt

TOL = 1e-9
KINDS = {"squared": Squared(), "mixture": LogMixture(), "absolute": Power(1.0)}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def problem(kind, members=6, rows=40, seed=0):
    """A pool in which not all members are of use: the last one is worse than the one before in every row."""
    rng = np.random.default_rng(seed)
    weight = torch.from_numpy(rng.dirichlet(np.ones(rows)))[None]
    if kind == "mixture":
        answers = rng.uniform(0.05, 1, (members, rows, 1))
        answers[-1] = 0.9 * answers[-2]
        y = np.ones((rows, 1))
    else:
        y = rng.normal(size=(rows, 1))
        answers = y + rng.normal(size=(members, rows, 1)) * np.linspace(0.5, 2, members)[:, None, None]
        answers[-1] = answers[-2] + np.sign(answers[-2] - y)
    risk = Risk(KINDS[kind], torch.from_numpy(y), weight, torch.zeros(1, dtype=torch.float64))
    return risk, Outputs([torch.from_numpy(answer) for answer in answers])


def explained(kind="squared", names=None, seconds=None, **size):
    risk, outputs = problem(kind, **size)
    solution = solve_simplex(risk, outputs, TOL)
    names = names or [f"m{j}" for j in range(len(outputs))]
    return explain(names, risk, outputs, solution, TOL, seconds), risk, outputs, solution


def least(risk, outputs):
    """The least loss over the simplex, by a conic solver."""
    answers = torch.stack(outputs.predictions)[..., 0].numpy()
    y, row_weight = risk.y[:, 0].numpy(), risk.weight[0].numpy()
    w = cp.Variable(len(answers), nonneg=True)
    mixed = answers.T @ w
    cost = {
        "Squared": cp.square(mixed - y),
        "LogMixture": -cp.log(mixed),
        "Power": cp.abs(mixed - y),
    }[type(risk.loss).__name__]
    program = cp.Problem(cp.Minimize(row_weight @ cost), [cp.sum(w) == 1])
    return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_loss_without_is_the_least_over_the_others(kind):
    found, risk, outputs, solution = explained(kind)
    assert 1 < len(solution.used) < len(outputs)
    for j in range(len(outputs)):
        others = outputs.select([i for i in range(len(outputs)) if i != j])
        assert found.loss_without[j] == pytest.approx(least(risk, others), rel=1e-7)
    assert found.loss == pytest.approx(least(risk, outputs), rel=1e-7)


@pytest.mark.parametrize("kind", ["squared", "mixture"])
def test_alignment_is_the_slope_of_the_loss_toward_a_member(kind):
    found, risk, outputs, solution = explained(kind)
    pred, step = outputs.combine(solution.weights), 1e-5
    for j, answer in enumerate(outputs.predictions):
        ahead, behind = (float(risk.value((pred + h * (answer - pred))[None])) for h in (step, -step))
        assert found.alignment[j] == pytest.approx((ahead - behind) / (2 * step), abs=1e-7)
    assert np.abs(found.alignment[found.used]).max() < 1e-7
    assert found.alignment[~found.used].min() > 1e-3


def test_own_losses_weights_and_totals():
    seconds = np.array([1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3])
    found, risk, outputs, solution = explained(seconds=seconds)
    one_by_one = [float(risk.value(answer[None])) for answer in outputs.predictions]
    np.testing.assert_array_equal(found.own_loss, one_by_one)
    np.testing.assert_array_equal(found.weights, solution.weights)
    assert (found.loss, found.gap) == (solution.loss, solution.gap)
    assert found.seconds_all == pytest.approx(0.021)
    assert found.seconds_used == pytest.approx(sum(s for s, w in zip(seconds, solution.weights, strict=True) if w > 0))
    assert found.seconds_used < found.seconds_all
    np.testing.assert_array_equal(found.loss_without[~found.used], solution.loss)


def test_only_members_in_use_are_solved_for(monkeypatch):
    asked = []

    def counting(risk, outputs, tol, start=None):
        asked.append(start)
        return solve_simplex(risk, outputs, tol, start=start)

    monkeypatch.setattr(removals, "solve_simplex", counting)
    *_, solution = explained()
    assert len(asked) == len(solution.used)
    for j, start in zip(solution.used, asked, strict=True):
        np.testing.assert_array_equal(start, np.delete(solution.weights, j))


def test_a_member_that_has_all_the_weight_and_one_that_is_alone():
    risk, outputs = problem("squared")
    best = Outputs([risk.y, outputs.predictions[-2], outputs.predictions[-1]])
    solution = solve_simplex(risk, best, TOL)
    assert solution.weights.tolist() == [1, 0, 0]
    found = explain("abc", risk, best, solution, TOL)
    assert found.loss_without[0] == pytest.approx(least(risk, best.select([1, 2])), rel=1e-7)
    alone = explain("a", risk, best.select([1]), solve_simplex(risk, best.select([1]), TOL), TOL)
    assert np.isnan(alone.loss_without).all()
    assert "1 of 1 member in use" in str(alone)
    assert "nan" not in str(alone) + alone._repr_html_()
    alone.plot().figure_.canvas.draw()


def test_a_gap_that_was_not_reached_is_said():
    risk, outputs = problem("squared")
    solution = solve_simplex(risk, outputs, TOL)
    with pytest.warns(ConvergenceWarning, match=r"the loss without 'm\d', .* of the minimum, but tol=0 requires 0"):
        explain([f"m{j}" for j in range(6)], risk, outputs, solution, 0.0)


def test_weights_that_are_not_the_best_are_called_so():
    risk, outputs = problem("squared", members=12, rows=60)
    names = [f"m{j}" for j in range(12)]
    best = explain(names, risk, outputs, solve_simplex(risk, outputs, TOL), TOL)
    chosen = greedy_selection(risk, outputs, 3, 1, 0.5, np.random.default_rng(0))
    greedy = explain(names, risk, outputs, chosen, TOL)
    assert (greedy.loss_without < greedy.loss).any()
    assert "are not optimal" in str(greedy)
    assert "are not optimal" not in str(best)


@pytest.mark.parametrize("kind", KINDS)
def test_figures_of_weights_that_are_not_the_best(kind):
    risk, outputs = problem(kind)
    weights = np.array([0.1, 0.0, 0.3, 0.2, 0.0, 0.4])
    found = explain([f"m{j}" for j in range(6)], risk, outputs, certify_weights(risk, outputs, weights), TOL)
    best = least(risk, outputs)
    assert found.best_loss == pytest.approx(best, rel=1e-7)
    assert found.loss - found.gap <= best * (1 + 1e-9)
    for j in range(6):
        others = outputs.select([i for i in range(6) if i != j])
        assert found.loss_without[j] == pytest.approx(least(risk, others), rel=1e-7)
    pred = outputs.combine(weights)
    for slope, answer in zip(found.alignment, outputs.predictions, strict=True):
        moved = pred + 1e-6 * (answer - pred)
        change = float(risk.value(moved[None]) - risk.value(pred[None])) / 1e-6
        assert slope == pytest.approx(change, abs=1e-4)
        assert np.sign(slope) == np.sign(change)
    words = " ".join(str(found).split())
    assert "Where it is positive, the weight is 0" not in words
    assert f"the best have loss {found.best_loss:.4g}" in words


def test_the_table_as_text():
    found, *_ = explained(names=["b", "a", "c", "d", "e", "f"], seconds=[1e-3] * 6)
    title, _, head, *rows = str(found).splitlines()
    rows = [row.split() for row in rows[:6]]
    assert title.startswith(f"Loss {found.loss:.4g}, proven within {numerals.format_bound(found.gap)} of the best")
    assert title.endswith(f"{found.used.sum()} of 6 members in use")
    assert re.split(" {2,}", head.strip()) == [
        "weight",
        "own loss",
        "loss without",
        "increase",
        "alignment",
        "s / 1,000 rows",
    ]
    listed = [found.names.index(row[0]) for row in rows]
    keys = [(-found.weights[j], found.own_loss[j]) for j in listed]
    assert keys == sorted(keys)
    for j, row in zip(listed, rows, strict=True):
        assert float(row[1]) == pytest.approx(found.weights[j], abs=5e-5)
        assert float(row[2]) == pytest.approx(found.own_loss[j], rel=1e-3)
        assert float(row[3]) == pytest.approx(found.loss_without[j], rel=1e-3)
        if found.used[j]:
            rise = 100 * (found.loss_without[j] / found.loss - 1)
            assert float(row[4]) == pytest.approx(rise, rel=0.06)
        else:
            assert float(row[4]) == pytest.approx(found.alignment[j], rel=0.06)
    assert len({len(line) for line in str(found).splitlines()[2:9]}) == 1


def test_frame():
    found, *_ = explained(seconds=[1e-3, 2e-3, 3e-3, 4e-3, 5e-3, 6e-3])
    frame = found.to_frame()
    assert list(frame.index) == [found.names[j] for j in found.order]
    for j, name in enumerate(found.names):
        expected = [found.weights[j], found.own_loss[j], found.loss_without[j], found.alignment[j], 1.0 + j]
        assert frame.loc[name].tolist() == expected
    assert "seconds_per_1000_rows" not in explained()[0].to_frame()


HOSTILE = ["<script>alert(1)</script>", "a & 'b'", "$x$ and $", "\\frac{", "100 % _^", "x" * 80]


def test_names_are_escaped(tmp_path):
    found, *_ = explained(names=HOSTILE)
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a &amp; &#x27;b&#x27;" in page
    found.plot().figure_.savefig(tmp_path / "hostile.png")
    step = PathStep(2, 1.0, 0.1, ("<b>", "c"), np.array([0.5, 0.5]))
    path = (step, PathStep(1, 1.5, 0.1, ("c",), np.ones(1)))
    assert "<td>&lt;b&gt;</td>" in PruningPath(path)._repr_html_()


def test_the_picture_shows_the_figures():
    found, *_ = explained()
    shown = found.plot()
    order, used = found.order, found.used[found.order]
    bars = [bar.get_width() for bar in shown.axes_["weight"].patches]
    np.testing.assert_allclose(bars, found.weights[order], rtol=1e-12)
    dots = shown.axes_["without"].lines[1]
    np.testing.assert_array_equal(dots.get_xdata(), found.loss_without[order][used])
    np.testing.assert_array_equal(dots.get_ydata(), np.flatnonzero(used))
    own = np.concatenate([line.get_xdata() for line in shown.axes_["own"].lines[1:]])
    np.testing.assert_array_equal(own, np.concatenate([found.own_loss[order][used], found.own_loss[order][~used]]))
    words = [text.get_text() for text in shown.axes_["weight"].texts]
    assert all(("alignment +" in text) == (not there) for text, there in zip(words, used, strict=True))
    assert [label.get_text() for label in shown.axes_["weight"].get_yticklabels()] == [found.names[j] for j in order]


def test_the_picture_of_many_members_says_what_it_leaves_out():
    found, *_ = explained(members=60, rows=100)
    shown = found.plot()
    assert len(shown.axes_["weight"].patches) == 40
    assert "20 more members" in shown.ax_.get_title(loc="left")
    _, ax = plt.subplots()
    assert found.plot(ax).ax_ is ax


def test_parts_are_joined():
    (one, *_), (two, *_) = explained("squared", seconds=[1.0] * 6), explained("squared", seed=1, seconds=[2.0] * 6)
    both = Explanation.joined([one, two], [0.25, 0.75])
    assert both.names == one.names + two.names
    assert both.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(both.weights[:6], one.weights / 4)
    assert both.loss == pytest.approx(0.25 * one.loss + 0.75 * two.loss)
    assert both.gap == pytest.approx(0.25 * one.gap + 0.75 * two.gap)
    # without a member its own part changes, the other stays as it is
    for j in range(6):
        assert both.loss_without[j] == pytest.approx(0.25 * one.loss_without[j] + 0.75 * two.loss)
        assert both.loss_without[6 + j] == pytest.approx(0.25 * one.loss + 0.75 * two.loss_without[j])
    np.testing.assert_array_equal(both.alignment, np.concatenate([one.alignment, two.alignment]))
    assert both.seconds_all == 18
    assert Explanation.joined([one, explained(seed=2)[0]], [0.5, 0.5]).seconds is None


def pruned():
    found, risk, outputs, solution = explained(members=12, rows=60)
    return PruningPath(
        tuple(
            PathStep(len(s.used), s.loss, s.gap, tuple(found.names[j] for j in s.used), s.weights[s.used])
            for s in backward_elimination(risk, outputs, solution, TOL)
        )
    )


def test_a_path_shows_every_size():
    path = pruned()
    sizes = path.sizes.tolist()
    assert sizes == [step.size for step in path.steps] == sorted(sizes, reverse=True)
    title, _, head, *rows = str(path).splitlines()
    first, last = path.steps[0], path.steps[-1]
    assert title.startswith(f"Pruning path: loss {first.loss:.4g} with {first.size} members, {last.loss:.4g} with 1 (+")
    assert head.split() == ["loss", "increase", "removed"]
    for row, step in zip(rows, path.steps, strict=False):
        size, loss, *_ = row.split()
        assert int(size) == step.size
        assert float(loss) == pytest.approx(step.loss, rel=1e-3)
    frame = path.to_frame()
    assert frame.index.tolist() == sizes
    assert frame.loss.tolist() == path.losses.tolist()
    assert frame.gap.tolist() == path.gaps.tolist()
    assert frame.members.tolist() == [step.names for step in path.steps]


def test_each_step_names_the_removed_members():
    path = pruned()
    rows = str(path).splitlines()[4 : 3 + len(path.steps)]
    for before, after, row in zip(path.steps[:-1], path.steps[1:], rows, strict=True):
        removed = row.split(";")[0]
        assert set(re.findall(r"m\d+", removed)) == set(before.names) - set(after.names)


def test_a_member_that_comes_back_is_named():
    pair = PathStep(2, 1.0, 0.0, ("a", "b"), np.array([0.5, 0.5]))
    alone = PathStep(1, 1.5, 0.0, ("c",), np.ones(1))
    assert str(PruningPath((pair, alone))).splitlines()[4].endswith("a, b; c is back")


def test_the_picture_of_a_path():
    path = pruned()
    display = path.plot()
    np.testing.assert_array_equal(display.line_.get_xdata(), path.sizes)
    np.testing.assert_array_equal(display.line_.get_ydata(), path.losses)
    assert display.mark_ is None
    mark = path.plot(size=3).mark_
    (step,) = (step for step in path.steps if step.size == 3)
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (3, step.loss)
    with pytest.raises(ValueError, match=r"size=99 is not on the path: choose one of \["):
        path.plot(size=99)
    _, ax = plt.subplots()
    assert path.plot(ax).ax_ is ax


def test_frames_name_pandas_where_it_is_missing(monkeypatch):
    found, path = explained()[0], pruned()
    monkeypatch.setitem(sys.modules, "pandas", None)
    for table in (found, path):
        with pytest.raises(ModuleNotFoundError, match=r"to_frame\(\) needs pandas: pip install pandas"):
            table.to_frame()


@given(st.floats(1e-300, 1e300))
def test_a_bound_is_never_written_smaller_than_it_is(gap):
    assert gap <= float(numerals.format_bound(gap)) <= 1.11 * gap


def test_matplotlib_is_named_where_it_is_missing(monkeypatch):
    found, *_ = explained()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*\[plot\]"):
        found.plot()


def test_no_warning_at_a_loss_of_zero():
    risk, outputs = problem("squared")
    perfect = Outputs([risk.y, risk.y.clone(), outputs.predictions[0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain("abc", risk, perfect, solve_simplex(risk, perfect, TOL), TOL)
    assert found.loss == 0
    assert "%" not in str(found)


def test_examples_in_the_docs():
    for module in (numerals, text, explanation, pruning_path):
        done = doctest.testmod(module)
        assert done.attempted > 0
        assert done.failed == 0
