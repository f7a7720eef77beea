"""``gce fit``: from a table to a model, its figures and its files."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType
from rich.markup import escape

import gce
from gce.cli import figures, options, settings
from gce.cli.failures import INTERRUPTED
from gce.cli.interrupting import Interruption
from gce.cli.rendering import counted, grid, json_of, show, size, warn
from gce.cli.rows import Columns, Rows, load
from gce.cli.tasks import Task, settle, values
from gce.cli.writing import make_room
from gce.estimators import GCEClassifier, GCERegressor


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
    missing: options.Missing = None,
    categorical: options.Categorical = None,
    drop_missing_target: options.DropMissingTarget = False,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    checkpoint: options.Checkpoint = None,
    cv: options.Folds = None,
    device: options.Device = "cpu",
    set_: options.Settings = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit a model to a table, print its figures and write its files.

    Figures are those on the rows of --test; without it those on the rows that the fit itself held out. Ctrl-C keeps the
    best so far: files are written, and the exit code is 130. Pressed again it drops everything at once.
    """
    for path in (out, report):
        if path is not None:
            make_room(path)
    columns = Columns(target, weights, groups, tuple(drop or ()))
    rows, judged = load(train, test, columns, missing or (), drop_missing_target, categorical or ())
    chosen, reason = settle(task, rows.y)
    model = _model(chosen, categorical, cv)
    model.set_params(random_state=seed, device=device, time_limit=time_limit, verbose=False if quiet else "auto")
    given = settings.apply(model, set_ or ())
    if report is not None and judged is None:
        warn("the report is drawn on the training rows, which flatters: --test FILE draws it on others")
    talks = not (json or quiet)
    if talks:
        show(_heading(rows, target, chosen, reason))
    began = time.perf_counter()
    interrupted = _learn(model, rows, chosen, checkpoint)
    seconds = time.perf_counter() - began
    result = {
        "command": "fit",
        "gce": gce.__version__,
        "train": {"file": rows.file, "rows": len(rows), "columns": rows.X.width},
        "target": target,
        "task": str(chosen),
        "reason": reason,
        "settings": given,
        **_course(model, seconds, interrupted),
        "figures": _judge(model, chosen, judged),
        "files": _write(model, out, report, judged or rows, chosen),
    }
    if json:
        sys.stdout.write(json_of(result))
    elif talks:
        show(*_summary(result, chosen))
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _model(task: Task, categorical: list[str] | None, cv: int | None) -> Any:
    model = GCEClassifier() if task is Task.classification else GCERegressor()
    if categorical:
        model.set_params(categorical_features=list(categorical))
    return model if cv is None else model.set_params(cv=None if cv == 1 else cv)


def _learn(model: Any, rows: Rows, task: Task, checkpoint: Path | None) -> bool:
    """Fit; whether Ctrl-C ended it."""
    extras = {"groups": rows.groups, "checkpoint": checkpoint}
    with Interruption() as interruption:
        model.set_params(callbacks=[interruption])
        model.fit(rows.X, values(rows.y, task), rows.weight, **{k: v for k, v in extras.items() if v is not None})
    # a model is kept without its watchers
    model.set_params(callbacks=None)
    return interruption.pressed


def _course(model: Any, seconds: float, interrupted: bool) -> dict[str, Any]:
    """What the fit came to."""
    return {
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "seconds": seconds,
        "stopped": "interrupted" if interrupted else "time limit" if model._cut_short else "done",
        "rounds": model.n_iter_,
        "members": len(model.history_[-1]["members"]["risk"]),
        "atoms": len(model.ensemble_),
    }


def _judge(model: Any, task: Task, judged: Rows | None) -> dict[str, Any]:
    if judged is None:
        return {"file": None, **figures.of_held_out(model, task)}
    y = values(judged.y, task)
    return {"file": judged.file, "rows": len(judged), **figures.of_model(model, task, judged.X, y, judged.weight)}


def _write(model: Any, out: Path | None, report: Path | None, shown: Rows, task: Task) -> dict[str, str]:
    """Write what was asked for, the model first."""
    if out is not None:
        model.save(out)
    if report is not None:
        model.report(report, shown.X, values(shown.y, task), shown.weight)
    return {name: str(path) for name, path in {"model": out, "report": report}.items() if path is not None}


def _heading(rows: Rows, target: str, task: Task, reason: str) -> str:
    about = f"{counted(len(rows), 'row')}, {counted(rows.X.width, 'column')}, target {target!r}"
    return escape(f"{rows.file}: {about}") + f"\n[bold]{task}[/bold]: {escape(reason)}"


def _summary(result: dict[str, Any], task: Task) -> list[RenderableType]:
    why = {"interrupted": "interrupted after", "done": "fitted in", "time limit": "stopped by its time limit after"}
    parts = ", ".join(counted(result[name], name[:-1]) for name in ("members", "rounds", "atoms"))
    judged = result["figures"]
    if judged["file"] is None:
        on = "on rows that the fit held out, which also chose when to stop:"
    else:
        on = f"on {judged['file']}, {counted(judged['rows'], 'row')}:"
    lines = [(figure.title, figure(judged[figure.key])) for figure in figures.known(task) if figure.key in judged]
    files = [(name, path, size(Path(path).stat().st_size)) for name, path in result["files"].items()]
    kept = grid(files) if files else "[dim]nothing kept: --out m.safetensors keeps the model[/dim]"
    course = f"{why[result['stopped']]} {result['seconds']:.1f} s: {parts}"
    return [course, "", escape(on), grid(lines), "", kept]
