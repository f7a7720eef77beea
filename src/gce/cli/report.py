"""``gce report``: a page about a model, on rows it was not fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from sklearn.base import is_classifier

from gce.cli import options
from gce.cli.models import given_to, load_model, names_of, read_like
from gce.cli.rendering import show, size
from gce.cli.rows import Columns, held_out_rows
from gce.cli.tasks import Task, values
from gce.cli.writing import make_room


def report(
    model: options.ModelFile,
    rows: options.RowsFile,
    target: options.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page: r.html.")],
    missing: options.Missing = None,
    drop_missing_target: options.DropMissingTarget = False,
    device: options.Device = "cpu",
    debug: options.Debug = False,
) -> None:
    """Write a page about a model and how it does on a table: one HTML file that needs no network."""
    make_room(out)
    fitted = load_model(model, device)
    frame = read_like(fitted, rows, missing or (), [target])
    like = [name for name in names_of(fitted, frame) if name != target]
    judged = held_out_rows(rows, frame, Columns(target), like, drop_missing_target)
    task = Task.classification if is_classifier(fitted) else Task.regression
    fitted.report(out, given_to(fitted, judged.X), values(judged.y, task))
    show(escape(f"{out} ({size(out.stat().st_size)})"))
