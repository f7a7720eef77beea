"""The greedy convex ensemble, at the paper's settings and at this library's defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import gce
from paper.budgets import Budget
from paper.ledger import Record
from paper.methods.base import SCORING, Method, batch_size, estimated, measured, most_epochs, small
from paper.searches import Grid, Search, Settings

if TYPE_CHECKING:
    from gce.datasets import Dataset

#: Most epochs of an atom on a small set. Training ends when its plateau schedule does, nearly always long before.
EPOCHS_SMALL = 20_000


class PaperGreedy(Method):
    """The settings that the paper's code tried, and chose from by validation error.

    Two for classes (1 or 10 hidden units, bound 10), six for regression (bounds of 4/3, 2 and 3 times the largest
    target besides); with 10,000 training rows or more 100 hidden units only.
    """

    name, title = "gce_paper", "GCE, paper's settings"

    def search(self, data: Dataset, budget: Budget) -> Search:
        hidden = [1, 10] if small(data) else [100]
        bounds = [4 / 3, 2.0, 3.0] if data.metric == "mae" else [None]
        settings: list[Settings] = [{"hidden": h, "bound_factor": factor} for h in hidden for factor in bounds]
        return Grid(settings, budget.grid(len(settings)))

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        factor, basis = settings["bound_factor"], atoms(data, settings["hidden"])
        kind = gce.GCERegressor if data.metric == "mae" else gce.GCEClassifier
        model = kind(
            algorithm="pairwise",
            basis=basis,
            bound=10.0 if factor is None else factor * float(np.abs(data.y_train).max()),
            offset=0.0,
            line_search="brent",
            scale="each",
            clip=None,
            max_atoms=100,
            n_iter_no_change=10,
            tol=0.0,
            scoring=SCORING[data.metric],
            device=device,
            n_jobs=1,
            verbose=False,
            random_state=seed,
        )
        record = estimated(data, model)
        return {**record, "atoms": len(model.ensemble_.weights), "max_epochs": basis.max_epochs}


class HoldOutGreedy(Method):
    """The estimator as it comes, but trained on the training rows alone and stopped by the validation rows.

    That is what the other methods have of the rows; the estimator's own way is to train on all but a fifth five times.
    """

    name, title = "gce_holdout", "GCE, defaults, hold-out"

    def search(self, data: Dataset, budget: Budget) -> Search:
        return Grid([{}], 1)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        kind = gce.GCERegressor if data.metric == "mae" else gce.GCEClassifier
        model = kind(device=device, n_jobs=1, verbose=False, random_state=seed)
        return {**estimated(data, model), "atoms": len(model.ensemble_.weights)}


class DefaultGreedy(Method):
    """The estimator as it comes: nothing is searched.

    It is given training and validation rows together and holds out what it needs itself; the validation rows are
    therefore no measure of it, and it has no validation error.
    """

    name, title = "gce", "GCE, defaults"

    def search(self, data: Dataset, budget: Budget) -> Search:
        return Grid([{}], 1)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        kind = gce.GCERegressor if data.metric == "mae" else gce.GCEClassifier
        model = kind(device=device, n_jobs=1, verbose=False, random_state=seed)
        X, y = np.concatenate([data.X_train, data.X_val]), np.concatenate([data.y_train, data.y_val])
        _, record = measured(data, lambda: model.fit(X, y), lambda model, X: model.predict(X))
        atoms = len(model.ensemble_.weights)
        return {**record, "validation": None, "iterations": model.n_iter_, "atoms": atoms}


def atoms(data: Dataset, hidden: int) -> gce.bases.Neural:
    """The paper's basis: every atom drawn anew and trained by mini-batches until its plateau schedule ends."""
    return gce.bases.Neural(
        hidden=hidden,
        learning_rate=1e-3,
        min_learning_rate=1e-5,
        patience=10,
        last_epochs=10,
        max_epochs=most_epochs(data, EPOCHS_SMALL),
        batch_size=batch_size(data),
        gain=1.0,
        inherit=0.0,
    )
