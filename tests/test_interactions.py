"""Interaction constraints of trees: the columns on every path share a set, whatever was learned."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gce
from gce.bases import Forest, Pool, SignTree, SymmetricTree, Tree, Union
from gce.preprocessing.interactions import pack_interactions, read_interactions

COLUMNS = 6
NAMES = [f"x{j}" for j in range(COLUMNS)]
TREES = [
    Tree(max_leaf_nodes=16, min_samples_leaf=2, learning_rate=0.3),
    Tree(max_leaf_nodes=32, min_samples_leaf=0, l2_regularization=0, subsample=0.7, max_features=0.7),
    SymmetricTree(max_depth=4, learning_rate=0.3),
    SymmetricTree(max_depth=6, l2_regularization=0, subsample=0.7, max_features=0.7),
]
#: What is given, and the sets that it means.
SETS = {
    "halves": ([[0, 1, 2], [3, 4, 5]], [{0, 1, 2}, {3, 4, 5}]),
    "overlapping": ([(0, 1), {1, 2}, frozenset({2, 3}), np.array([3, 4, 5])], [{0, 1}, {1, 2}, {2, 3}, {3, 4, 5}]),
    "rest": ([{"x1", "x4"}], [{1, 4}, {0, 2, 3, 5}]),
    "alone": ([[2]], [{2}, {0, 1, 3, 4, 5}]),
    "names": ([["x0", 5], ["x3", "x1", "x3"]], [{0, 5}, {1, 3}, {2, 4}]),
    "pairwise": ("pairwise", [set(pair) for pair in combinations(range(COLUMNS), 2)]),
    "no_interactions": ("no_interactions", [{j} for j in range(COLUMNS)]),
}
FAST = {"max_atoms": 8, "cv": 2, "random_state": 0}


def table(n=150, columns=COLUMNS, seed=0):
    """Rows, and a target with interactions of all orders."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    y = X[:, 0] * X[:, 1] + np.prod(np.sign(X[:, :4]), axis=1) + X[:, -1] * X[:, 1] * X[:, 2] + X.sum(1)
    return X, y + 0.1 * rng.normal(size=n)


def frame(X):
    return pl.DataFrame({f"x{j}": X[:, j] for j in range(X.shape[1])})


def paths(trees):
    """The columns that are split on the way to each leaf, in all trees."""
    first = 0
    for size in trees.size.tolist():
        feature, left = (part[first : first + size].tolist() for part in (trees.feature, trees.left))
        first += size
        stack = [(0, frozenset())]
        while stack:
            node, seen = stack.pop()
            if left[node] == 0:
                yield seen
                continue
            stack += [(left[node] + side, seen | {feature[node]}) for side in (0, 1)]


def model_paths(model):
    """The columns of X on each path of a fitted model's trees."""
    encoder = model.table_.encoder
    inputs = np.concatenate([encoder.numbers, encoder.flagged]).tolist()
    for family in model.result_.families:
        for record in family.rounds:
            if record.atoms is not None:
                column = range(len(model.table_.columns)) if record.atoms.splits_columns else inputs
                yield from ({column[j] for j in path} for path in paths(record.atoms.trees))


def assert_kept(model, sets):
    """Every path's columns share a set, and some path has as many columns as one can."""
    found = list(model_paths(model))
    assert all(any(path <= one for one in sets) for path in found)
    assert max(map(len, found)) >= min(2, max(map(len, sets)))


@pytest.mark.parametrize("basis", TREES, ids=str)
@pytest.mark.parametrize("name", SETS)
def test_paths_keep_to_one_set(name, basis):
    given_, sets = SETS[name]
    X, y = table()
    model = gce.GCERegressor(basis=basis, interaction_cst=given_, **FAST).fit(frame(X), y)
    assert_kept(model, sets)
    free = gce.GCERegressor(basis=basis, **FAST).fit(frame(X), y)
    assert not all(any(path <= one for one in sets) for path in model_paths(free))


