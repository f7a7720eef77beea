"""What ``gce fit`` gives to an estimator: a table in memory, or files that are read one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from gce.cli.reading import Cells
from gce.cli.rows import Columns, Rows, check_test, load
from gce.cli.tasks import Task, resolve_task, values


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows and their task.

    Parameters
    ----------
    file : str
        Where they come from, for messages.
    rows, columns : int
        How many rows and features there are.
    task : Task
        Regression or classification.
    reason : str
        Why, in words.
    arguments, extras
        Of the estimator's ``fit``.
    test : Rows, optional
        Rows for the metrics.
    shown : Rows, optional
        Rows for a report: those of the test, or else those of the fit if they are in memory.
    dates : tuple of str
        Columns of text that were recognised as dates.
    """

    file: str
    rows: int
    columns: int
    task: Task
    reason: str
    arguments: tuple[Any, ...]
    extras: dict[str, Any] = field(default_factory=dict)
    test: Rows | None = None
    shown: Rows | None = None
    dates: tuple[str, ...] = ()


def _target(y: pl.Series, task: Task) -> Any:
    """Targets for ``fit``: those of an Enum as they are, because an array would have no order of the classes."""
    return y if task is Task.classification and isinstance(y.dtype, pl.Enum) else values(y, task)


def read_training(
    train: str,
    test: str | None,
    columns: Columns,
    task: Task,
    cells: Cells,
    drop_missing_target: bool,
    categorical: Sequence[str],
) -> Training:
    """Read the training and the test table into memory."""
    rows, test_rows = load(train, test, columns, cells, drop_missing_target, categorical)
    task, reason = resolve_task(task, rows.y)
    check_test(task, rows, test_rows)
    return Training(
        rows.file,
        len(rows),
        rows.X.width,
        task,
        reason,
        (rows.X, _target(rows.y, task), rows.weight),
        {} if rows.groups is None else {"groups": rows.groups},
        test_rows,
        test_rows or rows,
        rows.dates,
    )
