"""The report: opened in a browser, its drawn figures are the model's numbers."""

import doctest
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.inspection import permutation_importance
from sklearn.metrics import confusion_matrix, log_loss, mean_absolute_error, r2_score, root_mean_squared_error

import gce
from browser import CHROMIUM, Browser
from gce.report import classes, importance, markup, write
from gce.report.scales import Scale, fitting, path, thinned

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
NUMBERS = 20 * X[:, 0] - 10 * X[:, 1] + 6 * RNG.normal(size=120)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-10, 10])]
TINY = {"max_atoms": 6, "cv": 2, "basis": gce.Neural(hidden=5, max_epochs=30), "random_state": 0}
JOINT = {"hidden": 3, "max_epochs": 6, "random_state": 0}
ALWAYS = {"fitted", "importance", "training", "data", "timing", "bound"}


def frame():
    """Numbers, text and booleans, each with gaps."""
    given = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 0, "red", "blue"), "old": X[:, 2] > 0})
    return given.astype({"colour": object, "old": object}).mask(RNG.random((120, 3)) < 0.2)


def many_classes():
    return np.array([f"class {c}" for c in range(15)])[np.arange(120) % 15]


CASES = {
    "regressor": lambda: (gce.GCERegressor(**TINY), X, NUMBERS),
    "two": lambda: (gce.GCEClassifier(**TINY), X, NUMBERS > 0),
    "three": lambda: (gce.GCEClassifier(scoring="accuracy", **TINY), X, CLASSES),
    "many": lambda: (gce.GCEClassifier(**TINY), X, many_classes()),
    "targets": lambda: (gce.GCERegressor(loss="absolute_error", **TINY), X, np.stack([NUMBERS, X[:, 2]], 1)),
    "jointly": lambda: (gce.NGCERegressor(n_atoms=4, **JOINT), X, NUMBERS),
    "network": lambda: (gce.NNClassifier(**JOINT), X, CLASSES),
    "all rows": lambda: (gce.GCERegressor(**TINY | {"cv": None, "validation_fraction": None}), X, NUMBERS),
    "pandas": lambda: (gce.GCEClassifier(**TINY), frame(), CLASSES),
    "polars": lambda: (gce.GCERegressor(**TINY), pl.from_pandas(frame()), pl.Series(NUMBERS)),
    "pyarrow": lambda: (gce.GCEClassifier(**TINY), pl.from_pandas(frame()).to_arrow(), CLASSES),
}
REGRESSORS = ("regressor", "targets", "jointly", "all rows", "polars")
PARTS = {name: {"residuals"} if name in REGRESSORS else {"classes"} for name in CASES}


@pytest.fixture(scope="module")
def fitted():
    kept = {}

    def get(name):
        if name not in kept:
            model, rows, y = CASES[name]()
            kept[name] = model.fit(rows, y), rows, y
            # a fit that stops at once would make every picture trivial
            assert model.n_iter_ > 3
        return kept[name]

    return get


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    """A model's page, written once."""
    folder = tmp_path_factory.mktemp("pages")

    def get(name):
        path = folder / f"{name}.html"
        if not path.exists():
            model, rows, y = fitted(name)
            model.report(path, rows, y)
        return path

    return get


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with Browser() as opened:
        yield opened


def drawn(browser, chart):
    """The curves of a chart as values, read back through its axes: (label, look, x, y) each."""
    script = f"""(() => {{
        const svg = document.querySelector('[data-chart="{chart}"] .drawing svg');
        const paths = [...svg.querySelectorAll('.line, .dots')];
        return [svg.dataset.x, svg.dataset.y,
                paths.map((p) => [p.dataset.label ?? '', p.getAttribute('class'), p.getAttribute('d')])];
    }})()"""
    x, y, paths = browser.evaluate(script)
    across, up = axis(x), axis(y)
    curves = []
    for label, look, d in paths:
        places = np.array(re.findall(r"[ML](\S+?) ([\d.-]+)", d), dtype=float).reshape(-1, 2) / 1000
        curves.append((label, look, across(places[:, 0]), up(1 - places[:, 1])))
    return curves


def axis(words):
    low, high, kind = words.split()
    low, high = float(low), float(high)
    return (lambda s: low * (high / low) ** s) if kind == "log" else (lambda s: low + (high - low) * s)


