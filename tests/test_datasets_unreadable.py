"""Files that cannot be read although nothing speaks against their checksum: each is refused by its name."""

import io
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pytest

from gce import datasets
from gce.datasets import files, registry

ROWS = np.random.default_rng(0).uniform(0, 100, (506, 14)).round(3)


def zipped_text(rows):
    """A made-up msd in UCI's form."""
    table = np.random.default_rng(0).normal(size=(rows, 91)).round(3)
    archive, text = io.BytesIO(), io.StringIO()
    np.savetxt(text, table, delimiter=",", fmt="%.3f")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("YearPredictionMSD.txt", text.getvalue())
    return archive.getvalue()


def test_a_spoilt_archive_is_refused_by_name_wherever_it_is_spoilt(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.SPECS, "msd", replace(registry.SPECS["msd"], rows=20, test_from=15))
    good = zipped_text(20)
    raised, words = [], []
    for trial, place in enumerate([*range(60), *range(60, len(good) - 160, 97), *range(len(good) - 160, len(good))]):
        home = tmp_path / str(trial)
        home.mkdir()
        path = home / "YearPredictionMSD.txt.zip"
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        try:
            datasets.load("msd", data_home=home, download=False)
        except datasets.CorruptDataError as error:
            raised.append(error)
            words.append(f"{path} could not be read as msd: ")
    assert all(map(str.startswith, map(str, raised), words))
    assert {zlib.error, zipfile.BadZipFile, NotImplementedError} < {type(error.__cause__) for error in raised}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"junk", "is not an npz file"),
        (None, "is not an npz file"),
        ({"Z": ROWS, "y": ROWS[:, 13]}, r"holds \['Z', 'y'\], but not X of boston"),
        ({"X": ROWS[:, :13]}, r"but not y of boston"),
    ],
)
def test_a_vouched_file_that_holds_something_else_is_refused_by_name(tmp_path, data, words):
    path = tmp_path / "boston.npz"
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif data is None:
        with path.open("wb") as file:
            np.save(file, ROWS)  # one array, not an archive
    else:
        np.savez(path, **data)
    files.record(path, files.digest_of(path))
    with pytest.raises(datasets.CorruptDataError, match=words) as error:
        datasets.load("boston", data_home=tmp_path)
    assert str(path) in str(error.value)


def test_a_vouched_kddcup99_without_its_categories_is_refused_by_name(tmp_path, monkeypatch):
    spec = replace(registry.SPECS["kddcup99_10pct"], rows=4, digest="")
    monkeypatch.setitem(registry.SPECS, "kddcup99_10pct", spec)
    files.write_npz(tmp_path / "kddcup99_10pct.npz", {"X": np.zeros((4, 41)), "y": np.zeros(4)})
    with pytest.raises(datasets.CorruptDataError, match=r"kddcup99_10pct\.npz.*not src_bytes, dst_bytes, cat_1"):
        datasets.load("kddcup99_10pct", data_home=tmp_path)


def test_pickled_arrays_are_not_read(tmp_path):
    np.savez(tmp_path / "boston.npz", X=np.array([{"a": 1}], dtype=object), y=ROWS[:, 13])
    files.record(tmp_path / "boston.npz", files.digest_of(tmp_path / "boston.npz"))
    with pytest.raises(datasets.CorruptDataError, match=r"boston\.npz could not be read.*allow_pickle=False"):
        datasets.load("boston", data_home=tmp_path)
