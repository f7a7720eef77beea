"""Displays: what is drawn are the model's own numbers."""

import doctest
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_absolute_error

import gce
from gce.inspection import partial_dependence
from gce.inspection.plotting import (
    StagedErrorDisplay,
    TrainingDisplay,
    WeightsDisplay,
    calibration_display,
    partial_dependence_display,
    residual_display,
)
from gce.inspection.plotting.readings import TrainingCurves
from gce.training import family_weights

mpl.use("Agg")
import matplotlib.pyplot as plt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
NUMBERS = X[:, 0] + 0.3 * RNG.normal(size=90)
CLASSES = np.array(["a", "b", "c"])[np.digitize(NUMBERS, [-0.5, 0.5])]
TINY = {"max_atoms": 6, "cv": 2, "basis": gce.bases.Neural(hidden=5, max_epochs=30), "random_state": 0}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def _learned(model):
    # a fit that stops at once would make every picture trivial
    assert model.n_iter_ > 3
    return model


@pytest.fixture(scope="module")
def regressor():
    return _learned(gce.GCERegressor(**TINY).fit(X, NUMBERS))


@pytest.fixture(scope="module")
def classifier():
    return _learned(gce.GCEClassifier(**TINY).fit(X, CLASSES))


@pytest.fixture(scope="module")
def jointly():
    return gce.NGCERegressor(n_atoms=4, hidden=3, max_epochs=5, random_state=0).fit(X, NUMBERS)


def column(model, name):
    return [entry[name] for entry in model.history_]


def test_training_is_the_history(regressor):
    shown = TrainingDisplay.from_estimator(regressor)
    for line, name in ((shown.risk_, "risk"), (shown.validation_, "validation"), (shown.gap_, "gap_lower")):
        np.testing.assert_array_equal(line.get_xdata(), column(regressor, "t"))
        np.testing.assert_array_equal(line.get_ydata(), column(regressor, name))
    assert shown.figure_ is shown.ax_.figure
    assert shown.ax_validation_ is shown.ax_
    np.testing.assert_array_equal(shown.curves.best, [regressor.result_.families[0].best_round])
    assert "lower estimate" in shown.gap_.get_label()


def test_training_of_epochs_has_no_gap(jointly):
    shown = TrainingDisplay.from_estimator(jointly)
    assert shown.gap_ is None
    assert shown.ax_.get_xlabel() == "epoch"
    assert shown.curves.best.tolist() == [[1 + int(np.argmin(column(jointly, "validation")))]]


def test_training_without_held_out_rows_draws_no_validation():
    model = gce.GCERegressor(**TINY | {"cv": None, "validation_fraction": None}).fit(X, NUMBERS)
    shown = TrainingDisplay.from_estimator(model)
    assert shown.validation_ is None
    np.testing.assert_array_equal(shown.curves.best, [[model.n_iter_]])


def test_a_scorer_has_an_axis_of_its_own():
    model = gce.GCEClassifier(scoring="accuracy", **TINY).fit(X, CLASSES)
    shown = TrainingDisplay.from_estimator(model)
    assert shown.validation_.axes is shown.ax_validation_ is not shown.ax_
    np.testing.assert_array_equal(shown.validation_.get_ydata(), column(model, "validation"))


def test_a_pools_gap_is_a_certificate_and_its_scale_logarithmic():
    pool = gce.bases.Pool([lambda X: np.tanh(X[:, 0]), lambda X: -np.tanh(X[:, 0]), lambda X: np.tanh(X[:, 1])])
    model = gce.GCERegressor(basis=pool, bound=5.0, cv=None, random_state=0, max_iter=30).fit(X, np.tanh(X[:, 0]))
    shown = TrainingDisplay.from_estimator(model)
    assert shown.gap_.get_label() == "suboptimality (proved)"
    assert shown.ax_.get_yscale() == "log"


@pytest.mark.parametrize("name", ["regressor", "classifier", "jointly"])
def test_weights_are_all_drawn_and_sum_to_one(name, request):
    model = request.getfixturevalue(name)
    shown = WeightsDisplay.from_estimator(model)
    drawn = [bar.get_height() for bars in shown.bars_ for bar in bars]
    # a bar is kept as its two ends
    np.testing.assert_allclose(np.sort(drawn), np.sort(model.ensemble_.weights.numpy()), rtol=1e-12)
    assert sum(drawn) == pytest.approx(1)


