"""Networks of rows in files: on rows drawn anew for each atom, on one sample, and on all rows in memory.

    python benchmarks/shard_networks.py [--folder FOLDER]

``samples``: fits of 250,000 rows of which 32,768 are drawn, on seeds that no default was chosen on. ``processes``: one
and two processes of one thread on a million rows. Figures go to benchmarks/results/shard_networks.json, and the page
shard_networks.md is made of them.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from harness import logger
from shard_group import measured
from shard_page import machine
from shard_rows import write_rows
from shard_worker import frame_of

import gce
from gce.estimators import _shard_choice
from gce.training import plan

RESULTS = Path(__file__).parent / "results"
SEEDS = (10, 11, 12)
ROWS, DRAWN = 250_000, 1 << 15


def samples(folder: Path) -> dict[str, Any]:
    """Test RMSE and seconds of each way, by seed."""
    files, test = write_rows(folder, ROWS, 30), frame_of(write_rows(folder, 500_000, 30, seed=1))
    y = test.pop("y").to_numpy()
    found: dict[str, Any] = {"one sample": [], "drawn for each atom": [], "all rows, in memory": []}
    for seed in SEEDS:
        for name, figures in found.items():
            began = time.perf_counter()
            model = fitted(name, files, seed)
            seconds = time.perf_counter() - began
            rmse = float(np.sqrt(np.mean((model.predict(test) - y) ** 2)))
            figures.append({"seed": seed, "rmse": rmse, "seconds": seconds, "rounds": model.n_iter_})
            logger.info("%s, seed %d: %s", name, seed, figures[-1])
    return found


def fitted(name: str, files: str, seed: int) -> gce.GCERegressor:
    """A model that was fitted in one of the ways."""
    model = gce.GCERegressor(basis="neural", random_state=seed, n_jobs=2, verbose=False)
    if name == "all rows, in memory":
        rows = frame_of(files)
        y = rows.pop("y")
        return model.set_params(cv=None, validation_fraction=0.1).fit(rows, y)
    learns = plan._learns_from_inputs if name == "drawn for each atom" else lambda *given: False
    with patch.object(_shard_choice, "MOST_ROWS", DRAWN), patch.object(plan, "_learns_from_inputs", learns):
        return model.fit(gce.Shards(files, target="y"))


def processes(folder: Path) -> dict[str, Any]:
    """Ten rounds of a million rows."""
    files = write_rows(folder, 1_000_000, 30)
    parameters = {"basis": "neural", "max_iter": 10, "n_iter_no_change": None}
    settings = {"files": files, "threads": 1, "parameters": parameters}
    return {str(size): measured(size, settings) for size in (1, 2)}


def page(held: dict[str, Any]) -> str:
    """The page of all figures."""
    lines = ["| | RMSE | change | rounds | fit, s |", "|---|---:|---:|---:|---:|"]
    first = np.mean([own["rmse"] for own in held["samples"]["one sample"]])
    for name, figures in held["samples"].items():
        rmse, rounds, seconds = (np.mean([own[key] for own in figures]) for key in ("rmse", "rounds", "seconds"))
        lines.append(f"| {name} | {rmse:.4f} | {100 * (rmse / first - 1):+.1f} % | {rounds:.0f} | {seconds:.0f} |")
    rounds = ["| | a round, s | of it sums, s | sums | MB |", "|---|---:|---:|---:|---:|"]
    for size, own in held["processes"].items():
        each = [own[key] / own["rounds"] for key in ("in_rounds", "in_sums", "calls", "bytes")]
        name = f"{size} process{'es' * (size != '1')}"
        rounds.append(f"| {name} | {each[0]:.2f} | {each[1]:.2f} | {each[2]:.0f} | {each[3] / 1e6:.1f} |")
    samples, times = "\n".join(lines), "\n".join(rounds)
    return f"""# Networks of rows in files

`python benchmarks/shard_networks.py`, on {held["machine"]}. Networks alone, made-up numbers (`products` in
shard_rows.py), 30 columns.

## What an atom is trained on

{ROWS:,} rows, of which an atom is trained on {DRAWN:,}: on the same ones for all atoms, in memory; or on rows drawn
anew for each atom, with gradient, line search and risk of all rows, as fits of Shards do. Means of seeds {SEEDS[0]} to
{SEEDS[-1]}, two threads.

{samples}

## Processes of one thread each

A million rows, of which 262,144 are drawn for an atom.

{times}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gce-shards")
    folder = parser.parse_args().folder
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    held = {"machine": machine(), "samples": samples(folder), "processes": processes(folder)}
    (RESULTS / "shard_networks.json").write_text(json.dumps(held, indent=1) + "\n")
    (RESULTS / "shard_networks.md").write_text(page(held))


if __name__ == "__main__":
    main()
