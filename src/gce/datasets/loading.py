"""Load a data set by name: split, scaled, with its metric."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

from gce.datasets import convert, files, registry, scaling, splits
from gce.datasets.download import obtain
from gce.datasets.files import Arrays, CorruptDataError, MissingDataError
from gce.datasets.registry import Spec

PathLike = str | os.PathLike[str]

#: Number of rows from which X is float32, since kddcup99 would take 5 GB in float64.
LARGE = 50_000


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, split and scaled.

    Parameters
    ----------
    name : str
        The paper's name.
    task : {"regression", "classification"}
    metric : {"mae", "error"}
        The metric of the paper: mean absolute error or misclassification rate.
    X_train : array of shape (rows, d)
        Of float64, or float32 for the five sets of at least 50,000 rows (msd, cifar10_f, mnist, covertype, kddcup99).
    y_train : array of shape (rows,)
        Numbers, never scaled, for regression; codes 0 to ``classes - 1`` (int64) for classification.
    X_val, y_val, X_test, y_test : array
        The same for the validation and the test rows.
    classes : int
        Number of classes; 0 for regression.
    note : str
        A deviation from the paper's set; usually empty.

    Examples
    --------
    >>> from gce import datasets
    >>> wine = datasets.load("wine")
    >>> wine.task, wine.metric, wine.classes
    ('classification', 'error', 3)
    """

    name: str
    task: str
    metric: str
    X_train: NDArray[Any] = field(repr=False)
    y_train: NDArray[Any] = field(repr=False)
    X_val: NDArray[Any] = field(repr=False)
    y_val: NDArray[Any] = field(repr=False)
    X_test: NDArray[Any] = field(repr=False)
    y_test: NDArray[Any] = field(repr=False)
    classes: int
    note: str


def load(
    name: str,
    *,
    split: int | None = None,
    floored: bool = False,
    data_home: PathLike | None = None,
    download: bool = True,
) -> Dataset:
    """Load a data set of the paper, split into three parts and scaled.

    Parameters
    ----------
    name : str
        One of ``NAMES``, ``california`` for ca_housing, or ``kddcup99_10pct`` for 10 % of kddcup99. ``kddcup99`` is the
        full file; if only the 10 % file is present, that is loaded, with a note.
    split : int, optional
        None: the split of the authors' code, see ``gce.datasets.splits.reference``. A seed: a random split of all rows
        into parts of the same sizes.
    floored : bool, default=False
        Truncate the targets of ca_housing to integers, as in the figures of the paper. An error for other sets.
    data_home : path, optional
        The data folder; default ``GCE_DATA_HOME``, else a cache folder.
    download : bool, default=True
        Whether a missing file may be downloaded from its source.

    Returns
    -------
    Dataset

    Notes
    -----
    Columns are standardised by mean and standard deviation (ddof 1) of training and validation rows together; columns
    with a standard deviation up to 1e-9 are only centred. Exceptions: ten numeric columns of covertype are scaled by
    fixed constants, its 44 indicators not at all; mnist is deskewed and scaled by two numbers; msd has one unit per
    timbre and targets counted from 1967; text columns of kddcup99 are one-hot encoded. On a random split, covertype and
    mnist are scaled by statistics of its training and validation rows instead of the constants.

    Examples
    --------
    >>> from gce import datasets
    >>> iris = datasets.load("iris")
    >>> iris.X_train.shape, iris.X_val.shape, iris.X_test.shape
    ((96, 4), (24, 4), (30, 4))
    >>> datasets.load("iris", split=3).X_train.shape
    (96, 4)
    """
    spec = registry.find(name)
    if floored and spec.name != "ca_housing":
        raise ValueError(f"only ca_housing has floored targets, got floored=True for {spec.name}")
    if split is not None and (isinstance(split, bool) or not isinstance(split, Integral) or split < 0):
        raise ValueError(f"split must be None or a nonnegative integer seed, got {split!r}")
    home = files.data_home(data_home)
    spec = available(spec, home)
    arrays = _arrays(spec, home, download)
    rows = scaling.rows_of(spec, arrays)
    if split is None:
        cut, scale = splits.reference(spec, spec.rows), scaling.fixed(spec, rows)
    else:
        cut, scale = splits.repeated(spec, spec.rows, int(split)), None
    if scale is None:
        scale = scaling.RULES[spec.rule](spec, rows, cut.fitted)
    y = _targets(spec, arrays["y"])
    note = "; ".join(filter(None, [spec.note, "targets floored" if floored else ""]))
    return _assemble(spec, rows, np.trunc(y) if floored else y, cut, scale, note)


def present(name: str, data_home: PathLike | None = None) -> bool:
    """Whether a data set can be loaded without a download; checksums are not verified.

    Parameters
    ----------
    name : str
        As in :func:`load`.
    data_home : path, optional
        The data folder; default ``GCE_DATA_HOME``, else a cache folder.

    Returns
    -------
    bool

    Examples
    --------
    >>> from gce import datasets
    >>> datasets.present("iris")
    True
    """
    home, spec = files.data_home(data_home), registry.find(name)
    return is_present(available(spec, home), home)


