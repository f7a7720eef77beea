"""The report: opened in a browser, its drawn figures are the model's numbers."""

import doctest
import re

import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.metrics import (
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from gce.inspection.report import calibration, markup
from gce.inspection.report.scales import Scale, fitting, path, thinned
from report_pages import ALWAYS, CASES, axis, cells, close, curve, drawn, fitted, headline, page

REGRESSORS = ("regressor", "targets", "jointly", "all rows", "polars")
PARTS = {name: {"residuals"} if name in REGRESSORS else {"classes"} for name in CASES}


@pytest.mark.parametrize("name", CASES)
def test_page_opens_everywhere_without_complaint(name, browser):
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


def test_headline_of_a_regressor(browser):
    model, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    answer = model.predict(rows)
    expected = {
        "RMSE": root_mean_squared_error(y, answer),
        "MAE": mean_absolute_error(y, answer),
        "R²": r2_score(y, answer),
    }
    assert headline(browser) == pytest.approx(expected)


def test_headline_and_stages_of_a_classifier(browser):
    model, rows, y = fitted("three")
    browser.open(page("three"))
    found = headline(browser)
    assert found["Error"] == pytest.approx(1 - model.score(rows, y))
    assert found["Log-loss"] == pytest.approx(log_loss(y, model.predict_proba(rows)))
    assert found["ROC AUC"] == pytest.approx(roc_auc_score(y, model.predict_proba(rows), multi_class="ovr"))
    assert found["Baseline error"] == pytest.approx(1 - max(np.mean(y == c) for c in model.classes_))
    rounds, errors = curve(browser, "staged", "error in %")
    close(rounds, np.arange(1, model.n_iter_ + 1))
    close(errors, [100 * np.mean(stage != y) for stage in model.staged_predict(rows)])
    close(errors[-1], 100 * (1 - model.score(rows, y)))
    # a scorer is not a loss and has its own picture
    close(curve(browser, "validation", "negative score")[1], [e["validation"] for e in model.history_])


def test_a_tile_says_which_classes_have_no_area(browser, tmp_path):
    model, rows, y = fitted("three")
    for labels, words in (
        (["low", "high"], "one-vs-rest, mean over the 2 of 3 classes that have rows"),
        (["low"], "not defined: all rows are of class 'low'"),
    ):
        there = np.isin(y, labels)
        model.report(tmp_path / "r.html", rows[there], y[there])
        browser.open(tmp_path / "r.html")
        script = "[...document.querySelectorAll('.tile')].find((t) => t.innerText.startsWith('ROC AUC')).innerText"
        _, value, beside = filter(None, browser.evaluate(script).split("\n"))
        assert beside == words
        assert (value == markup.NOTHING) == (len(labels) == 1)


@pytest.mark.parametrize("name", ["regressor", "jointly"])
def test_curves_are_the_history(name, browser):
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


def test_weights_are_drawn_where_they_were_made(browser):
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


def test_confusions_are_counted(browser):
    model, rows, y = fitted("three")
    browser.open(page("three"))
    found = np.array([[int(cell) for cell in row[1:]] for row in cells(browser, "confusion")])
    np.testing.assert_array_equal(found, confusion_matrix(y, model.predict(rows)))
    assert found.sum() == len(y)
    by_class = {row[0]: row for row in cells(browser, "per-class")}
    for label in model.classes_:
        missed = np.mean(model.predict(rows)[y == label] != label)
        assert float(by_class[label][3].rstrip(" %")) == pytest.approx(100 * missed, abs=0.06)


def test_of_many_classes_the_worst_pairs_are_listed(browser):
    model, rows, y = fitted("many")
    browser.open(page("many"))
    counts = confusion_matrix(y, model.predict(rows), labels=model.classes_)
    wrong = np.sort((counts * (1 - np.eye(15, dtype=int))).ravel())[::-1]
    found = [int(row[2]) for row in cells(browser, "confusion")]
    assert found == wrong[: len(found)].tolist()
    assert len(found) == min(20, np.count_nonzero(wrong))


def test_importance_is_scikit_learns(browser):
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


def test_residuals_are_drawn_and_intervals_tried(browser):
    model, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    ((_, _, across, up),) = drawn(browser, "residuals")
    close(across, model.predict(rows))
    close(up, y - model.predict(rows))
    low, high = model.predict_interval(rows, 0.8).T
    covered = markup.percent(np.mean((low <= y) & (y <= high)))
    rows_shown = browser.evaluate("[...document.querySelectorAll('#residuals tbody tr')].map((r) => r.innerText)")
    assert next(row for row in rows_shown if row.startswith("80 %")).split("\t")[1] == covered


def test_calibration_of_two_classes(browser):
    model, rows, y = fitted("two")
    browser.open(page("two"))
    label, _, x, share = next(c for c in drawn(browser, "calibration") if c[0])
    said, truth, _ = calibration.binned(model.predict_proba(rows)[:, 1], y, None)
    close(x, said)
    close(share, truth)
    assert (f"{model.temperature_:.3g}" in label) == (model.temperature_ != 1)


def test_what_is_read_has_contrast(browser):
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


def test_one_log_loss_on_one_page(browser):
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
    # one round of a forest that interpolates, among others; and a gap that converges
    assert fitting([2.0] * 50 + [1e-28] + [1.0] * 49, log=True).low > 1e-4
    assert fitting(np.geomspace(1e-12, 1, 50), log=True).low < 1e-12
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


@pytest.mark.parametrize("module", [markup, calibration])
def test_examples_in_the_docs(module):
    done = doctest.testmod(module)
    assert done.attempted > 0
    assert done.failed == 0
