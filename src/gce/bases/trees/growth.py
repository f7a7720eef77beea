"""Boosted trees, grown where the rows are: the one place that knows which devices have kernels for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.warn import warn_user
from gce.bases.context import FitContext
from gce.bases.objectives import Model
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import Grown
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_arrays import TreeArrays
from gce.bases.trees.tree_data import Sampling, Shape, TreeData, TreeSettings

Array = NDArray[np.float64]

#: Hashes of rows, where all rows are trained on and none are needed.
UNNAMED = np.empty(0, np.uint64)
#: Why a device does not grow trees of several outputs.
_NO_VECTORS = 'it has no kernels for outputs_per_tree="all"'


@dataclass(frozen=True, eq=False)
class Growth:
    """Which trees are asked for: for each member one per output or one for all, in units of the bound.

    Parameters
    ----------
    model : Model
        What they minimise.
    bound : Tensor of shape (k,)
    keys : array of shape (M,)
        A random number for each member.
    settings : TreeSettings
    """

    model: Model
    bound: Tensor
    keys: NDArray[np.uint64]
    settings: TreeSettings


@dataclass(frozen=True, eq=False)
class GrownAtoms:
    """Trees in units of the bound.

    Parameters
    ----------
    load : callable
        Returns the trees; what it takes to do so is put off until then.
    outputs : Tensor of shape (M, N, k)
        Of all rows.
    length : Tensor of shape (M,)
        What leaf values were divided by, beside the bound.
    """

    load: Callable[[], TreeArrays]
    outputs: Tensor
    length: Tensor


class TreeGrower(Protocol):
    """Grows trees on binned rows."""

    def grow(self, asked: Growth) -> GrownAtoms:
        """The trees that are asked for, on the device of the bound."""


def tree_grower(binned: BinnedRows, context: FitContext, shape: Shape) -> TreeGrower:
    """The grower for rows: on their own device if it has kernels, else on the processor.

    Parameters
    ----------
    binned : BinnedRows
    context : FitContext
        Of the fit, whose trees share memory.
    shape : Shape
        Of the trees: devices have no kernels for vectors in leaves.

    Returns
    -------
    TreeGrower
    """

    def choose() -> TreeGrower:
        device = binned.stored.device
        if device.type != "cpu":
            # most fits need none of it
            from gce.bases.trees.grower_cuda import device_grower

            found = _NO_VECTORS if shape.vector_leaves else device_grower(binned, context)
            if not isinstance(found, str):
                return found
            warn_user(f"trees are grown on the processor, not on {device}: {found}", UserWarning)
        return ProcessorGrower(binned, context.cached((), "scratch of trees", Scratch))

    return context.cached((binned,), ("grower of trees", shape.vector_leaves), choose)


@dataclass(frozen=True, eq=False)
class ProcessorGrower:
    """Trees on the processor, of rows on any device.

    Parameters
    ----------
    binned : BinnedRows
    scratch : Scratch
    """

    binned: BinnedRows
    scratch: Scratch

    def grow(self, asked: Growth) -> GrownAtoms:
        binned, model, settings, device = self.binned, asked.model, asked.settings, asked.bound.device
        gradient, hessian = (np.ascontiguousarray(t.cpu().numpy()) for t in (model.gradient, model.hessian))
        grown = GrownTrees(
            tree_data(binned, settings, gradient, hessian, model.unit.cpu().numpy()),
            settings.shape,
            sampling(binned, settings, asked.keys),
            settings.constraints,
            self.scratch,
            binned.shards,
        )
        outputs, length = grown.scale(asked.bound.cpu().numpy(), model.free)
        trees = tree_arrays(binned, grown.nodes(), grown.size, device)
        return GrownAtoms(lambda: trees, torch.from_numpy(outputs).to(device), torch.from_numpy(length).to(device))


def tree_data(binned: BinnedRows, settings: TreeSettings, gradient: Array, hessian: Array, unit: Array) -> TreeData:
    """What trees learn from; gradients and Hessians ``(M, n, k)``, ``unit`` ``(M,)`` the weight of one row."""
    # rows are counted by their share of H, and a row without a gradient has the average Hessian
    drawn = unit / settings.subsample
    bins, least, l2 = binned.bins, settings.least * drawn, settings.l2 * drawn
    about = bins.widths, gradient, hessian, least, l2, bins.kinds, drawn
    if settings.shape.vector_leaves:
        # their grower knows no bundles
        return TreeData(binned.codes, *about)
    return TreeData(binned.stored_codes, *about, binned.bundles)


def sampling(binned: BinnedRows, settings: TreeSettings, keys: NDArray[np.uint64]) -> Sampling:
    """Rows and columns that are drawn for each tree, by random numbers ``(M,)``."""
    names = binned.names if settings.subsample < 1 else UNNAMED
    return Sampling(keys, names, settings.subsample, settings.columns)


def tree_arrays(binned: BinnedRows, nodes: Grown, sizes: NDArray[np.int64], device: torch.device) -> TreeArrays:
    """Trees of the given nodes and sizes ``(M, T)``."""
    parts = sizes.reshape(-1), *binned.bins.as_splits(nodes)
    return TreeArrays(*(torch.from_numpy(part).to(device) for part in parts))
