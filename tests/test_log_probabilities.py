"""Logarithms of probabilities: those of ``predict_proba``, and finite where that rounds to 0."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import gce

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
TWO, THREE = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])
MEMBERS = [("line", LogisticRegression()), ("bayes", GaussianNB())]
MODELS = {
    "greedy": gce.GCEClassifier(basis=gce.bases.Neural(hidden=3, max_epochs=5), max_atoms=3, cv=2, random_state=0),
    "at once": gce.NGCEClassifier(n_atoms=3, hidden=3, max_epochs=5, random_state=0),
    "network": gce.NNClassifier(hidden=5, max_epochs=5, random_state=0),
    "scores": gce.ConvexStackingClassifier(MEMBERS, random_state=0),
    "probabilities": gce.ConvexStackingClassifier(MEMBERS, mix="probabilities", random_state=0),
    "selection": gce.GreedySelectionClassifier(MEMBERS, random_state=0),
}


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("name", MODELS)
def test_they_are_the_logarithms(name, classes):
    model = MODELS[name].fit(X, classes)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("classes", [TWO, THREE], ids=["two", "three"])
def test_they_are_finite_where_scores_are(classes):
    model = clone(MODELS["network"]).set_params(temperature=1e-5).fit(X, classes)
    assert (model.predict_proba(X) == 0).any()
    logs, scores = model.predict_log_proba(X), model.decision_function(X).reshape(len(X), -1)
    assert np.isfinite(logs).all()
    spread = np.abs(scores[:, 0]) if classes is TWO else scores.max(1) - scores.min(1)
    np.testing.assert_allclose(-logs.min(1), 1e5 * spread, rtol=1e-12, atol=1.1)
