"""The models that ablations fit, and what is measured of each.

All train on the training rows and are stopped, or chosen, by the loss on the validation rows, so that their losses can
be held beside each other. Columns come scaled and are not scaled again.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss, mean_squared_error

import gce
from paper.ledger import Record
from paper.methods.base import batch_size, error
from paper.methods.greedy import atoms as paper_atoms

if TYPE_CHECKING:
    from gce.datasets import Dataset

#: Most epochs of NGCE and NN, and epochs without a better validation loss after which they stop.
EPOCHS, PATIENCE = 300, 50


def greedy(data: Dataset, settings: Record, seed: int) -> Any:
    """GCE at this library's defaults; its bound may be a multiple of the default."""
    kind = gce.GCERegressor if data.metric == "mae" else gce.GCEClassifier
    bound = settings.get("bound_factor")
    return kind(
        bound=None if bound is None else bound * default_bound(data), n_jobs=1, verbose=False, random_state=seed
    )


def default_bound(data: Dataset) -> float:
    """What the estimators take themselves."""
    if data.metric == "error":
        return 10.0
    return 4 / 3 * float(np.abs(data.y_train - data.y_train.mean()).max())


def as_paper(data: Dataset, settings: Record, seed: int) -> Any:
    """GCE at the paper's settings: f0 = 0, ``B = 4/3 max|y|`` or 10, stopped after 10 atoms without gain."""
    kind = gce.GCERegressor if data.metric == "mae" else gce.GCEClassifier
    return kind(
        basis=paper_atoms(data, settings["hidden"]),
        bound=10.0 if data.metric == "error" else 4 / 3 * float(np.abs(data.y_train).max()),
        offset=0.0,
        scale="each",
        clip=None,
        n_iter_no_change=10,
        tol=0.0,
        n_jobs=1,
        verbose=False,
        random_state=seed,
    )


def together(data: Dataset, settings: Record, seed: int) -> Any:
    """NGCE of 100 modules with 10 units, on the paper's hull."""
    kind = gce.NGCERegressor if data.metric == "mae" else gce.NGCEClassifier
    return kind(n_atoms=100, hidden=10, offset=0.0, **settings, **_trained(data, seed))


def network(data: Dataset, settings: Record, seed: int) -> Any:
    """A network of 1,000 units."""
    kind = gce.NNRegressor if data.metric == "mae" else gce.NNClassifier
    return kind(hidden=1000, **settings, **_trained(data, seed))


def _trained(data: Dataset, seed: int) -> Record:
    return {
        "batch_size": batch_size(data),
        "max_epochs": EPOCHS,
        "n_iter_no_change": PATIENCE,
        "scale": "each",
        "clip": None,
        "n_jobs": 1,
        "random_state": seed,
    }


MODELS: dict[str, Callable[[Any, Record, int], Any]] = {
    "gce": greedy,
    "gce_paper": as_paper,
    "ngce": together,
    "nn": network,
}


def fit(model: str, data: Dataset, settings: Record, seed: int) -> Record:
    """Fit a model and measure it: losses and errors of all three parts, its size, how far its weights moved."""
    estimator = MODELS[model](data, settings, seed)
    began = time.perf_counter()
    with warnings.catch_warnings():
        # a bound that cannot reach the targets is one of the questions
        warnings.filterwarnings("ignore", message=".*the hull cannot reach them.*")
        estimator.fit(data.X_train, data.y_train, X_val=data.X_val, y_val=data.y_val)
    seconds = time.perf_counter() - began
    return {
        **losses(estimator, data),
        "constant_loss": constant_loss(data),
        "iterations": len(estimator.history_),
        **shape(estimator.ensemble_.weights.numpy()),
        "seconds": seconds,
    }


def losses(estimator: Any, data: Dataset) -> Record:
    """MSE or cross-entropy, and MAE or misclassified rows in %, of each part."""
    record = {}
    for part in ("train", "val", "test"):
        X, y = getattr(data, f"X_{part}"), getattr(data, f"y_{part}")
        answer = estimator.predict(X)
        record[f"{part}_error"] = error(data.metric, answer, y)
        if data.metric == "mae":
            record[f"{part}_loss"] = float(mean_squared_error(y, answer))
        else:
            record[f"{part}_loss"] = float(log_loss(y, estimator.predict_proba(X), labels=estimator.classes_))
    return record


def constant_loss(data: Dataset) -> float:
    """Test loss of the best constant of the training rows."""
    if data.metric == "mae":
        return float(np.square(data.y_test - data.y_train.mean()).mean())
    share = np.bincount(data.y_train, minlength=data.classes) / len(data.y_train)
    return float(-np.log(np.maximum(share[data.y_test], 1e-12)).mean())


def shape(weights: NDArray[np.float64]) -> Record:
    """Atoms in use; the distance of their weights from equal ones (0: equal, 1: one atom has all); the like of 1/k."""
    n = len(weights)
    apart = float(np.abs(weights - 1 / n).sum() / 2)
    return {"atoms": n, "from_uniform": apart, "effective_atoms": float(1 / np.square(weights).sum())}