@pytest.mark.parametrize("basis", TREES, ids=str)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_keep_to_one_set(classes, basis):
    X, y = table()
    labels = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)
    given_, sets = SETS["overlapping"]
    assert_kept(gce.GCEClassifier(basis=basis, interaction_cst=given_, **FAST).fit(X, labels), sets)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sets(st.integers(0, COLUMNS - 1), min_size=1), max_size=6),
    st.sampled_from(TREES),
    st.integers(0, 2**16),
)
def test_any_sets(sets, basis, seed):
    X, y = table(60, seed=seed)
    model = gce.GCERegressor(basis=basis, interaction_cst=sets, **{**FAST, "max_atoms": 3}).fit(X, y)
    rest = set(range(COLUMNS)).difference(*sets)
    assert all(any(path <= one for one in [*sets, rest]) for path in model_paths(model))


@pytest.mark.parametrize("basis", TREES[::2], ids=str)
def test_more_sets_than_bits_of_a_word(basis):
    X, y = table(200, columns=20)
    assert pack_interactions("pairwise", 20).shape == (20, 3)
    model = gce.GCERegressor(basis=basis, interaction_cst="pairwise", **{**FAST, "max_atoms": 20}).fit(X, y)
    assert_kept(model, [set(pair) for pair in combinations(range(20), 2)])
    # sets of all words are used
    used = {min(path) for path in model_paths(model) if len(path) == 2}
    assert len(used) > 5


def test_categories_and_gaps_belong_to_their_column():
    X, y = table(300)
    rng = np.random.default_rng(1)
    holes = np.where(rng.random(300) < 0.3, np.nan, X[:, 1])
    kind = np.array(["red", "green", "blue", "grey"])[rng.integers(0, 4, 300)]
    known = np.where(np.isnan(holes), 2.0, holes)
    y = y + np.where(kind == "red", 3.0, 0.0) * known + np.where(kind == "blue", 2.0, -1.0) + known * np.isnan(holes)
    rows = frame(X[:, :3]).with_columns(x1=pl.Series(holes, nan_to_null=True), kind=pl.Series(kind))
    for basis in TREES:
        model = gce.GCERegressor(basis=basis, interaction_cst="no_interactions", **FAST).fit(rows, y)
        assert all(len(path) <= 1 for path in model_paths(model))
        # trees split the column itself, more than once on some path
        (family,) = model.result_.families
        assert all(record.atoms.splits_columns for record in family.rounds)
        assert {j for path in model_paths(model) for j in path} >= {1, 3}
        assert len(model.table_.encoder.flagged) == 5
        pairs = gce.GCERegressor(basis=basis, interaction_cst=[["kind", "x1"]], **FAST).fit(rows, y)
        assert_kept(pairs, [{1, 3}, {0, 2}])


@pytest.mark.parametrize("basis", [*TREES, "auto"], ids=str)
def test_models_without_interactions_are_additive(basis):
    X, y = table()
    model = gce.GCERegressor(basis=basis, interaction_cst="no_interactions", **FAST).fit(X, y)
    low, high = np.random.default_rng(2).normal(size=(2, 50, COLUMNS))
    scale = np.abs(model.predict(X)).max()
    for i, j in combinations(range(COLUMNS), 2):
        corners = [low.copy() for _ in range(4)]
        for corner, columns in zip(corners, ([], [i], [j], [i, j]), strict=True):
            corner[:, columns] = high[:, columns]
        none, one, other, both = map(model.predict, corners)
        np.testing.assert_allclose(both - one - other + none, 0, atol=1e-12 * scale)
    free = gce.GCERegressor(basis=basis, **FAST).fit(X, y)
    assert np.ptp(free.predict(X) - model.predict(X)) > 1e-3


