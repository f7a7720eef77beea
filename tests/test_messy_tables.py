"""Tables as people have them: columns of every type, columns that say nothing, and thousands of them."""

import decimal
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gce
from gce import GCEClassifier, GCERegressor
from gce.bases import Neural, Tree
from gce.preprocessing import Column, Schema, read_frame
from gce.preprocessing.encoder import Encoder
from gce.training.families import default_bases

N = 60
rng = np.random.default_rng(0)
DIGIT = rng.integers(0, 9, N)
GAP = np.arange(N) % 7 == 0
OTHER = rng.normal(size=N)
Y = DIGIT + 0.1 * rng.normal(size=N)
SHORT = {"basis": Tree(min_samples_leaf=2), "max_iter": 2, "cv": 2, "random_state": 0, "verbose": False}
#: A default fit, but for its length.
BRIEF = {"max_iter": 2, "cv": 2, "random_state": 0, "verbose": False}


def gaps(values):
    return [None if gap else value for gap, value in zip(GAP, values, strict=True)]


INTEGERS, QUARTERS = gaps(DIGIT.tolist()), gaps((DIGIT / 4).tolist())
DECIMALS = gaps([decimal.Decimal(int(value)) / 4 for value in DIGIT])
TEXT, BOOLEANS = gaps(["abcdefghi"[value] for value in DIGIT]), gaps((DIGIT % 2 == 0).tolist())


def arrow(values, kind=None):
    """A pyarrow column in two chunks."""
    return pa.chunked_array([pa.array(values[:20], kind), pa.array(values[20:], kind)])


def pandas_arrow(values, kind):
    return pd.array(values, dtype=pd.ArrowDtype(kind))


def frame(column):
    """A column beside another one, in the library that it is of."""
    if isinstance(column, pl.Series):
        return pl.DataFrame({"a": column, "b": OTHER})
    if isinstance(column, pa.ChunkedArray):
        return pa.table({"a": column, "b": OTHER})
    return pd.DataFrame({"a": column, "b": OTHER})


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# Types.


