"""``gce fit``: fit a model to a table, print its metrics and write its files."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType
from rich.markup import escape

from gce._utils.params import counted
from gce._utils.version import __version__
from gce.cli import figures, options, settings
from gce.cli.failures import INTERRUPTED
from gce.cli.interrupting import Interruption
from gce.cli.reading import Cells
from gce.cli.rendering import grid, print_json, show, size, warn
from gce.cli.rows import Columns, Rows, text_as_dates
from gce.cli.shards import open_training, processes, refuse
from gce.cli.tasks import Task, new_model, task_of_loss, values
from gce.cli.training import Training, read_training
from gce.cli.writing import prepare_output
from gce.distributed.world import World
from gce.preprocessing.shard_files import is_pattern


def fit(
    train: options.Train,
    target: options.Target,
    test: options.Test = None,
    out: options.Out = None,
    report: options.Report = None,
    task: options.TaskChoice = Task.auto,
    weights: options.Weights = None,
    groups: options.Groups = None,
    drop: options.Drop = None,
    keep: options.Keep = None,
    missing: options.Missing = None,
    encoding: options.Encoding = None,
    categorical: options.Categorical = None,
    dates: options.Dates = None,
    no_dates: options.NoDates = False,
    drop_missing_target: options.DropMissingTarget = False,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    checkpoint: options.Checkpoint = None,
    cv: options.Folds = None,
    device: options.Device = "cpu",
    set_: options.Settings = None,
    timeout: options.Timeout = 600,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit a model to a table, print its metrics and write its files.

    Metrics are computed on --test, or else on the rows held out for early stopping. Ctrl-C stops the fit after the
    current round, keeps the best model so far and writes the files, with exit code 130; a second Ctrl-C aborts. A
    pattern such as 'data/*.parquet', or a folder, is fitted without reading all rows into memory, by one process or by
    those of torchrun, which Ctrl-C ends: with --checkpoint the same command continues.
    """
    for path in filter(None, (out, report)):
        prepare_output(path)
    columns = Columns(target, weights, groups, tuple(drop or ()), tuple(keep or ()))
    cells = Cells(missing or (), encoding, dates or (), find_dates=not no_dates)
    given = cells, drop_missing_target, categorical or ()
    task, reason = task_of_loss(task, settings.read(set_ or ()).get("loss"))
    with processes(train, timeout) as world:
        training = _training(train, test, columns, task, given, report, world)
        training = training if reason is None else replace(training, reason=reason)
        model = new_model(training.task, categorical)
        if cv is not None:
            model.set_params(cv=None if cv == 1 else cv)
        silent = quiet or world.rank > 0
        model.set_params(random_state=seed, device=device, time_limit=time_limit, verbose=False if silent else "auto")
        chosen = settings.apply(model, set_ or ())
        if not (json or silent):
            show(_heading(training, target))
        start = time.perf_counter()
        interrupted = _fit(model, training, checkpoint, world)
        seconds = time.perf_counter() - start
        if world.rank == 0:
            about = {"target": target, "settings": chosen, **_fit_summary(model, seconds, interrupted)}
            result = _result(model, training, about, out, report)
            if json:
                print_json(result)
            elif not quiet:
                show(*_summary(result))
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _training(
    train: str, test: str | None, columns: Columns, task: Task, given: Any, report: Path | None, world: World
) -> Training:
    """The training rows, in memory or in files."""
    cells, drop_missing_target, categorical = given
    without_rows = report is not None and test is None
    if not is_pattern(train):
        training = read_training(train, test, columns, task, cells, drop_missing_target, categorical)
        if without_rows:
            warn("the report is computed on the training rows and is optimistic: use --test FILE for other rows")
        return training
    options = {"--report": without_rows, "--missing": cells.missing, "--dates": cells.dates}
    refuse(train, {**options, "--drop-missing-target": drop_missing_target})
    return open_training(train, test, columns, task, cells, categorical, world)


