"""From a large ensemble to a small one, step by step, and the step that is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gce.explaining import PathStep
from gce.settings import check_count, check_number
from gce.surgery.share import Share
from gce.weighting import Solution, shrinking

Stand = tuple[Solution, ...]


def check_goal(k: int | None, tol: float | None) -> None:
    """Exactly one of a size and a loss says where to stop."""
    if (k is None) == (tol is None):
        raise ValueError(f"give either k, a size, or tol, a relative rise of the loss, got k={k!r} and tol={tol!r}")
    if k is not None:
        check_count("k", k, 1)
    else:
        check_number("tol", tol, 0)


def merged(shares: Sequence[Share]) -> list[Stand]:
    """Solutions of all shares, from the best weights over everything down to one atom in all.

    Each share shrinks along a path of its own; next comes the step that raises the mean loss least. Atoms that help by
    less than the gap may go together: then the last solution has none.
    """
    paths = [shrinking(share.risk, share.outputs, share.solved(), share.tol, share.free) for share in shares]
    at = [0] * len(paths)
    stands = [tuple(path[0] for path in paths)]
    while going := [m for m, path in enumerate(paths) if at[m] + 1 < len(path)]:
        at[min(going, key=lambda m: paths[m][at[m] + 1].loss - paths[m][at[m]].loss)] += 1
        stand = tuple(path[i] for path, i in zip(paths, at, strict=True))
        if size_of(shares, stand) == 0 and size_of(shares, stands[-1]) == 1:
            break
        stands.append(stand)
    return stands


def size_of(shares: Sequence[Share], stand: Stand) -> int:
    """How many are in use, zero functions not counted."""
    return sum(share.size(solution) for share, solution in zip(shares, stand, strict=True))


def loss_of(stand: Stand) -> float:
    """The mean loss of all shares."""
    return float(np.mean([solution.loss for solution in stand]))


def chosen(shares: Sequence[Share], stands: Sequence[Stand], k: int | None, tol: float | None) -> Stand:
    """The largest of at most ``k``, or the smallest whose loss is at most ``1 + tol`` times the least."""
    if k is not None:
        return next(stand for stand in stands if size_of(shares, stand) <= k)
    assert tol is not None
    most = loss_of(stands[0]) + tol * abs(loss_of(stands[0]))
    return [stand for stand in stands if loss_of(stand) <= most][-1]


def step_of(shares: Sequence[Share], stand: Stand) -> PathStep:
    """A step as it is shown: weights are those in the whole ensemble, zero functions are left out."""
    names, weights = [], []
    for share, solution in zip(shares, stand, strict=True):
        for j in np.setdiff1d(solution.used, share.free):
            names.append(share.names[j])
            weights.append(solution.weights[j] / len(shares))
    gap = float(np.mean([solution.gap for solution in stand]))
    return PathStep(len(names), loss_of(stand), gap, tuple(names), np.array(weights))
