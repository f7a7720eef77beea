"""``gce report``: an HTML report about a model on test rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from sklearn.base import is_classifier

from gce.cli import options
from gce.cli.failures import naming
from gce.cli.models import given_to, load_model, names_of, read_like
from gce.cli.reading import Cells
from gce.cli.rendering import show, size
from gce.cli.rows import Columns, evaluation_rows
from gce.cli.tasks import Task, check_kind, check_labels, values
from gce.cli.writing import prepare_output


def report(
    model: options.ModelFile,
    rows: options.RowsFile,
    target: options.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write, such as r.html.")],
    missing: options.Missing = None,
    encoding: options.Encoding = None,
    drop_missing_target: options.DropMissingTarget = False,
    device: options.Device = "cpu",
    debug: options.Debug = False,
) -> None:
    """Write a report about a model and its performance on a table: one self-contained HTML file."""
    prepare_output(out)
    fitted = load_model(model, device)
    labels = fitted.classes_.tolist() if is_classifier(fitted) else []
    text = [target] if any(isinstance(label, str) for label in labels) else []
    frame = read_like(fitted, rows, Cells(missing or (), encoding), [target], text)
    names = names_of(fitted, frame, [target])
    test_rows = evaluation_rows(rows, frame, Columns(target), names, drop_missing_target)
    task = Task.classification if is_classifier(fitted) else Task.regression
    if task is Task.classification:
        check_labels(labels, values(test_rows.y, task), target, test_rows.file)
    else:
        check_kind("number", test_rows.y, test_rows.file)
    with naming(test_rows.file):
        fitted.report(out, given_to(fitted, test_rows.X), values(test_rows.y, task))
    show(escape(f"{out} ({size(out.stat().st_size)})"))
