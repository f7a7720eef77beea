"""Values of the wrong type end in an error that names them, wherever they are given."""

import datetime
import decimal
import fractions
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from gce import (
    ConvexStackingClassifier,
    ConvexStackingRegressor,
    GCEClassifier,
    GCERegressor,
    GCESurvival,
    GreedySelectionRegressor,
    NGCERegressor,
    NNRegressor,
    Shards,
    bases,
    frank_wolfe,
    theory,
    training,
)

X = np.random.default_rng(0).normal(size=(24, 3))
y = X[:, 0] + 1.0
labels = (y > 1).astype(int)
TREE = {"basis": bases.Tree(max_leaf_nodes=3, min_samples_leaf=1), "max_iter": 2, "random_state": 0}


def regressor(**given):
    return GCERegressor(**{**TREE, **given})


def stack(**given):
    return ConvexStackingRegressor([("mean", DummyRegressor()), ("line", Ridge())], cv=2, **given)


@pytest.mark.parametrize("kind", [training.EarlyStopping, training.SharedEarlyStopping])
@pytest.mark.parametrize(
    ("name", "value"),
    [("tol", "absolute"), ("tol", b"x"), ("tol", -1.0), ("n_iter_no_change", 0), ("n_iter_no_change", [1])],
)
def test_parameters_of_early_stopping_are_checked(kind, name, value):
    with pytest.raises(ValueError, match=f"{kind.__name__}: {name} must be"):
        kind(**{"n_iter_no_change": 1, "tol": 0.0, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("target", 1), ("groups", 0.0), ("sample_weight", False), ("drop", len), ("drop", [1]), ("folder", 10**30)],
)
def test_parameters_of_shards_are_checked(name, value):
    batches = [pa.table({"a": X[:, 0], "y": y})]
    with pytest.raises(ValueError, match=f"Shards: {name} must be"):
        regressor().fit(Shards(batches, **{"target": "y", name: value}))


def test_a_source_of_shards_must_hold_something():
    with pytest.raises(TypeError, match="source must be paths or batches, got array"):
        Shards(np.array(None), target="y").open()


@pytest.mark.parametrize("value", ["frank_wolfe", ["a"] * 24, [1j] * 24, [10**400] * 24, datetime.date(2020, 1, 1)])
def test_weights_and_base_scores_must_be_numbers(value):
    with pytest.raises(ValueError, match="base_score must be numbers"):
        regressor().fit(X, y, base_score=value)
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        regressor().fit(X, y, sample_weight=value)


def test_a_base_score_whose_square_overflows_is_refused():
    with pytest.raises(ValueError, match=r"base_score has 1e\+300"):
        regressor().fit(X, y, base_score=np.full(24, 1e300))


def test_times_must_be_numbers():
    model = GCESurvival(**TREE).fit(X, np.column_stack([labels, np.exp(y)]))
    with pytest.raises(ValueError, match="times must be numbers, got 'sign'"):
        model.predict_survival_function(X, times="sign")


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, lambda t: t.to("meta")])
def test_a_tensor_without_values_in_memory_is_refused(make):
    with pytest.raises(ValueError, match="give a dense tensor of numbers"):
        regressor().fit(make(torch.from_numpy(X)), y)


def test_a_tensor_of_bfloat16_is_read():
    X16 = torch.from_numpy(X).bfloat16()
    assert np.array_equal(regressor().fit(X16, y).predict(X16), regressor().fit(X16.float(), y).predict(X16.float()))


@pytest.mark.parametrize("index", [-1, 3, 10**6])
@pytest.mark.parametrize("model", [regressor(), stack()])
def test_sparse_rows_with_indices_outside_are_refused(model, index):
    rows = sp.csr_array(X)
    model.fit(rows, y)
    rows.indices[0] = index
    for call in (lambda: model.predict(rows), lambda: model.fit(rows, y)):
        with pytest.raises(ValueError, match="with indices outside of it"):
            call()


@pytest.mark.parametrize("indptr", [[0, 4, 2], [0, 2, 9], [-1, 2, 4]])
def test_sparse_rows_whose_pointers_are_wrong_are_refused(indptr):
    rows = sp.csr_array(np.ones((2, 2)))
    rows.indptr = np.array(indptr)
    with pytest.raises(ValueError, match="with indices outside of it"):
        stack().fit(rows, [0.0, 1.0])


