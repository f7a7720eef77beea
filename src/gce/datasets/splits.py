"""Which rows train, which choose, which test."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.datasets.registry import Spec

Index = NDArray[np.intp]

_SEED = 997
_SHARE = 0.8


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of the three parts, as positions in the file.

    Parameters
    ----------
    train, validation, test : array of int
    """

    train: Index
    validation: Index
    test: Index

    @property
    def fitted(self) -> Index:
        """Training and validation rows: what scaling is computed from."""
        return np.concatenate([self.train, self.validation])


def sizes(spec: Spec, rows: int) -> tuple[int, int, int]:
    """Training, validation and test rows, for a file of so many rows."""
    fitted = int(_SHARE * rows) if spec.test_from is None else spec.test_from
    train = int(_SHARE * fitted) if spec.validation_from is None else spec.validation_from
    return train, fitted - train, rows - fitted


def reference(spec: Spec, rows: int) -> Split:
    """The cut that the authors' code makes, the same for every method and seed.

    Where the file has no test part of its own, all positions are shuffled by ``random.Random(997)`` and the first
    ``int(0.8 n)`` are kept for training and validation. Where it has no validation part, the kept positions are
    shuffled in the same way once more and the first ``int(0.8 m)`` train. Nothing is stratified.
    """
    train, validation, _ = sizes(spec, rows)
    order = np.arange(rows) if spec.test_from is not None else _shuffled(rows)
    fitted, test = order[: train + validation], order[train + validation :]
    if spec.validation_from is None:
        fitted = fitted[_shuffled(len(fitted))]
    return Split(fitted[:train], fitted[train:], test)


def repeated(spec: Spec, rows: int, seed: int) -> Split:
    """A random cut into parts of the reference's sizes; a predefined test part is mixed with the rest first."""
    train, validation, _ = sizes(spec, rows)
    order = np.random.default_rng(seed).permutation(rows)
    return Split(order[:train], order[train : train + validation], order[train + validation :])


def _shuffled(rows: int) -> Index:
    order = list(range(rows))
    random.Random(_SEED).shuffle(order)
    return np.asarray(order, dtype=np.intp)