def curve(browser, chart, label):
    return next((x, y) for name, _, x, y in drawn(browser, chart) if name == label)


def headline(browser):
    script = "[...document.querySelectorAll('.tile')].map((t) => [t.querySelector('dt').textContent, "
    return {name: float(v) for name, v in browser.evaluate(script + "t.querySelector('.value').dataset.value])")}


def cells(browser, chart):
    """The text of a table, row by row."""
    rows = f"document.querySelectorAll('[data-chart=\"{chart}\"] tbody tr')"
    return browser.evaluate(f"[...{rows}].map((r) => [...r.children].map((c) => c.textContent))")


def close(found, expected):
    """Equal to a pixel or two of a drawing that is 1000 units high."""
    expected = np.asarray(expected, dtype=float)
    tolerance = 2e-3 * (np.ptp(expected) or 1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_page_opens_everywhere_without_complaint(name, fitted, page, browser):
    path = page(name)
    expected = ALWAYS | PARTS[name] | ({"weights"} if len(fitted(name)[0].ensemble_) > 1 else set())
    assert path.stat().st_size < 3_000_000
    assert not re.search(r"https?:|//\w+\.\w|@import|url\(", path.read_text("utf-8"))
    for width, dark in ((1400, False), (360, True)):
        browser.open(path, width, dark=dark)
        assert browser.complaints == []
        assert browser.asked == [path.resolve().as_uri()]
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        sections = browser.evaluate("[...document.querySelectorAll('section')].map((s) => s.id)")
        assert set(sections) == expected
        links = browser.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.hash.slice(1))")
        assert links == sections
        # what is not drawn has no height; what is must be named
        sizes = browser.evaluate(
            "[...document.querySelectorAll('.chart svg')].map((s) => s.getBoundingClientRect().height)"
        )
        assert min(sizes) > 100
        nameless = "svg:not([aria-label]):not([aria-hidden]), svg[aria-label='']"
        assert browser.evaluate(f'document.querySelectorAll("{nameless}").length') == 0
        visible = browser.evaluate("document.body.innerText")
        assert not re.search(r"\bnan\b|\binf\b|undefined|None of|object at", visible)
        assert not browser.evaluate(
            "[...document.querySelectorAll('svg *')].some((e) => /NaN|nan|inf/.test(e.outerHTML))"
        )


def test_headline_of_a_regressor(fitted, page, browser):
    model, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    answer = model.predict(rows)
    expected = {
        "RMSE": root_mean_squared_error(y, answer),
        "MAE": mean_absolute_error(y, answer),
        "R²": r2_score(y, answer),
    }
    assert headline(browser) == pytest.approx(expected)


def test_headline_and_stages_of_a_classifier(fitted, page, browser):
    model, rows, y = fitted("three")
    browser.open(page("three"))
    found = headline(browser)
    assert found["Error"] == pytest.approx(1 - model.score(rows, y))
    assert found["Log-loss"] == pytest.approx(log_loss(y, model.predict_proba(rows)))
    assert found["Error of guessing"] == pytest.approx(1 - max(np.mean(y == c) for c in model.classes_))
    rounds, errors = curve(browser, "staged", "error in %")
    close(rounds, np.arange(1, model.n_iter_ + 1))
    close(errors, [100 * np.mean(stage != y) for stage in model.staged_predict(rows)])
    close(errors[-1], 100 * (1 - model.score(rows, y)))
    # a scorer is not a loss and has its own picture
    close(curve(browser, "validation", "negative score")[1], [e["validation"] for e in model.history_])


@pytest.mark.parametrize("name", ["regressor", "jointly"])
def test_curves_are_the_history(name, fitted, page, browser):
    model, *_ = fitted(name)
    browser.open(page(name))
    for label, column in (("training", "risk"), ("held-out rows", "validation")):
        steps, values = curve(browser, "risk", label)
        assert len(steps) == model.n_iter_
        close(steps, np.arange(1, model.n_iter_ + 1))
        close(values, [entry[column] for entry in model.history_])
    members = [y for _, look, _, y in drawn(browser, "risk") if "faint" in look]
    own = [[entry["members"]["risk"][m] for entry in model.history_] for m in range(2)] if name == "regressor" else []
    for found, expected in zip(members, own, strict=False):
        close(found, expected)
    assert len(members) == (4 if name == "regressor" else 0)
    if name == "regressor":
        close(curve(browser, "gap", "gap")[1], [entry["gap_lower"] for entry in model.history_])
        close(curve(browser, "seconds", "seconds")[1].sum(), model.history_[-1]["seconds"])


