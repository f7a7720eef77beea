"""Dates and durations of every library: the same seconds, the calendar's parts, wall clocks, and what is refused."""

import datetime as dt
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gce
from gce.preprocessing import Frame, is_tabular, read_frame
from gce.preprocessing.date_parts import DateParts, calendar
from gce.preprocessing.dates import as_text, wall_clock, zone_of

EPOCH = dt.datetime(1970, 1, 1)
FIRST, LAST = -62_135_596_800, 253_402_300_799
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from(["Europe/Berlin", "Europe/Amsterdam", "Asia/Kolkata"])
TREES = {"basis": gce.bases.Tree(max_leaf_nodes=4, min_samples_leaf=3), "max_atoms": 8, "cv": 2, "random_state": 0}
NETWORK = {"basis": gce.bases.Neural(hidden=3, max_epochs=5), "max_atoms": 3, "cv": 2, "random_state": 0}
MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59))


def seconds_of(moment):
    """Seconds since 1970 of a date without a time zone."""
    passed = moment - EPOCH
    return (passed.days * 86_400 + passed.seconds) + passed.microseconds / 1e6


def days(n=120, start="2023-11-05", step="31h"):
    return pd.Series(pd.date_range(start, periods=n, freq=step))


@given(st.lists(st.integers(FIRST, LAST), min_size=1, max_size=20))
def test_the_calendar_is_that_of_python(seconds):
    found = calendar(np.array(seconds))
    for i, second in enumerate(seconds):
        date = EPOCH + dt.timedelta(seconds=second)
        clock = date.hour * 3600 + date.minute * 60 + date.second
        wanted = {
            "year": date.year,
            "month": date.month,
            "day": date.day,
            "weekday": date.weekday(),
            "day of year": date.timetuple().tm_yday,
            "hour": date.hour,
            "minute": date.minute,
            "minute of day": clock // 60,
            "second of day": clock,
            "second of week": date.weekday() * 86_400 + clock,
            "quarter of year day": 4 * (date.timetuple().tm_yday - 1),
        }
        assert {name: int(values[i]) for name, values in found.items()} == wanted


def test_the_calendar_of_every_day_of_a_period():
    day = np.arange(400 * 365 + 97) - 97_000
    found, date = calendar(day * 86_400), day.astype("datetime64[D]")
    months, years = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    np.testing.assert_array_equal(found["year"], years.astype(int) + 1970)
    np.testing.assert_array_equal(found["month"], months.astype(int) % 12 + 1)
    np.testing.assert_array_equal(found["day"], (date - months).astype(int) + 1)
    np.testing.assert_array_equal(found["day of year"], (date - years).astype(int) + 1)
    np.testing.assert_array_equal(found["weekday"], (day + 3) % 7)


def test_parts_are_those_that_vary():
    def names(moments):
        return DateParts.fit(np.array([seconds_of(moment) for moment in moments])).names

    in_year, of_week, of_day = ((f"sin of {turn}", f"cos of {turn}") for turn in ("year", "week", "day"))
    dated = ("year", "month", "day", "weekday", "day of year", *in_year, *of_week)
    assert names(days(step="1D", n=90)) == dated
    hours = [dt.datetime(2020, 1, 1, h) for h in range(5)]
    assert names(hours) == ("hour", *of_day)
    assert names([*hours, dt.datetime(2020, 1, 1, 0, 30)]) == ("hour", "minute of day", *of_day)
    # the first of each month: its weekday says nothing
    assert names(days(start="2020-01-01", step="MS", n=30)) == ("year", "month", *in_year)
    assert names([dt.datetime(2020, 1, 1)] * 3) == ()
    missing = DateParts.fit(np.full(3, np.nan))
    assert missing.names == ()
    assert missing.transform(np.full(3, np.nan)).shape == (3, 0)


