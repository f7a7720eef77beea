"""The models of the accuracy benchmark at their defaults: how they are made, warmed up, fitted and judged."""

from __future__ import annotations

import importlib
import os
import re
import signal
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import models
import numpy as np
import pandas as pd
from accuracy_rows import THREADS, Row
from data_sets import Split, synthetic
from harness import processor
from models import Model
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

GCE, CATBOOST = "GCE", "CatBoost"
#: GCE's warm-up is a whole default fit of few rows, so that it compiles what the default compiles.
MODELS = {
    GCE: replace(models.MODELS["GCE default"], short={}),
    "LightGBM": models.MODELS["LightGBM"],
    "XGBoost": models.MODELS["XGBoost"],
    "HistGradientBoosting": models.MODELS["HistGradientBoosting"],
    "RandomForest": models.MODELS["RandomForest"],
    CATBOOST: models.MODELS["CatBoost"],
    "MLP": models.MODELS["MLP (standardised)"],
    "RealMLP": Model("pytabkit", "RealMLP_TD_", {"device": "cpu"}, {"n_epochs": 1}, "n_threads"),
    "TabM": Model("pytabkit", "TabM_D_", {"device": "cpu"}, {"n_epochs": 1}, "n_threads"),
}
#: Run on one seed, on sets of fewer rows than ``SLOW_ROWS``, and given up after ``SLOW_SECONDS`` a fit.
SLOW = ("RealMLP", "TabM")
SLOW_ROWS = 25_000
SLOW_SECONDS = 900.0
NOT_RUN = "not run"
#: Models that are given categories as such, and what they are told of the columns; the others know them by their type.
#: RealMLP and TabM would take them too, but are not run on sets so large.
NATIVE: dict[str, Callable[[list[Any]], dict[str, Any]]] = {
    "LightGBM": lambda names: {},
    "XGBoost": lambda names: {"enable_categorical": True},
    "HistGradientBoosting": lambda names: {"categorical_features": "from_dtype"},
    CATBOOST: lambda names: {"cat_features": names},
}
#: No probability counts as less in a log-loss.
LEAST = 1e-15


def importable(name: str) -> bool:
    return find_spec(MODELS[name].module.split(".")[0]) is not None


def make(name: str, regression: bool, seed: int, **changes: Any) -> Any:
    """A model at its defaults but for silence, threads and ``changes``; MLP gets standardised columns and targets."""
    model = MODELS[name]
    kind = getattr(importlib.import_module(model.module), model.stem + ("Regressor" if regression else "Classifier"))
    threads = {model.threads: THREADS} if model.threads else {}
    estimator = kind(random_state=seed, **{**model.settings, **threads, **changes})
    if not model.scaled:
        return estimator
    pipeline = make_pipeline(StandardScaler(), estimator)
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler()) if regression else pipeline


def told(name: str, categories: list[Any]) -> dict[str, Any]:
    """Settings by which a model learns that columns of these names are categories."""
    return NATIVE[name](categories) if name in NATIVE and categories else {}


def with_categories(rows: Split) -> Split:
    """Frames in place of arrays (n, d), their columns of codes pandas categories of integers."""
    both = pd.DataFrame(np.concatenate([rows.X_train, rows.X_test]))
    # the levels of both parts, for a table's column says what may be in it
    both = both.astype(dict.fromkeys(rows.categories, int)).astype(dict.fromkeys(rows.categories, "category"))
    parts = both.iloc[: len(rows.X_train)], both.iloc[len(rows.X_train) :]
    return replace(rows, X_train=parts[0], X_test=parts[1])


def native(name: str, rows: Split) -> bool:
    """Whether this model is given categories of these rows as such."""
    return name in NATIVE and bool(rows.categories)


def warm_up(name: str, columns: int, regression: bool) -> None:
    """A tiny fit and prediction: first uses load libraries, start threads and may compile."""
    X, y = synthetic(200, columns, 1 if regression else 3)
    with quietly():
        make(name, regression, 0, **MODELS[name].short).fit(X, y).predict(X)


