"""Conversion of source files to arrays: ``X``, ``y``, and codes and categories of text columns."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.datasets.files import Arrays

_BLOCK_LINES = 100_000

_BOSTON_HEADER = 22

#: Text columns of kddcup99, and the two whose counts exceed what float32 holds exactly.
KDD_TEXT = (1, 2, 3)
KDD_BYTES = {"src_bytes": 4, "dst_bytes": 5}


def boston(paths: Sequence[Path]) -> Arrays:
    """StatLib's text: 22 lines of prose, then each row on two lines, eleven numbers and three."""
    lines = paths[0].read_text(encoding="latin-1").splitlines()[_BOSTON_HEADER:]
    table = np.array(" ".join(lines).split(), dtype=np.float64).reshape(-1, 14)
    return {"X": table[:, :13], "y": table[:, 13]}


def california(paths: Sequence[Path]) -> Arrays:
    """The archive's nine columns in scikit-learn's form: totals per household, value in units of 100,000."""
    with tarfile.open(paths[0], "r:gz") as archive:
        member = archive.extractfile("CaliforniaHousing/cal_housing.data")
        if member is None:
            raise ValueError("CaliforniaHousing/cal_housing.data is not a file")
        table = np.loadtxt(member, delimiter=",")
    longitude, latitude, age, rooms, bedrooms, population, households, income, value = table.T
    columns = (
        income, age, rooms / households, bedrooms / households, population, population / households, latitude, longitude
    )  # fmt: skip
    return {"X": np.stack(columns, axis=1), "y": value / 100_000}


def msd(paths: Sequence[Path]) -> Arrays:
    """UCI's text in a zip: the year, 12 timbre means, then the covariances diagonal by diagonal."""
    with zipfile.ZipFile(paths[0]) as archive:
        names = [name for name in archive.namelist() if name.endswith(".txt")]
        if len(names) != 1:
            raise ValueError(f"one text was expected in the archive, it holds {archive.namelist()}")
        with archive.open(names[0]) as member:
            table = _numbers(io.TextIOWrapper(member, encoding="ascii"), np.dtype(np.float32))
    return {"X": table[:, 1:], "y": table[:, 0].astype(np.int16)}


def covertype(paths: Sequence[Path]) -> Arrays:
    """UCI's text: 54 columns of integers and the class, 1 to 7, in the file's order."""
    with gzip.open(paths[0], "rt", encoding="ascii") as file:
        table = _numbers(file, np.dtype(np.int16))
    return {"X": table[:, :54], "y": table[:, 54].astype(np.uint8)}


def mnist(paths: Sequence[Path]) -> Arrays:
    """Four idx files: training images, training labels, test images, test labels."""
    images, labels, test_images, test_labels = (_idx(path) for path in paths)
    X = np.concatenate([images, test_images])
    return {"X": X.reshape(len(X), -1), "y": np.concatenate([labels, test_labels])}


def kddcup99(paths: Sequence[Path]) -> Arrays:
    """The contest's text: 41 columns, three of them words, and the name of the attack.

    Text becomes indices into sorted categories, ``cat_1`` to ``cat_3``; attack names are in ``classes``.
    """
    kinds = [f"f{j}" for j in range(42)]
    form = np.dtype([(kind, _kdd_type(j)) for j, kind in enumerate(kinds)])
    with gzip.open(paths[0], "rt", encoding="ascii") as file:
        blocks = [np.loadtxt(lines, dtype=form, delimiter=",", ndmin=1) for lines in _blocks(file)]
    column = {j: np.concatenate([block[kind] for block in blocks]) for j, kind in enumerate(kinds)}
    del blocks
    arrays: Arrays = {"cat_cols": np.array(KDD_TEXT)}
    X = np.empty((len(column[0]), 41), dtype=np.float32)
    for j in range(41):
        if j in KDD_TEXT:
            arrays[f"cat_{j}"], X[:, j] = _coded(column[j])
        else:
            X[:, j] = column[j]
    arrays["classes"], codes = _coded(column[41])
    return {**arrays, "X": X, "y": codes.astype(np.uint8), **{name: column[j] for name, j in KDD_BYTES.items()}}


def _kdd_type(j: int) -> str:
    if j in KDD_TEXT or j == 41:
        return "S16"
    return "i8" if j in KDD_BYTES.values() else "f4"


def _coded(words: NDArray[np.bytes_]) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    categories, codes = np.unique(words, return_inverse=True)
    return categories.astype(np.str_), codes


def _blocks(lines: Iterator[str]) -> Iterator[list[str]]:
    """Blocks of lines: parsing a whole file would need several times its memory."""
    while block := list(islice(lines, _BLOCK_LINES)):
        yield block


def _numbers(lines: Iterator[str], dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.concatenate([np.loadtxt(block, dtype=dtype, delimiter=",", ndmin=2) for block in _blocks(lines)])


def _idx(path: Path) -> NDArray[np.uint8]:
    """An idx file of bytes: two zeros, the type 8, the number of axes, their lengths, the values."""
    with gzip.open(path, "rb") as file:
        data = file.read()
    zeros, kind, axes = struct.unpack_from(">HBB", data)
    if (zeros, kind) != (0, 8):
        raise ValueError(f"{path.name} is not an idx file of bytes: it begins with {data[:4].hex()}")
    shape = struct.unpack_from(f">{axes}I", data, 4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


#: By the stem of the prepared file.
CONVERTERS: dict[str, Callable[[Sequence[Path]], Arrays]] = {
    "boston": boston,
    "california": california,
    "msd": msd,
    "covertype": covertype,
    "mnist": mnist,
    "kddcup99": kddcup99,
    "kddcup99_10pct": kddcup99,
}
