"""Targets: whatever holds them, as arrays; classes as 0/1 columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.table.sheet import is_frame, is_missing

Array = NDArray[np.float64]


def as_targets(y: Any) -> Any:
    """Targets of any library as an array; what is no frame and no series is returned as it is."""
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
