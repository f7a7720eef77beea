"""``gce compare``: GCE and models of other libraries on the same rows."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType
from rich.markup import escape

from gce._utils.params import counted
from gce._utils.version import __version__
from gce.cli import options
from gce.cli.comparison import Comparison, Result, markdown_table, notes, terminal_table
from gce.cli.failures import INTERRUPTED
from gce.cli.peers import PEERS
from gce.cli.picture import draw
from gce.cli.reading import Cells
from gce.cli.rendering import json_of, print_json, say, show
from gce.cli.rows import Columns, Rows, check_test, load, text_as_dates
from gce.cli.tasks import Task, resolve_task
from gce.io.atomic import write_bytes

_TEST_FRACTION = 0.2


def compare(
    train: options.TrainTable,
    target: options.Target,
    test: options.Test = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Write compare.md, compare.json, compare.png.")
    ] = None,
    task: options.TaskChoice = Task.auto,
    drop: options.Drop = None,
    missing: options.Missing = None,
    encoding: options.Encoding = None,
    categorical: options.Categorical = None,
    dates: options.Dates = None,
    no_dates: options.NoDates = False,
    drop_missing_target: options.DropMissingTarget = False,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit GCE and models of other libraries, all at their defaults, and score them on the same rows.

    These are the rows of --test, or a random 20 % of the table. --time-limit applies to GCE only. Ctrl-C shows the
    models fitted so far.
    """
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    columns = Columns(target, drop=tuple(drop or ()))
    cells = Cells(missing or (), encoding, dates or (), find_dates=not no_dates)
    rows, test_rows = load(train, test, columns, cells, drop_missing_target, categorical or ())
    task, reason = resolve_task(task, rows.y)
    check_test(task, rows, test_rows)
    where = f"others (split seed {seed})" if test_rows is None else f"of {test_rows.file}"
    if test_rows is None:
        rows, test_rows = _split(rows, seed)
    comparison = Comparison(task, rows, test_rows, categorical or (), seed)
    gce_options = {"time_limit": time_limit, "device": device, "verbose": False if quiet else "auto"}
    results, interrupted = _run(comparison, gce_options, Console(file=sys.stderr, quiet=quiet))
    not_installed = [peer.package for peer in PEERS if not peer.installed]
    document = {
        "command": "compare",
        "gce": __version__,
        "train": {"file": rows.file, "rows": len(rows), "columns": rows.X.width},
        "test": {"file": test_rows.file, "rows": len(test_rows)},
        "target": target,
        "task": str(task),
        "reason": reason,
        "seed": seed,
        "note": comparison.note,
        "interrupted": interrupted,
        "models": [result.as_dict() for result in results],
        "not_installed": not_installed,
    }
    title = f"{target!r} of {rows.file}: fitted on {counted(len(rows), 'row')}, scored on {len(test_rows):,} {where}"
    files = [] if out is None else _write(out, title, comparison, results, document)
    if json:
        print_json(document)
    elif not quiet:
        absent = [f"not installed: {', '.join(not_installed)}"] if not_installed else []
        show(*_table(title, task, reason + text_as_dates(rows.dates), results))
        show(*(escape(line) for line in (*notes(comparison.note, results), *absent, *map(str, files))))
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _table(title: str, task: Task, reason: str, results: list[Result]) -> list[RenderableType]:
    return [escape(title), f"[bold]{task}[/bold]: {escape(reason)}", terminal_table(task, results)]


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    order = np.random.RandomState(seed).permutation(len(rows))
    n_train = int((1 - _TEST_FRACTION) * len(rows))
    return rows.take(order[:n_train]), rows.take(order[n_train:])


def _run(comparison: Comparison, gce_options: dict[str, Any], console: Console) -> tuple[list[Result], bool]:
    """The results, and whether Ctrl-C ended the comparison early."""
    results: list[Result] = []
    try:
        results.append(comparison.fit_gce(**gce_options))
        peers = [peer for peer in PEERS if peer.installed]
        for number, peer in enumerate(peers, 2):
            with console.status(f"{peer.name}, {number} of {len(peers) + 1}"):
                results.append(comparison.fit_peer(peer))
    except KeyboardInterrupt:
        if not results:
            raise
        say("interrupted: showing the models fitted so far")
        return results, True
    return results, False


def _write(
    folder: Path, title: str, comparison: Comparison, results: list[Result], document: dict[str, Any]
) -> list[Path]:
    """Write the table, the JSON document and, if matplotlib is installed, the picture."""
    table, numbers, picture = (folder / f"compare.{suffix}" for suffix in ("md", "json", "png"))
    write_bytes(table, f"{title}\n\n{markdown_table(comparison.task, results, comparison.note)}\n".encode())
    write_bytes(numbers, json_of(document).encode())
    if find_spec("matplotlib") is None:
        return [table, numbers]
    draw(picture, title, comparison.task, results)
    return [table, numbers, picture]
