"""Constraints of every family and of the default: what must not interact adds up, what must rise rises."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import gce
from gce._utils import cuda
from gce.bases import Forest, Networks, Neural, Neuron, SymmetricTree, Tree, Union
from gce.bases.by_member import MemberInputs
from gce.bases.neural import blocks
from gce.bases.neural.stored_inputs import DividedInputs
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower_forest import can_grow
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.bases.trees.tree_data import Constraints
from gce.distributed import Division, World
from gce.preprocessing.interactions import pack_interactions
from gce.preprocessing.sparse import SparseRows
from gce.training.families import default_bases
from helpers import by_tensor_operations

COLUMNS = 5
NET = {"hidden": 4, "max_epochs": 6}
FAMILIES = {
    "tree": Tree(max_leaf_nodes=8, min_samples_leaf=2),
    "symmetric": SymmetricTree(max_depth=3),
    "forest": Forest(4),
    "forest, large leaves": Forest(4, max_features=0.5, min_samples_leaf=3),
    "neural": Neural(**NET),
    "neural, tanh": Neural(**NET, activation="tanh", output="tanh", restarts=2),
    "neural, apart": Neural(**NET, shared=False),
    "neuron": Neuron(max_epochs=6),
    "union": Union([Tree(max_leaf_nodes=4), Neural(**NET)]),
    "auto": "auto",
}
SOME = {name: FAMILIES[name] for name in ("forest", "neural", "auto")}
FAST = {"max_atoms": 5, "cv": 2, "random_state": 0}
DEFAULT = ["tree", "symmetric", "forest", "neural"]


def table(n=80, seed=0):
    """Rows, and a target with interactions of all orders that does not keep to any sign."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS))
    y = X[:, 0] * X[:, 1] + np.prod(np.sign(X[:, :3]), axis=1) + np.sin(3 * X[:, 3]) * X[:, 4] + X.sum(1)
    return X, y + 0.1 * rng.normal(size=n)


def corners(low, high, i, j):
    """Rows ``low`` with none, either or both of two columns of ``high``."""
    found = [low.copy() for _ in range(4)]
    for rows, columns in zip(found, ([], [i], [j], [i, j]), strict=True):
        rows[:, columns] = high[:, columns]
    return found


def mixed_difference(answer, low, high, i, j):
    none, one, other, both = map(answer, corners(low, high, i, j))
    return np.abs(both - one - other + none).max()


def raw(model):
    return model.decision_function if hasattr(model, "classes_") else model.predict


def assert_additive(model, sets, columns=COLUMNS, precision=1e-12):
    """Mixed differences are rounding errors over all pairs of columns that share no set."""
    rng = np.random.default_rng(3)
    low, high = rng.normal(size=(2, 40, columns)) * rng.choice([1.0, 4.0], (2, 40, 1))
    reach = np.abs(raw(model)(low)).max() + np.max(model.bound_)
    for i, j in combinations(range(columns), 2):
        if not any({i, j} <= set(one) for one in sets):
            assert mixed_difference(raw(model), low, high, i, j) <= precision * reach


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sets(st.integers(0, COLUMNS - 1), min_size=1), max_size=4),
    st.sampled_from(list(FAMILIES)),
    st.sampled_from(["number", "numbers", "two", "three"]),
    st.integers(0, 2**16),
)
def test_columns_that_share_no_set_do_not_interact(sets, name, task, seed):
    X, y = table(60, seed)
    if task == "numbers" and name == "union":
        task = "number"
    kind = gce.GCERegressor if task in ("number", "numbers") else gce.GCEClassifier
    y = {"number": y, "numbers": np.c_[y, y**2], "two": y > 0, "three": np.digitize(y, [-1, 1])}[task]
    if name == "neural, apart" and kind is gce.GCEClassifier:
        name = "neural"
    limits = {**FAST, "max_atoms": 3, "interaction_cst": sets}
    model = kind(basis=FAMILIES[name], **limits).fit(X, y)
    assert_additive(model, [*sets, set(range(COLUMNS)).difference(*sets)])


