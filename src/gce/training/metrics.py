"""Metrics of predictions: what a fit says about its held-out rows, the command line prints and reports show.

They are computed from predictions as a model's public methods return them, with the sample weights as they were given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import roc_auc_score
from sklearn.utils.validation import check_consistent_length, column_or_1d

from gce._utils.devices import as_numpy
from gce._utils.params import short_repr
from gce.preprocessing.sample_weights import check_sample_weight
from gce.preprocessing.survival import read_survival

Array = NDArray[np.float64]

#: How metrics are called where they are shown, by their keys, in the order in which they are shown.
TITLES = {
    "error": "error",
    "wrong_labels": "wrong labels",
    "wrong_rows": "rows with a wrong label",
    "log_loss": "log-loss",
    "roc_auc": "ROC AUC",
    "rmse": "RMSE",
    "mae": "MAE",
    "pinball_loss": "mean pinball loss",
    "concordance": "concordance",
}
#: Metrics that are shares of the rows or labels.
SHARES = frozenset({"error", "wrong_labels", "wrong_rows"})
#: Metrics of which more is better.
HIGHER = frozenset({"roc_auc", "concordance"})

#: Probabilities are clipped at this value before their logarithms are taken, as scikit-learn does.
_LEAST = float(np.finfo(np.float64).eps)
#: Probabilities beyond which ROC AUC is left out: one curve per class would take longer than all other metrics.
_MOST_RANKED = 1 << 24


def of_numbers(y: Array, predicted: Array, weight: Array | None = None) -> dict[str, float]:
    """Root mean squared and mean absolute error, of several targets their means."""
    error = np.abs(predicted - y)
    # squares of the relative errors cannot overflow
    largest = max(float(error.max()), np.finfo(np.float64).tiny)
    square = np.average(np.square(error / largest), axis=0, weights=weight)
    return {
        "rmse": float(np.mean(largest * np.sqrt(square))),
        "mae": float(np.mean(np.average(error, axis=0, weights=weight))),
    }


def of_quantiles(y: Array, predicted: Array, levels: Array, weight: Array | None = None) -> dict[str, float]:
    """Pinball loss of quantiles ``(n, levels)``, the mean over levels, of targets of the same shape."""
    above = y - predicted
    loss = np.maximum(levels * above, (levels - 1) * above).mean(1)
    return {"pinball_loss": float(np.average(loss, weights=weight))}


def of_classes(
    y: NDArray[Any],
    predicted: NDArray[Any],
    probability: Array,
    classes: NDArray[Any],
    weight: Array | None = None,
) -> dict[str, float]:
    """Error, log-loss and ROC AUC of probabilities ``(n, classes)``; a class the model does not know is an error.

    ROC AUC is NaN where it is not defined, see :func:`undefined`, or would take long.
    """
    index = {label: j for j, label in enumerate(classes.tolist())}
    code = np.array([index.get(label, -1) for label in y.tolist()], dtype=np.intp)
    likelihood = np.where(code < 0, 0.0, probability[np.arange(len(y)), code])
    ranked = probability.size <= _MOST_RANKED
    return {
        "error": float(np.average(predicted != y, weights=weight)),
        "log_loss": float(np.average(_surprise(likelihood), weights=weight)),
        "roc_auc": roc_auc(y, probability, classes, weight).value if ranked else np.nan,
    }


def of_labels(y: Array, predicted: NDArray[Any], probability: Array, weight: Array | None = None) -> dict[str, float]:
    """Wrong labels, rows with a wrong label, and the log-loss of a label, of labels ``(n, labels)`` of 0 and 1."""
    wrong = predicted != y
    return {
        "wrong_labels": float(np.average(wrong.mean(1), weights=weight)),
        "wrong_rows": float(np.average(wrong.any(1), weights=weight)),
        "log_loss": float(np.mean(label_log_losses(y, probability, weight))),
    }


def label_log_losses(y: Array, probability: Array, weight: Array | None = None) -> Array:
    """The log-loss of each label, ``(labels,)``."""
    return np.average(_surprise(np.where(y > 0, probability, 1 - probability)), axis=0, weights=weight)


def of_times(y: Array, risk: Array, weight: Array | None = None) -> dict[str, float]:
    """Concordance of risks with events and times ``(n, 2)``."""
    return {"concordance": concordance_index(y, risk, weight)}


def _surprise(likelihood: Array) -> Array:
    return -np.log(np.clip(likelihood, _LEAST, None))


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
    >>> from gce.training.metrics import roc_auc
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


def concordance_index(y: Any, risk: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """The probability that of two rows the one with the earlier event has the higher risk (Harrell, 1982).

    Pairs are comparable where it is known which event was first: the earlier time is that of an event, or both times
    are the same and only one is an event. Equal risks count half. It takes ``n log(n)^2`` steps, not ``n^2``.

    Parameters
    ----------
    y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        Whether the event happened, and when.
    risk : array-like of shape (n,)
        Higher means earlier.
    sample_weight : array-like of shape (n,), optional
        A pair counts as the product of its weights: a row of weight 2 as two rows.

    Returns
    -------
    float
        From 0 to 1; 0.5 for risks that are all equal, and where no pair is comparable.

    Examples
    --------
    >>> from gce.inspection import concordance_index
    >>> concordance_index([(True, 1.0), (False, 2.0), (True, 3.0)], [3.0, 1.0, 2.0])
    1.0
    """
    event, time = read_survival(y).T
    scores = column_or_1d(np.asarray(as_numpy(risk), dtype=np.float64))
    check_consistent_length(time, scores)
    if not np.isfinite(scores).all():
        raise ValueError(f"risks must be finite, got {scores[~np.isfinite(scores)][0]}")
    weight = check_sample_weight(sample_weight, scores)
    # at the same time events come before censored rows; events at the same time in the order of their risks, so that
    # none of their pairs, which are not comparable, counts as concordant
    order = np.lexsort((scores, 1 - event, time))
    _, rank = np.unique(scores[order], return_inverse=True)
    first = np.where(event > 0, weight, 0.0)[order]
    pairs = _count_pairs(rank, first, weight[order])
    tied_time = time[order], event[order]
    pairs -= [0.0, *(_pairs_within(groups, first) for groups in ((*tied_time, rank), tied_time))]
    concordant, tied, comparable = pairs
    return float((concordant + tied / 2) / comparable) if comparable > 0 else 0.5


def _count_pairs(rank: NDArray[np.intp], first: Array, second: Array) -> Array:
    """The weights of pairs ``i < j`` with ``rank_i > rank_j``, with equal ranks, and of all pairs.

    Merge sort, all blocks of a size at once: every pair is in the left and the right half of exactly one block.
    """
    n, ranks, total = len(rank), int(rank.max()) + 1, np.zeros(3)
    position = np.arange(n)
    size = 1
    while size < n:
        block, right = position // (2 * size), (position // size) % 2 == 1
        key = block * ranks + rank
        order = np.flatnonzero(right)[np.argsort(key[right], kind="stable")]
        keys, sums = key[order], np.append(0.0, np.cumsum(second[order]))
        left = ~right & (first > 0)
        begin, end = block[left] * ranks, (block[left] + 1) * ranks
        at = [sums[np.searchsorted(keys, limit)] for limit in (begin, key[left], key[left] + 1, end)]
        total += [first[left] @ (high - low) for low, high in ((at[0], at[1]), (at[1], at[2]), (at[0], at[3]))]
        size *= 2
    return total


def _pairs_within(groups: tuple[Any, ...], weight: Array) -> float:
    """The weight of pairs of the same group; rows of one group follow each other but for those without weight."""
    kept = weight > 0
    _, group = np.unique(np.column_stack([part[kept] for part in groups]), axis=0, return_inverse=True)
    total = np.bincount(group.ravel(), weight[kept])
    return float(total @ total - weight[kept] @ weight[kept]) / 2


def concordance(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
    """Harrell's concordance of a model's ``predict``, as a scorer: what ``scoring`` takes.

    Parameters
    ----------
    estimator : estimator
        Fitted; its ``predict`` gives risks.
    X : array-like or data frame of shape (n, d)
        Rows.
    y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        Whether the event happened, and when.
    sample_weight : array-like of shape (n,), optional
        See :func:`concordance_index`.

    Returns
    -------
    float
        From 0 to 1, higher is better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from gce import GCESurvival
    >>> from gce.inspection import concordance
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 1))
    >>> y = np.column_stack([np.ones(150), rng.exponential(np.exp(-X[:, 0]))])
    >>> model = GCESurvival(basis="tree", max_atoms=5, random_state=0)
    >>> bool(cross_val_score(model, X, y, scoring=concordance, cv=2).mean() > 0.6)
    True
    """
    return concordance_index(y, estimator.predict(X), sample_weight)
