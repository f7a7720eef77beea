"""Other settings of the default families on development sets and seeds that are not reported.

    GCE_DATA_HOME=FOLDER python benchmarks/family_settings.py --seeds 10 11 --settings default trees-0.3 [--jobs N]
    python benchmarks/family_settings.py --tables-only

One process and thread for each fit. Rows are added to benchmarks/results/family_settings.jsonl, a line for each fit;
family_settings.md is the change of RMSE or log-loss and of CPU seconds against the defaults of the same seeds.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from accuracy_sets import SETS
from harness import RESULTS, refuse_gaps, run_script

from gce.bases import Basis
from gce.training import families

Row = dict[str, Any]
Change = Callable[[dict[str, Basis], bool], Any]


def on_large(name: str, **settings: Any) -> Change:
    """Change a family of tables that are not small."""
    return lambda bases, small: None if small else bases[name].set_params(**settings)


def on_small(**settings: Any) -> Change:
    """Change both families of boosted trees on small tables."""
    return lambda bases, small: [bases[n].set_params(**settings) for n in ("tree", "symmetric")] if small else None


SETTINGS: dict[str, Change] = {
    "default": lambda bases, small: None,
    **{f"trees-{rate}": on_large("tree", learning_rate=rate) for rate in (0.1, 0.15, 0.2, 0.3)},
    "trees-rows-0.7": on_large("tree", subsample=0.7),
    "trees-31-leaves": on_large("tree", max_leaf_nodes=31),
    "trees-128-bins": on_large("tree", max_bins=128),
    **{f"symmetric-{rate}": on_large("symmetric", learning_rate=rate) for rate in (0.25, 0.3)},
    "symmetric-sampled": on_large("symmetric", subsample=0.8, max_features=0.75),
    "forest-10": lambda bases, small: bases["forest"].set_params(n_estimators=10),
    **{f"small-{rate}": on_small(learning_rate=rate) for rate in (0.1, 0.15, 0.2)},
}


def one(name: str, seed: int, setting: str) -> Row:
    """A default fit with one setting changed."""
    import accuracy_models as peers
    from accuracy_sets import cut

    torch.set_num_threads(1)
    usual = families.default_bases

    def changed(rows: int, columns: int) -> dict[str, Basis]:
        bases = usual(rows, columns)
        SETTINGS[setting](bases, rows < families.SMALL_ROWS)
        return bases

    families.default_bases = changed
    found = peers.measured("GCE", cut(name, seed), seed)
    refuse_gaps([f"{name}, seed {seed}, {setting}: {found['failed']}"] if "failed" in found else [])
    return {"set": name, "seed": seed, "setting": setting, **found}


def tables(rows: list[Row]) -> str:
    """Means over sets of the changes against the defaults of the same run and seeds."""
    known = {(r["run"], r["set"], r["seed"], r["setting"]): r for r in rows}
    lines = []
    for run, setting in dict.fromkeys((r["run"], r["setting"]) for r in rows):
        changes: dict[str, list[tuple[float, float]]] = {}
        for (own, name, seed, other), row in known.items():
            usual = known.get((run, name, seed, "default"))
            if (own, other) == (run, setting) and setting != "default" and usual:
                better = [math.log(row[key] / usual[key]) for key in ("rmse", "log_loss") if key in row]
                pair = better[0], math.log(row["cpu_seconds"] / usual["cpu_seconds"])
                changes.setdefault(name, []).append(pair)
        if changes:
            means = [
                [100 * math.expm1(sum(some) / len(some)) for some in zip(*own, strict=True)] for own in changes.values()
            ]
            loss, cpu = (sum(column) / len(means) for column in zip(*means, strict=True))
            lines.append(f"| {run} | {setting} | {len(means)} | {loss:+.2f} % | {cpu:+.0f} % |")
    return "\n".join(lines)


def write(folder: Path) -> None:
    rows = [json.loads(line) for line in (folder / "family_settings.jsonl").read_text().splitlines()]
    (folder / "family_settings.md").write_text(
        "# Settings of the default families\n\n"
        "Change of RMSE or log-loss on test rows, and of CPU seconds, against the defaults of the same run: means\n"
        "over sets of means over two seeds (of 10 to 13, which are not reported). CPU seconds are of a machine with\n"
        "16 processes at once, and rough. Script: `benchmarks/family_settings.py`. In run 1 the defaults had learning\n"
        "rates of 0.1 for trees; in run 2, after it, 0.2 and 0.15 on small tables.\n\n"
        "| run | setting | sets | RMSE or log-loss | CPU |\n|---|---|---:|---:|---:|\n" + tables(rows) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=SETTINGS)
    parser.add_argument("--sets", nargs="+", default=[name for name in SETS if name != "letter"], choices=SETS)
    parser.add_argument("--run", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    if not given.tables_only:
        jobs = [(name, seed, setting) for name in given.sets for seed in given.seeds for setting in given.settings]
        # a process for each fit: settings must not outlive it
        pool = ProcessPoolExecutor(given.jobs, get_context("spawn"), max_tasks_per_child=1)
        with pool, (RESULTS / "family_settings.jsonl").open("a") as out:
            for row in pool.map(one, *zip(*jobs, strict=True)):
                out.write(json.dumps({"run": given.run, **row}) + "\n")
    write(RESULTS)
    sys.stdout.write((RESULTS / "family_settings.md").read_text())


if __name__ == "__main__":
    run_script(main)
