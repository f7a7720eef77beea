"""Splits into training, validation and test rows."""

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
    """Row indices of the three parts.

    Parameters
    ----------
    train, validation, test : array of int
    """

    train: Index
    validation: Index
    test: Index

    @property
    def fitted(self) -> Index:
        """Training and validation rows, from which the scaling is computed."""
        return np.concatenate([self.train, self.validation])


def sizes(spec: Spec, rows: int) -> tuple[int, int, int]:
    """Numbers of training, validation and test rows of a file."""
    fitted = int(_SHARE * rows) if spec.test_from is None else spec.test_from
    train = int(_SHARE * fitted) if spec.validation_from is None else spec.validation_from
    return train, fitted - train, rows - fitted


def reference(spec: Spec, rows: int) -> Split:
    """The split of the authors' code, the same for every method and seed.

    If the file has no test part, all indices are shuffled by ``random.Random(997)`` and the first ``int(0.8 n)`` are
    for training and validation. If it has no validation part, those are shuffled in the same way again and the first
    ``int(0.8 m)`` are for training. Splits are not stratified.
    """
    train, validation, _ = sizes(spec, rows)
    order = np.arange(rows) if spec.test_from is not None else _shuffled(rows)
    fitted, test = order[: train + validation], order[train + validation :]
    if spec.validation_from is None:
        fitted = fitted[_shuffled(len(fitted))]
    return Split(fitted[:train], fitted[train:], test)


def repeated(spec: Spec, rows: int, seed: int) -> Split:
    """A random split of all rows, predefined test part included, into parts of the reference sizes."""
    train, validation, _ = sizes(spec, rows)
    order = np.random.default_rng(seed).permutation(rows)
    return Split(order[:train], order[train : train + validation], order[train + validation :])


def _shuffled(rows: int) -> Index:
    order = list(range(rows))
    random.Random(_SEED).shuffle(order)
    return np.asarray(order, dtype=np.intp)
