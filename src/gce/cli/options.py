"""Options that commands share, and those of ``gce fit``."""

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
    str, typer.Argument(metavar="TRAIN", help="CSV (.gz, .zst too), Parquet or Arrow; - is standard input.")
]
RowsFile = Annotated[str, typer.Argument(metavar="ROWS", help="A table like the one fitted on; - is standard input.")]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A file that gce fit --out or model.save wrote.")]
Test = Annotated[str | None, typer.Option("--test", metavar="FILE", help="Rows to be judged on, never fitted on.")]

Target = Annotated[str, _columns("--target", "-t", metavar="COLUMN", help="What to predict.")]
TaskChoice = Annotated[
    Task,
    _columns("--task", metavar="TASK", help="regression or classification; auto looks at the target and says why."),
]
Weights = Annotated[str | None, _columns("--weights", metavar="COLUMN", help="What a row counts.")]
Groups = Annotated[str | None, _columns("--groups", metavar="COLUMN", help="Rows of one group are held out together.")]
Drop = Annotated[list[str] | None, _columns("--drop", metavar="COLUMN", help="Leave a column out (repeat for more).")]
Missing = Annotated[
    list[str] | None, _columns("--missing", metavar="TEXT", help="A CSV cell that means missing, as an empty one does.")
]
Categorical = Annotated[
    list[str] | None, _columns("--categorical", metavar="COLUMN", help="A column of numbers that are mere names.")
]
DropMissingTarget = Annotated[
    bool, _columns("--drop-missing-target", metavar="", help="Leave rows without a target out; else they are refused.")
]

TimeLimit = Annotated[
    float | None, _fitting("--time-limit", metavar="SECONDS", min=0, help="Stop there; the best so far is kept.")
]
Seed = Annotated[int, _fitting("--seed", metavar="N", min=0, help="The same seed gives the same model.")]
Device = Annotated[str, _fitting("--device", metavar="NAME", help="cpu, cuda, or auto: a GPU where there is one.")]
Folds = Annotated[
    int | None, _fitting("--cv", metavar="N", min=1, help="Folds, a member each (1: one hold-out of 20 %).")
]
Checkpoint = Annotated[
    Path | None, _fitting("--checkpoint", metavar="FOLDER", help="Saved after every round, resumed from there.")
]
Settings = Annotated[
    list[str] | None, _fitting("--set", metavar="NAME=VALUE", help="Any parameter: max_atoms=50, basis__hidden=20.")
]

Out = Annotated[Path | None, _output("--out", "-o", metavar="FILE", help="Keep the model: m.safetensors.")]
Report = Annotated[Path | None, _output("--report", metavar="FILE", help="Write a page to look at: r.html.")]
Json = Annotated[bool, _output("--json", metavar="", help="One JSON document on standard output, nothing else.")]
Quiet = Annotated[bool, _output("--quiet", "-q", metavar="", help="No bar, no words: errors and warnings only.")]
Debug = Annotated[bool, _output("--debug", metavar="", help="Show the traceback of an error.")]