def test_weights_stand_over_the_round_that_made_them(regressor):
    shown = WeightsDisplay.from_estimator(regressor)
    weights, origin = regressor.ensemble_.weights.numpy(), regressor.ensemble_.origin.numpy()
    for bars, m in zip(shown.bars_, np.unique(origin[:, 0]), strict=True):
        own = {born: w for (member, born), w in zip(origin, weights, strict=True) if member == m}
        drawn = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars}
        assert drawn == pytest.approx(own, rel=1e-12)
    tops = {}
    for bar in (bar for bars in shown.bars_ for bar in bars):
        tops[bar.get_x()] = max(tops.get(bar.get_x(), 0), bar.get_y() + bar.get_height())
    assert sum(tops.values()) == pytest.approx(1)


def test_staged_error_ends_at_the_score(regressor, classifier):
    shown = StagedErrorDisplay.from_estimator(classifier, X, CLASSES)
    assert len(shown.line_.get_ydata()) == classifier.n_iter_
    assert shown.line_.get_ydata()[-1] == pytest.approx(1 - classifier.score(X, CLASSES))
    weight = RNG.uniform(size=90)
    shown = StagedErrorDisplay.from_estimator(regressor, X, NUMBERS, sample_weight=weight, error=mean_absolute_error)
    expected = np.average(np.abs(regressor.predict(X) - NUMBERS), weights=weight)
    assert shown.errors[-1] == pytest.approx(expected)
    assert "mean absolute error" in shown.ax_.get_ylabel()


def test_displays_share_the_axes_they_are_given(regressor):
    _, ax = plt.subplots()
    first = StagedErrorDisplay.from_estimator(regressor, X, NUMBERS, ax=ax, color="black")
    again = first.plot(ax, name="again")
    assert first.ax_ is again.ax_ is ax
    assert len(ax.get_lines()) == 2
    assert ax.get_lines()[0].get_color() == "black"


@pytest.fixture(scope="module")
def mixed():
    bases = {"tree": "tree", "forest": "forest", "neural": gce.bases.Neural(hidden=5, max_epochs=30)}
    with pytest.MonkeyPatch.context() as patch:
        # no family is left out
        patch.setattr(family_weights, "FEWER_FAMILIES", -1.0)
        return gce.GCERegressor(basis=bases, max_atoms=6, cv=2, random_state=0).fit(X, NUMBERS)


def test_each_family_has_axes_of_its_own(mixed):
    shown = TrainingDisplay.from_estimator(mixed)
    families = mixed.result_.families
    assert len(shown.axes_) == len(families) == 3
    for i, family in enumerate(families):
        assert family.name in shown.axes_[i].get_title()
        for line, name in (
            (shown.risk_[i], "risk"),
            (shown.validation_[i], "validation"),
            (shown.gap_[i], "gap_lower"),
        ):
            assert line.axes is shown.axes_[i]
            np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(family.history) + 1))
            np.testing.assert_array_equal(line.get_ydata(), [entry[name] for entry in family.history])
    shown.figure_.canvas.draw()
    # the forest interpolates its rows: its training risk would flatten all that is drawn beside it
    assert not shown.risk_[1].get_visible()
    for panel in shown.axes_:
        low, high = panel.get_ylim()
        assert panel.get_yscale() == "linear" or high / low < 1e9
    scored = gce.GCERegressor(basis=["tree", "symmetric"], max_atoms=4, cv=2, scoring="r2", random_state=0)
    twins = TrainingDisplay.from_estimator(scored.fit(X, NUMBERS))
    twins.figure_.canvas.draw()
    assert all(twin is not panel for twin, panel in zip(twins.ax_validation_, twins.axes_, strict=True))


def test_rounding_errors_do_not_flatten_curves():
    rounds = np.arange(1.0, 6.0)
    gap = np.array([100.0, 10.0, 1.0, 0.1, 1e-16])
    columns = {"risk": 2 / rounds, "seconds": rounds, "validation": 3 / rounds, "gap": gap}
    rest = {"members": {}, "families": ("tree",), "best": np.array([[5]]), "first": np.zeros(1, dtype=np.intp)}
    curves = TrainingCurves("round", rounds, **columns, certified=True, watches_loss=True, **rest)
    shown = TrainingDisplay(curves).plot()
    assert shown.ax_.get_yscale() == "log"
    low, _ = shown.ax_.get_ylim()
    assert 1e-3 < low < 0.1
    np.testing.assert_array_equal(shown.gap_.get_ydata(), gap)


