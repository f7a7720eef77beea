"""The weight of the training rows in the leaves of an ensemble's trees, which Shapley values need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms
from gce.bases.trees.atoms import TreeAtomsBase
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import Inputs, SparseRows
from gce.training.problem import Problem

Array = NDArray[np.float64]

#: Leaves of rows that are looked up at a time: as many as a cache holds.
_LEAVES_AT_ONCE = 1 << 19


def row_weights(problem: Problem, total: Array) -> Array:
    """The weights ``(n,)`` of the rows that any member trains on: 1 each, where no weights were given.

    All trees are counted on the same rows, whichever member they belong to, so that the base of a model's values is the
    mean of its scores over them. Weights of members sum to 1: what they were is known of rows that a member holds out,
    and of others by their ratio to these.

    Parameters
    ----------
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.
    """
    n = problem.train_rows
    train, held_out = (own[:, :n].double().cpu().numpy() for own in (problem.train, problem.held_out))
    known = (held_out * total[:, None]).max(0)
    found = known > 0
    if not found.any():
        count = (train != 0).sum(1) if problem.count is None else problem.count.cpu().numpy()
        return _within_float32((train * count[:, None]).max(0))
    shared = (train * found).sum(1)
    scale = np.where(shared > 0, (known * (train > 0)).sum(1) / np.where(shared > 0, shared, 1), 0)
    return _within_float32(np.where(found, known, (train * scale[:, None]).max(0)))


def _within_float32(weights: Array) -> Array:
    """The same weights up to a factor, where single precision would not hold their sum or its share of a row."""
    largest = weights.max()
    return weights if 1e-20 < largest < 1e20 else weights / largest


def count_rows(ensemble: ConvexEnsemble, problem: Problem, total: Array) -> ConvexEnsemble:
    """The same ensemble, of trees that know the weight of the training rows in their leaves.

    Parameters
    ----------
    ensemble : ConvexEnsemble
    problem : Problem
        Of rows in files a sample of them.
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    ConvexEnsemble
    """
    weights, X = row_weights(problem, total), problem.X[: problem.train_rows]
    parts = [part for part in ensemble.parts if isinstance(part, Atoms)]
    if not any(isinstance(part, TreeAtomsBase) for part in parts):
        return ensemble
    counted = [part.with_cover(_cover(part, X, weights)) if isinstance(part, TreeAtomsBase) else part for part in parts]
    return ConvexEnsemble(counted, ensemble.weights, ensemble.origin, ensemble.offset, ensemble.bound)


def covers_of(ensemble: ConvexEnsemble) -> dict[str, Tensor]:
    """The weights in all nodes of each part that knows them, ``(nodes,)``, by the part's index."""
    parts = [(str(i), part.trees.cover) for i, part in enumerate(ensemble.parts) if isinstance(part, TreeAtomsBase)]
    return {name: cover for name, cover in parts if cover is not None}


def with_covers(ensemble: ConvexEnsemble, covers: dict[str, Tensor]) -> ConvexEnsemble:
    """The same ensemble with the weights that :func:`covers_of` had."""
    parts = []
    for i, part in enumerate(ensemble.parts):
        assert isinstance(part, Atoms)
        own = covers.get(str(i))
        parts.append(part.with_cover(own) if isinstance(part, TreeAtomsBase) and own is not None else part)
    return ConvexEnsemble(parts, ensemble.weights, ensemble.origin, ensemble.offset, ensemble.bound)


def _cover(part: TreeAtomsBase, X: Rows, weights: Array) -> Tensor:
    """The weight of rows in each leaf, ``(nodes,)``."""
    trees, total = part.trees, np.zeros(len(part.trees.left))
    # a tree whose leaves are their own numbers says where rows are
    number = torch.arange(len(trees.left), device=trees.left.device)
    places = replace(trees, value=number[:, None].double(), cover=None)
    each, into = torch.ones(len(trees), 1, dtype=torch.float64), torch.arange(len(trees))
    for some, block in _blocks(part.seen(X), weights, max(64, _LEAVES_AT_ONCE // len(trees))):
        found = places.summed(block, each.to(block.device), into, len(trees)).cpu().numpy()
        total += np.bincount(found.ravel().astype(np.intp), np.tile(some, len(trees)), len(total))
    return torch.from_numpy(total).float().to(trees.left.device)


def _blocks(seen: Inputs, weights: Array, size: int) -> Iterator[tuple[Array, Tensor]]:
    for first in range(0, len(weights), size):
        block = seen[first : first + size]
        dense = torch.from_numpy(block.toarray()) if isinstance(block, SparseRows) else block
        yield weights[first : first + size], dense