@pytest.mark.parametrize("name", FAMILIES)
def test_what_may_interact_does_and_without_sets_all_columns_do(name):
    X, y = table()
    low, high = np.random.default_rng(4).normal(size=(2, 60, COLUMNS))
    limits = {**FAST, "max_atoms": 12}
    model = gce.GCERegressor(basis=FAMILIES[name], interaction_cst=[[0, 1], [2, 3, 4]], **limits).fit(X, y)
    free = gce.GCERegressor(basis=FAMILIES[name], **limits).fit(X, y)
    assert_additive(model, [[0, 1], [2, 3, 4]])
    scale = 1e-3 * np.ptp(y)
    assert max(mixed_difference(model.predict, low, high, *pair) for pair in ((0, 1), (3, 4))) > scale
    assert max(mixed_difference(free.predict, low, high, i, j) for i in (0, 1) for j in (2, 3, 4)) > scale


def test_many_rows_in_single_precision():
    X, y = table(4200)
    model = gce.GCERegressor(basis=Neural(hidden=4, max_epochs=2), interaction_cst="no_interactions", **FAST).fit(X, y)
    assert_additive(model, [], precision=1e-5)


def frame(n=500):
    """Rows of numbers, of which some are missing, few categories, and many."""
    X, y = table(n)
    rng = np.random.default_rng(5)
    kind, place = rng.integers(0, 3, n), rng.integers(0, 300, n)
    rows = pl.DataFrame(
        {
            "a": pl.Series(np.where(rng.random(n) < 0.3, np.nan, X[:, 0]), nan_to_null=True),
            "b": X[:, 1],
            "kind": [f"k{code}" for code in kind],
            "place": [f"p{code:03}" for code in place],
        }
    )
    y = y + X[:, 1] * (kind == 1) + 2 * rng.normal(size=300)[place] * (1 + (X[:, 0] > 0))
    return rows, y


def table_difference(answer, rows, i, j):
    """The mixed difference between rows and the same in another order."""
    none, one, other, both = (
        answer(rows.with_columns(**{name: rows[name].reverse() for name in names})) for names in ([], [i], [j], [i, j])
    )
    return np.abs(both - one - other + none).max()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", [gce.GCERegressor, gce.GCEClassifier])
def test_categories_and_missing_values_belong_to_their_column(kind, name):
    if name == "neural, apart":
        pytest.skip("outputs apart have no meaning for two classes")
    rows, y = frame()
    y = y if kind is gce.GCERegressor else y > np.median(y)
    sets = [["a", "kind"], ["b", "place"]]
    model = kind(basis=FAMILIES[name], interaction_cst=sets, monotonic_cst={"b": 1}, **FAST).fit(rows, y)
    reach = np.abs(raw(model)(rows)).max() + np.max(model.bound_)
    for i in sets[0]:
        for j in sets[1]:
            assert table_difference(raw(model), rows, i, j) <= 1e-12 * reach
    higher = raw(model)(rows.with_columns(pl.col("b") + 0.7))
    assert (higher >= raw(model)(rows) - 1e-12 * reach).all()
    # statistics of the target are of members, whose own columns are constrained alike
    if name != "union":
        assert model.table_.statistics is not None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", ["number", "numbers", "two", "one-hot"])
@pytest.mark.parametrize("name", ["forest", "forest, large leaves", "auto"])
def test_predictions_rise_and_fall(name, task, weighted):
    X, y = table(200)
    rng = np.random.default_rng(6)
    weight = rng.uniform(0.2, 3, 200) if weighted else None
    known = {"number": y, "numbers": np.c_[y, 50 + 3 * y - X[:, 1]], "two": y > 0, "one-hot": np.eye(2)[1 * (y > 0)]}
    kind = gce.GCEClassifier if task == "two" else gce.GCERegressor
    signs = {0: 1, 3: -1, 4: 1}
    model = kind(basis=FAMILIES[name], monotonic_cst=[signs.get(j, 0) for j in range(COLUMNS)], **FAST)
    model.fit(X, known[task], sample_weight=weight)
    low = rng.normal(size=(300, COLUMNS)) * 2
    moved = []
    for j, sign in signs.items():
        high = low.copy()
        high[:, j] += sign * rng.exponential(size=300) * 10.0 ** rng.integers(-3, 2, 300)
        moved.append(raw(model)(high) - raw(model)(low))
        assert (moved[-1] >= -1e-12 * np.max(model.bound_)).all()
    # means of targets that add up to 1 cannot all rise
    if task != "one-hot":
        assert np.max(moved) > 1e-3


