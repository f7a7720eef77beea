"""The report of a stack: opened in a browser, its figures are the stack's and its members' own."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from browser import CHROMIUM, Browser
from gce.losses import PseudoHuber, Quantile

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
NUMBERS = 20 * X[:, 0] - 10 * np.abs(X[:, 1]) + 6 * RNG.normal(size=150)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-15, 5])]
TREE = {"max_depth": 2, "random_state": 0}
REGRESSORS = [
    ("ridge", Ridge()),
    ("tree", DecisionTreeRegressor(**TREE)),
    ("mean", DummyRegressor()),
]
CLASSIFIERS = [
    ("logistic", LogisticRegression()),
    ("bayes", GaussianNB()),
    ("lda", LinearDiscriminantAnalysis()),
    ("tree", DecisionTreeClassifier(**TREE)),
    ("shares", DummyClassifier()),
]
SEED = {"random_state": 0}


class Counting(RegressorMixin, BaseEstimator):
    """Predicts a column, and counts how often it is asked."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y):
        self.asked_ = 0
        return self

    def predict(self, X):
        self.asked_ += 1
        return 15 * X[:, self.column]


def prefit():
    return [(name, model.fit(X[:60], CLASSES[:60])) for name, model in CLASSIFIERS]


CASES = {
    "regressor": lambda: (gce.ConvexStackingRegressor(REGRESSORS, **SEED), X, NUMBERS),
    "targets": lambda: (gce.ConvexStackingRegressor(REGRESSORS, **SEED), X, np.stack([NUMBERS, X[:, 2]], 1)),
    "quantile": lambda: (gce.ConvexStackingRegressor(REGRESSORS, loss=Quantile(0.8), tol=1e-4, **SEED), X, NUMBERS),
    "two": lambda: (gce.ConvexStackingClassifier(CLASSIFIERS, **SEED), X, NUMBERS > 0),
    "three": lambda: (gce.ConvexStackingClassifier(CLASSIFIERS, **SEED), X, CLASSES),
    "mixed": lambda: (gce.ConvexStackingClassifier(CLASSIFIERS, mix="probabilities", **SEED), X, CLASSES),
    "brier": lambda: (
        gce.ConvexStackingClassifier(CLASSIFIERS, mix="probabilities", loss="brier", **SEED),
        X,
        NUMBERS > 0,
    ),
    "folds": lambda: (gce.ConvexStackingClassifier(CLASSIFIERS, fold_weight=0.5, **SEED), X, CLASSES),
    "prefit": lambda: (gce.ConvexStackingClassifier(prefit(), prefit=True), X[60:], CLASSES[60:]),
    "greedy": lambda: (gce.GreedySelectionClassifier(CLASSIFIERS, max_iter=4, **SEED), X, CLASSES),
    "frame": lambda: (gce.ConvexStackingRegressor(REGRESSORS, **SEED), pd.DataFrame(X, columns=list("abc")), NUMBERS),
    "perfect": lambda: (
        gce.ConvexStackingRegressor([("column", Counting()), *REGRESSORS[1:]], **SEED),
        X,
        15 * X[:, 0],
    ),
    "alone": lambda: (gce.ConvexStackingRegressor(REGRESSORS[:1], **SEED), X, NUMBERS),
}
REGRESSION = ("regressor", "targets", "quantile", "frame", "perfect", "alone")
ALWAYS = ["members", "comparison", "cost", "certificate", "fitted"]


@pytest.fixture(scope="module")
def fitted():
    kept = {}

    def get(name):
        if name not in kept:
            stack, rows, y = CASES[name]()
            kept[name] = stack.fit(rows, y), rows, y
        return kept[name]

    return get


