"""What others offer for a table, each at its defaults and with categories and gaps the best way it takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from gce.cli.tasks import Task

Array = NDArray[np.float64]

#: Levels that HistGradientBoosting can tell apart, and columns a category may become for a network.
_BINS, _FLAGS = 255, 100


@dataclass(frozen=True)
class Coding:
    """A table as numbers: text by codes, NaN for what is missing or was not there before.

    Parameters
    ----------
    levels : dict of str to dict
        Of each category: its values and their codes.
    """

    names: tuple[str, ...]
    levels: dict[str, dict[Any, int]]

    @classmethod
    def learn(cls, X: pl.DataFrame, categorical: Sequence[str]) -> Coding:
        """Learn from training rows; text is a category, and so are the columns that are listed."""
        chosen = [name for name in X.columns if name in categorical or not _is_number(X.schema[name])]
        levels = {name: X[name].drop_nulls().unique().sort().to_list() for name in chosen}
        return cls(tuple(X.columns), {name: {v: i for i, v in enumerate(found)} for name, found in levels.items()})

    @property
    def places(self) -> list[int]:
        """Where categories stand."""
        return [j for j, name in enumerate(self.names) if name in self.levels]

    def __call__(self, X: pl.DataFrame) -> Array:
        """Rows as numbers, ``(n, d)``."""
        columns = []
        for name in self.names:
            if name in self.levels:
                code = self.levels[name]
                columns.append(np.array([code.get(value, np.nan) for value in X[name].to_list()], dtype=np.float64))
            else:
                columns.append(X[name].cast(pl.Float64).to_numpy())
        return np.column_stack(columns)


@dataclass(frozen=True)
class Peer:
    """A model to be compared with.

    Parameters
    ----------
    name : str
    package : str
    make : callable
        (task, coding, seed) to something with ``fit(X, y)`` and ``predict(X)`` or, for classes, ``predict_proba(X)``,
        where ``X`` is what the coding gives and ``y`` are numbers or class codes.
    """

    name: str
    package: str
    make: Callable[[Task, Coding, int], Any]

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


class Prepared:
    """A model whose rows are changed before it sees them, and which is told something more when it is fitted."""

    def __init__(self, model: Any, change: Callable[[Array], Any], **told: Any) -> None:
        self._model, self._change, self._told = model, change, told

    def fit(self, X: Array, y: NDArray[Any]) -> None:
        self._model.fit(self._change(X), y, **self._told)

    def predict(self, X: Array) -> NDArray[Any]:
        return np.asarray(self._model.predict(self._change(X)))

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self._model.predict_proba(self._change(X)))


def _xgboost(task: Task, coding: Coding, seed: int) -> Any:
    kinds = ["c" if name in coding.levels else "q" for name in coding.names]
    return _kind("xgboost", "XGB", task)(enable_categorical=True, feature_types=kinds, random_state=seed)


def _lightgbm(task: Task, coding: Coding, seed: int) -> Any:
    model = _kind("lightgbm", "LGBM", task)(random_state=seed, verbosity=-1)
    return Prepared(model, np.asarray, categorical_feature=coding.places)


def _catboost(task: Task, coding: Coding, seed: int) -> Any:
    model = _kind("catboost", "CatBoost", task)(random_state=seed, verbose=False, allow_writing_files=False)

    def with_text(X: Array) -> Any:
        mixed = X.astype(object)
        for j in coding.places:
            mixed[:, j] = ["missing" if np.isnan(code) else str(int(code)) for code in X[:, j]]
        return mixed

    return Prepared(model, with_text, cat_features=coding.places)


def _kind(package: str, prefix: str, task: Task) -> Any:
    return getattr(import_module(package), prefix + ("Classifier" if task is Task.classification else "Regressor"))


def _boosting(task: Task, coding: Coding, seed: int) -> Any:
    kind = HistGradientBoostingClassifier if task is Task.classification else HistGradientBoostingRegressor
    few = [j for j in coding.places if len(coding.levels[coding.names[j]]) <= _BINS]
    return kind(categorical_features=few, random_state=seed)


def _forest(task: Task, coding: Coding, seed: int) -> Any:
    kind = RandomForestClassifier if task is Task.classification else RandomForestRegressor
    return kind(random_state=seed, n_jobs=-1)


def _network(task: Task, coding: Coding, seed: int) -> Any:
    kind = MLPClassifier if task is Task.classification else MLPRegressor
    flags = make_pipeline(
        SimpleImputer(strategy="constant", fill_value=-1),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_FLAGS, sparse_output=False),
    )
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    others = [j for j in range(len(coding.names)) if j not in coding.places]
    return make_pipeline(make_column_transformer((numbers, others), (flags, coding.places)), kind(random_state=seed))


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == pl.Boolean)


PEERS = (
    Peer("XGBoost", "xgboost", _xgboost),
    Peer("LightGBM", "lightgbm", _lightgbm),
    Peer("CatBoost", "catboost", _catboost),
    Peer("HistGradientBoosting", "sklearn", _boosting),
    Peer("RandomForest", "sklearn", _forest),
    Peer("MLP (standardised)", "sklearn", _network),
)
