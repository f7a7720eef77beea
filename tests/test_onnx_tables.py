"""A graph that reads tables: columns by name, categories, booleans and gaps."""

import numpy as np
import pandas as pd
import pytest

import gce
from test_onnx import JOINT, RNG, TINY, X, Y, assert_same, feeds, frame, session


@pytest.mark.parametrize("scale", ["auto", "robust"])
def test_a_frame_of_everything(scale):
    train, new = frame(200, 0), frame(150, 1)
    y = np.where(train["town"] == "Rom", 3.0, 0.0) + train["age"].fillna(20) / 10
    model = gce.GCERegressor(**TINY, categorical_features=["zip"], scale=scale).fit(train, y)
    new.loc[::3, "town"], new.loc[1::4, "zip"], new["floor"] = "Oslo", 77.0, pd.Categorical(RNG.integers(1, 9, 150))
    run = session(model)
    kinds = {each.name: (each.type, each.shape) for each in run.get_inputs()}
    assert list(kinds) == list(train)
    text = {name for name, (kind, _) in kinds.items() if kind == "tensor(string)"}
    assert text == {"town", "name", "same"}
    assert all(kinds[name] == ("tensor(double)", ["rows", 1]) for name in set(train) - text)
    for rows in (train, new, new[:1]):
        assert_same(model, run.run(None, feeds(rows, text)), rows)
    # every state matters to the model, or the test above would show nothing
    for name in ("age", "town", "floor", "zip", "vip", "debt"):
        turned = train.assign(**{name: train[name].to_numpy()[::-1]})
        assert not np.array_equal(model.predict(turned), model.predict(train)), name


def test_a_frame_without_categories_is_one_input():
    train = frame(200, 0)[["age", "member", "vip", "debt"]]
    model = gce.GCEClassifier(**TINY).fit(train, train["member"] == train["vip"])
    run = session(model)
    assert [(each.name, each.shape) for each in run.get_inputs()] == [("X", ["rows", 4])]
    assert_same(model, run.run(None, {"X": train.to_numpy(dtype=np.float64, na_value=np.nan)}), train)


def test_an_empty_text_is_a_gap_unless_it_is_a_category():
    for empty, same in ((None, True), ("", False)):
        train = pd.DataFrame({"town": ["a", "b", empty] * 20, "age": X[:, 0]})
        model = gce.GCERegressor(**TINY).fit(train, np.tile([1.0, 2.0, 5.0], 20))
        answer = session(model).run(None, feeds(train.fillna(""), {"town"}))
        assert_same(model, answer, train)
        gap = train.assign(town=None)
        assert same == np.allclose(model.predict(gap)[2::3], answer[0][2::3, 0])


def test_a_table_of_categories_alone():
    train = pd.DataFrame({"town": ["a", "b", "c", None] * 15, "same": "same"})
    model = gce.GCERegressor(**TINY).fit(train, np.tile([1.0, 2.0, 5.0, 0.0], 15))
    assert_same(model, session(model).run(None, feeds(train, set(train))), train)


@pytest.mark.parametrize("model", [gce.GCERegressor(**TINY), gce.NNRegressor(**JOINT, validation_fraction=None)])
def test_a_table_that_says_nothing(model):
    train = pd.DataFrame({"same": ["same"] * 60})
    model.fit(train, Y)
    for rows in (train[:1], train):
        assert_same(model, session(model).run(None, feeds(rows, {"same"})), rows)
