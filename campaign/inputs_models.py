"""Small models of every public estimator, and the parameters of all that can be given to them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from gce import bases, frank_wolfe, losses

#: A case that is valid and slow ends by the library's own limit.
SECONDS = 3.0


def small_basis(rng: Random) -> Any:
    """A basis of few and small atoms, or several."""
    makers: list[Callable[[], Any]] = [
        lambda: bases.Tree(max_leaf_nodes=4, min_samples_leaf=2), lambda: bases.Tree(max_leaf_nodes=3,
        min_samples_leaf=1),
        lambda: bases.SymmetricTree(max_depth=2), lambda: bases.Forest(n_estimators=3), lambda: bases.Neural(hidden=2,
        max_epochs=2),
        lambda: bases.Neuron(max_epochs=2), lambda: bases.RegressorBasis(DecisionTreeRegressor(max_depth=2)),
        lambda: [bases.Tree(max_leaf_nodes=3, min_samples_leaf=2), bases.Neural(hidden=2, max_epochs=2)],
        lambda: bases.Union([bases.Tree(max_leaf_nodes=3), bases.Neural(hidden=2, max_epochs=2)]),
    ]  # fmt: skip
    return rng.choice(makers)()


def greedy(rng: Random) -> dict[str, Any]:
    """Valid parameters of a greedy fit that takes little time."""
    given = {
        "basis": small_basis(rng) if rng.random() < 0.95 else "auto",
        "max_iter": rng.choice([1, 2, 3]),
        "cv": rng.choice(["auto", 2, None]),
        "time_limit": SECONDS,
        "verbose": False,
        "random_state": 0,
    }
    if rng.random() < 0.2:
        given["clip"] = None
    return given


def joint(rng: Random) -> dict[str, Any]:
    """Valid parameters of a joint fit that takes little time."""
    return {"n_atoms": 3, "hidden": 2, "max_epochs": 2, "time_limit": SECONDS, "random_state": 0}


def network(rng: Random) -> dict[str, Any]:
    """Valid parameters of a network that takes little time."""
    return {"hidden": 4, "max_epochs": 2, "time_limit": SECONDS, "random_state": 0}


def regressors(rng: Random) -> dict[str, Any]:
    """Valid parameters of a stack of regressors."""
    members = [("mean", DummyRegressor()), ("tree", DecisionTreeRegressor(max_depth=2)), ("line", Ridge())]
    return {"estimators": members[: rng.choice([2, 2, 3])], "cv": 2, "random_state": 0}


def classifiers(rng: Random) -> dict[str, Any]:
    """Valid parameters of a stack of classifiers."""
    members = [
        ("mean", DummyClassifier()),
        ("tree", DecisionTreeClassifier(max_depth=2)),
        ("line", LogisticRegression()),
    ]
    return {"estimators": members[: rng.choice([2, 2, 3])], "cv": 2, "random_state": 0}


#: Each public estimator: its class, its tasks, valid parameters.
ESTIMATORS: dict[str, tuple[type, tuple[str, ...], Callable[[Random], dict[str, Any]]]] = {
    "GCERegressor": (gce.GCERegressor, ("numbers", "counts", "several"), greedy),
    "GCEClassifier": (gce.GCEClassifier, ("classes", "labels"), greedy),
    "GCESurvival": (gce.GCESurvival, ("survival",), greedy),
    "NGCERegressor": (gce.NGCERegressor, ("numbers", "several"), joint),
    "NGCEClassifier": (gce.NGCEClassifier, ("classes",), joint),
    "NNRegressor": (gce.NNRegressor, ("numbers", "several"), network),
    "NNClassifier": (gce.NNClassifier, ("classes",), network),
    "ConvexStackingRegressor": (gce.ConvexStackingRegressor, ("numbers",), regressors),
    "ConvexStackingClassifier": (gce.ConvexStackingClassifier, ("classes",), classifiers),
    "GreedySelectionRegressor": (gce.GreedySelectionRegressor, ("numbers",), regressors),
    "GreedySelectionClassifier": (gce.GreedySelectionClassifier, ("classes",), classifiers),
}
STACKS = ("ConvexStacking", "GreedySelection")


def estimator_name(rng: Random) -> str:
    """The name of an estimator: greedy fits, which have most paths, are half of them."""
    if rng.random() < 0.55:
        return rng.choice(["GCERegressor", "GCEClassifier", "GCERegressor", "GCEClassifier", "GCESurvival"])
    return rng.choice(sorted(ESTIMATORS))


#: Objects that are parameters of a greedy fit: the parameter, the class, valid parameters, and the task.
OBJECTS: dict[str, tuple[str, type, dict[str, Any], str]] = {
    "Tree": ("basis", bases.Tree, {"max_leaf_nodes": 4, "min_samples_leaf": 2}, "numbers"),
    "SymmetricTree": ("basis", bases.SymmetricTree, {"max_depth": 2}, "numbers"),
    "SignTree": ("basis", bases.SignTree, {"max_leaf_nodes": 4, "min_samples_leaf": 2}, "classes"),
    "Forest": ("basis", bases.Forest, {"n_estimators": 3}, "numbers"),
    "Neural": ("basis", bases.Neural, {"hidden": 2, "max_epochs": 2}, "numbers"),
    "Neuron": ("basis", bases.Neuron, {"max_epochs": 2}, "numbers"),
    "Union": ("basis", bases.Union, {"bases": [bases.Tree(max_leaf_nodes=3), bases.Neuron(max_epochs=2)]}, "numbers"),
    "RegressorBasis": ("basis", bases.RegressorBasis, {"estimator": DecisionTreeRegressor(max_depth=1)}, "numbers"),
    "Pool": ("basis", bases.Pool, {}, "numbers"),
    "Blended": ("algorithm", frank_wolfe.Blended, {}, "numbers"),
    "Boosting": ("algorithm", frank_wolfe.Boosting, {}, "numbers"),
    "Brent": ("line_search", frank_wolfe.Brent, {}, "numbers"),
    "OpenLoop": ("line_search", frank_wolfe.OpenLoop, {}, "numbers"),
    "Huber": ("loss", losses.Huber, {}, "numbers"),
    "PseudoHuber": ("loss", losses.PseudoHuber, {}, "numbers"),
    "Power": ("loss", losses.Power, {}, "numbers"),
    "Quantile": ("loss", losses.Quantile, {}, "numbers"),
    "Quantiles": ("loss", losses.Quantiles, {}, "numbers"),
    "Tweedie": ("loss", losses.Tweedie, {}, "counts"),
    "Hazards": ("loss", losses.Hazards, {}, "survival"),
}
TASK_MODEL = {
    "numbers": "GCERegressor",
    "counts": "GCERegressor",
    "classes": "GCEClassifier",
    "survival": "GCESurvival",
}
#: Parameters of which a large valid value is a request for a long time or much memory, and how large is enough.
COSTLY = {
    "n_estimators": 5, "max_iter": 5, "max_epochs": 5, "hidden": 20, "n_atoms": 20, "restarts": 3, "n_bags": 3,
    "patience": 10, "last_epochs": 10, "n_permutations": 4, "max_atoms": 10, "grid_resolution": 10,
}  # fmt: skip


def affordable(name: str, value: Any) -> bool:
    """Whether a value of a parameter is no lawful request for hours."""
    most = COSTLY.get(name.rsplit("__", 1)[-1])
    # absurd sizes must be refused
    return most is None or isinstance(value, bool) or not isinstance(value, int) or value <= most or value >= 2**31
