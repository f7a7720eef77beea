"""Fits with a checkpoint, of every family, loss and algorithm: what is killed, and what must be equal in the end."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gce
from gce.bases import Forest, Neural, Neuron, SignTree, SymmetricTree, Tree, Union
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.losses import Quantiles

ROWS = 150
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 4))
#: A score that the targets of all losses are made of.
SCORE = X[:, 0] * X[:, 1] + np.sin(X[:, 2])
NOISE = RNG.normal(size=ROWS)
NUMBERS = SCORE + 0.1 * NOISE
LEVELS = np.digitize(SCORE, np.quantile(SCORE, [0.3, 0.7]))
TIMES = np.exp(-SCORE / 2) * RNG.weibull(1.5, ROWS)
EVENTS = np.array(list(zip(RNG.random(ROWS) < 0.7, TIMES, strict=True)), dtype=[("event", bool), ("time", float)])

BASES: dict[str, Any] = {
    "trees": Tree(max_leaf_nodes=6, min_samples_leaf=5),
    "symmetric trees": SymmetricTree(max_depth=3),
    "networks": Neural(hidden=6, max_epochs=10, inherit=0.5),
    "forest": Forest(n_estimators=5),
    "neurons": Neuron(max_epochs=10),
    "sign trees": SignTree(max_leaf_nodes=6),
    "union of trees and networks": Union([Tree(max_leaf_nodes=4), Neural(hidden=3, max_epochs=5)]),
    "one network per output": Neural(hidden=4, max_epochs=8, shared=False),
}
BASES["trees, forest and networks"] = [BASES["trees"], BASES["forest"], BASES["networks"]]
BASES["both kinds of trees"] = [BASES["trees"], BASES["symmetric trees"]]

#: The estimator, the parameter ``loss`` and the targets of each loss.
LOSSES: dict[str, tuple[type[Any], Any, Any]] = {
    "squared error": (gce.GCERegressor, "squared_error", np.column_stack([NUMBERS, SCORE**2])),
    "absolute error": (gce.GCERegressor, "absolute_error", NUMBERS),
    "Huber": (gce.GCERegressor, "huber", NUMBERS),
    "pseudo-Huber": (gce.GCERegressor, "pseudo_huber", NUMBERS),
    "quantile": (gce.GCERegressor, "quantile", NUMBERS),
    "several quantiles": (gce.GCERegressor, Quantiles((0.1, 0.5, 0.9)), NUMBERS),
    "Poisson": (gce.GCERegressor, "poisson", RNG.poisson(np.exp(SCORE / 2)).astype(float)),
    "gamma": (gce.GCERegressor, "gamma", np.exp(NUMBERS / 2)),
    "Tweedie": (gce.GCERegressor, "tweedie", np.maximum(NUMBERS, 0.0)),
    "logistic": (gce.GCEClassifier, "auto", (NUMBERS > 0).astype(int)),
    "cross-entropy": (gce.GCEClassifier, "auto", LEVELS),
    "ordinal": (gce.GCEClassifier, "ordinal", LEVELS),
    "several labels": (gce.GCEClassifier, "auto", np.column_stack([X[:, 0] > 0, SCORE > 0.5, NOISE > 0]).astype(int)),
    "Cox": (gce.GCESurvival, "cox", EVENTS),
    "hazards": (gce.GCESurvival, "hazards", EVENTS),
}

#: Family, loss, algorithm: every loss with trees and with networks, every family, every algorithm.
FITS: list[tuple[str, str, str]] = [
    *((family, loss, "auto") for loss in LOSSES for family in ("trees", "networks")),
    *((family, "squared error", "auto") for family in BASES if family not in ("trees", "networks")),
    *(("networks", "cross-entropy", algorithm) for algorithm in ALGORITHMS if algorithm != "boosting"),
    ("trees", "squared error", "boosting"),
    ("symmetric trees", "logistic", "auto"),
    ("forest", "cross-entropy", "auto"),
    ("trees, forest and networks", "logistic", "auto"),
    ("both kinds of trees", "gamma", "auto"),
]


def fitted(fit: tuple[str, str, str], checkpoint: Path | None, called: Callable[[Any], None]) -> Any:
    """A fitted model; ``called`` is called after every round."""
    family, loss, algorithm = fit
    kind, parameter, y = LOSSES[loss]
    model = kind(
        basis=BASES[family],
        loss=parameter,
        algorithm=algorithm,
        cv=3,
        max_atoms=20,
        n_iter_no_change=8,
        callbacks=[called],
        random_state=0,
        n_jobs=1,
    )
    return model.fit(X, y, checkpoint=checkpoint)


def course(model: Any, rows: Any = X) -> str:
    """A hash of all that a fit leaves, but for the clock: history, atoms, weights and predictions."""
    sha = hashlib.sha256()
    for entry in model.history_:
        sha.update(repr({name: value for name, value in entry.items() if name != "seconds"}).encode())
    for name, tensor in model.ensemble_.state_dict().items():
        sha.update(name.encode() + tensor.numpy().tobytes())
    sha.update(model.raw_predict(rows).numpy().tobytes() + np.asarray(model.predict(rows)).tobytes())
    for stage in model.staged_predict(rows):
        sha.update(np.asarray(stage).tobytes())
    return sha.hexdigest()
