"""Thresholds of scikit-learn around a GCEClassifier: tuned, fixed, cloned, in a search."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV

import gce

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
NAMES = np.array(["common", "rare"])
Y = NAMES[(X[:, 0] + 0.5 * RNG.normal(size=300) > 1.2).astype(int)]
SMALL = {"basis": "tree", "max_atoms": 8, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def tuned():
    model = TunedThresholdClassifierCV(
        gce.GCEClassifier(**SMALL), scoring="balanced_accuracy", cv=3, random_state=0, store_cv_results=True
    )
    return model.fit(X, Y)


def test_a_tuned_threshold_is_the_best_of_those_tried(tuned):
    tried = tuned.cv_results_
    assert tuned.best_threshold_ == tried["thresholds"][np.argmax(tried["scores"])]
    expected = NAMES[(tuned.predict_proba(X)[:, 1] >= tuned.best_threshold_).astype(int)]
    np.testing.assert_array_equal(tuned.predict(X), expected)
    plain = gce.GCEClassifier(**SMALL).fit(X, Y)
    np.testing.assert_array_equal(tuned.predict_proba(X), plain.predict_proba(X))
    assert balanced_accuracy_score(Y, tuned.predict(X)) > balanced_accuracy_score(Y, plain.predict(X))


def test_a_clone_is_fitted_alike(tuned):
    again = clone(tuned)
    assert again.get_params()["estimator__max_atoms"] == 8
    again.fit(X, Y)
    assert again.best_threshold_ == tuned.best_threshold_
    np.testing.assert_array_equal(again.predict(X), tuned.predict(X))


@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_a_fixed_threshold(response):
    plain = gce.GCEClassifier(**SMALL).fit(X, Y)
    scores = plain.predict_proba(X)[:, 1] if response == "predict_proba" else plain.decision_function(X)
    threshold = float(np.quantile(scores, 0.7))
    for own in (gce.GCEClassifier(**SMALL), FrozenEstimator(plain)):
        fixed = FixedThresholdClassifier(own, threshold=threshold, response_method=response).fit(X, Y)
        np.testing.assert_array_equal(fixed.predict(X), NAMES[(scores >= threshold).astype(int)])
    other = FixedThresholdClassifier(gce.GCEClassifier(**SMALL), threshold=threshold, pos_label="common")
    np.testing.assert_array_equal(clone(other).fit(X, Y).classes_, NAMES)


def test_class_weights_are_searched_beneath_a_threshold():
    inner = FixedThresholdClassifier(gce.GCEClassifier(**SMALL), threshold=0.3)
    found = GridSearchCV(inner, {"estimator__class_weight": [None, "balanced"]}, cv=2, scoring="balanced_accuracy")
    found.fit(X, Y)
    assert len(np.unique(found.cv_results_["mean_test_score"])) == 2
