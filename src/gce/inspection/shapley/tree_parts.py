"""Shapley values of atoms that are made of trees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.trees.atoms import TreeAtomsBase
from gce.bases.trees.forest import DOUBT, ForestAtoms
from gce.bases.trees.shapley import TreeGame
from gce.bases.trees.tree import TreeAtoms

Array = NDArray[np.float64]

#: A difference of means below which a secant is the tangent: numbers that cancel would decide the secant.
_NEAR = 1e-7
#: Values of single forests that are held at once, and rows that are taken at least, for the threads.
_AT_ONCE, _ROWS = 1 << 24, 256


@dataclass(frozen=True, eq=False)
class TreeTerms:
    """Atoms of trees with their weights, as sums of weighted trees.

    Parameters
    ----------
    atoms : TreeAtoms or ForestAtoms
    game : TreeGame
    weights : array of shape (T, v)
        Weights of the trees.
    into : array of shape (T,)
        The sum that each tree belongs to.
    sums : int
        Of boosted trees one for each output, or one for all; of forests one for each atom.
    """

    atoms: TreeAtomsBase
    game: TreeGame
    weights: Array
    into: NDArray[np.int64]
    sums: int

    @classmethod
    def of(cls, atoms: TreeAtomsBase, weights: Tensor, players: NDArray[np.intp], count: int) -> TreeTerms:
        """The terms of atoms with weights ``(A, 1)`` or ``(A, k)`` in a hull.

        Parameters
        ----------
        atoms : TreeAtoms or ForestAtoms
            On the CPU.
        weights : Tensor of shape (A, 1) or (A, k)
        players : array of shape (c,)
            The user's column that each column is made of.
        count : int
            Number of the user's columns.
        """
        game, trees = TreeGame(atoms.trees, players, count), atoms.trees
        if isinstance(atoms, TreeAtoms):
            each = atoms.tree_weights(weights).double().contiguous().numpy()
            return cls(atoms, game, each, np.arange(len(each)) % atoms.trees_per_atom, atoms.trees_per_atom)
        assert isinstance(atoms, ForestAtoms)
        each = np.full((len(trees), trees.outputs), 1 / atoms.n_trees)
        return cls(atoms, game, each, np.arange(len(trees)) // atoms.n_trees, len(atoms))

    def values(self, X: Array, weights: Tensor) -> tuple[Array, Array]:
        """Values ``(n, d, k)`` by the training weight, and the base ``(k,)``."""
        means = np.zeros((self.sums, self._outputs))
        np.add.at(means, self.into, self.weights * self.game.means())
        if not isinstance(self.atoms, ForestAtoms):
            return _by_output(self.game.values(X, self.weights, self.into, self.sums)), means.reshape(-1)
        # forests have values of their own, before their link: of all rows they would take too much memory
        step = max(_ROWS, _AT_ONCE // (self.sums * self.game.count * self._outputs))
        parts = [
            _of_forests(
                self.atoms,
                self.game.values(X[first : first + step], self.weights, self.into, self.sums),
                means,
                _by_atom(weights, self.atoms),
            )
            for first in range(0, max(1, len(X)), step)
        ]
        return np.concatenate([values for values, _ in parts]), parts[0][1]

    def against(self, X: Array, background: Array, shares: Array, weights: Tensor) -> Array:
        """Values ``(n, d, k)`` against a background, of terms that are linear in their trees."""
        found = self.game.against(X, background, shares, self.weights, self.into, self.sums)
        if isinstance(self.atoms, ForestAtoms):
            return np.einsum("ak,andk->ndk", _by_atom(weights, self.atoms), found)
        return _by_output(found)

    def pairs(self, X: Array, weights: Tensor) -> Array:
        """Interaction values ``(n, d, d, k)`` of different columns, of terms that are linear in their trees."""
        found = self.game.pairs(X, self.weights, self.into, self.sums)
        if isinstance(self.atoms, ForestAtoms):
            return np.einsum("ak,anijk->nijk", _by_atom(weights, self.atoms), found)
        return _by_output(found)

    @property
    def _outputs(self) -> int:
        return self.atoms.trees.outputs


def is_linear(atoms: TreeAtomsBase) -> bool:
    """Whether atoms are sums of their trees: all but forests with a link, or with leaves beyond the bound."""
    if not isinstance(atoms, ForestAtoms):
        return True
    if atoms.link != "identity":
        return False
    leaves = atoms.trees.value[atoms.trees.left == 0].double()
    # rounding in sums of leaves at the bound is no clipping
    return bool(((leaves - atoms.offset).abs() <= atoms.bound * (1 + 1e-9)).all())


def _by_atom(weights: Tensor, atoms: ForestAtoms) -> Array:
    return weights.expand(len(atoms), len(atoms.bound)).double().numpy()


def _by_output(found: Array) -> Array:
    """Sums ``(s, n, ..., v)`` as ``(n, ..., s v)``: one has all outputs, or each has one."""
    moved = np.moveaxis(found, 0, -2)
    return moved.reshape(*moved.shape[:-2], moved.shape[-2] * moved.shape[-1])


def _of_forests(atoms: ForestAtoms, found: Array, base: Array, weights: Array) -> tuple[Array, Array]:
    """Values ``(n, d, k)`` of forests from those of their means ``(A, n, d, k)``, and the base from ``(A, k)``.

    Where a forest is no sum of its trees (probabilities have a link, and outputs are clipped), each function of one
    number on the way from means to outputs multiplies values by the slope of its secant between the base and the row,
    so that they still add up.
    """
    mean = base[:, None] + found.sum(2)
    if is_linear(atoms):
        offset = atoms.offset.numpy()
        return np.einsum("ak,andk->ndk", weights, found), np.einsum("ak,ak->k", weights, base - offset)
    start, end = (torch.from_numpy(np.ascontiguousarray(own)) for own in (base[:, None], mean))
    scores, score_base = atoms.scores(end).numpy(), atoms.scores(start).numpy()
    if atoms.link != "identity":
        found = found * _link_slopes(atoms, base[:, None], mean)[:, :, None]
        if atoms.link == "log":
            found = found - found.mean(-1, keepdims=True)
    free, free_base = scores - atoms.offset.numpy(), score_base - atoms.offset.numpy()
    bound, distance = atoms.bound.numpy(), free - free_base
    limited, limited_base = (own.clip(-bound, bound) for own in (free, free_base))
    untouched = ((limited == free) & (limited_base == free_base)) | (distance == 0)
    clipped = np.where(untouched, 1.0, (limited - limited_base) / np.where(distance == 0, 1, distance))
    found = found * clipped[:, :, None]
    return np.einsum("ak,andk->ndk", weights, found), np.einsum("ak,ak->k", weights, limited_base[:, 0])


def _link_slopes(atoms: ForestAtoms, base: Array, mean: Array) -> Array:
    """Slopes ``(A, n, k)`` of the secants of log-odds or logarithms between two means of targets."""
    prior = atoms.prior.double().numpy()
    first, last = ((1 - DOUBT) * own + prior for own in (base, mean))
    logs = np.log(last) - np.log(first)
    tangent = (1 - DOUBT) * 2 / (first + last)
    if atoms.link == "logit":
        logs = logs - np.log1p(-last) + np.log1p(-first)
        tangent = tangent + (1 - DOUBT) * 2 / (2 - first - last)
    distance = mean - base
    near = np.abs(distance) < _NEAR * np.minimum(first, last if atoms.link == "log" else 1 - last)
    return np.where(near, tangent, logs / np.where(distance == 0, 1, distance))
