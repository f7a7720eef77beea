"""Categories and statistics of the target from a sample of rows in files, and from all of them.

    python benchmarks/shard_encodings.py FOLDER --before SRC

FOLDER holds the made-up rows, SRC is the folder ``src`` of a checkout before all rows were learned from.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import RESULTS, peak_mib, processor, run_script

logger = logging.getLogger("benchmarks")

ROWS, TEST, FILE, GROUP = 2_000_000, 100_000, 500_000, 62_500
#: Levels of each of the two columns of categories.
LEVELS = (50_000, 500_000)
#: The passes over the files.
PASSES = {"choose_rows": "first", "learn_from_shards": "statistics", "write": "codes_seconds"}


def table(rows: int, levels: int, part: int) -> Any:
    """Six numbers, two columns of categories, and a target that depends on two numbers and both categories."""
    import pyarrow as pa

    rng, effects = np.random.default_rng([part, levels]), np.random.default_rng(levels).normal(size=(2, levels))
    X, level = rng.normal(size=(6, rows)), rng.integers(0, levels, (2, rows))
    y = np.sin(2 * X[0]) + 0.5 * np.abs(X[1]) + effects[0][level[0]] + effects[1][level[1]]
    columns = {f"x{j}": X[j] for j in range(6)}
    columns |= {f"c{j}": pa.array(level[j]).cast(pa.string()) for j in range(2)}
    return pa.table(columns | {"y": y + 0.5 * rng.normal(size=rows)})


def write(folder: Path, levels: int) -> str:
    """A pattern of the files, written once."""
    import pyarrow.parquet as pq

    own = folder / f"levels-{levels}"
    own.mkdir(parents=True, exist_ok=True)
    for part in range(ROWS // FILE):
        path = own / f"part-{part}.parquet"
        if not path.exists():
            pq.write_table(table(FILE, levels, part), path, row_group_size=GROUP)
    return str(own / "*.parquet")


def timed(owner: Any, name: str, seconds: dict[str, float]) -> None:
    """Let a function note its CPU seconds."""
    original: Callable[..., Any] = getattr(owner, name)

    def run(*args: Any, **more: Any) -> Any:
        begin = time.process_time()
        found = original(*args, **more)
        seconds[PASSES[name]] = time.process_time() - begin
        return found

    setattr(owner, name, run)


def one(folder: Path, levels: int) -> dict[str, Any]:
    """A fit of boosted trees: seconds, CPU seconds of the passes, and the error of new rows."""
    import gce
    from gce.estimators import _shard_data, _shard_files

    seconds: dict[str, float] = {}
    timed(_shard_data, "choose_rows", seconds)
    timed(_shard_files.CodeFiles, "write", seconds)
    if hasattr(_shard_data, "learn_from_shards"):
        timed(_shard_data, "learn_from_shards", seconds)
    files, test = write(folder, levels), table(TEST, levels, 99)
    begin = time.perf_counter()
    model = gce.GCERegressor(basis="tree", max_iter=40, random_state=0).fit(gce.Shards(files, target="y"))
    fit = time.perf_counter() - begin
    error = model.predict(test.drop_columns(["y"])) - test["y"].to_numpy()
    codes = [len(column.categories) for column in model.table_.columns if column.kind == "category"]
    rmse = float(np.sqrt(np.mean(np.square(error))))
    return {"levels": levels, "fit": fit, "rmse": rmse, "codes": codes, "peak": peak_mib(), **seconds}


def page(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    head = [
        "levels",
        "learned from",
        "RMSE",
        "categories with a code",
        "fit, s",
        "first pass, CPU s",
        "statistics, CPU s",
    ]
    head += ["codes, CPU s", "peak memory, MB"]
    lines = [
        f"""# Categories and their statistics from all rows in files

`python benchmarks/shard_encodings.py`, on {processor()}, {os.cpu_count()} cores, one process of two threads.
Others used the machine at the same time: seconds of fits are those of a busy machine, those of passes are CPU seconds.

{ROWS:,} rows in Parquet files: six numbers and two columns of categories, all of them equally likely, whose effects on
the target have variance 1 each. The noise has variance 0.25, so that no model has an RMSE below 0.5. Boosted trees, 40
rounds; the error of {TEST:,} new rows. Before, categories were learned from the rows in memory, 262,144 sampled and
200,000 held out, and statistics of the target from the former. Each column of passes is one reading of the files.
""",
        "| " + " | ".join(head) + " |",
        "|---:|---|" + "---:|" * (len(head) - 2),
    ]
    for row in sorted(rows, key=lambda row: (row["levels"], row["run"])):
        cells = [f"{row['levels']:,}", {"after": "all rows", "before": "the sample"}[row["run"]], f"{row['rmse']:.4f}"]
        cells += [f"{sum(row['codes']):,}", f"{row['fit']:.1f}", f"{row['first']:.1f}"]
        cells += [f"{row['statistics']:.1f}" if "statistics" in row else "", f"{row['codes_seconds']:.1f}"]
        lines.append("| " + " | ".join([*cells, f"{row['peak']:,.0f}"]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run both, or one in this process."""
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--one", type=int)
    given = parser.parse_args()
    if given.one is not None:
        sys.stdout.write(json.dumps(one(given.folder, given.one)) + "\n")
        return
    rows = []
    after = Path(__file__).resolve().parents[1] / "src"
    for levels in LEVELS:
        for run, source in (("before", given.before), ("after", after)):
            if source is None:
                continue
            command = [sys.executable, __file__, str(given.folder), "--one", str(levels)]
            variables = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "2"}
            done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
            rows.append({"run": run, **json.loads(done.stdout.splitlines()[-1])})
            logger.info("%s", rows[-1])
    (RESULTS / "shard_encodings.md").write_text(page(rows))


if __name__ == "__main__":
    run_script(main)