def _prepared(spec: Spec, home: Path) -> Path:
    return home / f"{spec.file}.npz"


def is_present(spec: Spec, home: Path) -> bool:
    """Whether the files of a data set are in the data folder, prepared or as downloaded."""
    if not spec.file or _prepared(spec, home).exists():
        return True
    return bool(spec.sources) and all((home / source.file).exists() for source in spec.sources)


def available(spec: Spec, home: Path) -> Spec:
    """The data set, or its substitute if only that is present."""
    if spec.stand_in and not is_present(spec, home):
        other = registry.find(spec.stand_in)
        return other if is_present(other, home) else spec
    return spec


def _arrays(spec: Spec, home: Path, download: bool) -> Arrays:
    """The arrays of a data set, verified: from scikit-learn, prepared, or converted and stored."""
    if not spec.file:
        bunch = _BUNDLED[spec.name]()
        return {"X": bunch.data, "y": bunch.target}
    path = _prepared(spec, home)
    if path.exists():
        arrays = files.read_npz(path, spec.digest)
        _check_shape(spec, arrays, path)
        return arrays
    if not spec.sources or not (download or is_present(spec, home)):
        raise MissingDataError(_download_hint(spec, home))
    sources = [obtain(source, home) for source in spec.sources]
    try:
        arrays = convert.CONVERTERS[spec.file](sources)
    except files.UNREADABLE as error:
        words = f"{sources[0]} could not be read as {spec.name}: {files.reason(error)}"
        raise CorruptDataError(f"{words}. {_MOVE}") from error
    _check_shape(spec, arrays, sources[0])
    _check_values(spec, arrays, sources[0])
    if os.access(home, os.W_OK):
        files.write_npz(path, arrays)
    return arrays


_MOVE = "The file was left in place: move it and its .sha256 away to download it again"

_BUNDLED: dict[str, Callable[[], Any]] = {
    "diabetes": bundled.load_diabetes,
    "iris": bundled.load_iris,
    "wine": bundled.load_wine,
    "breast_cancer": bundled.load_breast_cancer,
    "digits": bundled.load_digits,
}


def _check_shape(spec: Spec, arrays: Arrays, path: Path) -> None:
    missing = [name for name in _needed(spec) if name not in arrays]
    if missing:
        raise CorruptDataError(f"{path} holds {sorted(arrays)}, but not {', '.join(missing)} of {spec.name}. {_MOVE}")
    shape, expected = arrays["X"].shape, (spec.rows, spec.columns)
    if shape != expected or arrays["y"].shape != expected[:1]:
        raise CorruptDataError(f"{path} holds {shape} values of X where {spec.name} has {expected}. {_MOVE}")


def _needed(spec: Spec) -> list[str]:
    """Names of the arrays of a data set."""
    if spec.name != "kddcup99":
        return ["X", "y"]
    return ["X", "y", *convert.KDD_BYTES, *(f"cat_{j}" for j in convert.KDD_TEXT)]


def _check_values(spec: Spec, arrays: Arrays, path: Path) -> None:
    if spec.values and (found := files.values_of(arrays)) != spec.values:
        raise CorruptDataError(
            f"{path} does not hold the numbers of {spec.name}: expected sha256 {spec.values} of X and y, "
            f"found {found}. {_MOVE}"
        )


def _download_hint(spec: Spec, home: Path) -> str:
    if not spec.sources:
        return (
            f"{spec.file}.npz is not in {home}: put the prepared file there, or make it from CIFAR-10 "
            f"({registry.CIFAR10.addresses[0]}) by running python -m paper.cifar10_features in the project's repository"
        )
    missing = [source for source in spec.sources if not (home / source.file).exists()]
    names = ", ".join(source.file for source in missing)
    addresses = ", ".join(source.addresses[0] for source in missing)
    return f"{spec.name} needs {names} in {home}: download it from {addresses} and put it there, or allow the download"


def _targets(spec: Spec, y: NDArray[Any]) -> NDArray[Any]:
    return y.astype(np.float64 if spec.task == "regression" else np.int64) - spec.origin


def _assemble(
    spec: Spec, rows: scaling.NumericRows, y: NDArray[Any], cut: splits.Split, scale: scaling.Scaling, note: str
) -> Dataset:
    dtype = np.dtype(np.float32 if spec.rows >= LARGE else np.float64)
    parts: dict[str, NDArray[Any]] = {}
    for part, index in (("train", cut.train), ("val", cut.validation), ("test", cut.test)):
        parts[f"X_{part}"] = scale.part(rows, index, dtype)
        parts[f"y_{part}"] = y[index]
    return Dataset(name=spec.name, task=spec.task, metric=spec.metric, classes=spec.classes, note=note, **parts)
