"""Parquet, Arrow and CSV files that are truncated or altered, given to the command line and to shards."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from typer.testing import CliRunner

import gce
from campaign.model_uses import check
from campaign.mutated_bytes import flipped, grown, overwritten, truncated
from campaign.sources import Source
from gce.cli.app import app

_CHANGES = [flipped, grown, overwritten, truncated]


def _written(frame: pl.DataFrame, kind: str, folder: Path) -> bytes:
    path = folder / f"table.{kind}"
    {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "csv": frame.write_csv}[kind](path)
    return path.read_bytes()


_kept: dict[Path, dict[str, bytes]] = {}


def altered_table(own: Source, folder: Path, rng: random.Random) -> tuple[str, str]:
    """Predict an altered table, by the command line or as shards; what was tried, and what came of it."""
    if folder not in _kept:
        frame = pl.from_pandas(own.X.astype({"colour": object, "open": object}))
        frame = frame.with_columns(pl.Series("y", list(own.y)))
        _kept[folder] = {kind: _written(frame, kind, folder) for kind in ("parquet", "arrow", "csv")}
    kind, change = rng.choice(["parquet", "parquet", "arrow", "csv"]), rng.choice(_CHANGES)
    path = folder / f"altered.{kind}"
    path.write_bytes(change(_kept[folder][kind], rng))
    if kind == "csv" or rng.random() < 0.5:
        return f"{kind} tables, command line", _predicted(own, path)
    return f"{kind} tables, shards", _sharded(own, path)


def _predicted(own: Source, path: Path) -> str:
    done = CliRunner().invoke(app, ["predict", str(own.path), str(path)])
    check(done.exit_code in (0, 1), f"gce predict ended with {done.exit_code}: {done.exception!r}"[:300])
    check(done.exception is None or isinstance(done.exception, SystemExit), f"gce predict: {done.exception!r}"[:300])
    check("--debug shows the traceback" not in done.stderr, f"gce predict: {done.stderr[:300]}")
    check(all(c.isprintable() or c == "\n" for c in done.stderr), "gce predict wrote a control character")
    if not done.exit_code:
        return "predicted"
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    check(len(said) == 1, f"gce predict said {len(said)} lines, not one: {done.stderr[:300]}")
    check(str(path) in said[0], f"gce predict does not name the file: {done.stderr[:300]}")
    return "refused"


def _sharded(own: Source, path: Path) -> str:
    shards = gce.Shards(path, drop=["y"])
    try:
        opened = shards.open()
        for i in range(len(opened.units)):
            opened.read(i)
        with TemporaryDirectory(dir=path.parent) as folder:
            gce.load(own.path).predict_shards(shards, folder)
    except (ValueError, OSError) as error:
        words = str(error)
        check(str(path) in words, f"a message does not name the file: {type(error).__name__}: {words[:300]}")
        check(words.isprintable(), f"a message has several lines or control characters: {words[:300]!r}")
        return "refused"
    return "predicted"
