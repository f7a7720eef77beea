"""What each of the user's columns lowered the risk by, as shares of 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms, Zero
from gce.bases.neural.network import Networks
from gce.bases.registry import first_unstorable
from gce.bases.trees.atoms import TreeAtomsBase
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.preprocessing import Table
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import SparseRows
from gce.training.covers import count_rows, row_weights
from gce.training.problem import Problem
from gce.training.result import FitResult

Array = NDArray[np.float64]

#: Training rows on which atoms of each kind are compared with the whole, and on which networks are differentiated.
_ROWS, _NETWORK_ROWS = 4096, 256


def explained(result: FitResult, problem: Problem, total: Array) -> FitResult:
    """The result of a fit, with what explanations need of the training rows: a model keeps none.

    Parameters
    ----------
    result : FitResult
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    FitResult
        Its trees know the weight of the training rows in their leaves, and its columns their importances.
    """
    counted = count_rows(result.ensemble, problem, total)
    found = column_importances(counted, result.table, problem, total)
    return replace(result, ensemble=counted, importances=found)


def column_importances(ensemble: ConvexEnsemble, table: Table, problem: Problem, total: Array) -> Array | None:
    """The importance ``(d,)`` of each of the user's columns; None of a model that has other atoms than gce's own.

    Atoms of one kind (boosted trees of a shape, forests, networks) share their part of the variance of the raw scores,
    ``cov(F_kind, F) / var(F)``, among the columns: trees by the gains of their splits, networks by the effect that a
    column of another row would have.

    Parameters
    ----------
    ensemble : ConvexEnsemble
        Of trees with covers.
    table : Table
    problem : Problem
    total : array of shape (M,)
        Total sample weight of the rows that each member holds out.

    Returns
    -------
    array of shape (d,) or None
        Sums to 1; 0 where the model is constant.
    """
    parts = [part for part in ensemble.parts if isinstance(part, Atoms)]
    trees = [part for part in parts if isinstance(part, TreeAtomsBase)]
    if first_unstorable(parts) is not None or any(part.trees.cover is None for part in trees):
        return None
    # evenly spread: rows of one class or one day may follow each other
    weights = row_weights(problem, total)
    rows = np.unique(np.linspace(0, len(weights) - 1, min(len(weights), _ROWS)).astype(np.intp))
    X, own = problem.X[torch.from_numpy(rows)], weights[rows] / weights[rows].sum()
    every = ensemble.weights if ensemble.weights.ndim == 2 else ensemble.weights[:, None]
    kinds, first = [], 0
    for part in parts:
        some = every[first : first + len(part)]
        first += len(part)
        if not isinstance(part, Zero) and bool((some != 0).any()):
            kinds.append((part, some))
    outputs = [_centred(part.mix(part.seen(X), some), own) for part, some in kinds]
    whole, found = sum(outputs, np.zeros((len(rows), len(ensemble.bound)))), np.zeros(len(table.columns))
    for (part, some), out in zip(kinds, outputs, strict=True):
        if isinstance(part, TreeAtomsBase):
            shares = _tree_shares(part, some, table)
        else:
            shares = _network_shares(part, some, X, table)
        # a kind that works against all others explains nothing
        found += max(0.0, float(own @ (out * whole).sum(1))) * shares
    return found / found.sum() if found.sum() > 0 else found


def _centred(out: Tensor, weights: Array) -> Array:
    """Outputs ``(n, k)`` less their mean over rows of weights ``(n,)``."""
    numbers = out.double().cpu().numpy()
    return numbers - weights @ numbers


def _tree_shares(part: TreeAtomsBase, weights: Tensor, table: Table) -> Array:
    """Gains of splits by column, ``(d,)``, as shares of 1.

    With Newton leaves ``v = -G / H`` for a sum of gradients G and a cover H, a split lowers the risk by
    ``(G_L^2 / H_L + G_R^2 / H_R - G^2 / H) / 2 = (H_L v_L^2 + H_R v_R^2 - H v^2) / 2``, where
    ``H v = H_L v_L + H_R v_R``: that is ``H_L H_R / H (v_L - v_R)^2 / 2``. A tree of weight w has leaves ``w v``.
    """
    trees = part.trees
    left, first, size = (own.cpu().numpy() for own in (trees.left, trees.first, trees.size))
    inner = np.flatnonzero(left)
    if len(inner) == 0:
        return np.zeros(len(table.columns))
    assert trees.cover is not None
    cover, mean = trees.cover.double().cpu().numpy(), trees.value.double().cpu().numpy()
    sums = mean * cover[:, None]
    child = left + np.repeat(first, size)
    for level in reversed(_levels(left, child, first)):
        for numbers in (cover, sums):
            numbers[level] = numbers[child[level]] + numbers[child[level] + 1]
    mean = np.divide(sums, cover[:, None], out=np.zeros_like(sums), where=cover[:, None] > 0)
    a, b = child[inner], child[inner] + 1
    shared = np.divide(cover[a] * cover[b], cover[inner], out=np.zeros(len(inner)), where=cover[inner] > 0)
    tree = np.repeat(np.arange(len(size)), size)[inner]
    scale = part.tree_weights(weights).double().cpu().numpy()[tree]
    gains = shared * ((scale * (mean[a] - mean[b])) ** 2).sum(1)
    sources = table.split_sources if part.splits_columns else table.input_sources
    found = np.bincount(sources[trees.feature.cpu().numpy()[inner]], gains, len(table.columns)).astype(np.float64)
    return found / found.sum() if found.sum() > 0 else found


def _levels(left: NDArray[np.int32], child: NDArray[np.intp], roots: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """The inner nodes of all trees, level by level."""
    levels, nodes = [], roots
    while len(nodes := nodes[left[nodes] > 0]):
        levels.append(nodes)
        nodes = np.concatenate([child[nodes], child[nodes] + 1])
    return levels


def _network_shares(part: Atoms, weights: Tensor, X: Rows, table: Table) -> Array:
    """The squared change of the outputs, to first order, if a column had the value of another row: shares ``(d,)``."""
    assert isinstance(part, Networks)
    some = X[: len(X) : max(1, len(X) // _NETWORK_ROWS)]
    seen = part.seen(some)
    inputs = torch.from_numpy(seen.toarray()) if isinstance(seen, SparseRows) else seen
    inputs = inputs.detach().clone()
    change = (inputs.roll(1, 0) - inputs).cpu().numpy()
    found = np.zeros(len(table.columns))
    for j in range(len(part.bound)):
        with torch.enable_grad():
            rows = inputs.requires_grad_(True)
            (slope,) = torch.autograd.grad(part.mix(rows, weights)[:, j].sum(), rows)
        effect = np.zeros((len(table.columns), len(inputs)))
        np.add.at(effect, table.input_sources, slope.cpu().numpy().T * change.T)
        found += (effect**2).mean(1)
    return found / found.sum() if found.sum() > 0 else found
