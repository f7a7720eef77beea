"""Edits that cannot be done are refused, and say why."""

import re

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeClassifier

import gce
from test_editing import LABELS, NET, NEW, Y_NEW, N, X, Y, fitted


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def classifier():
    return fitted(gce.GCEClassifier, LABELS)


EDITS_OF_NO_ROWS = [
    lambda m: m.explain(X[:0], Y[:0]),
    lambda m: m.explain(X[:0], Y[:0], by="atoms"),
    lambda m: m.explain(X[:0], Y[:0], groups=Y[:0]),
    lambda m: m.reweight(X[:0], Y[:0]),
    lambda m: m.remove("0:1", X[:0], Y[:0]),
    lambda m: m.prune(2, X=X[:0], y=Y[:0]),
    lambda m: m.prune(2, X=X[:0]),
]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda m: m.remove("0:77", X, Y), r"names has '0:77', which is not in this model: the nearest are '0:"),
        (lambda m: m.remove([], X, Y), r"names is \[\], so there is nothing to remove"),
        (lambda m: m.remove(77, X, Y), "names has 77, which is not in this model"),
        (lambda m: m.remove("1:0", X, Y), "'1:0' is the zero function around the offset"),
        (
            lambda m: m.remove([n for n in m.atom_names_ if n[-2:] != ":0"], X, Y),
            "only the offset would be left: keep at least one atom",
        ),
        (lambda m: m.remove("0:1", X[:-1], Y[:-1]), "was fitted to 60 rows of positive weight, but 59 are given"),
        (
            lambda m: m.remove("0:1", X[::-1], Y[::-1]),
            "the rows of the fit, but not as it had them: give them in",
        ),
        (lambda m: m.remove("0:1", X[::-1] + 1, Y), "these are not the rows of the fit in their order"),
        (lambda m: m.remove("0:1", NEW, Y), "inconsistent numbers of samples"),
        (lambda m: m.remove("0:1", X[:, :2], Y), "expecting 3 features"),
        (lambda m: m.add("0:1", Ridge(), X, Y), "there is a '0:1' already"),
        (lambda m: m.add("5:9", Ridge(), X, Y), "'5:9' is what an atom is called"),
        (lambda m: m.add(7, Ridge(), X, Y), "a name must be text, got 7"),
        (lambda m: m.add("tree", DecisionTreeClassifier(), X, Y), r"member 'tree' \(DecisionTreeClassifier\)"),
        (lambda m: m.prune(0, X=X, y=Y), "k must be an integer of at least 1, got 0"),
        (lambda m: m.prune(X=X, y=Y), "give either k, a size, or tol"),
        (lambda m: m.prune(3, tol=0.1, X=X, y=Y), "give either k, a size, or tol"),
        (lambda m: m.prune(tol=-1, X=X, y=Y), "tol must be a number of at least 0"),
        (lambda m: m.reweight(NEW, np.column_stack([Y_NEW, Y_NEW])), r"y has 2 target\(s\)"),
        (lambda m: m.reweight(NEW, Y_NEW, np.zeros(40)), "(?i)sample weights"),
        *((edit, r"there are no rows in [Xy]: give those") for edit in EDITS_OF_NO_ROWS),
        (lambda m: m.reweight(X, Y).explain(X, Y, groups=np.arange(N)), "leave out groups, X_val and y_val"),
        (lambda m: m.reweight(X, Y).explain(X, Y, X_val=X, y_val=Y), "leave out groups, X_val and y_val"),
    ],
)
def test_what_cannot_be_done_is_said(model, edit, words):
    with pytest.raises(ValueError, match=words):
        edit(model)


def test_simplices_of_their_own_and_monotone_models_are_refused():
    both = np.column_stack([Y, -Y])
    separate = gce.GCERegressor(max_atoms=2, cv=2, basis=gce.bases.Neural(2, max_epochs=5, shared=False)).fit(X, both)
    assert separate.weights_.shape == (len(separate.ensemble_), 2)
    with pytest.raises(ValueError, match=re.escape("(shared=False)")):
        separate.reweight(X, both)
    rising = gce.GCERegressor(max_atoms=2, cv=2, monotonic_cst=[1, 0, 0], **NET).fit(X, Y)
    with pytest.raises(ValueError, match="would no longer hold with an external model"):
        rising.add("ridge", Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="is not fitted yet"):
        gce.GCERegressor().remove("0:1", X, Y)


def test_other_classes_are_refused_and_fewer_are_enough_to_reweight(classifier):
    with pytest.raises(ValueError, match="was fitted to the classes"):
        classifier.remove("0:1", X, np.where(LABELS == "ant", "bee", LABELS))
    two = classifier.reweight(X[LABELS != "bee"], LABELS[LABELS != "bee"])
    assert two.predict_proba(NEW).shape == (40, 3)