def test_cycles_go_round_and_missing_values_stay_missing():
    parts = DateParts(("sin of year", "cos of year", "sin of week", "cos of week", "sin of day", "cos of day"))
    monday = seconds_of(dt.datetime(2024, 1, 1))
    found = parts.transform(np.array([monday, monday + 6 * 3600, monday + 3.5 * 86_400, np.nan]))
    np.testing.assert_allclose(found[0], [0, 1, 0, 1, 0, 1], atol=1e-15)
    np.testing.assert_allclose(found[1, 4:], [1, 0], atol=1e-15)
    np.testing.assert_allclose(found[2, 2:], [0, -1, 0, -1], atol=1e-15)
    assert np.isnan(found[3]).all()
    whole = calendar(np.arange(0, 4 * 365 * 86_400, 7919))
    angles = {"week": 604_800, "day": 86_400}
    for j, (turn, period) in enumerate(angles.items()):
        angle = 2 * np.pi * whole[f"second of {turn}"] / period
        got = parts.transform(np.arange(0.0, 4 * 365 * 86_400, 7919))[:, 2 + 2 * j : 4 + 2 * j]
        np.testing.assert_allclose(got, np.column_stack([np.sin(angle), np.cos(angle)]), atol=1e-12)


def date_columns(moments):
    """Dates without a time zone, as every library has them."""
    us = np.array(moments, dtype="datetime64[us]")
    arrow = pa.array(moments, pa.timestamp("us"))
    return {
        **{f"pandas {unit}": pd.DataFrame({"x0": us.astype(f"datetime64[{unit}]")}) for unit in ("us", "ns")},
        "pandas arrow": pd.DataFrame({"x0": pd.Series(arrow, dtype=pd.ArrowDtype(pa.timestamp("us")))}),
        "pandas objects": pd.DataFrame({"x0": pd.Series(moments, dtype=object)}),
        "polars": pl.DataFrame({"x0": moments}),
        "polars ns": pl.DataFrame({"x0": pl.Series(moments).cast(pl.Datetime("ns"))}),
        "pyarrow": pa.table({"x0": arrow}),
        "numpy": us.astype("datetime64[ns]")[:, None],
        "numpy objects": np.array(moments, dtype=object)[:, None],
        "scalars": np.array([[value] for value in us.astype("datetime64[ns]")] + [[None]], dtype=object)[:-1],
        "arrays": list(us.astype("datetime64[ns]")[:, None]),
        "lists": [[moment] for moment in moments],
        "masked": np.ma.masked_array(us[:, None], np.isnat(us)[:, None]),
    }


@settings(max_examples=10)
@given(st.lists(st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), min_size=2, max_size=5))
def test_dates_of_all_libraries_are_the_same_numbers(moments):
    if all(moment is None for moment in moments):
        return
    wanted = [np.nan if moment is None else seconds_of(moment) for moment in moments]
    for library, X in date_columns(moments).items():
        X = gce.preprocessing.fill_masked(X)
        assert is_tabular(X), library
        frame = read_frame(X)
        assert frame.kinds == ("date",), library
        np.testing.assert_array_equal(frame.columns[0], wanted, err_msg=library)


def test_days_are_their_midnights():
    listed = [dt.date(2020, 2, 29), None, dt.date(9999, 12, 31)]
    wanted = [18321 * 86_400, np.nan, LAST - 86_399]
    given_ = [
        pd.DataFrame({"a": listed}),
        pd.DataFrame({"a": pd.Series(listed, dtype=pd.ArrowDtype(pa.date32()))}),
        pd.DataFrame({"a": pd.Series(listed, dtype=pd.ArrowDtype(pa.date64()))}),
        pd.DataFrame({"a": np.array(listed, dtype="datetime64[s]")}),
        pl.DataFrame({"a": listed}),
        pa.table({"a": pa.array(listed, pa.date32())}),
        pa.table({"a": pa.array(listed, pa.date64())}),
        np.array(listed, dtype="datetime64[D]")[:, None],
    ]
    for X in given_:
        np.testing.assert_array_equal(read_frame(X).columns[0], wanted)


