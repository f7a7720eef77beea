"""Validation and encoding of targets."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sized
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from gce._utils.devices import as_numpy
from gce._utils.params import short_list, short_repr
from gce.preprocessing.dates import DATES
from gce.preprocessing.frames import is_frame
from gce.preprocessing.values import is_missing

Array = NDArray[np.float64]


#: Largest absolute target and least spread of a regression: sums of squares must neither overflow nor underflow.
_MAX_TARGET, _MIN_SPREAD = 1e100, 1e-100
#: Largest number as a label: integers of 64 bits.
_MAX_LABEL = 2.0**63
#: More numbers than these are seldom classes.
_MANY_CLASSES = 30


def targets_as_array(y: Any, name: str = "y") -> Any:
    """Targets as an array, from a data frame, series or tensor of any library; anything else is returned unchanged.

    Parameters
    ----------
    y : array-like, series or data frame of shape (n,) or (n, k)
        The targets.
    name : str, default="y"
        Name of the parameter in errors.

    Raises
    ------
    ValueError
        There are missing values (None, NA, masked); NaN among numbers is left to scikit-learn's checks.
    """
    targets = _as_array(as_numpy(y, name), name)
    if isinstance(targets, np.ma.MaskedArray):
        if np.ma.getmaskarray(targets).any():
            raise ValueError(f"{name} is a masked array with masked values: drop these rows")
        targets = targets.data
    values = _objects(targets)
    # numpy would convert NaN in a list of text to the text "nan"
    words = any(isinstance(value, str) for value in values)
    numbers = float | np.floating
    # of an array of objects scikit-learn would not say whose values are missing
    any_kind = words or isinstance(values, np.ndarray)
    if any(is_missing(value) and (any_kind or not isinstance(value, numbers)) for value in values):
        advice = ", or make them a class" if name == "y" else ""
        raise ValueError(f"{name} has missing values (None, NaN or NA): drop these rows{advice}")
    if any(isinstance(value, Sized) and not isinstance(value, str | bytes) for value in values):
        _check_even(targets, name)
    # scikit-learn takes no decimals for classes
    decimals = len(values) > 0 and all(isinstance(value, Decimal) for value in values)
    return np.asarray(targets, dtype=np.float64) if decimals else targets


def _check_even(y: Any, name: str) -> None:
    """Raise a ValueError for a list of rows that are not of one length."""
    try:
        np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"{name} must have as many values in each row, got {short_repr(y)}: give one number or label per row, or "
            "rows of equal length"
        ) from error


def _as_array(y: Any, name: str) -> Any:
    if isinstance(y, np.ndarray) and y.dtype.names is not None:
        # the structured array of scikit-survival: one column per field
        return np.column_stack([y[field] for field in y.dtype.names])
    if isinstance(y, np.ndarray | list | tuple) or y is None:
        return y
    import narwhals as nw

    if is_frame(y):
        frame = nw.from_native(y, eager_only=True)
        columns = [_series_values(series) for series in frame.iter_columns()]
        if not columns:
            raise ValueError(f"{name} is a data frame without columns: give one column per target")
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    if nw.dependencies.is_into_series(y):
        return _series_values(nw.from_native(y, series_only=True))
    return y


def _series_values(series: Any) -> NDArray[Any]:
    import narwhals as nw

    if isinstance(series.dtype, nw.Decimal):
        return np.asarray(series.cast(nw.Float64).to_numpy())
    # the conversion of an Arrow dictionary would replace missing values by a class, and numpy has no 128-bit integers
    if isinstance(series.dtype, nw.Categorical | nw.Enum | nw.String | nw.Int128 | nw.UInt128):
        values = series.to_list()
        numbers = all(isinstance(value, Real) for value in values)
        return np.asarray(values) if numbers else np.asarray(values, dtype=object)
    return np.asarray(series.to_numpy())


def _objects(y: Any) -> Collection[Any]:
    """The values of a list, or of an array of Python objects; empty for anything else."""
    if isinstance(y, np.ndarray):
        return y.ravel() if y.dtype == object else ()
    return y if isinstance(y, list | tuple) else ()


def as_floats(values: Any, name: str) -> Array:
    """An array-like as float64, of any shape.

    Parameters
    ----------
    values : array-like
        What a user gave.
    name : str
        Name of the parameter in errors.

    Raises
    ------
    ValueError
        There are other values than real numbers of float64's range.
    """
    words = f"{name} must be numbers, got {short_repr(values)}"
    try:
        found = np.asarray(values)
        kind = found.dtype.kind
        with np.errstate(over="ignore"):  # of a wider type
            numbers = None if kind in "cmMV" else found.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(words) from error
    if numbers is None:
        # scikit-learn's words for complex numbers
        raise ValueError(f"Complex data not supported: {words}" if kind == "c" else words)
    return numbers


def check_regression_targets(y: Any) -> None:
    """Raise a ValueError for regression targets ``(n,)`` or ``(n, k)`` that are text, dates, or beyond float64."""
    dates = isinstance(y, np.ndarray) and y.dtype.kind in "mM"
    for value in y.ravel() if isinstance(y, np.ndarray) and y.dtype.kind in "US" else _objects(y):
        if isinstance(value, str | bytes) and not _is_number(value):
            raise ValueError(
                f"y holds text, such as {short_repr(str(value))}, not numbers: use GCEClassifier for classes"
            )
        dates = dates or isinstance(value, DATES)
        if isinstance(value, int | Fraction) and not -_MAX_TARGET <= value <= _MAX_TARGET:
            raise _too_large(value)
    if dates:
        raise ValueError(
            "y holds dates or times: convert them to numbers, such as days since a first date "
            "(pandas: (y - y.min()).dt.days)"
        )


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_magnitude(y: Array) -> None:
    """Raise a ValueError for regression targets ``(n, k)`` whose sums of squares overflow."""
    largest = np.abs(y).max(initial=0.0)
    if largest > _MAX_TARGET:
        raise _too_large(largest)


def check_spread(y: Array) -> None:
    """Raise a ValueError for regression targets ``(n, k)`` that differ by so little that squares underflow."""
    spread = np.ptp(y, axis=0)
    if ((spread > 0) & (spread < _MIN_SPREAD)).any():
        raise ValueError(
            f"y has a range of only {spread[spread > 0].min():.3g}, and sums of squares of such numbers are 0: "
            f"multiply y, so that its range is at least {_MIN_SPREAD:.0e}"
        )


def _too_large(value: Any) -> ValueError:
    described = f"{value:.3g}" if isinstance(value, float) else f"a number of {len(str(int(abs(value))))} digits"
    return ValueError(
        f"y holds {described}, and sums of squares of such numbers are beyond float64: divide y, so that it stays "
        f"below {_MAX_TARGET:.0e}"
    )


def has_labels(y: Any) -> bool:
    """Whether the targets of a classifier are labels: one column is a vector in the shape of a matrix."""
    try:
        shape = np.asarray(y).shape
    except ValueError:
        # lists of different lengths, which scikit-learn refuses
        return False
    return len(shape) == 2 and shape[1] > 1


def category_order(y: Any) -> list[Any] | None:
    """The categories of targets that have an order: ordered ones of pandas and Arrow, an Enum of polars; else None."""
    if y is None or isinstance(y, np.ndarray | list | tuple):
        return None
    import narwhals as nw

    if is_frame(y):
        columns = list(nw.from_native(y, eager_only=True).iter_columns())
        return category_order(columns[0].to_native()) if len(columns) == 1 else None
    # of Arrow the type says it, and dictionaries may differ between chunks
    kind: Any = getattr(y, "dtype", getattr(y, "type", None))
    if getattr(kind, "ordered", False):
        if hasattr(kind, "categories"):
            return list(kind.categories)
        whole = y.unify_dictionaries().chunk(0) if hasattr(y, "unify_dictionaries") else y
        return list(whole.dictionary.to_pylist())
    if nw.dependencies.is_into_series(y) and isinstance(nw.from_native(y, series_only=True).dtype, nw.Enum):
        return list(kind.categories)
    return None


def check_order(order: list[Any] | None, classes: NDArray[Any]) -> None:
    """Raise a ValueError for categories in another order than the classes ``(c,)`` of the fit that is continued."""
    known = classes.tolist()
    here = [category for category in order or () if category in known]
    if here and here != [label for label in known if label in here]:
        raise ValueError(
            f"y has categories in the order {short_list(here)}, but the model was fitted to classes in the order "
            f"{short_list(known)}: give categories in its order, or fit a new model"
        )


def check_labels(y: NDArray[Any]) -> None:
    """Raise a ValueError for class labels ``(n,)`` that have missing values, or that cannot be sorted."""
    if np.ndim(y) != 1:
        raise ValueError(f"y must have one class per row, in the shape (n,), got {np.shape(y)}")
    check_label_size(y)
    if y.dtype != object:
        return
    if any(is_missing(label) for label in y):
        raise ValueError("y has missing values (None or NaN): drop these rows, or make them a class")
    text = {isinstance(label, str) for label in y}
    if len(text) > 1:
        raise ValueError(f"y mixes text and numbers, as in {short_repr(y[:5].tolist())}: convert it to one of them")
    sorted_labels(y)


def check_discrete(y: NDArray[Any]) -> None:
    """Raise a ValueError for labels ``(n,)`` that are numbers with a fraction."""
    if y.dtype.kind == "f" and np.isfinite(y).all() and (y != np.trunc(y)).any():
        values = list(dict.fromkeys(y.tolist()))
        first = ", ".join(f"{value:.4g}" for value in values[:3])
        raise ValueError(
            f"Unknown label type: y looks continuous, with {len(values):,} distinct values in {len(y):,} rows, such as "
            f"{first}: use a regressor, such as GCERegressor, or give classes as integers or text"
        )
    check_classification_targets(y)


def lacking_classes(classes: NDArray[Any], lacking: NDArray[np.intp]) -> str:
    """Classes of some indices, for errors about rows that lack them."""
    numbers = classes.dtype.kind in "fiu" and len(classes) > _MANY_CLASSES
    hint = (
        f" ({len(classes):,} numbers as classes look continuous: is this a task for GCERegressor?)" if numbers else ""
    )
    return f"classes {short_list(classes[lacking].tolist())}{hint}"


def check_label_size(y: Any) -> None:
    """Raise a ValueError for numbers as labels that no integer can be compared with."""
    if isinstance(y, np.ndarray) and y.dtype.kind == "f" and (np.abs(y.astype(np.longdouble)) >= _MAX_LABEL).any():
        raise ValueError(f"y holds {np.nanmax(np.abs(y)):.3g} as a label: give classes by smaller numbers, or as text")


def check_scored_labels(y: NDArray[Any], classes: Any) -> None:
    """Raise a ValueError for labels ``(n,)`` or ``(n, labels)`` that cannot be compared with predicted classes."""
    check_label_size(y)
    known = np.asarray(classes)
    dates = {"M", "m"} & {y.dtype.kind, known.dtype.kind}
    if dates and y.dtype.kind != known.dtype.kind:
        raise ValueError(
            f"y holds labels of type {y.dtype}, which cannot be compared with the classes of the fit, "
            f"{short_list(known.tolist())}: give labels of their type, {known.dtype}"
        )


def sorted_labels(y: NDArray[Any]) -> NDArray[Any]:
    """The different labels of ``(n,)``, sorted; a ValueError where they cannot be."""
    try:
        return np.unique(y)
    except (TypeError, ArithmeticError) as error:  # a decimal that is no number
        raise ValueError(
            f"y holds labels that cannot be sorted, as in {short_repr(y[:5].tolist())}: give numbers or text"
        ) from error


def check_known_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise a ValueError for labels ``(n,)`` that are not among the classes ``(c,)`` of a fit."""
    known = set(classes.tolist())
    unknown = [label for label in sorted_labels(y).tolist() if not isinstance(label, Hashable) or label not in known]
    if unknown:
        raise ValueError(
            f"classes {short_list(unknown)} are not among those of the fit, {short_list(classes.tolist())}: leave out "
            "these rows, or fit the model to them"
        )


