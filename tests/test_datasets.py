"""Data sets: the appendix's sizes, cuts and scaling against an independent computation, names, notes, the table."""

import doctest
import os
import random
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from gce import datasets
from gce.datasets import files, loading, registry, scaling, splits, summary

PAPER = {
    "diabetes": (282, 71, 89), "boston": (323, 81, 102), "iris": (96, 24, 30),
    "wine": (113, 29, 36), "breast_cancer": (364, 91, 114), "digits": (1149, 288, 360),
}  # fmt: skip


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """An empty data folder, whatever the machine has."""
    monkeypatch.setenv("GCE_DATA_HOME", str(tmp_path))
    return tmp_path


def put(home, monkeypatch, name, arrays, **changes):
    """A made-up prepared file under a set's name, with the registry told its size."""
    rows, columns = arrays["X"].shape
    spec = replace(registry.SPECS[name], rows=rows, columns=columns, digest="", **changes)
    monkeypatch.setitem(registry.SPECS, name, spec)
    files.write_npz(home / f"{spec.file}.npz", arrays)
    return spec


def made_up(rows, columns, seed=0):
    rng = np.random.default_rng(seed)
    return {"X": rng.normal(3.0, 5.0, (rows, columns)).astype(np.float32), "y": rng.uniform(0.2, 5, rows)}


@pytest.fixture
def boston(home, monkeypatch):
    arrays = made_up(506, 13)
    put(home, monkeypatch, "boston", arrays)
    return arrays


def parts(data):
    return [(data.X_train, data.y_train), (data.X_val, data.y_val), (data.X_test, data.y_test)]


def in_order(data):
    """All scaled rows in an order that does not depend on the cut of the targets."""
    return np.concatenate([X for X, _ in parts(data)]), np.concatenate([y for _, y in parts(data)])


@pytest.mark.parametrize("module", [datasets, loading, files, summary])
def test_the_examples_in_the_docstrings(module):
    done = doctest.testmod(module)
    assert done.failed == 0
    assert done.attempted > 1


def test_what_is_public_has_an_example():
    public = [getattr(datasets, name) for name in datasets.__all__]
    assert all("Examples\n" in value.__doc__ for value in public if callable(value))


def test_the_small_sets_have_the_appendix_sizes(boston):
    assert set(PAPER) == set(datasets.SMALL) < set(datasets.NAMES)
    for name, sizes in PAPER.items():
        data = datasets.load(name)
        assert tuple(len(X) for X, _ in parts(data)) == sizes
        assert all(len(X) == len(y) for X, y in parts(data))


def test_the_reference_cut_is_the_authors_shuffle():
    raw = load_wine()
    order = list(range(178))
    random.Random(997).shuffle(order)
    fitted, test = order[:142], order[142:]
    inner = list(range(142))
    random.Random(997).shuffle(inner)
    train = [fitted[i] for i in inner[:113]]
    mean, deviation = raw.data[fitted].mean(axis=0), raw.data[fitted].std(axis=0, ddof=1)
    data = datasets.load("wine")
    np.testing.assert_allclose(data.X_train, (raw.data[train] - mean) / deviation, atol=1e-12)
    np.testing.assert_allclose(data.X_test, (raw.data[test] - mean) / deviation, atol=1e-12)
    np.testing.assert_array_equal(data.y_train, raw.target[train])
    np.testing.assert_array_equal(data.y_test, raw.target[test])


@pytest.mark.parametrize("split", [None, 5])
@pytest.mark.parametrize("name", ["diabetes", "iris", "wine", "breast_cancer", "digits"])
def test_training_and_validation_rows_have_mean_0_and_deviation_1(name, split):
    data = datasets.load(name, split=split)
    fitted = np.concatenate([data.X_train, data.X_val])
    np.testing.assert_allclose(fitted.mean(axis=0), 0, atol=1e-12)
    deviation = fitted.std(axis=0, ddof=1)
    np.testing.assert_allclose(deviation[deviation > 0], 1, atol=1e-12)
    assert np.all(deviation > 0) == (name != "digits")  # some pixels of digits are never inked: only centred


