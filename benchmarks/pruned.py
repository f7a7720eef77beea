"""How small and how fast may the default model become on california, beside XGBoost's default?

    python benchmarks/pruned.py [--seeds 3]

Fits both side by side, prunes ours to several sizes in three ways, and judges all on the test rows: loss, and rows a
second on one thread (set OMP_NUM_THREADS=1), all models in turn. Writes benchmarks/results/pruned.json and pruned.md.
california is looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from accuracy_sets import cut
from data_sets import Split
from harness import RESULTS, machine, run_script
from xgboost import XGBRegressor

import gce
from gce.estimators._edit_rows import edit_data, imitation_data
from gce.estimators._validation import FitInput
from gce.inspection import editing
from gce.inspection.editing.edit_data import simplex_problems, with_weights
from gce.inspection.editing.pruning import choose, prune_together, size_of

SIZES = (700, 500, 350, 300, 250, 200, 170, 130, 100)
#: How often each model is asked for its clock: the best counts.
TIMES = 25
WAYS = {
    "targets": "`model.prune(k, X=X, y=y)`",
    "imitated": "`model.prune(k, X=X)`",
    "both": "`model.prune(tol=0, X=X, y=y).prune(k, X=X)`",
}


def judged(seed: int) -> Iterator[dict[str, Any]]:
    """A line a model and size."""
    rows = cut("california", seed)
    models: dict[tuple[str, int | None], Any] = {}
    seconds: dict[str, float] = {}
    models["XGBoost", None], seconds["XGBoost"] = clocked(
        lambda: XGBRegressor(n_jobs=1).fit(rows.X_train, rows.y_train)
    )
    whole, seconds["whole"] = clocked(
        lambda: gce.GCERegressor(random_state=seed, n_jobs=1).fit(rows.X_train, rows.y_train)
    )
    models["whole", None] = whole
    solved, took = clocked(lambda: whole.prune(tol=0, X=rows.X_train, y=rows.y_train))
    models["both", None] = solved
    for way, model, y in (("targets", whole, rows.y_train), ("imitated", whole, None), ("both", solved, None)):
        found, seconds[way] = clocked(lambda model=model, y=y: dict(sizes(model, rows.X_train, y)))
        models |= {(way, goal): one for goal, one in found.items()}
    seconds["both"] += took
    speeds = rows_a_second(models, rows)
    for (way, goal), model in models.items():
        error = model.predict(rows.X_test) - rows.y_test
        atoms = model.n_estimators or 100 if way == "XGBoost" else int((model.ensemble_.origin[:, 1] > 0).sum())
        line = {"seed": seed, "way": way, "goal": goal, "atoms": atoms, "mse": float(np.mean(error**2))}
        yield {**line, "rows_a_second": speeds[way, goal], "seconds": seconds[way]}


def clocked(work: Any) -> tuple[Any, float]:
    began = time.perf_counter()
    return work(), time.perf_counter() - began


def sizes(model: Any, X: Any, y: Any) -> Iterator[tuple[int, Any]]:
    """What ``prune`` gives for every size, its path found once."""
    result, given = model.result_, FitInput(X, y)
    with torch.no_grad():
        if y is None:
            result = editing.as_one_simplex(result)
        data = imitation_data(model, result, given) if y is None else edit_data(model, result, given)
        problems = simplex_problems(result, data)
        points = prune_together(problems)
        for goal in SIZES:
            point = choose(problems, points, goal, None)
            assert size_of(problems, point) <= goal
            yield goal, model._with(with_weights(result, data, problems, point))


def rows_a_second(models: dict[Any, Any], rows: Split) -> dict[Any, float]:
    """All take turns, so that what else the machine does strikes all alike; the best turn counts."""
    best = dict.fromkeys(models, np.inf)
    for _ in range(TIMES):
        for name, model in models.items():
            best[name] = min(best[name], clocked(lambda model=model: model.predict(rows.X_test))[1])
    return {name: len(rows.X_test) / took for name, took in best.items()}


def page(found: dict[str, Any]) -> str:
    """Means over seeds."""
    lines, host = found["lines"], found["machine"]
    seeds = sorted({line["seed"] for line in lines})
    xgboost = _mean(lines, "XGBoost", None)
    text = [
        "# The default model pruned, beside XGBoost's default, on california",
        "",
        f"Means over split seeds {seeds[0]} to {seeds[-1]}; 16,512 rows to fit on, 4,128 to judge by. Loss is the mean",
        "squared error on test rows, relative to our default as it was fitted. Rows a second: the test rows asked for",
        "in one call, one thread for both, all models in turn (other work on the machine then strikes all alike), the",
        f"best of {TIMES} turns; speed is relative to XGBoost's default in the same run. Atoms are trees here: of 63",
        f"leaves, or symmetric ones of 32. Machine: {host['cpu']}, {host['cores']} cores; XGBoost",
        f"{host['versions']['xgboost']}, scikit-learn {host['versions']['sklearn']}. Script: `benchmarks/pruned.py`.",
        "",
        *_conclusion(lines, xgboost),
        "",
        "| model | atoms | test RMSE | loss | rows a second | speed |",
        "|---|---:|---:|---:|---:|---:|",
        _row("XGBoost, default (100 trees)", xgboost, xgboost),
        _row("GCE, default", _mean(lines, "whole", None), xgboost),
        _row("GCE, weights solved anew: `prune(tol=0, X=X, y=y)`", _mean(lines, "both", None), xgboost),
    ]
    for way, call in WAYS.items():
        text += ["", f"{call}, {_mean(lines, way, SIZES[0])['seconds']:.0f} s for all sizes:", ""]
        text += ["| k | atoms | test RMSE | loss | rows a second | speed |", "|---:|---:|---:|---:|---:|---:|"]
        text += [_row(str(goal), _mean(lines, way, goal), xgboost) for goal in SIZES]
    return "\n".join(text) + "\n"


def _mean(lines: list[dict[str, Any]], way: str, goal: int | None) -> dict[str, float]:
    own = [line for line in lines if (line["way"], line["goal"]) == (way, goal)]
    base = {line["seed"]: line["mse"] for line in lines if line["way"] == "whole"}
    loss = [line["mse"] / base[line["seed"]] for line in own]
    rmse = [line["mse"] ** 0.5 for line in own]
    means = {name: float(np.mean([line[name] for line in own])) for name in ("atoms", "rows_a_second", "seconds")}
    return {**means, "rmse": float(np.mean(rmse)), "loss": float(np.mean(loss)), "worst": max(loss)}


def _row(name: str, one: dict[str, float], xgboost: dict[str, float]) -> str:
    speed = one["rows_a_second"] / xgboost["rows_a_second"]
    quality = f"{one['atoms']:.0f} | {one['rmse']:.4f} | {one['loss']:.4f}"
    return f"| {name} | {quality} | {one['rows_a_second']:,.0f} | {speed:.2f} |"


def _conclusion(lines: list[dict[str, Any]], xgboost: dict[str, float]) -> list[str]:
    """Of each way the smallest size within 1 % of the loss, and its speed."""
    text = []
    for way, call in WAYS.items():
        within = [(goal, one) for goal in SIZES if (one := _mean(lines, way, goal))["loss"] <= 1.01]
        if not within:
            text.append(f"- {call} costs more than 1 % at each of these sizes.")
            continue
        goal, one = within[-1]
        speed = one["rows_a_second"] / xgboost["rows_a_second"]
        text.append(
            f"- {call} stays within 1 % of the loss down to k = {goal}: {one['loss']:.4f} (at the worst seed "
            f"{one['worst']:.4f}) at {speed:.2f} times XGBoost's speed."
        )
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    lines = [line for seed in range(arguments.seeds) for line in judged(seed)]
    found = {"machine": machine(), "lines": lines}
    (RESULTS / "pruned.json").write_text(json.dumps(found, indent=1) + "\n")
    (RESULTS / "pruned.md").write_text(page(found))


if __name__ == "__main__":
    run_script(main)
