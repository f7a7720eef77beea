"""``gce predict``: a model's answers to the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.base import is_classifier

from gce.cli import options
from gce.cli.failures import DataError
from gce.cli.models import given_to, load_model, names_of, read_like
from gce.cli.rows import alike
from gce.cli.writing import check_table_file, write_table

_STDOUT = Path("-")


def predict(
    model: options.ModelFile,
    rows: options.RowsFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help=".csv, .parquet or .arrow; - is standard output.")
    ] = _STDOUT,
    proba: Annotated[bool, typer.Option("--proba", metavar="", help="Add each class's probability.")] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="COVERAGE", help="Add where the target lies with this probability: 0.9."),
    ] = None,
    missing: options.Missing = None,
    device: options.Device = "cpu",
    debug: options.Debug = False,
) -> None:
    """Predict the rows of a table, in their order: a CSV on standard output, or a file.

    The column `prediction` comes first; --proba adds `probability_CLASS`, --interval adds `lower` and `upper`.
    """
    check_table_file(out)
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"coverage must be between 0 and 1, got {interval:g}", param_hint="--interval")
    fitted = load_model(model, device)
    if proba and not is_classifier(fitted):
        raise DataError(f"{model} predicts numbers, which have no --proba; --interval 0.9 says where they lie")
    if interval is not None and is_classifier(fitted):
        raise DataError(f"{model} predicts classes, which have no --interval; --proba says how sure it is")
    frame = read_like(fitted, rows, missing or ())
    X = given_to(fitted, alike(rows, frame, names_of(fitted, frame)))
    write_table(_answers(fitted, X, proba, interval), out)


def _answers(model: Any, X: Any, proba: bool, interval: float | None) -> pl.DataFrame:
    columns = _named("prediction", model.predict(X))
    if proba:
        chances = model.predict_proba(X)
        columns |= {f"probability_{label}": chances[:, j] for j, label in enumerate(model.classes_.tolist())}
    if interval is not None:
        ends = model.predict_interval(X, interval)
        columns |= {**_named("lower", ends[..., 0]), **_named("upper", ends[..., 1])}
    return pl.DataFrame(columns)


def _named(name: str, values: Any) -> dict[str, Any]:
    """A column, or one for each of several targets."""
    values = np.asarray(values)
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
