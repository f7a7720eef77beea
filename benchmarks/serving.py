"""GCE as a service beside CatBoost, LightGBM and XGBoost: first fits, memory, predictions, files and loading."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
from harness import CORES, Options, Section, Table, call, left_out, number, peak_mib, repeated, reset_peak
from models import MODELS, importable, make, timed_fit

SERVED = {"GCE": "GCE default", "CatBoost": "CatBoost", "LightGBM": "LightGBM", "XGBoost": "XGBoost"}
SETS = ("california", "adult", "satimage")
AGAINST = ("CatBoost", "XGBoost")
THREADS = min(2, CORES)
#: Fresh processes of a figure that is told as a median.
PROCESSES = 3
#: Calls of which one row's latency is the median.
CALLS = 200
SUFFIX = {"gce": "gce", "catboost": "cbm", "xgboost": "ubj", "lightgbm": "txt"}
#: What is told of a model: key, head of the column.
FIGURES = {
    "fit_seconds": "fit s",
    "fit_cpu_seconds": "fit CPU s",
    "peak_gb": "peak memory GB",
    "beyond_imports_gb": "beyond imports GB",
    "rows_per_second": "rows/s",
    "one_row_ms": "one row ms",
    "file_mb": "file MB",
    "load_seconds": "import, load, first row s",
    "beyond_torch_seconds": "beyond torch s",
}


def serving_section(options: Options) -> Section:
    processes = _processes(options.quick)
    firsts = {label: first_fit(label, options.quick) for label in SERVED}
    tables = [_first_table(firsts)]
    cells = [{"set": "diabetes", "model": label, **result} for label, result in firsts.items()]
    ratios = []
    for data in SETS:
        found = {label: figures(label, data, options.quick) for label in SERVED}
        cells += [{"set": data, "model": label, **result} for label, result in found.items()]
        error = "test MAE" if data in data_sets.REGRESSION else "test error %"
        rows = [[label, *_texts(result)] for label, result in found.items()]
        tables.append(Table(data, [*FIGURES.values(), error], rows))
        ratios += [[f"{data}, GCE / {other}", *_ratios(found["GCE"], found[other])] for other in AGAINST]
    tables.append(Table("ratios", list(FIGURES.values()), ratios))
    text = (
        f"All models at their defaults, `random_state=0`, on {THREADS} threads, each measured in a process of its own "
        f"that did nothing before. First fit: of diabetes, medians of {processes} processes; the import is what comes "
        "on top of scikit-learn's data sets and, for GCE, torch; the total is from the start of the process to the "
        "fitted model, torch included. Sets: the splits of the peers section. Memory: the peak of the whole process "
        "during the fit, and what of it was not there after the imports (the data are in both). CPU seconds: user and "
        "system, all threads. Rows per second: the best of several calls on the test rows. One row: the median of "
        f"{_calls(options.quick)} calls. File: `save` of GCE, cbm of CatBoost, ubj of XGBoost, text of LightGBM. Last, "
        "a fresh process imports the library, loads the file and predicts one row "
        f"(medians of {processes}); for GCE also without "
        "what `import torch` takes. Ratios below 1 are in favour of GCE, but for rows per second, where those above 1 "
        "are; those of the last column are to the whole time of the other library."
    )
    return Section("First fits and serving", text, tables, cells)


def first_fit(label: str, quick: bool) -> dict[str, Any]:
    """Medians of :func:`first_use.first_fit` over fresh processes."""
    model = MODELS[SERVED[label]]
    if not importable(SERVED[label]):
        return {"left_out": f"{model.module} is not installed"}
    settings = {"random_state": 0, **model.settings, **({model.threads: THREADS} if model.threads else {})}
    settings |= model.short if quick else {}
    given = {"module": model.module, "stem": model.stem, "settings": settings}
    return _medians(
        [call("first_use:first_fit", threads=THREADS, **given, began=time.time()) for _ in range(_processes(quick))]
    )


def figures(label: str, data: str, quick: bool) -> dict[str, Any]:
    """All figures of one model on one set."""
    module, regression = MODELS[SERVED[label]].module, data in data_sets.REGRESSION
    if not importable(SERVED[label]):
        return {"left_out": f"{module} is not installed"}
    with tempfile.TemporaryDirectory() as folder:
        path, row = Path(folder) / f"model.{SUFFIX[module]}", Path(folder) / "row.npy"
        files = {"path": str(path), "row": str(row)}
        result = call("serving:fitted", threads=THREADS, name=SERVED[label], data=data, quick=quick, **files)
        if "left_out" in result:
            return result
        loaded = _medians(
            [
                call("first_use:first_row", threads=THREADS, module=module, regression=regression, **files)
                for _ in range(_processes(quick))
            ]
        )
    if "left_out" in loaded:
        return loaded
    result["load_seconds"], result["beyond_torch_seconds"] = loaded["seconds"], loaded["beyond_torch_seconds"]
    return {**result, "file_mb": loaded["file_bytes"] / 1e6}


def fitted(name: str, data: str, quick: bool, path: str, row: str) -> dict[str, Any]:
    """Fit a model, time its predictions, and write it and one test row to files."""
    model = MODELS[name]
    changes: dict[str, Any] = dict(model.short) if quick else {}
    if model.threads:
        changes[model.threads] = THREADS
    estimator = make(name, data in data_sets.REGRESSION, **changes)
    reset_peak()
    imports = peak_mib()
    try:
        rows = data_sets.split(data, quick)
    except data_sets.MissingDataError as missing:
        return {"left_out": str(missing)}
    result: dict[str, Any] = timed_fit(estimator, rows.X_train, rows.y_train)
    result |= {"peak_gb": _gb(result["process_mib"]), "beyond_imports_gb": _gb(result["process_mib"] - imports)}
    answer = np.ravel(estimator.predict(rows.X_test))
    error = np.abs(answer - rows.y_test).mean() if rows.regression else 100 * (answer != rows.y_test).mean()
    best = min(repeated(lambda: estimator.predict(rows.X_test), 0.05 if quick else 1.0, least=5, most=50))
    latency = repeated(lambda: estimator.predict(rows.X_test[:1]), 0.0, least=_calls(quick))
    _save(estimator, model.module, path)
    np.save(row, rows.X_test[:1])
    speeds = {"rows_per_second": len(rows.X_test) / best, "one_row_ms": 1000 * statistics.median(latency)}
    return {**result, **speeds, "error": float(error)}


def _save(estimator: Any, module: str, path: str) -> None:
    if module == "gce":
        estimator.save(path)
    elif module == "lightgbm":
        estimator.booster_.save_model(path)
    else:
        estimator.save_model(path)


def _processes(quick: bool) -> int:
    return 1 if quick else PROCESSES


def _calls(quick: bool) -> int:
    return 5 if quick else CALLS


def _gb(mib: float) -> float:
    return mib * 2**20 / 1e9


def _medians(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every figure, or the first result that is none."""
    for result in results:
        if "left_out" in result:
            return result
    return {
        key: None if value is None else statistics.median(result[key] for result in results)
        for key, value in results[0].items()
    }


def _first_table(firsts: dict[str, dict[str, Any]]) -> Table:
    keys = {"import_seconds": "import s", "fit_seconds": "fit s", "total_seconds": "total s"}
    rows = []
    for label, result in firsts.items():
        texts = left_out(result, len(keys)) if "left_out" in result else [number(result[key]) for key in keys]
        rows.append([label, *texts])
    return Table("first fit, diabetes", list(keys.values()), rows)


def _texts(result: dict[str, Any]) -> list[str]:
    if "left_out" in result:
        return left_out(result, len(FIGURES) + 1)
    return [*(number(result[key]) for key in FIGURES), f"{result['error']:.3f}"]


def _ratios(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    if "left_out" in ours or "left_out" in theirs:
        return [""] * len(FIGURES)
    # no other library loads torch: all of its time is beyond that
    theirs = {**theirs, "beyond_torch_seconds": theirs["load_seconds"]}
    return [number(ours[key] / theirs[key]) for key in FIGURES]
