"""The accuracy benchmark's rows: a line of JSON a set, seed and model, in a file a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]
#: By model, then by set and seed.
Rows = dict[str, dict[tuple[str, int], Row]]
#: Threads of every model, on whatever machine.
THREADS = 2
#: What a row says of time; everything else stays when it is timed again.
SECONDS = ("fit_seconds", "cpu_seconds", "predict_seconds")


def file_of(folder: Path, model: str) -> Path:
    return folder / f"{model.lower()}.jsonl"


def read(folder: Path, model: str) -> dict[tuple[str, int], Row]:
    """A model's rows by set and seed; of two for one pair the later one counts."""
    path = file_of(folder, model)
    lines = path.read_text().splitlines() if path.exists() else []
    # a line that was cut off by a kill is no row: the pair is fitted again
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    return {(row["set"], row["seed"]): row for row in rows}


def append(folder: Path, model: str, row: Row) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = file_of(folder, model)
    cut_off = path.exists() and not path.read_text().endswith("\n")
    with path.open("a") as out:
        out.write(("\n" if cut_off else "") + json.dumps(row) + "\n")


def record(folder: Path, model: str, row: Row) -> None:
    """Add a row, in place of the pair's earlier one where there is one."""
    held = read(folder, model)
    pair = row["set"], row["seed"]
    if pair in held:
        replace(folder, model, {**held, pair: row})
    else:
        append(folder, model, row)


def timed_again(row: Row, again: Row, origin: Row) -> Row:
    """The row with the seconds of a quiet hour, and where these come from; its figures stay."""
    seconds = {key: again[key] for key in SECONDS}
    return {**row, **seconds, "quiet": True, "timed_on": origin["machine"], "timed_version": origin["version"]}


def replace(folder: Path, model: str, rows: dict[tuple[str, int], Row]) -> None:
    """Write a model's rows anew, all or nothing."""
    path = file_of(folder, model)
    half = path.with_suffix(".half")
    half.write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    half.replace(path)