@pytest.mark.parametrize("value", [datetime.date(2020, 1, 1), "x", None])
def test_a_probability_of_a_bound_must_be_a_number(value):
    with pytest.raises(ValueError, match="delta must be strictly between 0 and 1"):
        theory.bound_report(regressor().fit(X, y), X, y, delta=value)


@pytest.mark.parametrize("table", [pd.DataFrame({"a": X[:, 0], "b": ["u", "v"] * 12}), [[1.0, "u"]] * 24])
def test_a_member_that_takes_numbers_only_is_explained(table):
    with pytest.raises(ValueError, match=r"member 'line' .* cannot be fitted to these rows, which have .*'(b|u)'"):
        stack().fit(table, y)
    model = stack().fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"member 'line' .* cannot compute predict of these rows"):
        model.predict(table if isinstance(table, list) else table.to_numpy())


@pytest.mark.parametrize(("rows", "words"), [([], "0 samples"), ({"a": [1.0]}, "X is a dict")])
def test_a_stack_needs_rows(rows, words):
    with pytest.raises(ValueError, match=words):
        stack().fit(rows, y)


@pytest.mark.parametrize("target", [[1.0, [2.0, 3.0], *y[2:]], pd.DataFrame(index=range(24))])
def test_targets_must_have_one_shape(target):
    for model in (regressor(), stack()):
        with pytest.raises(ValueError, match=r"y (must have as many values|is a data frame without columns)"):
            model.fit(X, target)


def test_a_fraction_beyond_float64_is_refused():
    with pytest.raises(ValueError, match="y holds a number of 401 digits"):
        regressor().fit(X, [fractions.Fraction(10**400), *y[1:]])


def test_labels_that_cannot_be_sorted_are_refused():
    mixed = np.array([datetime.time(1), 2, *labels[2:]], dtype=object)
    for model in (GCEClassifier(**TREE), ConvexStackingClassifier([("line", LogisticRegression())], cv=2)):
        with pytest.raises(ValueError, match="y holds labels that cannot be sorted"):
            model.fit(X, mixed)
        with pytest.raises(ValueError, match=r"y holds 1e\+300 as a label"):
            model.fit(X, np.where(labels, 1e300, 0.0))


@pytest.mark.parametrize("model", [regressor(), stack()])
def test_groups_that_cannot_be_compared_are_refused(model):
    with pytest.raises(ValueError, match="groups cannot be compared"):
        model.fit(X, y, groups=[{}] * 24)


@pytest.mark.parametrize("model", [regressor(), stack()])
def test_a_score_reads_targets_and_weights_as_a_fit_does(model):
    model.fit(X, y)
    assert model.score(X, y, np.full(24, 1.7e308)) == pytest.approx(model.score(X, y))
    assert model.score(X, torch.from_numpy(y)) == model.score(X, y)
    with pytest.raises(ValueError, match="beyond float64"):
        model.score(X, y * 1e160)
    with pytest.raises(ValueError, match="sample_weight has missing values"):
        model.score(X, y, [None] * 24)


def test_a_scorer_must_return_a_number():
    with pytest.raises(ValueError, match="scoring returned 'good': it must return one number"):
        regressor(cv=2, scoring=lambda *given: "good").fit(X, y)


@pytest.mark.parametrize(
    "given", [{"time_limit": 10**400}, {"tol": np.timedelta64(1, "s")}, {"max_iter": np.timedelta64(1, "D")}]
)
def test_numbers_that_are_none_are_refused(given):
    with pytest.raises(ValueError, match=f"{next(iter(given))} must be"):
        regressor(**given).fit(X, y)


def test_arrow_integers_that_float64_rounds_are_read():
    table = pa.table({"a": X[:, 0], "b": pa.array([2**63, None] * 12, pa.uint64())})
    assert np.isfinite(regressor().fit(table, y).predict(table)).all()


JOBS = """
import numpy as np
from sklearn.linear_model import Ridge
from gce import ConvexStackingRegressor, GCERegressor, NGCERegressor, NNRegressor
X = np.random.default_rng(0).normal(size=(600, 3))
for model in (
    *(GCERegressor(basis=basis, max_iter=2, n_jobs=10**6) for basis in ("tree", "forest", "neural")),
    NGCERegressor(n_atoms=2, max_epochs=2, n_jobs=10**6), NNRegressor(max_epochs=2, n_jobs=10**6),
    ConvexStackingRegressor([("line", Ridge())], cv=2, n_jobs=10**6),
):
    assert np.isfinite(model.fit(X, X[:, 0]).predict(X)).all()
"""


