"""``gce compare``: the same rows for GCE and its peers, one table, one picture."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

import gce
from gce.cli import options
from gce.cli.contest import Contest, Entry
from gce.cli.failures import INTERRUPTED
from gce.cli.peers import PEERS
from gce.cli.picture import draw
from gce.cli.rendering import counted, json_of, say, show
from gce.cli.rows import Columns, Rows, load
from gce.cli.standings import Standings
from gce.cli.tasks import Task, settle
from gce.storage.container import put

_HELD_OUT = 0.2


def compare(
    train: options.Train,
    target: options.Target,
    test: options.Test = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FOLDER", help="Keep compare.md, compare.json, compare.png.")
    ] = None,
    task: options.TaskChoice = Task.auto,
    drop: options.Drop = None,
    missing: options.Missing = None,
    categorical: options.Categorical = None,
    drop_missing_target: options.DropMissingTarget = False,
    time_limit: options.TimeLimit = None,
    seed: options.Seed = 0,
    device: options.Device = "cpu",
    json: options.Json = False,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Fit GCE and its peers to a table, all at their defaults, and judge them on the same rows.

    Those of --test, or a fifth of the table. --time-limit is for GCE alone. Ctrl-C shows those that are done.
    """
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    columns = Columns(target, drop=tuple(drop or ()))
    rows, judged = load(train, test, columns, missing or (), drop_missing_target, categorical or ())
    chosen, reason = settle(task, rows.y)
    others = f"others (split seed {seed})" if judged is None else f"of {judged.file}"
    if judged is None:
        rows, judged = _split(rows, seed)
    contest = Contest(chosen, rows, judged, tuple(categorical or ()), seed)
    ours = {"time_limit": time_limit, "device": device, "verbose": False if quiet else "auto"}
    entries, interrupted = _run(contest, ours, Console(file=sys.stderr, quiet=quiet))
    standings = Standings(chosen, entries)
    absent = [peer.package for peer in PEERS if not peer.installed]
    result = {
        "command": "compare",
        "gce": gce.__version__,
        "train": {"file": rows.file, "rows": len(rows), "columns": rows.X.width},
        "test": {"file": judged.file, "rows": len(judged)},
        "target": target,
        "task": str(chosen),
        "reason": reason,
        "seed": seed,
        "interrupted": interrupted,
        "models": [entry.as_dict() for entry in entries],
        "not_installed": absent,
    }
    title = f"{target!r} of {rows.file}: fitted on {counted(len(rows), 'row')}, judged on {len(judged):,} {others}"
    files = [] if out is None else _write(out, title, standings, result)
    if json:
        sys.stdout.write(json_of(result))
    elif not quiet:
        notes = [*standings.failures(), *([f"not installed: {', '.join(absent)}"] if absent else [])]
        show(escape(title), f"[bold]{chosen}[/bold]: {escape(reason)}", standings.table())
        show(*(escape(line) for line in (*notes, *map(str, files))))
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    order = np.random.RandomState(seed).permutation(len(rows))
    cut = int((1 - _HELD_OUT) * len(rows))
    return rows.taken(order[:cut]), rows.taken(order[cut:])


def _run(contest: Contest, options: dict[str, Any], console: Console) -> tuple[list[Entry], bool]:
    """Everybody's entries, and whether Ctrl-C cut them short."""
    entries: list[Entry] = []
    try:
        entries.append(contest.ours(**options))
        peers = [peer for peer in PEERS if peer.installed]
        for number, peer in enumerate(peers, 2):
            with console.status(f"{peer.name}, {number} of {len(peers) + 1}"):
                entries.append(contest.peer(peer))
    except KeyboardInterrupt:
        if not entries:
            raise
        say("interrupted: those that were done are shown")
        return entries, True
    return entries, False


def _write(folder: Path, title: str, standings: Standings, result: dict[str, Any]) -> list[Path]:
    """The table, the numbers and, where there is matplotlib, the picture."""
    table, numbers, picture = (folder / f"compare.{suffix}" for suffix in ("md", "json", "png"))
    put(table, f"{title}\n\n{standings.markdown()}\n".encode())
    put(numbers, json_of(result).encode())
    if find_spec("matplotlib") is None:
        return [table, numbers]
    draw(picture, title, standings)
    return [table, numbers, picture]