NUMBERS = {
    **{f"pandas {kind}": (INTEGERS, pd.array(INTEGERS, dtype=kind)) for kind in ("Int8", "Int64", "UInt8", "UInt64")},
    **{f"pandas {kind}": (QUARTERS, pd.array(QUARTERS, dtype=kind)) for kind in ("Float32", "Float64")},
    "pandas float16": (QUARTERS, pd.Series(np.array(QUARTERS, dtype=float)).astype(np.float16)),
    "pandas objects": (INTEGERS, pd.Series(INTEGERS, dtype=object)),
    "pandas decimals": (QUARTERS, pd.Series(DECIMALS, dtype=object)),
    "pandas decimal NaN": (QUARTERS, pd.Series([decimal.Decimal("NaN") if d is None else d for d in DECIMALS])),
    "pandas fractions": (QUARTERS, pd.Series(gaps([Fraction(int(value), 4) for value in DIGIT]))),
    "pandas sparse": (QUARTERS, pd.arrays.SparseArray(np.array(QUARTERS, dtype=float))),
    "pandas arrow int": (INTEGERS, pandas_arrow(INTEGERS, pa.int64())),
    "pandas arrow uint": (INTEGERS, pandas_arrow(INTEGERS, pa.uint64())),
    "pandas arrow float": (QUARTERS, pandas_arrow(QUARTERS, pa.float32())),
    "pandas arrow decimal": (QUARTERS, pandas_arrow(DECIMALS, pa.decimal128(10, 2))),
    "polars decimal": (QUARTERS, pl.Series(DECIMALS, dtype=pl.Decimal(20, 4), strict=False)),
    "polars Int128": (INTEGERS, pl.Series(INTEGERS, dtype=pl.Int128)),
    "polars UInt64": (INTEGERS, pl.Series(INTEGERS, dtype=pl.UInt64)),
    "polars NaN and null": (QUARTERS, pl.Series([float("nan") if i % 14 == 0 else v for i, v in enumerate(QUARTERS)])),
    "polars objects": (INTEGERS, pl.Series(INTEGERS, dtype=pl.Object)),
    "arrow int": (INTEGERS, arrow(INTEGERS, pa.int16())),
    "arrow uint": (INTEGERS, arrow(INTEGERS, pa.uint64())),
    "arrow float": (QUARTERS, arrow(QUARTERS, pa.float32())),
    "arrow decimal128": (QUARTERS, arrow(DECIMALS, pa.decimal128(10, 2))),
    "arrow decimal256": (QUARTERS, arrow(DECIMALS, pa.decimal256(60, 2))),
}
CATEGORIES = {
    "pandas string": (TEXT, pd.array(TEXT, dtype="string")),
    "pandas string[pyarrow]": (TEXT, pd.array(TEXT, dtype="string[pyarrow]")),
    "pandas str": (TEXT, pd.array(TEXT, dtype="str")),
    "pandas category": (TEXT, pd.Categorical(TEXT)),
    "pandas arrow string": (TEXT, pandas_arrow(TEXT, pa.large_string())),
    "pandas arrow dictionary": (TEXT, pandas_arrow(TEXT, pa.dictionary(pa.int32(), pa.string()))),
    "polars categorical": (TEXT, pl.Series(TEXT, dtype=pl.Categorical)),
    "polars enum": (TEXT, pl.Series(TEXT, dtype=pl.Enum(list("ihgfedcba")))),
    "arrow dictionary": (TEXT, arrow(TEXT).dictionary_encode()),
    "arrow string view": (TEXT, arrow(TEXT, pa.string_view())),
    "pandas category of integers": (INTEGERS, pd.Categorical(INTEGERS)),
    "pandas category, ordered": (INTEGERS, pd.Categorical(INTEGERS, categories=range(9), ordered=True)),
    "arrow dictionary of integers": (INTEGERS, arrow(INTEGERS).dictionary_encode()),
    "pandas arrow dictionary of integers": (INTEGERS, pandas_arrow(INTEGERS, pa.dictionary(pa.int8(), pa.int64()))),
    "pandas category of floats": (QUARTERS, pd.Categorical(QUARTERS)),
    "pandas category of decimals": (QUARTERS, pd.Categorical(DECIMALS)),
    "arrow dictionary of decimals": (QUARTERS, arrow(DECIMALS).dictionary_encode()),
    "pandas category of booleans": (BOOLEANS, pd.Categorical(BOOLEANS)),
}
FLAGS = {
    "pandas boolean": pd.array(BOOLEANS, dtype="boolean"),
    "pandas objects": pd.Series(BOOLEANS, dtype=object),
    "pandas arrow": pandas_arrow(BOOLEANS, pa.bool_()),
    "polars": pl.Series(BOOLEANS),
    "arrow": arrow(BOOLEANS),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_numbers_in_every_type(kind):
    values, column = NUMBERS[kind]
    plain = np.column_stack([np.array(values, dtype=float), OTHER])
    expected, model = GCERegressor(**SHORT).fit(plain, Y), GCERegressor(**SHORT).fit(frame(column), Y)
    assert model.table_.columns[0] == Column("a", "number")
    assert np.ptp(expected.predict(plain)) > 0
    np.testing.assert_array_equal(model.predict(frame(column)), expected.predict(plain))


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_are_categories_in_every_type(kind, tmp_path):
    values, column = CATEGORIES[kind]
    # the plain column is of objects, which are categories only where they are text
    plain = pd.DataFrame({"a": pd.Series(values, dtype=object), "b": OTHER})
    expected = GCERegressor(categorical_features=["a"], **SHORT).fit(plain, Y)
    model = GCERegressor(**SHORT).fit(frame(column), Y)
    if kind != "pandas category of booleans":
        assert model.table_.columns[0] == expected.table_.columns[0]
        np.testing.assert_array_equal(model.predict(frame(column)), expected.predict(plain))
    assert model.table_.columns[0].categories == tuple(sorted({value for value in values if value is not None}))
    model.save(tmp_path / "m.safetensors")
    loaded = gce.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(frame(column)), model.predict(frame(column)))


@pytest.mark.parametrize("kind", FLAGS)
def test_booleans_are_booleans_in_every_type(kind):
    models = [GCERegressor(**SHORT).fit(frame(column), Y) for column in (FLAGS[kind], FLAGS["polars"])]
    assert models[0].table_.columns[0] == Column("a", "boolean")
    np.testing.assert_array_equal(*(model.predict(frame(FLAGS[kind])) for model in models))


