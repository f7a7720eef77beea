"""Monotone and interaction constraints: the default with all four families, without those once left out, and peers.

    python benchmarks/constraints.py [--seeds 5]

Root mean squared error or log-loss on test rows, under the same constraints. Until forests and networks knew all
constraints, the default had no forest under ``monotonic_cst`` and boosted trees alone under ``interaction_cst``: those
families alone are "gce before". LightGBM, XGBoost and scikit-learn's histogram boosting have the same constraints and
otherwise their defaults. Results are kept in benchmarks/results/constraints.jsonl and are not repeated; constraints.md
is made of them. Real sets are looked for in GCE_DATA_HOME. One thread.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from data_sets import categories, load
from harness import CORES, RESULTS, processor, run_script
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

from gce import GCEClassifier, GCERegressor
from gce.bases import Forest, Neural
from gce.bases.neural import blocks
from gce.bases.trees import grower_random
from gce.training.families import default_bases

#: Seed of the first split, and the splits that settings were chosen on.
FIRST_SEED, DEVELOPMENT = 1, (101, 102)
#: Families that the default had before.
BEFORE = {"monotone": ("tree", "symmetric", "neural"), "sets": ("tree", "symmetric")}
UNCONSTRAINED = "gce, unconstrained"
MODELS = ("gce", "gce before", "LightGBM", "XGBoost", "HGB", UNCONSTRAINED)


@dataclass(frozen=True)
class Task:
    """A data set with its constraints, and how many rows of it are used."""

    rows: Callable[[int], tuple[NDArray[np.float64], NDArray[Any]]]
    train: int
    test: int
    regression: bool
    signs: dict[int, int]
    sets: list[list[int]]
    words: dict[str, str]
    categories: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        return 14 if self.categories else 8


def made_up(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of eight columns: increasing in the first, decreasing in the second, interactions within three sets."""
    rng = np.random.default_rng([seed, 8])
    X = rng.normal(size=(5000, 8))
    first = 3 * np.tanh(X[:, 0]) / (1 + np.exp(-2 * X[:, 2])) - np.log1p(np.exp(2 * X[:, 1]))
    y = first + X[:, 3] * X[:, 4] + np.sin(2 * X[:, 5]) + np.abs(X[:, 6]) * X[:, 7]
    return X, y + rng.normal(size=len(X))


def drawn(name: str, seed: int) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """A real set in a random order."""
    X, y = load(name)
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order].astype(np.float64), y[order]


TASKS = {
    "made-up": Task(
        made_up,
        1000,
        4000,
        True,
        {0: 1, 1: -1},
        [[0, 1, 2], [3, 4], [5, 6, 7]],
        {"monotone": "two of eight columns", "sets": "three sets"},
    ),
    "california": Task(
        lambda seed: drawn("california", seed),
        3000,
        10000,
        True,
        {0: 1},
        [[6, 7], [0, 1, 2, 3, 4, 5]],
        {"monotone": "MedInc", "sets": "the place, and all else"},
    ),
    "adult": Task(
        lambda seed: drawn("adult", seed),
        3000,
        10000,
        False,
        {0: 1, 4: 1},
        [list(pair) for pair in combinations(range(14), 2)],
        {"monotone": "age, education-num", "sets": "any two columns"},
        categories("adult"),
    ),
}


def constraints(task: Task, kind: str) -> tuple[list[int], list[list[int]] | None]:
    """Signs of all columns, and sets."""
    if kind == "sets":
        return [0] * task.columns, task.sets
    return [task.signs.get(j, 0) for j in range(task.columns)], None


def gce_model(task: Task, kind: str, seed: int, basis: Any) -> Any:
    """Ours, under a kind of constraints or none."""
    signs, sets = constraints(task, kind)
    own = {"sets": {"interaction_cst": sets}, "monotone": {"monotonic_cst": signs}, "none": {}}[kind]
    estimator = GCERegressor if task.regression else GCEClassifier
    return estimator(basis=basis, random_state=seed, n_jobs=1, **own)


def peer(name: str, task: Task, kind: str, seed: int) -> Any:
    """Another library's model under the same constraints."""
    signs, sets = constraints(task, kind)
    if name == "LightGBM":
        from lightgbm import LGBMClassifier, LGBMRegressor

        limits: dict[str, Any] = {"interaction_constraints": sets} if sets else {"monotone_constraints": signs}
        estimator = LGBMRegressor if task.regression else LGBMClassifier
        return estimator(random_state=seed, n_jobs=1, verbose=-1, **limits)
    if name == "XGBoost":
        from xgboost import XGBClassifier, XGBRegressor

        # sets as text are read as indices
        limits = {"interaction_constraints": str(sets)} if sets else {"monotone_constraints": tuple(signs)}
        estimator = XGBRegressor if task.regression else XGBClassifier
        return estimator(random_state=seed, n_jobs=1, enable_categorical=bool(task.categories), **limits)
    limits = {"interaction_cst": sets} if sets else {"monotonic_cst": signs}
    estimator = HistGradientBoostingRegressor if task.regression else HistGradientBoostingClassifier
    return estimator(random_state=seed, **limits)


def measured(name: str, kind: str, model: str, seed: int) -> dict[str, float]:
    """The test loss and CPU seconds of a fit."""
    task = TASKS[name]
    if model == "gce before":
        usual = default_bases(task.train, task.columns)
        return judged(gce_model(task, kind, seed, {family: usual[family] for family in BEFORE[kind]}), task, seed)
    if model in ("gce", UNCONSTRAINED):
        return judged(gce_model(task, "none" if model == UNCONSTRAINED else kind, seed, "auto"), task, seed)
    return judged(peer(model, task, kind, seed), task, seed)