def test_targets_are_never_scaled(boston):
    data = datasets.load("boston")
    np.testing.assert_array_equal(np.sort(in_order(data)[1]), np.sort(boston["y"]))
    assert data.y_train.dtype == np.float64
    assert data.X_train.dtype == np.float64


def test_repeated_splits_cover_all_rows_once_and_differ():
    raw = load_digits()
    first, again, other = (splits.repeated(registry.SPECS["digits"], 1797, seed) for seed in (0, 0, 1))
    for cut in (first, other):
        assert tuple(map(len, (cut.train, cut.validation, cut.test))) == PAPER["digits"]
        assert sorted(np.concatenate([cut.train, cut.validation, cut.test])) == list(range(1797))
    np.testing.assert_array_equal(first.train, again.train)
    assert set(first.test) != set(other.test)
    data = datasets.load("digits", split=0)
    np.testing.assert_array_equal(data.y_test, raw.target[first.test])
    np.testing.assert_array_equal(data.X_train, datasets.load("digits", split=0).X_train)
    assert not np.array_equal(data.X_train, datasets.load("digits", split=1).X_train)


def test_a_predefined_test_part_is_kept_and_recut(home, monkeypatch):
    arrays = {"X": np.arange(100.0)[:, None].astype(np.float16), "y": np.arange(100, dtype=np.uint8) % 10}
    put(home, monkeypatch, "cifar10_f", arrays, test_from=80)
    data = datasets.load("cifar10_f")
    assert [len(y) for _, y in parts(data)] == [64, 16, 20]
    np.testing.assert_array_equal(data.y_test, arrays["y"][80:])
    unscaled = data.X_test[:, 0] * np.arange(80).std(ddof=1) + 39.5
    np.testing.assert_allclose(unscaled, np.arange(80, 100), atol=1e-4)
    mixed = datasets.load("cifar10_f", split=1)
    assert [len(y) for _, y in parts(mixed)] == [64, 16, 20]
    assert mixed.X_test.max() < data.X_test.max()


def test_covertype_is_cut_in_file_order_and_scaled_by_constants(home, monkeypatch):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.integers(0, 3000, (60, 10)), rng.integers(0, 2, (60, 44))], axis=1).astype(np.int16)
    y = (np.arange(60) % 7 + 1).astype(np.uint8)
    put(home, monkeypatch, "covertype", {"X": X, "y": y}, validation_from=20, test_from=30)
    data = datasets.load("covertype")
    assert [len(y) for _, y in parts(data)] == [20, 10, 30]
    np.testing.assert_array_equal(data.y_train, y[:20] - 1)
    np.testing.assert_array_equal(data.X_test[:, 10:], X[30:, 10:])
    mean, deviation = map(np.array, registry.SPECS["covertype"].constants)
    np.testing.assert_allclose(data.X_val[:, :10], (X[20:30, :10] - mean) / deviation, rtol=1e-6)
    mixed = datasets.load("covertype", split=0)
    fitted = np.concatenate([mixed.X_train, mixed.X_val])
    np.testing.assert_allclose(fitted[:, :10].std(axis=0, ddof=1), 1, atol=1e-6)
    assert set(np.unique(fitted[:, 10:])) == {0.0, 1.0}


