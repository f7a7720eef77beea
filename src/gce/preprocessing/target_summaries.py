"""What is summed over the rows of a category: targets, and indicators of their bins or of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gce.preprocessing.scaling import weighted_quantiles

Array = NDArray[np.float64]

#: Classes with a statistic of their own, the most frequent ones.
MAX_CLASSES = 10
#: Targets with a mean of their own.
MAX_TARGETS = 10
#: Bins of a target; as many distinct values have a bin each.
TARGET_BINS = 6


@dataclass(frozen=True, eq=False)
class Summaries:
    """What is known of the targets of rows.

    Parameters
    ----------
    targets : array of shape (N, k)
        Numbers, or codes of classes ``(N, 1)``.
    n_classes : int or None
        Number of classes; None where targets are numbers.
    weight : array of shape (N,)
        Sample weights, by which classes are frequent.
    """

    targets: Array
    n_classes: int | None
    weight: Array

    @property
    def names(self) -> tuple[str, ...]:
        """What the ``s`` summaries of a row are."""
        if self.n_classes is not None:
            return tuple(f"share of class {c}" for c in self._classes)
        k = self.targets.shape[1]
        if k > 1:
            return tuple(f"mean of target {j}" for j in range(min(k, MAX_TARGETS)))
        return ("mean", *(f"share of bin {b}" for b in range(len(self._edges(self.weight)) + 1)))

    @property
    def _classes(self) -> NDArray[np.intp]:
        assert self.n_classes is not None
        if self.n_classes == 2:
            return np.array([1])
        total = np.bincount(self.targets[:, 0].astype(np.intp), self.weight / self.weight.sum(), self.n_classes)
        # sums of weights are rounded, which must not change the order
        return np.sort(np.lexsort((np.arange(self.n_classes), -np.round(total, 12)))[:MAX_CLASSES])

    def _edges(self, weight: Array) -> Array:
        """Where the bins of a target begin, but for the first: after each distinct value, or at quantiles."""
        distinct = np.unique(self.targets)
        if len(distinct) <= TARGET_BINS:
            return (distinct[:-1] + distinct[1:]) / 2
        trained = weight > 0
        levels = np.arange(1, TARGET_BINS) / TARGET_BINS
        return weighted_quantiles(self.targets[trained], weight[trained], levels.tolist())[:, 0]

    def of(self, weight: Array) -> Array:
        """Summaries of all rows, for a member with training weights ``(N,)``.

        Parameters
        ----------
        weight : array of shape (N,)

        Returns
        -------
        array of shape (N, s)
        """
        if self.n_classes is not None:
            return np.asarray(self.targets == self._classes, dtype=np.float64)
        if self.targets.shape[1] > 1:
            return self.targets[:, :MAX_TARGETS]
        edges = self._edges(weight)
        bins = np.searchsorted(edges, self.targets[:, 0], side="left")
        return np.column_stack([self.targets, bins[:, None] == np.arange(len(edges) + 1)])
