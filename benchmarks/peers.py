"""GCE beside its peers: time, memory and error of a fit, and the speed of predictions."""

from __future__ import annotations

from typing import Any

import data_sets
from harness import CORES, Options, Section, Table, left_out, number
from models import MODELS, PREDICT_MODELS, PREDICT_ROWS, PREDICT_SETS, TIME_LIMIT, cell, importable

SETS = ("digits", "california", "letter", "covertype")
QUICK_SETS = PREDICT_SETS


def peers_section(options: Options) -> Section:
    cells, tables = [], []
    for data in QUICK_SETS if options.quick else SETS:
        rows = []
        for name in MODELS:
            result = _cell(name, data, options)
            cells.append({key: value for key, value in result.items() if key != "predict"})
            rows.append([_label(name, data), *_fit_texts(result)])
        error = "test MAE" if data in data_sets.REGRESSION else "test error %"
        head = ["fit s", "fit CPU s", "fit memory MiB", "predict s", "predict rows/s", error]
        tables.append(Table(data, head, rows))
    text = (
        f"All models at their defaults, `random_state=0`, on {CORES} threads; the same rows for all: random 80/20 cuts "
        f"(seed 0), of covertype {_drawn('covertype')}. Each fit runs in a fresh process after a tiny warm-up fit of "
        "the same model (which loads libraries, and for GCE compiles what is not yet in its cache on disk). CPU "
        "seconds: user and system, all threads. Memory: the process' peak during the fit above that just before it. "
        "Prediction: the best of several calls on the test rows."
    )
    return Section("Peers at their defaults", text, tables, cells)


def predict_section(options: Options) -> Section:
    cells: list[dict[str, Any]] = []
    tables, counts = [], sorted({1, CORES})
    for data in PREDICT_SETS:
        rows = []
        for name in PREDICT_MODELS:
            result = _cell(name, data, options)
            cells.append(
                {key: result[key] for key in ("model", "set", "predict", "left_out", "failed") if key in result}
            )
            rows.append([name, *_speed_texts(result, len(counts))])
        head = []
        for threads in counts:
            word = "1 thread" if threads == 1 else f"{threads} threads"
            head += [f"{PREDICT_ROWS:,} rows: rows/s, {word}", f"test rows: rows/s, {word}", f"one row: µs, {word}"]
        tables.append(Table(data, head, rows))
    text = (
        f"`predict` of the models of the peers section: on the test rows repeated to {PREDICT_ROWS:,}, on the test "
        "rows themselves (best of several calls), and on one row (median). Arrays in, classes or numbers out, with all "
        "of each library's own checks."
    )
    return Section("Prediction", text, tables, cells)


def _cell(name: str, data: str, options: Options) -> dict[str, Any]:
    if not importable(name):
        return {"model": name, "set": data, "left_out": f"{MODELS[name].module} is not installed"}
    return cell(name, data, options.device, options.quick)


def _label(name: str, data: str) -> str:
    limited = data in TIME_LIMIT and MODELS[name].module == "gce"
    return f"{name} (`time_limit={TIME_LIMIT[data]:.0f}`)" if limited else name


def _drawn(data: str) -> str:
    train, test = data_sets.DRAWN[data]
    return f"{train:,} training and {test:,} test rows drawn at random"


def _fit_texts(result: dict[str, Any]) -> list[str]:
    if "left_out" in result:
        return left_out(result, 6)
    rate = result["predict_rows"] / result["predict_seconds"]
    keys = ("fit_seconds", "fit_cpu_seconds", "fit_mib", "predict_seconds")
    error = f"{result['error']:.3f}" if result["set"] in data_sets.REGRESSION else f"{result['error']:.2f}"
    return [*(number(result[key]) for key in keys), number(rate), error]


def _speed_texts(result: dict[str, Any], counts: int) -> list[str]:
    if "left_out" in result:
        return left_out(result, 3 * counts)
    texts = []
    for speed in result["predict"]:
        texts += [number(speed["many_rows_per_second"]), number(speed["test_rows_per_second"])]
        texts.append(number(1e6 * speed["single_row_seconds"]))
    return texts