def test_durations_and_times_of_the_day_are_seconds():
    listed, wanted = [dt.timedelta(days=2, seconds=3, microseconds=250_000), None], [172_803.25, np.nan]
    given_ = [
        pd.DataFrame({"a": listed}),
        pd.DataFrame({"a": pd.Series(listed, dtype=object)}),
        pd.DataFrame({"a": pd.Series(listed, dtype=pd.ArrowDtype(pa.duration("ms")))}),
        pl.DataFrame({"a": listed}),
        pa.table({"a": pa.array(listed, pa.duration("ns"))}),
        np.array(listed, dtype="timedelta64[ns]")[:, None],
        np.array([[np.timedelta64(172_803_250, "ms")], [np.timedelta64("NaT", "ns")]], dtype=object),
    ]
    for X in given_:
        frame = read_frame(X)
        assert frame.kinds == ("duration",)
        np.testing.assert_array_equal(frame.columns[0], wanted)
    noon = [dt.time(12, 0, 1, 500_000), None]
    for X in (pd.DataFrame({"a": noon}), pl.DataFrame({"a": noon}), pa.table({"a": noon}), [[value] for value in noon]):
        frame = read_frame(X)
        assert frame.kinds == ("duration",)
        np.testing.assert_array_equal(frame.columns[0], [43_201.5, np.nan])
    np.testing.assert_array_equal(read_frame(np.array([[3]], dtype="timedelta64[W]")).columns[0], [3 * 604_800])


@given(st.lists(MOMENTS, min_size=1, max_size=5), ZONES)
def test_wall_clocks_are_those_of_python(moments, name):
    inside = [m for m in moments if 1 < m.year < 9999]
    got = wall_clock(np.array([*map(seconds_of, inside), np.nan]), ZoneInfo(name))
    wanted = [seconds_of(m.replace(tzinfo=dt.UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None)) for m in inside]
    np.testing.assert_allclose(got, [*wanted, np.nan], rtol=0, atol=1e-4)


def test_wall_clocks_around_every_change_of_the_clock():
    hours = np.arange(0, 55 * 366 * 24) * 3600.0
    for name in ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca"):
        zone = ZoneInfo(name)
        offset = wall_clock(hours, zone) - hours
        near = np.flatnonzero(np.diff(offset))
        assert len(near) > 50
        around = (hours[near][:, None] + np.arange(0, 7200, 599)).ravel()
        for second, shown in zip(around[::3], wall_clock(around, zone)[::3], strict=True):
            wanted = dt.datetime.fromtimestamp(second, zone).replace(tzinfo=None)
            assert shown == seconds_of(wanted)


def aware(n=60):
    """Hours around the night in which clocks are put back, in UTC."""
    return pd.Series(pd.date_range("2024-10-25 12:00", periods=n, freq="h", tz="UTC"))


def test_a_zone_of_the_fit_is_the_zone_of_predictions():
    utc = aware()
    local = utc.dt.tz_convert("Europe/Berlin")
    model = gce.GCERegressor(**TREES).fit(pd.DataFrame({"at": local}), local.dt.hour.to_numpy(dtype=float))
    (column,) = model.table_.columns
    assert (column.kind, column.time_zone) == ("date", "Europe/Berlin")
    wanted = model.predict(pd.DataFrame({"at": local}))
    polars = pl.DataFrame({"at": pl.from_pandas(utc)})
    same = [
        pd.DataFrame({"at": utc}),
        pd.DataFrame({"at": utc.dt.tz_convert(dt.timezone(dt.timedelta(hours=5, minutes=30)))}),
        pd.DataFrame({"at": pd.Series(list(local), dtype=object)}),
        polars,
        polars.with_columns(pl.col("at").dt.convert_time_zone("America/New_York")),
        pa.table({"at": pa.array(utc.dt.tz_localize(None), pa.timestamp("us", tz="+02:00"))}),
    ]
    for X in same:
        np.testing.assert_array_equal(model.predict(X), wanted)
    # the hour that comes twice has the same wall clock twice
    first = model.table_.encode(read_frame(same[0]))[:, 0]
    assert (np.diff(first) == 0).sum() == 1 or (np.diff(first) < 0).sum() == 0
    assert len(np.unique(first)) == len(first) - 1


