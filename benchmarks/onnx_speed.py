"""Rows a second of a default model as an ONNX graph, beside ``predict`` and a graph of XGBoost with as many trees.

    python benchmarks/onnx_speed.py [--sets california digits] [--before COMMIT]

The default model of the first split of each set, in onnxruntime on one thread; XGBoost has as many trees with as many
leaves each on the average, in float32 as its converters write them. ``--before`` names a commit whose export of the
same model file is measured too. Rows are counted by seconds of processor time, best of several calls, so that other
work on the machine counts less.

Writes benchmarks/results/onnx_speed.json and onnx_speed.md.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import xgboost
from accuracy_sets import cut
from harness import CORES, RESULTS, call, number, processor, run_script, whole
from numpy.typing import NDArray
from onnx import helper

import gce

BATCHES = (1, 1_000, 20_000)
PACKAGES = ("onnxruntime", "onnx", "xgboost-cpu", "numpy", "torch")
EXPORT = "import sys, gce; gce.load(sys.argv[1]).to_onnx(sys.argv[2])"

Rows = NDArray[np.float64]


def measured(name: str, before: str | None) -> dict[str, Any]:
    """All contestants of a set."""
    split = cut(name, 0)
    kind = gce.GCERegressor if split.regression else gce.GCEClassifier
    model = kind(random_state=0, verbose=False).fit(split.X_train, split.y_train)
    rows = np.resize(split.X_test, (max(BATCHES), split.X_test.shape[1]))
    groves = [part.trees for part in model.ensemble_.parts if hasattr(part, "trees")]
    trees = sum(map(len, groves))
    leaves = sum((len(grove.left) + len(grove)) // 2 for grove in groves) / trees
    with tempfile.TemporaryDirectory() as folder:
        own, graph, old = (Path(folder) / each for each in ("model.safetensors", "now.onnx", "before.onnx"))
        model.save(own)
        model.to_onnx(graph)
        asked = model.predict if split.regression else model.predict_proba
        cells = [{"who": "predict", "kib": own.stat().st_size / 1024, **speeds(asked, rows)}]
        if before is not None:
            exported_by(before, own, old)
            cells.append({"who": "ONNX before", **of_graph(old.read_bytes(), rows, asked(rows[:1000]))})
        cells.append({"who": "ONNX now", **of_graph(graph.read_bytes(), rows, asked(rows[:1000]))})
    rival = boosted(split.X_train, split.y_train, split.regression, trees, round(leaves))
    margin = rival.inplace_predict(rows[:1000].astype(np.float32), predict_type="margin")
    cells.append({"who": "XGBoost's ONNX", **of_graph(as_graph(rival), rows.astype(np.float32), margin)})
    return {"set": name, "trees": trees, "leaves": leaves, "outputs": len(model.offset_), "cells": cells}


def speeds(work: Callable[[Rows], Any], rows: Rows) -> dict[str, float]:
    """Rows a second in batches of several sizes."""
    return {str(batch): batch / best(lambda batch=batch: work(rows[:batch])) for batch in BATCHES}


def best(work: Callable[[], Any], seconds: float = 2.0) -> float:
    """Processor seconds of the best of several calls."""
    work()
    took: list[float] = []
    while len(took) < 3 or (sum(took) < seconds and len(took) < 1000):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def of_graph(contents: bytes, rows: NDArray[Any], wanted: NDArray[Any]) -> dict[str, Any]:
    """A graph's speed, its size, and how far it is from what it should say."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
    answer = session.run(None, {"X": rows[: len(wanted)]})[-1]
    apart = float(np.abs(answer - wanted.reshape(answer.shape)).max())
    return {"kib": len(contents) / 1024, "apart": apart, **speeds(lambda some: session.run(None, {"X": some}), rows)}


def exported_by(commit: str, own: Path, graph: Path) -> None:
    """The graph that another commit writes of a model file."""
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit, "src"], cwd=root, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        environment = {**os.environ, "PYTHONPATH": str(Path(folder) / "src")}
        subprocess.run([sys.executable, "-c", EXPORT, str(own), str(graph)], env=environment, check=True)


