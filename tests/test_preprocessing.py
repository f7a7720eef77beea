"""Columns of every kind and every library: read alike, coded, scaled, refused in words."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from gce import GCEClassifier, GCERegressor, NGCEClassifier, NNRegressor
from gce.bases import Neural
from gce.preprocessing import Frame, Schema, Standardizer, Table, is_tabular, one_hot, read_frame
from gce.preprocessing.columns import MAX_CATEGORIES, MIN_CATEGORY_SHARE
from gce.preprocessing.encoder import Encoder
from gce.preprocessing.scaling import weighted_quantiles

FAST = {"basis": Neural(hidden=3, max_epochs=5), "max_atoms": 3, "cv": 2, "random_state": 0}


def learned(X, weight=None, categorical="from_dtype", scale="auto", clip=4.0):
    sheet = read_frame(X) if is_tabular(X) else Frame.from_matrix(X)
    weight = np.ones(len(sheet)) if weight is None else weight
    schema = Schema.fit(sheet, weight, categorical)
    coded = schema.encode(sheet)
    return Table(schema, Encoder.fit(coded, weight, schema.numbers, scale, clip)), coded


def frame(n=60, seed=0, missing=0.3):
    """Numbers, text, booleans and categories, each cell missing with some probability."""
    rng = np.random.default_rng(seed)
    columns = {
        "size": rng.normal(size=n),
        "count": rng.integers(0, 9, n).astype(float),
        "colour": rng.choice(["red", "green", "blue"], n),
        "sold": rng.random(n) < 0.4,
        "constant": np.full(n, 3.0),
    }
    gaps = {name: rng.random(n) < missing for name in columns}
    return {
        name: [None if gap else value.item() for value, gap in zip(values, gaps[name], strict=True)]
        for name, values in columns.items()
    }


def as_pandas(data):
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in data.items()})


LIBRARIES = {
    "pandas objects": as_pandas,
    "pandas": lambda data: pd.DataFrame(data),
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": lambda data: pl.DataFrame(data),
    "pyarrow": lambda data: pa.table(data),
    "objects": lambda data: as_pandas(data).to_numpy(dtype=object),
    "lists": lambda data: [list(row) for row in zip(*data.values(), strict=True)],
}


@given(seed=st.integers(0, 10**6), scale=st.sampled_from(["auto", "each", "common", "robust"]), gaps=st.booleans())
@settings(max_examples=40, deadline=None)
def test_weighted_rows_are_scaled_as_repeated_rows(seed, scale, gaps):
    rng = np.random.default_rng(seed)
    X = rng.normal(3, 5, (12, 4))
    X[rng.random(X.shape) < 0.2 * gaps] = np.nan
    times = rng.integers(1, 5, 12)
    weighted = Standardizer.fit(X, times * 0.3, 4.0, scale)
    repeated = Standardizer.fit(X.repeat(times, 0), np.ones(times.sum()), 4.0, scale)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-10, atol=1e-10)
    if not gaps:
        plain = Standardizer.fit(X, times * 1.0, np.inf, "each").transform(X)
        np.testing.assert_allclose(times @ plain / times.sum(), 0, atol=1e-12)
        np.testing.assert_allclose(times @ plain**2 / times.sum(), 1, rtol=1e-12)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_weighted_rows_are_encoded_as_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    data, times = pd.DataFrame(frame(20, seed)), rng.integers(1, 4, 20)
    weighted, coded = learned(data, times * 1.0)
    repeated, _ = learned(data.iloc[np.arange(20).repeat(times)])
    assert weighted.columns == repeated.columns
    np.testing.assert_allclose(weighted.transform(coded), repeated.transform(coded), rtol=1e-9, atol=1e-9)


def test_the_unit_of_a_column_does_not_matter():
    X = np.random.default_rng(0).normal(2, 1, (40, 2))
    for scale in ("each", "common", "robust"):
        plain = Standardizer.fit(X, np.ones(40), 4.0, scale).transform(X)
        for unit in (1e-30, 1e-12, 1e30):
            np.testing.assert_allclose(
                Standardizer.fit(X * unit, np.ones(40), 4.0, scale).transform(X * unit), plain, rtol=1e-9, atol=1e-12
            )


def test_constant_columns_are_centred_and_far_values_drawn_in():
    X = np.c_[np.full(5, 0.1 + 1e6), [0.0, 1, 2, 3, 1e9]]
    table = Standardizer.fit(X, np.ones(5), 4.0, "each")
    assert np.abs(table.transform(X)[:, 0]).max() < 1e-6
    z = table.transform(np.array([[0.0, 1e300], [0.0, -1e50], [0.0, 1e9]]))[:, 1]
    assert (np.abs(z) <= 4).all()
    np.testing.assert_allclose(z[:2], [4, -4])
    order = np.sort(np.random.default_rng(0).normal(size=50) * 1e9)
    assert (np.diff(table.transform(np.c_[order, order])[:, 1]) > 0).all()  # no two values become one


def test_columns_in_one_unit_keep_their_relative_spread():
    rng = np.random.default_rng(0)
    often = np.r_[np.full(39, 0.9), 0.02]
    pixels = rng.integers(0, 17, (200, 40)) * (rng.random((200, 40)) < often)
    ones = np.ones(200)
    auto, common, each = (Standardizer.fit(pixels, ones, np.inf, scale) for scale in ("auto", "common", "each"))
    assert (auto.scale == common.scale).all()
    assert len(set(auto.scale)) == 1
    assert np.isclose(np.mean(auto.transform(pixels) ** 2), 1)
    np.testing.assert_allclose((each.transform(pixels) ** 2).mean(0), 1)
    for few in (pixels[:, :6], pixels * np.geomspace(1, 1e4, 40)):  # not many columns, not one unit
        assert (
            Standardizer.fit(few, ones, 4.0, "auto").scale == Standardizer.fit(few, ones, 4.0, "robust").scale
        ).all()


def test_far_values_do_not_narrow_the_bulk():
    rng = np.random.default_rng(0)
    bulk = rng.normal(size=1000)
    tails, even = np.r_[bulk, np.full(10, 1e4)], rng.uniform(size=1010)
    table = Standardizer.fit(np.c_[tails, even], np.ones(1010), 4.0, "robust")
    z = table.transform(np.c_[tails, even])
    assert 0.9 < z[:1000, 0].std() < 1.1
    assert table.scale[1] == pytest.approx(even.std())  # light tails: quartiles are wider than the spread
    few = np.c_[[1.0, 2, 3, np.nan], np.full(4, np.nan)]
    np.testing.assert_array_equal(weighted_quantiles(few, np.ones(4), (0.5, 1.0)), [[2, 0], [3, 0]])


def test_one_hot():
    assert one_hot(np.array([0, 1, 1]), 2).tolist() == [[0], [1], [1]]
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_same_table(library):
    data = frame()
    table, coded = learned(LIBRARIES[library](data))
    expected, same = learned(pl.DataFrame(data))
    np.testing.assert_array_equal(coded, same)
    assert [(c.kind, c.categories) for c in table.columns] == [(c.kind, c.categories) for c in expected.columns]
    assert [column.kind for column in table.columns] == ["number", "number", "category", "boolean", "number"]
    inputs = table.transform(coded)
    np.testing.assert_array_equal(inputs, expected.transform(same))
    assert np.isfinite(inputs).all()
    assert len(table.get_feature_names_out()) == inputs.shape[1] == table.width


def test_what_networks_see():
    data = pd.DataFrame({"a": [1.0, 3.0, np.nan, 5.0], "b": ["x", "y", "x", None], "c": [True, False, True, True]})
    table, coded = learned(data, scale="each", clip=np.inf)
    assert coded.tolist()[0] == [1.0, 0.0, 1.0]
    assert table.get_feature_names_out() == ["a", "a is missing", "b=x", "b=y", "b is missing", "c=False", "c=True"]
    spread = np.sqrt(8 / 3)
    expected = [
        [-2 / spread, -0.25, 0.5, -0.25, -0.25, -0.25, 0.25],
        [0.0, -0.25, -0.5, 0.75, -0.25, 0.75, -0.75],
        [0.0, 0.75, 0.5, -0.25, -0.25, -0.25, 0.25],
        [2 / spread, -0.25, -0.5, -0.25, 0.75, -0.25, 0.25],
    ]
    np.testing.assert_allclose(table.transform(coded), expected, rtol=1e-14)
    new = pd.DataFrame({"a": [3.0], "b": ["never seen"], "c": [None]})
    np.testing.assert_allclose(table.transform(table.encode(read_frame(new)))[0, 2:], 0.0)  # average ones


def test_among_numbers_minus_one_is_a_number():
    table, coded = learned(pd.DataFrame({"a": [-1.0, 3.0, np.nan, 5.0]}))
    assert table.transform(coded)[:, 1].tolist() == [-0.25, -0.25, 0.75, -0.25]


def test_rare_categories_share_a_code_with_unseen_ones():
    rng = np.random.default_rng(0)
    many = np.array(
        [
            f"id{i}"
            for i in np.minimum(
                rng.integers(0, 3000, 6000), rng.integers(0, 3000, 6000) // (1 + rng.integers(0, 90, 6000))
            )
        ],
        dtype=object,
    )
    table, coded = learned(pd.DataFrame({"id": many, "n": rng.normal(size=6000)}))
    (column, _) = table.columns
    count = {level: np.sum(many == level) for level in column.categories}
    # what occurs twice has a code, frequent categories first
    assert set(count) == {level for level, rows in Counter(many.tolist()).items() if rows >= 2}
    assert len(column.frequent) <= MAX_CATEGORIES
    assert min(count[level] for level in column.frequent) >= max(MIN_CATEGORY_SHARE * 6000 * (1 - 1e-9), 10)
    assert max(count[level] for level in set(count) - set(column.frequent)) < 10
    rare = column.categories[-1]
    names = ["unheard of", column.categories[3], rare]
    new = table.encode(read_frame(pd.DataFrame({"id": names, "n": [0.0, 0.0, 0.0]})))
    assert new[:, 0].tolist() == [-1, 3, len(count) - 1]
    # models see a rare one as they see all others
    assert np.array_equal(table.transform(new)[0], table.transform(new)[2])
    assert table.get_feature_names_out()[1] == "id=(other)"
    assert table.transform(new)[0, 1] > 0
    assert np.mean(coded[:, 0] == -1) == np.mean([many.tolist().count(name) < 2 for name in many])


@pytest.mark.parametrize("second", [None, "frequent"])
def test_rare_categories_beside_one_other_state(second):
    """What the rows of the fit were in, and what none was in, are told apart; flags of the former have mean 0."""
    values = np.array([second] * 5990 + [f"rare{i}" for i in range(10)], dtype=object)
    table, coded = learned(pd.DataFrame({"id": values}))
    inputs = table.transform(coded)
    np.testing.assert_allclose(inputs.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(inputs, axis=0), 1)
    new = table.transform(table.encode(read_frame(pd.DataFrame({"id": ["never seen", None]}, dtype=object))))
    np.testing.assert_array_equal(new[0], inputs[-1])
    np.testing.assert_array_equal(new[1], inputs[0] if second is None else 0.0)


def test_objects_are_read_to_the_end():
    """Libraries guess the type of Python objects from the first hundred."""
    late = {"boolean": [None] * 150 + [True, False], "number": [None] * 150 + [1, 2.5], "text": ["a"] * 150 + [None, 1]}
    sheet = read_frame(pd.DataFrame({name: pd.Series(late[name], dtype=object) for name in ("boolean", "number")}))
    assert sheet.kinds == ("boolean", "number")
    assert [column[150:].tolist() for column in sheet.columns] == [[1, 0], [1, 2.5]]
    with pytest.raises(TypeError, match=r"'text' mixes text \('a'\) and numbers \(1\)"):
        read_frame(pd.DataFrame({"text": pd.Series(late["text"], dtype=object)}))


def test_categories_by_name_place_and_mask():
    X = np.c_[np.tile([1.0, 2.0, 5.0], 8), np.arange(24.0)]
    for chosen in ([0], ["x0"], [True, False]):
        table, coded = learned(X, categorical=chosen)
        assert table.columns[0].categories == (1.0, 2.0, 5.0)
        assert coded[:3, 0].tolist() == [0, 1, 2]
    assert learned(pd.DataFrame({"a": pd.Categorical([3, 1, 3, None])}))[0].columns[0].categories == (1, 3)
    assert [c.kind for c in learned(np.array([[1, "a"], [2, "b"]]))[0].columns] == ["number", "category"]
    assert [c.kind for c in learned(pl.DataFrame({"d": [Decimal("1.5"), None, Decimal("2.0")]}))[0].columns] == [
        "number"
    ]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (0, "categorical_features must list names, indices or booleans, got 0"),
        (["x0", 5], "categorical_features has 5: use names, indices from 0 to 1"),
        ([True], "categorical_features as booleans must have one for each of the 2 columns, got 1"),
        ([True, 0], "categorical_features has True"),
        ("x0", "categorical_features must be 'from_dtype' or a list"),
    ],
)
def test_columns_that_cannot_be_found(chosen, words):
    with pytest.raises(ValueError, match=words):
        learned(np.ones((4, 2)), categorical=chosen)
    both, _ = learned(np.arange(8.0).reshape(4, 2), categorical=["x0", 1])
    assert [column.kind for column in both.columns] == ["category", "category"]


def test_state_is_everything():
    table, coded = learned(pd.DataFrame(frame()))
    meta, arrays = table.state()
    again = Table.from_state(meta, arrays)
    np.testing.assert_array_equal(again.transform(coded), table.transform(coded))
    assert again.columns == table.columns
    for name, value in (("codes", arrays["codes"] + 50), ("scale", -arrays["scale"]), ("on", arrays["on"][:-1])):
        with pytest.raises(ValueError, match="parts of the table are inconsistent"):
            Table.from_state(meta, {**arrays, name: value})


REFUSED = {
    "text and numbers": (
        pd.DataFrame({"a": ["?", 1, 2, 3, 4, 5]}, dtype=object),
        r"'a' mixes text \('\?'\) and numbers",
    ),
    "lists": (pl.DataFrame({"a": [[1], [2], [3], [4], [5], [6]]}), "'a' is of type List"),
    "lazy": (pl.DataFrame({"a": [1.0] * 6}).lazy(), r"pass X.collect\(\)"),
    "no column": (pd.DataFrame(index=range(6)), r"0 feature\(s\): at least 1 feature is needed"),
    "no row": (pd.DataFrame({"a": pd.Series([], dtype=object)}), r"0 sample\(s\) and 1 feature"),
    "infinity": (pd.DataFrame({"a": [np.inf] * 6, "b": ["x"] * 6}), "'a' contains infinity"),
    "long integers": (pd.DataFrame({"a": [10**400] * 6}, dtype=object), "'a' holds an integer beyond float64's range"),
    "intervals": (pd.DataFrame({"a": pd.cut(np.arange(6), 2)}), r"'a' holds Interval.* column.astype\(str\)"),
    "dicts": (np.array([[{}, 1]] * 6, dtype=object), "argument must be a string, a number or a boolean"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_the_columns_name(case):
    X, words = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=words):
        GCERegressor(**FAST).fit(X, np.arange(6.0))


def test_a_column_that_changes_its_kind_is_refused():
    data = pd.DataFrame({"a": [1.0, 2, 3, 4], "b": ["x", "y", "x", "y"]})
    model = GCERegressor(**FAST).fit(data, [1.0, 2, 3, 4])
    with pytest.raises(ValueError, match="'a' held numbers when the model was fitted and holds 'one' now"):
        model.predict(pd.DataFrame({"a": ["one"], "b": ["x"]}))
    with pytest.raises(ValueError, match=r"'b' held categories such as 'x' .* holds 7.0 now"):
        model.predict(pd.DataFrame({"a": [1.0], "b": [7.0]}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(data.rename(columns={"a": "z"}))
    assert np.isfinite(model.predict(pd.DataFrame({"a": [None], "b": [None]}))).all()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_thirty_percent_missing_text_booleans_and_an_unseen_category(kind, library):
    data = frame(80)
    y = np.random.default_rng(1).integers(0, 2, 80)
    model = kind(**FAST).fit(LIBRARIES[library](data), y)
    new = {name: values[:8] for name, values in data.items()}
    new["colour"] = ["never seen"] * 8
    assert np.isfinite(model.predict(LIBRARIES[library](new))).all()
    assert "never seen" not in model.table_.columns[2].categories
    kinds = "3 numbers, 1 boolean, 1 category; 5 with missing values"
    assert repr(model.table_).startswith(f"<Table: 5 columns ({kinds}) as")


def test_other_estimators_read_frames_too():
    data, y = pd.DataFrame(frame(80)), np.arange(80)
    tiny = {"max_epochs": 3, "hidden": 3, "random_state": 0}
    assert np.isfinite(NNRegressor(**tiny).fit(data, y).predict(data)).all()
    assert NGCEClassifier(n_atoms=2, **tiny).fit(data, pl.Series(y % 3)).predict(data).shape == (80,)


def test_targets_of_every_library():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), ["a", "b"] * 20
    expected = GCEClassifier(**FAST).fit(X, y).predict_proba(X)
    for given_ in (pd.Series(y), pl.Series(y), pa.array(y), pa.array(y).dictionary_encode(), pd.DataFrame({"y": y})):
        np.testing.assert_array_equal(GCEClassifier(**FAST).fit(X, given_).predict_proba(X), expected)
    two = pl.DataFrame({"u": X[:, 0], "v": X[:, 1]})
    assert GCERegressor(**FAST).fit(X, two).predict(X).shape == (40, 2)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (pl.Series(["a", None] * 10), "y has missing values"),
        (np.array(["a", None] * 10, dtype=object), "y has missing values"),
        (np.array(["a", 1] * 10, dtype=object), r"y mixes text and numbers, as in \['a', 1"),
    ],
)
def test_classes_that_are_none(y, words):
    with pytest.raises(ValueError, match=words):
        GCEClassifier(**FAST).fit(np.arange(20.0)[:, None], y)


def test_a_fit_goes_on_with_the_same_kind_of_targets():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.array(["a", "b"] * 20)
    model = GCEClassifier(warm_start=True, **FAST).fit(X, y)
    expected = model.predict(X)
    for other in (np.array(["a", "b", "c", "a"] * 10), np.array(["u", "v"] * 20)):
        with pytest.raises(ValueError, match=r"was fitted to the classes \['a', 'b'\], but y now has"):
            model.fit(X, other)
    assert (model.predict(X) == expected).all()
    numbers = GCERegressor(warm_start=True, **FAST).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"was fitted to 1 target\(s\), but y now has 2"):
        numbers.fit(X, X)
    with pytest.raises(ValueError, match=r"y_val has 2 target\(s\), but y has 1"):
        GCERegressor(**{**FAST, "cv": None}).fit(X, X[:, 0], X_val=X, y_val=X)
    for name, value in (("offset", np.inf), ("validation_fraction", "a fifth"), ("validation_fraction", 2)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            GCERegressor(**{**FAST, "cv": None, name: value}).fit(X, X[:, 0], groups=np.arange(40))


def test_constant_and_duplicate_columns_are_harmless():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    more = np.c_[X, X[:, 0], np.full(40, 7.0)]
    text = pd.DataFrame(more, columns=list("abcd")).assign(same="x", gone=None)
    for table in (more, text):
        model = GCERegressor(**FAST).fit(table, X[:, 0])
        inputs = model.table_.transform(
            model.table_.encode(read_frame(table) if table is text else Frame.from_matrix(table))
        )
        assert np.isfinite(inputs).all()
        # means and spreads are sums over 40 rows, which BLAS may add in another order for each column
        rounding = 2 * 45 * np.finfo(float).eps * (np.abs(inputs[:, 0]) + np.abs(X[:, 0]).max() / X[:, 0].std())
        assert (np.abs(inputs[:, 0] - inputs[:, 2]) <= rounding).all()
        assert np.abs(inputs[:, 3]).max() < 1e-12
        assert np.isfinite(model.predict(table)).all()


def test_means_and_spreads_do_not_depend_on_the_threads_of_linear_algebra():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(100_000, 30)), rng.uniform(0.5, 1, 100_000)
    found = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            own = Standardizer.fit(X, weight, np.inf, "each")
            found.append((own.mean.tobytes(), own.scale.tobytes()))
    assert len(set(found)) == 1
