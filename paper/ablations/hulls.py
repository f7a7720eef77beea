"""Convex hull against linear hull, on the same atoms."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from gce.bases.base import Zero
from gce.preprocessing import one_hot
from paper.ablations.base import Ablation, Found, Scope, dig, key_of, listed
from paper.ablations.models import greedy
from paper.ablations.refit import Given, free, on_simplex
from paper.ledger import Record
from paper.methods.base import error
from paper.rounded import markdown, spread

if TYPE_CHECKING:
    from gce.datasets import Dataset

Array = NDArray[np.float64]
WEIGHTS = ("greedy", "simplex", "free")
#: A fit that validation rows stop, and one of all its rounds.
STOPPED, WHOLE = {"stopped": True}, {"stopped": False}


def compare(data: Dataset, settings: Record, seed: int) -> Record:
    """Take a fitted ensemble's atoms and give them weights in three ways: losses, test error and sizes of each."""
    began = time.perf_counter()
    estimator = greedy(data, {}, seed)
    if settings["stopped"]:
        estimator.fit(data.X_train, data.y_train, X_val=data.X_val, y_val=data.y_val)
    else:
        estimator.set_params(cv=None, validation_fraction=None, n_iter_no_change=None, tol=0.0)
        estimator.fit(data.X_train, data.y_train)
    return {**refitted(estimator, data), "seconds": time.perf_counter() - began}


def refitted(estimator: Any, data: Dataset) -> Record:
    """Losses and test errors of a fitted ensemble's atoms under each kind of weights."""
    ensemble = estimator.ensemble_
    kept = np.concatenate([np.full(len(part), not isinstance(part, Zero)) for part in ensemble.parts])
    train, test = (_outputs(estimator, X)[kept] for X in (data.X_train, data.X_test))
    y, y_test = (_targets(data, part) for part in (data.y_train, data.y_test))
    given = Given(train, y, estimator.loss_, estimator.offset_, estimator.bound_)
    simplex, gap = on_simplex(given)
    weights = {"greedy": ensemble.weights.numpy()[kept], "simplex": simplex, "free": free(given, simplex)}
    unseen = Given(test, y_test, given.loss, given.offset, given.bound)
    answers = {
        name: {
            "train_loss": given.risk(own),
            "test_loss": unseen.risk(own),
            "test_error": error(data.metric, _predicted(estimator, unseen, own), data.y_test),
            "norm": float(np.abs(own).sum()),
        }
        for name, own in weights.items()
    }
    return {**answers, "atoms": int(kept.sum()), "rows": len(y), "gap": gap}


def _outputs(estimator: Any, X: Array) -> Array:
    with torch.no_grad():
        return estimator.ensemble_.outputs(torch.from_numpy(estimator.table_.transform(X.astype(np.float64)))).numpy()


def _targets(data: Dataset, y: Array) -> Array:
    return y[:, None].astype(np.float64) if data.metric == "mae" else one_hot(y, data.classes)


def _predicted(estimator: Any, given: Given, weights: Array) -> Array:
    scores = given.offset + np.tensordot(weights, given.outputs, 1)
    if not hasattr(estimator, "classes_"):
        return scores[:, 0]
    return estimator.classes_[(scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(1)]


class Hulls(Ablation):
    """Weights of the simplex, and any weights."""

    name, title = "hulls", "Convex hull against linear hull on the same atoms"
    claim = "learning from the convex hull does not overfit as the linear hull does."

    def fits(self, scope: Scope) -> list[Record]:
        return [key_of(place, "hulls", kind) for kind in (STOPPED, WHOLE) for place in scope.places()]

    def section(self, found: Found, scope: Scope) -> str:
        parts = [_INTRODUCTION]
        for kind, words in ((STOPPED, "Atoms of a fit that validation rows stopped"), (WHOLE, "Atoms of 100 rounds")):
            sets = [name for name in (*scope.many, *scope.larger) if found.by_split(scope, name, "hulls", kind)]
            if sets:
                rows = [_row(found, scope, name, kind) for name in sets]
                parts += [f"{words}:", markdown(_HEAD, rows), _sentence(found, scope, sets, kind)]
        return "\n\n".join(parts)


_INTRODUCTION = """\
GCE at its defaults is fitted on the training rows. Its atoms are kept and weighted anew on the same rows: on the
simplex (over the atoms and the zero function; SLSQP) and freely (least squares of minimum norm; L-BFGS for classes).
Losses are MSE or cross-entropy, mean ± sd over splits."""

_HEAD = [
    "set", "splits", "atoms", "train: greedy", "train: simplex", "train: free",
    "test: greedy", "test: simplex", "test: free", "test error: greedy", "test error: free",
    "sum of free weights' sizes",
]  # fmt: skip


def _row(found: Found, scope: Scope, name: str, kind: Record) -> list[str]:
    results = list(found.by_split(scope, name, "hulls", kind).values())
    paths = [f"{own}.{part}_loss" for part in ("train", "test") for own in WEIGHTS]
    paths += ["greedy.test_error", "free.test_error", "free.norm"]
    cells = [spread(dig(result, path) for result in results) for path in paths]
    return [name, str(len(results)), f"{np.mean([result['atoms'] for result in results]):.0f}", *cells]


def _sentence(found: Found, scope: Scope, sets: list[str], kind: Record) -> str:
    """On which sets the free weights fit better and test worse, by the means."""

    def mean(name: str, path: str) -> float:
        return float(np.mean(found.values(scope, name, "hulls", kind, path)))

    worse = [name for name in sets if mean(name, "free.test_loss") > mean(name, "greedy.test_loss")]
    wider = [
        name
        for name in sets
        if mean(name, "free.test_loss") - mean(name, "free.train_loss")
        > mean(name, "greedy.test_loss") - mean(name, "greedy.train_loss")
    ]
    better = [name for name in sets if name not in worse]
    return (
        f"Free weights have a larger gap between test and training loss than the greedy ones on {len(wider)} of "
        f"{len(sets)} sets ({listed(wider)}), and a larger test loss on {len(worse)} ({listed(worse)}); a smaller "
        f"one on {listed(better)}."
    )
