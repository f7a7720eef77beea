"""Partial dependence against scikit-learn's."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.inspection import PartialDependenceDisplay
from sklearn.inspection import partial_dependence as theirs

import gce
from gce.inspection import partial_dependence as ours

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + X[:, 1] * X[:, 2]
FRAME = pd.DataFrame(
    {"a": X[:, 0], "c": RNG.choice(list("xyz"), 60), "t": pd.date_range("2020", periods=60, freq="7D")}
)
#: The same rows in other blocks.
ROUNDING = 1e-12


class Truth:
    """An external model that is right."""

    def predict(self, rows):
        return rows[:, 0] + rows[:, 1] * rows[:, 2]


def assert_same(found, expected):
    assert [list(own) for own in found.grid_values] == [list(own) for own in expected.grid_values]
    for name in ("average", "individual"):
        assert found[name].shape == expected[name].shape
        assert np.abs(found[name] - expected[name]).max() < ROUNDING


@pytest.mark.parametrize("y", [Y, np.stack([Y, X[:, 1]], 1)], ids=["one", "two"])
@pytest.mark.parametrize("features", [[0], [2, 0]])
def test_regressors_have_the_same_dependence(y, features):
    model = gce.GCERegressor(max_iter=3, random_state=0).fit(X, y)
    given = {"kind": "both", "grid_resolution": 6, "sample_weight": RNG.random(60)}
    assert_same(ours(model, X, features, **given), theirs(model, X, features, **given))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_classifiers_of_frames_have_the_same_dependence(classes, response):
    model = gce.GCEClassifier(max_iter=3, random_state=0).fit(FRAME, RNG.integers(0, classes, 60))
    given = {"kind": "both", "grid_resolution": 5, "response_method": response}
    assert_same(ours(model, FRAME, "a", **given), theirs(model, FRAME, ["a"], **given))
    assert_same(ours(model, FRAME, "c", **given), theirs(model, FRAME, ["c"], categorical_features=["c"], **given))


def test_each_of_two_labels_has_a_dependence():
    labels = np.stack([X[:, 0] > 0, X[:, 1] > 0], 1).astype(int)
    model = gce.GCEClassifier(basis="tree", max_iter=5, random_state=0).fit(X, labels)
    found = ours(model, X, 0, custom_values={0: [-1.0, 1.0]})
    by_hand = [model.predict_proba(np.column_stack([np.full(60, value), X[:, 1:]])).mean(0) for value in (-1.0, 1.0)]
    assert found.average.shape == (2, 2)
    assert np.abs(found.average.T - by_hand).max() < ROUNDING
    assert found.average[0, 0] < found.average[0, 1]


def test_dates_are_replaced_with_their_parts():
    model = gce.GCERegressor(basis="tree", max_iter=5, random_state=0).fit(FRAME, FRAME["t"].dt.month.astype(float))
    moments = pd.to_datetime(["2020-02-05", "2020-11-05"])
    found = ours(model, FRAME, "t", custom_values={"t": moments})
    by_hand = [model.predict(FRAME.assign(t=moment)).mean() for moment in moments]
    assert np.abs(found.average[0] - by_hand).max() < ROUNDING
    assert found.grid_values[0].dtype == "datetime64[s]"


def test_dates_with_a_time_zone_are_given_with_one():
    zoned = FRAME.assign(t=pd.date_range("2020", periods=60, freq="5h", tz="Asia/Tokyo"))
    model = gce.GCERegressor(basis="tree", max_iter=5, random_state=0).fit(zoned, zoned["t"].dt.hour.astype(float))
    naive = pd.to_datetime(["2020-01-05 03:00", "2020-01-05 20:00"])
    moments = naive.tz_localize("Asia/Tokyo")
    by_hand = [model.predict(zoned.assign(t=moment)).mean() for moment in moments]
    assert by_hand[0] + 1 < by_hand[1]
    for same in (moments, moments.tz_convert("UTC"), list(moments.to_pydatetime())):
        found = ours(model, zoned, "t", custom_values={"t": same})
        assert np.abs(found.average[0] - by_hand).max() < ROUNDING
        assert list(found.grid_values[0]) == list(moments.tz_convert("UTC").tz_localize(None).to_numpy())
    for wrong in (naive, naive.to_numpy(), ["2020-01-05"]):
        with pytest.raises(ValueError, match=r"column 't' has Asia/Tokyo, .*tz_localize\('Asia/Tokyo'\)"):
            ours(model, zoned, "t", custom_values={"t": wrong})
    plain = gce.GCERegressor(basis="tree", max_iter=2, random_state=0).fit(FRAME, Y)
    with pytest.raises(ValueError, match="column 't' has no time zone"):
        ours(plain, FRAME, "t", custom_values={"t": moments})


def test_the_display_of_scikit_learn_draws_our_models():
    mpl.use("Agg")
    model = gce.GCERegressor(basis="tree", max_iter=3, random_state=0).fit(X, Y)
    drawn = PartialDependenceDisplay.from_estimator(model, X, [0, (0, 1)], grid_resolution=4)
    assert np.abs(drawn.pd_results[0].average - ours(model, X, 0, grid_resolution=4).average).max() < ROUNDING


def test_bad_arguments_are_refused():
    model = gce.GCERegressor(basis="tree", max_iter=3, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="features names the column 'b'"):
        ours(model, X, "b")
    with pytest.raises(ValueError, match="kind must be"):
        ours(model, X, 0, kind="mean")
    with pytest.raises(ValueError, match="percentiles must be ascending"):
        ours(model, X, 0, percentiles=(0.9, 0.1))
    with pytest.raises(ValueError, match="'truth' is an external model"):
        ours(model.add("truth", Truth(), X, Y), X, 0)