def judged(model: Any, task: Task, seed: int) -> dict[str, float]:
    """The test loss and CPU seconds of a model's fit."""
    X, y = task.rows(seed)
    rows: Any = X
    if task.categories:
        rows = pd.DataFrame(X).rename(columns=str)
        for j in task.categories:
            rows[str(j)] = pd.Categorical(X[:, j].astype(int))
    train, test = slice(task.train), slice(task.train, task.train + task.test)
    began = time.process_time()
    model.fit(rows[train], y[train])
    seconds = time.process_time() - began
    if task.regression:
        loss = float(np.sqrt(np.mean((model.predict(rows[test]) - y[test]) ** 2)))
    else:
        loss = float(log_loss(y[test], model.predict_proba(rows[test])))
    return {"loss": loss, "seconds": seconds}


def report(lines: list[dict[str, Any]]) -> list[str]:
    """The results as the lines of a page."""
    seeds = sorted({line["seed"] for line in lines})
    out = [
        "# Monotone and interaction constraints",
        "",
        __doc__.split("\n\n")[2].strip(),
        "",
        f"Means over splits {seeds[0]} to {seeds[-1]}, and CPU seconds of a fit; in brackets on how many of the splits",
        "the default under constraints has a smaller and a larger loss than the model of the column. Training rows: "
        + ", ".join(f"{name} {task.train:,}" for name, task in TASKS.items())
        + ". Loss: root mean squared error, of adult log-loss.",
        f"Machine: {processor()}, {CORES} cores, which other work shared. Script: `benchmarks/constraints.py`.",
        "",
        "| | " + " | ".join(MODELS) + " |",
        "|---" * (len(MODELS) + 1) + "|",
    ]
    for name, task in TASKS.items():
        for kind in BEFORE:
            cells = [_cell(lines, name, kind, model) for model in MODELS]
            out.append(f"| {name}, {kind}: {task.words[kind]} | " + " | ".join(cells) + " |")
    return out


def _found(lines: list[dict[str, Any]], name: str, kind: str, model: str) -> dict[int, dict[str, Any]]:
    """What was measured, by seed."""
    return {line["seed"]: line for line in lines if (line["set"], line["kind"], line["model"]) == (name, kind, model)}


def _cell(lines: list[dict[str, Any]], name: str, kind: str, model: str) -> str:
    found = _found(lines, name, "monotone" if model == UNCONSTRAINED else kind, model)
    ours = _found(lines, name, kind, "gce")
    loss, seconds = (float(np.mean([line[key] for line in found.values()])) for key in ("loss", "seconds"))
    both = [(ours[seed]["loss"], line["loss"]) for seed, line in found.items()]
    wins, losses = sum(one < other for one, other in both), sum(one > other for one, other in both)
    beside = "" if model == "gce" else f" ({wins}:{losses})"
    return f"{loss:.4f}{beside}, {seconds:.1f} s"


def settings() -> list[str]:
    """How the two numbers that are ours to choose were chosen: a forest, and networks, by themselves."""
    out = ["", "## Two settings", ""]
    out += [
        f"Loss of one family by itself, means over splits {DEVELOPMENT[0]} and {DEVELOPMENT[-1]}, of which no number",
        "above is. A forest under monotone constraints, by the rows of a node up to which monotone columns are cut",
        "(`LATE`):",
        "",
        *_by_setting(grower_random, "LATE", (np.inf, 300.0, 100.0, 50.0, 20.0), "monotone", Forest(n_estimators=20)),
        "",
        "Networks under sets, by the number of sets that are tried for an atom (`TRIED_SETS`); of any two of eight",
        "columns on the made-up rows:",
        "",
        *_by_setting(blocks, "TRIED_SETS", (1, 2, 4, 8, 16), "sets", Neural()),
    ]
    return out


def _by_setting(module: Any, name: str, values: Sequence[float], kind: str, basis: Any) -> list[str]:
    """A table of losses and CPU seconds, for each value of a constant."""
    lines = ["| | " + " | ".join(f"{value:g}" for value in values) + " |", "|---" * (len(values) + 1) + "|"]
    usual, pairs = getattr(module, name), [list(pair) for pair in combinations(range(8), 2)]
    for task_name, task in TASKS.items():
        used = replace(task, sets=pairs) if task_name == "made-up" else task
        cells = []
        for value in values:
            setattr(module, name, value)
            found = [judged(gce_model(used, kind, seed, basis), used, seed) for seed in DEVELOPMENT]
            loss, seconds = (float(np.mean([one[key] for one in found])) for key in ("loss", "seconds"))
            cells.append(f"{loss:.4f}, {seconds:.1f} s")
        setattr(module, name, usual)
        lines.append(f"| {task_name} | " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "constraints.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    known = {(line["set"], line["kind"], line["model"], line["seed"]) for line in lines}
    for seed in range(FIRST_SEED, FIRST_SEED + asked.seeds):
        for name in TASKS:
            for kind in BEFORE:
                # without constraints both kinds are one fit
                models = MODELS if kind == "monotone" else MODELS[:-1]
                for model in (model for model in models if (name, kind, model, seed) not in known):
                    about = {"set": name, "kind": kind, "model": model, "seed": seed}
                    lines.append({**about, **measured(name, kind, model, seed)})
                    with path.open("a") as file:
                        file.write(json.dumps(lines[-1]) + "\n")
    (RESULTS / "constraints.md").write_text("\n".join([*report(lines), *settings(), ""]))


if __name__ == "__main__":
    run_script(main)
