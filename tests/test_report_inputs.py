"""Reports of any rows and targets: frames, weights, long names, one row, and what is refused."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import root_mean_squared_error

import gce
from gce.inspection.report import importance, markup, write
from report_pages import ALWAYS, NUMBERS, RNG, TINY, X, cells, curve, drawn, fitted, headline, page


def test_columns_of_a_frame(browser, tmp_path):
    model, rows, y = fitted("pandas")
    new = rows.copy()
    new.loc[:11, "colour"] = "green"
    write(model, tmp_path / "r.html", new, y)
    browser.open(tmp_path / "r.html")
    found = {row[0]: row for row in cells(browser, "columns")}
    assert [found[name][5] for name in ("size", "colour", "old")] == ["number", "category", "boolean"]
    for name in new:
        assert float(found[name][2].rstrip(" %")) == pytest.approx(100 * new[name].isna().mean(), abs=0.06)
    assert found["colour"][3] == markup.percent(0.1)
    assert found["size"][4].split(" … ") == [f"{q:.3g}" for q in np.nanquantile(new["size"], [0, 0.5, 1])]
    assert "green" in found["colour"][4]


def test_weighted_rows_are_repeated_rows(browser, tmp_path):
    model, rows, y = fitted("three")
    times = RNG.integers(0, 4, len(y))
    model.report(tmp_path / "weighted.html", rows, y, sample_weight=times)
    model.report(tmp_path / "repeated.html", np.repeat(rows, times, 0), np.repeat(y, times))
    assert f"evaluated on {np.count_nonzero(times)} rows, weighted" in (tmp_path / "weighted.html").read_text("utf-8")
    found = []
    for name in ("weighted", "repeated"):
        browser.open(tmp_path / f"{name}.html")
        curves = [curve(browser, "staged", "error in %")[1].tolist(), drawn(browser, "calibration")[0][3].tolist()]
        found.append((headline(browser), cells(browser, "confusion"), cells(browser, "per-class"), curves))
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1:3] == found[1][1:3]
    np.testing.assert_allclose(found[0][3][0], found[1][3][0], atol=0.2)
    np.testing.assert_allclose(found[0][3][1], found[1][3][1], atol=2e-3)


def test_names_from_data_run_no_code(browser, tmp_path):
    evil = "<script>document.title='owned'</script>"
    worse = '"><img src=x onerror="document.title=\'owned\'">'
    rows = pd.DataFrame(X, columns=[evil, worse, "a & 'b'"])
    rows["text"] = np.where(X[:, 0] > 0, evil, "</td><script>document.title='owned'</script>")
    # a lone surrogate cannot be written to a file as it is
    y = np.array([evil, worse, "\ud800"])[np.digitize(NUMBERS, [-10, 10])]
    model = gce.GCEClassifier(class_weight={evil: 2.0}, **TINY).fit(rows, y)
    model.report(tmp_path / "r.html", rows, y)
    browser.open(tmp_path / "r.html")
    assert browser.complaints == []
    assert browser.evaluate("document.title") == "GCEClassifier: report"
    assert browser.evaluate("document.querySelectorAll('script').length") == 1
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert browser.evaluate("document.querySelectorAll('section[id]').length") == len(ALWAYS) + 2
    assert {row[0] for row in cells(browser, "columns")} == {evil, worse, "a & 'b'", "text"}
    assert [row[0] for row in cells(browser, "confusion")] == [worse, evil, "?"]


def test_long_names_and_control_characters_fit_on_a_phone(browser, tmp_path):
    names = ["x" * 3000, "\x01\x9b\x7f\u202e" * 30]
    rows = pd.DataFrame(X[:, :2], columns=names)
    y = np.array(names, dtype=object)[(NUMBERS > 0).astype(int)]
    tree = gce.bases.Tree(max_leaf_nodes=3)
    model = gce.GCEClassifier(basis=dict.fromkeys(names, tree), max_iter=2, cv=2, random_state=0).fit(rows, y)
    model.report(tmp_path / "r.html", rows, y)
    assert not set("\x01\x9b\x7f\u202e") & set((tmp_path / "r.html").read_text("utf-8"))
    browser.open(tmp_path / "r.html", width=390)
    assert browser.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") <= 390


def test_many_rows_make_no_large_page(browser, tmp_path):
    model, *_ = fitted("regressor")
    rows = RNG.normal(size=(100_000, 3))
    write(model, tmp_path / "r.html", rows, rows[:, 0])
    assert (tmp_path / "r.html").stat().st_size < 300_000
    browser.open(tmp_path / "r.html")
    assert len(drawn(browser, "residuals")[0][2]) == 1500
    assert headline(browser)["RMSE"] == pytest.approx(root_mean_squared_error(rows[:, 0], model.predict(rows)))


def test_what_cannot_be_reported_is_said_before_the_work(tmp_path):
    model, rows, y = fitted("regressor")
    with pytest.raises(FileNotFoundError, match="does not exist: create it first"):
        model.report(tmp_path / "nowhere" / "r.html", rows, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.report(tmp_path / "r.html", rows, y[1:])
    with pytest.raises(ValueError, match="zero"):
        model.report(tmp_path / "r.html", rows, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="not among those of the fit"):
        fitted("three")[0].report(tmp_path / "r.html", rows, np.full(len(y), "never seen"))
    assert not (tmp_path / "r.html").exists()


def test_one_row_is_enough(browser, tmp_path):
    for name in ("regressor", "three", "targets"):
        model, rows, y = fitted(name)
        model.report(tmp_path / "r.html", rows[:1], y[:1])
        browser.open(tmp_path / "r.html")
        assert browser.complaints == []


def test_a_page_says_what_it_leaves_out(tmp_path, monkeypatch):
    monkeypatch.setattr(importance, "_SECONDS", 0.0)
    monkeypatch.setattr(importance, "_TOO_LONG", 0.0)
    model, rows, y = fitted("regressor")
    model.report(tmp_path / "r.html", rows, y)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert re.search(r"Not computed: shuffling each of 3 columns once would take [\d.]+ [µm]?s on 120 rows\.", page)
    assert "Permutation importance" not in page


@pytest.mark.parametrize("name", ["regressor", "three"])
def test_targets_of_any_type_and_shape(name, browser, tmp_path):
    model, rows, y = fitted(name)
    found = []
    column = {"regressor": y[:, None], "three": y.astype(object)}[name]
    for given in (
        y,
        y.tolist(),
        pd.Series(y),
        pd.Series(y).astype("category") if name == "three" else pl.Series(y),
        column,
    ):
        model.report(tmp_path / "r.html", rows, given)
        browser.open(tmp_path / "r.html")
        found.append(headline(browser))
    assert all(one == found[0] for one in found)


def test_targets_of_another_number_are_refused(tmp_path):
    model, rows, y = fitted("regressor")
    with pytest.raises(ValueError, match="y has 2 columns, but the model was fitted to 1"):
        model.report(tmp_path / "r.html", rows, np.stack([y, y], 1))
    model, rows, y = fitted("targets")
    with pytest.raises(ValueError, match="y has 1 columns, but the model was fitted to 2"):
        model.report(tmp_path / "r.html", rows, y[:, 0])


def test_numbers_that_differ_by_rounding_alone(browser, tmp_path):
    model, rows, _ = fitted("regressor")
    rows = rows.copy()
    rows[:, 0] = np.where(np.arange(120) % 2, 1.0, np.nextafter(1.0, 2.0))
    near = model.predict(rows) - 1e6
    model.report(tmp_path / "r.html", rows, np.where(np.arange(120) % 2, near, np.nextafter(near, 0.0)))
    browser.open(tmp_path / "r.html")
    assert browser.complaints == []
    assert cells(browser, "columns")[0][2] == "constant, 1"


def test_words_fit_what_is_shown(tmp_path):
    model, rows, y = fitted("regressor")
    model.report(tmp_path / "r.html", rows[:1], y[:1])
    assert "evaluated on 1 row." in (tmp_path / "r.html").read_text("utf-8")
    assert "an epoch" in page("jointly").read_text("utf-8")
    alone = page("all rows").read_text("utf-8")
    assert "No rows were held out" in alone
    assert "held-out rows stop" not in alone
    model, rows, y = fitted("three")
    model.report(tmp_path / "r.html", rows, y, sample_weight=np.full(len(y), 0.5))
    assert ">weight</th>" in (tmp_path / "r.html").read_text("utf-8")
    told = gce.GCEClassifier(class_weight="balanced", **TINY).fit(rows, y)
    told.report(tmp_path / "r.html", rows, y)
    assert "class shares alone" not in (tmp_path / "r.html").read_text("utf-8")


def test_a_loaded_model_has_the_same_page(tmp_path):
    model, rows, y = fitted("regressor")
    model.save(tmp_path / "m.safetensors", resumable=True)
    pages = []
    for name, own in (("a", model), ("b", gce.load(tmp_path / "m.safetensors"))):
        own.report(tmp_path / f"{name}.html", rows, y)
        text = (tmp_path / f"{name}.html").read_text("utf-8")
        # but for what is timed while it is written
        pages.append(re.sub(r"<h3>Predictions.*?</dl>|<footer>.*?</footer>", "", text, flags=re.DOTALL))
    assert pages[0] == pages[1]


def test_long_names_are_cut_and_can_be_read(browser, tmp_path):
    long = ["a very long name " * 9 + end for end in ("one", "two")]
    rows = pd.DataFrame(X[:, :2], columns=long)
    model = gce.GCEClassifier(**TINY).fit(rows, np.where(NUMBERS > 0, *long))
    model.report(tmp_path / "r.html", rows, np.where(NUMBERS > 0, *long))
    browser.open(tmp_path / "r.html", 360)
    assert browser.evaluate("document.documentElement.scrollWidth") <= 360
    tables = ("columns", "confusion", "per-class", "importance")
    script = "[...document.querySelectorAll('[data-chart=\"%s\"] tbody th')].map((h) => h.title)"
    assert all(sorted(browser.evaluate(script % name)) == long for name in tables)
