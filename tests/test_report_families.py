"""The report of several families and of Shapley values: drawn figures are the model's numbers."""

import doctest

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_poisson_deviance

import gce
from gce.inspection.report import calibration, markup, shapley, swarm
from report_pages import axis, cells, close, curve, drawn, fitted, headline, page

RNG = np.random.default_rng(1)
N = 150
X = pd.DataFrame(RNG.normal(size=(N, 4)), columns=["a", "b", "<i>c</i>", "long " * 30])
X["kind"] = RNG.choice(["x", "<b>y</b>"], N)
X.loc[:10, "a"] = np.nan
Y = 2 * X["b"] + np.abs(X["a"].fillna(0)) + (X["kind"] == "x") + 0.2 * RNG.normal(size=N)
BASES = {
    "<u>nets</u>": gce.bases.Neural(hidden=4, max_epochs=30),
    "trees": gce.bases.SymmetricTree(),
    "forest": gce.bases.Forest(n_estimators=5),
}


@pytest.fixture(scope="module")
def model():
    return gce.GCERegressor(basis=BASES, max_atoms=12, cv=3, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def path(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "r.html"
    model.report(path, X, Y)
    return path


def test_each_family_is_drawn_by_itself(model, path, browser):
    browser.open(path)
    assert browser.complaints == []
    result = model.result_
    rows = {row[0]: row for row in cells(browser, "families")}
    for i, (family, weight) in enumerate(zip(result.families, result.family_weights, strict=True)):
        assert rows[family.name][2] == markup.percent(weight)
        last = np.mean([family.history[t - 1]["members"]["validation"][m] for m, t in enumerate(family.best_round)])
        assert rows[family.name][5] == markup.shown(last)
        if len(family.history) == 1:
            assert not browser.evaluate(f"document.querySelector('[data-chart=\"risk-{i}\"] .drawing')")
            continue
        steps, values = curve(browser, f"risk-{i}", "held-out rows")
        close(steps, np.arange(1, len(family.history) + 1))
        close(values, [entry["validation"] for entry in family.history])
        # what all families reach together is marked in each picture
        close(curve(browser, f"risk-{i}", "all families")[1], [result.closing["validation"]] * 2)
        close(curve(browser, "gap", family.name)[1], [entry["gap_lower"] for entry in family.history])
        taken = np.diff([entry["seconds"] for entry in family.history], prepend=0.0)
        close(curve(browser, "seconds", family.name)[1], taken)
    assert rows["all together"][5] == markup.shown(result.closing["validation"])
    assert browser.evaluate("document.querySelectorAll('u, i:not([class]), b').length") == 0


def test_a_training_risk_of_next_to_nothing_is_said_and_not_drawn(model, path, browser):
    (place,) = [i for i, family in enumerate(model.result_.families) if family.name == "forest"]
    forest = model.result_.families[place]
    assert max(entry["risk"] for entry in forest.history) < 1e-2 * min(e["validation"] for e in forest.history)
    browser.open(path)
    words = browser.evaluate(f"document.querySelector('[data-chart=\"risk-{place}\"]').closest('.card').innerText")
    assert "It reproduces its training rows" in words
    for family in ("<u>nets</u>", "trees"):
        i = [f.name for f in model.result_.families].index(family)
        low = float(
            browser.evaluate(f"document.querySelector('[data-chart=\"risk-{i}\"] svg').dataset.x.split(' ')[0]")
        )
        assert low == 1


def test_stages_of_each_family_end_where_it_does(model, path, browser):
    browser.open(path)
    errors = [np.sqrt(np.mean((stage - Y) ** 2)) for stage in model.staged_predict(X)]
    first = 0
    for family in model.result_.families:
        own = errors[first : first + len(family.history)]
        first += len(family.history)
        if len(own) > 1:
            close(curve(browser, "staged", family.name)[1], own)
    words = browser.evaluate("document.querySelector('[data-chart=\"staged\"]').closest('.card').innerText")
    assert f"all together {markup.shown(float(errors[-1]))}" in words


def test_nothing_is_wider_than_the_page(path, browser, tmp_path):
    labels = np.array(["one", "<i>two</i>", "a class with a name of many words " * 3])[np.digitize(Y, [0.5, 2])]
    several = gce.GCEClassifier(basis=BASES, max_atoms=6, cv=3, random_state=0).fit(X, labels)
    several.report(tmp_path / "r.html", X, labels)
    for one in (path, tmp_path / "r.html"):
        for width in (1280, 390):
            browser.open(one, width)
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            wider = browser.evaluate(
                "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1)"
                ".map((e) => e.getAttribute('aria-label'))"
            )
            assert wider == []


def test_calibration_of_each_class(browser):
    model, rows, y = fitted("three")
    browser.open(page("three"))
    for k, label in enumerate(model.classes_):
        said, truth, off = calibration.binned(model.predict_proba(rows)[:, k], y == label, None)
        found = next(c for c in drawn(browser, f"calibration-{k}") if c[0])
        close(found[2], said)
        close(found[3], truth)
        assert markup.percent(off) in browser.evaluate(
            f"document.querySelector('[data-chart=\"calibration-{k}\"] figcaption').innerText"
        )
    browser.open(page("many"))
    assert browser.evaluate("document.querySelectorAll('.multiples .chart').length") == 12
    browser.open(page("two"))
    assert browser.evaluate("document.querySelectorAll('.multiples').length") == 0


def test_shapley_values_are_the_models(model, path, browser):
    browser.open(path)
    expected = model.shap_values(X, n_permutations=4)
    size = np.abs(expected.values).mean(0)
    order = np.argsort(-size, kind="stable")
    rows = cells(browser, "shapley")
    assert [row[0][:20] for row in rows] == [X.columns[j][:20] for j in order]
    assert [row[2] for row in rows] == [markup.shown(float(size[j]), 3) for j in order]
    assert [row[3] for row in rows] == [markup.percent(float(model.feature_importances_[j])) for j in order]
    script = """(() => {
        const chart = document.querySelector('[data-chart="swarm-0"]');
        return [chart.dataset.x, [...chart.querySelectorAll('tbody tr')].map((row) =>
            [row.querySelector("th").title,
             [...row.querySelectorAll(".dots")].map((p) => p.getAttribute("d")).join("")])];
    })()"""
    words, lanes = browser.evaluate(script)
    for name, d in lanes:
        places = np.array([float(part.split(" ")[0]) for part in d.split("M") if part]) / 1000
        close(np.sort(axis(words)(places)), np.sort(expected.values[:, list(X.columns).index(name)]))
    (numbers,) = [(i, j) for i, j in enumerate(order[:3]) if X.columns[j] == "b"]
    ((_, _, across, up),) = drawn(browser, f"dependence-{numbers[0]}")
    close(across, X["b"])
    close(up, expected.values[:, numbers[1]])


def test_a_model_without_covers_has_a_background(model, path, browser, tmp_path, monkeypatch):
    own = type(model).shap_values

    def refusing(self, X, background=None, **more):
        if background is None:
            raise ValueError("the model comes from an earlier version of gce")
        return own(self, X, background, **more)

    monkeypatch.setattr(type(model), "shap_values", refusing)
    monkeypatch.setattr(shapley, "_SECONDS", 0.0)
    model.report(tmp_path / "r.html", X, Y)
    browser.open(tmp_path / "r.html")
    words = browser.evaluate("document.querySelector('#shapley .lead').innerText")
    assert "On 16 rows, against a background of 30 rows" in words


def test_a_deviance_stands_beside_that_of_the_offset(browser, tmp_path):
    rows = X[["b"]].to_numpy()
    y = np.random.default_rng(0).poisson(np.exp(0.5 * rows[:, 0])).astype(float)
    model = gce.GCERegressor(loss="poisson", basis="tree", max_atoms=5, cv=2, random_state=0).fit(rows, y)
    model.report(tmp_path / "r.html", rows, y)
    browser.open(tmp_path / "r.html")
    own, alone = (mean_poisson_deviance(y, mean) / 2 for mean in (model.predict(rows), np.full(N, y.mean())))
    assert headline(browser)["Half the Poisson deviance"] == pytest.approx(own)
    script = "[...document.querySelectorAll('.tile')].find((t) => t.innerText.startsWith('Half the')).innerText"
    assert f"offset alone: {markup.shown(alone)}" in browser.evaluate(script)


def test_shades_and_lanes_of_dots():
    assert doctest.testmod(swarm).failed == 0
    found = swarm._spread(np.array([500.0] * 9 + [100.0]))
    assert found[-1] == 0
    assert len(np.unique(found[:9])) == 9
    assert np.abs(found).max() <= 0.5