def test_missing_values_of_a_monotone_column_may_have_any_effect():
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    gone = rng.random(300) < 0.5
    rows = pl.DataFrame({"x": pl.Series(np.where(gone, np.nan, x), nan_to_null=True), "other": rng.normal(size=300)})
    none = pl.DataFrame({"x": pl.Series([None], dtype=pl.Float64), "other": [0.0]})
    ordered = pl.DataFrame({"x": np.linspace(-3, 3, 50), "other": np.zeros(50)})
    for effect in (9.0, -9.0):
        model = gce.GCERegressor(basis=Forest(5), monotonic_cst={"x": 1}, **FAST).fit(rows, np.where(gone, effect, x))
        there = model.predict(ordered)
        assert (np.diff(there) >= -1e-12).all()
        assert abs(model.predict(none)[0] - effect) < np.abs(there - effect).min()


@pytest.mark.parametrize("limits", [{"monotonic_cst": {"x1": 1}}, {"interaction_cst": [["x0", "x3"]]}], ids=str)
def test_the_default_has_all_families_by_names_of_columns(limits):
    X, y = table()
    rows = pl.DataFrame({f"x{j}": X[:, j] for j in range(COLUMNS)})
    model = gce.GCERegressor(**limits, **FAST).fit(rows, y)
    assert [family.name for family in model.result_.families] == DEFAULT