def test_staged_errors_of_families_stand_apart(mixed):
    shown = StagedErrorDisplay.from_estimator(mixed, X, NUMBERS)
    rounds = [len(family.rounds) for family in mixed.result_.families]
    assert len(shown.errors) == sum(rounds) + 1
    drawn = [line.get_ydata() for line in shown.line_]
    assert [len(errors) for errors in drawn] == rounds
    np.testing.assert_array_equal(np.concatenate(drawn), shown.errors[:-1])
    assert shown.errors[-1] == pytest.approx(np.sqrt(np.mean((mixed.predict(X) - NUMBERS) ** 2)))
    assert len({panel.get_ylim() for panel in shown.axes_}) == 1
    again = shown.plot(shown.ax_, name="again")
    assert again.axes_ == shown.axes_


@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_partial_dependence_of_integers_is_drawn(kind):
    whole = np.random.default_rng(3).integers(0, 9, size=(90, 2))
    rows = {
        "array": lambda: whole,
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(whole, columns=["a", "b"]),
        "polars": lambda: pytest.importorskip("polars").DataFrame(whole, schema=["a", "b"]),
    }[kind]()
    model = gce.GCERegressor(basis="tree", max_atoms=4, cv=2, random_state=0).fit(rows, whole[:, 0] + whole[:, 1])
    shown = partial_dependence_display(model, rows, [1], grid_resolution=4, percentiles=(0, 1))
    expected = partial_dependence(model, rows, 1, grid_resolution=4, percentiles=(0, 1))
    np.testing.assert_allclose(shown.pd_results[0]["average"], expected.average, rtol=1e-9)
    np.testing.assert_allclose(shown.pd_results[0]["grid_values"][0], expected.grid_values[0], rtol=1e-12)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_partial_dependence_of_every_kind_of_column_is_drawn(library):
    pd = pytest.importorskip("pandas")
    numbers = np.random.default_rng(0).normal(size=(600, 3))
    kind = np.array(["red", "green", "blue"])[np.digitize(numbers[:, 1], [-0.5, 0.5])]
    level = np.array(["low", "high"])[(numbers[:, 2] > 0).astype(int)]
    columns = {"kind": kind, "x": numbers[:, 0], "level": pd.Categorical(level), "flag": numbers[:, 2] > 0.3}
    rows = pd.DataFrame(columns | {"day": pd.date_range("2020-01-01", periods=600, unit="us")})
    if library == "polars":
        rows = pytest.importorskip("polars").from_pandas(rows)
    y = numbers[:, 0] + 3 * (kind == "red") - (level == "low") * (kind != "blue") + (numbers[:, 2] > 0.3)
    model = gce.GCERegressor(basis="tree", max_iter=9, cv=2, random_state=0).fit(rows, y)
    # in another order than that of the fit
    turned = rows[["day", "flag", "level", "x", "kind"]]
    features = ["kind", "x", "level", "flag", ("kind", "level")]
    shown = partial_dependence_display(model, turned, features, grid_resolution=5)
    for feature, drawn in zip(features, shown.pd_results, strict=True):
        own = partial_dependence(model, rows, feature, grid_resolution=5)
        places = []
        for theirs, ours in zip(drawn["grid_values"], own.grid_values, strict=True):
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(theirs, ours, rtol=1e-12)
            places.append([list(ours).index(value) for value in theirs] if feature != "x" else list(range(len(ours))))
        np.testing.assert_allclose(drawn["average"], own.average[np.ix_([0], *places)], rtol=1e-9)
    by_place = partial_dependence_display(model, turned, [4], grid_resolution=5)
    np.testing.assert_array_equal(by_place.pd_results[0]["average"], shown.pd_results[0]["average"])
    with pytest.raises(ValueError, match=r"^column 'day' has dates, which .*: use gce\.inspection\.partial_dep"):
        partial_dependence_display(model, turned, ["x", "day"])


def test_partial_dependence_of_missing_categories_is_refused_in_a_sentence():
    rows = pytest.importorskip("pandas").DataFrame({"c": ["a", None, "b"] * 30, "x": X[:, 0]})
    model = gce.GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(rows, NUMBERS)
    with pytest.raises(ValueError, match=r"^column 'c' has missing categories, which .*: use gce\.inspection\."):
        partial_dependence_display(model, rows, ["c"])


def test_ensembles_and_results_are_shown_in_three_lines(regressor, mixed, jointly):
    for model in (regressor, mixed, jointly, regressor.reweight(X, NUMBERS)):
        ensemble, result = repr(model.ensemble_).splitlines(), repr(model.result_).splitlines()
        assert len(ensemble) == len(result) == 3
        assert max(map(len, ensemble + result)) < 200
        assert f"{len(model.ensemble_):,} atoms" in ensemble[0]
        assert f"{len(X)} rows" in result[0]
    assert all(
        f"{family.name} {w:.3g}" in repr(mixed.result_)
        for family, w in zip(mixed.result_.families, mixed.result_.family_weights, strict=True)
    )


