"""Networks of rows in files: on rows drawn anew for each epoch, for each atom, and on one sample.

    python benchmarks/shard_networks.py [samples] [million] [processes] [--folder FOLDER]

``samples``: fits of 250,000 rows of which 32,768 are drawn, on seeds that no default was chosen on. ``million``: a
million rows of which 262,144 are drawn, as by default. ``processes``: one and two processes of one thread on a million
rows. Figures are added to benchmarks/results/shard_networks.json, and the page shard_networks.md is made of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from harness import RESULTS, logger, run_script
from shard_group import measured
from shard_page import machine
from shard_rows import write_rows
from shard_worker import frame_of

from gce import GCERegressor, Shards
from gce.bases.neural.stored_inputs import StoredInputs
from gce.estimators import _shard_choice
from gce.training import plan

SEEDS = (10, 11)
ROWS, DRAWN, TEST_ROWS = 250_000, 1 << 15, 200_000
#: Rounds of a million rows.
ROUNDS = 40
WAYS = ("one sample", "drawn for each atom", "drawn for each epoch")


def samples(folder: Path) -> dict[str, Any]:
    """Test RMSE and processor seconds of each way, by target and seed."""
    return {target: compared(folder, target, ROWS, DRAWN, WAYS, SEEDS, {}) for target in ("products", "additive")}


def million(folder: Path) -> dict[str, Any]:
    """The same of a million rows, with as many drawn as by default."""
    few = {"max_iter": ROUNDS, "n_iter_no_change": None}
    return {target: compared(folder, target, 1_000_000, 1 << 18, WAYS[1:], SEEDS[:1], few)
            for target in ("products", "additive")}  # fmt: skip


def compared(
    folder: Path, target: str, rows: int, drawn: int, ways: Sequence[str], seeds: Sequence[int], more: dict[str, Any]
) -> dict[str, Any]:
    """Figures of each way, by seed."""
    files = write_rows(folder, rows, 30, target=target)
    test = frame_of(write_rows(folder, TEST_ROWS, 30, seed=1, target=target))
    y = test.pop("y").to_numpy()
    found: dict[str, Any] = {way: [] for way in ways}
    for seed, way in product(seeds, ways):
        began = time.process_time()
        model = GCERegressor(basis="neural", random_state=seed, n_jobs=1, verbose=False, **more)
        fitted(model, way, files, drawn)
        seconds = time.process_time() - began
        rmse = float(np.sqrt(np.mean((model.predict(test) - y) ** 2)))
        found[way].append({"seed": seed, "rmse": rmse, "processor": seconds, "rounds": model.n_iter_})
        logger.info("%s, %s, seed %d: %s", target, way, seed, found[way][-1])
    return found


def fitted(model: GCERegressor, way: str, files: str, drawn: int) -> None:
    """Fit a model in one of the ways."""
    draw = StoredInputs.draw

    def once(self: StoredInputs, *given: Any) -> Any:
        rows, part = draw(self, *given)
        return replace(rows, again=None), part

    with ExitStack() as stack:
        stack.enter_context(patch.object(_shard_choice, "MOST_ROWS", drawn))
        if way == "one sample":
            stack.enter_context(patch.object(plan, "_learns_from_inputs", lambda *given: False))
        if way == "drawn for each atom":
            stack.enter_context(patch.object(StoredInputs, "draw", once))
        model.fit(Shards(files, target="y"))


def processes(folder: Path) -> dict[str, Any]:
    """Ten rounds of a million rows."""
    files = write_rows(folder, 1_000_000, 30)
    parameters = {"basis": "neural", "max_iter": 10, "n_iter_no_change": None}
    settings = {"files": files, "threads": 1, "parameters": parameters}
    return {str(size): {**measured(size, settings), "drawn": "epoch"} for size in (1, 2)}


TEXT = """# Networks of rows in files

`python benchmarks/shard_networks.py`, on MACHINE. Networks alone, made-up numbers (`products` and `additive` in
shard_rows.py), 30 columns. Test RMSE; seconds are those of the processor, of one thread.

## What an atom is trained on

Rows are drawn anew for each atom, or for each epoch, as fits of Shards do, with gradient, line search and risk of all
rows; or all atoms have the same ones, in memory."""


def page(held: dict[str, Any]) -> str:
    """The page of all figures that there are."""
    lines = [TEXT.replace("MACHINE", held["machine"])]
    if "samples" in held:
        seeds = " and ".join(map(str, SEEDS))
        lines.append(f"\n{ROWS:,} rows, of which {DRAWN:,} are drawn. Means of seeds {seeds}.\n")
        lines.append(_table(held["samples"]))
    if "million" in held:
        lines.append(
            f"\nA million rows, of which 262,144 are drawn, as by default; {ROUNDS} rounds, seed {SEEDS[0]}.\n"
        )
        lines.append(_table(held["million"]))
    if "processes" in held:
        drawn = held["processes"]["1"].get("drawn", "atom")
        lines.append("\n## Processes of one thread each\n")
        lines.append(
            f"A million rows, of which 262,144 are drawn for each {drawn}. Sums of one process are no messages.\n"
        )
        lines += ["| | a round, s | of it sums, s | sums | MB |", "|---|---:|---:|---:|---:|"]
        for size, own in held["processes"].items():
            each = [own[key] / own["rounds"] for key in ("in_rounds", "in_sums", "calls", "bytes")]
            name = f"{size} process{'es' * (size != '1')}"
            lines.append(f"| {name} | {each[0]:.2f} | {each[1]:.2f} | {each[2]:.0f} | {each[3] / 1e6:.1f} |")
    return "\n".join(lines) + "\n"


def _table(sets: dict[str, Any]) -> str:
    lines = ["| | | RMSE | change | rounds | fit, s |", "|---|---|---:|---:|---:|---:|"]
    for target, ways in sets.items():
        first = np.mean([own["rmse"] for own in next(iter(ways.values()))])
        for way, figures in ways.items():
            rmse, rounds, seconds = (np.mean([own[key] for own in figures]) for key in ("rmse", "rounds", "processor"))
            change = f"{100 * (rmse / first - 1):+.1f} %"
            lines.append(f"| {target} | {way} | {rmse:.4f} | {change} | {rounds:.0f} | {seconds:.0f} |")
    return "\n".join(lines)


PARTS = {"samples": samples, "million": million, "processes": processes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gce-shards")
    parser.add_argument("parts", nargs="*", metavar="PART")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    path = RESULTS / "shard_networks.json"
    for name in given.parts or PARTS:
        found = PARTS[name](given.folder)
        known = json.loads(path.read_text()) if path.exists() else {}
        known |= {name: found, "machine": f"{machine()}, which other work shared"}
        path.write_text(json.dumps(known, indent=1) + "\n")
        path.with_suffix(".md").write_text(page(known))


if __name__ == "__main__":
    run_script(main)
