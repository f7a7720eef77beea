"""The paper's two peers among networks: all modules trained together (NGCE), and one wide two-layer network (NN)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import gce
from paper.budgets import Budget
from paper.ledger import Record
from paper.methods.base import Method, batch_size, estimated, most_epochs, small
from paper.searches import Grid, Search, Settings

if TYPE_CHECKING:
    from gce.datasets import Dataset

RATES = [0.01, 0.001]
EPOCHS_SMALL = 500
DECAYS = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def grid(budget: Budget) -> Grid:
    """The paper's 14 combinations of learning rate and weight decay."""
    settings = [{"learning_rate": rate, "weight_decay": decay} for rate, decay in product(RATES, DECAYS)]
    return Grid(settings, budget.grid(len(settings)))


def common(data: Dataset, settings: Settings, seed: int, device: str) -> Settings:
    """What both networks are told.

    Settings are chosen by validation error, the epoch by validation loss: an error on 24 rows takes few values, and the
    first epoch to reach the least is seldom the best. Training ends 50 epochs after the best, or with its schedule.
    """
    return {
        **settings,
        "batch_size": batch_size(data),
        "max_epochs": most_epochs(data, EPOCHS_SMALL),
        "n_iter_no_change": 50,
        "scale": "each",
        "clip": None,
        "device": device,
        "n_jobs": 1,
        "random_state": seed,
    }


class Network(Method):
    """A two-layer network of 1,000 hidden units (small sets) or 10,000."""

    name, title = "nn", "NN"

    def search(self, data: Dataset, budget: Budget) -> Search:
        return grid(budget)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        kind = gce.NNRegressor if data.metric == "mae" else gce.NNClassifier
        told = common(data, settings, seed, device)
        record = estimated(data, kind(hidden=1_000 if small(data) else 10_000, **told))
        return {**record, "max_epochs": told["max_epochs"]}


class SharedEarlyStopping(Method):
    """100 modules of 10 hidden units (small sets) or 100, trained together with their weights.

    The hull is that of the paper's greedy ensemble: offset 0, bound 10 for classes and 4/3 of the largest target.
    """

    name, title = "ngce", "NGCE"

    def search(self, data: Dataset, budget: Budget) -> Search:
        return grid(budget)

    def fit(self, data: Dataset, settings: Settings, *, seed: int, device: str) -> Record:
        kind = gce.NGCERegressor if data.metric == "mae" else gce.NGCEClassifier
        told = common(data, settings, seed, device)
        record = estimated(data, kind(n_atoms=100, hidden=10 if small(data) else 100, offset=0.0, **told))
        return {**record, "max_epochs": told["max_epochs"]}
