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


def clock(column):
    """Seconds since 1970 of the wall clock, or of a duration, ``(n, 1)``."""
    start = np.array(0, dtype="datetime64[s]") if column.dtype.kind == "M" else np.timedelta64(0, "s")
    return ((column.to_numpy() - start) / np.timedelta64(1, "s"))[:, None]


DATED = {
    "networks": gce.GCERegressor(**TINY),
    "joint": gce.NNRegressor(**JOINT),
    "trees": gce.GCERegressor(basis=gce.bases.Tree(max_leaf_nodes=6), max_atoms=20, cv=2, random_state=0),
    "forest": gce.GCERegressor(basis=gce.bases.Forest(n_estimators=5), max_atoms=3, cv=2, random_state=0),
}


@pytest.mark.parametrize("town", [False, True], ids=["one input", "inputs by name"])
@pytest.mark.parametrize("name", DATED)
def test_dates_are_seconds_and_their_calendar_is_in_the_graph(name, town):
    at = pd.Series(pd.date_range("2021-12-30 03:07", periods=300, freq="3191min"))
    train = pd.DataFrame({"at": at, "long": pd.to_timedelta(np.arange(300) % 7, unit="h"), "n": RNG.normal(size=300)})
    train.loc[::9, "at"] = pd.NaT
    if town:
        train.insert(1, "town", np.where(np.arange(300) % 3, "Rom", "Bern"))
    y = at.dt.day_of_week + at.dt.month / 3 + at.dt.hour / 9 + np.arange(300) / 100
    model = DATED[name].fit(train, y)
    far = pd.Series(np.array(["0001-01-01", "9999-12-31", "1600-02-29", "1970-01-01"] * 75, dtype="datetime64[s]"))
    assert len(model.table_.schema.part_names) == 13
    used = model.predict(train) != model.predict(train.assign(at=at.dt.floor("D")))
    assert used.any()
    run = session(model)
    for rows in (train, train.assign(at=far), train[:1]):
        parts = {c: clock(rows[c]) if c in ("at", "long") else rows[c].to_numpy()[:, None] for c in rows}
        given = {c: v.astype(object) if c == "town" else v for c, v in parts.items()}
        assert_same(model, run.run(None, given if town else {"X": np.hstack(list(given.values()))}), rows)
