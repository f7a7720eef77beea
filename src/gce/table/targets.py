"""Targets: whatever holds them, as arrays; classes as 0/1 columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.table.sheet import DATES, is_frame, is_missing

Array = NDArray[np.float64]


#: Targets of a regression: farther from 0 sums of squares and products would overflow, and closer together vanish.
_FARTHEST, _CLOSEST = 1e100, 1e-100


def as_targets(y: Any, name: str = "y") -> Any:
    """Targets of any library as an array; what is no frame and no series is returned as it is.

    Values that are not known (None, NA, masked ones) are refused; NaN among numbers is left to scikit-learn's checks.
    """
    found = _as_array(y)
    if isinstance(found, np.ma.MaskedArray):
        if np.ma.getmaskarray(found).any():
            raise ValueError(f"{name} is a masked array with masked values: leave these rows out")
        found = found.data
    values = _objects(found)
    # of a list of words numpy would make a word of NaN
    words = any(isinstance(value, str) for value in values)
    if any(is_missing(value) and (words or not isinstance(value, float | np.floating)) for value in values):
        advice = ", or make a class of them" if name == "y" else ""
        raise ValueError(f"{name} has gaps (None, NaN or NA): leave these rows out{advice}")
    return found


def _as_array(y: Any) -> Any:
    if isinstance(y, np.ndarray | list | tuple) or y is None:
        return y
    import narwhals as nw

    if is_frame(y):
        frame = nw.from_native(y, eager_only=True)
        columns = [np.asarray(series.to_numpy()) for series in frame.iter_columns()]
        return columns[0] if len(columns) == 1 else np.column_stack(columns)
    if nw.dependencies.is_into_series(y):
        series = nw.from_native(y, series_only=True)
        # an Arrow dictionary's own conversion would fill gaps with a class
        text = isinstance(series.dtype, nw.Categorical | nw.Enum | nw.String)
        return np.asarray(series.to_list(), dtype=object) if text else np.asarray(series.to_numpy())
    return y


def _objects(y: Any) -> Collection[Any]:
    """The values of a list, or of an array of Python objects; none of anything else."""
    if isinstance(y, np.ndarray):
        return y.ravel() if y.dtype == object else ()
    return y if isinstance(y, list | tuple) else ()


def check_numbers(y: Any) -> None:
    """Refuse targets ``(n,)`` or ``(n, k)`` of a regression that are dates, or integers that no float can be."""
    dates = isinstance(y, np.ndarray) and y.dtype.kind in "mM"
    for value in _objects(y):
        dates = dates or isinstance(value, DATES)
        if isinstance(value, int) and abs(value) > _FARTHEST:
            raise _too_far(value)
    if dates:
        raise ValueError(
            "y holds dates or times: make numbers of them, such as days since a first date "
            "(pandas: (y - y.min()).dt.days)"
        )


def check_magnitude(y: Array) -> None:
    """Refuse targets ``(n, k)`` of a regression whose squares are beyond float64."""
    far = np.abs(y).max(initial=0.0)
    if far > _FARTHEST:
        raise _too_far(far)


def check_spread(y: Array) -> None:
    """Refuse targets ``(n, k)`` of a regression that differ, but by so little that squares of it are 0."""
    spread = np.ptp(y, axis=0)
    if ((spread > 0) & (spread < _CLOSEST)).any():
        close = spread[spread > 0].min()
        raise ValueError(
            f"y spreads over {close:.3g} only, and sums of squares of such numbers are 0: multiply y, so that it "
            f"spreads over {_CLOSEST:.0e} or more"
        )


def _too_far(value: Any) -> ValueError:
    shown = f"{value:.3g}" if isinstance(value, float) else f"an integer of {len(str(abs(value)))} digits"
    return ValueError(
        f"y holds {shown}, and sums of squares of such numbers are beyond float64: divide y, so that it stays below "
        f"{_FARTHEST:.0e}"
    )


def check_labels(y: NDArray[Any]) -> None:
    """Refuse classes ``(n,)`` that have gaps, or that cannot be put in order."""
    if y.dtype != object:
        return
    if any(is_missing(label) for label in y):
        raise ValueError("y has gaps (None or NaN): leave these rows out, or make a class of them")
    text = {isinstance(label, str) for label in y}
    if len(text) > 1:
        raise ValueError(f"y mixes text and numbers, as in {y[:5].tolist()}: make it one of them")


def one_hot(codes: NDArray[np.intp], classes: int) -> Array:
    """Class codes ``(n,)`` as targets: one 0/1 column for two classes, a column each for more."""
    if classes == 2:
        return codes[:, None].astype(np.float64)
    return np.eye(classes)[codes]
