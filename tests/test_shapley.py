"""Shapley values of trees against sums over all coalitions, and against shap's."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

import shapley_brute as brute
from gce._utils.parallel import limited
from gce.bases.trees import TreeArrays
from gce.bases.trees.shapley import TreeGame

#: Values are sums of products of numbers of about 1, of which a few hundred are added.
ROUNDING = 1e-11


def random_rows(rng, n, columns, categories):
    X = rng.normal(size=(n, columns))
    X[:, list(categories)] = rng.integers(-1, 8, (n, len(categories)))
    X[rng.random(X.shape) < 0.15] = np.nan
    return X


class Case:
    """Trees that look at columns of which the last ones are made of the first, as parts of dates are."""

    def __init__(self, seed, columns, outputs, symmetric):
        rng = np.random.default_rng(seed)
        self.d = max(1, columns - rng.integers(0, 2))
        self.players = np.concatenate([np.arange(self.d), rng.integers(0, self.d, columns - self.d)])
        count, categories = rng.integers(1, 4), range(0, self.d, 3)
        self.trees = brute.random_trees(rng, count, columns, outputs, categories=categories, symmetric=symmetric)
        self.X, self.background = (random_rows(rng, n, columns, list(categories)) for n in (11, 3))
        self.weights, self.shares = rng.random((count, outputs)), rng.dirichlet(np.ones(3))
        self.into = np.zeros(count, np.int64)
        self.single = [brute.OneTree(self.trees, t) for t in range(count)]
        self.game = TreeGame(self.trees, self.players, self.d)

    def expected(self, i):
        """The game of a row by the weights of training rows."""
        pairs = list(zip(self.weights, self.single, strict=True))
        return lambda inside: sum(w * tree.expected(self.X[i], inside, self.players) for w, tree in pairs)

    def mixed(self, i):
        """The game of a row against the background."""

        def value(inside):
            rows = [np.where(np.isin(self.players, list(inside)), self.X[i], row) for row in self.background]
            trees = list(zip(self.weights, self.single, strict=True))
            return sum(s * sum(w * tree(row) for w, tree in trees) for s, row in zip(self.shares, rows, strict=True))

        return value


cases = st.builds(Case, st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 3), st.booleans())


@settings(max_examples=25, deadline=None)
@given(cases)
def test_values_by_training_weight_are_sums_over_all_coalitions(case):
    found = case.game.values(case.X, case.weights, case.into, 1)[0]
    for i in range(0, len(case.X), 4):
        assert np.abs(found[i] - brute.shapley(case.expected(i), case.d)).max() < ROUNDING


@settings(max_examples=25, deadline=None)
@given(cases)
def test_values_against_a_background_are_sums_over_all_coalitions(case):
    # a symmetric tree is looked up for many rows, and walked for few: both are tried
    X = np.repeat(case.X, 30, 0)
    found = case.game.against(X, case.background, case.shares, case.weights, case.into, 1)[0]
    few = case.game.against(case.X[:5], case.background, case.shares, case.weights, case.into, 1)[0]
    for i in range(0, 5, 2):
        by_hand = brute.shapley(case.mixed(i), case.d)
        assert np.abs(found[30 * i] - by_hand).max() < ROUNDING
        assert np.abs(few[i] - by_hand).max() < ROUNDING


@settings(max_examples=15, deadline=None)
@given(cases)
def test_interactions_are_sums_over_all_coalitions(case):
    found = case.game.pairs(case.X, case.weights, case.into, 1)[0]
    for i in range(0, len(case.X), 5):
        by_hand = brute.interactions(case.expected(i), case.d)
        by_hand[range(case.d), range(case.d)] = 0
        assert np.abs(found[i] - by_hand).max() < ROUNDING


@settings(max_examples=25, deadline=None)
@given(cases)
def test_values_and_the_base_add_up_to_the_prediction(case):
    X = torch.from_numpy(case.X)
    pred = case.trees.summed(X, torch.from_numpy(case.weights), torch.from_numpy(case.into), 1)[0].numpy()
    base = (case.weights * case.game.means()).sum(0)
    values = case.game.values(case.X, case.weights, case.into, 1)[0]
    assert np.abs(base + values.sum(1) - pred).max() < ROUNDING


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_row_has_the_same_values_alone_and_on_any_number_of_threads(symmetric):
    rng = np.random.default_rng(0)
    trees = brute.random_trees(rng, 5, 4, 2, categories=(1,), symmetric=symmetric)
    game, X, weights = TreeGame(trees, np.arange(4), 4), random_rows(rng, 1500, 4, [1]), rng.random((5, 2))
    background, shares, into = X[:6], np.full(6, 1 / 6), np.arange(5) % 2
    with limited(1):
        one = game.values(X, weights, into, 2), game.against(X, background, shares, weights, into, 2)
    with limited(3):
        several = game.values(X, weights, into, 2), game.against(X, background, shares, weights, into, 2)
    for a, b in zip(one, several, strict=True):
        assert np.array_equal(a, b)
    for i in (0, 77, 1499):
        assert np.array_equal(game.values(X[i : i + 1], weights, into, 2)[:, 0], one[0][:, i])


def test_many_columns_on_one_path():
    # a chain of 40 nodes, each of another column: no factorial and no polynomial loses digits
    d = 40
    rng = np.random.default_rng(0)
    left = np.zeros(2 * d + 1, np.int32)
    left[0 : 2 * d : 2] = np.arange(1, 2 * d, 2)
    feature = np.repeat(np.arange(d), 2)
    nodes = np.append(feature, 0).astype(np.int32), np.zeros(2 * d + 1), left, rng.normal(size=(2 * d + 1, 1))
    cover = torch.from_numpy(np.where(left > 0, 0, rng.integers(1, 9, 2 * d + 1))).float()
    trees = replace(TreeArrays.of([nodes]), cover=cover)
    game, one, into = TreeGame(trees, np.arange(d), d), np.ones((1, 1)), np.zeros(1, np.int64)
    X = np.abs(rng.normal(size=(9, d)))
    X[3:, rng.integers(0, d, 20)] *= -1
    pred = trees.summed(torch.from_numpy(X), torch.ones(1, 1).double(), torch.zeros(1).long(), 1)[0].numpy()
    values = game.values(X, one, into, 1)[0]
    assert np.abs(game.means()[0] + values.sum(1) - pred).max() < ROUNDING
    against = game.against(X, X[:2], np.array([0.5, 0.5]), one, into, 1)[0]
    assert np.abs(pred[:2].mean(0) + against.sum(1) - pred).max() < ROUNDING


def chain(levels):
    """A tree of so many levels, each with one leaf."""
    left = np.zeros(2 * levels + 1, np.int32)
    left[0 : 2 * levels : 2] = np.arange(1, 2 * levels, 2)
    value = np.random.default_rng(0).normal(size=(len(left), 1))
    nodes = np.zeros(len(left), np.int32), -np.arange(len(left), dtype=np.float64), left, value
    return nodes, np.where(left > 0, 0, 1)


def test_the_deepest_trees_have_values_and_deeper_ones_are_refused():
    for levels in (1024, 1025, 50_000):
        nodes, cover = chain(levels)
        trees = TreeArrays.cat([TreeArrays.of([chain(3)[0]]), TreeArrays.of([nodes])])
        trees = replace(trees, cover=torch.from_numpy(np.concatenate([chain(3)[1], cover])).float())
        if levels > 1024:
            with pytest.raises(ValueError, match="at most 1,024 levels of splits"):
                TreeGame(trees, np.arange(1), 1)
            continue
        game, X = TreeGame(trees, np.arange(1), 1), np.array([[0.5], [-5.0], [-3.0], [-1100.0]])
        weights, into = np.ones((2, 1)), np.zeros(2, np.int64)
        pred = trees.summed(torch.from_numpy(X), torch.ones(2, 1).double(), torch.zeros(2).long(), 1)[0].numpy()
        values = game.values(X, weights, into, 1)[0]
        assert len(np.unique(pred)) > 1
        assert np.abs(game.means().sum(0) + values.sum(1) - pred).max() < ROUNDING
        assert not game.pairs(X, weights, into, 1).any()
        against = game.against(X, X[:1], np.ones(1), weights, into, 1)[0]
        assert np.abs(pred[0] + against.sum(1) - pred).max() < ROUNDING


def as_ours(tree):
    """A tree of scikit-learn, with children next to each other."""
    order, places, i = [0], [], 0
    while i < len(order):
        node = order[i]
        inner = tree.children_left[node] >= 0
        places.append(len(order) if inner else 0)
        if inner:
            order += [tree.children_left[node], tree.children_right[node]]
        i += 1
    left, cover = np.array(places, np.int32), tree.weighted_n_node_samples[order]
    # float32 rows: a threshold is compared with numbers that float32 holds
    nodes = tree.feature[order].clip(0).astype(np.int32), tree.threshold[order], left, tree.value[order][:, :, 0]
    weight = torch.from_numpy(np.where(left > 0, 0, cover)).float()
    return replace(TreeArrays.of([nodes]), cover=weight)


@pytest.fixture(scope="module")
def forest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)).astype(np.float32).astype(np.float64)
    y = np.stack([X[:, 0] + X[:, 1] * X[:, 2], np.sin(X[:, 3])], 1)
    model = RandomForestRegressor(10, max_depth=8, random_state=0).fit(X, y)
    trees = TreeArrays.cat([as_ours(one.tree_) for one in model.estimators_])
    return model, TreeGame(trees, np.arange(6), 6), X


def test_values_are_those_of_shap(forest):
    shap = pytest.importorskip("shap")
    model, game, X = forest
    weights, into = np.full((10, 2), 0.1), np.zeros(10, np.int64)
    theirs = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    # their sums are in float64, but thresholds and values are rounded on the way
    assert np.abs(theirs.shap_values(X[:20]) - game.values(X[:20], weights, into, 1)[0]).max() < 1e-6
    theirs = shap.TreeExplainer(model, X[:10], feature_perturbation="interventional")
    found = game.against(X[:20], X[:10], np.full(10, 0.1), weights, into, 1)[0]
    assert np.abs(theirs.shap_values(X[:20], check_additivity=False) - found).max() < 1e-6


def test_interactions_are_those_of_shap(forest):
    shap = pytest.importorskip("shap")
    model, game, X = forest
    theirs = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent").shap_interaction_values(X[:5])
    found = game.pairs(X[:5], np.full((10, 2), 0.1), np.zeros(10, np.int64), 1)[0]
    apart = ~np.eye(6, dtype=bool)
    assert np.abs(theirs[:, apart] - found[:, apart]).max() < 1e-6
