"""The weights of all rounds of a fit: those that a round moved, or all of them where it moved most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gce.parts import Parts

#: Weights of a file, of all its families together, that are written by their moves at most, and that are read so at
#: most (files of before may have that many in each of two families): a file must not grow a thousandfold when it is
#: read.
MOST_WRITTEN, MOST_READ = 2**25, 2**26
#: What moves cost beside their places and values, in weights: two more tensors.
_OVERHEAD = 50


class Room:
    """What is left of a number of weights that all families of a file share.

    Parameters
    ----------
    weights : int
    """

    def __init__(self, weights: int) -> None:
        self._left = weights

    def takes(self, weights: int) -> bool:
        """Whether there is room for so many; then they are taken."""
        fits = weights <= self._left
        self._left -= weights if fits else 0
        return fits


def store(path: Sequence[tuple[list[int], Tensor]], room: Room) -> Parts:
    """Of each round who ran, and their weights ``(M, T, J)``."""
    last: dict[int, Tensor] = {}
    counts, places, moved = [], [], []
    for members, weights in path:
        for m, own in zip(members, weights.flatten(1), strict=True):
            place = _changed(own, last.get(m, own[:0]))
            last[m] = own
            counts.append(len(place))
            places.append(place)
            moved.append(own[place])
    total = sum(weights.numel() for _, weights in path)
    if 2 * sum(counts) + len(counts) + _OVERHEAD >= total or not room.takes(total):
        return Parts({}, {"weights": torch.cat([weights.flatten(0, 1) for _, weights in path])})
    tensors = {"counts": torch.tensor(counts), "places": torch.cat(places), "moved": torch.cat(moved)}
    return Parts({"blocks": path[0][1].shape[2]}, tensors)


def restore(parts: Parts, members: Sequence[list[int]], slots: Sequence[int], room: Room) -> list[Tensor]:
    """Each round's weights, of those who ran over so many slots; files of version 1 have all of them."""
    path = parts if "weights" in parts.tensors else parts.within("path")
    rows = [len(who) * count for who, count in zip(members, slots, strict=True)]
    if "weights" in path.tensors:
        weights = path.finite("weights", sum(rows), None)
        shapes = zip(weights.split(rows), members, slots, strict=True)
        return [own.reshape(len(who), count, -1).clone() for own, who, count in shapes]
    blocks = path.integer("blocks", 1)
    if not room.takes(sum(rows) * blocks):
        raise ValueError(f"{sum(rows) * blocks} weights are more than are written by their moves")
    counts = path.tensor("counts", sum(map(len, members)), dtype=torch.int64)
    if (counts < 0).any() or (counts > MOST_READ).any():
        raise ValueError("rounds cannot have moved so many weights")
    total = int(counts.sum())
    moved = path.finite("moved", total).split(counts.tolist())
    places = path.tensor("places", total, dtype=torch.int64).split(counts.tolist())
    return _moved(members, slots, blocks, iter(zip(places, moved, strict=True)))


def _changed(own: Tensor, before: Tensor) -> Tensor:
    """Where weights ``(T J,)`` are others than before, to the bit; of slots that are new they were 0."""
    known = torch.nn.functional.pad(before, (0, len(own) - len(before)))
    return (own.contiguous().view(torch.int64) != known.view(torch.int64)).nonzero().flatten()


def _moved(
    members: Sequence[list[int]], slots: Sequence[int], blocks: int, moves: Iterator[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """Weights from the moves of each round and member, places and new values."""
    last: dict[int, Tensor] = {}
    path = []
    for who, count in zip(members, slots, strict=True):
        weights = torch.zeros(len(who), count * blocks, dtype=torch.float64)
        for m, own, (place, value) in zip(who, weights, moves, strict=False):
            before = last.get(m, own[:0])
            own[: len(before)] = before
            if len(place) and not 0 <= int(place.min()) <= int(place.max()) < len(own):
                raise ValueError("a round moves weights of atoms that are not there")
            own[place] = value
            last[m] = own
        path.append(weights.view(len(who), count, blocks))
    return path
