"""What five models answer on california, adult and digits: out of fold on the training rows, refitted on the test rows.

The split is ``RandomState(seed).permutation(n)``, the first 80 % to fit on; folds are five shuffled ones of the seed,
stratified for classes. Every fit is a task with a file of its own, so that a run that is killed goes on where it was;
the answers of a set and a seed are joined in one file as soon as they are whole.

Needs numpy, scipy, scikit-learn and torch alone: adult's categories are codes, and every member is told which they are.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data_sets import load
from numpy.typing import NDArray
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gce

Array = NDArray[np.float64]

SETS = ("adult", "california", "digits")  # the longest fits first
REGRESSION = ("california",)
FOLDS = 5
#: The part of a task that is refitted on all training rows.
WHOLE = FOLDS
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Rows:
    """A data set, cut by a seed; ``y`` are numbers or class codes, ``categories`` columns of codes."""

    X: Array
    y: NDArray[Any]
    categories: list[int]
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    regression: bool

    def folds(self, seed: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Places within the training rows: to fit on, and to answer for."""
        kind = KFold if self.regression else StratifiedKFold
        cut = kind(FOLDS, shuffle=True, random_state=seed)
        return list(cut.split(self.X[self.train], self.y[self.train]))


def cut(name: str, seed: int, most: int | None) -> Rows:
    """A data set by name, its first ``most`` rows in the seed's order, four fifths of them to fit on."""
    X, y = load(name)
    order = np.random.RandomState(seed).permutation(len(X))[:most]
    train, test = np.split(order, [int(0.8 * len(order))])
    regression = name in REGRESSION
    y = y.astype(np.float64) if regression else np.unique(y, return_inverse=True)[1]
    return Rows(X.astype(np.float64), y, _categories(name), train, test, regression)


def _categories(name: str) -> list[int]:
    path = Path(os.environ.get("GCE_DATA_HOME", "")) / f"{name}.npz"
    if not path.exists():
        return []
    with np.load(path, allow_pickle=False) as held:
        return held["cat_cols"].tolist() if "cat_cols" in held else []


def forest(rows: Rows, seed: int) -> Any:
    return (RandomForestRegressor if rows.regression else RandomForestClassifier)(random_state=seed)


def boosting(rows: Rows, seed: int) -> Any:
    kind = HistGradientBoostingRegressor if rows.regression else HistGradientBoostingClassifier
    return kind(categorical_features=rows.categories or None, random_state=seed)


def _standardised(rows: Rows) -> Any:
    """Numbers standardised, categories one-hot."""
    numbers = [j for j in range(rows.X.shape[1]) if j not in rows.categories]
    flags = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((StandardScaler(), numbers), (flags, rows.categories))


def perceptron(rows: Rows, seed: int) -> Any:
    if not rows.regression:
        return make_pipeline(_standardised(rows), MLPClassifier(random_state=seed))
    inner = make_pipeline(_standardised(rows), MLPRegressor(random_state=seed))
    return TransformedTargetRegressor(inner, transformer=StandardScaler())


def linear(rows: Rows, seed: int) -> Any:
    last = Ridge(random_state=seed) if rows.regression else LogisticRegression(max_iter=1000, random_state=seed)
    return make_pipeline(_standardised(rows), last)


def greedy(rows: Rows, seed: int) -> Any:
    kind = gce.GCERegressor if rows.regression else gce.GCEClassifier
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return kind(categorical_features=rows.categories, device=device, random_state=seed, verbose=False)


MEMBERS: dict[str, Callable[[Rows, int], Any]] = {
    "MLP": perceptron,
    "GCE": greedy,
    "RandomForest": forest,
    "HistGradientBoosting": boosting,
    "linear": linear,
}


@dataclass(frozen=True)
class Task:
    """One fit: a member on all training rows but one fold, or (the part after the last fold) on all of them."""

    name: str
    seed: int
    member: str
    part: int
    most: int | None

    def file(self, folder: Path) -> Path:
        return folder / "tasks" / f"{self.name}-{self.seed}-{self.member}-{self.part}.npz"

    @property
    def on_gpu(self) -> bool:
        return self.member == "GCE" and torch.cuda.is_available()


