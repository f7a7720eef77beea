"""Named data sets -> rows, parts, metric."""

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

#: From so many rows on X is float32: kddcup99 would take 5 GB else.
LARGE = 50_000


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, cut and scaled.

    Parameters
    ----------
    name : str
        The paper's name.
    task : {"regression", "classification"}
    metric : {"mae", "error"}
        What the paper reports of it: mean absolute error, or the share of wrong classes.
    X_train, X_val, X_test : array of shape (rows, d)
        float64; float32 for the five sets of 50,000 rows and more (msd, cifar10_f, mnist, covertype, kddcup99).
    y_train, y_val, y_test : array of shape (rows,)
        float64 for regression, never scaled; codes 0 to ``classes - 1`` (int64) for classification.
    classes : int
        0 for regression.
    note : str
        How this set differs from what its name promises; usually empty.
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
    """One of the paper's data sets, cut into three parts and scaled.

    Parameters
    ----------
    name : str
        One of ``NAMES``, or a name of the data folder: ``california`` is ca_housing, ``kddcup99_10pct`` the tenth of
        kddcup99. ``kddcup99`` itself is the full file; where that is absent and the tenth is there, the tenth, with a
        note that says so.
    split : int, optional
        None: the cut of the authors' code, see ``gce.datasets.splits.reference``. A seed: a random cut of all rows
        into parts of the same sizes.
    floored : bool
        Targets of ca_housing truncated to integers, as the paper's figures have them. An error for other sets.
    data_home : path, optional
        Where files are looked for and kept; default ``GCE_DATA_HOME``, else a cache folder.
    download : bool
        Whether a missing file may be fetched from its source.

    Returns
    -------
    Dataset

    Notes
    -----
    Columns are scaled by mean and standard deviation (ddof 1) of training and validation rows together, those with a
    standard deviation up to 1e-9 only centred. Exceptions: covertype's ten measured columns by fixed constants, its 44
    indicators not at all; mnist is deskewed and scaled by two numbers; msd has one unit for each timbre and targets
    counted from 1967; kddcup99's text columns are indicators. On a random split covertype and mnist are scaled by what
    is measured on its training and validation rows, in place of the constants.
    """
    spec = registry.find(name)
    if floored and spec.name != "ca_housing":
        raise ValueError(f"only ca_housing has floored targets; floored=True was given for {spec.name}")
    if split is not None and (isinstance(split, bool) or not isinstance(split, Integral) or split < 0):
        raise ValueError(f"split must be None or a seed, an integer of 0 or more; got {split!r}")
    home = files.data_home(data_home)
    spec = at_hand(spec, home)
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
    return _assembled(spec, rows, np.trunc(y) if floored else y, cut, scale, note)


def present(name: str, data_home: PathLike | None = None) -> bool:
    """Whether a set can be loaded without a download. Checksums are not looked at: a bad file should be heard of."""
    home, spec = files.data_home(data_home), registry.find(name)
    return there(at_hand(spec, home), home)


def _prepared(spec: Spec, home: Path) -> Path:
    return home / f"{spec.file}.npz"


def there(spec: Spec, home: Path) -> bool:
    """Whether a set's own files are there, prepared or as its source has them."""
    if not spec.file or _prepared(spec, home).exists():
        return True
    return bool(spec.sources) and all((home / source.file).exists() for source in spec.sources)


def at_hand(spec: Spec, home: Path) -> Spec:
    """The set itself, or its stand-in where only that is there."""
    if spec.stand_in and not there(spec, home):
        other = registry.find(spec.stand_in)
        return other if there(other, home) else spec
    return spec


def _arrays(spec: Spec, home: Path, download: bool) -> Arrays:
    """A set as its file has it, checked: carried by scikit-learn, prepared, or converted now and kept."""
    if not spec.file:
        bunch = _BUNDLED[spec.name]()
        return {"X": bunch.data, "y": bunch.target}
    path = _prepared(spec, home)
    if path.exists():
        arrays = files.read_npz(path, spec.digest)
        _check_shape(spec, arrays, path)
        return arrays
    if not spec.sources or not (download or there(spec, home)):
        raise MissingDataError(_how_to_get(spec, home))
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


_MOVE = "It is left as it is: move it and its .sha256 away to have it downloaded anew"

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
    """Names of the arrays that a set is made of."""
    if spec.name != "kddcup99":
        return ["X", "y"]
    return ["X", "y", *convert.KDD_BYTES, *(f"cat_{j}" for j in convert.KDD_TEXT)]


def _check_values(spec: Spec, arrays: Arrays, path: Path) -> None:
    if spec.values and (found := files.values_of(arrays)) != spec.values:
        raise CorruptDataError(
            f"{path} does not hold the numbers of {spec.name}: expected sha256 {spec.values} of X and y, "
            f"found {found}. {_MOVE}"
        )


def _how_to_get(spec: Spec, home: Path) -> str:
    if not spec.sources:
        return (
            f"{spec.file}.npz is not in {home}: put the prepared file there, or make it from CIFAR-10 "
            f"({registry.CIFAR10.addresses[0]}) by running python -m paper.cifar10_features in the project's repository"
        )
    missing = [source for source in spec.sources if not (home / source.file).exists()]
    names = ", ".join(source.file for source in missing)
    addresses = ", ".join(source.addresses[0] for source in missing)
    return f"{spec.name} needs {names} in {home}: get it from {addresses} and put it there, or allow the download"


def _targets(spec: Spec, y: NDArray[Any]) -> NDArray[Any]:
    return y.astype(np.float64 if spec.task == "regression" else np.int64) - spec.origin


def _assembled(
    spec: Spec, rows: scaling.Rows, y: NDArray[Any], cut: splits.Split, scale: scaling.Scaling, note: str
) -> Dataset:
    dtype = np.dtype(np.float32 if spec.rows >= LARGE else np.float64)
    parts: dict[str, NDArray[Any]] = {}
    for part, index in (("train", cut.train), ("val", cut.validation), ("test", cut.test)):
        parts[f"X_{part}"] = scale.part(rows, index, dtype)
        parts[f"y_{part}"] = y[index]
    return Dataset(name=spec.name, task=spec.task, metric=spec.metric, classes=spec.classes, note=note, **parts)
