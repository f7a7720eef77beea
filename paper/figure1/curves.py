"""One algorithm on one panel: its error curves, all seeds at once.

The seeds are members of one fit. They stand on the same rows and differ in the modules' initial weights, so that an
epoch of five fits costs little more than an epoch of one.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gce._utils.random import Streams
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.losses import Squared
from gce.losses.line_search import Exact
from gce.training.callbacks import EarlyStopping
from gce.training.family_fit import FamilyFit, Method
from gce.training.problem import Problem
from gce.training.rounds import FamilyRecord
from paper.figure1.panels import Panel, Sample
from paper.machine import machine
from paper.rounded import rounded

#: In the order of the paper's text.
ALGORITHM_NAMES = ("nonlinear", "frank-wolfe", "away", "pairwise")


def curves(panel: Panel, sample: Sample, algorithm: str, modules: int, seeds: int) -> dict[str, Any]:
    """Training and test MSE of each seed after each round; a round adds one module, whatever the algorithm.

    Returns
    -------
    dict
        ``train`` and ``test``, lists of ``seeds`` lists of ``modules`` numbers; ``used``, modules of positive weight
        at the end (the zero function counts); rows, seconds and machine.
    """
    problem = _problem(panel, sample, seeds)
    method = Method(ALGORITHMS[algorithm], panel.basis, Exact(), Streams(0, tuple(range(seeds))))
    fit = FamilyFit(algorithm, seeds, EarlyStopping(None, 0.0))
    began = time.perf_counter()
    with torch.no_grad():
        fit.run(problem, method, max_iter=modules, max_calls=modules)
    return rounded(
        {
            "train": _by_seed(fit.record, "risk", modules),
            "test": _by_seed(fit.record, "validation", modules),
            "used": [int(used) for used in fit.record.history[-1]["members"]["n_atoms"]],
            "rows": len(sample.y),
            "available": sample.available,
            "test_rows": len(sample.y_test),
            "columns": sample.X.shape[1],
            "mean_squared_deviation": float(np.var(sample.y)),
            "seconds": time.perf_counter() - began,
            "machine": machine(),
        }
    )


def _by_seed(family: FamilyRecord, what: str, modules: int) -> list[list[float]]:
    """A member that is done, because no known module points downhill any more, stands where it stopped."""
    rounds = [entry["members"][what] for entry in family.history]
    rounds += rounds[-1:] * (modules - len(rounds))
    return [list(column) for column in zip(*rounds, strict=True)]


def _problem(panel: Panel, sample: Sample, seeds: int) -> Problem:
    """The paper's hull: around 0 (or the mean), ``B = 4/3 max|y|`` of training rows; test rows weigh nothing."""
    n, n_test = len(sample.y), len(sample.y_test)
    centre = float(sample.y.mean()) if panel.centre == "mean" else 0.0
    train, test = (torch.zeros(seeds, n + n_test, dtype=torch.float64) for _ in range(2))
    train[:, :n], test[:, n:] = 1 / n, 1 / n_test
    return Problem(
        loss=Squared(),
        X=torch.from_numpy(np.concatenate([sample.X, sample.X_test])),
        y=torch.from_numpy(np.concatenate([sample.y, sample.y_test]))[:, None],
        train=train,
        held_out=test,
        offset=_one(centre),
        bound=_one(4 / 3 * np.abs(sample.y - centre).max()),
    )


def _one(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)
