"""Partial dependence and individual conditional expectations, from one pass over rows that are coded once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats.mstats import mquantiles
from sklearn.base import is_classifier
from sklearn.utils import Bunch

from gce.preprocessing import Frame
from gce.preprocessing.dates import from_objects
from gce.preprocessing.schema import column_index
from gce.preprocessing.sparse import SparseRows

Array = NDArray[np.float64]

#: Rows that are predicted at a time.
_ROWS = 1 << 16


def partial_dependence(
    model: Any,
    X: Any,
    features: int | str | Sequence[int | str],
    *,
    sample_weight: ArrayLike | None = None,
    response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
    percentiles: tuple[float, float] = (0.05, 0.95),
    grid_resolution: int = 100,
    custom_values: Mapping[int | str, ArrayLike] | None = None,
    kind: Literal["average", "individual", "both"] = "average",
) -> Bunch:
    """Mean predictions of rows if one column, or two, had other values; and those of each row.

    As :func:`sklearn.inspection.partial_dependence`, whose result it equals up to rounding. That function reads and
    codes all rows again for each value of the grid. Here they are coded once, and codes of the columns are replaced.

    Parameters
    ----------
    model : estimator
        Of gce, fitted.
    X : array-like or data frame of shape (n, d)
    features : int or str, or two of them
        Columns, by index or name.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the mean.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Of classifiers; "auto" is ``predict_proba``. Of two classes the second one is shown.
    percentiles : tuple of float, default=(0.05, 0.95)
        Ends of the grid of a column of numbers that has as many values as the grid, or more.
    grid_resolution : int, default=100
        Number of values of such a column; of all others each value is looked at.
    custom_values : dict of array-like, optional
        The grid of a column, by the index or name that ``features`` has. Dates have a time zone where those of the
        column have one.
    kind : {"average", "individual", "both"}, default="average"
        Whether means, predictions of each row, or both are returned.

    Returns
    -------
    Bunch
        ``grid_values``, a list of arrays, with dates in UTC where the column has a time zone; ``average`` of shape
        ``(outputs, values)`` or ``(outputs, values, values)``; ``individual`` with the rows as second dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import partial_dependence
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = GCERegressor(basis="tree", max_iter=20, random_state=0).fit(X, X[:, 0])
    >>> found = partial_dependence(model, X, 0, grid_resolution=5)
    >>> found.average.shape
    (1, 5)
    >>> bool(found.average[0, 0] < found.average[0, -1])
    True
    """
    if kind not in ("average", "individual", "both"):
        raise ValueError(f"kind must be 'average', 'individual' or 'both', got {kind!r}")
    if external := [other.name for other in model.result_.external if other.weight > 0]:
        raise ValueError(
            f"{external[0]!r} is an external model, which predicts from rows that are not coded: use "
            "sklearn.inspection.partial_dependence"
        )
    frame = model.read_rows(X)
    if isinstance(frame.matrix, SparseRows):
        raise ValueError("partial dependence needs dense rows, and these are sparse: pass X.toarray()")
    if len(frame) == 0:
        raise ValueError("X has 0 sample(s), and partial dependence is a mean over rows: give some")
    chosen = [features] if isinstance(features, int | str | np.integer) else list(features)
    places = [column_index("features", one, frame.names) for one in chosen]
    custom = custom_values or {}
    grids = [
        _custom(frame, place, custom[name]) if name in custom else _axis(frame, place, percentiles, grid_resolution)
        for name, place in zip(chosen, places, strict=True)
    ]
    each = np.concatenate(list(_predictions(model, frame, places, grids, response_method)))
    individual = np.moveaxis(each, -1, 0).swapaxes(1, 2)
    sizes, weights = [len(grid) for grid in grids], None if sample_weight is None else np.asarray(sample_weight, float)
    found = Bunch(grid_values=[_shown(frame, place, grid) for place, grid in zip(places, grids, strict=True)])
    if kind != "individual":
        found["average"] = np.average(individual, axis=1, weights=weights).reshape(-1, *sizes)
    if kind != "average":
        found["individual"] = individual.reshape(len(individual), len(frame), *sizes)
    return found


def _custom(frame: Frame, place: int, given: ArrayLike) -> NDArray[Any]:
    """Values that a user gives, as a frame has them."""
    kind = frame.kinds[place]
    if kind == "date":
        return _dates(frame.names[place], frame.zones.get(place), given)
    return np.asarray(given, dtype=object if kind == "category" else np.float64)


def _dates(name: str, zone: str | None, given: ArrayLike) -> Array:
    """Dates that a user gives, in seconds since 1970: in UTC where the column has a time zone."""
    values = list(cast(Iterable[Any], given))
    known = [value for value in values if value is not None and value == value]
    if any((getattr(value, "tzinfo", None) is None) != (zone is None) for value in known):
        how = "tz_localize(None)" if zone is None else f"tz_localize({zone!r})"
        raise ValueError(
            f"column {name!r} has {zone or 'no time zone'}, and its custom_values have "
            f"{'a time zone' if zone is None else 'dates without one'}: use pandas.to_datetime(values).{how}"
        )
    if zone is None:
        return np.asarray(given, dtype="datetime64[s]").astype(np.float64)
    return from_objects(name, values).seconds


def _axis(frame: Frame, place: int, percentiles: tuple[float, float], resolution: int) -> NDArray[Any]:
    """The values of a column that are looked at."""
    if not 0 <= percentiles[0] < percentiles[1] <= 1 or resolution < 2:
        raise ValueError(
            f"percentiles must be ascending, from 0 to 1, and grid_resolution at least 2: got {percentiles!r} and "
            f"{resolution!r}"
        )
    column = frame.columns[place]
    if frame.kinds[place] == "category":
        known = {value for value in column if value is not None}
        return np.array(sorted(known, key=lambda value: (str(type(value)), value)), dtype=object)
    numbers = np.asarray(column, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    values = np.unique(numbers)
    if len(values) == 0:
        raise ValueError(f"column {frame.names[place]!r} has missing values only: give custom_values")
    if len(values) < resolution:
        return values
    low, high = mquantiles(numbers, prob=percentiles)
    return np.linspace(low, high, resolution) if high > low else np.array([low])


def _predictions(
    model: Any, frame: Frame, places: list[int], grids: list[NDArray[Any]], response: str
) -> Iterator[Array]:
    """Predictions ``(some points, n, outputs)`` at the points of the grid."""
    table = model.result_.table
    codes, coded = [_coded(table, frame, *axis) for axis in zip(places, grids, strict=True)], table.encode(frame)
    owned = [np.flatnonzero(table.split_sources[: table.schema.width] == place) for place in places]
    points = list(product(*(range(len(grid)) for grid in grids)))
    step = max(1, _ROWS // max(1, len(coded)))
    for first in range(0, len(points), step):
        some = points[first : first + step]
        rows = np.tile(coded, (len(some), 1)).reshape(len(some), *coded.shape)
        for block, point in zip(rows, some, strict=True):
            for columns, own, at in zip(owned, codes, point, strict=True):
                block[:, columns] = own[at]
        answers = _responses(model, rows.reshape(-1, coded.shape[1]), response)
        yield answers.reshape(len(some), len(coded), -1)


def _coded(table: Any, frame: Frame, place: int, grid: NDArray[Any]) -> Array:
    """The coded columns of a column's values, ``(g, c)``: itself and its parts."""
    first = np.zeros(len(grid), dtype=np.intp)
    columns = [grid if j == place else column[first] for j, column in enumerate(frame.columns)]
    coded = table.encode(Frame(frame.names, frame.kinds, columns, zones=frame.zones))
    return np.asarray(coded[:, table.split_sources[: table.schema.width] == place])


def _responses(model: Any, coded: Array, response: str) -> Array:
    raw = model.raw_predict_coded(coded)
    if not is_classifier(model):
        return np.asarray(model.predict_from_raw(raw))
    if response not in ("auto", "predict_proba", "decision_function"):
        raise ValueError(f"response_method must be 'predict_proba' or 'decision_function', got {response!r}")
    if response == "decision_function":
        return np.asarray(model.decision_from_raw(raw))
    answers = np.asarray(model.probabilities(raw))
    # two classes have one score between them; two labels have one each, and both are shown
    return answers[:, 1:] if raw.shape[1] == 1 and answers.shape[1] == 2 else answers


def _shown(frame: Frame, place: int, grid: NDArray[Any]) -> NDArray[Any]:
    """The grid as the user knows it: dates are seconds in a frame."""
    return grid.astype("datetime64[s]") if frame.kinds[place] == "date" else grid