@pytest.mark.parametrize("name", SOME)
def test_files_warm_starts_and_threads_give_the_same_bits(name, tmp_path):
    X, y = table()
    limits = {"interaction_cst": "pairwise", "monotonic_cst": [1, 0, 0, -1, 0], **FAST}
    model = gce.GCERegressor(basis=SOME[name], **limits, n_jobs=1).fit(X, y)
    model.save(tmp_path / "model.gce", resumable=True)
    np.testing.assert_array_equal(gce.load(tmp_path / "model.gce").predict(X), model.predict(X))
    threads = gce.GCERegressor(basis=SOME[name], **limits, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(threads.predict(X), model.predict(X))
    if name == "neural":
        longer = {**limits, "max_atoms": 8}
        back = gce.load(tmp_path / "model.gce").set_params(warm_start=True, max_atoms=8).fit(X, y)
        whole = gce.GCERegressor(basis=SOME[name], **longer, n_jobs=1).fit(X, y)
        np.testing.assert_array_equal(back.predict(X), whole.predict(X))


@pytest.mark.parametrize("limits", [{"monotonic_cst": [1, 0, 0, 0, 0]}, {"interaction_cst": "pairwise"}], ids=str)
def test_a_model_from_before_goes_on_with_the_families_that_it_has(limits):
    X, y = table()
    names = ["tree", "symmetric", "neural"] if "monotonic_cst" in limits else ["tree", "symmetric"]
    usual = default_bases(len(X), COLUMNS)
    model = gce.GCERegressor(basis={name: usual[name] for name in names}, **limits, **FAST).fit(X, y)
    model.set_params(basis="auto", warm_start=True, max_atoms=8).fit(X, y)
    assert [family.name for family in model.result_.families] == names
    assert max(len(family.rounds) for family in model.result_.families) == 8
    free = gce.GCERegressor(basis={name: usual[name] for name in names}, **FAST).fit(X, y)
    with pytest.raises(ValueError, match="but basis='auto' has tree, symmetric, forest, neural"):
        free.set_params(basis="auto", warm_start=True).fit(X, y)


@pytest.mark.parametrize("name", ["neural", "forest"])
def test_one_set_of_all_columns_is_no_constraint(name):
    X, y = table()
    some, none = (
        gce.GCEClassifier(basis=FAMILIES[name], interaction_cst=sets, **FAST).fit(X, y > 0).predict_proba(X)
        for sets in ([range(COLUMNS), [0]], None)
    )
    np.testing.assert_array_equal(some, none)


# Networks: each looks at one set.


def looked_at(model):
    """The inputs that each network of a model looks at."""
    for part in model.ensemble_.parts:
        if isinstance(part, Networks):
            yield from (set(np.flatnonzero(net.abs().amax(0).numpy()).tolist()) for net in part.parameters_[0])


@pytest.mark.parametrize("tensors", [False, True])
def test_networks_look_at_single_sets_and_use_several(monkeypatch, tensors):
    if tensors:
        by_tensor_operations(monkeypatch)
    X, y = table()
    basis = Neural(**NET, batch_size=30, inherit=0.9)
    model = gce.GCERegressor(basis=basis, interaction_cst="pairwise", **{**FAST, "max_atoms": 15}).fit(X, y)
    found = list(looked_at(model))
    assert all(len(own) == 2 for own in found)
    assert len(set(map(frozenset, found))) > 3


def test_sets_are_drawn_from_those_that_have_inputs():
    groups = pack_interactions("pairwise", 20)[np.arange(19)]
    rng = torch.Generator().manual_seed(0)
    drawn = [blocks.drawn_sets(groups, rng) for _ in range(400)]
    assert all(len(set(own)) == blocks.TRIED_SETS for own in drawn)
    pairs = list(combinations(range(20), 2))
    assert {number for own in drawn for number in own} == set(range(190))
    for number in (0, 63, 64, 189):
        assert set(blocks.inputs_of_set(groups, number).tolist()) == set(pairs[number]) - {19}
    assert blocks.drawn_sets(pack_interactions(((0, 1), (2,)), 3), rng) == [0, 1]


def test_rows_of_every_kind_give_some_of_their_inputs():
    X = np.random.default_rng(0).normal(size=(6, 4))
    inputs, own = np.array([0, 3]), torch.from_numpy(X)
    wanted = own[:, [0, 3]]
    assert torch.equal(blocks.take_inputs(own, inputs), wanted)
    for part in blocks.take_inputs(MemberInputs((own, own)), inputs).parts:
        assert torch.equal(part, wanted)
    divided = DividedInputs(own, Division(np.array([6]), 0, 1, World()), (0,))
    assert torch.equal(blocks.take_inputs(divided, inputs).own, wanted)
    sparse = replace(SparseRows.from_matrix(csr_array(X)), centre=torch.arange(4.0, dtype=torch.float64))
    found = blocks.take_inputs(sparse, inputs)
    np.testing.assert_array_equal(found.toarray(), sparse.toarray()[:, [0, 3]])


def test_sparse_rows():
    X, y = table(120)
    X[np.abs(X) < 0.7] = 0
    for name, basis in SOME.items():
        model = gce.GCERegressor(basis=basis, interaction_cst=[[0, 1], [2, 3, 4]], **FAST).fit(csr_array(X), y)
        one, other = np.zeros((2, 30, COLUMNS))
        one[:, :2], other[:, 2:] = X[:30, :2], X[:30, 2:]
        none, first, second, both = (model.predict(csr_array(rows)) for rows in (0 * one, one, other, one + other))
        np.testing.assert_allclose(both - first - second + none, 0, atol=1e-12 * np.max(model.bound_), err_msg=name)


# Forests: the device knows no constraints.


@pytest.mark.parametrize("constraints", [Constraints(np.array([1, 0])), Constraints(None, np.ones((2, 1), np.uint64))])
def test_constrained_forests_are_grown_on_the_processor(monkeypatch, constraints):
    monkeypatch.setattr(cuda, "missing", lambda device: None)
    binned = BinnedRows.of(torch.randn(10, 2, dtype=torch.float64), 16)
    targets = WeightedTargets.of(np.ones(10), np.arange(10.0)[:, None])
    trees = RandomTrees(binned, ((np.arange(10, dtype=np.uint32), targets),), 2, 1.0)
    assert can_grow(trees, torch.device("cuda"))
    assert not can_grow(replace(trees, constraints=constraints), torch.device("cuda"))