@pytest.fixture(scope="module")
def page(fitted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def get(name):
        path = folder / f"{name}.html"
        if not path.exists():
            stack, rows, y = fitted(name)
            stack.report(path, rows, y)
        return path

    return get


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with Browser() as opened:
        yield opened


def cells(browser, chart):
    """The text of a table, row by row, without the cells of pictures."""
    rows = f"document.querySelectorAll('[data-chart=\"{chart}\"] tbody tr')"
    told = "[...r.children].filter((c) => !c.querySelector('svg')).map((c) => c.textContent)"
    return {row[0]: row[1:] for row in browser.evaluate(f"[...{rows}].map((r) => {told})")}


def headline(browser):
    script = "[...document.querySelectorAll('.tile')].map((t) => [t.querySelector('dt').textContent, "
    return {name: float(v) for name, v in browser.evaluate(script + "t.querySelector('.value').dataset.value])")}


def number(text):
    return float(text.replace(",", "").rstrip(" %\N{NO-BREAK SPACE}"))


@pytest.mark.parametrize("name", CASES)
def test_page_opens_everywhere_without_complaint(name, page, browser):
    path = page(name)
    own = "residuals" if name in REGRESSION else "classes"
    assert path.stat().st_size < 1_000_000
    assert not re.search(r"https?:|//\w+\.\w|@import|url\(", path.read_text("utf-8"))
    for width, dark in ((1280, False), (390, True)):
        browser.open(path, width, dark=dark)
        assert browser.complaints == []
        assert browser.asked == [path.resolve().as_uri()]
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
        sections = browser.evaluate("[...document.querySelectorAll('section')].map((s) => s.id)")
        assert sections == [*ALWAYS[:2], own, *ALWAYS[2:]]
        visible = browser.evaluate("document.body.innerText")
        assert not re.search(r"\bnan\b|\binf\b|undefined|None of|object at", visible)
        assert not browser.evaluate(
            "[...document.querySelectorAll('svg *')].some((e) => /NaN|nan|inf/.test(e.outerHTML))"
        )
        nameless = "svg:not([aria-label]):not([aria-hidden]), svg[aria-label='']"
        assert browser.evaluate(f'document.querySelectorAll("{nameless}").length') == 0


def test_headline_of_a_regressor(fitted, page, browser):
    stack, rows, y = fitted("regressor")
    browser.open(page("regressor"))
    found, answer = headline(browser), stack.predict(rows)
    assert found["RMSE"] == pytest.approx(root_mean_squared_error(y, answer))
    assert found["MAE"] == pytest.approx(mean_absolute_error(y, answer))
    assert found["R²"] == pytest.approx(r2_score(y, answer))
    assert found["Proven gap"] == stack.gap_
    assert "Quantile" not in found


@pytest.mark.parametrize("name", ["two", "three", "mixed", "folds", "prefit", "greedy"])
def test_headline_of_a_classifier(name, fitted, page, browser):
    stack, rows, y = fitted(name)
    browser.open(page(name))
    found = headline(browser)
    assert found["Error"] == pytest.approx(1 - stack.score(rows, y))
    assert found["Log-loss"] == pytest.approx(log_loss(y, stack.predict_proba(rows)))


def test_the_loss_of_the_weights_has_a_figure_of_its_own(fitted, page, browser):
    stack, rows, y = fitted("quantile")
    browser.open(page("quantile"))
    residual = y - stack.predict(rows)
    pinball = np.maximum(0.8 * residual, -0.2 * residual).mean()
    assert headline(browser)["Pinball loss at 0.8"] == pytest.approx(pinball)


def test_members_are_explained(fitted, page, browser):
    stack, *_ = fitted("three")
    browser.open(page("three"))
    told = stack.explain()
    assert 1 < told.used.sum() < len(told.names)
    found = cells(browser, "explain")
    assert list(found) == [told.names[j] for j in told.order]
    for j, name in enumerate(told.names):
        weight, rise, without, own, alignment = found[name]
        assert number(weight) == pytest.approx(told.weights[j], abs=5e-5)
        assert number(without) == pytest.approx(told.loss_without[j], rel=1e-3)
        assert number(own) == pytest.approx(told.own_loss[j], rel=1e-3)
        if told.used[j]:
            assert number(rise) == pytest.approx(100 * (told.loss_without[j] / told.loss - 1), rel=0.06)
            assert alignment == "0"
        else:
            assert number(alignment) == pytest.approx(told.alignment[j], rel=0.06)
    idle = browser.evaluate("[...document.querySelectorAll('[data-chart=explain] .idle th')].map((h) => h.textContent)")
    assert set(idle) == {name for name, used in zip(told.names, told.used, strict=True) if not used}
    bars = browser.evaluate(
        "[...document.querySelectorAll('[data-chart=explain] tbody tr')].map("
        "(r) => Number(r.querySelector('rect').getAttribute('width')))"
    )
    np.testing.assert_allclose(bars, 100 * told.weights[told.order] / told.weights.max(), atol=0.01)
    assert told.certificate()[1:] in browser.evaluate("document.querySelector('#members .lead').textContent")


def test_members_stand_beside_the_stack(fitted, page, browser):
    stack, rows, y = fitted("mixed")
    browser.open(page("mixed"))
    found = cells(browser, "comparison")
    everyone = {name: model.predict_proba(rows) for name, model in stack.named_estimators_.items()}
    expected = {
        "this stack": stack.predict_proba(rows),
        "equal weights": np.mean(list(everyone.values()), 0),
        **everyone,
    }
    assert set(found) == set(expected)
    for name, probability in expected.items():
        error, loss, _ = found[name]
        assert number(error) == pytest.approx(100 * np.mean(stack.classes_[probability.argmax(1)] != y), abs=0.06)
        assert number(loss) == pytest.approx(log_loss(y, probability), rel=1e-3)


def test_residuals_and_confusions_are_the_stacks(fitted, page, browser):
    stack, rows, y = fitted("three")
    browser.open(page("three"))
    found = browser.evaluate(
        "[...document.querySelectorAll('[data-chart=confusion] td.right')].map((c) => Number(c.textContent))"
    )
    assert found == [int(np.sum((y == label) & (stack.predict(rows) == label))) for label in stack.classes_]


def test_cost_is_that_of_members_in_use(fitted, page, browser):
    stack, *_ = fitted("three")
    browser.open(page("three"))
    found = cells(browser, "cost")
    assert set(found) == set(stack.member_names_)
    for name, weight in zip(stack.member_names_, stack.weights_, strict=True):
        assert (found[name][1] == "not used") == (weight == 0)
    shares = [number(told[1]) for told in found.values() if told[1] != "not used"]
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_the_proof_as_it_closed(fitted, page, browser):
    stack, *_ = fitted("quantile")
    browser.open(page("quantile"))
    script = (
        "[...document.querySelectorAll('[data-chart=gap] .line')].map((p) => p.getAttribute('d').match(/[ML]/g).length)"
    )
    assert browser.evaluate(script) == [len(stack.history_)]
    told = browser.evaluate("document.querySelector('#certificate').innerText")
    assert "out of fold, 5 folds" in told
    browser.open(page("greedy"))
    assert browser.evaluate("document.querySelectorAll('[data-chart=gap]').length") == 0
    browser.open(page("prefit"))
    assert "fitted before" in browser.evaluate("document.querySelector('#certificate').innerText")


def test_each_member_is_asked_once(tmp_path):
    stack = gce.ConvexStackingRegressor([(f"c{j}", Counting(j)) for j in range(3)], **SEED).fit(X, NUMBERS)
    for model in stack.estimators_:
        model.asked_ = 0
    stack.report(tmp_path / "r.html", X, NUMBERS)
    assert [model.asked_ for model in stack.estimators_] == [1, 1, 1]


def test_weighted_rows_are_repeated_rows(fitted, browser, tmp_path):
    stack, rows, y = fitted("three")
    times = RNG.integers(0, 3, len(y))
    stack.report(tmp_path / "weighted.html", rows, y, sample_weight=times)
    stack.report(tmp_path / "repeated.html", np.repeat(rows, times, 0), np.repeat(y, times))
    assert f"evaluated on {np.count_nonzero(times)} rows, weighted" in (tmp_path / "weighted.html").read_text("utf-8")
    found = []
    for name in ("weighted", "repeated"):
        browser.open(tmp_path / f"{name}.html")
        figures = {k: v for k, v in headline(browser).items() if k != "Predict 1,000 rows"}
        found.append((figures, cells(browser, "comparison")))
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1] == found[1][1]


