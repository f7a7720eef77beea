"""Models and their reports, each made once, and what a browser reads off a page."""

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import polars as pl

import gce

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
NUMBERS = 20 * X[:, 0] - 10 * X[:, 1] + 6 * RNG.normal(size=120)
CLASSES = np.array(["low", "middle", "high"])[np.digitize(NUMBERS, [-10, 10])]
TINY = {"max_atoms": 6, "cv": 2, "basis": gce.bases.Neural(hidden=5, max_epochs=30), "random_state": 0}
JOINT = {"hidden": 3, "max_epochs": 6, "random_state": 0}
#: Sections of every page.
ALWAYS = {"fitted", "importance", "shapley", "training", "data", "timing", "bound"}


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


FOLDER = TemporaryDirectory()


@cache
def fitted(name):
    """A case's model, with the rows and targets that it was fitted to."""
    model, rows, y = CASES[name]()
    model.fit(rows, y)
    # a fit that stops at once would make every picture trivial
    assert model.n_iter_ > 3
    return model, rows, y


@cache
def page(name):
    """A model's page, written once."""
    model, rows, y = fitted(name)
    path = Path(FOLDER.name) / f"{name}.html"
    model.report(path, rows, y)
    return path


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
