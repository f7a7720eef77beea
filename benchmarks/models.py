"""GCE and its peers at their defaults: how they are made, fitted in a fresh process, and asked for predictions."""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import data_sets
import numpy as np
from harness import CORES, best_and_median, call, peak_mib, repeated, reset_peak
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

#: Seconds a GCE fit may take where it is stopped by the clock.
TIME_LIMIT = {"covertype": 45.0}
#: Sets and models whose predictions are timed at length.
PREDICT_SETS = ("digits", "california")
PREDICT_MODELS = ("GCE hold-out", "GCE default", "XGBoost", "LightGBM", "CatBoost", "RandomForest")
PREDICT_ROWS = 20_000


@dataclass(frozen=True)
class Model:
    """A pair of estimators, ``stem + "Classifier"`` and ``stem + "Regressor"``.

    Parameters
    ----------
    module, stem : str
    settings : dict
        What is not a default: silence, mostly.
    short : dict
        What makes a fit short, for the warm-up and ``--quick``.
    threads : str or None
        The parameter that says how many threads; None where the environment does.
    scaled : bool
        Stands behind a StandardScaler.
    """

    module: str
    stem: str
    settings: dict[str, Any] = field(default_factory=dict)
    short: dict[str, Any] = field(default_factory=dict)
    threads: str | None = None
    scaled: bool = False


MODELS = {
    "GCE hold-out": Model("gce", "GCE", {"cv": None, "verbose": False}, {"max_atoms": 3}),
    "GCE default": Model("gce", "GCE", {"verbose": False}, {"max_atoms": 3}),
    "XGBoost": Model("xgboost", "XGB", {}, {"n_estimators": 3}, "n_jobs"),
    "LightGBM": Model("lightgbm", "LGBM", {"verbosity": -1}, {"n_estimators": 3}, "n_jobs"),
    "CatBoost": Model(
        "catboost", "CatBoost", {"verbose": 0, "allow_writing_files": False}, {"iterations": 3}, "thread_count"
    ),
    "HistGradientBoosting": Model("sklearn.ensemble", "HistGradientBoosting", {}, {"max_iter": 3}),
    "RandomForest": Model("sklearn.ensemble", "RandomForest", {}, {"n_estimators": 3}, "n_jobs"),
    "MLP (standardised)": Model("sklearn.neural_network", "MLP", {}, {"max_iter": 3}, scaled=True),
}


def make(name: str, regression: bool, **changes: Any) -> Any:
    """A model at its defaults but for ``changes``, on all cores."""
    model = MODELS[name]
    kind = getattr(importlib.import_module(model.module), model.stem + ("Regressor" if regression else "Classifier"))
    threads = {model.threads: CORES} if model.threads else {}
    estimator = kind(random_state=0, **{**model.settings, **threads, **changes})
    return make_pipeline(StandardScaler(), estimator) if model.scaled else estimator


def importable(name: str) -> bool:
    return find_spec(MODELS[name].module.split(".")[0]) is not None


@functools.cache
def cell(name: str, data: str, device: str, quick: bool) -> dict[str, Any]:
    """:func:`measure` in a fresh process, once however many tables show it."""
    return {"model": name, "set": data, **call("models:measure", name=name, data=data, device=device, quick=quick)}


def measure(name: str, data: str, device: str, quick: bool) -> dict[str, Any]:
    """Fit a model on a data set and time its predictions: one cell, in its own process."""
    try:
        rows, model = data_sets.split(data, quick), MODELS[name]
    except data_sets.MissingDataError as missing:
        return {"left_out": str(missing)}
    changes: dict[str, Any] = dict(model.short) if quick else {}
    ours: dict[str, Any] = {"device": device} if model.module == "gce" else {}
    if model.module == "gce" and data in TIME_LIMIT:
        changes["time_limit"] = TIME_LIMIT[data]
    warm_up(name, rows, ours)
    estimator = make(name, rows.regression, **changes, **ours)
    result: dict[str, Any] = timed_fit(estimator, rows.X_train, rows.y_train)
    answer = np.ravel(estimator.predict(rows.X_test))
    error = np.abs(answer - rows.y_test).mean() if rows.regression else 100 * (answer != rows.y_test).mean()
    budget = 0.05 if quick else 0.5
    best = min(repeated(lambda: estimator.predict(rows.X_test), budget, most=20))
    result |= {"error": float(error), "predict_seconds": best, "predict_rows": len(rows.X_test)}
    if hasattr(estimator, "ensemble_"):
        result |= {"atoms": len(estimator.ensemble_.weights), "rounds": estimator.n_iter_}
    if data in PREDICT_SETS and name in PREDICT_MODELS:
        result["predict"] = [speeds(name, estimator, rows.X_test, threads, budget) for threads in sorted({1, CORES})]
    return result


def timed_fit(estimator: Any, X: NDArray[Any], y: NDArray[Any]) -> dict[str, float]:
    """Fit, and tell seconds, CPU seconds of all threads, and peak memory: beyond that just before, and in all."""
    reset_peak()
    before, cpu, wall = peak_mib(), time.process_time(), time.perf_counter()
    estimator.fit(X, y)
    seconds, cpu_seconds, peak = time.perf_counter() - wall, time.process_time() - cpu, peak_mib()
    return {"fit_seconds": seconds, "fit_cpu_seconds": cpu_seconds, "fit_mib": peak - before, "process_mib": peak}


def warm_up(name: str, rows: data_sets.Split, ours: dict[str, Any]) -> None:
    """A tiny fit and prediction: first uses load libraries, start threads and may compile."""
    X, y = data_sets.synthetic(200, rows.X_train.shape[1], 1 if rows.regression else 3)
    changes = [MODELS[name].short]
    if MODELS[name].module == "gce":
        # mini-batches are another path than the full batches of so few rows
        neural = importlib.import_module("gce.bases").Neural
        changes.append({"max_atoms": 2, "basis": neural(max_epochs=2, batch_size=64)})
    for change in changes:
        make(name, rows.regression, **change, **ours).fit(X, y).predict(X)


def speeds(name: str, estimator: Any, X: NDArray[np.float64], threads: int, seconds: float) -> dict[str, Any]:
    """Rows per second on many rows and on the test rows, and the latency of a single one."""
    many = np.tile(X, (-(-PREDICT_ROWS // len(X)), 1))[:PREDICT_ROWS]
    with _limited(name, estimator, threads) as predict:
        cpu, wall = time.process_time(), time.perf_counter()
        bulk, _ = best_and_median(lambda: predict(many), seconds)
        busy = (time.process_time() - cpu) / (time.perf_counter() - wall)
        test, _ = best_and_median(lambda: predict(X), seconds)
        _, single = best_and_median(lambda: predict(X[:1]), seconds)
    return {
        "threads": threads,
        "busy_cores": busy,
        "many_rows_per_second": len(many) / bulk,
        "test_rows_per_second": len(X) / test,
        "single_row_seconds": single,
    }


@contextmanager
def _limited(name: str, estimator: Any, threads: int) -> Iterator[Callable[[Any], Any]]:
    """A fitted model's ``predict`` on so many threads, however its library wants to be told."""
    module = MODELS[name].module
    predict = estimator.predict
    if module == "catboost":
        predict = functools.partial(predict, thread_count=threads)
    elif module == "xgboost":
        estimator.get_booster().set_param({"nthread": threads})
    elif module == "gce":
        sys.modules["torch"].set_num_threads(threads)
    else:
        estimator.set_params(n_jobs=threads)
    with threadpool_limits(threads):
        yield predict
