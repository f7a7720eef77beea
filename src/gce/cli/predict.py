"""``gce predict``: predictions for the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from sklearn.base import is_classifier, is_regressor

from gce.cli import options
from gce.cli.failures import DataError, naming
from gce.cli.models import given_to, load_model, names_of, read_like
from gce.cli.reading import Cells, named
from gce.cli.rows import check_column, select_columns
from gce.cli.shards import predict_files, refuse
from gce.cli.writing import check_table_file, write_table
from gce.preprocessing.shard_files import is_pattern

_STDOUT = Path("-")


def predict(
    model: options.ModelFile,
    rows: options.RowsFiles,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help=".csv, .parquet or .arrow; - for standard output; else a folder."
        ),
    ] = _STDOUT,
    proba: Annotated[bool, typer.Option("--proba", metavar="", help="Add class probabilities.")] = False,
    interval: Annotated[
        float | None,
        typer.Option("--interval", metavar="COVERAGE", help="Add prediction intervals of this coverage, such as 0.9."),
    ] = None,
    keep: options.Keep = None,
    missing: options.Missing = None,
    encoding: options.Encoding = None,
    device: options.Device = "cpu",
    timeout: options.Timeout = 600,
    debug: options.Debug = False,
) -> None:
    """Predict the rows of a table, as CSV on standard output or to a file.

    The first column is `prediction`, after those of --keep; --proba adds `probability_CLASS`, --interval adds `lower`
    and `upper`.
    Several files (a folder, or a pattern such as 'data/*.parquet') are predicted into files of the folder --out,
    without reading all rows into memory, with --proba as columns `proba_CLASS` alone. The same command again goes on.
    """
    if is_pattern(rows):
        refuse(rows, {"--missing": missing, "--encoding": encoding, "--keep": keep, "--interval": interval is not None})
        predict_files(model, rows, out, proba, device, timeout)
        return
    check_table_file(out)
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"coverage must be between 0 and 1, got {interval:g}", param_hint="--interval")
    fitted = load_model(model, device)
    if (proba or interval is not None) and not (is_classifier(fitted) or is_regressor(fitted)):
        raise DataError(
            f"{model} predicts risks, without probabilities and intervals: leave out --proba and --interval"
        )
    if proba and not is_classifier(fitted):
        raise DataError(f"{model} is a regressor, which has no probabilities: use --interval 0.9 instead of --proba")
    if interval is not None and is_classifier(fitted):
        raise DataError(f"{model} is a classifier, which has no intervals: use --proba instead of --interval")
    frame = read_like(fitted, rows, Cells(missing or (), encoding), keep or (), keep or ())
    for name in keep or ():
        check_column(name, "keep", frame.columns, rows)
    X = given_to(fitted, select_columns(rows, frame, names_of(fitted, frame, keep or ())))
    with naming(named(rows)):
        predictions = _predictions(fitted, X, proba, interval)
    write_table(_beside(frame.select(list(dict.fromkeys(keep or ()))), predictions), out)


def _beside(kept: pl.DataFrame, predictions: pl.DataFrame) -> pl.DataFrame:
    """Columns of the rows, then predictions."""
    if taken := [name for name in kept.columns if name in predictions.columns]:
        raise DataError(f"--keep {taken[0]!r} has the name of a column of predictions: rename it in the table")
    return pl.DataFrame([*map(_as_integers, kept), *predictions])


def _as_integers(column: pl.Series) -> pl.Series:
    """Text as integers where these are written just so, which 007 is not."""
    if column.dtype != pl.String or column.null_count() == len(column):
        return column
    numbers = column.cast(pl.Int64, strict=False)
    return numbers if numbers.cast(pl.String).equals(column, null_equal=True) else column


def _predictions(model: Any, X: Any, proba: bool, interval: float | None) -> pl.DataFrame:
    columns = _named("prediction", model.predict(X))
    if proba:
        probabilities = model.predict_proba(X)
        columns |= {f"probability_{label}": probabilities[:, j] for j, label in enumerate(model.classes_.tolist())}
    if interval is not None:
        ends = model.predict_interval(X, interval)
        columns |= {**_named("lower", ends[..., 0]), **_named("upper", ends[..., 1])}
    return pl.DataFrame(columns)


def _named(name: str, values: Any) -> dict[str, Any]:
    """One column, or one for each target."""
    values = np.asarray(values)
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}