def fit(task: Task, folder: Path) -> None:
    """Fit and ask for the rows left out, and for the test rows, ``(rows, k)`` each, into the task's file."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # defaults are what is compared, the number of epochs too
    rows = cut(task.name, task.seed, task.most)
    fitted, predicted = rows.train, rows.test
    if task.part != WHOLE:
        inside, outside = rows.folds(task.seed)[task.part]
        fitted, predicted = rows.train[inside], rows.train[outside]
    model = MEMBERS[task.member](rows, task.seed).fit(rows.X[fitted], rows.y[fitted])
    if not rows.regression and not np.array_equal(model.classes_, np.unique(rows.y)):
        raise ValueError(f"{task}: a fold without a row of some class; use more rows")

    def predict(index: NDArray[np.intp]) -> Array:
        return model.predict(rows.X[index])[:, None] if rows.regression else model.predict_proba(rows.X[index])

    _save(task.file(folder), answer=predict(predicted), test=predict(rows.test))


def _save(path: Path, **arrays: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.half")
    with half.open("wb") as out:
        np.savez_compressed(out, **arrays)
    half.rename(path)


def joined(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name}-{seed}.npz"


def tasks_of(name: str, seed: int, most: int | None) -> list[Task]:
    return [Task(name, seed, member, part, most) for member, part in product(MEMBERS, range(FOLDS + 1))]


def _join(folder: Path, name: str, seed: int, most: int | None) -> bool:
    """Put the answers of a set and a seed together, where all are there."""
    tasks = tasks_of(name, seed, most)
    if not all(task.file(folder).exists() for task in tasks):
        return False
    rows = cut(name, seed, most)
    saved = {(task.member, task.part): dict(np.load(task.file(folder))) for task in tasks}
    k = saved[tasks[0].member, WHOLE]["test"].shape[1]
    held_out = np.full((len(MEMBERS), len(rows.train), k), np.nan)
    for (j, member), (part, (_, outside)) in product(enumerate(MEMBERS), enumerate(rows.folds(seed))):
        held_out[j, outside] = saved[member, part]["answer"]
    _save(
        joined(folder, name, seed),
        held_out=held_out,
        test=np.stack([saved[member, WHOLE]["test"] for member in MEMBERS]),
        test_folds=np.stack([np.mean([saved[member, f]["test"] for f in range(FOLDS)], 0) for member in MEMBERS]),
        y_train=rows.y[rows.train],
        y_test=rows.y[rows.test],
        members=np.array(list(MEMBERS)),
        machine=np.array(machine()),
    )
    return True


def machine() -> str:
    chip = f", {torch.cuda.get_device_name()}" if torch.cuda.is_available() else ""
    return f"{platform.machine()}, {os.cpu_count()} cores{chip}, Python {platform.python_version()}"


def answer(
    folder: Path, sets: list[str], seeds: list[int], most: int | None, jobs: int, gpu_jobs: int, seconds: float
) -> Iterator[str]:
    """Fit what has no answer yet, on ``jobs`` processes of one thread and ``gpu_jobs`` for the GPU; begin no fit after
    ``seconds``. Yields a line of words a fit.
    """
    began = time.monotonic()
    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for the processes to be: this one is loaded already
    wanted = [(name, seed) for name, seed in product(sets, seeds) if not joined(folder, name, seed).exists()]
    wanted = [pair for pair in wanted if not _join(folder, *pair, most)]
    todo = [task for pair in wanted for task in tasks_of(*pair, most) if not task.file(folder).exists()]
    with ExitStack() as stack:
        pools = [_pool(stack, jobs), _pool(stack, gpu_jobs)]
        running = {pools[task.on_gpu].submit(fit, task, folder): task for task in todo}
        for done, future in enumerate(as_completed(running), 1):
            future.result()
            task = running[future]
            whole = _join(folder, task.name, task.seed, most)
            yield f"{done}/{len(todo)} {task.name} {task.seed} {task.member} {task.part}{' (whole)' if whole else ''}"
            if time.monotonic() - began > seconds:
                for waiting in running:
                    waiting.cancel()
                return  # what has begun is finished, and joined by the next run


def _pool(stack: ExitStack, jobs: int) -> ProcessPoolExecutor:
    return stack.enter_context(ProcessPoolExecutor(jobs, get_context("spawn")))


def held(folder: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """The joined answers that are there: a set, a seed, and the arrays."""
    for path in sorted(folder.glob("*-*.npz")):
        name, _, seed = path.stem.rpartition("-")
        with np.load(path, allow_pickle=False) as arrays:
            yield name, int(seed), {key: arrays[key] for key in arrays}
