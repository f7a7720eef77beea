"""Patterns and folders of Parquet or Arrow files, which are never read into memory as a whole."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_classifier

from gce.cli.failures import DataError
from gce.cli.models import load_model
from gce.cli.reading import Cells, read_table
from gce.cli.rows import Columns, Rows, evaluation_rows
from gce.cli.tasks import MAX_CLASSES, ROWS_PER_CLASS, Task, check_kind, check_labels, values
from gce.cli.training import Training
from gce.distributed.world import World, process_group
from gce.preprocessing.dates import are_iso_dates
from gce.preprocessing.open_shards import OpenShards
from gce.preprocessing.shard_files import ENDINGS, is_pattern
from gce.preprocessing.shard_types import kind_of
from gce.preprocessing.shards import Shards

#: What to do instead of using an option that needs all rows in memory.
_INSTEAD = {
    "--report": "add --test FILE, whose rows it is then about",
    "--missing": "write missing values as nulls",
    "--dates": "write the column with a type of dates",
    "--drop-missing-target": "leave these rows out of the files",
    "--interval": "predict with Python, part by part",
    "--encoding": "leave it out, Parquet and Arrow files have text in UTF-8",
    "--keep": "predictions are in the order of the rows, part by part",
}


@contextmanager
def processes(source: str, timeout: float) -> Iterator[World]:
    """The processes that ``torchrun`` started for several files; for one table this process alone.

    Warnings of all processes but the first are left out.

    Parameters
    ----------
    source : str
        The files.
    timeout : float
        Seconds after which a process that does not answer is an error.
    """
    if not is_pattern(source):
        yield World()
        return
    with process_group(timeout) as world, warnings.catch_warnings():
        if world.rank:
            warnings.simplefilter("ignore")
        yield world


def refuse(source: str, options: Mapping[str, Any]) -> None:
    """Raise an error for an option that several files cannot have.

    Parameters
    ----------
    source : str
        The files.
    options : dict
        Whether each of some options was given.
    """
    for name, given in options.items():
        if given:
            raise DataError(f"{name} needs rows in memory, and those of {source} stay in files: {_INSTEAD[name]}")


def open_training(
    train: str, test: str | None, columns: Columns, task: Task, cells: Cells, categorical: Sequence[str], world: World
) -> Training:
    """Check the training files; the first process reads the test table.

    Parameters
    ----------
    train : str
        The files.
    test : str or None
        The table for the metrics.
    columns : Columns
        The columns that are no features.
    task : Task
        As given.
    cells : Cells
        How a test table in CSV is read.
    categorical : sequence of str
        Columns that are kept even if they are an index.
    world : World
        The processes.

    Returns
    -------
    Training
    """
    shards = Shards(
        train, target=columns.target, sample_weight=columns.weights, groups=columns.groups,
        drop=list(dict.fromkeys([*columns.drop, *columns.keep])),
    )  # fmt: skip
    opened = shards.open()
    task, reason = resolve_shard_task(task, opened)
    test_rows = None if test is None or world.rank else _test_rows(test, columns, opened, task, cells, categorical)
    return Training(train, opened.rows, len(opened.columns), task, reason, (shards,), test=test_rows, shown=test_rows)


def _test_rows(
    test: str, columns: Columns, opened: OpenShards, task: Task, cells: Cells, categorical: Sequence[str]
) -> Rows:
    text = [name for name in opened.schema.names if kind_of(opened.schema.field(name).type) == "text"]
    frame = read_table(test, cells, text, [*columns.special, *categorical])
    rows = evaluation_rows(test, frame, columns, opened.columns, drop_missing_target=False)
    check_kind(kind_of(opened.schema.field(columns.target).type), rows.y, rows.file)
    if task is Task.classification:
        labels = values(rows.y, task)
        check_labels(_known_labels(opened, set(labels.tolist())), labels, columns.target, rows.file)
    return rows


def _known_labels(opened: OpenShards, wanted: set[Any]) -> list[Any]:
    """Labels of the files, which are read one after another until all wanted ones are among them."""
    (name,) = opened.targets
    known: set[Any] = set()
    for i in range(len(opened.units)):
        y = pl.Series(name, pl.from_arrow(opened.read(i, [name])[name].unique())).drop_nulls()
        known.update(values(y.drop_nans() if y.dtype.is_float() else y, Task.classification).tolist())
        if wanted <= known:
            break
    return sorted(known)


def resolve_shard_task(task: Task, opened: OpenShards) -> tuple[Task, str]:
    """The task of the target of files, and the reason in words; see :func:`gce.cli.tasks.resolve_task`.

    Parameters
    ----------
    task : Task
        As given.
    opened : OpenShards
        Files with one target.

    Returns
    -------
    tuple of Task and str
    """
    (name,) = opened.targets
    dtype = opened.schema.field(name).type
    kind = kind_of(dtype)
    if task is Task.regression and kind != "number":
        raise DataError(f"regression needs numbers, but {name!r} is of type {dtype}: use --task classification")
    if task is not Task.auto:
        return task, "set by --task"
    if kind == "number":
        return _infer_from_numbers(name, opened)
    if kind == "text" and are_iso_dates(np.asarray(opened.read(0, [name])[name].to_pylist(), dtype=object)):
        raise DataError(f"the target {name!r} holds dates: a target must be numbers, text or booleans")
    words = {"text": "text", "boolean": "boolean"}
    return Task.classification, f"{name!r} is {words.get(str(kind), 'a category')}"


def _infer_from_numbers(name: str, opened: OpenShards) -> tuple[Task, str]:
    """The task of a target of numbers: one file after another is read until it is clear."""
    distinct: set[float] = set()
    for i in range(len(opened.units)):
        column = opened.read(i, [name])[name].drop_null()
        present = column.cast("float64", safe=False).to_numpy()
        present = np.unique(present[~np.isnan(present)])
        if (np.abs(present) >= 2.0**53).any():
            return Task.regression, f"{name!r} holds numbers too large to be classes"
        if (present % 1 != 0).any():
            return Task.regression, f"{name!r} has non-integer values"
        distinct.update(present.tolist())
        if len(distinct) > MAX_CLASSES:
            return Task.regression, f"{name!r} takes more than {MAX_CLASSES} values"
    if opened.rows >= ROWS_PER_CLASS * len(distinct):
        return Task.classification, f"{name!r} takes {len(distinct)} integer values only"
    return Task.regression, f"{name!r} takes {len(distinct)} integer values"


def predict_files(model: str, rows: str, out: Path, proba: bool, device: str, timeout: float) -> None:
    """Predict files into files of a folder.

    Parameters
    ----------
    model : str
        The model file.
    rows : str
        The files.
    out : Path
        The folder.
    proba : bool
        Probabilities in place of classes.
    device : str
        Where the model predicts.
    timeout : float
        Seconds after which a process that does not answer is an error.
    """
    if str(out) == "-" or out.suffix.lower() in (".csv", *ENDINGS):
        raise DataError(f"predictions of {rows} are several files: name a folder for them with --out, not {str(out)!r}")
    with processes(rows, timeout):
        fitted = load_model(model, device)
        if proba and not is_classifier(fitted):
            raise DataError(f"{model} is a regressor, which has no probabilities: leave out --proba")
        fitted.predict_shards(Shards(rows), out, method="predict_proba" if proba else "predict")
