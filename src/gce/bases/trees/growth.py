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
from gce.bases.trees.grower import Constraints, GrownTrees, Sampling, Scratch, Shape, TreeData
from gce.bases.trees.tree_arrays import TreeArrays

#: Hashes of rows, where all rows are trained on and none are needed.
UNNAMED = np.empty(0, np.uint64)


@dataclass(frozen=True, eq=False)
class Growth:
    """Which trees are asked for: one per member and output, in units of the bound.

    Parameters
    ----------
    model : Model
        What they minimise.
    bound : Tensor of shape (k,)
    shape : Shape
    least, l2 : float
        Minimum number of rows of a leaf, and rows without a gradient that are added to each.
    subsample : float
        Fraction of the rows.
    columns : int
        Number of columns that a tree may split.
    keys : array of shape (M,)
        A random number for each member.
    constraints : Constraints
    """

    model: Model
    bound: Tensor
    shape: Shape
    least: float
    l2: float
    subsample: float
    columns: int
    keys: NDArray[np.uint64]
    constraints: Constraints


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


def tree_grower(binned: BinnedRows, context: FitContext) -> TreeGrower:
    """The grower for rows: on their own device if it has kernels, else on the processor.

    Parameters
    ----------
    binned : BinnedRows
    context : FitContext
        Of the fit, whose trees share memory.

    Returns
    -------
    TreeGrower
    """

    def choose() -> TreeGrower:
        device = binned.tensor.device
        if device.type != "cpu":
            # most fits need none of it
            from gce.bases.trees.grower_cuda import device_grower

            found = device_grower(binned, context)
            if not isinstance(found, str):
                return found
            warn_user(f"trees are grown on the processor, not on {device}: {found}", UserWarning)
        return ProcessorGrower(binned, context.cached((), "scratch of trees", Scratch))

    return context.cached((binned,), "grower of trees", choose)


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
        binned, model, device = self.binned, asked.model, asked.bound.device
        gradient, hessian = (np.ascontiguousarray(t.cpu().numpy()) for t in (model.gradient, model.hessian))
        # rows are counted by their share of H, and a row without a gradient has the average Hessian
        unit = model.unit.cpu().numpy() / asked.subsample
        names = binned.names if asked.subsample < 1 else UNNAMED
        grown = GrownTrees(
            TreeData(binned.codes, binned.bins.widths, gradient, hessian, asked.least * unit, asked.l2 * unit),
            asked.shape,
            Sampling(asked.keys, names, asked.subsample, asked.columns),
            asked.constraints,
            self.scratch,
        )
        outputs, length = grown.scale(asked.bound.cpu().numpy(), model.free)
        feature, cut, left, value = grown.nodes()
        parts = grown.size.reshape(-1), feature, binned.bins.thresholds(feature, cut, left > 0), left, value[:, None]
        trees = TreeArrays(*(torch.from_numpy(part).to(device) for part in parts))
        return GrownAtoms(lambda: trees, torch.from_numpy(outputs).to(device), torch.from_numpy(length).to(device))
