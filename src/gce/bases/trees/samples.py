"""Samples of all training rows, which are in files and divided among processes: one for each tree of a forest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.trees.stored import StoredRows

Array = NDArray[np.float64]
Codes = NDArray[np.uint8]


class TreeSample(NamedTuple):
    """The rows that one tree is grown from.

    Parameters
    ----------
    codes : array of shape (ceil(d / 4), n, 4), uint8
    weight : array of shape (n,)
        In rows.
    y : array of shape (n, k)
    """

    codes: Codes
    weight: Array
    y: Array


@dataclass(frozen=True, eq=False)
class RowSamples:
    """All training rows, of which each tree is grown from some: which ones depends on its seed and on logical shards.

    Parameters
    ----------
    stored : StoredRows
        Codes of the training rows of this process, and their division.
    y : Tensor of shape (n, k)
        Their targets.
    weight : Tensor of shape (n,)
        Their sample weights, all positive.
    unit : float
        The weight of one row.
    drawn : int
        Rows of a sample, at most.
    classes : bool
        Targets are one-hot.
    equal_weight : float or None
        The weight of every row, where no process has another: it is not sent then.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from gce.bases.trees import Bins
    >>> from gce.bases.trees.samples import RowSamples
    >>> from gce.bases.trees.stored import StoredRows
    >>> from gce.distributed import Division, World
    >>> codes = np.array([[[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]], dtype=np.uint8)
    >>> division = Division(np.array([3]), 0, 1, World())
    >>> stored = StoredRows(3, 1, {256: (Bins((np.array([0.5]),)), codes)}, division)
    >>> y = torch.tensor([[0.0], [1.0], [1.0]])
    >>> rows = RowSamples.of(stored, y, torch.full((3,), 1 / 3), unit=1 / 3, drawn=2, classes=False)
    >>> rows.exchange(256, [7]).y.shape
    (2, 1)
    """

    stored: StoredRows
    y: Tensor
    weight: Tensor
    unit: float
    drawn: int
    classes: bool
    equal_weight: float | None

    @classmethod
    def of(cls, stored: StoredRows, y: Tensor, weight: Tensor, *, unit: float, drawn: int, classes: bool) -> RowSamples:
        """The samples of rows, once all processes have compared their weights; all make this call."""
        # positive numbers have the order of their bits
        bits = np.array([weight.min(), weight.max()], np.float64).view(np.int64)
        bits[0] *= -1
        stored.division.world.take_largest(bits)
        bits[0] *= -1
        least, largest = bits.view(np.float64).tolist()
        return cls(stored, y, weight, unit, drawn, classes, largest if least == largest else None)

    def largest(self, centre: Array) -> Array:
        """The largest absolute target of all processes, ``(k,)``, measured from a centre ``(k,)``."""
        own = np.zeros(len(centre))
        for rows in self.stored.division.slices:
            if rows.stop > rows.start:
                np.maximum(own, np.abs(self.y[rows].numpy() - centre).max(0), out=own)
        # numbers that are not negative have the order of their bits
        self.stored.division.world.take_largest(own.view(np.int64))
        return own

    def exchange(self, max_bins: int, seeds: Sequence[int | None]) -> TreeSample | None:
        """The sample of the tree that this process grows, of which every process has some rows.

        Parameters
        ----------
        max_bins : int
            Of the basis.
        seeds : sequence of int or None
            The seed of the tree that each process grows now; None where one has none left.

        Returns
        -------
        TreeSample or None
            Its rows are in the order of shards, however these are divided.
        """
        codes = self.stored.codes(max_bins)[1]
        own = [np.empty(0, np.uint8) if seed is None else self._packed(codes, seed) for seed in seeds]
        world = self.stored.division.world
        parts = world.all_to_all(own)
        return None if seeds[world.rank] is None else self._sample(parts, len(codes))

    @property
    def _numbers(self) -> int:
        """How many numbers are sent of a row: targets or a class, and the weight where rows differ in it."""
        return (1 if self.classes else self.y.shape[1]) + (self.equal_weight is None)

    def _packed(self, codes: Codes, seed: int) -> NDArray[np.uint8]:
        """The rows of a sample that this process has, as bytes: their numbers, then their codes."""
        _, index = self.stored.division.draw(self.drawn, [seed])
        y = self.y[index].numpy()
        parts = [y.argmax(1)[:, None] if self.classes else y]
        if self.equal_weight is None:
            parts.append(self.weight[index].numpy()[:, None])
        numbers = np.concatenate(parts, 1, dtype=np.float64)
        return np.concatenate(
            [numbers.reshape(-1).view(np.uint8), np.take(np.asarray(codes), index, axis=1).reshape(-1)]
        )

    def _sample(self, parts: Sequence[NDArray[np.uint8]], blocks: int) -> TreeSample:
        """The sample of which processes have packed these parts."""
        numbers, codes = [], []
        for part in parts:
            rows = len(part) // (8 * self._numbers + 4 * blocks)
            end = 8 * self._numbers * rows
            numbers.append(part[:end].view(np.float64).reshape(rows, self._numbers))
            codes.append(part[end:].reshape(blocks, rows, 4))
        known = np.concatenate(numbers)
        equal, k = self.equal_weight, self.y.shape[1]
        weight = known[:, -1] if equal is None else np.full(len(known), equal)
        y = np.eye(k)[known[:, 0].astype(np.intp)] if self.classes else known[:, :k].copy()
        return TreeSample(np.concatenate(codes, 1), weight / self.unit, y)
