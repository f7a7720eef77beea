"""The area under the ROC curve of class probabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gce._utils.params import short_repr

Array = NDArray[np.float64]


class RocAuc(NamedTuple):
    """An area, and what it is of.

    Parameters
    ----------
    value : float
        NaN where it is not defined.
    about : str
        What was averaged, or why there is no area.
    """

    value: float
    about: str


def roc_auc(y: NDArray[Any], probability: Array, classes: NDArray[Any], sample_weight: Array | None = None) -> RocAuc:
    """The area under the ROC curve of two classes, or the mean of one class against the rest over several classes.

    A class without rows has no curve and is left out of the mean, and so is one that all rows are of. Rows of a class
    that is not among ``classes`` belong to the rest. Classes have equal weights in the mean, many rows or few.

    Parameters
    ----------
    y : array of shape (n,)
        True classes.
    probability : array of shape (n, classes)
        Probabilities, or scores that rank rows, of each class.
    classes : array of shape (classes,)
        The class of each column.
    sample_weight : array of shape (n,), optional
        Samples with zero weight are ignored.

    Returns
    -------
    RocAuc

    Examples
    --------
    >>> import numpy as np
    >>> from gce.inspection.roc import roc_auc
    >>> y, p = np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])
    >>> roc_auc(y, np.column_stack([1 - p, p]), np.array([0, 1]))
    RocAuc(value=0.75, about='0.5 is chance')
    >>> roc_auc(y[:2], np.column_stack([1 - p, p])[:2], np.array([0, 1]))
    RocAuc(value=nan, about='not defined: all rows are of class 0')
    """
    if sample_weight is not None:
        kept = sample_weight > 0
        y, probability, sample_weight = y[kept], probability[kept], sample_weight[kept]
    reason = undefined(y, classes)
    if reason is not None:
        return RocAuc(np.nan, f"not defined: {reason}")
    drawn = _with_curve(y, classes)
    areas = [roc_auc_score(y == classes[j], probability[:, j], sample_weight=sample_weight) for j in drawn]
    if len(classes) == 2:
        return RocAuc(float(areas[0]), "0.5 is chance")
    over = "classes" if len(areas) == len(classes) else f"the {len(areas)} of {len(classes)} classes that have rows"
    return RocAuc(float(np.mean(areas)), f"one-vs-rest, mean over {over}")


def undefined(y: NDArray[Any], classes: NDArray[Any]) -> str | None:
    """Why true classes ``(n,)`` give no class of ``(classes,)`` a ROC curve; None if one has a curve."""
    if _with_curve(y, classes):
        return None
    found = set(y.tolist())
    if len(found) == 1:
        return f"all rows are of class {short_repr(found.pop())}"
    if found.isdisjoint(classes.tolist()):
        return "no row is of a class that the model knows"
    return f"no row is of class {short_repr(classes.tolist()[1])}"


def _with_curve(y: NDArray[Any], classes: NDArray[Any]) -> list[int]:
    """The columns whose class some rows are of and some are not; of two classes the second, whose curve is both's."""
    columns = [1] if len(classes) == 2 else range(len(classes))
    return [j for j in columns if 0 < np.count_nonzero(y == classes[j]) < len(y)]
