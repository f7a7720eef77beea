"""Tables that say less, or more, than they seem to: many categories, orders of columns, missing values of all kinds."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge
from typer.testing import CliRunner

import gce
from gce import GCEClassifier, GCERegressor
from gce.cli.app import app
from gce.cli.inspect import _columns, _contents
from gce.cli.rendering import show
from gce.preprocessing import Table

rng = np.random.default_rng(0)
SHORT = {"basis": "tree", "max_iter": 3, "cv": 2, "random_state": 0, "verbose": False}
LIBRARIES = {"pandas": lambda f: f, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


def frame(n=60):
    data = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    data["text"] = rng.choice(["u", "v"], n)
    return data


# Levels that are too many.


@pytest.fixture(scope="module")
def many():
    n = 2500
    columns = {
        "city": [f"c{i}" for i in range(n)],
        "mostly": ["big" if i % 10 < 3 else f"z{i}" for i in range(n)],
        "gaps": [f"g{i}" if i % 10 == 0 else None for i in range(n)],
        "fine": rng.choice(["u", "v"], n),
        "x": rng.normal(size=n),
    }
    data = pd.DataFrame(columns)
    with pytest.warns(UserWarning, match="a category that occurs once") as caught:
        model = GCERegressor(**SHORT).fit(data, data.x)
    return data, model, caught


def test_columns_that_are_lost_are_named_once_with_their_categories(many):
    _, _, caught = many
    (warning,) = caught
    text = str(warning.message)
    assert "'city' (2,500 categories of one row each: ignored)" in text
    assert "'gaps' (250 categories of one row each: ignored)" in text
    assert "fine" not in text
    assert "mostly" not in text
    assert warning.filename == __file__


def test_a_file_keeps_what_was_lost(many, tmp_path, capsys):
    data, model, _ = many
    model.save(tmp_path / "m.safetensors")
    loaded = gce.load(tmp_path / "m.safetensors")
    assert loaded.table_.columns == model.table_.columns
    city, mostly, _, fine, x = loaded.table_.columns
    assert (city.n_distinct, city.other_share, city.categories) == (2500, 1.0, ())
    assert mostly.categories == ("big",)
    assert (fine.n_distinct, fine.other_share, fine.warning) == (2, 0.0, None)
    assert (x.n_distinct, x.other_share) == (None, None)
    found = _contents(loaded)["columns"]
    assert found[0]["n_distinct"] == 2500
    show(_columns(found))
    assert "ignored" in capsys.readouterr().out
    loaded.report(tmp_path / "r.html", data, data.x)
    assert "in the fit 2,500 categories of one row each" in (tmp_path / "r.html").read_text()


def test_older_tables_say_nothing_of_it_and_false_ones_are_refused(many):
    _, model, _ = many
    meta, arrays = model.table_.state()
    for column in meta["columns"]:
        column.pop("distinct", None)
        column.pop("others", None)
        column.pop("frequent", None)
    assert Table.from_state(meta, arrays).columns[0].warning is None
    for false in ({"distinct": 5}, {"distinct": 2.0, "others": 0.5}, {"distinct": 9, "others": 2.0}):
        meta["columns"][0] = {"name": "city", "kind": "category", "levels": [], **false}
        with pytest.raises(ValueError, match="parts of the table are inconsistent"):
            Table.from_state(meta, arrays)


# Columns by their names.


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_are_found_by_name_in_any_order_and_among_others(library):
    data = frame()
    model = GCERegressor(**SHORT).fit(LIBRARIES[library](data), data.a)
    turned = LIBRARIES[library](data.assign(more=1)[["more", "text", "c", "b", "a"]])
    np.testing.assert_array_equal(model.predict(turned), model.predict(data))
    numbers = GCERegressor(**SHORT).fit(data[["a", "b"]], data.a)
    np.testing.assert_array_equal(numbers.predict(turned), numbers.predict(data[["a", "b"]]))
    with pytest.raises(ValueError, match="yet now missing:\n- c"):
        model.predict(data[["a", "b", "text"]])
    trees = GCERegressor(basis="tree", max_iter=2, random_state=0)
    scores = [
        [entry["validation"] for entry in trees.fit(data, data.a, X_val=rows, y_val=data.a).history_]
        for rows in (turned, data)
    ]
    assert scores[0] == scores[1] != []


@pytest.mark.parametrize("twice", [frame().set_axis(["a", "a", "b", "b"], axis=1), pa.table([[1.0]] * 2, ["a", "a"])])
def test_names_that_are_there_twice_are_named(twice):
    with pytest.raises(ValueError, match="X has more than one column named 'a'"):
        GCERegressor(**SHORT).fit(twice, np.arange(len(twice)))
    data = frame()
    with pytest.raises(ValueError, match="X has more than one column named 'a'"):
        GCERegressor(**SHORT).fit(data, data.a).predict(twice)


def test_stacks_find_columns_by_name_too():
    data = frame()[["a", "b"]]
    stack = gce.ConvexStackingRegressor([("ridge", Ridge()), ("flat", Ridge(10.0))], cv=2).fit(data, data.a)
    np.testing.assert_array_equal(stack.predict(data[["b", "a"]]), stack.predict(data))
    with pytest.raises(ValueError, match="X has more than one column named 'a'"):
        stack.predict(data.set_axis(["a", "a"], axis=1))


def test_an_index_that_the_command_names_is_a_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = frame().rename(columns={"a": "y"})
    data.set_index("y").to_parquet("target.parquet")
    data.assign(who=np.arange(len(data)) % 3).set_index("who").to_parquet("named.parquet")
    few = ["--set", "max_iter=2", "--set", "basis=tree", "--quiet"]
    for command in (
        ["fit", "target.parquet", "-t", "y", "-o", "m.safetensors", *few],
        ["report", "m.safetensors", "target.parquet", "-t", "y", "-o", "r.html"],
        ["fit", "named.parquet", "-t", "y", "--categorical", "who", *few],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output


# Gaps.


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(["x", "y", pd.NA] * 20, dtype="string"),
        pd.Series([True, False, pd.NA] * 20, dtype="boolean"),
        np.array(["x", "y", pd.NA] * 20, dtype=object),
        ["x", "y", pd.NA] * 20,
        ["x", "y", np.nan] * 20,
    ],
    ids=["string", "boolean", "objects", "list", "list with NaN"],
)
def test_labels_with_gaps_are_refused(labels):
    data = frame()
    with pytest.raises(ValueError, match="y has missing values"):
        GCEClassifier(**SHORT).fit(data, labels)
    known = ["x", "y", "y"] * 20
    with pytest.raises(ValueError, match="y has missing values"):
        GCEClassifier(basis="tree", max_iter=2).fit(data, known, X_val=data, y_val=labels)
    with pytest.raises(ValueError, match="groups has missing values"):
        GCEClassifier(**SHORT).fit(data, known, groups=labels)


def test_masked_values_are_gaps():
    held = frame()[["a", "b"]].to_numpy()
    target, masked = held[:, 0].copy(), np.ma.masked_array(held, held > 1)
    gaps = np.where(held > 1, np.nan, held)
    model = GCERegressor(**SHORT).fit(masked, target)
    np.testing.assert_array_equal(model.predict(masked), GCERegressor(**SHORT).fit(gaps, target).predict(gaps))
    assert np.ptp(model.predict(masked)) == np.ptp(model.predict(gaps))
    with pytest.raises(ValueError, match="sample_weight is a masked array with masked values"):
        GCERegressor(**SHORT).fit(held, target, np.ma.masked_array(np.ones(60), target > 1))
    words = np.ma.masked_array(np.array([["u"], ["v"]] * 30), [[True], [False]] * 30)
    assert GCERegressor(**SHORT).fit(words, target).table_.columns[0].categories == ("v",)


def test_sparse_rows_have_no_gaps():
    held = rng.normal(size=(60, 3))
    held[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"X is sparse and contains NaN.*X.toarray\(\), where NaN means missing"):
        GCERegressor(**SHORT).fit(csr_array(held), held[:, 1])


def test_integers_that_no_float_can_be_are_named_by_column():
    given = [[10**400, 1]] * 20
    for held in (given, np.array(given, dtype=object)):
        with pytest.raises(ValueError, match="column 'x0' holds an integer beyond float64's range"):
            GCERegressor(**SHORT).fit(held, np.arange(20))
