"""Errors about data name the part of the data, or the parameter, that is odd."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge

from gce import ConvexStackingRegressor, GCEClassifier, GCERegressor, GCESurvival, Shards, bases, frank_wolfe, training

X = np.random.default_rng(0).normal(size=(24, 3))
y = X[:, 0] + 1.0
LABELS = (y > 1).astype(int)
DATES = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[LABELS]
TREE = {"basis": bases.Tree(max_leaf_nodes=3, min_samples_leaf=1), "max_iter": 2, "cv": 2, "random_state": 0}
SPARSE = torch.zeros(24).to_sparse()


def regressor(**given):
    return GCERegressor(**{**TREE, **given})


def stack():
    return ConvexStackingRegressor([("mean", DummyRegressor()), ("line", Ridge())], cv=2)


@pytest.mark.parametrize("name", ["sample_weight", "groups", "base_score"])
def test_a_tensor_without_an_array_is_named(name):
    with pytest.raises(ValueError, match=f"{name} is a torch tensor of layout torch.sparse_coo"):
        regressor().fit(X, y, **{name: SPARSE})


def test_tensors_of_targets_times_and_bounds_are_named():
    with pytest.raises(ValueError, match="y is a torch tensor"):
        regressor().fit(X, SPARSE)
    with pytest.raises(ValueError, match="bound must be a positive number"):
        regressor(bound=SPARSE).fit(X, y)
    model = GCESurvival(**TREE).fit(X, np.column_stack([LABELS, np.exp(y)]))
    with pytest.raises(ValueError, match="times is a torch tensor"):
        model.predict_survival_function(X, times=SPARSE)
    with pytest.raises(ValueError, match=r"times must be of shape \(t,\), got \[\[1, 2\]\]"):
        model.predict_survival_function(X, times=[[1, 2]])
    column = model.predict_survival_function(X, times=[[1.0], [2.0]])
    assert np.array_equal(column, model.predict_survival_function(X, times=[1.0, 2.0]))


@pytest.mark.parametrize("model", [regressor(), stack()])
def test_groups_have_one_entry_per_row(model):
    with pytest.raises(ValueError, match=r"groups must be of shape \(n,\).*got shape \(24, 2\)"):
        model.fit(X, y, groups=np.zeros((24, 2)))


def test_groups_of_one_column_are_groups():
    groups = np.arange(24) % 4
    column = regressor().fit(X, y, groups=pd.DataFrame({"shop": groups}))
    assert np.array_equal(column.predict(X), regressor().fit(X, y, groups=groups).predict(X))


def test_missing_values_of_objects_are_named():
    objects = y.astype(object)
    objects[3] = float("nan")
    with pytest.raises(ValueError, match="y has missing values"):
        regressor().fit(X, objects)
    with pytest.raises(ValueError, match="y has missing values"):
        stack().fit(X, y).score(X, objects)


@pytest.mark.parametrize("model", [regressor(), stack()])
def test_scores_need_numbers_one_per_row(model):
    model.fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.score(X, np.where(X[:, 0] > 0, np.nan, y))
    with pytest.raises(ValueError, match=r"y must have one target per row, got 0\.5"):
        model.score(X, 0.5)


def test_dates_are_compared_with_dates():
    dated, numbered = GCEClassifier(**TREE).fit(X, DATES), GCEClassifier(**TREE).fit(X, LABELS)
    assert dated.score(X, DATES) == numbered.score(X, LABELS)
    with pytest.raises(ValueError, match=r"y holds labels of type datetime64\[D\].*classes of the fit, \[0, 1\]"):
        numbered.score(X, DATES)
    with pytest.raises(ValueError, match="y holds labels of type int64"):
        dated.score(X, LABELS)


def test_validation_rows_are_named():
    with pytest.raises(ValueError, match=r"validation rows \(X_val, y_val\): y has missing values"):
        regressor(cv=None).fit(X, y, X_val=X, y_val=[None] * 24)


def test_a_class_is_no_table(tmp_path):
    model = regressor().fit(X, y)
    for call in (
        lambda: model.report(tmp_path / "report.html", pd.DataFrame, y),
        lambda: model.report(tmp_path / "report.html", pd.DataFrame, y, sample_weight=np.ones(24)),
        lambda: model.predict(pd.DataFrame),
        lambda: regressor().fit(pd.DataFrame, y),
        lambda: stack().fit(pd.DataFrame, y),
    ):
        with pytest.raises(ValueError, match="X is the class DataFrame: give rows"):
            call()


def test_a_member_that_cannot_be_copied_is_named():
    view = Ridge(alpha=memoryview(b"x"))
    with pytest.raises(ValueError, match=r"member 'line'.*cannot be copied"):
        ConvexStackingRegressor([("line", view), ("mean", LinearRegression())], cv=2).fit(X, y)
    with pytest.raises(ValueError, match=r"basis .*cannot be copied"):
        regressor(basis=bases.RegressorBasis(view)).fit(X, y)


def test_a_constraint_on_a_column_without_order_shows_both():
    frame = pd.DataFrame({"a": X[:, 0], "film": np.array(["u", "v"])[LABELS]})
    with pytest.raises(ValueError, match="monotonic_cst is -1 for 'film', which has no order because it is a"):
        regressor(monotonic_cst={"film": -1}).fit(frame, y)


@pytest.mark.parametrize("source", [b"x", np.array([1.0]), [pa.table({"a": [1.0], "y": [1.0]}), 3]])
def test_a_source_of_something_else_is_shown(source):
    with pytest.raises(TypeError, match=r"source must be pyarrow.RecordBatch.*: its item \d is of type (int|float64)"):
        regressor(cv=None).fit(Shards(source, target="y"))


def test_rows_that_are_not_those_of_the_fit_are_named():
    model = regressor().fit(X, y)
    with pytest.raises(ValueError, match="rows of positive weight, but 23 are given in X"):
        model.prune(1, X=X[1:], y=y[1:])
    with pytest.raises(ValueError, match="the rows of the fit, but not as it had them: give them in their order"):
        model.prune(1, X=X[::-1], y=y[::-1])
    with pytest.raises(ValueError, match="X, y, sample_weight or groups differ"):
        model.prune(1, X=X + 1, y=y)
    with pytest.raises(ValueError, match=r"leave out the rows \(X, y, sample_weight\)"):
        stack().fit(X, y).prune(1, X=X, y=y)


def test_callbacks_are_shown_as_they_were_given():
    with pytest.raises(ValueError, match=r"callbacks must be a list of callables, got \(1, 2\)"):
        regressor(callbacks=(1, 2)).fit(X, y)


@pytest.mark.parametrize("kind", [training.EarlyStopping, training.SharedEarlyStopping])
def test_early_stopping_takes_integers_of_eight_bits(kind):
    assert kind(n_iter_no_change=np.uint8(5), tol=np.float32(0)).n_iter_no_change - 6 == -1


def test_a_learning_rate_may_be_a_fraction():
    rates = [frank_wolfe.Boosting(rate) for rate in (0.5, Fraction(1, 2))]
    models = [regressor(algorithm=rate).fit(X, y) for rate in rates]
    assert np.array_equal(models[0].predict(X), models[1].predict(X))