TARGETS = {
    "pandas Float64": lambda values: pd.Series(values, dtype="Float64"),
    "pandas decimals": lambda values: pd.Series(list(map(decimal.Decimal, values))),
    "list of decimals": lambda values: list(map(decimal.Decimal, values)),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "polars decimal": lambda values: pl.Series(list(map(decimal.Decimal, values)), dtype=pl.Decimal(20, 4)),
    "polars Int128": lambda values: pl.Series(values, dtype=pl.Int128),
    "polars frame": lambda values: pl.DataFrame({"y": pl.Series(values, dtype=pl.Int128)}),
    "arrow decimal": lambda values: arrow(list(map(decimal.Decimal, values)), pa.decimal128(10, 2)),
    "arrow dictionary": lambda values: arrow(values).dictionary_encode(),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_targets_of_every_type(kind):
    X, values = np.column_stack([DIGIT, OTHER]), (DIGIT > 4).astype(int).tolist()
    for estimator in (GCERegressor, GCEClassifier):
        expected, model = (estimator(**SHORT).fit(X, y) for y in (values, TARGETS[kind](values)))
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))


FLOATS = {
    "pandas": lambda values: pd.DataFrame(values, dtype=float),
    "pandas Float64": lambda values: pd.DataFrame(values, dtype="Float64"),
    "pandas arrow": lambda values: pd.DataFrame(values, dtype=pd.ArrowDtype(pa.float64())),
    "polars": pl.DataFrame,
    "arrow": lambda values: pa.table({name: arrow(column, pa.float64()) for name, column in values.items()}),
}


@pytest.mark.parametrize("kind", FLOATS)
def test_a_table_of_floats_is_read_at_once(kind):
    values = {"a": QUARTERS, "b": OTHER.tolist(), "c": [None] * (N - 1) + [1.0]}
    found = read_frame(FLOATS[kind](values))
    expected = np.column_stack([np.array(column, dtype=float) for column in values.values()])
    np.testing.assert_array_equal(found.matrix, expected)
    assert found.matrix.flags.c_contiguous
    assert found.matrix.flags.writeable
    with pytest.raises(ValueError, match="column 'b' contains infinity"):
        read_frame(FLOATS[kind]({**values, "b": [np.inf] * N}))


# Columns that say nothing.


