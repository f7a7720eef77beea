"""Models of every estimator, family and loss, with the rows that they are used on: what a campaign alters."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import gce
from gce import losses
from gce.bases import Forest, Neural, Neuron, SignTree, SymmetricTree, Tree, Union
from tests.make_model_files import as_given, of_all_kinds, table, targets

GOLDEN = Path(__file__).parents[1] / "tests" / "files"
ROWS = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3))
NUMBER = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=ROWS)
THREE = np.array(["a", "b", "c"])[np.arange(ROWS) % 3]
MANY = np.column_stack([X[:, 0] ** 2, X[:, 1]])

GREEDY: dict[str, Any] = {"max_atoms": 3, "max_iter": 4, "cv": 2, "random_state": 0, "n_jobs": 1}
AT_ONCE: dict[str, Any] = {"hidden": 2, "max_epochs": 2, "random_state": 0}
NET = Neural(hidden=2, max_epochs=2)
TREE = Tree(max_leaf_nodes=4, min_samples_leaf=2)
TREES = {"tree": TREE, "forest": Forest(n_estimators=3)}


class Source(NamedTuple):
    """A model file, and rows and targets that its model is used on."""

    path: Path
    X: Any
    y: Any


Made = tuple[Any, Any, Any]


def _times() -> Any:
    return np.array([(i % 3 > 0, 1.0 + abs(x)) for i, x in enumerate(X[:, 0])], dtype=[("event", "?"), ("time", "<f8")])


def _kinds() -> Made:
    frame = table(120, 2)
    rows = of_all_kinds(frame)
    return gce.GCERegressor(basis=[TREE, NET], **GREEDY), rows, rows["film"].str[4:].astype(float)


def _categories() -> Made:
    frame = table(60, 0)
    return gce.GCEClassifier(basis=[TREE, SymmetricTree(max_depth=2)], **GREEDY), frame, targets(frame)[1]


def _regressor(y: Any = NUMBER, **given: Any) -> Callable[[], Made]:
    return lambda: (gce.GCERegressor(**{**GREEDY, **given}), X, y)


def _classifier(y: Any = THREE, **given: Any) -> Callable[[], Made]:
    return lambda: (gce.GCEClassifier(**{**GREEDY, **given}), X, y)


#: What is fitted, by name; those that keep their rounds end in "rounds".
FITS: dict[str, Callable[[], Made]] = {
    "networks rounds": _regressor(MANY, basis=Neural(hidden=2, max_epochs=2, shared=False)),
    "trees rounds": _regressor(MANY, basis=TREE, max_atoms=12, max_iter=12),
    "families rounds": _classifier(basis=TREES),
    "families": _classifier(basis=TREES),
    "batches": _classifier(basis=Neural(hidden=2, max_epochs=2, batch_size=16)),
    "joint": lambda: (gce.NGCERegressor(n_atoms=2, cv=2, **AT_ONCE), X, MANY),
    "network": lambda: (gce.NNClassifier(**AT_ONCE), X, THREE),
    "symmetric rounds": _regressor(basis=SymmetricTree(max_depth=2)),
    "sign trees": _regressor(basis=SignTree(max_leaf_nodes=3, max_depth=2), algorithm="frank-wolfe"),
    "union rounds": _regressor(basis=Union([TREE, NET], choose="risk")),
    "neuron": _regressor(basis=Neuron(max_epochs=2)),
    "forest": _regressor(basis=Forest(n_estimators=3)),
    "survival": lambda: (gce.GCESurvival(basis=TREE, **GREEDY), X, _times()),
    "labels": _classifier(np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0]).astype(int), basis=TREE),
    "ordinal": _classifier(np.arange(ROWS) % 3, basis=TREE, loss="ordinal"),
    "quantiles": _regressor(basis=TREE, loss=losses.Quantiles([0.2, 0.7])),
    "counts": _regressor(np.arange(ROWS) % 5 * 1.0, basis=TREE, loss="poisson"),
    "power rounds": _regressor(basis=NET, loss=losses.Power(1.5)),
    "monotone": _regressor(basis=NET, monotonic_cst=[1, 0, -1]),
    "interactions": _regressor(basis=TREE, interaction_cst=[[0, 1], [2]]),
    "categories rounds": _categories,
    "kinds": _kinds,
}


def _edited(folder: Path) -> Made:
    own = made("joint", folder)
    return gce.load(own.path).reweight(own.X, own.y), own.X, own.y


def _pruned(folder: Path) -> Made:
    own = made("trees rounds", folder)
    return gce.load(own.path).prune(3, X=own.X, y=own.y), own.X, own.y


EDITS: dict[str, Callable[[Path], Made]] = {"reweighted": _edited, "pruned": _pruned}
NAMES = [*FITS, *EDITS]


@cache
def made(name: str, folder: Path) -> Source:
    """A model that is fitted or edited here, in a file; written once per folder."""
    model, rows, y = EDITS[name](folder) if name in EDITS else FITS[name]()
    path = folder / f"{name.replace(' ', '-')}.safetensors"
    if name not in EDITS:
        model.fit(rows, y)
    if not path.exists():
        model.save(path, resumable=name.endswith("rounds"))
    return Source(path, rows, y)


@cache
def golden() -> list[Path]:
    """Model files of all earlier versions."""
    return sorted(GOLDEN.glob("v*.safetensors"))


@cache
def rows_of(path: Path) -> Any:
    """Rows for the model of a golden file."""
    version, _, name = path.stem.partition("_")
    return as_given(pd.DataFrame(json.loads((GOLDEN / f"{version}.json").read_text())["rows"]), name)
