"""The weights of all rounds of a fit: the changes of each round, or all weights if most of them change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.codecs import Parts

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

#: Maximum number of weights of all families of a file that are written as changes, and that are read from changes
#: (older files may have the former number in each of two families): a small file must not need a thousandfold memory.
MOST_WRITTEN, MOST_READ = 2**25, 2**26
#: Cost of two more tensors, in weights.
_OVERHEAD = 50


class SizeBudget:
    """A number of weights that all families of a file share.

    Parameters
    ----------
    weights : int
        The total budget.
    """

    def __init__(self, weights: int) -> None:
        self._remaining = weights

    def spend(self, weights: int) -> bool:
        """Spend a number of weights if the budget suffices, and return whether it does.

        Parameters
        ----------
        weights : int
            Number of weights.

        Returns
        -------
        bool
        """
        fits = weights <= self._remaining
        self._remaining -= weights if fits else 0
        return fits


def store(path: Sequence[tuple[list[int], Tensor]], budget: SizeBudget) -> Parts:
    """Store the weights of all rounds.

    Parameters
    ----------
    path : sequence of (list of int, Tensor)
        The members that ran in each round, and their weights ``(M, T, J)``.
    budget : SizeBudget
        Weights that may be stored as changes.

    Returns
    -------
    Parts
    """
    last: dict[int, Tensor] = {}
    counts, indices, changes = [], [], []
    for members, weights in path:
        for m, own in zip(members, weights.flatten(1), strict=True):
            index = _changed_indices(own, last.get(m, own[:0]))
            last[m] = own
            counts.append(len(index))
            indices.append(index)
            changes.append(own[index])
    total = sum(weights.numel() for _, weights in path)
    if 2 * sum(counts) + len(counts) + _OVERHEAD >= total or not budget.spend(total):
        return Parts({}, {"weights": torch.cat([weights.flatten(0, 1) for _, weights in path])})
    tensors = {"counts": torch.tensor(counts), "places": torch.cat(indices), "moved": torch.cat(changes)}
    return Parts({"blocks": path[0][1].shape[2]}, tensors)


def restore(parts: Parts, members: Sequence[list[int]], slots: Sequence[int], budget: SizeBudget) -> list[Tensor]:
    """Restore the weights of all rounds.

    Parameters
    ----------
    parts : Parts
        Contents of the file; files of version 1 have all weights.
    members : sequence of list of int
        The members that ran in each round.
    slots : sequence of int
        Number of atoms ``T`` of each round.
    budget : SizeBudget
        Weights that may be restored from changes.

    Returns
    -------
    list of Tensor of shape (M, T, J)
    """
    path = parts if "weights" in parts.tensors else parts.within("path")
    rows = [len(ran) * count for ran, count in zip(members, slots, strict=True)]
    if "weights" in path.tensors:
        weights = path.finite("weights", sum(rows), None)
        shapes = zip(weights.split(rows), members, slots, strict=True)
        return [own.reshape(len(ran), count, -1).clone() for own, ran, count in shapes]
    blocks = path.integer("blocks", 1)
    if not budget.spend(sum(rows) * blocks):
        raise ValueError(f"{sum(rows) * blocks} weights are more than gce stores as changes")
    counts = path.tensor("counts", sum(map(len, members)), dtype=torch.int64)
    if (counts < 0).any() or (counts > MOST_READ).any():
        raise ValueError("the counts of changed weights are invalid")
    total = int(counts.sum())
    values, indices = path.finite("moved", total).numpy(), path.tensor("places", total, dtype=torch.int64).numpy()
    if (indices < 0).any():
        raise ValueError("a round changes weights of atoms that do not exist")
    ends = np.cumsum(counts.numpy())[:-1]
    changes = zip(np.split(indices, ends), np.split(values, ends), strict=True)
    return _apply_changes(members, slots, blocks, changes)


def _changed_indices(own: Tensor, before: Tensor) -> Tensor:
    """Indices of weights ``(T J,)`` that differ in any bit from those before, which are 0 for new atoms."""
    previous = torch.nn.functional.pad(before, (0, len(own) - len(before)))
    return (own.contiguous().view(torch.int64) != previous.view(torch.int64)).nonzero().flatten()


def _apply_changes(
    members: Sequence[list[int]], slots: Sequence[int], blocks: int, changes: Iterator[tuple[Whole, Array]]
) -> list[Tensor]:
    """Weights from the changes of each round and member: indices and new values."""
    last: dict[int, Array] = {}
    path = []
    for ran, count in zip(members, slots, strict=True):
        weights = np.zeros((len(ran), count * blocks))
        for m, own, (index, value) in zip(ran, weights, changes, strict=False):
            before = last.get(m, own[:0])
            own[: len(before)] = before
            try:
                own[index] = value
            except IndexError:
                raise ValueError("a round changes weights of atoms that do not exist") from None
            last[m] = own
        path.append(torch.from_numpy(weights.reshape(len(ran), count, blocks)))
    return path
