"""What gaps claim, against the optimum of an independent solver: fits over pools, and convex stacks."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import gce
from campaign.outcomes import Outcome
from gce.bases import Pool
from gce.frank_wolfe import AwayStep, Blended, Boosting, FrankWolfe, Pairwise

Array = NDArray[np.float64]

PROMISE = (
    "gaps of fits over pools and of convex stacks are never below the distance from the optimum, in any round, and "
    "`tol` stops no fit earlier than it says"
)
FULL = 200
LOSSES = ("squared_error", "absolute_error", "logistic")
LINE_SEARCHES = ("exact", "brent", "2/(t+1)")
#: The conic solver's accuracy, relative to the risk.
ACCURACY = 1e-7
ROUNDS = 150


class FalseClaimError(Exception):
    """A gap is smaller than the distance that it bounds."""


@dataclass(frozen=True)
class PoolTask:
    """Random outputs of a pool, targets and weights.

    Parameters
    ----------
    outputs : array of shape (P, n)
        Within [-1, 1].
    y : array of shape (n,)
    weight : array of shape (n,)
        Sum to 1.
    loss : str
        One of ``LOSSES``.
    """

    outputs: Array
    y: Array
    weight: Array
    loss: str

    @classmethod
    def draw(cls, rng: np.random.Generator) -> PoolTask:
        """A task of 10 to 60 rows and 2 to 25 models, some of which are alike."""
        rows, size, loss = int(rng.integers(10, 61)), int(rng.integers(2, 26)), str(rng.choice(LOSSES))
        outputs = rng.uniform(-1, 1, (size, rows))
        outputs[size // 2 :] = (outputs[size // 2 :] + rng.choice([0, 3]) * outputs[0]) / 4
        numbers = outputs[0] / 2 + rng.normal(scale=rng.choice([0.01, 0.3, 1]), size=rows)
        # both classes are there
        y = (numbers > np.median(numbers)).astype(float) if loss == "logistic" else numbers.clip(-1, 1)
        weight = rng.uniform(0.1, 1, rows) if rng.random() < 0.5 else np.ones(rows)
        return cls(outputs, y, weight / weight.sum(), loss)

    def least(self, zero: bool) -> float:
        """The least risk of the hull of the models, and of the zero function if it belongs to it."""
        w = cp.Variable(len(self.outputs), nonneg=True)
        f = self.outputs.T @ w
        cost = {
            "squared_error": lambda: cp.square(f - self.y),
            "absolute_error": lambda: cp.abs(f - self.y),
            "logistic": lambda: cp.logistic(f) - cp.multiply(self.y, f),
        }[self.loss]()
        total = cp.sum(w) <= 1 if zero else cp.sum(w) == 1
        return float(cp.Problem(cp.Minimize(self.weight @ cost), [total]).solve(solver=cp.CLARABEL))


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases by their numbers: four fits over a pool, then a stack."""
    for case in cases:
        rng = np.random.default_rng([seed, case])
        task = PoolTask.draw(rng)
        check, kind = (stack, "stack") if case % 5 == 4 else (fit, "fit over a pool")
        try:
            yield Outcome(case, f"{check(task, rng)}, {task.loss}")
        except FalseClaimError as error:
            yield Outcome(case, f"{kind}, {task.loss}", str(error))
        except Exception:
            yield Outcome(case, f"{kind}, {task.loss}", traceback.format_exc(limit=-3))


def fit(task: PoolTask, rng: np.random.Generator) -> str:
    """A fit over a pool by any algorithm with a certificate, all of whose rounds are checked."""
    laziness = float(rng.choice([0.01, 0.1, 0.5, 0.9]))
    algorithm = rng.choice([FrankWolfe(), AwayStep(), Pairwise(), Blended(laziness), Boosting(0.5)])
    tol = float(10 ** rng.uniform(-5, -1))
    given: dict[str, Any] = {
        "basis": Pool(outputs=task.outputs),
        "algorithm": algorithm,
        "line_search": str(rng.choice(LINE_SEARCHES)),
        "offset": 0.0,
        "bound": 1.0,
        "cv": None,
        "validation_fraction": None,
        "n_iter_no_change": None,
        "tol": tol,
        "max_iter": ROUNDS,
        "random_state": 0,
    }
    if task.loss == "logistic":
        model: Any = gce.GCEClassifier(**given)
    else:
        model = gce.GCERegressor(loss=task.loss, **given)
    X = rng.normal(size=(len(task.y), 2))
    model.fit(X, task.y, sample_weight=task.weight * len(task.y))
    check_rounds(model.history_, task.least(zero=True), tol)
    return type(algorithm).__name__


def check_rounds(history: list[dict[str, Any]], least: float, tol: float) -> None:
    """Compare what each round claims with the least risk."""
    before = math.inf
    for entry in history:
        slack = ACCURACY * (abs(least) + 1e-3)
        if entry["risk"] - least > entry["suboptimality"] + slack:
            raise FalseClaimError(
                f"round {entry['t']}: suboptimality {entry['suboptimality']:.6g}, but the risk {entry['risk']:.9g} is "
                f"{entry['risk'] - least:.6g} above the least, {least:.9g}"
            )
        if before < math.inf and before - least > entry["gap"] + slack:
            raise FalseClaimError(
                f"round {entry['t']}: gap {entry['gap']:.6g} at the risk {before:.9g}, {before - least:.6g} above the "
                f"least, {least:.9g}"
            )
        before = entry["risk"]
    last = history[-1]
    # a negligible risk stops as well
    stopped = last["t"] < ROUNDS and last["risk"] > 1e-6 * history[0]["risk"]
    if stopped and last["risk"] - least > tol * abs(last["risk"]) + slack:
        raise FalseClaimError(f"tol={tol:.3g} stopped at the risk {last['risk']:.9g}, and the least is {least:.9g}")


class Answers:
    """A fitted model of any library, which answers what it was made with.

    Parameters
    ----------
    answers : array of shape (n,)
    """

    def __init__(self, answers: Array) -> None:
        self.answers = answers

    def predict(self, X: Array) -> Array:
        """The answers, whatever the rows."""
        return self.answers


def stack(task: PoolTask, rng: np.random.Generator) -> str:
    """The gap of a convex stack's weights."""
    regression = PoolTask(task.outputs, task.y, task.weight, "squared_error")
    members = [(f"m{i}", Answers(own)) for i, own in enumerate(task.outputs)]
    model = gce.ConvexStackingRegressor(members, prefit=True, tol=float(10 ** rng.uniform(-10, -1)))
    X = rng.normal(size=(len(task.y), 1))
    model.fit(X, task.y, sample_weight=task.weight)
    least = regression.least(zero=False)
    if model.risk_ - least > model.gap_ + ACCURACY * (least + 1e-3):
        raise FalseClaimError(f"gap_ {model.gap_:.6g}, but risk_ {model.risk_:.9g} and the least {least:.9g}")
    return "stack"
