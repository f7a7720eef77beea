"""``gce warmup``: what a first fit and a first prediction would otherwise wait for."""

from __future__ import annotations

import compileall
import sys
import warnings
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Annotated, Any

import typer

from gce.cli import options
from gce.cli.rendering import grid, show

_Step = tuple[str, float, str]


def warmup(
    device: Annotated[str, typer.Option(help="Where fits will run: cpu, cuda, or auto (a GPU if available).")] = "auto",
    debug: options.Debug = False,
) -> None:
    """Prepare a machine or a container image, so that its first fit is as fast as any other.

    Runs tiny fits and predictions of all families, keeps the byte code of all modules that they import, and on a GPU
    compiles its kernels.
    """
    steps = [_timed("imports", _import_all)]
    steps += _gpu(device)
    steps += [_timed("first fits", _run_all, device), _timed("second fits", _run_all, device)]
    steps.append(_timed("byte code", _compile_modules))
    show(grid([[name, f"{seconds:.1f} s", text] for name, seconds, text in steps]))


def _timed(name: str, work: Callable[..., str], *given: Any) -> _Step:
    start = perf_counter()
    text = work(*given)
    return name, perf_counter() - start, text


def _import_all() -> str:
    from gce import estimators
    from gce._utils.native import library

    for name in estimators.__all__:
        getattr(estimators, name)
    library()
    return f"{len(sys.modules):,} modules, kernels of this processor"


def _gpu(device: str) -> list[_Step]:
    """The kernels of a CUDA device, compiled and kept; nothing on a processor."""
    from gce._utils import cuda
    from gce._utils.devices import find_device

    found = find_device(device)
    if found.type != "cuda":
        return []
    if reason := cuda.missing(found):
        return [("GPU", 0.0, f"no kernels: {reason}")]
    return [_timed("GPU", lambda: f"{cuda.prepare(found)} files of kernels, kept in {cuda.cache_folder()}")]


def _run_all(device: str) -> str:
    """Fit every kind of model to a table with every kind of column, and predict from a file."""
    from gce.estimators import GCEClassifier, GCERegressor, load

    rows, number = _table()
    tiny: dict[str, Any] = {"max_iter": 2, "cv": 2, "random_state": 0, "device": device}
    kinds = [
        (GCERegressor(**tiny), number),
        (GCEClassifier(**tiny), [value > 0 for value in number]),
        (GCEClassifier(**tiny), [round(value) % 3 for value in number]),
    ]
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        # fits of two rounds have not converged
        warnings.simplefilter("ignore")
        for model, target in kinds:
            model.fit(rows, target).save(Path(folder) / "m.safetensors")
            load(Path(folder) / "m.safetensors", device=device).predict(rows)
    return "all families: numbers and classes, files, predictions"


def _table() -> tuple[Any, list[float]]:
    """A frame of numbers, categories, dates and text with missing values, and a number for each row."""
    from datetime import datetime, timedelta

    import polars

    number = [float(i % 7 - 3) for i in range(80)]
    words = ("red apple", "green pear", "blue plum", "old fig", "ripe date")
    frame = {
        "number": [value if i % 9 else None for i, value in enumerate(number)],
        "category": [("a", "b", "c")[i % 3] for i in range(80)],
        "date": [datetime(2020, 1, 1) + timedelta(hours=7 * i) for i in range(80)],
        "text": [f"{words[i % 5]} from garden number {i}, with {words[i // 16]}" for i in range(80)],
    }
    return polars.DataFrame(frame), number


def _compile_modules() -> str:
    """Keep the byte code of all modules that are loaded, also where Python itself is told not to."""
    sources = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    # modules that are made at run time may name files that do not exist
    python = sorted(source for source in sources if source and source.endswith(".py") and Path(source).is_file())
    done = [_compile(source) for source in python]
    failed = f"; {done.count(None):,} more cannot be written" if None in done else ""
    return f"{sum(map(bool, done)):,} of {len(python):,} modules had none{failed}"


def _compile(source: str) -> bool | None:
    """Whether a module had to be compiled; None where its byte code cannot be written."""
    kept = Path(cache_from_source(source))
    before = kept.stat().st_mtime_ns if kept.exists() else None
    if not compileall.compile_file(source, quiet=2):
        return None
    return kept.stat().st_mtime_ns != before
