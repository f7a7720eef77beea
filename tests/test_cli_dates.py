"""Dates on the command line."""

import datetime
import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import gce
from gce.cli.app import app
from gce.cli.reading import Cells, find_dates, read_table

TINY = [
    word for s in ("max_atoms=3", "basis=neural", "basis__hidden=3", "basis__max_epochs=3") for word in ("--set", s)
]


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


@pytest.mark.filterwarnings("default:.*ISO 8601")
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_text_that_is_dates_in_every_row_is_read_as_dates_and_said(tmp_path, suffix):
    path, out = tmp_path / f"days.{suffix}", tmp_path / "m.safetensors"
    days = pl.date_range(datetime.date(2024, 1, 1), datetime.date(2024, 3, 20), eager=True)
    days = pl.concat([days, days])
    frame = pl.DataFrame({"day": days, "sold": days.dt.weekday() * 1.5, "code": days}).cast({"day": str, "code": str})
    write = frame.write_csv if suffix == "csv" else frame.write_parquet
    write(path)
    words = ("fit", path, "-t", "sold", "--categorical", "code", *TINY)
    done = call(*words, "--out", out, "--test", path)
    assert "dates: 'day', text in the form of ISO 8601 dates (--no-dates reads it as text)" in done.stdout
    assert "'day'" not in done.stderr
    kinds = [column["kind"] for column in json.loads(call("inspect", out, "--json").stdout)["columns"]]
    assert kinds == ["date", "category"]
    assert json.loads(call(*words, "--json").stdout)["dates"] == ["day"]
    # the model of the same frame of dates
    given = call(*words, "--no-dates", "--dates", "day", "--test", path, "--json")
    assert json.loads(given.stdout)["metrics"] == json.loads(call(*words, "--test", path, "--json").stdout)["metrics"]
    predicted = pl.read_csv(call("predict", out, path).stdout.encode())["prediction"]
    assert len(predicted) == len(days)


@pytest.mark.filterwarnings("default:.*ISO 8601")
@pytest.mark.parametrize("odd", ["soon", "2024-01-01T12:00:00Z"])
def test_text_that_is_dates_but_for_one_value_stays_text(tmp_path, odd):
    path = tmp_path / "days.csv"
    days = pl.date_range(datetime.date(2024, 1, 1), datetime.date(2024, 3, 20), eager=True).cast(str).to_list()
    pl.DataFrame({"day": [*days, odd] * 2, "sold": [1.5, 2.5] * (len(days) + 1)}).write_csv(path)
    done = call("fit", path, "-t", "sold", *TINY)
    assert "dates:" not in done.stdout
    assert "reads as ISO 8601 dates is treated as categories: 'day'" in done.stderr


@pytest.mark.parametrize(("count", "said"), [(1, True), (12, True), (40, True), (41, False), (0, False)])
def test_a_word_among_dates_is_pointed_at(tmp_path, capsys, count, said):
    path = tmp_path / "days.csv"
    days = pl.date_range(datetime.date(2024, 1, 1), datetime.date(2024, 3, 20), eager=True).cast(str).to_list()
    days[3 : 3 + count] = ["NA"] * count
    pl.DataFrame({"day": days, "kind": ["a", "b"] * 40, "sold": 1.5}).write_csv(path)
    frame = read_table(str(path))
    assert [column.name for column in find_dates(str(path), frame, ["sold"])] == ([] if count else ["day"])
    shown = capsys.readouterr().err
    words = f"column 'day' is text, though {80 - count} of its 80 values are dates: use --missing 'NA' to read it so"
    assert (words in shown) == said
    assert "'kind'" not in shown
    # the advice can be followed, and columns that are to be text are
    find_dates(str(path), read_table(str(path), Cells(missing=["NA"])), [])
    find_dates(str(path), frame, ["day"])
    assert not capsys.readouterr().err


@pytest.mark.filterwarnings("default:.*ISO 8601")
def test_dates_of_a_csv_are_offered_and_read_where_asked_for(tmp_path):
    path, out, report = tmp_path / "days.csv", tmp_path / "m.safetensors", tmp_path / "r.html"
    days = pl.date_range(datetime.date(2024, 1, 1), datetime.date(2024, 3, 20), eager=True)
    days = pl.concat([days, days])
    pl.DataFrame({"day": days, "sold": days.dt.weekday() * 1.5}).write_csv(path)
    words = ("fit", path, "-t", "sold", "--quiet", *TINY)
    assert "reads as ISO 8601 dates is treated as categories: 'day'" in call(*words, "--no-dates").stderr
    done = call(*words, "--no-dates", "--dates", "day", "--out", out, "--report", report)
    assert "ISO 8601" not in done.stderr
    found = json.loads(call("inspect", out, "--json").stdout)["columns"][0]
    assert (found["kind"], found["time_zone"], found["parts"][:3]) == ("date", None, ["month", "day", "weekday"])
    assert "month, day, weekday" in " ".join(call("inspect", out).stdout.split())
    assert "2024-01-01 … 2024-02-09" in report.read_text()
    predicted = pl.read_csv(call("predict", out, path).stdout.encode())["prediction"]
    frame = pl.read_csv(path).select(pl.col("day").str.to_date())
    assert np.array_equal(predicted.to_numpy(), gce.load(out).predict(frame))