@pytest.mark.parametrize("basis", TREES, ids=str)
def test_all_columns_in_one_set_are_no_constraint(basis):
    X, y = table()
    all_, nothing, none = (
        gce.GCERegressor(basis=basis, interaction_cst=sets, **FAST).fit(X, y).predict(X)
        for sets in ([range(COLUMNS), [0, 1]], [], None)
    )
    np.testing.assert_array_equal(all_, none)
    np.testing.assert_array_equal(nothing, none)


def test_the_order_of_sets_does_not_matter():
    X, y = table()
    one, other = (
        gce.GCERegressor(basis="tree", interaction_cst=sets, **FAST).fit(X, y)
        for sets in ([[0, 1], [2, 3, 4]], [(4, 3, 2), {1, 0}, [5]])
    )
    assert one.result_.interactions == other.result_.interactions == ((0, 1), (2, 3, 4), (5,))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_both_constraints_hold_together():
    X, y = table()
    model = gce.GCERegressor(
        basis=TREES[0], interaction_cst=SETS["halves"][0], monotonic_cst=[1, 0, 0, -1, 0, 0], **FAST
    ).fit(X, y)
    assert_kept(model, SETS["halves"][1])
    steps = np.zeros((len(X), COLUMNS))
    steps[:, 0], steps[:, 3] = 0.5, -0.5
    assert np.all(model.predict(X + steps) >= model.predict(X) - 1e-12 * model.bound_)


def test_forests_keep_to_one_set():
    X, y = table()
    for given_, sets in SETS.values():
        for tries in (None, 0.3):
            forest = Forest(5, max_features=tries)
            assert_kept(gce.GCERegressor(basis=forest, interaction_cst=given_, **FAST).fit(frame(X), y), sets)


@pytest.mark.parametrize("basis", TREES[::2], ids=str)
def test_unions_keep_them(basis):
    X, y = table()
    union = Union([basis, Tree(max_leaf_nodes=4)])
    limits = {"interaction_cst": "no_interactions", **FAST}
    predict = gce.GCERegressor(basis=union, **limits).fit(X, y).predict
    low, high = X[:40], X[40:80]
    for j in range(1, COLUMNS):
        one, other, both = low.copy(), low.copy(), low.copy()
        one[:, 0], other[:, j], both[:, [0, j]] = high[:, 0], high[:, j], high[:, [0, j]]
        np.testing.assert_allclose(predict(both) - predict(one) - predict(other) + predict(low), 0, atol=1e-10)


@pytest.mark.parametrize("basis", [SignTree(), Pool([np.sin]), Union([Tree(), SignTree()])], ids=str)
def test_other_bases_are_refused(basis):
    X, y = table(30)
    with pytest.raises(ValueError, match="does not support interaction_cst: use gce"):
        gce.GCERegressor(basis=basis, interaction_cst="pairwise", **FAST).fit(X, y)


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ([["x0", "nothing"]], "interaction_cst names the column 'nothing', which X does not have: it has 'x0', 'x1'"),
        ([[0, 6]], "interaction_cst has 6: use names or indices from 0 to 5"),
        ([[-1]], "interaction_cst has -1: use names or indices from 0 to 5"),
        ([[0, 1.5]], "interaction_cst has 1.5: use names or indices"),
        ([[True, False]], "interaction_cst has True: use names or indices"),
        ([[0], []], "interaction_cst has an empty set: leave it out"),
        ([0, 1], r"interaction_cst must list sets of columns, such as \[\[0, 1\], \[1, 2\]\], got 0 as a set"),
        (["x0", "x1"], "interaction_cst must list sets of columns, .* got 'x0' as a set"),
        ([iter([0, 1])], "interaction_cst must list sets of columns"),
        ("pairs", "interaction_cst must be None, 'pairwise', 'no_interactions' or a list of sets .* got 'pairs'"),
        (3, "interaction_cst must be None, .* got 3"),
        ({0: [1]}, "interaction_cst must be None, .*"),
    ],
)
def test_bad_sets_are_named(sets, words):
    X, y = table(30)
    with pytest.raises(ValueError, match=words):
        gce.GCERegressor(basis="tree", interaction_cst=sets, **FAST).fit(frame(X), y)


