"""Models from files, and tables with the columns of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from gce.cli.reading import Cells, read_table
from gce.estimators.loading import load


def load_model(path: str, device: str = "cpu") -> Any:
    """Load a fitted model."""
    return load(path, device=device)


def read_like(
    model: Any, path: str, cells: Cells, keep: Sequence[str] = (), as_text: Sequence[str] = ()
) -> pl.DataFrame:
    """Read a table for a model: columns that were text in the fit stay text, and those that were dates become dates.

    The index of a pandas frame is kept if the model was fitted on it or ``keep`` names it. Columns of ``as_text`` that
    the model was not fitted on are text, as they are written.
    """
    features = list(map(str, getattr(model, "feature_names_in_", ())))
    text = [
        column.name for column in model.table_.columns if any(isinstance(level, str) for level in column.categories)
    ]
    dates = [column.name for column in model.table_.columns if column.kind == "date"]
    more = [name for name in as_text if name not in features]
    return read_table(path, replace(cells, dates=dates), [*text, *more], [*keep, *features])


def names_of(model: Any, frame: pl.DataFrame, others: Sequence[str] = ()) -> list[str]:
    """The columns a model was fitted on; if they had no names then, all columns of the table but some others."""
    rest = [name for name in frame.columns if name not in others]
    return [str(name) for name in getattr(model, "feature_names_in_", rest)]


def given_to(model: Any, X: pl.DataFrame) -> Any:
    """Rows as a frame, or as an array if the model was fitted on columns without names."""
    return X if hasattr(model, "feature_names_in_") else X.to_numpy()