def test_a_stack_without_its_cache_is_explained_on_the_given_rows(fitted, browser, tmp_path):
    stack, rows, y = fitted("three")
    bare = stack.without_cache()
    bare.report(tmp_path / "r.html", rows, y)
    browser.open(tmp_path / "r.html")
    own = log_loss(y, stack.named_estimators_["lda"].predict_proba(rows))
    assert number(cells(browser, "explain")["lda"][3]) == pytest.approx(own, rel=1e-3)
    assert "keeps no predictions of its fit" in browser.evaluate("document.querySelector('#certificate').innerText")


def test_names_run_no_code(browser, tmp_path):
    evil = "<script>document.title='owned'</script>"
    worse = '"><img src=x onerror="document.title=\'owned\'">'
    members = [(evil, LogisticRegression()), (worse, GaussianNB()), ("a & 'b' " + "x" * 90, DummyClassifier())]
    labels = np.array([evil, worse])[(NUMBERS > 0).astype(int)]
    stack = gce.ConvexStackingClassifier(members, **SEED).fit(X, labels)
    stack.report(tmp_path / "r.html", X, labels)
    for width in (1280, 390):
        browser.open(tmp_path / "r.html", width)
        assert browser.evaluate("document.title") == "ConvexStackingClassifier: report"
        assert browser.evaluate("document.querySelectorAll('img').length") == 0
        assert browser.complaints == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert evil in cells(browser, "explain")


def test_many_members_are_listed_to_a_point(browser, tmp_path):
    members = [(f"tree {i}", DecisionTreeRegressor(max_depth=1, max_features=1, random_state=i)) for i in range(110)]
    stack = gce.ConvexStackingRegressor(members, cv=2, **SEED).fit(X, NUMBERS)
    stack.report(tmp_path / "r.html", X, NUMBERS)
    browser.open(tmp_path / "r.html", 390)
    assert len(cells(browser, "explain")) == 100
    assert "Not listed: 10 more members with total weight 0." in browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.documentElement.scrollHeight") < 8000


def test_what_cannot_be_reported_is_said(fitted, tmp_path):
    stack, rows, y = fitted("three")
    with pytest.raises(FileNotFoundError, match="create it first"):
        stack.report(tmp_path / "nowhere" / "r.html", rows, y)
    with pytest.raises(ValueError, match="zero"):
        stack.report(tmp_path / "r.html", rows, y, sample_weight=np.zeros(len(y)))
    with pytest.raises(ValueError, match="not among those of the fit"):
        stack.report(tmp_path / "r.html", rows, np.where(y == "low", "lower", y))
    margin = gce.ConvexStackingClassifier(CLASSIFIERS[:2], loss=PseudoHuber(1.0), **SEED)
    margin.fit(X, NUMBERS > 0)
    with pytest.raises(ValueError, match="a report needs probabilities"):
        margin.report(tmp_path / "r.html", X, NUMBERS > 0)
    assert not (tmp_path / "r.html").exists()
