"""The oracle alone: time of an epoch beside plain autograd, and whole fits that are little else."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import data_sets
import torch
from harness import Options, Section, Table, call, left_out, number, peak_mib, repeated, reset_peak
from plain import PlainNeural

import gce
from gce._utils.random import RoundStreams
from gce.bases.objectives import Linear

BASES = {"engine": gce.bases.Neural, "plain autograd": PlainNeural}
#: CPU seconds of the authors' released code for one fit of digits, one setting, as measured elsewhere.
RELEASED_DIGITS_SECONDS = "38 to 44"
DIGITS_SEEDS = 3
#: A long call is no longer than this: the networks stay in the state in which fits train them.
MOST_EPOCHS = 200


@dataclass(frozen=True)
class Shape:
    """What one oracle call trains on; ``batch`` None is the default (all rows, up to 4,096 of them)."""

    name: str
    rows: int
    columns: int
    outputs: int
    batch: int | None
    hidden: int = 10
    members: int = 1


def _small() -> list[Shape]:
    sizes = [("boston", 323, 13, 1), ("diabetes", 282, 10, 1), ("digits", 1149, 64, 10)]
    thirds = [Shape(name, n, d, k, math.ceil(n / 3)) for name, n, d, k in sizes]
    return [
        *thirds,
        *(Shape(name, n, d, k, None) for name, n, d, k in sizes),
        Shape("california", 13_209, 8, 1, 4096, hidden=100),
    ]


SHAPES = {
    "cpu": _small(),
    "cuda": [
        *_small(),
        Shape("year prediction", 462_848, 90, 1, 8192, hidden=100),
        Shape("year prediction", 462_848, 90, 1, 8192, hidden=100, members=5),
        Shape("kddcup99", 3_900_000, 41, 23, 8192, hidden=100),
    ],
}
#: Whole fits on a GPU: rows, columns, outputs (1: regression), atoms, hidden units.
LARGE_FITS = [(462_848, 90, 1, 100, 10), (462_848, 90, 1, 100, 100), (3_900_000, 41, 23, 10, 10)]


def oracle_section(options: Options) -> Section:
    cells, rows = [], []
    for shape in SHAPES[options.device][:: 3 if options.quick else 1]:
        given = replace(shape, rows=min(shape.rows, 10_000)) if options.quick else shape
        result = call("oracle:epoch_times", threads=1, shape=asdict(given), device=options.device, quick=options.quick)
        cells.append({**asdict(given), **result})
        batch = "all" if given.batch is None else f"{given.batch:,}"
        size = [f"{given.rows:,} x {given.columns}", str(given.outputs), str(given.hidden), batch, str(given.members)]
        rows.append([given.name, *size, *_epoch_texts(result)])
    head = ["rows x columns", "outputs", "hidden", "batch", "members", "engine", "plain autograd", "ratio", "besides"]
    same = "the same networks, to rounding," if options.device == "cpu" else "networks of the same starts and schedule"
    text = (
        f"Microseconds of an epoch of training one round's atoms, one thread, device {options.device}: the difference "
        "between a long and a short call, so that what the engine's call costs besides its epochs stands apart (last "
        "column); first calls, which may compile or capture, are not counted. Normal inputs and random gradients at "
        f"the sizes of the paper's splits. Plain autograd (`benchmarks/plain.py`) trains {same} one by one with "
        "torch.nn and torch.optim; the authors' released code takes 1,500 to 2,000 µs of "
        "CPU an epoch on the three small sets."
    )
    words, table, fits = _digits_fits(options) if options.device == "cpu" else _large_fits(options)
    return Section("Oracle", f"{text}\n\n{words}", [Table("µs/epoch", head, rows), table], cells + fits)


def _epoch_texts(result: dict[str, Any]) -> list[str]:
    if "left_out" in result:
        return left_out(result, 4)
    engine, plain = (1e6 * result[name]["epoch_seconds"] for name in BASES)
    return [number(engine), number(plain), number(plain / engine), number(1e6 * result["engine"]["besides_seconds"])]


def epoch_times(shape: dict[str, Any], device: str, quick: bool) -> dict[str, Any]:
    """Seconds of an epoch, and of a call besides its epochs, by the engine and by plain autograd."""
    torch.set_num_threads(1)
    given = Shape(**shape)
    return {name: _epoch_time(kind, given, device, 0.05 if quick else 0.5) for name, kind in BASES.items()}


def _epoch_time(kind: type[gce.bases.Neural], shape: Shape, device: str, budget: float) -> dict[str, float]:
    # a schedule that never ends early: every epoch asked for is run
    basis = kind(hidden=shape.hidden, batch_size=shape.batch, patience=10**9)
    dice = torch.Generator(device).manual_seed(0)
    like: dict[str, Any] = {"generator": dice, "device": device}
    X = torch.randn(shape.rows, shape.columns, dtype=basis.dtype(shape.rows), **like)
    gradient = torch.randn(shape.members, shape.rows, shape.outputs, dtype=torch.float64, **like)
    objective = Linear(gradient, torch.ones(shape.outputs, dtype=torch.float64, device=device))

    context = gce.bases.FitContext()

    def seconds(epochs: int, budget: float) -> float:
        basis.set_params(max_epochs=epochs)

        def work() -> None:
            members = tuple(range(shape.members))
            with torch.no_grad():
                rng = RoundStreams((0,), tuple((0, m) for m in members), members)
                basis.minimize(objective, X, rng=rng, context=context)
            if device == "cuda":
                torch.cuda.synchronize()

        return min(repeated(work, budget, least=2))

    few = 2
    short = seconds(few, budget)
    many = few + min(max(int(budget * few / short), 2), MOST_EPOCHS)
    epoch = (seconds(many, 2 * budget) - short) / (many - few)
    return {"epoch_seconds": epoch, "besides_seconds": short - few * epoch, "epochs": many}


def _digits_fits(options: Options) -> tuple[str, Table, list[dict[str, Any]]]:
    cells, rows = [], []
    seeds = 1 if options.quick else DIGITS_SEEDS
    for name in BASES:
        result = call("oracle:digits_fits", threads=1, basis=name, seeds=seeds, quick=options.quick)
        cells.append({"fit": "digits", "basis": name, **result})
        if "left_out" in result:
            rows.append([name, *left_out(result, 3)])
            continue
        columns = [[number(x) for x in result[key]] for key in ("cpu_seconds", "errors")]
        rows.append([name, *(" / ".join(column) for column in columns), " / ".join(map(str, result["rounds"]))])
    rows.append(["authors' released code", RELEASED_DIGITS_SECONDS, "", ""])
    text = (
        "Whole fits of digits on the paper's split, its validation rows given: "
        "`GCEClassifier(cv=None, n_iter_no_change=10)`, CPU seconds on one thread, one number a seed; the "
        "released code's are of one fit of one setting."
    )
    return text, Table("digits, whole fit", ["CPU s", "test error %", "rounds"], rows), cells


def digits_fits(basis: str, seeds: int, quick: bool) -> dict[str, Any]:
    """CPU seconds and test errors of fits on the paper's split, a seed each, after a tiny one."""
    torch.set_num_threads(1)
    (X, y), (X_val, y_val), (X_test, y_test) = data_sets.reference_digits()
    result: dict[str, Any] = {"cpu_seconds": [], "errors": [], "rounds": []}
    settings: dict[str, Any] = {"algorithm": "pairwise", "cv": None, "n_iter_no_change": 10, "verbose": False}
    gce.GCEClassifier(**settings, basis=BASES[basis](max_epochs=2), max_atoms=2).fit(X[:200], y[:200])
    for seed in range(seeds):
        atoms = 3 if quick else 100
        model = gce.GCEClassifier(**settings, basis=BASES[basis](), max_atoms=atoms, random_state=seed)
        began = time.process_time()
        model.fit(X, y, X_val=X_val, y_val=y_val)
        result["cpu_seconds"].append(time.process_time() - began)
        result["errors"].append(100 * float((model.predict(X_test) != y_test).mean()))
        result["rounds"].append(model.n_iter_)
    return result


