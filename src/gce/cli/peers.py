"""The models of other libraries that ``gce compare`` fits, at their defaults and with their native categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from gce.cli.tasks import Task
from gce.preprocessing import Schema, read_frame

Array = NDArray[np.float64]

#: Most categories per column of HistGradientBoosting, and most one-hot columns per category column of the MLP.
_MAX_BINS, _MAX_ONE_HOT = 255, 100


class Encoded(NamedTuple):
    """Rows as numbers: categories as codes in sorted order, NaN for missing and unknown values.

    Parameters
    ----------
    X, X_test : array of shape (n, d)
    categories : dict of int to int
        The number of categories of each categorical column, by column index.
    """

    X: Array
    X_test: Array
    categories: dict[int, int]


def encode(train: pl.DataFrame, test: pl.DataFrame, categorical: Sequence[str]) -> Encoded:
    """Encode two tables by the categories of the first: text columns, and those that ``categorical`` names.

    Dates become elapsed seconds and, after all columns, the calendar parts that GCE makes of them.
    """
    train, test = _with_calendar(train, test)
    columns, categories = [], {}
    for j, column in enumerate(train):
        parts = (column, test[column.name])
        if column.name in categorical or not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
            codes = {value: code for code, value in enumerate(column.drop_nulls().unique().sort().to_list())}
            categories[j] = len(codes)
            columns.append([np.array([codes.get(v, np.nan) for v in part.to_list()], dtype=float) for part in parts])
        else:
            columns.append([part.cast(pl.Float64).to_numpy() for part in parts])
    X, X_test = (np.column_stack(part) for part in zip(*columns, strict=True))
    return Encoded(X, X_test, categories)


def _with_calendar(train: pl.DataFrame, test: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two tables with the numbers of their dates and durations in place of these, by what varies in the first."""
    names = [column.name for column in train if column.dtype.is_temporal()]
    if not names:
        return train, test
    frame = read_frame(train.select(names))
    schema = Schema.fit(frame, np.ones(len(frame)), None)
    made = [*names, *schema.part_names]
    numbers = (np.asarray(schema.encode(own)) for own in (frame, read_frame(test.select(names))))
    train, test = (
        given.with_columns(pl.Series(name, column) for name, column in zip(made, own.T, strict=True))
        for given, own in zip((train, test), numbers, strict=True)
    )
    return train, test


@dataclass(frozen=True)
class Peer:
    """A model to compare with.

    Parameters
    ----------
    name, package : str
    make : callable
        ``make(task, data, seed)`` returns an estimator for the :class:`Encoded` rows.
    fit_params : callable
        ``fit_params(data)`` returns further arguments of its ``fit``.
    """

    name: str
    package: str
    make: Callable[[Task, Encoded, int], Any]
    fit_params: Callable[[Encoded], dict[str, Any]] = lambda data: {}

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


def _new(module: str, prefix: str, task: Task, **params: Any) -> Any:
    suffix = "Classifier" if task is Task.classification else "Regressor"
    return getattr(import_module(module), prefix + suffix)(**params)


def _xgboost(task: Task, data: Encoded, seed: int) -> Any:
    types = ["c" if j in data.categories else "q" for j in range(data.X.shape[1])]
    return _new("xgboost", "XGB", task, enable_categorical=True, feature_types=types, random_state=seed)


def _lightgbm(task: Task, data: Encoded, seed: int) -> Any:
    return _new("lightgbm", "LGBM", task, random_state=seed, verbosity=-1)


def _catboost(task: Task, data: Encoded, seed: int) -> Any:
    def with_text(X: Array) -> Any:
        mixed = X.astype(object)
        for j in data.categories:
            mixed[:, j] = ["missing" if np.isnan(code) else str(int(code)) for code in X[:, j]]
        return mixed

    params = {"random_state": seed, "verbose": False, "allow_writing_files": False}
    model = _new("catboost", "CatBoost", task, cat_features=list(data.categories), **params)
    return make_pipeline(FunctionTransformer(with_text), model)


def _boosting(task: Task, data: Encoded, seed: int) -> Any:
    few = [j for j, count in data.categories.items() if count <= _MAX_BINS]
    return _new("sklearn.ensemble", "HistGradientBoosting", task, categorical_features=few, random_state=seed)


def _forest(task: Task, data: Encoded, seed: int) -> Any:
    return _new("sklearn.ensemble", "RandomForest", task, random_state=seed, n_jobs=-1)


def _network(task: Task, data: Encoded, seed: int) -> Any:
    one_hot = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-1),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MAX_ONE_HOT, sparse_output=False),
    )
    standardised = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    numbers = [j for j in range(data.X.shape[1]) if j not in data.categories]
    columns = make_column_transformer((standardised, numbers), (one_hot, list(data.categories)))
    return make_pipeline(columns, _new("sklearn.neural_network", "MLP", task, random_state=seed))


PEERS = (
    Peer("XGBoost", "xgboost", _xgboost),
    Peer("LightGBM", "lightgbm", _lightgbm, lambda data: {"categorical_feature": list(data.categories)}),
    Peer("CatBoost", "catboost", _catboost),
    Peer("HistGradientBoosting", "sklearn", _boosting),
    Peer("RandomForest", "sklearn", _forest),
    Peer("MLP (standardised)", "sklearn", _network),
)
