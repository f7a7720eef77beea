"""Atoms made of trees."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import torch
from torch import Tensor

from gce.bases.base import Atoms
from gce.bases.trees import TreeArrays
from gce.preprocessing.mixed import MixedRows, Rows, inputs_of
from gce.preprocessing.sparse import Inputs


class TreeAtomsBase(Atoms):
    """Frozen trees, as buffers of a module.

    Parameters
    ----------
    trees : TreeArrays
    bound : Tensor of shape (k,)
    """

    bound: Tensor
    #: The trees, with the arrays that compiled loops need.
    _trees: TreeArrays | None = None
    #: Weights of atoms that were mixed last, with the weight and the sum of each tree.
    _mixed: tuple[Tensor, Tensor, Tensor] | None = None

    def __init__(self, trees: TreeArrays, bound: Tensor) -> None:
        super().__init__()
        for name, value in trees.tensors().items():
            self.register_buffer(name, value)
        self.register_buffer("bound", bound)

    @property
    def trees(self) -> TreeArrays:
        size = self._buffers["size"]
        assert size is not None
        # the buffers change with the device
        if self._trees is None or self._trees.size is not size:
            names = [field.name for field in fields(TreeArrays)]
            # trees that look at inputs have no rules and sets
            self._trees = TreeArrays(**{name: own for name in names if (own := self._buffers.get(name)) is not None})
        return self._trees

    @property
    def splits_columns(self) -> bool:
        """The trees look at columns, with codes of categories and missing values, instead of the inputs of networks."""
        return self.trees.rule is not None

    def with_cover(self, cover: Tensor) -> Self:
        """The same trees, which know the weight of the training rows in their leaves.

        Parameters
        ----------
        cover : Tensor of shape (nodes,)
            See :class:`gce.bases.trees.TreeArrays`.
        """
        other = self.select(torch.arange(len(self), device=self.bound.device))
        other.register_buffer("cover", cover)
        return other

    def tree_weights(self, weights: Tensor) -> Tensor:
        """What the leaves of each tree are multiplied by, ``(T, v)``.

        Parameters
        ----------
        weights : Tensor of shape (A, 1) or (A, k)
            Of the atoms.
        """
        raise NotImplementedError

    def seen(self, X: Rows) -> Inputs:
        return X.columns if self.splits_columns and isinstance(X, MixedRows) else inputs_of(X)

    def __getstate__(self) -> dict[str, Any]:
        # derived arrays are computed again
        return {**self.__dict__, "_trees": None, "_mixed": None}


def sum_leaves(trees: TreeArrays, X: Inputs, weights: Tensor, into: Tensor, count: int) -> Tensor:
    """:meth:`TreeArrays.summed` for dense or sparse rows; sparse rows become dense in blocks."""
    if isinstance(X, Tensor):
        return trees.summed(X, weights, into, count)
    blocks = (torch.from_numpy(some) for some in X.dense_blocks())
    return torch.cat([trees.summed(some, weights, into, count) for some in blocks], 1)


def within(own: Tensor, bound: Tensor) -> bool:
    """Whether a bound is positive and within an ensemble's."""
    return bool(((own > 0) & (own <= bound)).all())
