"""Shapley values of california's default model, beside predict and beside LightGBM and CatBoost.

    GCE_DATA_HOME=FOLDER python benchmarks/shap_speed.py [--rows 10000] [--background 100] [--quick]

Fits of the first split, then the values of its test rows (repeated to 10,000), all in one process on all cores: the
best of three calls (of one, where a call takes more than a minute).

Writes benchmarks/results/shap.md; --quick fits a few rounds and writes nothing.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import accuracy_models as peers
import numpy as np
import torch
from accuracy_sets import cut
from harness import CORES, RESULTS, number, processor, run_script

from gce.bases.base import Atoms, Zero
from gce.bases.trees.atoms import TreeAtomsBase
from gce.inspection.shapley.hull import HullGame


def best(work: Callable[[], Any]) -> float:
    """Seconds of the best of three calls, or of one that takes more than a minute."""
    took: list[float] = []
    while len(took) < 3 and not (took and took[0] > 60):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


def depth(part: TreeAtomsBase) -> float:
    """The mean depth of the trees' deepest leaves."""
    left, size = part.trees.left.numpy(), part.trees.size.tolist()
    depths, first = [], 0
    for nodes in size:
        level = np.zeros(nodes, int)
        for node in np.flatnonzero(left[first : first + nodes]):
            below = left[first + node]
            level[below : below + 2] = level[node] + 1
        depths.append(int(level.max()))
        first += nodes
    return statistics.mean(depths)


def only(result: Any, part: Atoms) -> Any:
    """The game of one kind of atoms."""
    game = HullGame(result)
    vars(game)["parts"] = [one for one in game.parts if one[0] is part]
    return game


def kinds(model: Any, X: Any, background: Any) -> list[str]:
    """One line of the table for each kind of atoms of our model."""
    coded, others, lines = model.code_rows(X), model.code_rows(background), []
    rows = model.result_.table.rows(coded, torch.device("cpu"))
    for part, weights in HullGame(model.result_).parts:
        assert not isinstance(part, Zero)
        game, tree = only(model.result_, part), isinstance(part, TreeAtomsBase)
        predict = best(lambda part=part, weights=weights: part.mix(part.seen(rows), weights))
        values = best(lambda game=game: game.values(coded, 16, 0))
        against = best(lambda game=game: game.against(coded, others, 16, 0)) if tree else None
        count = len(part.trees) if isinstance(part, TreeAtomsBase) else len(part)
        deep = depth(part) if isinstance(part, TreeAtomsBase) else None
        ratio = None if deep is None else values / (predict * deep**2)
        cells = [count, *map(number, (deep, predict, values, 1000 * values / count, ratio, against))]
        lines.append(f"| {type(part).__name__}, {len(part)} atoms | " + " | ".join(map(str, cells)) + " |")
    return lines


def theirs(rows: Any, X: Any, rounds: int | None) -> list[str]:
    """One line for each peer: its own values, by the training weight."""
    import catboost

    lines = []
    for name in ("LightGBM", "CatBoost"):
        model = peers.make(name, rows.regression, 0)
        if rounds is not None:
            model.set_params(**{"n_estimators": rounds})
        model.fit(rows.X_train, rows.y_train)
        own = getattr(model, "model_", getattr(model, "model", model))
        predict = best(lambda model=model: model.predict(X))
        if name == "LightGBM":
            trees = own.booster_.num_trees()
            values = best(lambda own=own: own.predict(X, pred_contrib=True))
        else:
            trees = own.tree_count_
            pool = catboost.Pool(X)
            values = best(lambda own=own, pool=pool: own.get_feature_importance(pool, type="ShapValues"))
        cells = trees, *map(number, (predict, values, 1000 * values / trees))
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
    return lines


def closing(model: Any) -> str:
    """What a fit and a file pay for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        size = path.stat().st_size
        for part in model.ensemble_.parts:
            if isinstance(part, TreeAtomsBase):
                part._trees = None
                del part._buffers["cover"]
        model.save(path)
        before = path.stat().st_size
    return f"A file of the model has {size / 1e6:.2f} MB, and had {before / 1e6:.2f} MB without the weights in leaves."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--background", type=int, default=100)
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    rows = cut("california", 0)
    X = np.resize(rows.X_test, (given.rows, rows.X_test.shape[1]))
    background = rows.X_train[: given.background]
    model = peers.make("GCE", rows.regression, 0)
    if given.quick:
        model.set_params(max_iter=10)
    began = time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    fit = time.perf_counter() - began
    predict, values = best(lambda: model.predict(X)), best(lambda: model.shap_values(X))
    lines = [
        "# Shapley values: speed",
        "",
        *(__doc__ or "").splitlines()[4:6],
        f"Machine: {processor()}, {CORES} cores. {given.rows:,} rows of {X.shape[1]} columns.",
        "",
        f"The default model was fitted in {number(fit)} s; `predict` takes {number(predict)} s, and `shap_values(X)` "
        f'{number(values)} s. By kind of atoms, in seconds; "ratio" is seconds over those of predict and the square of '
        f'the depth; "background" is against {given.background} rows:',
        "",
        "| | trees or atoms | depth | predict | values | ms a tree | ratio | background |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *kinds(model, X, background),
        "",
        "Peers, values by the training weight as their libraries compute them:",
        "",
        "| | trees | predict | values | ms a tree |",
        "|---|---:|---:|---:|---:|",
        *theirs(rows, X, 20 if given.quick else None),
        "",
        closing(model),
    ]
    text = "\n".join(lines) + "\n"
    if given.quick:
        parser.exit(message=text)
    (RESULTS / "shap.md").write_text(text)


if __name__ == "__main__":
    run_script(main)