@pytest.mark.parametrize("name", SETS)
def test_bits_say_which_sets_a_column_is_in(name):
    given_, sets = SETS[name]
    packed = pack_interactions(read_interactions(given_, NAMES), COLUMNS)
    bits = np.unpackbits(packed.view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert {frozenset(np.flatnonzero(column).tolist()) for column in bits.T} - {frozenset()} == set(
        map(frozenset, sets)
    )


def test_one_column():
    X, y = table(40)
    for sets in ("pairwise", "no_interactions", [[0]]):
        model = gce.GCERegressor(basis="tree", interaction_cst=sets, **FAST).fit(X[:, :1], y)
        none = gce.GCERegressor(basis="tree", **FAST).fit(X[:, :1], y)
        np.testing.assert_array_equal(model.predict(X[:, :1]), none.predict(X[:, :1]))


@pytest.mark.parametrize("name", SETS)
def test_files_keep_sets_and_parameters(name, tmp_path):
    given_, sets = SETS[name]
    X, y = table()
    model = gce.GCERegressor(basis="tree", interaction_cst=given_, **FAST).fit(frame(X), y)
    model.save(tmp_path / "model.gce", resumable=True)
    back = gce.load(tmp_path / "model.gce")
    assert repr(back.interaction_cst) == repr(given_)
    assert list(map(type, back.interaction_cst)) == list(map(type, given_))
    assert back.result_.interactions == model.result_.interactions
    np.testing.assert_array_equal(back.predict(frame(X)), model.predict(frame(X)))
    assert_kept(back, sets)
    longer = {"warm_start": True, "max_atoms": 12}
    again = [one.set_params(**longer).fit(frame(X), y).predict(frame(X)) for one in (back, model)]
    np.testing.assert_array_equal(*again)
    assert_kept(back, sets)


def test_a_warm_start_keeps_its_sets():
    X, y = table()
    model = gce.GCERegressor(basis="tree", interaction_cst="pairwise", warm_start=True, **FAST).fit(X, y)
    words = "warm_start continues atoms with interaction constraints pairwise, which interaction_cst=None cannot change"
    with pytest.raises(ValueError, match=words):
        model.set_params(interaction_cst=None, max_atoms=12).fit(X, y)


def test_a_checkpoint_of_other_sets_is_refused(tmp_path):
    X, y = table(60)
    model = gce.GCERegressor(basis="tree", interaction_cst=[{"x0", "x1", "x2"}], **FAST)
    model.fit(frame(X), y, checkpoint=tmp_path)
    again = clone(model).fit(frame(X), y, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.predict(frame(X)), model.predict(frame(X)))
    with pytest.raises(ValueError, match=r"belongs to another fit \(of another interaction_cst\)"):
        clone(model).set_params(interaction_cst=None).fit(frame(X), y, checkpoint=tmp_path)


def test_external_models_are_refused():
    X, y = table(60)
    model = gce.GCERegressor(basis="tree", interaction_cst="pairwise", **FAST).fit(X, y)
    with pytest.raises(ValueError, match="interaction_cst='pairwise' would no longer hold with an external model"):
        model.add("other", gce.GCERegressor(basis="tree", **FAST).fit(X, y), X, y)


@pytest.mark.parametrize("kind", [gce.GCERegressor, gce.GCEClassifier])
def test_clones_have_the_parameter(kind):
    assert kind().get_params()["interaction_cst"] is None
    sets = [[0, 1], {"x2"}]
    model = clone(kind(interaction_cst=sets))
    assert model.get_params()["interaction_cst"] == sets
    assert model.set_params(interaction_cst="pairwise").interaction_cst == "pairwise"
