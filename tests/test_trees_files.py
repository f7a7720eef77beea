"""Trees, forests and mixed fits in files: what comes back is what went in, to the last bit."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gce
from gce._utils.codecs import Parts
from gce.bases import Forest, ForestAtoms, Networks, Neural, Proposal, Tree, TreeAtoms, Zero
from gce.bases.neural.network import TwoLayer
from gce.bases.registry import restore, store
from gce.bases.trees import TreeArrays
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.ensemble import collect
from gce.frank_wolfe.step import Direction
from gce.io import container, paths
from gce.io.paths import MOST_READ, SizeBudget
from gce.preprocessing.mixed import Widths
from helpers import random_trees
from test_model_files import NEW, ONE, THREE, TWO, X, assert_equal

MANY = np.column_stack([ONE, -5 * X[:, 2] ** 2])
TREE, FOREST, NET = Tree(max_leaf_nodes=4, min_samples_leaf=3), Forest(n_estimators=3), Neural(hidden=3, max_epochs=10)
SMALL = {"max_atoms": 6, "cv": 2, "random_state": 0}


def regressor(basis, **others):
    return gce.GCERegressor(**{**SMALL, "basis": basis, **others})


def classifier(basis, **others):
    return gce.GCEClassifier(**{**SMALL, "basis": basis, **others})


CASES = {
    "trees": (regressor(TREE, max_atoms=40, n_iter_no_change=None), ONE),
    "trees-outputs": (regressor(TREE), MANY),
    "trees-bound": (regressor(TREE, bound=60.0), ONE),
    "trees-pairwise": (regressor(TREE, algorithm="pairwise"), ONE),
    "trees-quantile": (regressor(TREE, loss="quantile"), ONE),
    "trees-two": (classifier(TREE), TWO),
    "trees-three": (classifier(TREE), THREE),
    "vectors-three": (classifier(Tree(max_leaf_nodes=4, min_samples_leaf=3, outputs_per_tree="all")), THREE),
    "networks-boosting": (regressor(NET, algorithm="boosting"), ONE),
    "forest": (regressor(FOREST, max_atoms=1), ONE),
    "forest-outputs": (regressor(FOREST), MANY),
    "forest-two": (classifier(FOREST), TWO),
    "forest-three": (classifier(FOREST), THREE),
    "mixed": (regressor([TREE, FOREST, NET]), ONE),
    "mixed-outputs": (regressor({"one": TREE, "other": Tree(max_leaf_nodes=3), "third": NET}), MANY),
    "mixed-two": (classifier([TREE, FOREST]), TWO),
    "mixed-three": (classifier([FOREST, TREE, NET]), THREE),
    "mixed-nothing-held-out": (regressor([TREE, NET], cv=None, validation_fraction=None), ONE),
    "mixed-scored": (regressor([TREE, NET], scoring="r2"), ONE),
    "default": (gce.GCERegressor(max_atoms=3, cv=2, random_state=0), ONE),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.safetensors"


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_what_comes_back_is_what_went_in(name, resumable, path):
    model, y = CASES[name]
    model = clone(model).fit(X, y)
    model.save(path, resumable=resumable)
    back = gce.load(path)
    assert back.result_.has_stages == resumable
    assert_equal(model, back)
    assert back.history_ == model.history_
    assert back.n_iter_ == model.n_iter_
    assert np.array_equal(back.bound_, model.bound_)
    assert np.array_equal(back.weights_, model.weights_)
    assert repr(back.get_params()) == repr(model.get_params())
    assert vars(back).keys() == vars(model).keys()
    for buffer, own in model.ensemble_.state_dict().items():
        assert torch.equal(back.ensemble_.state_dict()[buffer], own)
        assert back.ensemble_.state_dict()[buffer].dtype == own.dtype
    if name.startswith("mixed"):
        assert back.result_.family_weights == model.result_.family_weights
    # what was written twice is the same file, but for the time of writing
    back.save(path.with_name("again"), resumable=resumable)
    first, second = container.read(path), container.read(path.with_name("again"))
    assert {**first[0], "written": 0} == {**second[0], "written": 0}
    assert all(torch.equal(first[1][tensor], second[1][tensor]) for tensor in first[1].keys() | second[1].keys())


@pytest.mark.parametrize("name", ["trees", "trees-outputs", "mixed", "mixed-three", "networks-boosting"])
def test_a_loaded_fit_goes_on_where_the_saved_one_would(name, path):
    model, y = CASES[name]
    model = clone(model).set_params(warm_start=True, max_atoms=2, n_iter_no_change=None).fit(X, y)
    model.save(path)
    back = gce.load(path)
    before = model.n_iter_
    assert_equal(model.set_params(max_atoms=5).fit(X, y), back.set_params(max_atoms=5).fit(X, y))
    assert model.n_iter_ > before
    timeless = [[{**entry, "seconds": 0} for entry in one.history_] for one in (model, back)]
    assert timeless[0] == timeless[1]
    # the ensemble of several families comes last
    entries = model.n_iter_ + (len(model.result_.families) > 1)
    assert [entry["t"] for entry in model.history_] == list(range(1, 1 + entries))
    seconds = [entry["seconds"] for entry in model.history_]
    assert seconds == sorted(seconds)


def test_families_whose_turn_did_not_come_come_back(path):
    model = regressor([TREE, FOREST, NET], callbacks=[lambda step: step.t == 2], warm_start=True).fit(X, ONE)
    assert [family.name for family in model.result_.fitted_families] == ["tree"]
    model.set_params(callbacks=None).save(path)
    back = gce.load(path)
    assert_equal(model, back)
    assert back.history_ == model.history_
    assert_equal(model.fit(X, ONE), back.fit(X, ONE))
    assert [family.name for family in back.result_.fitted_families] == ["tree", "forest", "neural"]


@pytest.mark.parametrize("name", ["trees-outputs", "mixed-outputs", "mixed-three"])
def test_an_edited_ensemble_comes_back(name, path):
    model, y = CASES[name]
    pruned = clone(model).fit(X, y).prune(4, X=X, y=y)
    pruned.save(path)
    assert np.array_equal(gce.load(path).predict(NEW), pruned.predict(NEW))


def test_atoms_of_two_hulls_stay_apart():
    """Atoms in units of different bounds must not be stacked under one."""
    half, bound = torch.tensor([0.5]).double(), torch.full((2,), 9.0).double()
    for atoms in (trees_of(), networks()):
        kept = [(0, t, some, 0, half) for t, some in enumerate((atoms, atoms.scaled(0.25)))]
        ensemble = collect(kept, torch.zeros(2).double(), bound)
        rows = torch.from_numpy(X)
        torch.testing.assert_close(ensemble(rows), 0.625 * atoms(rows)[0], rtol=1e-12, atol=1e-12)


def test_pickles_hold_no_rows_of_a_fit():
    model = clone(CASES["trees"][0]).fit(X, ONE)
    size = len(pickle.dumps(model))
    model.predict(np.tile(X, (500, 1)))
    assert len(pickle.dumps(model)) == size
    assert_equal(model, pickle.loads(pickle.dumps(model)))


# Trees.


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([torch.float64, torch.float32]))
def test_any_grove_comes_back(seed, outputs, dtype):
    grove = random_trees(np.random.default_rng(seed), 5, outputs, 12, dtype)
    back = TreeArrays.restored(grove.stored(), Widths(5, 5), outputs, dtype)
    for name, tensor in grove.tensors().items():
        assert torch.equal(tensor, back.tensors()[name])
        assert tensor.dtype == back.tensors()[name].dtype


def trees_of(seed=0, k=2):
    grove = random_trees(np.random.default_rng(seed), 3, 1, 6 * k, torch.float64)
    return TreeAtoms(grove, torch.full((k,), 2.0, dtype=torch.float64))


def networks():
    architecture = TwoLayer(3, "relu", "hardtanh")
    parameters = architecture.start(3, 2, torch.Generator().manual_seed(0), torch.float64)
    return Networks(architecture, [p[None] for p in parameters], torch.full((2,), 2.0).double())


def altered(parts, name, index, value):
    # integers may be stored in any width
    tensors = {key: tensor.clone() for key, tensor in parts.tensors.items()}
    if not tensors[name].is_floating_point() and name != "grove.splits":
        tensors[name] = tensors[name].long()
    tensors[name][index] = value
    return Parts(parts.meta, tensors)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("grove.left", 0, "children"),
        ("grove.left", -1, "children"),
        ("grove.left", 10_000, "children"),
        ("grove.feature", 3, "a column that does not exist: there are 3"),
        ("grove.feature", -1, "a column that does not exist"),
        ("grove.table", torch.nan, "not finite"),
        ("grove.table", torch.inf, "not finite"),
        ("grove.cut", -1, "a threshold that does not exist"),
        ("grove.cut", 10_000, "a threshold that does not exist"),
        ("grove.splits", 0, "must be torch"),
        ("grove.value", torch.nan, "not finite"),
        ("grove.value", 1.001, "can exceed the bound of the ensemble"),
        ("grove.value", -1.001, "can exceed the bound of the ensemble"),
        ("grove.size", 0, "sizes"),
        ("grove.size", 2**62, "sizes"),
        ("bound", 2.5, "can exceed the bound of the ensemble"),
        ("bound", 0.0, "can exceed the bound of the ensemble"),
        ("bound", torch.nan, "not finite"),
    ],
)
def test_trees_that_are_none_are_refused(name, value, message):
    atoms = trees_of()
    bound = torch.full((2,), 2.0, dtype=torch.float64)
    assert len(restore(store([atoms]), Widths(3, 3), bound)[0]) == len(atoms)
    with pytest.raises(ValueError, match=message):
        TreeAtoms.restored(altered(atoms.stored(), name, 0, value), Widths(3, 3), bound)


def test_a_node_with_two_parents_is_refused():
    """Or a small file could describe a tree that is met without end."""
    left = torch.tensor([1, 3, 3, 0, 0], dtype=torch.int32)
    tree = TreeArrays(
        torch.tensor([5]), torch.zeros(5, dtype=torch.int32), torch.zeros(5).double(), left, torch.zeros(5, 1).double()
    )
    with pytest.raises(ValueError, match="child of exactly one node"):
        TreeArrays.restored(tree.stored(), Widths(1, 1), 1, torch.float64)


def test_a_row_cannot_fall_into_another_tree():
    left = torch.tensor([1, 0, 0, 1, 0, 0], dtype=torch.int32)
    two = TreeArrays(
        torch.tensor([3, 3]),
        torch.zeros(6, dtype=torch.int32),
        torch.zeros(6).double(),
        left,
        torch.zeros(6, 1).double(),
    )
    parts = two.stored()
    TreeArrays.restored(parts, Widths(1, 1), 1, torch.float64)
    for place in (2, 4):
        with pytest.raises(ValueError, match="in its own tree"):
            TreeArrays.restored(altered(parts, "left", 0, place), Widths(1, 1), 1, torch.float64)


@pytest.mark.parametrize(
    ("k", "link", "value", "message"),
    [
        (1, "logit", -0.1, "not probabilities"),
        (1, "logit", 1.1, "not probabilities"),
        (3, "log", 1.1, "not probabilities"),
        (3, "logit", 1.1, "not probabilities"),
        (3, "identity", torch.inf, "not finite"),
    ],
)
def test_forests_that_are_none_are_refused(k, link, value, message):
    bound = torch.full((k,), 9.0, dtype=torch.float64)
    grove = random_trees(np.random.default_rng(0), 3, k, 6, torch.float32)
    grove.value.abs_()
    atoms = ForestAtoms(grove, torch.zeros(k, dtype=torch.float64), bound, 3, link)
    assert len(ForestAtoms.restored(atoms.stored(), Widths(3, 3), bound)) == 2
    with pytest.raises(ValueError, match=message):
        ForestAtoms.restored(altered(atoms.stored(), "grove.value", 0, value), Widths(3, 3), bound)
    with pytest.raises(ValueError, match="exceed the bound of the ensemble"):
        ForestAtoms.restored(ForestAtoms(grove, atoms.offset, 2 * bound, 3, "identity").stored(), Widths(3, 3), bound)
    with pytest.raises(ValueError, match="divided into forests of 4"):
        ForestAtoms.restored(ForestAtoms(grove, atoms.offset, bound, 4, "identity").stored(), Widths(3, 3), bound)


# Weights.


def course_of(seed, rounds=30, members=2, blocks=1):
    """Weights of rounds that pairwise steps between random atoms leave, members leaving one after another."""
    rng = np.random.default_rng(seed)
    active = ActiveSet(torch.zeros(3, 1).double(), 3, members, blocks, separate=blocks > 1)
    path = []
    for t in range(rounds):
        if t == rounds // 2:
            active.retire(torch.arange(members) < max(1, members - 1))
        if rng.random() < 0.8:
            active.admit(Proposal(Zero(len(active.members), blocks)), torch.ones(len(active.members), dtype=torch.bool))
        shape = len(active.members), active.weights.shape[2]
        go = Direction(
            torch.from_numpy(rng.integers(0, len(active.slots), shape)), torch.zeros(shape, dtype=torch.long)
        )
        active.apply(go, active.limit(go) * torch.from_numpy(rng.random(shape)))
        path.append((active.members.tolist(), active.weights.clone()))
    return path


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 3), st.sampled_from([1, 2]))
def test_paths_of_weights_come_back_to_the_bit(seed, rounds, members, blocks):
    path = course_of(seed, rounds, members, blocks)
    parts = Parts()
    parts.add("path", paths.store(path, SizeBudget(1 << 20)))
    back = paths.restore(
        parts, [who for who, _ in path], [weights.shape[1] for _, weights in path], SizeBudget(1 << 20)
    )
    assert all(torch.equal(own, other) for (_, own), other in zip(path, back, strict=True))


def test_boosted_weights_take_a_few_numbers_a_round(path):
    model = clone(CASES["trees"][0]).fit(X, ONE)
    model.save(path, resumable=True)
    _, tensors = container.read(path)
    rounds = sum(len(record.members) for record in model.result_.families[0].rounds)
    assert rounds == 80
    # of a new tree and of the zero function
    assert len(tensors["families.0.course.path.moved"]) == 2 * rounds
    assert sum(record.weights.numel() for record in model.result_.families[0].rounds) > 800


def test_weights_that_all_move_are_written_as_they_are(path):
    model = regressor(NET, algorithm="frank-wolfe").fit(X, ONE)
    model.save(path, resumable=True)
    _, tensors = container.read(path)
    assert "families.0.course.path.weights" in tensors
    assert_equal(model, gce.load(path))


def test_moves_that_would_fill_the_memory_are_refused():
    rounds = 20_000
    moves = Parts({"blocks": 1}, {"counts": torch.zeros(rounds, dtype=torch.int64)})
    parts = Parts()
    parts.add("path", moves)
    with pytest.raises(ValueError, match="more than gce stores as changes"):
        paths.restore(parts, [[0]] * rounds, list(range(1, rounds + 1)), SizeBudget(MOST_READ))