def test_kddcup99_has_indicators_and_exact_counts(home, monkeypatch):
    n, rng = 50, np.random.default_rng(0)
    X = rng.normal(size=(n, 41)).astype(np.float32)
    sizes = {1: 3, 2: 5, 3: 2}
    for j, size in sizes.items():
        X[:, j] = rng.integers(0, size, n)
    exact = np.arange(n) + 2**30  # float32 knows only multiples of 64 there
    arrays = {"X": X, "y": (np.arange(n) % 4).astype(np.uint8), "src_bytes": exact, "dst_bytes": exact[::-1]}
    arrays |= {f"cat_{j}": np.array([str(i) for i in range(size)]) for j, size in sizes.items()}
    put(home, monkeypatch, "kddcup99_10pct", arrays)
    data = datasets.load("kddcup99_10pct", split=2)
    cut = splits.repeated(registry.SPECS["kddcup99_10pct"], n, 2)
    assert data.X_train.shape[1] == 38 + 10
    for first, j in ((38, 1), (41, 2), (46, 3)):
        block = data.X_test[:, first : first + sizes[j]]
        np.testing.assert_array_equal(block.argmax(axis=1), X[cut.test, j])
        np.testing.assert_array_equal(block.sum(axis=1), 1)
    fitted = exact[cut.fitted]
    column = (exact[cut.test] - fitted.mean()) / fitted.std(ddof=1)
    np.testing.assert_allclose(data.X_test[:, 1], column, rtol=1e-6)  # src_bytes follows duration
    np.testing.assert_allclose(np.concatenate([data.X_train, data.X_val])[:, :38].std(axis=0, ddof=1), 1, rtol=1e-5)
    assert data.note == "10 % of the rows"


def test_the_tenth_stands_in_for_kddcup99_until_the_whole_is_there(home, monkeypatch):
    assert not datasets.present("kddcup99")
    n = 20
    arrays = {"X": np.zeros((n, 41), dtype=np.float32), "y": np.arange(n, dtype=np.uint8) % 2}
    arrays |= {"src_bytes": np.zeros(n), "dst_bytes": np.zeros(n)} | {f"cat_{j}": np.array(["a"]) for j in (1, 2, 3)}
    put(home, monkeypatch, "kddcup99_10pct", arrays)
    assert datasets.present("kddcup99")
    assert datasets.load("kddcup99").note == "10 % of the rows"
    put(home, monkeypatch, "kddcup99", arrays)
    assert datasets.load("kddcup99").note == ""


def test_msd_has_one_unit_for_each_timbre(home, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, rng.uniform(1, 50, 90), (120, 90)).astype(np.float32)
    put(home, monkeypatch, "msd", {"X": X, "y": np.arange(1922, 2042, dtype=np.int16)}, test_from=100)
    data = datasets.load("msd")
    np.testing.assert_array_equal(data.y_test, np.arange(2022, 2042) - 1967)
    unit = X[:100, :12].astype(float).std(axis=0, ddof=1)
    pairs = [(i, i + k) for k in range(12) for i in range(12 - k)]  # diagonal by diagonal
    for column, (i, j) in enumerate(pairs, start=12):
        np.testing.assert_allclose(data.X_test[:, column], X[100:, column] / (unit[i] * unit[j]), rtol=1e-5)
    fitted = np.concatenate([data.X_train, data.X_val])[:, :12]
    np.testing.assert_allclose(fitted.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(fitted.std(axis=0, ddof=1), 1, rtol=1e-5)


def test_mnist_is_scaled_by_two_numbers(home, monkeypatch):
    X = np.zeros((30, 28, 28), dtype=np.uint8)
    X[:, 5:24, 14] = np.arange(100, 130)[:, None]  # upright and centred: deskewing leaves it alone
    put(home, monkeypatch, "mnist", {"X": X.reshape(30, 784), "y": np.arange(30, dtype=np.uint8) % 10}, test_from=20)
    data = datasets.load("mnist")
    np.testing.assert_allclose(data.X_test * 78.654 + 33.386, X[20:].reshape(10, 784), atol=1e-3)
    mixed = datasets.load("mnist", split=4)
    fitted = np.concatenate([mixed.X_train, mixed.X_val]).astype(float)
    assert abs(fitted.mean()) < 1e-6
    assert abs(fitted.std(ddof=1) - 1) < 1e-6


def test_deskewing_uncorrelates_rows_and_columns_and_centres_the_ink():
    from gce.datasets.deskew import deskew

    def moments(image):
        row, column = np.mgrid[:28, :28]
        share = image / image.sum()
        r, c = (share * row).sum(), (share * column).sum()
        return r, c, (share * (row - r) * (column - c)).sum()

    row, column = np.mgrid[:28, :28]
    stroke = 250 * np.exp(-(((column - 9 - 0.4 * (row - 6)) / 2) ** 2) - ((row - 12) / 4) ** 2)
    blank = np.zeros((28, 28))
    images = np.stack([stroke, stroke[:, ::-1], blank]).astype(np.uint8)
    upright = deskew(images)
    for before, after in zip(images[:2], upright[:2], strict=True):
        r, c, skewed = moments(before.astype(float))
        assert abs(skewed) > 2
        r, c, skewed = moments(after)
        assert abs(skewed) < 0.05
        assert abs(r - 14) < 0.05
        assert abs(c - 14) < 0.05
        assert abs(after.sum() / before.sum() - 1) < 0.01
    np.testing.assert_array_equal(upright[2], 0)
    assert upright.min() >= 0


def test_ca_housing_has_real_and_floored_targets(home, monkeypatch):
    arrays = made_up(60, 8)
    put(home, monkeypatch, "ca_housing", arrays)
    real, floored = datasets.load("california"), datasets.load("ca_housing", floored=True)
    assert real.name == "ca_housing"
    assert (real.note, floored.note) == ("", "targets floored")
    np.testing.assert_array_equal(floored.y_test, np.floor(real.y_test))
    assert not np.array_equal(floored.y_test, real.y_test)
    np.testing.assert_array_equal(floored.X_test, real.X_test)
    with pytest.raises(ValueError, match=r"only ca_housing has floored targets.*iris"):
        datasets.load("iris", floored=True)


def test_blocks_do_not_change_the_scaling(monkeypatch):
    whole = datasets.load("breast_cancer")
    monkeypatch.setattr(scaling, "_BATCH_ROWS", 7)
    np.testing.assert_allclose(datasets.load("breast_cancer").X_test, whole.X_test, atol=1e-11)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="'irises'") as error:
        datasets.load("irises")
    assert all(name in str(error.value) for name in [*datasets.NAMES, "california", "kddcup99_10pct"])
    with pytest.raises(ValueError, match="unknown data set"):
        datasets.present("irises")