def test_one_of_anything_is_in_the_singular():
    rows = X[:, :1]
    model = gce.GCERegressor(basis="tree", max_iter=1, cv=None, validation_fraction=None, random_state=0)
    result = model.fit(rows, rows[:, 0]).result_
    assert f"{len(X)} rows and 1 column, " in repr(result)
    text = repr(result) + repr(model.ensemble_)
    assert "(1 round)" in text
    assert "1 member" in text
    assert repr(model.ensemble_).startswith("ConvexEnsemble of 1 atom in 1 member\n")


def test_a_stack_is_shown_in_three_lines_and_has_no_rounds_to_plot():
    members = [(f"ridge{i}", Ridge(10.0**i)) for i in range(-3, 5)]
    stack = gce.ConvexStackingRegressor(members, cv=2, random_state=0).fit(X, NUMBERS)
    lines = repr(stack.result_).splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) < 200
    assert lines[0] == f"StackResult of 8 members and {len(X)} rows, {stack.result_.task.loss!r}"
    heaviest = max(stack.result_.models, key=dict(zip(stack.result_.models, stack.weights_, strict=True)).get)
    assert lines[1].startswith(f"  weights: {heaviest!r} {max(stack.weights_):.3g}, ")
    assert lines[1].endswith(", and 3 others")
    assert lines[2].endswith(f"{np.count_nonzero(stack.weights_)} in use")
    words = "^this ConvexStackingRegressor has no rounds to plot: a stack solves for its weights at once$"
    with pytest.raises(ValueError, match=words):
        TrainingDisplay.from_estimator(stack)
    with pytest.raises(ValueError, match=words):
        StagedErrorDisplay.from_estimator(stack, X, NUMBERS)


def test_stages_of_a_model_trained_at_once_are_refused(jointly):
    with pytest.raises(ValueError, match="this NGCERegressor has no rounds to plot"):
        StagedErrorDisplay.from_estimator(jointly, X, NUMBERS)


def test_calibration_of_many_classes_is_that_of_the_predicted_one(classifier):
    shown = calibration_display(classifier, X, CLASSES, n_bins=5)
    probability = classifier.predict_proba(X)
    np.testing.assert_array_equal(shown.y_prob, probability.max(1))
    # bins of equally many rows: their mean is the mean of all
    assert shown.prob_pred.mean() == pytest.approx(probability.max(1).mean(), abs=0.01)
    assert shown.prob_true.mean() == pytest.approx(classifier.score(X, CLASSES), abs=0.01)
    two = CLASSES == "a"
    model = gce.GCEClassifier(**TINY).fit(X, two)
    np.testing.assert_array_equal(calibration_display(model, X, two).y_prob, model.predict_proba(X)[:, 1])


def test_residuals_of_a_chosen_output():
    Y = np.stack([NUMBERS, X[:, 1]], 1)
    model = gce.GCERegressor(**TINY).fit(X, Y)
    shown = residual_display(model, X, Y, output=1, subsample=None)
    np.testing.assert_array_equal(shown.y_pred, model.predict(X)[:, 1])
    np.testing.assert_array_equal(shown.y_true, Y[:, 1])


def test_displays_for_the_other_task_are_refused(regressor, classifier):
    with pytest.raises(ValueError, match="got GCERegressor"):
        calibration_display(regressor, X, NUMBERS)
    with pytest.raises(ValueError, match="got GCEClassifier"):
        residual_display(classifier, X, CLASSES)


def test_without_matplotlib_the_extra_is_named(regressor, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"greedy-convex-ensemble\[plot\]"):
        TrainingDisplay.from_estimator(regressor)


LIGHT = """
import doctest
import subprocess
import sys
import gce.inspection, gce.theory
heavy = [name for name in sys.modules if name.startswith(("gce.inspection.report", "gce.estimators", "matplotlib"))]
assert not heavy, heavy
"""


def test_imports_load_neither_the_report_nor_matplotlib():
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", gce.inspection.__all__)
def test_examples_of_public_names(name):
    (found, *_) = doctest.DocTestFinder(recurse=False).find(getattr(gce.inspection, name), globs={})
    assert found.examples
    assert doctest.DocTestRunner().run(found).failed == 0
