"""Statistics of the target for categories: which columns have them, and how. Splits that are not reported.

    GCE_DATA_HOME=FOLDER python benchmarks/category_statistics.py [--settings NAME ...] [--tables NAME ...]
    python benchmarks/category_statistics.py --tables-only

One process and thread for each fit. Rows are added to benchmarks/results/category_statistics.jsonl; the page compares
each setting with "default" in the same run. Runs 1 and 2 are from before their choices were made, by code that also had
statistics of rows before each row in a random order, and of pairs of columns.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from harness import RESULTS, refuse_gaps, run_script

Row = dict[str, Any]
STATISTICS, SUMMARIES = "gce.preprocessing.target_statistics", "gce.preprocessing.target_summaries"
#: Constants that a setting changes.
SETTINGS: dict[str, dict[tuple[str, str], float]] = {
    "default": {},
    "none": {(STATISTICS, "RARE_SHARE"): 2.0},
    "all columns": {(STATISTICS, "RARE_SHARE"): 0.0},
    "30 % of rows rare": {(STATISTICS, "RARE_SHARE"): 0.3},
    "10 inner folds": {(SUMMARIES, "INNER_FOLDS"): 10},
    "rounded to an eighth": {(SUMMARIES, "_RESOLUTION"): 2.0**-3},
    "rounded to a 64th": {(SUMMARIES, "_RESOLUTION"): 2.0**-6},
    "2 bins": {(SUMMARIES, "TARGET_BINS"): 2},
    "32 indicators": {("gce.estimators._encoding", "MAX_INDICATORS"): 32},
    "frequent: any number of rows": {("gce.preprocessing.columns", "MIN_FREQUENT_ROWS"): 0.0},
}


def one(table: str, seed: int, setting: str) -> Row:
    """A default fit with one setting changed."""
    import torch
    from accuracy_models import measured
    from tables_data import cut

    torch.set_num_threads(1)
    for (module, name), value in SETTINGS[setting].items():
        setattr(import_module(module), name, value)
    found = measured("GCE", cut(table, seed), seed)
    refuse_gaps([f"{table}, seed {seed}, {setting}: {found['failed']}"] if "failed" in found else [])
    score = found.get("rmse", found.get("log_loss"))
    return {"table": table, "seed": seed, "setting": setting, "score": score, "cpu": found["cpu_seconds"]}


def sections(rows: list[Row]) -> str:
    """Means over seeds of the changes against the default of the same run, in percent, and of CPU seconds."""
    lines = []
    for run in dict.fromkeys(row["run"] for row in rows):
        own = {(r["table"], r["setting"], r["seed"]): r for r in rows if r["run"] == run}
        settings = list(dict.fromkeys(["default", *(key[1] for key in own)]))
        seeds = sorted({key[2] for key in own})
        lines += [f"\n## Run {run}: split seeds {', '.join(map(str, seeds))}\n"]
        lines += ["| table | " + " | ".join(settings) + " |", "|---|" + "---:|" * len(settings)]
        for table in dict.fromkeys(key[0] for key in own):
            cells = []
            for setting in settings:
                pairs = [(own.get((table, setting, s)), own.get((table, "default", s))) for s in seeds]
                both = [(a, b) for a, b in pairs if a and b]
                if not both:
                    cells.append("")
                    continue
                change = sum(math.log(a["score"] / b["score"]) for a, b in both) / len(both)
                mean = sum(a["score"] for a, _ in both) / len(both)
                cpu = sum(a["cpu"] for a, _ in both) / len(both)
                figure = f"{mean:.5g}" if setting == "default" else f"{100 * change:+.2f} %"
                cells.append(f"{figure} ({cpu:.0f} s)")
            lines.append(f"| {table} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "category_statistics.jsonl").read_text().splitlines()]
    (folder / "category_statistics.md").write_text(
        "# Statistics of the target for categories\n\n"
        "RMSE or log-loss of default fits on test rows, of splits that are not reported, and its change with other\n"
        "settings; CPU seconds of one thread, with 16 fits at once on one machine. The default: columns where 10 % of\n"
        "the rows have a category that is not frequent, 5 inner folds, rounded to a 16th of the target's spread, 6\n"
        "bins of the target. In run 1 statistics were not rounded, and star had the column its groups go by. Dates\n"
        "were calendar parts, and before run 5 there was no text. Pairs of columns: the three pairs with most\n"
        "combinations of at least five rows on average. Script:\n"
        "`benchmarks/category_statistics.py`.\n" + sections(rows) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--run", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    if not given.tables_only:
        from tables_data import described

        tables = given.tables or list(described())
        jobs = [(table, seed, setting) for table in tables for seed in given.seeds for setting in given.settings]
        # a process for each fit: settings must not outlive it
        pool = ProcessPoolExecutor(given.jobs, get_context("spawn"), max_tasks_per_child=1)
        with pool, (RESULTS / "category_statistics.jsonl").open("a") as out:
            for row in pool.map(one, *zip(*jobs, strict=True)):
                out.write(json.dumps({"run": given.run, **row}) + "\n")
    write(RESULTS)
    sys.stdout.write((RESULTS / "category_statistics.md").read_text())


if __name__ == "__main__":
    run_script(main)