@pytest.mark.parametrize("split", [-1, 0.5, True, "0"])
def test_a_split_is_none_or_a_seed(split):
    with pytest.raises(ValueError, match=re.escape(repr(split))):
        datasets.load("iris", split=split)


def test_the_table_shows_both_sizes_and_where_they_differ():
    text = datasets.table()
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert list(lines)[1:] == [
        "diabetes", "boston", "ca_housing", r"msd \*", "iris", "wine", "breast_cancer", "digits", r"cifar10_f \*",
        r"mnist \*", r"covertype \*", r"kddcup99 \*", r"kddcup99_10pct \*",
    ]  # fmt: skip
    assert "| 370,972 | 92,743 | 51,630 | 296,777 | 74,195 | 144,373 | no |" in lines[r"msd \*"]
    assert "| 11,340 | 3,780 | 565,892 | 11,340 | 2,268 | 569,672 |" in lines[r"covertype \*"]
    assert lines["iris"].endswith("| yes |")
    assert len({line.count("|") for line in lines.values()}) == 1


REAL = os.environ.get("GCE_DATA_HOME", "")


@pytest.mark.skipif(not REAL or not datasets.present("covertype", REAL), reason="needs the covertype file")
def test_the_constants_of_covertype_are_those_of_its_rows():
    spec = registry.SPECS["covertype"]
    X = files.read_npz(files.data_home(REAL) / "covertype.npz", spec.digest)["X"][:, :10].astype(float)
    np.testing.assert_allclose(spec.constants, [X.mean(axis=0), X.std(axis=0, ddof=1)], atol=0.011)


@pytest.mark.skipif(not REAL or not datasets.present("boston", REAL), reason="needs the boston file")
def test_the_values_of_boston_are_those_of_its_prepared_file():
    spec = registry.SPECS["boston"]
    assert files.values_of(files.read_npz(files.data_home(REAL) / "boston.npz", spec.digest)) == spec.values