ZONED = pd.DataFrame({"at": aware(), "a": range(60)})
NAIVE = ZONED.assign(at=ZONED["at"].dt.tz_localize(None))
LONG = pd.DataFrame({"long": pd.to_timedelta(range(60), unit="h"), "a": range(60)})
CHANGED = {
    "no zone": (ZONED, NAIVE, r"'at' had UTC when .* and has no time zone now: use column.dt.tz_localize\('UTC'\)"),
    "a zone": (NAIVE, ZONED, r"'at' had no time zone when .* has UTC now: use column.dt.tz_localize\(None\)"),
    "text": (NAIVE, NAIVE.assign(at="2024-01-01"), "'at' held dates when .* holds '2024-01-01' now: .*to_datetime"),
    "numbers": (NAIVE, NAIVE.assign(at=3.5), "'at' held dates when .* holds 3.5 now"),
    "booleans": (NAIVE, NAIVE.assign(at=True), "'at' held dates when .* holds 1.0 now"),
    "durations": (
        NAIVE,
        NAIVE.assign(at=LONG["long"] + dt.timedelta(2)),
        "'at' held dates when .* 2 days, 0:00:00 now",
    ),
    "dates": (
        LONG,
        LONG.assign(long=NAIVE["at"]),
        "'long' held durations .* holds 2024-10-25 12:00:00 now: .*timedelta",
    ),
    "for text": (NAIVE.assign(at=["x", "y"] * 30), NAIVE, "'at' held categories when .* holds 2024-10-25 12:00:00 now"),
    "for numbers": (NAIVE.assign(at=range(60)), NAIVE, "'at' held numbers when .* holds 2024-10-25 12:00:00 now"),
    "an array": (NAIVE, np.ones((2, 2)), "'at' held dates when .* holds 1.0 now"),
}


@pytest.mark.filterwarnings("ignore:.*ISO 8601", "ignore:X does not have valid feature names")
@pytest.mark.parametrize("case", CHANGED)
def test_a_column_of_another_kind_than_in_the_fit(case):
    train, new, words = CHANGED[case]
    model = gce.GCERegressor(**NETWORK).fit(train, np.arange(60.0))
    with pytest.raises(ValueError, match=f"column {words}"):
        model.predict(new)


def test_missing_dates_have_any_type():
    train = NAIVE.copy()
    train.loc[::5, "at"] = pd.NaT
    model = gce.GCERegressor(**TREES).fit(train, np.arange(60.0))
    none = np.zeros(60, dtype=bool)
    gaps = [pd.Series(pd.NaT, index=range(60)), ZONED["at"].where(none), LONG["long"].where(none), None, np.nan]
    wanted = model.predict(train.assign(at=pd.Series(np.nan, index=range(60), dtype="datetime64[ns]")))
    for gap in gaps:
        np.testing.assert_array_equal(model.predict(train.assign(at=gap)), wanted)
    names = model.table_.get_feature_names_out()
    assert [name for name in names if "missing" in name] == ["at is missing"]


