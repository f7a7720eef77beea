"""The tables of ``make tables``: their splits by chance, time or group, and the columns of models that take no dates.

``GCE_DATA_HOME`` names a folder with ``tables/tables.json``, which gives each table's target, task, split and key, and
``tables/NAME.parquet``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from data_sets import MissingDataError, Split
from numpy.typing import NDArray

SEEDS = (0, 1, 2)
Indices = NDArray[np.intp]
#: Mean characters of a value from which a column of mostly distinct strings is text. The job titles of loans, 15
#: characters, are categories to CatBoost: as text it took six times as long and was worse (RMSE 3.695 and 3.756, as
#: categories 3.676 and 3.729, split seeds 10 and 11, which are not reported).
TEXT_LENGTH = 20


@dataclass(frozen=True)
class About:
    """What tables.json says of a table: ``split`` is "random", "time" or "group", ``key`` the column it goes by."""

    target: str
    task: str
    split: str
    key: str | None
    rows: int

    @property
    def regression(self) -> bool:
        return self.task == "regression"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Splits that differ: by time there is one."""
        return SEEDS[:1] if self.split == "time" else SEEDS


def folder() -> Path:
    """Where the tables are."""
    home = os.environ.get("GCE_DATA_HOME")
    if not home or not (Path(home) / "tables" / "tables.json").exists():
        raise MissingDataError("GCE_DATA_HOME has no tables/tables.json: set it to the folder that has")
    return Path(home) / "tables"


def described() -> dict[str, About]:
    """All tables by name, the small ones first, so that a run that is stopped has something of most."""
    held = json.loads((folder() / "tables.json").read_text())
    names = ("target", "task", "split", "key", "rows")
    tables = {name: About(**{key: one[key] for key in names}) for name, one in held.items()}
    return dict(sorted(tables.items(), key=lambda item: item[1].rows))


def split_rows(frame: pd.DataFrame, about: About, seed: int) -> tuple[Indices, Indices]:
    """Indices of the rows of ``frame`` (n, d) to fit on and to judge by.

    By chance the first ``int(0.8 n)`` of ``RandomState(seed).permutation(n)`` are fitted on; by time the first
    ``int(0.8 n)`` in the order of the key; by group all rows but those of the first fifth of the distinct keys, sorted
    and then permuted by ``RandomState(seed)``.
    """
    n = len(frame)
    if about.split == "group":
        key = frame[about.key].to_numpy()
        groups = np.unique(key)
        groups = groups[np.random.RandomState(seed).permutation(len(groups))]
        judged = np.isin(key, groups[: len(groups) // 5])
        return np.flatnonzero(~judged), np.flatnonzero(judged)
    if about.split == "time":
        order = np.argsort(frame[about.key].to_numpy(), kind="stable")
    else:
        order = np.random.RandomState(seed).permutation(n)
    train, test = np.split(order, [int(0.8 * n)])
    return train, test


def cut(name: str, seed: int) -> Split:
    """A table's split with its columns as they are; a key of groups is no column, for its values are new at predict."""
    about = described()[name]
    return cut_frame(pd.read_parquet(folder() / f"{name}.parquet"), about, seed)


def cut_frame(frame: pd.DataFrame, about: About, seed: int) -> Split:
    """The rows of ``frame`` (n, d) to fit on and to judge by.

    Classes are codes of the sorted classes that are fitted on, as some libraries want them; -1 is any other class.
    """
    train, test = split_rows(frame, about, seed)
    y = frame[about.target].to_numpy()
    y_train, y_test = y[train], y[test]
    if about.regression:
        y_train, y_test = y_train.astype(np.float64), y_test.astype(np.float64)
    else:
        classes = np.unique(y_train)
        y_train = np.searchsorted(classes, y_train)
        y_test = pd.Index(classes).get_indexer(y_test)
    X = frame.drop(columns=[about.target, *([about.key] if about.split == "group" else [])])
    X_train, X_test = (X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    return Split(X_train, y_train, X_test, y_test, about.regression)


def strings(frame: pd.DataFrame) -> list[str]:
    """Names of the columns that are categories or text."""
    return list(frame.select_dtypes(include=["str", "object", "category"]).columns)


def texts(frame: pd.DataFrame) -> list[str]:
    """Names of the string columns in which more than half of the rows have a value of their own, and a long one."""
    found = []
    for name in strings(frame):
        values = frame[name].dropna().astype("str")
        if values.nunique() > len(frame) / 2 and values.str.len().mean() >= TEXT_LENGTH:
            found.append(name)
    return found


def calendar(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with seven numbers in place of each date: what is usual to give a model that takes none."""
    columns: dict[str, Any] = {}
    for name in frame:
        column = frame[name]
        if column.dtype.kind != "M":
            columns[name] = column
            continue
        parts = column.dt
        days = (column - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
        held = {"year": parts.year, "month": parts.month, "day": parts.day, "weekday": parts.day_of_week}
        held |= {"day_of_year": parts.day_of_year, "hour": parts.hour, "days": days}
        columns |= {f"{name}_{part}": values.astype(np.float64) for part, values in held.items()}
    return pd.DataFrame(columns, index=frame.index)


def categories(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both with pandas categories in place of strings: the levels are those to fit on, any other is missing."""
    levels = {name: pd.CategoricalDtype(sorted(train[name].dropna().unique())) for name in strings(train)}
    return train.astype(levels), _known(test, levels).astype(levels)


def _known(frame: pd.DataFrame, levels: dict[str, pd.CategoricalDtype]) -> pd.DataFrame:
    # pandas deprecates casts that make a value missing: it shall be said
    held = {name: frame[name].where(frame[name].isin(dtype.categories)) for name, dtype in levels.items()}
    return frame.assign(**held)