def test_weights_are_drawn_where_they_were_made(fitted, page, browser):
    model, *_ = fitted("regressor")
    browser.open(page("regressor"))
    script = """(() => {
        const svg = document.querySelector('[data-chart="weights"] .drawing svg');
        return [svg.dataset.x, svg.dataset.y, [...svg.querySelectorAll('rect')].map((r) =>
            [r.className.baseVal, ...['x', 'width', 'height'].map((a) => Number(r.getAttribute(a)))])];
    })()"""
    x, y_axis, bars = browser.evaluate(script)
    across, (low, high, _) = axis(x), y_axis.split()
    drawn_weights = {}
    for look, left, width, height in bars:
        key = int(look.split("c")[-1]), round(float(across((left + width / 2) / 1000)))
        drawn_weights[key] = height / 1000 * (float(high) - float(low))
    origin = map(tuple, model.ensemble_.origin.tolist())
    assert drawn_weights == pytest.approx(dict(zip(origin, model.ensemble_.weights.tolist(), strict=True)), abs=1e-4)


def test_confusions_are_counted(fitted, page, browser):
    model, rows, y = fitted("three")
    browser.open(page("three"))
    found = np.array([[int(cell) for cell in row[1:]] for row in cells(browser, "confusion")])
    np.testing.assert_array_equal(found, confusion_matrix(y, model.predict(rows)))
    assert found.sum() == len(y)
    by_class = {row[0]: row for row in cells(browser, "per-class")}
    for label in model.classes_:
        missed = np.mean(model.predict(rows)[y == label] != label)
        assert float(by_class[label][3].rstrip(" %")) == pytest.approx(100 * missed, abs=0.06)


def test_of_many_classes_the_worst_pairs_are_listed(fitted, page, browser):
    model, rows, y = fitted("many")
    browser.open(page("many"))
    counts = confusion_matrix(y, model.predict(rows), labels=model.classes_)
    wrong = np.sort((counts * (1 - np.eye(15, dtype=int))).ravel())[::-1]
    found = [int(row[2]) for row in cells(browser, "confusion")]
    assert found == wrong[: len(found)].tolist()
    assert len(found) == min(20, np.count_nonzero(wrong))


def test_importance_is_scikit_learns(fitted, page, browser):
    model, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    score = "neg_root_mean_squared_error"
    expected = permutation_importance(model, rows, y, scoring=score, n_repeats=5, random_state=0)
    found = {name: value for name, _, value in cells(browser, "importance")}
    assert list(found) == [f"x{j}" for j in np.argsort(-expected.importances_mean)]
    for j, (mean, std) in enumerate(zip(expected.importances_mean, expected.importances_std, strict=True)):
        words = [float(part) for part in found[f"x{j}"].split(" ± ")]
        # two digits of the spread, and no more of the mean
        assert words == pytest.approx([mean, std], rel=0, abs=0.05 * std)


def test_residuals_are_drawn_and_intervals_tried(fitted, page, browser):
    model, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    ((_, _, across, up),) = drawn(browser, "residuals")
    close(across, model.predict(rows))
    close(up, y - model.predict(rows))
    low, high = model.predict_interval(rows, 0.8).T
    covered = markup.percent(np.mean((low <= y) & (y <= high)))
    rows_shown = browser.evaluate("[...document.querySelectorAll('#residuals tbody tr')].map((r) => r.innerText)")
    assert next(row for row in rows_shown if row.startswith("80 %")).split("\t")[1] == covered


def test_calibration_of_two_classes(fitted, page, browser):
    model, rows, y = fitted("two")
    browser.open(page("two"))
    label, _, x, share = next(c for c in drawn(browser, "calibration") if c[0])
    said, truth, _ = classes.binned(model.predict_proba(rows)[:, 1], y, None)
    close(x, said)
    close(share, truth)
    assert (f"{model.temperature_:.3g}" in label) == (model.temperature_ != 1)