BAD = {
    "years": ([[np.datetime64("12020-01-01", "s")]], "'x0' holds a date outside of the years 1 to 9999 .12020"),
    "before": (np.array([["-0001-01-01"]], dtype="datetime64[D]"), "'x0' holds a date outside of the years 1 to 9999"),
    "far": (np.array([[2**60]], dtype="datetime64[D]"), "'x0' holds a date outside of the years"),
    "polars": (pl.DataFrame({"a": pl.Series([2**31 - 1], dtype=pl.Int32).cast(pl.Date)}), "outside of the years"),
    "edge": (
        [[dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=3)))]],
        "outside of the years 1 to 9999 in UTC",
    ),
    "zones": ([[EPOCH.replace(tzinfo=BERLIN)], [EPOCH.replace(tzinfo=dt.UTC)]], "'x0' mixes the time zones .* and UTC"),
    "some zones": ([[EPOCH.replace(tzinfo=BERLIN)], [EPOCH]], "'x0' mixes dates with the time zone Europe/Berlin and"),
    "text": ([[EPOCH], ["soon"]], r"'x0' mixes dates \(1970-01-01 00:00:00\) and text \('soon'\): convert"),
    "late text": (pd.DataFrame({"a": ["x"] * 200 + [EPOCH]}, dtype=object), "'a' holds 1970-01-01 00:00:00 among text"),
    "numbers": ([[EPOCH], [3]], r"'x0' mixes dates \(1970-01-01 00:00:00\) and other values \(3\)"),
    "both": ([[EPOCH], [dt.timedelta(1)]], "'x0' mixes dates .* and durations"),
    "periods": (
        pd.DataFrame({"a": pd.period_range("2020", periods=3, freq="M")}),
        r"'a' holds periods, such as 2020-01",
    ),
    "category": (pd.DataFrame({"a": days(9).astype("category")}), "'a' holds 2023-11-05 .* as a category"),
    "months": (np.array([[1]], dtype="timedelta64[M]"), "'x0' holds durations without a unit of fixed length"),
    "zone": (
        pd.DataFrame({"a": days(9).dt.tz_localize("dateutil/Europe/Berlin")}),
        "'a': the time zone .* is not known",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_in_one_sentence(case):
    X, words = BAD[case]
    with pytest.raises((TypeError, ValueError), match=words) as error:
        gce.GCERegressor(**NETWORK).fit(X, np.arange(float(len(X))))
    assert "column" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_date_is_no_category():
    with pytest.raises(ValueError, match=r"categorical_features has the column 'at', which holds dates: convert it"):
        gce.GCERegressor(categorical_features=["at"], **NETWORK).fit(NAIVE, range(60))
    with pytest.raises(ValueError, match="'long', which holds durations"):
        gce.GCERegressor(categorical_features=[True, False], **NETWORK).fit(LONG, range(60))


def test_text_that_reads_as_dates_is_offered():
    moments = pd.concat([days(20), days(20)], ignore_index=True)
    text = pd.DataFrame({"day": moments.astype(str), "at": moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), "n": range(40)})
    with pytest.warns(UserWarning, match="ISO 8601") as caught:
        model = gce.GCERegressor(**NETWORK).fit(text, range(40))
    offers = [str(each.message) for each in caught if "ISO 8601" in str(each.message)]
    assert len(offers) == 1
    assert "'day', 'at'. Convert such columns to dates with pandas.to_datetime" in offers[0]
    assert [column.kind for column in model.table_.columns] == ["category", "category", "number"]
    codes = pd.DataFrame(
        {"code": ["20200101", "20200102"] * 20, "no": ["2020-13-01", "2020-02-30"] * 20, "n": range(40)}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gce.GCERegressor(**NETWORK).fit(codes, range(40))


def test_seconds_as_text():
    assert as_text("date", seconds_of(dt.datetime(1, 1, 1))) == "0001-01-01"
    assert as_text("date", seconds_of(dt.datetime(2024, 2, 29, 1, 2, 3, 999_999))) == "2024-02-29 01:02:03"
    assert as_text("duration", -3600.0) == "-1 day, 23:00:00"
    assert as_text("duration", 1e20) == "1e+20 s"
    assert str(zone_of("UTC-03:30")) == "UTC-03:30"
    assert zone_of("+05:30:15").utcoffset(None) == dt.timedelta(hours=5, minutes=30, seconds=15)


def test_frames_of_numbers_have_no_zones():
    assert Frame.from_matrix(np.ones((2, 1))).zones == {}