def by_label(values: NDArray[Any], order: NDArray[np.intp] | None) -> NDArray[Any]:
    """Values by the code of a class, in the last dimension, in the order of sorted labels; as they are for no order."""
    return values if order is None else np.take(values, order, -1)


def one_hot(codes: NDArray[np.intp], classes: int) -> Array:
    """One-hot encoding of class codes.

    Parameters
    ----------
    codes : array of shape (n,)
        Codes from 0 to ``classes - 1``.
    classes : int
        Number of classes.

    Returns
    -------
    array of shape (n, 1) for two classes, else (n, classes)

    Examples
    --------
    >>> import numpy as np
    >>> from gce.preprocessing import one_hot
    >>> one_hot(np.array([0, 1]), 2).tolist()
    [[0.0], [1.0]]
    >>> one_hot(np.array([2]), 3).tolist()
    [[0.0, 0.0, 1.0]]
    """
    if classes == 2:
        return codes[:, None].astype(np.float64)
    return np.eye(classes)[codes]


def as_bound(given: Any, outputs: int) -> Tensor:
    """The ``bound`` parameter as a tensor.

    Parameters
    ----------
    given : float or array-like of shape (outputs,)
        One number for all outputs, or one for each.
    outputs : int
        Number of outputs, k.

    Returns
    -------
    Tensor of shape (k,)
    """
    words = f"bound must be a positive number, or one for each of the {outputs} outputs, got {short_repr(given)}"
    try:
        bound = np.asarray(as_numpy(given, "bound"), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(words) from error
    if bound.shape not in ((), (1,), (outputs,)) or not (np.isfinite(bound) & (bound > 0)).all():
        raise ValueError(words)
    return torch.from_numpy(np.broadcast_to(bound, (outputs,)).copy())


def check_base_score(given: Any, rows: int, outputs: int) -> Array:
    """Base scores, checked.

    Parameters
    ----------
    given : array-like of shape (rows,) or (rows, outputs)
        Raw scores that are added to those of a model.
    rows, outputs : int
        Numbers of rows and outputs, n and k.

    Returns
    -------
    array of shape (n, k)

    Raises
    ------
    ValueError
        The shape is another one, or there are infinite or missing values.
    """
    base = as_floats(targets_as_array(given, "base_score"), "base_score")
    base = base[:, None] if base.ndim == 1 else base
    if base.ndim != 2 or len(base) != rows or base.shape[1] not in (1, outputs):
        raise ValueError(
            f"base_score is of shape {np.shape(given)}: give one number for each of the {rows} rows"
            + (f", or one for each of the {outputs} outputs of a row" if outputs > 1 else "")
        )
    if not np.isfinite(base).all():
        wrong = base[~np.isfinite(base)][0]
        raise ValueError(f"base_score has {wrong}: all must be finite, and the logarithm of an exposure of 0 is not")
    if np.abs(base).max(initial=0.0) > _MAX_TARGET:
        raise ValueError(
            f"base_score has {base.flat[np.abs(base).argmax()]:.3g}, and squares of such scores are beyond float64: "
            f"give scores below {_MAX_TARGET:.0e}"
        )
    return np.broadcast_to(base, (rows, outputs)).copy()