def _large_fits(options: Options) -> tuple[str, Table, list[dict[str, Any]]]:
    cells, rows = [], []
    for n, d, k, atoms, hidden in LARGE_FITS:
        size = {"n": min(n, 20_000) if options.quick else n, "d": d, "k": k, "atoms": atoms, "hidden": hidden}
        result = call("oracle:large_fit", device=options.device, **size)
        cells.append({"fit": "synthetic", **size, **result})
        task = "regression" if k == 1 else f"{k} classes"
        words = [f"{size['n']:,} x {d}", task, str(atoms), str(hidden)]
        if "left_out" in result:
            rows.append([*words, *left_out(result, 4)])
            continue
        keys = ("seconds", "host_gib", "host_before_gib", "gpu_gib")
        rows.append([*words, *(number(result[key]) for key in keys)])
    text = (
        "Whole fits on synthetic rows, a fifth of them held out (`cv=None, n_iter_no_change=None`): seconds from "
        "arrays on the host to a fitted model, the process' peak memory on the host, that before the fit (data "
        "included), and the peak on the GPU."
    )
    head = ["task", "atoms", "hidden", "fit s", "peak host GiB", "before the fit", "peak GPU GiB"]
    return text, Table("rows x columns", head, rows), cells


def large_fit(n: int, d: int, k: int, atoms: int, hidden: int, device: str) -> dict[str, Any]:
    """A fit of so many atoms on synthetic data, after a tiny one."""
    kind = gce.GCERegressor if k == 1 else gce.GCEClassifier
    settings: dict[str, Any] = {"cv": None, "n_iter_no_change": None, "device": device, "verbose": False}
    basis = gce.bases.Neural(hidden=hidden)
    X, y = data_sets.synthetic(n, d, k)
    kind(**settings, basis=basis, max_atoms=2, random_state=0).fit(X[:10_000], y[:10_000])
    reset_peak()
    before, began = peak_mib(), time.perf_counter()
    model = kind(**settings, basis=basis, max_atoms=atoms, random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "rounds": model.n_iter_,
        "host_gib": peak_mib() / 1024,
        "host_before_gib": before / 1024,
        "gpu_gib": torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None,
    }