NOTHING = {
    "pandas objects": pd.Series([None] * N, dtype=object),
    "pandas NaN": pd.Series([np.nan] * N),
    "pandas Int64": pd.array([None] * N, dtype="Int64"),
    "pandas boolean": pd.array([None] * N, dtype="boolean"),
    "pandas string": pd.array([None] * N, dtype="string"),
    "pandas category": pd.Categorical([None] * N),
    "pandas arrow null": pandas_arrow([None] * N, pa.null()),
    "polars null": pl.Series([None] * N),
    "polars Float64": pl.Series([None] * N, dtype=pl.Float64),
    "polars Boolean": pl.Series([None] * N, dtype=pl.Boolean),
    "polars enum": pl.Series([None] * N, dtype=pl.Enum(["u"])),
    "arrow null": arrow([None] * N, pa.null()),
    "arrow decimal": arrow([None] * N, pa.decimal128(10, 2)),
    "constant number": pd.Series([3.5] * N),
    "constant text": pl.Series(["u"] * N),
    "constant boolean": pd.Series([True] * N),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_empty_and_constant_columns_are_ignored(kind):
    trees = GCERegressor(**SHORT).fit(frame(NOTHING[kind]), Y)
    without = GCERegressor(**SHORT).fit(pd.DataFrame({"b": OTHER}), Y)
    np.testing.assert_array_equal(trees.predict(frame(NOTHING[kind])), without.predict(pd.DataFrame({"b": OTHER})))
    model = GCERegressor(**BRIEF).fit(frame(NOTHING[kind]), Y)
    assert np.isfinite(model.predict(frame(NOTHING[kind]))).all()


@pytest.mark.parametrize("kind", ["pandas objects", "polars null", "arrow null", "pandas category"])
def test_a_column_without_type_and_values_may_hold_anything_later(kind):
    model = GCERegressor(**BRIEF).fit(frame(NOTHING[kind]), Y)
    expected = model.predict(frame(NOTHING[kind]))
    for later in (pd.Series(DIGIT), pd.array(TEXT, dtype="string"), pd.array(BOOLEANS, dtype="boolean")):
        np.testing.assert_array_equal(model.predict(frame(later)), expected)


def test_duplicated_and_almost_empty_columns_take_part():
    almost = np.full(N, np.nan)
    almost[:2] = [1.0, 2.0]
    data = pd.DataFrame({"a": DIGIT, "again": DIGIT, "text": TEXT, "text again": TEXT, "almost": almost})
    data["almost text"] = ["u", *[None] * (N - 1)]
    model = GCERegressor(**BRIEF).fit(data, Y)
    assert np.isfinite(model.predict(data)).all()
    once = GCERegressor(**SHORT).fit(data[["a", "text"]], Y)
    twice = GCERegressor(**SHORT).fit(data[["a", "again", "text", "text again"]], Y)
    np.testing.assert_array_equal(twice.predict(data), once.predict(data))


# Columns that are refused, each in one sentence.


REFUSED = {
    "text and numbers": (["u", 1], r"column 'a' mixes text \('u'\) and numbers \(1\): convert it to one of them"),
    "text and booleans": (["u", True], r"column 'a' mixes text \('u'\) and booleans \(True\): convert"),
    "lists": ([[1, 2], [3]], r"column 'a' holds \[1, 2\] of type list: .*convert categories to text"),
    "text and lists": (["u", [3]], r"column 'a' holds \[3\] of type list: "),
    "long lists": ([list(range(10**4))] * 2, r"column 'a' holds \[0, 1, .{10,300} of type list: "),
    "dicts": ([{"k": 1}] * 2, r"column 'a' holds \{'k': 1\} of type dict: "),
    "tuples": ([(1, 2)] * 2, r"column 'a' holds \(1, 2\) of type tuple: "),
    "arrays": ([np.ones((2, 2))] * 2, r"column 'a' holds array\(\[\[1., 1.\], \[1., 1.\]\]\) of type ndarray: "),
    "bytes": ([b"u", b"v"], "column 'a' holds b'u' of type bytes: "),
    "complex": ([1j, 2j], "column 'a' holds 1j of type complex: "),
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("late", [False, True])
def test_columns_of_other_values_are_named(kind, late):
    """The values may also come after hundreds of others, where libraries no longer look at them."""
    values, words = REFUSED[kind]
    first = values[:1] * 200 if late else []
    column = pd.Series([*first, *values], dtype=object)
    data = pd.DataFrame({"a": column, "b": np.arange(len(column))})
    with pytest.raises(TypeError, match=words) as caught:
        GCERegressor(**SHORT).fit(data, np.arange(len(data)))
    assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match=words):
        GCERegressor(categorical_features=["a"], **SHORT).fit(data, np.arange(len(data)))
    text = pd.DataFrame({"a": ["u", "v"] * 30, "b": np.arange(60)})
    with pytest.raises(TypeError, match=words):
        GCERegressor(**SHORT).fit(text, np.arange(60)).predict(data)


@pytest.mark.parametrize(
    "column",
    [pl.Series([[1, 2]] * N), pl.Series([{"k": 1}] * N), pl.Series([b"u"] * N), arrow([[1, 2]] * N), arrow([b"u"] * N)],
)
def test_nested_and_binary_types_are_named(column):
    # narwhals before 1.32 or so has no type for bytes, and these are read one by one
    words = r"column 'a' (is of type .*: only numbers, booleans, dates, text and categories|holds b'u' of type bytes: )"
    with pytest.raises(TypeError, match=words):
        GCERegressor(**SHORT).fit(frame(column), Y)


def test_large_integers_are_numbers_but_no_categories():
    large = DIGIT.astype(object) + 2**70
    model = GCERegressor(**SHORT).fit(frame(pd.Series((DIGIT.astype(object) << 65).tolist(), dtype=object)), Y)
    assert np.ptp(model.predict(frame(pd.Series((DIGIT.astype(object) << 65).tolist(), dtype=object)))) > 0
    for column in (pd.Series(large), pd.Series(DIGIT.astype(np.uint64) + np.uint64(2**63)), pl.Series(DIGIT + 2**60)):
        GCERegressor(**SHORT).fit(frame(column), Y)
        with pytest.raises(ValueError, match=r"column 'a' holds numbers beyond 2\^53, .*: convert it to text"):
            GCERegressor(categorical_features=["a"], **SHORT).fit(frame(column), Y)


# Thousands of columns.


def test_indicators_are_those_of_each_column_alone():
    X = rng.normal(size=(40, 30))
    X[rng.random(X.shape) < 0.2] = np.nan
    kinds = ["number", "category", "boolean"] * 10
    for j, kind in enumerate(kinds):
        if kind != "number":
            X[:, j] = np.where(np.isnan(X[:, j]), np.nan, X[:, j] > 0)
    X[:, 3] = 1.0
    columns = [Column(f"c{j}", kind, ("u", "v") if kind == "category" else ()) for j, kind in enumerate(kinds)]
    together = Encoder.fit(X, np.ones(40), Schema(tuple(columns)).numbers, "each", 3.0)
    other = np.where(rng.random(X.shape) < 0.1, np.nan, np.roll(X, 1, axis=0))
    inputs, alone = together.transform(other), []
    for j, column in enumerate(columns):
        one = Encoder.fit(X[:, [j]], np.ones(40), Schema((column,)).numbers, "each", 3.0)
        alone.append(one.transform(other[:, [j]])[:, len(one.numbers) :])
    np.testing.assert_array_equal(inputs[:, len(together.numbers) :], np.concatenate(alone, axis=1))


def test_a_wide_table_is_fitted_and_kept(tmp_path):
    """Numbers, gaps, text, booleans, constant and empty columns: 1,000 in all."""
    n = 40
    many = rng.normal(size=(n, 600))
    many[:, ::2][rng.random((n, 300)) < 0.2] = np.nan
    data = pl.DataFrame(many, schema=[f"x{j}" for j in range(600)])
    text = {f"t{j}": rng.choice(["u", "v", None], n).tolist() for j in range(200)}
    empty = {f"e{j}": [None] * n for j in range(100)}
    constant = {f"k{j}": [1] * n for j in range(100)}
    data = data.hstack(pl.DataFrame(text | empty | constant))
    few = {"tree": Tree(max_bins=16, max_leaf_nodes=3), "neural": Neural(hidden=2, max_epochs=2)}
    model = GCERegressor(basis=few, **BRIEF).fit(data, many[:, 1])
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").predict(data), model.predict(data))


def test_trees_have_fewer_bins_where_columns_outnumber_rows():
    usual = {"tree": 256, "symmetric": 128, "forest": 256}
    for rows, columns, most in ((300, 200, 256), (300, 500, 256), (5000, 2000, 256), (300, 2000, 65), (300, 10**4, 16)):
        found = {name: basis.max_bins for name, basis in default_bases(rows, columns).items() if name != "neural"}
        assert found == {name: min(bins, most) for name, bins in usual.items()}


@pytest.mark.parametrize("rows", [1, 2047, 2048, 2049, 5000])
def test_arrow_columns_become_a_matrix(rows):
    X = np.random.default_rng(rows).normal(size=(rows, 3))
    X[0, 1] = np.nan
    # several chunks, one of them with a missing value
    first = pa.table([pa.array(X[: rows // 2, j]) for j in range(3)], names=list("abc"))
    second = pa.table([pa.array(X[rows // 2 :, j], from_pandas=True) for j in range(3)], names=list("abc"))
    found = read_frame(pa.concat_tables([first, second]))
    np.testing.assert_array_equal(found.matrix, X)
    assert found.matrix.flags.c_contiguous


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix_has_memory_of_its_own(order):
    X = np.array([[1.0, 2.0], [3.0, np.nan]], order=order)
    found = read_frame(pd.DataFrame(X, columns=["a", "b"], copy=False)).matrix
    np.testing.assert_array_equal(found, X)
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert not np.shares_memory(found, X)