def test_columns_of_a_frame(fitted, browser, tmp_path):
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


def test_weighted_rows_are_repeated_rows(fitted, browser, tmp_path):
    model, rows, y = fitted("three")
    times = RNG.integers(0, 4, len(y))
    model.report(tmp_path / "weighted.html", rows, y, sample_weight=times)
    model.report(tmp_path / "repeated.html", np.repeat(rows, times, 0), np.repeat(y, times))
    assert f"tried on {np.count_nonzero(times)} rows, weighted" in (tmp_path / "weighted.html").read_text("utf-8")
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


def test_what_is_read_has_contrast(page, browser):
    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        parts = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return parts @ [0.2126, 0.7152, 0.0722]

    def contrast(a, b):
        light, dim = sorted((luminance(a), luminance(b)), reverse=True)
        return (light + 0.05) / (dim + 0.05)

    for dark in (False, True):
        browser.open(page("three"), dark=dark)
        script = "((n) => getComputedStyle(document.documentElement).getPropertyValue(n).trim())"
        colour = {name: browser.evaluate(f"{script}('--{name}')") for name in ("page", "card", "ink", "soft", "accent")}
        for ground in ("page", "card"):
            assert all(contrast(colour[name], colour[ground]) >= 4.5 for name in ("ink", "soft", "accent"))
        curves = [browser.evaluate(f"{script}('--c{i}')") for i in range(8)]
        assert all(contrast(c, colour["card"]) >= 3 for c in curves)
        browser.evaluate("document.querySelector('header button').click()")
        assert browser.evaluate(f"{script}('--card')") != colour["card"]


def test_many_rows_make_no_large_page(fitted, browser, tmp_path):
    model, *_ = fitted("regressor")
    rows = RNG.normal(size=(100_000, 3))
    write(model, tmp_path / "r.html", rows, rows[:, 0])
    assert (tmp_path / "r.html").stat().st_size < 300_000
    browser.open(tmp_path / "r.html")
    assert len(drawn(browser, "residuals")[0][2]) == 1500
    assert headline(browser)["RMSE"] == pytest.approx(root_mean_squared_error(rows[:, 0], model.predict(rows)))


