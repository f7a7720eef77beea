"""Models from files, and tables read as a model's columns ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from gce.cli.reading import read_table
from gce.loading import load


def load_model(path: str, device: str = "cpu") -> Any:
    """A fitted model from its file."""
    return load(path, device=device)


def read_like(model: Any, path: str, missing: Sequence[str], keep: Sequence[str] = ()) -> pl.DataFrame:
    """A table for a model: what was text stays text where it looks like a number.

    The index of a pandas frame is a column where the model learned from it, or ``keep`` names it.
    """
    text = [column.name for column in model.table_.columns if any(isinstance(level, str) for level in column.levels)]
    return read_table(path, missing, text, [*keep, *map(str, getattr(model, "feature_names_in_", ()))])


def names_of(model: Any, frame: pl.DataFrame) -> list[str]:
    """The columns a model learned from; all of a table for a model that was fitted on columns without names."""
    return [str(name) for name in getattr(model, "feature_names_in_", frame.columns)]


def given_to(model: Any, X: pl.DataFrame) -> Any:
    """Rows as the model takes them."""
    return X if hasattr(model, "feature_names_in_") else X.to_numpy()
