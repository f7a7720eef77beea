"""Trees and forests as ONNX graphs: every row in the leaf that the model finds, and what it says to 1e-9."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gce
from gce.bases import Forest, ForestAtoms, Neural, Tree, TreeAtoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.io.onnx import trees
from gce.io.onnx.ensemble import raw_scores
from gce.io.onnx.graph import Graph
from helpers import random_trees
from mixed_tables import plain_rows

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from test_onnx import ROWS, THREE, TWO, Y3, X, Y, contents, feeds, frame, session  # noqa: E402

TREE, FOREST, NET = Tree(max_leaf_nodes=5, min_samples_leaf=3), Forest(n_estimators=4), Neural(hidden=3, max_epochs=10)
SMALL = {"max_atoms": 4, "cv": 2, "random_state": 0}


def regressor(basis, **others):
    return gce.GCERegressor(**{**SMALL, "basis": basis, **others})


def classifier(basis, **others):
    return gce.GCEClassifier(**{**SMALL, "basis": basis, **others})


def assert_same(model, answers, rows):
    """Outputs of a graph are what the model says, to 1e-9 of the bound."""
    if hasattr(model, "classes_"):
        label, chances = answers
        assert label.tolist() == model.predict(rows).tolist()
        np.testing.assert_allclose(chances, model.predict_proba(rows), rtol=0, atol=1e-9)
    else:
        wanted = model.predict(rows).reshape(len(rows), -1)
        np.testing.assert_allclose(answers[0] / model.bound_, wanted / model.bound_, rtol=0, atol=1e-9)


CASES = {
    "trees": (regressor(TREE, max_atoms=30), Y),
    "trees outputs": (regressor(TREE), Y3),
    "trees pairwise": (regressor(TREE, algorithm="pairwise"), Y),
    "no clip": (regressor(TREE, clip=None), Y),
    "trees two": (classifier(TREE), TWO),
    "trees three": (classifier(TREE), THREE),
    "vectors three": (classifier(Tree(max_leaf_nodes=5, min_samples_leaf=3, outputs_per_tree="all")), THREE),
    "forest": (regressor(FOREST, max_atoms=1), Y),
    "forests outputs": (regressor(FOREST), Y3),
    "forest two": (classifier(FOREST, max_atoms=1), TWO),
    "forest three": (classifier(FOREST, temperature=2.0), THREE),
    "forest bound": (classifier(FOREST, bound=0.3), THREE),
    "mixed": (regressor([TREE, FOREST, NET]), Y),
    "mixed two": (classifier([TREE, FOREST, NET]), TWO),
    "mixed three": (classifier([FOREST, TREE]), THREE),
}


@pytest.mark.parametrize("name", CASES)
def test_the_graph_answers_as_the_model(name):
    model, y = CASES[name]
    run = session(clone(model).fit(X, y)).run
    model = clone(model).fit(X, y)
    for rows in (ROWS[:1], ROWS[30:37], ROWS):
        assert_same(model, run(None, {"X": rows}), rows)
    assert all(len(answer) == 0 for answer in run(None, {"X": ROWS[:0]}))


def test_so_it_does_for_tables_and_edited_models():
    train, new = frame(200, 0), frame(60, 1)
    y = np.where(train["town"] == "Rom", 3.0, 0.0) + train["age"].fillna(20) / 10
    model = regressor([TREE, FOREST], categorical_features=["zip"]).fit(train, y)
    model = model.prune(3, X=train, y=y)
    run = session(model)
    text = {each.name for each in run.get_inputs() if each.type == "tensor(string)"}
    for rows in (train, new):
        assert_same(model, run.run(None, feeds(rows, text)), rows)
    nothing = pd.DataFrame({"same": ["same"] * 60})
    model = regressor([TREE, FOREST]).fit(nothing, Y)
    assert_same(model, session(model).run(None, feeds(nothing, {"same"})), nothing)


def graph_of(ensemble, inputs):
    graph, k = Graph(), len(ensemble.offset)
    graph.output("raw", raw_scores(graph, ensemble, plain_rows(graph, inputs)), np.float64, k)
    run = runtime.InferenceSession(graph.model("0", {})).run
    return lambda rows: run(None, {"X": rows})[0]


def random_ensemble(seed, inputs, k):
    """Trees, forests of a link each, and the zero function, some without weight."""
    rng = np.random.default_rng(seed)
    bound = torch.from_numpy(rng.uniform(0.5, 20, k))
    offset = torch.from_numpy(rng.normal(size=k))
    link = ["identity", "logit" if k == 1 else "log"][int(rng.integers(2))]
    forest = random_trees(rng, inputs, k, 3 * 2, torch.float32)
    if link != "identity":
        forest.value.abs_()
    parts = [
        Zero(1, k),
        TreeAtoms(random_trees(rng, inputs, 1, 4 * k), bound),
        TreeAtoms(random_trees(rng, inputs, 1, 2 * k), bound / 3),
        ForestAtoms(forest, offset, bound, 3, link),
    ]
    count = sum(map(len, parts))
    weights = rng.random((count, k if rng.random() < 0.3 else 1)) * (rng.random((count, 1)) > 0.3)
    weights = torch.from_numpy(weights / np.maximum(weights.sum(0), 1e-9))
    nothing = torch.zeros(count, 2, dtype=torch.int64)
    return ConvexEnsemble(parts, weights[:, 0] if weights.shape[1] == 1 else weights, nothing, offset, bound), rng


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 3))
def test_ensembles_of_all_kinds(seed, inputs, k):
    ensemble, rng = random_ensemble(seed, inputs, k)
    answer = graph_of(ensemble, inputs)
    # right on thresholds, and one step beside them: a comparison in float32 could not tell
    grid = rng.integers(-7, 8, (60, inputs)) / 2
    for rows in (grid, np.nextafter(grid, np.inf), np.nextafter(grid, -np.inf), rng.normal(size=(40, inputs))):
        np.testing.assert_allclose(answer(rows), ensemble(torch.from_numpy(rows)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_thousands_of_trees_sum_in_double_whatever_their_unit(unit):
    # the operator adds up in double and gives a single: neither its digits nor its range would do
    rng = np.random.default_rng(0)
    parts = [TreeAtoms(random_trees(rng, 3, 1, 3000, most=9), torch.full((1,), unit, dtype=torch.float64))]
    weights = torch.full((3000,), 1 / 3000, dtype=torch.float64)
    places, zero = torch.zeros(3000, 2, dtype=torch.int64), torch.zeros(1, dtype=torch.float64)
    ensemble = ConvexEnsemble(parts, weights, places, zero, parts[0].bound)
    rows = rng.integers(-7, 8, (200, 3)) / 2
    wanted = ensemble(torch.from_numpy(rows)).numpy() / unit
    np.testing.assert_allclose(graph_of(ensemble, 3)(rows) / unit, wanted, rtol=0, atol=1e-11)


def on_cuts(model, column):
    """Rows whose value in a column of numbers is the last that goes left at a cut, and the first that goes right."""
    trees_of = [part for part in model.ensemble_.parts if isinstance(part, TreeAtoms)]
    cuts = np.concatenate([part.threshold[(part.feature == column) & (part.left > 0)].numpy() for part in trees_of])
    rows = np.repeat(X[:1], len(cuts), axis=0)
    low, high = np.full(len(cuts), X[:, column].min()), np.full(len(cuts), X[:, column].max())
    while (np.nextafter(low, high) < high).any():
        rows[:, column] = middle = low + (high - low) / 2
        left = model.table_.transform(rows)[:, column] <= cuts
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    rows = np.repeat(rows, 2, axis=0)
    rows[::2, column], rows[1::2, column] = low, high
    return rows


@pytest.mark.parametrize("clip", [None, 4.0])
def test_the_encoder_sends_rows_at_a_cut_to_the_side_where_predict_has_them(clip):
    model = regressor(TREE, max_atoms=30, clip=clip).fit(X, Y)
    run, sides = session(model).run, 0
    for column in range(X.shape[1]):
        rows = on_cuts(model, column)
        assert_same(model, run(None, {"X": rows}), rows)
        sides += len(np.unique(model.predict(rows)))
    assert sides > 20


def tree_nodes(contents):
    return [node for node in onnx.load_from_string(contents).graph.node if "Tree" in node.op_type]


def attribute(node, name):
    return next(onnx.helper.get_attribute_value(each) for each in node.attribute if each.name == name)


def test_trees_without_weight_stay_out():
    ensemble, _ = random_ensemble(3, 4, 1)
    ensemble.weights[:] = 0
    ensemble.weights[2] = 1.0
    graph = Graph()
    graph.output("raw", raw_scores(graph, ensemble, plain_rows(graph, 4)), np.float64, 1)
    (node,) = tree_nodes(graph.model("0", {}))
    assert set(attribute(node, "nodes_treeids")) == {0}


@pytest.mark.parametrize("name", ["trees", "trees outputs", "trees three", "forest two", "forest three"])
def test_a_row_is_given_sums_and_not_one_number_a_tree(name):
    model, y = CASES[name]
    model = clone(model).fit(X, y)
    trees_there = 0
    for node in tree_nodes(contents(model)):
        assert attribute(node, "n_targets") == 2 * len(model.offset_)
        trees_there += len(set(attribute(node, "nodes_treeids")))
    assert trees_there > 2 * len(model.offset_)


def test_pure_leaves_say_nothing_of_other_classes():
    model = classifier(FOREST, max_atoms=1).fit(X, THREE)
    for node in tree_nodes(contents(model)):
        leaves = attribute(node, "nodes_modes").count(b"LEAF")
        assert leaves <= len(attribute(node, "target_ids")) < 3 * leaves


def test_too_many_nodes_are_refused(monkeypatch):
    monkeypatch.setattr(trees, "_MAX_ENTRIES", 10)
    model = regressor(TREE).fit(X, Y)
    with pytest.raises(ValueError, match=r"tree nodes are too many for an ONNX graph: prune"):
        session(model)