def test_a_million_jobs_do_not_end_the_process():
    # in a process of its own: threads of a pool stay
    done = subprocess.run([sys.executable, "-c", JOBS], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", [np.datetime64("NaT", "s"), np.timedelta64("NaT", "D"), pd.NaT], ids=repr)
@pytest.mark.parametrize("values", [["u", "v"], [1.0, 2.5]])
@pytest.mark.parametrize("make", [pd.DataFrame, np.array], ids=["frame", "array"])
def test_a_missing_date_among_other_values_is_a_missing_value(make, values, missing):
    def table(gap):
        column = np.array([gap, *(values * 12)[1:]], dtype=object)
        return make(np.column_stack([column, X.astype(object)]))

    for model in (regressor(), GCERegressor(basis=bases.Neural(hidden=2, max_epochs=2), max_iter=2, random_state=0)):
        wanted = model.fit(table(None), y).predict(table(None))
        assert np.array_equal(model.predict(table(missing)), wanted)
        assert np.array_equal(model.fit(table(missing), y).predict(table(None)), wanted)


#: Beyond float64, on systems that have such numbers.
BEYOND = np.finfo(np.longdouble).max if np.finfo(np.longdouble).maxexp > 1024 else np.inf


@pytest.mark.parametrize("values", [[np.inf, -np.inf], [BEYOND, 0]])
def test_infinite_numbers_are_refused_without_a_warning(values):
    rows = np.column_stack([np.resize(np.array(values, dtype=np.longdouble), 24), X])
    model = regressor().fit(rows[:, 1:], y)
    for call in (lambda: model.fit(rows, y), lambda: model.predict(rows[:, :3])):
        with pytest.raises(ValueError, match="infinity"):
            call()


def test_a_class_is_no_scorer():
    with pytest.raises(ValueError, match=r"scoring must be .* a callable, got <class"):
        regressor(scoring=type("Scorer", (), {})).fit(X, y)


@pytest.mark.parametrize("value", [(), "None", 1 + 2j, {"a": 1}], ids=repr)
def test_whether_a_file_is_resumable_is_true_or_false(value, tmp_path):
    with pytest.raises(ValueError, match="resumable must be True or False or None"):
        regressor().fit(X, y).save(tmp_path / "m.safetensors", resumable=value)


def test_a_device_without_values_is_refused():
    with pytest.raises(ValueError, match="device='meta' keeps no values"):
        regressor(device="meta").fit(X, y)


def test_long_values_are_shortened_in_errors():
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match=r"got k='x+\.\.\. and tol=1$"):
        model.prune(X=X, y=y, k="x" * 10_000, tol=1)
    with pytest.raises(ValueError, match=r"target='x+\.\.\. is not a column"):
        regressor().fit(Shards([pa.table({"a": X[:, 0], "y": y})], target="x" * 10_000))


def test_classes_of_two_dimensions_are_not_those_of_a_fit_of_one():
    model = GCEClassifier(**TREE).fit(X, labels)
    with pytest.raises(ValueError, match=r"y must have one class per row, in the shape \(n,\), got \(24, 2\)"):
        model.prune(X=X, y=np.column_stack([labels, 1 - labels]), k=1)


@pytest.mark.skipif(sys.platform == "win32", reason="names of files are UTF-16")
def test_a_path_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\\ud800.* has characters that no file's name can have"):
        regressor().fit(X, y).save(tmp_path / "\ud800")


def test_fractions_and_large_integers_are_numbers():
    rates = {"learning_rate": fractions.Fraction(3, 4), "min_learning_rate": fractions.Fraction(1, 2)}
    found, wanted = (
        regressor(basis=bases.Neural(hidden=2, max_epochs=2, **{name: kind(rate) for name, rate in rates.items()}))
        .fit(X, y)
        .predict(X)
        for kind in (fractions.Fraction, float)
    )
    assert np.array_equal(found, wanted)
    assert np.isfinite(regressor(algorithm=frank_wolfe.Blended(laziness=2**64)).fit(X, y).predict(X)).all()


@pytest.mark.parametrize("value", [2**31, 10**30])
def test_sizes_beyond_32_bits_are_refused(value):
    for model in (NNRegressor(hidden=value), regressor(basis=bases.Neural(hidden=value))):
        with pytest.raises(ValueError, match="hidden must be an integer from 1 to 2147483647"):
            model.fit(X, y)
    with pytest.raises(ValueError, match="n_bags must be an integer from 1 to 2147483647"):
        GreedySelectionRegressor([("line", Ridge())], n_bags=value).fit(X, y)


