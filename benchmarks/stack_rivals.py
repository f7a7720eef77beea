"""What the solver of convex weights is timed against: Caruana's selection in numpy, a conic solver, pairwise steps.

``true`` is always the probability of the true class, ``(members, rows)``: a mixture's log-loss needs no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: Rows and members at a time: a block stays in the second-level cache.
_ROWS, _MEMBERS = 2048, 16


@dataclass(frozen=True)
class Weights:
    """Where a rival ended: weights ``(members,)``, rounds and seconds."""

    weights: Array
    rounds: int
    seconds: float


def log_loss(true: Array, weights: Array) -> float:
    """Mean ``-log`` of the mixture."""
    return float(-np.log(weights @ true).mean())


def _select(members: int, rounds: int, added: Callable[[int], Array], add: Callable[[int], None]) -> Weights:
    """Caruana's loop: ``added(t)`` are the losses with each member added; the best average on the way is kept."""
    counts, best, least, began = np.zeros(members), np.zeros(members), np.inf, time.perf_counter()
    for t in range(1, rounds + 1):
        losses = added(t)
        chosen = int(losses.argmin())
        counts[chosen] += 1
        add(chosen)
        if losses[chosen] < least:
            least, best = losses[chosen], counts / t
    return Weights(best, rounds, time.perf_counter() - began)


def caruana_whole(answers: Array, y: Labels, rounds: int) -> Weights:
    """As it is usually written: all classes' probabilities are averaged, ``answers`` (members, rows, classes)."""
    total, rows = np.zeros(answers.shape[1:]), np.arange(len(y))

    def added(t: int) -> Array:
        return np.array([-np.log(((total + answer) / t)[rows, y]).mean() for answer in answers])

    def add(chosen: int) -> None:
        np.add(total, answers[chosen], out=total)

    return _select(len(answers), rounds, added, add)


def caruana_true(true: Array, rounds: int) -> Weights:
    """The same on the true class alone."""
    total = np.zeros(true.shape[1])

    def added(t: int) -> Array:
        return np.array([-np.log((total + answer) / t).mean() for answer in true])

    def add(chosen: int) -> None:
        np.add(total, true[chosen], out=total)

    return _select(len(true), rounds, added, add)


def caruana_blocked(true: Array, rounds: int, threads: int) -> Weights:
    """The same block by block on threads, in memory that stays in the cache.

    Fewer logarithms, of products of eight probabilities, were no faster: numpy's logarithms are vectorised.
    """
    members, n = true.shape
    total = np.zeros(n)
    parts = np.array_split(np.arange(members), threads)

    def sums(part: NDArray[np.intp]) -> Array:
        out, buffer = np.zeros(len(part)), np.empty((_MEMBERS, _ROWS))
        for first in range(0, n, _ROWS):
            rows = slice(first, min(first + _ROWS, n))
            for low in range(0, len(part), _MEMBERS):
                some = slice(part[low], part[min(low + _MEMBERS, len(part)) - 1] + 1)
                block = buffer[: some.stop - some.start, : rows.stop - first]
                np.add(true[some, rows], total[rows], out=block)
                np.log(block, out=block)
                out[low : low + len(block)] += block.sum(1)
        return out

    def added(t: int) -> Array:
        return np.log(t) - np.concatenate(list(pool.map(sums, parts))) / n

    def add(chosen: int) -> None:
        np.add(total, true[chosen], out=total)

    with ThreadPoolExecutor(threads) as pool:
        return _select(members, rounds, added, add)


def pairwise(true: Array, tol: float, seconds: float) -> Weights:
    """Plain pairwise Frank-Wolfe with an exact line search, to a relative gap or until the time is over."""
    members, n = true.shape
    began = time.perf_counter()
    weights = np.zeros(members)
    weights[int((-np.log(true)).mean(1).argmin())] = 1.0
    pred, t = weights @ true, 0
    while True:
        inner = true @ (-1 / (n * pred))
        loss, gap = -np.log(pred).mean(), float(weights @ inner - inner.min())
        if gap <= tol * loss or time.perf_counter() - began > seconds:
            return Weights(weights, t, time.perf_counter() - began)
        toward, away = int(inner.argmin()), int(np.where(weights > 0, inner, -np.inf).argmax())
        direction = true[toward] - true[away]
        size = _exact(pred, direction, weights[away])
        weights[toward] += size
        weights[away] = 0.0 if size == weights[away] else weights[away] - size
        pred, t = pred + size * direction, t + 1


def _exact(pred: Array, direction: Array, limit: float) -> float:
    """Where ``-sum log(pred + size * direction)`` is least between 0 and the limit, by safeguarded Newton steps."""
    low, high, size = 0.0, limit, limit
    for _ in range(60):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = direction / (pred + size * direction)
            slope, curvature = -np.nansum(ratio), np.nansum(ratio * ratio)
        if slope <= 0 and size == limit:
            return limit
        low, high = (size, high) if slope < 0 else (low, size)
        step = size - slope / curvature if curvature > 0 else (low + high) / 2
        new = step if low < step < high else (low + high) / 2
        if abs(new - size) <= 1e-12 * limit:
            break
        size = new
    return size


def conic(answers: Array, y: Array | None, limit: float) -> dict[str, Any]:
    """The optimum by cvxpy with Clarabel at its default tolerances: the mixture's log-loss, or squares given ``y``."""
    import cvxpy as cp

    members, n = answers.shape
    w = cp.Variable(members, nonneg=True)
    pred = answers.T @ w
    cost = -cp.sum(cp.log(pred)) / n if y is None else cp.sum_squares(pred - y) / n
    return _solved(cp.Problem(cp.Minimize(cost), [cp.sum(w) == 1]), w, limit)


def conic_gram(answers: Array, y: Array, limit: float) -> dict[str, Any]:
    """Squares as a quadratic in the weights, whose matrix BLAS adds up first: as large as the pool, not the rows."""
    import cvxpy as cp

    began = time.perf_counter()
    members, n = answers.shape
    gram, linear = answers @ answers.T / n, answers @ y / n
    w = cp.Variable(members, nonneg=True)
    cost = cp.quad_form(w, cp.psd_wrap(gram)) - 2 * linear @ w
    reduced = time.perf_counter() - began
    solved = _solved(cp.Problem(cp.Minimize(cost), [cp.sum(w) == 1]), w, limit)
    return {**solved, "seconds": solved["seconds"] + reduced, "solver_seconds": solved["solver_seconds"] + reduced}


def _solved(problem: Any, w: Any, limit: float) -> dict[str, Any]:
    import cvxpy as cp

    began = time.perf_counter()
    try:
        problem.solve(solver=cp.CLARABEL, time_limit=limit)
    except cp.error.SolverError as error:
        return {"status": str(error).splitlines()[0]}
    seconds = time.perf_counter() - began
    if w.value is None:
        return {"status": problem.status}
    weights = np.maximum(w.value, 0)
    # what cvxpy adds before and after is counted apart, in the solver's favour
    own = float(problem.solver_stats.solve_time)
    weights = (weights / weights.sum()).tolist()
    return {"status": problem.status, "seconds": seconds, "solver_seconds": own, "weights": weights}