def _fit(model: Any, training: Training, checkpoint: Path | None, world: World) -> bool:
    """Fit a model; return whether Ctrl-C stopped it."""
    extras = training.extras if checkpoint is None else {**training.extras, "checkpoint": checkpoint}
    if world.size > 1:
        # torchrun ends all processes at the first Ctrl-C, each in another round
        model.fit(*training.arguments, **extras)
        return False
    with Interruption() as interruption:
        model.set_params(callbacks=[interruption])
        model.fit(*training.arguments, **extras)
    # callbacks are not part of the saved model
    model.set_params(callbacks=None)
    return interruption.requested


def _result(
    model: Any, training: Training, about: dict[str, Any], out: Path | None, report: Path | None
) -> dict[str, Any]:
    """What was fitted, how well it predicts, and the files, which are written here."""
    return {
        "command": "fit",
        "gce": __version__,
        "train": {"file": training.file, "rows": training.rows, "columns": training.columns},
        "dates": list(training.dates),
        "task": str(training.task),
        "reason": training.reason,
        **about,
        "metrics": _metrics(model, training.task, training.test),
        "files": _write(model, out, report, training.shown, training.task),
    }


def _fit_summary(model: Any, seconds: float, interrupted: bool) -> dict[str, Any]:
    """How the fit ended, and the size of the model."""
    ordered = getattr(model, "ordered_classes_", None)
    return {
        "classes": None if model.result_.target.classes is None else model.classes_.tolist(),
        "ordered_classes": None if ordered is None else ordered.tolist(),
        "seconds": seconds,
        "stopped": "interrupted" if interrupted else "time limit" if model.result_.cut_short else "done",
        "rounds": model.n_iter_,
        "members": len(model.history_[-1]["members"]["risk"]),
        "atoms": len(model.ensemble_),
        "left_out": dict(model.result_.left_out),
    }


def _metrics(model: Any, task: Task, test_rows: Rows | None) -> dict[str, Any]:
    if test_rows is None:
        return {"file": None, **(model.result_.held_out or {})}
    y = values(test_rows.y, task)
    found = figures.of_model(model, task, test_rows.X, y, test_rows.weight)
    note = figures.note_of_classes(y, model.classes_, test_rows.weight) if task is Task.classification else None
    return {"file": test_rows.file, "rows": len(test_rows), **found, "note": note}


def _write(model: Any, out: Path | None, report: Path | None, shown: Rows | None, task: Task) -> dict[str, str]:
    """Write the requested files, the model first."""
    if out is not None:
        model.save(out)
    if report is not None and shown is not None:
        model.report(report, shown.X, values(shown.y, task), shown.weight)
    return {name: str(path) for name, path in {"model": out, "report": report}.items() if path is not None}


def _heading(training: Training, target: str) -> str:
    about = f"{counted(training.rows, 'row')}, {counted(training.columns, 'column')}, target {target!r}"
    reason = training.reason + text_as_dates(training.dates)
    return escape(f"{training.file}: {about}") + f"\n[bold]{training.task}[/bold]: {escape(reason)}"


def _summary(result: dict[str, Any]) -> list[RenderableType]:
    why = {"interrupted": "interrupted after", "done": "fitted in", "time limit": "stopped by the time limit after"}
    parts = ", ".join(counted(result[name], name[:-1]) for name in ("members", "rounds", "atoms"))
    metrics = result["metrics"]
    lines = figures.written(metrics)
    if metrics["file"] is not None:
        on = f"on {metrics['file']}, {counted(metrics['rows'], 'row')}:"
    elif lines:
        on = "on the rows held out for early stopping:"
    else:
        on = "no rows were held out: use --test FILE for metrics"
    files = [(name, path, size(Path(path).stat().st_size)) for name, path in result["files"].items()]
    saved = grid(files) if files else "[dim]model not saved: use --out m.safetensors[/dim]"
    first = f"{why[result['stopped']]} {result['seconds']:.1f} s: {parts}"
    left_out = [escape(f"{name} is left out: {reason}") for name, reason in result["left_out"].items()]
    order = result["ordered_classes"]
    ranked = [] if order is None else [escape(f"classes in their order: {', '.join(map(str, order))}")]
    note = [] if metrics.get("note") is None else ["", escape(metrics["note"])]
    return [first, *ranked, *left_out, "", escape(on), *([grid(lines)] if lines else []), *note, "", saved]