def test_what_cannot_be_reported_is_said_before_the_work(fitted, tmp_path):
    model, rows, y = fitted("regressor")
    with pytest.raises(FileNotFoundError, match="does not exist: make it first"):
        model.report(tmp_path / "nowhere" / "r.html", rows, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.report(tmp_path / "r.html", rows, y[1:])
    with pytest.raises(ValueError, match="zero"):
        model.report(tmp_path / "r.html", rows, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="not among those of the fit"):
        fitted("three")[0].report(tmp_path / "r.html", rows, np.full(len(y), "never seen"))
    assert not (tmp_path / "r.html").exists()


def test_one_row_is_enough(fitted, browser, tmp_path):
    for name in ("regressor", "three", "targets"):
        model, rows, y = fitted(name)
        model.report(tmp_path / "r.html", rows[:1], y[:1])
        browser.open(tmp_path / "r.html")
        assert browser.complaints == []


def test_a_page_says_what_it_leaves_out(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(importance, "_SECONDS", 0.0)
    monkeypatch.setattr(importance, "_TOO_LONG", 0.0)
    model, rows, y = fitted("regressor")
    model.report(tmp_path / "r.html", rows, y)
    page = (tmp_path / "r.html").read_text("utf-8")
    assert re.search(r"Left out: to shuffle each of 3 columns once would take [\d.]+ [µm]?s on 120 rows\.", page)
    assert "Permutation importance" not in page


@pytest.mark.parametrize("name", ["regressor", "three"])
def test_targets_of_any_type_and_shape(name, fitted, browser, tmp_path):
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


def test_targets_of_another_number_are_refused(fitted, tmp_path):
    model, rows, y = fitted("regressor")
    with pytest.raises(ValueError, match="y has 2 columns, but the model was fitted to 1"):
        model.report(tmp_path / "r.html", rows, np.stack([y, y], 1))
    model, rows, y = fitted("targets")
    with pytest.raises(ValueError, match="y has 1 columns, but the model was fitted to 2"):
        model.report(tmp_path / "r.html", rows, y[:, 0])


def test_numbers_that_differ_by_rounding_alone(fitted, browser, tmp_path):
    model, rows, _ = fitted("regressor")
    rows = rows.copy()
    rows[:, 0] = np.where(np.arange(120) % 2, 1.0, np.nextafter(1.0, 2.0))
    near = model.predict(rows) - 1e6
    model.report(tmp_path / "r.html", rows, np.where(np.arange(120) % 2, near, np.nextafter(near, 0.0)))
    browser.open(tmp_path / "r.html")
    assert browser.complaints == []
    assert cells(browser, "columns")[0][2] == "always 1"


def test_one_log_loss_on_one_page(fitted, page, browser):
    model, rows, y = fitted("two")
    assert model.temperature_ != 1
    browser.open(page("two"))
    facts = dict(
        browser.evaluate(
            "[...document.querySelectorAll('#bound .facts div')].map((d) => "
            "[d.children[0].textContent, d.children[1].textContent])"
        )
    )
    assert facts["Mean log-loss here"] == markup.shown(headline(browser)["Log-loss"])
    # Hoeffding's range is that of the loss at the temperature
    reach = (abs(model.offset_[0]) + model.bound_[0]) / model.temperature_
    assert facts["Hoeffding's margin"] == markup.shown(reach * np.sqrt(np.log(1 / 0.05) / (2 * len(y))))
    found = {name: value for name, _, value in cells(browser, "importance")}
    score = permutation_importance(model, rows, y, scoring="neg_log_loss", n_repeats=5, random_state=0)
    for j, (mean, std) in enumerate(zip(score.importances_mean, score.importances_std, strict=True)):
        assert float(found[f"x{j}"].split(" ± ")[0]) == pytest.approx(mean, rel=0, abs=0.05 * std)


def test_words_fit_what_is_shown(fitted, page, tmp_path):
    model, rows, y = fitted("regressor")
    model.report(tmp_path / "r.html", rows[:1], y[:1])
    assert "tried on 1 row." in (tmp_path / "r.html").read_text("utf-8")
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


def test_a_loaded_model_has_the_same_page(fitted, tmp_path):
    model, rows, y = fitted("regressor")
    model.save(tmp_path / "m.safetensors")
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


def test_scales():
    assert [text for _, text in Scale(1.0, 3.0, whole=True).ticks()] == ["1", "2", "3"]
    assert [text for _, text in Scale(999.4e6, 1000.6e6).ticks(2)] == ["1,000,000,000"]
    assert [text for _, text in Scale(0.0, 3.2e11).ticks(3)] == ["0", "2e+11"]
    for scale in (Scale(1e6, 1e6 + 1), Scale(1e9, 1e9 + 7), Scale(-1e-7, 2e-7), Scale(1e15, 2e15), Scale(0.0, 1e-12)):
        written = [float(text.replace(",", "")) for _, text in scale.ticks()]
        assert len(set(written)) == len(written) > 1
        np.testing.assert_allclose(written, [v for v, _ in scale.ticks()], rtol=1e-12)
    assert fitting([1e-4, 1.0], log=True).log
    assert not fitting([0.5, 1.0], log=True).log
    assert not fitting([-1.0, 100.0], log=True).log
    assert fitting([3.0, 3.0]).low < 3 < fitting([3.0, 3.0]).high
    assert [v for v, _ in Scale(0.0, 1.0).ticks(5)] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [text for _, text in Scale(1e-3, 1e3, log=True).ticks()] == [
        "0.001",
        "0.01",
        "0.1",
        "1",
        "10",
        "100",
        "1,000",
    ]
    assert path(np.arange(4.0), np.array([0.0, np.inf, 2.0, np.nan])) == "M0.0 0.0M2.0 2.0"
    assert thinned(5).tolist() == [0, 1, 2, 3, 4]
    kept = thinned(10_000)
    assert len(kept) == 600
    assert kept[[0, -1]].tolist() == [0, 9999]


@pytest.mark.parametrize("module", [markup, classes])
def test_examples_in_the_docs(module):
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0
