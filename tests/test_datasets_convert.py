"""Every source format, on tiny made-up files: what goes in comes out with the prepared file's meaning."""

import gzip
import io
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from sklearn.datasets import fetch_california_housing

from gce.datasets import convert


def test_boston_has_rows_on_two_lines(tmp_path):
    table = np.random.default_rng(0).uniform(0, 100, (5, 14)).round(3)
    lines = [f" prose, line {i}, with numbers 1.5 and 2" for i in range(22)]
    for row in table:
        lines += [" ".join(f"{x:8.3f}" for x in row[:11]), "  " + " ".join(f"{x:.3f}" for x in row[11:])]
    path = tmp_path / "boston"
    path.write_text("\n".join(lines) + "\n")
    arrays = convert.boston([path])
    np.testing.assert_array_equal(arrays["X"], table[:, :13])
    np.testing.assert_array_equal(arrays["y"], table[:, 13])


def test_california_has_scikit_learns_form(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(-124, -114, 6), rng.uniform(32, 42, 6), *rng.integers(1, 5000, (7, 6))])
    path = tmp_path / "cal_housing.tgz"
    with tarfile.open(path, "w:gz") as archive:
        text = io.StringIO()
        np.savetxt(text, table, delimiter=",", fmt="%.6f")
        data = text.getvalue().encode()
        info = tarfile.TarInfo("CaliforniaHousing/cal_housing.data")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    arrays = convert.california([path])

    # scikit-learn's own reading of the same archive
    import sklearn.datasets._california_housing as theirs

    monkeypatch.setattr(theirs, "_fetch_remote", lambda remote, dirname, **_: str(path.rename(tmp_path / "given.tgz")))
    bunch = fetch_california_housing(data_home=tmp_path)
    np.testing.assert_allclose(arrays["X"], bunch.data, rtol=1e-12)
    np.testing.assert_allclose(arrays["y"], bunch.target, rtol=1e-12)


def test_msd_is_a_text_in_a_zip(tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "_BLOCK_LINES", 3)
    rng = np.random.default_rng(0)
    years, X = rng.integers(1922, 2012, 8), rng.normal(0, 100, (8, 90)).round(5)
    lines = [",".join([str(year), *(f"{x:.5f}" for x in row)]) for year, row in zip(years, X, strict=True)]
    path = tmp_path / "YearPredictionMSD.txt.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("YearPredictionMSD.txt", "\n".join(lines) + "\n")
    arrays = convert.msd([path])
    np.testing.assert_array_equal(arrays["y"], years)
    np.testing.assert_array_equal(arrays["X"], X.astype(np.float32))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("another.csv", "1")
    with pytest.raises(ValueError, match=r"another\.csv"):
        convert.msd([path])


def test_covertype_keeps_the_files_order_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(-173, 7174, (9, 54)), rng.integers(1, 8, 9)])
    path = tmp_path / "covtype.data.gz"
    with gzip.open(path, "wt") as file:
        np.savetxt(file, table, delimiter=",", fmt="%d")
    arrays = convert.covertype([path])
    np.testing.assert_array_equal(arrays["X"], table[:, :54])
    np.testing.assert_array_equal(arrays["y"], table[:, 54])


def idx(path, values):
    with gzip.open(path, "wb") as file:
        file.write(struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes())
    return path


def test_mnist_is_four_idx_files(tmp_path):
    rng = np.random.default_rng(0)
    images, test_images = (rng.integers(0, 256, (n, 4, 3), dtype=np.uint8) for n in (5, 2))
    labels, test_labels = (rng.integers(0, 10, n, dtype=np.uint8) for n in (5, 2))
    paths = [idx(tmp_path / str(i), a) for i, a in enumerate([images, labels, test_images, test_labels])]
    arrays = convert.mnist(paths)
    np.testing.assert_array_equal(arrays["X"][:5].reshape(5, 4, 3), images)
    np.testing.assert_array_equal(arrays["X"][5:].reshape(2, 4, 3), test_images)
    np.testing.assert_array_equal(arrays["y"], [*labels, *test_labels])
    with gzip.open(paths[0], "wb") as file:
        file.write(b"<html>no such page</html>")
    with pytest.raises(ValueError, match="not an idx file"):
        convert.mnist(paths)


def test_kddcup99_codes_words_and_keeps_counts_exact(tmp_path, monkeypatch):
    monkeypatch.setattr(convert, "_BLOCK_LINES", 2)
    words = {
        1: ["tcp", "udp", "tcp", "icmp", "tcp"],
        2: ["http", "domain_u", "smtp", "ecr_i", "http"],
        3: ["SF", "SF", "REJ", "SF", "S0"],
        41: ["normal.", "normal.", "neptune.", "smurf.", "neptune."],
    }
    source = [693_375_640, 123_456_789, 5, 0, 77]
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 255, (5, 42))
    rows = [[words[j][i] if j in words else str(numbers[i, j]) for j in range(42)] for i in range(5)]
    for i, row in enumerate(rows):
        row[4], row[24] = str(source[i]), f"0.{i}0"
    path = tmp_path / "kddcup.data.gz"
    with gzip.open(path, "wt") as file:
        file.write("".join(",".join(row) + "\n" for row in rows))
    arrays = convert.kddcup99([path])
    assert arrays["X"].shape == (5, 41)
    for j in (1, 2, 3):
        assert list(arrays[f"cat_{j}"]) == sorted(set(words[j]))
        assert [str(arrays[f"cat_{j}"][code]) for code in arrays["X"][:, j].astype(int)] == words[j]
    assert [str(arrays["classes"][code]) for code in arrays["y"]] == words[41]
    np.testing.assert_array_equal(arrays["src_bytes"], source)
    np.testing.assert_array_equal(arrays["dst_bytes"], numbers[:, 5])
    np.testing.assert_array_equal(arrays["X"][:, 22], numbers[:, 22])
    np.testing.assert_allclose(arrays["X"][:, 24], [0.0, 0.1, 0.2, 0.3, 0.4], atol=1e-7)
    np.testing.assert_array_equal(arrays["cat_cols"], [1, 2, 3])
