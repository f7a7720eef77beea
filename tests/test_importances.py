"""feature_importances_: gains of splits by hand, columns that matter, families, files."""

import numpy as np
import pytest

import gce
from gce.bases import Forest, SymmetricTree, Tree
from gce.bases.trees.atoms import TreeAtomsBase
from gce.training.covers import covers_of
from shapley_brute import OneTree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4))
Y = 3 * X[:, 0] + X[:, 1] * X[:, 2]
BASES = {
    "tree": Tree(),
    "symmetric": SymmetricTree(),
    "forest": Forest(n_estimators=5),
    "neural": "neural",
    "auto": "auto",
}


def fitted(basis, **given):
    return gce.GCERegressor(basis=basis, max_iter=30, cv=2, random_state=0, **given).fit(X, Y)


@pytest.mark.parametrize("basis", BASES.values(), ids=BASES)
def test_importances_are_shares_and_find_the_columns_that_matter(basis):
    found = fitted(basis).feature_importances_
    assert found.shape == (4,)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    assert found.argmax() == 0
    assert found.argmin() == 3


def test_importances_of_trees_are_the_gains_of_their_splits():
    model = fitted(Tree(max_leaf_nodes=5))
    (part,) = (part for part in model.ensemble_.parts if isinstance(part, TreeAtomsBase))
    gains, weights = np.zeros(4), dict(zip(model.atom_names_, model.weights_, strict=True))
    own = [weight for name, weight in weights.items() if not name.endswith(":0")]
    for t, weight in enumerate(own):
        tree = OneTree(part.trees, t)

        def visit(node, tree=tree, weight=weight):
            """The weight and the mean of a node."""
            at = tree.root + node
            left = int(part.trees.left[at])
            if not left:
                return tree.weight(node), weight * float(part.trees.value[at, 0])
            (a, u), (b, v) = visit(left), visit(left + 1)
            # half of the sums of squares that a split explains
            mean = (a * u + b * v) / (a + b)
            gains[int(part.trees.feature[at])] += a * (u - mean) ** 2 + b * (v - mean) ** 2
            return a + b, mean

        visit(0)
    assert np.allclose(model.feature_importances_, gains / gains.sum(), atol=1e-12)


def test_covers_count_the_training_rows():
    model = fitted("auto")
    covers = covers_of(model.ensemble_)
    assert covers
    for part, own in covers.items():
        trees = model.ensemble_.parts[int(part)].trees
        totals = [own[first : first + size].sum() for first, size in zip(trees.first, trees.size, strict=True)]
        assert all(total == len(X) for total in totals)
        assert not own[trees.left > 0].any()


@pytest.mark.parametrize("basis", [Tree(), Forest(5)], ids=["tree", "forest"])
def test_each_leaf_was_grown_from_some_row(basis):
    model = fitted(basis)
    (own,) = covers_of(model.ensemble_).values()
    (part,) = (part for part in model.ensemble_.parts if isinstance(part, TreeAtomsBase))
    assert (own[part.trees.left == 0] > 0).all()


def test_a_constant_model_has_no_importances():
    model = gce.GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, np.zeros(len(X)))
    assert not model.feature_importances_.any()


@pytest.mark.parametrize("kind", [gce.NGCEClassifier, gce.NNClassifier, gce.NGCERegressor, gce.NNRegressor])
def test_networks_alone_have_importances(kind):
    y = Y if kind.__name__.endswith("Regressor") else np.digitize(Y, [-1, 1])
    found = kind(max_epochs=20, random_state=0).fit(X, y).feature_importances_
    assert found.sum() == pytest.approx(1)
    assert found.argmax() == 0


def test_sparse_rows_have_importances_and_values():
    from scipy.sparse import csr_array

    rows = csr_array(np.where(np.abs(X) > 0.7, X, 0))
    model = gce.GCERegressor(max_iter=3, cv=2, random_state=0).fit(rows, Y)
    assert model.feature_importances_.argmax() == 0
    found = model.shap_values(rows[:5])
    assert np.abs(found.base_values + found.values.sum(1) - model.predict(rows[:5])).max() < 1e-9