def measured(name: str, rows: Split, seed: int) -> Row:
    """One fit: figures on the test rows and seconds, or the reason why there are none."""
    try:
        with quietly(), _within(SLOW_SECONDS if name in SLOW else None):
            if native(name, rows):
                model = make(name, rows.regression, seed, **told(name, list(rows.categories)))
                return judged(model, with_categories(rows))
            return judged(make(name, rows.regression, seed), rows)
    except TimeoutError:
        return {"failed": f"{NOT_RUN}: the fit took more than {SLOW_SECONDS:.0f} s"}
    except Exception as error:  # a peer that fails is a result, and the other cells still run
        return {"failed": reason(error)}


def judged(model: Any, rows: Split) -> Row:
    """Fit a model: figures on the test rows, and seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    seconds: Row = {"fit_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
    began = time.perf_counter()
    answer = np.ravel(model.predict(rows.X_test))
    seconds["predict_seconds"] = time.perf_counter() - began
    seconds = {key: round(value, 6) for key, value in seconds.items()}
    if rows.regression:
        return {**errors(rows.y_test, answer), **seconds}
    return {**mistakes(rows.y_test, answer, model.predict_proba(rows.X_test), model.classes_), **seconds}


def errors(y: NDArray[Any], answer: NDArray[Any]) -> Row:
    """RMSE and MAE of numbers (m,)."""
    residual = answer - y
    if not np.isfinite(residual).all():
        raise ValueError("predictions that are not finite")
    return {"rmse": float(np.sqrt(np.mean(residual**2))), "mae": float(np.mean(np.abs(residual)))}


def mistakes(y: NDArray[Any], answer: NDArray[Any], proba: NDArray[Any], classes: NDArray[Any]) -> Row:
    """Error in % of codes (m,); log-loss and AUC of probabilities (m, k') of the codes ``classes`` (k',)."""
    if not np.isfinite(proba).all():
        raise ValueError("probabilities that are not finite")
    true = np.where(classes == y[:, None], proba, 0.0).sum(1)  # a class that was not fitted on has probability 0
    loss = float(-np.log(np.clip(true, LEAST, 1)).mean())
    return {"error": 100 * float(np.mean(answer != y)), "log_loss": loss, **area(y, proba, classes)}


def area(y: NDArray[Any], proba: NDArray[Any], classes: NDArray[Any]) -> Row:
    """Area under the ROC curve: of the second of two classes, or the mean of each class against the rest.

    Codes ``y`` (m,), probabilities (m, k') of the codes ``classes`` (k',). Classes that no test row has, or all have,
    have no curve; there is no figure where none is left.
    """
    columns = [1] if len(classes) == 2 else range(len(classes))
    of_one = [(y == classes[column], proba[:, column]) for column in columns]
    found = [roc_auc_score(rows, scores) for rows, scores in of_one if rows.any() and not rows.all()]
    return {"auc": float(np.mean(found))} if found else {}


@contextmanager
def _within(seconds: float | None) -> Iterator[None]:
    """TimeoutError in whatever Python code runs after so long."""
    if seconds is None:
        yield
        return

    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def quietly() -> Iterator[None]:
    """Defaults are what is compared: their advice about more epochs and the like helps nobody here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def reason(error: Exception) -> str:
    """Kind and first line of an error, without this machine's folders."""
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {re.sub(r'(/[^ /:]+)+/', '', first)[:200]}"


def origin(name: str) -> Row:
    """Where and with what a row comes about."""
    package = MODELS[name].module.split(".")[0]
    module = importlib.import_module(package)
    found = getattr(module, "__version__", None) or version(package)
    own = f"+{_revision()}" if name == GCE else ""
    return {"threads": THREADS, "version": f"{found}{own}", "machine": machine()}


def machine() -> str:
    return f"{processor()}, {os.cpu_count()} cores"


def _revision() -> str:
    """The last commit that touched the library, marked where files differ from it; "unknown" without git."""
    root = Path(__file__).parents[1]
    with suppress(OSError, subprocess.CalledProcessError):
        commit = _git(root, "log", "-1", "--format=%h", "--", "src")
        return f"{commit}-changed" if _git(root, "status", "--porcelain", "--", "src") else commit
    return "unknown"


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()
