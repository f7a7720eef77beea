"""A million rows within a limit of time, beside the defaults of CatBoost, LightGBM and XGBoost."""

from __future__ import annotations

import time
from typing import Any

import data_sets
import numpy as np
from harness import Options, Section, Table, call, left_out, number, peak_mib, reset_peak
from models import MODELS, importable, make, timed_fit
from serving import SERVED, THREADS

#: Training rows, test rows, and the seconds that GCE may take.
SIZE = (1_000_000, 100_000, 60.0)
QUICK_SIZE = (20_000, 2_000, 3.0)


def limits_section(options: Options) -> Section:
    n, test, limit = QUICK_SIZE if options.quick else SIZE
    cells, rows = [], []
    for label, name in SERVED.items():
        if importable(name):
            result = call("large_rows:limited", threads=THREADS, name=name, n=n, test=test, limit=limit)
        else:
            result = {"left_out": f"{MODELS[name].module} is not installed"}
        cells.append({"model": label, "rows": n, **result})
        rows.append([f"{label} (`time_limit={limit:g}`)" if label == "GCE" else label, *_texts(result)])
    head = ["test RMSE", "fit s", "fit CPU s", "peak memory GB", "beyond imports GB", "predict s"]
    text = (
        f"{n:,} x 30 rows in float32, of which four columns count (noise: a standard deviation of 0.3, below which no "
        f"RMSE falls), on {THREADS} threads; GCE with a limit of {limit:g} s, the others at their defaults. RMSE and "
        f"the seconds of one prediction are of {test:,} fresh rows. Memory: the peak of the whole process during the "
        "fit, and what of it was not there after the imports; the data are in both."
    )
    return Section("A million rows in a minute", text, [Table("regression", head, rows)], cells)


def limited(name: str, n: int, test: int, limit: float) -> dict[str, Any]:
    """Fit a regressor on ``n`` made-up rows and judge it on ``test`` others."""
    model = MODELS[name]
    changes: dict[str, Any] = {"time_limit": limit} if model.module == "gce" else {}
    if model.threads:
        changes[model.threads] = THREADS
    estimator = make(name, True, **changes)
    reset_peak()
    imports = peak_mib()
    X, y = data_sets.made_up(n + test, True)
    result: dict[str, Any] = timed_fit(estimator, X[:n], y[:n])
    began = time.perf_counter()
    answer = np.ravel(estimator.predict(X[n:]))
    result["predict_seconds"] = time.perf_counter() - began
    error = np.sqrt(np.mean((answer - y[n:]) ** 2, dtype=np.float64))
    return {**result, "beyond_imports_mib": result["process_mib"] - imports, "rmse": float(error)}


def _texts(result: dict[str, Any]) -> list[str]:
    if "left_out" in result:
        return left_out(result, 6)
    memory = [number(result[key] * 2**20 / 1e9) for key in ("process_mib", "beyond_imports_mib")]
    times = [number(result[key]) for key in ("fit_seconds", "fit_cpu_seconds")]
    return [f"{result['rmse']:.4f}", *times, *memory, number(result["predict_seconds"])]
