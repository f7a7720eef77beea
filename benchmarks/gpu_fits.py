"""Default fits on a GPU: seconds in all and by family, as one JSON object per fit on standard output.

``python benchmarks/gpu_fits.py --rows 300000 300000 1000000``: the first fit of a process also loads and compiles.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import torch
from gpu_trees import made_up
from harness import run_script

from gce import GCERegressor


def fitted(rows: int, device: str) -> dict[str, Any]:
    """Seconds, rounds and weights of one default fit."""
    X, y = made_up(rows, torch.device("cpu"))
    began = time.perf_counter()
    model = GCERegressor(device=device, random_state=0, verbose=False).fit(X.numpy(), y[:, 0].numpy())
    wall = time.perf_counter() - began
    seconds: dict[str, float] = {}
    rounds: dict[str, int] = {}
    before = 0.0
    for entry in model.history_:
        name = entry["family"]
        seconds[name] = seconds.get(name, 0.0) + entry["seconds"] - before
        rounds[name] = rounds.get(name, 0) + 1
        before = entry["seconds"]
    return {
        "rows": rows,
        "wall": wall,
        "seconds": seconds,
        "rounds": rounds,
        "weights": list(model.result_.family_weights),
        "validation": model.history_[-1]["validation"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000, 1_000_000])
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    for rows in given.rows:
        sys.stdout.write(json.dumps(fitted(rows, given.device)) + "\n")


if __name__ == "__main__":
    run_script(main)
