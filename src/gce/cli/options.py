"""Options of the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gce.cli.tasks import Task


def _columns(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Columns", **more)


def _fitting(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Fitting", **more)


def _output(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel="Output", **more)


Train = Annotated[
    str,
    typer.Argument(
        metavar="TRAIN",
        help="CSV (also .gz, .zst), Parquet or Arrow file; - for standard input; a folder or 'data/*.parquet'.",
    ),
]
TrainTable = Annotated[
    str, typer.Argument(metavar="TRAIN", help="CSV (also .gz, .zst), Parquet or Arrow file; - for standard input.")
]
RowsFiles = Annotated[
    str,
    typer.Argument(
        metavar="ROWS",
        help="A table with the columns of the fit; - for standard input; a folder or 'data/*.parquet'.",
    ),
]
RowsFile = Annotated[
    str, typer.Argument(metavar="ROWS", help="A table with the columns of the fit; - for standard input.")
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file written by gce fit --out or model.save.")]
Test = Annotated[str | None, typer.Option("--test", metavar="FILE", help="Test rows, never used in the fit.")]

Target = Annotated[str, _columns("--target", "-t", metavar="COLUMN", help="The column to predict.")]
TaskChoice = Annotated[
    Task,
    _columns("--task", metavar="TASK", help="regression, classification, or auto: inferred from the target."),
]
Weights = Annotated[str | None, _columns("--weights", metavar="COLUMN", help="The column of sample weights.")]
Groups = Annotated[str | None, _columns("--groups", metavar="COLUMN", help="Rows of one group are held out together.")]
Drop = Annotated[list[str] | None, _columns("--drop", metavar="COLUMN", help="Ignore a column (can be repeated).")]
Missing = Annotated[
    list[str] | None, _columns("--missing", metavar="TEXT", help="A CSV value to treat as missing (can be repeated).")
]
Encoding = Annotated[
    str | None,
    _columns("--encoding", metavar="NAME", help="The encoding of a CSV, such as latin-1 or utf-16 (default: UTF-8)."),
]
Keep = Annotated[
    list[str] | None,
    _columns(
        "--keep", metavar="COLUMN", help="A column for predictions to carry, such as id; no feature (can be repeated)."
    ),
]
Categorical = Annotated[
    list[str] | None,
    _columns("--categorical", metavar="COLUMN", help="A numeric column to treat as categorical (can be repeated)."),
]
Dates = Annotated[
    list[str] | None,
    _columns("--dates", metavar="COLUMN", help="A column of text to read as ISO 8601 dates (can be repeated)."),
]
NoDates = Annotated[
    bool, _columns("--no-dates", metavar="", help="Read text in the form of ISO 8601 dates as text, not as dates.")
]
DropMissingTarget = Annotated[
    bool, _columns("--drop-missing-target", metavar="", help="Drop rows with a missing target instead of failing.")
]

TimeLimit = Annotated[
    float | None,
    _fitting("--time-limit", metavar="SECONDS", min=0, help="Stop after this time, with the best model so far."),
]
Seed = Annotated[int, _fitting("--seed", metavar="N", min=0, help="Random seed.")]
Device = Annotated[str, _fitting("--device", metavar="NAME", help="cpu, cuda, or auto: a GPU if one is available.")]
Folds = Annotated[
    int | None, _fitting("--cv", metavar="N", min=1, help="Folds, one member each (1: a single 20 % hold-out).")
]
Checkpoint = Annotated[
    Path | None, _fitting("--checkpoint", metavar="FOLDER", help="Save every round to this folder, and resume from it.")
]
Settings = Annotated[
    list[str] | None,
    _fitting(
        "--set", metavar="NAME=VALUE", help="Any parameter of the estimator, such as max_atoms=50 (can be repeated)."
    ),
]
Timeout = Annotated[
    float,
    _fitting(
        "--timeout", metavar="SECONDS", min=1, help="With torchrun: after this time without an answer, processes end."
    ),
]

Out = Annotated[
    Path | None, _output("--out", "-o", metavar="FILE", help="The model file to write, such as m.safetensors.")
]
Report = Annotated[Path | None, _output("--report", metavar="FILE", help="The HTML report to write, such as r.html.")]
Json = Annotated[bool, _output("--json", metavar="", help="Print one JSON document and nothing else.")]
Quiet = Annotated[bool, _output("--quiet", "-q", metavar="", help="Print errors and warnings only.")]
Debug = Annotated[bool, _output("--debug", metavar="", help="Show the traceback of errors.")]
