"""Random processes of a fit of shards are killed at random moments; the fit must end in the model of a fit left alone.

    python benchmarks/shard_kills.py [--kills 10] [--seed 0]

Each try has one to four processes and goes on from the checkpoint of the tries before it. Figures are added to
benchmarks/results/shard_fits.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import shard_page
from harness import logger
from shard_fits import RESULTS, environment
from shard_rows import write_rows

#: All families; trees of 60 rounds each.
PARAMETERS = {"max_iter": 60, "n_iter_no_change": None}
WORKER = Path(__file__).parents[1] / "tests" / "sharded.py"


def start(folder: Path, size: int, files: str, rows: Path) -> list[subprocess.Popen[bytes]]:
    """The processes of a fit with a checkpoint."""
    about = {"classes": False, "parameters": PARAMETERS, "files": files, "rows": str(rows), "out": str(folder)}
    about |= {"timeout": 20}
    path = folder / "settings.json"
    path.write_text(json.dumps(about | {"checkpoint": str(folder / "checkpoint")}))
    command, quiet = [sys.executable, str(WORKER), str(path)], {"stderr": subprocess.DEVNULL}
    return [subprocess.Popen(command, env=one, **quiet) for one in environment(size, threads=1)]


def killed(processes: list[subprocess.Popen[bytes]], rank: int, seconds: float) -> bool:
    """Whether a process was killed before the fit had ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.001)
    if processes[rank].poll() is not None:
        return False
    processes[rank].send_signal(signal.SIGKILL)
    for process in processes:
        process.wait(timeout=120)
    return True


def campaign(kills: int, seed: int) -> dict[str, Any]:
    """Kill until there are so many kills, then let the fit end."""
    rng, done, moments = np.random.default_rng(seed), 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_rows(folder / "data", 40_000, 10, group=2_500)
        rows = folder / "rows.parquet"
        frame(files).head(2000).to_parquet(rows)
        expected, seconds = alone(folder, files, rows)
        while done < kills:
            size = int(rng.integers(1, 5))
            rank, moment = int(rng.integers(size)), float(rng.uniform(2.0, 6.0 + seconds))
            if killed(start(folder, size, files, rows), rank, moment):
                done += 1
                rounds = len(list((folder / "checkpoint").glob("*round-*")))
                moments.append({"processes": size, "rank": rank, "seconds": round(moment, 2), "rounds": rounds})
                logger.info("%s", moments[-1])
            elif (folder / "scores-0.npy").exists():
                # the fit was faster: another checkpoint
                check(folder, expected)
                clear(folder)
        last = int(rng.integers(1, 5))
        for process in start(folder, last, files, rows):
            assert process.wait(timeout=300) == 0
        check(folder, expected)
    return {"kills": {"count": done, "equal": True, "moments": moments}}


def frame(files: str) -> Any:
    import pandas as pd

    return pd.concat([pd.read_parquet(path) for path in sorted(Path(files).parent.glob("*.parquet"))]).drop(columns="y")


def alone(folder: Path, files: str, rows: Path) -> tuple[np.ndarray, float]:
    """The scores of one process that nobody kills, without a checkpoint, and the seconds of its fit."""
    import pandas as pd

    import gce

    began = time.perf_counter()
    model = gce.GCERegressor(random_state=0, n_jobs=1, **PARAMETERS).fit(gce.Shards(files, target="y"))
    return model.raw_predict(pd.read_parquet(rows)).numpy(), time.perf_counter() - began


def check(folder: Path, expected: np.ndarray) -> None:
    """Every process must have ended with the same scores."""
    for path in folder.glob("scores-*.npy"):
        if not np.array_equal(np.load(path), expected):
            raise AssertionError(f"{path.name} differs")


def clear(folder: Path) -> None:
    for path in [*folder.glob("scores-*.npy"), *(folder / "checkpoint").iterdir()]:
        path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    found = campaign(given.kills, given.seed)
    shard_page.add(RESULTS / "shard_fits.json", found)


if __name__ == "__main__":
    main()
