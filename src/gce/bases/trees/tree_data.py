"""What trees are grown from and by: gradients, shapes, samples, constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.bases.trees.binning import Kinds
from gce.bases.trees.bundles import Bundles


@dataclass(frozen=True)
class Shape:
    """The shape of trees.

    Parameters
    ----------
    max_leaf_nodes : int
    max_depth : int
    symmetric : bool
        One split for all nodes of a level, down to ``max_depth``.
    vector_leaves : bool, default=False
        One tree for all outputs, with a value for each in every leaf.
    """

    max_leaf_nodes: int
    max_depth: int
    symmetric: bool
    vector_leaves: bool = False

    def trees(self, outputs: int) -> int:
        """Trees that so many outputs have together."""
        return 1 if self.vector_leaves else outputs

    def most_nodes(self, rows: int) -> int:
        """Nodes that a tree of so many rows can have."""
        if self.symmetric:
            return int(2 ** (self.max_depth + 1)) - 1
        return 2 * self.most_leaves(rows) - 1

    def most_leaves(self, rows: int) -> int:
        """Leaves that a tree of so many rows can have."""
        return max(1, min(self.max_leaf_nodes, rows))


@dataclass(frozen=True)
class CategoryRule:
    """What guards against splits that fit the noise of categories, of which there are many.

    The side of a split that categories are singled out to has those with the least or the largest mean gradients;
    all others are on the other side, also rare ones and those that are not among a node's rows.

    Parameters
    ----------
    smoothing : float
        Rows without a gradient that are added to a category, when categories are ordered.
    least : float
        Rows of a category that may be singled out.
    l2 : float
        Rows without a gradient that are added to both sides when splits are compared, beside those of each leaf.
    few : int
        Up to so many categories of a node none of these counts.
    most : int
        Categories that may be singled out together.
    """

    smoothing: float = 10.0
    least: float = 10.0
    l2: float = 10.0
    few: int = 4
    most: int = 32


#: The rule of all trees. LightGBM's numbers.
CATEGORIES = CategoryRule()


@dataclass(frozen=True, eq=False)
class TreeData:
    """What the trees of one round learn from: for each of ``M`` members one per output, or one for all ``k`` outputs.

    A tree lowers ``sum D u + u^2 H / 2``.

    Parameters
    ----------
    codes : array of shape (B, N, 4)
        Binned rows, in blocks of four columns, or of four stored ones; the first ``n`` are trained on.
    widths : array of shape (d,)
        Number of bins of each column.
    gradient, hessian : array of shape (M, n, k)
        ``D`` and ``H``; rows without a Hessian are not learned from.
    least : array of shape (M,)
        Minimum sum of Hessians of a leaf, as a fraction of that of all rows.
    l2 : array of shape (M,)
        Added to a leaf's sum of Hessians, as a fraction of that of all rows.
    kinds : Kinds, optional
        Columns with missing values or categories.
    unit : array of shape (M,), optional
        A row's Hessian as a fraction of that of all rows, for the rule of categories.
    bundles : Bundles, optional
        Columns that share stored ones. Default: codes are bins, column by column.
    """

    codes: NDArray[np.uint8]
    widths: NDArray[np.int64]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    least: NDArray[np.float64]
    l2: NDArray[np.float64]
    kinds: Kinds | None = None
    unit: NDArray[np.float64] | None = None
    bundles: Bundles | None = None


@dataclass(frozen=True, eq=False)
class Sampling:
    """Rows and columns that are drawn for each tree.

    Parameters
    ----------
    keys : array of shape (M,)
        A random number for each member.
    names : array of shape (N,) or (0,)
        A hash of what each row holds: equal rows are drawn together. Not needed where all rows are used.
    subsample : float
        Fraction of the rows.
    columns : int
        Number of columns.
    """

    keys: NDArray[np.uint64]
    names: NDArray[np.uint64]
    subsample: float
    columns: int


@dataclass(frozen=True, eq=False)
class Constraints:
    """What trees may not do.

    Parameters
    ----------
    signs : array of shape (d,) or None
        1, 0 or -1: the trees are increasing in a column, anything, or decreasing.
    groups : array of shape (d, W) or None
        The sets of columns that may interact, one bit each in ``W`` words, that a column belongs to.
    """

    signs: NDArray[np.int64] | None = None
    groups: NDArray[np.uint64] | None = None

    @property
    def none(self) -> bool:
        """There are none."""
        return self.signs is None and self.groups is None


UNCONSTRAINED = Constraints()


@dataclass(frozen=True)
class TreeSettings:
    """What trees are grown by.

    Parameters
    ----------
    shape : Shape
    least, l2 : float
        Minimum number of rows of a leaf, and rows without a gradient that are added to each.
    subsample : float
        Fraction of the rows.
    columns : int
        Number of columns that a tree may split.
    constraints : Constraints
    """

    shape: Shape
    least: float
    l2: float
    subsample: float
    columns: int
    constraints: Constraints