def test_a_scorer_takes_a_model_rows_and_targets():
    with pytest.raises(ValueError, match=r"takes \(.*\): a scorer takes the arguments \(estimator, X, y\)"):
        regressor(scoring=lambda y, pred: 0.0).fit(X, y)


def test_verbosity_may_be_any_integer(capfd):
    stack(verbose=np.uint64(1)).fit(X, y)


def test_missing_labels_and_infinite_targets_are_refused_without_a_warning():
    model = GCEClassifier(**TREE).fit(X, labels.astype(float))
    with pytest.raises(ValueError, match="NaN"):
        model.score(X, np.where(np.arange(24) == 3, np.nan, labels))
    with pytest.raises(ValueError, match="infinity"):
        regressor().fit(X, y).pruning_path(X=X, y=np.where(np.arange(24) < 2, [np.inf, -np.inf] * 12, y))


@pytest.mark.parametrize("value", [1e101, -1e308])
def test_an_offset_whose_square_overflows_is_refused(value):
    with pytest.raises(ValueError, match=r"offset must be 'auto' or in \[-1e\+100, 1e\+100\]"):
        regressor(offset=value).fit(X, y)


def test_integers_beyond_float64_are_refused_in_weights_and_pools():
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        regressor().fit(X, y, sample_weight=10**400)
    with pytest.raises(ValueError, match="Pool: outputs must be an array of numbers"):
        regressor(basis=bases.Pool(outputs=10**400)).fit(X, y)


def test_long_text_among_dates_is_shortened():
    column = np.array(["x" * 10_000, datetime.date(2020, 1, 1)] * 12, dtype=object)
    with pytest.raises(TypeError, match=r"mixes text \('x+\.\.\.\) and dates") as error:
        regressor().fit(pd.DataFrame({"a": column, "b": X[:, 0]}), y)
    assert len(str(error.value)) < 500


def test_large_targets_of_other_rows_are_refused_by_stacks():
    for call in (stack().fit, stack().fit(X, y).reweight):
        with pytest.raises(ValueError, match=r"y holds 1e\+200"):
            call(X, np.where(np.arange(24) == 3, 1e200, y))


def test_labels_of_half_precision_are_scored():
    several = np.column_stack([labels, 1 - labels])
    model = GCEClassifier(**TREE).fit(X, several)
    assert model.score(X, several.astype(np.float16)) == model.score(X, several)


def test_a_neuron_of_no_column_is_fitted():
    model = GCERegressor(basis=bases.Neuron(max_epochs=2), max_iter=2, random_state=0)
    assert np.isfinite(model.fit(np.full((24, 2), np.nan), y).predict(X[:, :2])).all()


@pytest.mark.parametrize("parameter", ["patience", "last_epochs"])
def test_epochs_beyond_32_bits_are_refused(parameter):
    for model in (regressor(basis=bases.Neural(**{parameter: 2**31})), NGCERegressor(**{parameter: 2**31})):
        with pytest.raises(ValueError, match=rf"{parameter} must be an integer from \d to 2147483647"):
            model.fit(X, y)


def test_trees_of_a_forest_beyond_32_bits_are_refused():
    with pytest.raises(ValueError, match="n_estimators must be an integer from 1 to 2147483647"):
        regressor(basis=bases.Forest(n_estimators=2**31)).fit(X, y)


def test_numbers_of_atoms_of_eight_bits_are_those_of_any_integer():
    small = {"hidden": 2, "max_epochs": 3, "random_state": 0}
    models = [NGCERegressor(n_atoms=kind(130), **small).fit(X, y) for kind in (np.uint8, int)]
    assert np.array_equal(models[0].predict(X), models[1].predict(X))


@pytest.mark.parametrize("value", [[np.inf, -np.inf], [1e308, 1e308]])
def test_targets_whose_sum_is_not_finite_are_refused_without_a_warning_for_frames_too(value):
    with pytest.raises(ValueError, match=r"infinity|y holds 1e\+308"):
        regressor().fit(pd.DataFrame(X), np.where(np.arange(24) < 2, value * 12, y))


def test_decimals_that_are_no_numbers_are_refused_by_bounds():
    model = GCEClassifier(**TREE).fit(X, labels)
    with pytest.raises(ValueError, match="labels that cannot be sorted"):
        model.bound_report(X, np.array([decimal.Decimal("NaN"), decimal.Decimal(1)] * 12, dtype=object))