def boosted(X: Rows, y: NDArray[Any], regression: bool, trees: int, leaves: int) -> xgboost.Booster:
    """XGBoost with as many trees and leaves."""
    classes = 1 if regression else int(y.max()) + 1
    outputs = 1 if classes <= 2 else classes
    task = {"num_class": classes, "objective": "multi:softprob"} if outputs > 1 else {}
    # neither losses that are nothing nor small leaves end the growth: the trees shall be as large as asked for
    shape = {"grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0, "min_child_weight": 0, "eta": 0.01}
    data = xgboost.DMatrix(X.astype(np.float32), y)
    return xgboost.train({**task, **shape, "base_score": 0.0 if outputs == 1 else 0.5}, data, round(trees / outputs))


def as_graph(booster: xgboost.Booster) -> bytes:
    """Raw scores of XGBoost's trees as one operator, as its converters write it."""
    told = json.loads(booster.save_raw("json"))["learner"]
    held = told["gradient_booster"]["model"]
    nodes: dict[str, list[Any]] = {key: [] for key in ("tree", "node", "feature", "value", "left", "right", "mode")}
    target: dict[str, list[Any]] = {key: [] for key in ("tree", "node", "id", "weight")}
    for i, (tree, output) in enumerate(zip(held["trees"], held["tree_info"], strict=True)):
        for node, left in enumerate(tree["left_children"]):
            leaf, value = left < 0, tree["split_conditions"][node]
            row = (i, node, tree["split_indices"][node], value, max(left, 0), max(tree["right_children"][node], 0))
            for key, entry in zip(nodes, (*row, "LEAF" if leaf else "BRANCH_LT"), strict=True):
                nodes[key].append(entry)
            for key, entry in zip(target, (i, node, output, value), strict=True) if leaf else ():
                target[key].append(entry)
    outputs = max(held["tree_info"]) + 1
    base = np.array(json.loads(told["learner_model_param"]["base_score"]), dtype=np.float32)
    names = {"tree": "treeids", "node": "nodeids", "feature": "featureids", "value": "values"}
    names |= {"left": "truenodeids", "right": "falsenodeids", "mode": "modes", "id": "ids", "weight": "weights"}
    operator = helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["scores"],
        domain="ai.onnx.ml",
        n_targets=outputs,
        base_values=np.resize(base, outputs).tolist(),
        **{f"nodes_{names[key]}": values for key, values in nodes.items()},
        **{f"target_{names[key]}": values for key, values in target.items()},
    )
    width = int(told["learner_model_param"]["num_feature"])
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", size])
        for name, size in (("X", width), ("scores", outputs))
    ]
    graph = helper.make_graph([operator], "xgboost", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def page(held: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {which}" for name, which in held["versions"].items())
    lines = ["# Speed of ONNX graphs", "", __doc__.split("\n\n")[2], ""]
    lines += [f"Machine: {held['machine']}, {CORES} cores, load {held['load']:.1f}. Versions: {versions}."]
    lines += ["Script: `benchmarks/onnx_speed.py`.", ""]
    for cell in held["sets"]:
        shape = f"{cell['trees']:,} trees of {cell['leaves']:.0f} leaves on the average, outputs: {cell['outputs']}"
        lines += [f"## {cell['set']}: {shape}", ""]
        lines += [f"| rows a second, in batches of | {' | '.join(f'{b:,}' for b in BATCHES)} | file KiB | apart |"]
        lines += ["|---|" + "---:|" * (len(BATCHES) + 2)]
        for own in cell["cells"]:
            apart = f"{own['apart']:.1e}" if "apart" in own else ""
            figures = [number(own[str(batch)]) for batch in BATCHES]
            lines.append(f"| {own['who']} | {' | '.join(figures)} | {number(own['kib'])} | {apart} |")
        lines.append("")
    lines += [
        "*File* of `predict` is the model's own; *apart* is the largest difference from the model's own answer in"
    ]
    return "\n".join([*lines, "1,000 rows: numbers, or probabilities; XGBoost's from its own raw scores.", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=["california", "digits"])
    parser.add_argument("--before", help="a commit")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    held: dict[str, Any] = {"machine": processor(), "load": os.getloadavg()[0]}
    held["versions"] = {name: version(name) for name in PACKAGES}
    held["sets"] = [
        whole(call("onnx_speed:measured", threads=1, name=name, before=given.before)) for name in given.sets
    ]
    (RESULTS / "onnx_speed.json").write_text(json.dumps(held, indent=1) + "\n")
    (RESULTS / "onnx_speed.md").write_text(page(held))


if __name__ == "__main__":
    run_script(main)
