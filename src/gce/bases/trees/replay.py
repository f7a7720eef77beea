"""Predictions of boosted trees by the bins of rows, as sums in the order of the rounds."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms
from gce.bases.trees.atoms import TreeAtomsBase
from gce.bases.trees.binning import Bins
from gce.bases.trees.booster import Boost, boost_kernels
from gce.bases.trees.grower import Round
from gce.bases.trees.tree_arrays import TreeArrays

#: Rounds whose trees are in memory as kernels need them.
_ROUNDS_AT_ONCE = 64


def replay(bins: Bins, codes: NDArray[np.uint8], rounds: Sequence[tuple[Atoms, Tensor]]) -> Tensor:
    """Predictions after rounds of one member, to the bits that they had when the trees were grown.

    Parameters
    ----------
    bins : Bins
        By which the trees were grown.
    codes : array of shape (ceil(d / 4), N, 4)
    rounds : sequence of (TreeAtoms, Tensor of shape (1, 1))
        Trees and step sizes, at least one round.

    Returns
    -------
    Tensor of shape (1, N, k)
    """
    rows, k = codes.shape[1], len(_trees(rounds[0][0]).bound)
    pred, memory = np.zeros((1, rows, k)), (np.empty((rows, k)), np.empty(rows, np.int32))
    for some in _blocks(rounds):
        _add(bins, codes, some, pred, *memory)
    return torch.from_numpy(pred)


def _trees(atoms: Atoms) -> TreeAtomsBase:
    return cast(TreeAtomsBase, atoms)


def _blocks(rounds: Sequence[tuple[Atoms, Tensor]]) -> Iterator[list[tuple[Atoms, Tensor]]]:
    """Rounds of the same bound, some at a time."""
    for _, same in groupby(rounds, lambda own: _trees(own[0]).bound.tolist()):
        whole = list(same)
        yield from (whole[first : first + _ROUNDS_AT_ONCE] for first in range(0, len(whole), _ROUNDS_AT_ONCE))


def _add(
    bins: Bins,
    codes: NDArray[np.uint8],
    rounds: list[tuple[Atoms, Tensor]],
    pred: NDArray[np.float64],
    outputs: NDArray[np.float64],
    leaf: NDArray[np.int32],
) -> None:
    """Add rounds to predictions ``(1, N, k)``; what outputs ``(N, k)`` and leaves ``(N,)`` hold is lost."""
    bound = np.ascontiguousarray(_trees(rounds[0][0]).bound.numpy(), np.float64)
    trees = TreeArrays.cat([_trees(atoms).trees for atoms, _ in rounds])
    sizes = np.ascontiguousarray(trees.size.numpy(), np.int64)
    used = np.arange(sizes.max()) < sizes[:, None]
    arrays: dict[str, NDArray[Any]] = {"codes": codes, "widths": bins.widths, "size": sizes, "leaf": leaf}
    parts = bins.as_cuts(*(part.numpy() for name, part in trees.tensors().items() if name != "size"))
    for name, part in zip(("feature", "cut", "left", "value", "missing_left", "sets"), parts, strict=False):
        # nodes beyond the last of a tree are never looked at
        arrays[name] = np.zeros((*used.shape, *part.shape[1:]), part.dtype)
        arrays[name][used] = part
    if bins.kinds is not None:
        arrays |= {"missing": bins.kinds.missing, "categorical": bins.kinds.categorical}
    k, size = len(bound), np.array([float(own) for _, own in rounds])
    struct = Round(
        n_rows=codes.shape[1],
        n_columns=len(bins.widths),
        members=1,
        outputs=k,
        trees=k // trees.outputs,
        most_nodes=used.shape[1],
        **{name: given.ctypes.data for name, given in arrays.items()},
    )
    boost = Boost(
        rounds=ctypes.pointer(struct),
        members=1,
        count=len(rounds),
        bound=bound.ctypes.data,
        outputs=outputs.ctypes.data,
        size=size.ctypes.data,
    )
    boost_kernels().replay(ctypes.byref(boost), len(rounds), pred)
