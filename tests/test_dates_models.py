"""Models of dates: files, weights, constraints, splits by time, reports."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit

import gce
from gce.preprocessing import Schema, read_frame
from test_dates import NETWORK, TREES, days, seconds_of


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("kind", [TREES, NETWORK], ids=["trees", "networks"])
def test_a_file_keeps_everything(tmp_path, kind, zone):
    train = pd.DataFrame({"at": days().dt.tz_localize(zone), "long": pd.to_timedelta(range(120), unit="min"), "n": 1.0})
    train.loc[::7, "at"] = pd.NaT
    model = gce.GCERegressor(**kind).fit(train, np.sin(np.arange(120)))
    model.save(tmp_path / "m.safetensors")
    again = gce.load(tmp_path / "m.safetensors")
    assert again.table_.columns == model.table_.columns
    np.testing.assert_array_equal(again.predict(train), model.predict(train))
    assert repr(model.table_).startswith("<Table: 3 columns (1 number, 1 date, 1 duration; 1 with missing values) as")


def test_states_that_no_fit_leaves_are_refused():
    frame = read_frame(pd.DataFrame({"at": days().dt.tz_localize("UTC"), "n": range(120)}))
    table = gce.GCERegressor(**NETWORK).fit(pd.DataFrame({"at": days().dt.tz_localize("UTC")}), range(120)).table_
    assert Schema.fit(frame, np.ones(120), None).columns[0] == table.columns[0]
    meta, arrays = table.state()
    (column,) = meta["columns"]
    assert type(table).from_state(meta, arrays).columns == table.columns
    names = column["parts"]["names"]
    wrong = [
        {"time_zone": "Nowhere/Land"},
        {"time_zone": "../../etc/passwd"},
        {"time_zone": 3},
        {"kind": "number"},
        {"kind": "duration"},
        {"parts": {"kind": "calendar", "names": names[::-1]}},
        {"parts": {"kind": "calendar", "names": [*names, "era"]}},
        {"parts": {"kind": "calendar", "names": names[1:]}},
        {"parts": {"kind": "unknown", "names": names}},
        {"parts": None},
    ]
    for change in wrong:
        with pytest.raises(ValueError, match=r"inconsistent|not known|no kind of parts"):
            type(table).from_state({**meta, "columns": [{**column, **change}]}, arrays)
    without = {key: value for key, value in column.items() if key != "parts"}
    with pytest.raises(ValueError, match="inconsistent"):
        type(table).from_state({**meta, "columns": [without]}, arrays)


def test_weighted_rows_are_repeated_rows():
    train = pd.DataFrame({"at": days(90), "long": pd.to_timedelta(np.arange(90) % 13, unit="h")})
    train.loc[::11, "at"] = pd.NaT
    y, weight = np.sin(np.arange(90) / 9), 1 + np.arange(90) % 3
    rows = np.repeat(np.arange(90), weight)
    split, repeated = np.arange(90) % 2 == 0, np.repeat(np.arange(90) % 2 == 0, weight)
    model, other = (gce.GCERegressor(**{**NETWORK, "cv": [(one, ~one)]}) for one in (split, repeated))
    model.fit(train, y, sample_weight=weight)
    other.fit(train.iloc[rows].reset_index(drop=True), y[rows])
    assert model.table_.columns == other.table_.columns
    np.testing.assert_allclose(model.predict(train), other.predict(train), rtol=0, atol=1e-7)


def test_the_elapsed_time_can_be_constrained_and_ends_with_the_last_date():
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"at": days(300, step="1D")})
    y = np.arange(300) / 50 + np.sin(np.arange(300) * 2 * np.pi / 7) + rng.normal(size=300) / 5
    model = gce.GCERegressor(**{**TREES, "max_atoms": 40}, monotonic_cst={"at": 1}).fit(train, y)
    weekly = pd.DataFrame({"at": pd.date_range("2023-11-06", periods=3, freq="7D")})
    frame = read_frame(weekly)
    coded = model.table_.encode(frame)
    coded[1:, 1:] = coded[0, 1:]  # calendar parts are free, and so they stay
    assert (np.diff(model.raw_predict_coded(coded).numpy().ravel()) >= 0).all()
    # beyond the last date trees see the calendar alone
    later = np.tile(coded[:1], (3, 1))
    later[:, 0] = seconds_of(dt.datetime(2024, 8, 30)) + np.array([0, 1e7, 1e9])
    beyond = model.raw_predict_coded(later).numpy().ravel()
    assert beyond[0] == beyond[1] == beyond[2]
    with pytest.raises(ValueError, match="'at', which has no order because it is a category"):
        gce.GCERegressor(**NETWORK, monotonic_cst={"at": 1}).fit(pd.DataFrame({"at": ["x", "y"] * 150}), y)


def test_the_recipe_of_time_series():
    train = pd.DataFrame({"at": days(260, step="1D"), "n": np.arange(260) % 5})
    y = (train["at"].dt.day_of_week >= 5) * 2.0 + train["n"] / 10
    model = gce.GCERegressor(**{**TREES, "max_atoms": 40, "cv": TimeSeriesSplit(3)}).fit(train[:210], y[:210])
    assert model.score(train[210:], y[210:]) > 0.9
    names = model.table_.split_names
    assert {"at: weekday", "at: day of year"} <= set(names)
    assert names.index("at") == 0


def test_a_report_writes_dates(tmp_path):
    train = pd.DataFrame({"at": days(60, step="1D"), "long": pd.to_timedelta(range(60), unit="D"), "n": range(60)})
    model = gce.GCERegressor(**TREES).fit(train, np.arange(60) % 7)
    model.report(tmp_path / "r.html", train, np.arange(60) % 7)
    page = (tmp_path / "r.html").read_text()
    assert "2023-11-05 … 2023-12-04 12:00:00 … 2024-01-03" in page
    assert "0:00:00 … 29 days, 12:00:00 … 59 days, 0:00:00" in page
