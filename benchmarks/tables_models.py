"""The models of ``make tables``: what each is given of a table, how it is made, and one fit in a process of its own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import accuracy_models
import numpy as np
import tables_data
from accuracy_models import CATBOOST, GCE, told
from accuracy_rows import THREADS, Row
from data_sets import Split
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

AUTOGLUON = "AutoGluon"
#: Seconds that AutoGluon may take for a fit.
TIME_LIMIT = 120
Prepared = tuple[Any, Split]


def as_it_is(model: str, rows: Split, seed: int) -> Prepared:
    """Strings and dates as they stand in the table."""
    return accuracy_models.make(model, rows.regression, seed), rows


def catboost(model: str, rows: Split, seed: int) -> Prepared:
    """Strings are named as categories or text, where missing values are a value; dates are calendar parts."""
    text = tables_data.texts(rows.X_train)
    names = tables_data.strings(rows.X_train)
    train, test = (
        tables_data.calendar(frame.astype(dict.fromkeys(names, object)).fillna(dict.fromkeys(names, "nan")))
        for frame in (rows.X_train, rows.X_test)
    )
    settings = told(model, [name for name in names if name not in text]) | ({"text_features": text} if text else {})
    return accuracy_models.make(model, rows.regression, seed, **settings), replace(rows, X_train=train, X_test=test)


def categorical(model: str, rows: Split, seed: int) -> Prepared:
    """Strings are pandas categories; dates are calendar parts."""
    frames = tables_data.categories(rows.X_train, rows.X_test)
    train, test = (tables_data.calendar(frame) for frame in frames)
    settings = told(model, tables_data.strings(train))
    return accuracy_models.make(model, rows.regression, seed, **settings), replace(rows, X_train=train, X_test=test)


def behind_skrub(model: str, rows: Split, seed: int) -> Prepared:
    """The pipeline of skrub takes strings and dates as they stand in the table."""
    from skrub import StringEncoder, tabular_pipeline

    pipeline = tabular_pipeline(accuracy_models.make(model, rows.regression, seed))
    # its default but for the seed
    return pipeline.set_params(tablevectorizer__high_cardinality=StringEncoder(random_state=seed)), rows


def behind_target_encoder(model: str, rows: Split, seed: int) -> Prepared:
    """Strings are replaced by target statistics, missing numbers by medians; dates are calendar parts."""
    train, test = (tables_data.calendar(frame) for frame in (rows.X_train, rows.X_test))
    names = tables_data.strings(train)
    # whole numbers would count as classes
    encoder = TargetEncoder(target_type="continuous" if rows.regression else "auto", random_state=seed)
    imputer = SimpleImputer(strategy="median", keep_empty_features=True)
    columns = make_column_transformer((encoder, names), remainder=imputer)
    forest = accuracy_models.make(model, rows.regression, seed)
    return make_pipeline(columns, forest), replace(rows, X_train=train, X_test=test)


PREPARED: dict[str, Callable[[str, Split, int], Prepared]] = {
    GCE: as_it_is,
    CATBOOST: catboost,
    "LightGBM": categorical,
    "XGBoost": categorical,
    "HistGradientBoosting": behind_skrub,
    "RandomForest": behind_target_encoder,
}
MODELS = (*PREPARED, AUTOGLUON)


def importable(model: str) -> bool:
    """Whether what a model needs is installed here; of AutoGluon its own environment knows."""
    needed = {"HistGradientBoosting": "skrub"}.get(model)
    return model == AUTOGLUON or (
        (needed is None or find_spec(needed) is not None) and accuracy_models.importable(model)
    )


def measure(model: str, table: str, seed: int, python: str | None) -> Row:
    """One fit, in the process that calls this: figures on the rows to judge by, seconds and origin, or a failure."""
    rows = tables_data.cut(table, seed)
    with accuracy_models.quietly():
        try:
            if model == AUTOGLUON:
                return elsewhere(rows, str(python))
            accuracy_models.warm_up(model, 5, rows.regression)
            figures = accuracy_models.judged(*PREPARED[model](model, rows, seed))
        except Exception as error:  # a model that fails is a result, and the other cells still run
            figures = {"failed": accuracy_models.reason(error)}
    return {**figures, **accuracy_models.origin(model)}


def elsewhere(rows: Split, python: str) -> Row:
    """AutoGluon's fit by the interpreter ``python`` of an environment of its own; the figures are found here."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows.X_train.assign(**{TARGET: rows.y_train}).to_parquet(folder / "train.parquet")
        rows.X_test.to_parquet(folder / "test.parquet")
        task = {"target": TARGET, "regression": rows.regression, "seconds": TIME_LIMIT, "threads": THREADS}
        (folder / "task.json").write_text(json.dumps(task))
        worker = Path(__file__).with_name("tables_autogluon.py")
        done = subprocess.run([python, str(worker), name], capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise RuntimeError(f"AutoGluon ended with status {done.returncode}: {last}")
        found = json.loads((folder / "answer.json").read_text())
        with np.load(folder / "answer.npz", allow_pickle=False) as held:
            answer = dict(held)
    if rows.regression:
        figures = accuracy_models.errors(rows.y_test, answer["answer"])
    else:
        figures = accuracy_models.mistakes(rows.y_test, answer["answer"], answer["proba"], answer["classes"])
    where = {"threads": THREADS, "version": found.pop("version"), "machine": accuracy_models.machine()}
    return {**figures, **found, **where, "environment": "its own"}


#: The target's name on the way to AutoGluon, which no column has.
TARGET = "the target"
