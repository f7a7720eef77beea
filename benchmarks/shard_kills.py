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
from unittest.mock import patch

import numpy as np
import shard_page
from harness import logger, run_script
from shard_fits import RESULTS
from shard_group import environment
from shard_rows import write_rows

#: All families, and how many of the 40,000 rows are sampled, so that networks are trained by all processes together.
PARAMETERS, ROWS, SAMPLED = {"max_iter": 30, "n_iter_no_change": None}, 40_000, 8192
WORKER = Path(__file__).parents[1] / "tests" / "sharded.py"


def start(folder: Path, size: int, files: str, rows: Path) -> list[subprocess.Popen[bytes]]:
    """The processes of a fit with a checkpoint."""
    about = {"classes": False, "parameters": PARAMETERS, "files": files, "rows": str(rows), "out": str(folder)}
    about |= {"timeout": 20, "most_rows": SAMPLED}
    path = folder / "settings.json"
    path.write_text(json.dumps(about | {"checkpoint": str(folder / "checkpoint")}))
    command, quiet = [sys.executable, str(WORKER), str(path)], {"stderr": subprocess.DEVNULL}
    return [subprocess.Popen(command, env=one, **quiet) for one in environment(size, threads=1)]


def killed(processes: list[subprocess.Popen[bytes]], rank: int, checkpoint: Path, rounds: int, seconds: float) -> bool:
    """Whether a process was killed, some time after so many rounds more were written, before the fit had ended."""
    rounds += written(checkpoint)
    while written(checkpoint) < rounds and any(process.poll() is None for process in processes):
        time.sleep(0.001)
    time.sleep(seconds)
    if processes[rank].poll() is not None:
        return False
    processes[rank].send_signal(signal.SIGKILL)
    for process in processes:
        process.wait(timeout=120)
    return True


def written(checkpoint: Path) -> int:
    """How many rounds a checkpoint has."""
    return len(list(checkpoint.glob("*round-*")))


def campaign(kills: int, seed: int) -> dict[str, Any]:
    """Kill until there are so many kills, then let the fit end."""
    rng, done, moments = np.random.default_rng(seed), 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = write_rows(folder / "data", ROWS, 10, group=2_500)
        rows = folder / "rows.parquet"
        frame(files).head(2000).to_parquet(rows)
        expected = alone(files, rows)
        while done < kills:
            size = int(rng.integers(1, 5))
            rank, rounds, moment = int(rng.integers(size)), int(rng.integers(16)), float(rng.uniform(0.0, 1.0))
            checkpoint = folder / "checkpoint"
            if killed(start(folder, size, files, rows), rank, checkpoint, rounds, moment):
                done += 1
                moments.append({"processes": size, "rank": rank, "rounds": written(checkpoint)})
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


def alone(files: str, rows: Path) -> np.ndarray:
    """The scores of one process that nobody kills, without a checkpoint."""
    import pandas as pd

    import gce
    from gce.estimators import _shard_choice

    with patch.multiple(_shard_choice, MOST_ROWS=SAMPLED, FEWEST_ROWS=SAMPLED):
        model = gce.GCERegressor(random_state=0, n_jobs=1, **PARAMETERS).fit(gce.Shards(files, target="y"))
    return model.raw_predict(pd.read_parquet(rows)).numpy()


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
    run_script(main)
