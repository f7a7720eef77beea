"""What models answer: columns in one order whoever learned them, and faults named."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, logit
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from gce.training.predictions import PredictedValues, Probabilities, RawScores

X = np.random.default_rng(0).normal(size=(40, 3))
WORDS = np.array(["ant", "bee", "cat"])


class Says:
    """A model whose answers are given."""

    def __init__(self, classes=None, **answers):
        if classes is not None:
            self.classes_ = np.asarray(classes)
        for method, answer in answers.items():
            setattr(self, method, lambda X, answer=answer: answer)


def codes(classes):
    return np.arange(len(X)) * 7 % len(classes)


@settings(deadline=None, max_examples=30)
@given(order=st.permutations(range(4)), known=st.integers(1, 4), seed=st.integers(0, 99))
def test_probabilities_stand_where_their_classes_stand(order, known, seed):
    classes = np.array(["a", "b", "c", "d"])
    own = classes[order[:known]]
    told = np.random.default_rng(seed).dirichlet(np.ones(known), 5)
    answer = Probabilities(classes).predict("m", Says(own, predict_proba=told), X[:5])
    for j, label in enumerate(classes):
        expected = told[:, list(own).index(label)] if label in own else np.zeros(5)
        np.testing.assert_array_equal(answer[:, j], expected)


def test_a_model_without_classes_has_them_in_the_order_asked_for():
    told = np.full((5, 3), 1 / 3)
    np.testing.assert_array_equal(Probabilities(WORDS).predict("m", Says(predict_proba=told), X[:5]), told)


def test_probabilities_sum_to_1_to_the_rounding_of_float64_whoever_gives_them():
    told = np.random.default_rng(0).dirichlet(np.ones(3), 5)
    np.testing.assert_array_equal(Probabilities(WORDS).predict("m", Says(predict_proba=told), X[:5]), told)
    single = Probabilities(WORDS).predict("m", Says(predict_proba=told.astype(np.float32)), X[:5])
    np.testing.assert_allclose(single.sum(1), 1, atol=1e-15)
    np.testing.assert_allclose(single, told, rtol=1e-6)


@pytest.mark.parametrize("several", [2, 3])
def test_scores_of_a_logistic_model_mean_its_probabilities(several):
    y = WORDS[codes(WORDS[:several])]
    model = LogisticRegression().fit(X, y)
    scores = RawScores(WORDS[:several]).predict("m", model, X)
    p = model.predict_proba(X)
    if several == 2:
        assert scores.shape == (len(X), 1)
        np.testing.assert_allclose(scores[:, 0], logit(p[:, 1]), atol=1e-10)
    else:
        np.testing.assert_allclose(log_softmax(scores, axis=1), np.log(p), atol=1e-10)


@pytest.mark.parametrize("several", [2, 3])
def test_scores_without_a_decision_function_are_logarithms_of_probabilities(several):
    model = GaussianNB().fit(X, WORDS[codes(WORDS[:several])])
    scores = RawScores(WORDS[:several]).predict("m", model, X)
    p = model.predict_proba(X)
    expected = logit(p[:, 1:]) if several == 2 else np.log(p)
    np.testing.assert_allclose(scores, expected, atol=1e-8)


def test_no_member_is_surer_than_one_in_a_hundred_thousand():
    sure = Says(["a", "b"], predict_proba=np.array([[0.0, 1.0], [1.0, 0.0]]))
    scores = RawScores(np.array(["a", "b"])).predict("m", sure, X[:2])
    np.testing.assert_allclose(scores, [[-np.log(1e-5)], [np.log(1e-5)]])


def test_a_class_never_seen_is_as_unlikely_as_can_be_and_others_keep_their_odds():
    y = WORDS[codes(WORDS[:2])]
    model = LogisticRegression().fit(X, np.where(y == "ant", "ant", "cat"))
    scores = RawScores(WORDS).predict("m", model, X)
    p = np.exp(log_softmax(scores, axis=1))
    odds = model.decision_function(X)
    np.testing.assert_allclose(scores[:, 2] - scores[:, 0], odds, atol=1e-10)
    np.testing.assert_allclose(p[:, 1], 1e-5, rtol=1e-4)


def test_numbers_of_one_output_or_several():
    one, two = Ridge().fit(X, X[:, 0]), Ridge().fit(X, X[:, :2])
    np.testing.assert_array_equal(PredictedValues(1).predict("m", one, X)[:, 0], one.predict(X))
    np.testing.assert_array_equal(PredictedValues(2).predict("m", two, X), two.predict(X))


def test_tensors_and_float32_are_numbers_too():
    answer = PredictedValues(1).predict("m", Says(predict=torch.ones(4, 1, dtype=torch.float32)), X[:4])
    assert answer.dtype == np.float64
    assert answer.shape == (4, 1)


FAULTS = {
    "NaN": (PredictedValues(1), Says(predict=[1.0, np.nan, np.inf]), "NaN or infinity in 2 of 3 rows"),
    "diverged": (PredictedValues(1), Says(predict=[1.0, 1e150, -1e200]), "NaN or infinity in 1 of 3 rows"),
    "too few": (PredictedValues(1), Says(predict=[1.0, 2.0]), r"shape \(2,\), but 1 number\(s\) for each of 3 rows"),
    "too wide": (PredictedValues(1), Says(predict=np.ones((3, 2))), r"shape \(3, 2\)"),
    "too narrow": (PredictedValues(2), Says(predict=np.ones(3)), r"shape \(3,\)"),
    "text": (PredictedValues(1), Says(predict=["a", "b", "c"]), "not an array of numbers"),
    "no predict": (PredictedValues(1), Says(), "has no predict:"),
    "classifier": (PredictedValues(1), GaussianNB(), "is a classifier"),
    "no probabilities": (Probabilities(WORDS), LinearSVC(), 'CalibratedClassifierCV, or mix="scores"'),
    "sum": (Probabilities(WORDS), Says(predict_proba=np.full((3, 3), 0.3)), "invalid probabilities in 3 of 3 rows"),
    "negative": (Probabilities(WORDS), Says(predict_proba=[[1.5, -0.5, 0]] * 3), "invalid probabilities in 3 of 3"),
    "columns": (Probabilities(WORDS), Says(WORDS, predict_proba=np.full((3, 2), 0.5)), r"shape \(3, 2\)"),
    "other class": (
        Probabilities(WORDS),
        Says(["bee", "dog"], predict_proba=np.full((3, 2), 0.5)),
        r"has the classes \['dog'\], which are not among \['ant', 'bee', 'cat'\]",
    ),
    "several targets": (Probabilities(WORDS), Says([["a", "b"], ["c", "d"]], predict_proba=[]), "several targets"),
    "no scores": (RawScores(WORDS), Ridge(), "has no decision_function: a model without predict_proba needs it"),
    "pairs of classes": (
        RawScores(np.arange(4)),
        SVC(decision_function_shape="ovo").fit(X, codes(range(4))),
        r"decision_function of .* returns an array of shape \(3, 6\)",
    ),
}


def test_an_error_of_the_model_s_own_says_whose_it_is():
    with pytest.raises(ValueError, match="2 features, but Ridge is expecting 3") as caught:
        PredictedValues(1).predict("kim", Ridge().fit(X, X[:, 0]), X[:, :2])
    assert caught.value.__notes__ == ["while member 'kim' (Ridge) computed predict"]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    response, model, words = FAULTS[fault]
    with pytest.raises(ValueError, match=words) as caught:
        response.predict("kim", model, X[:3])
    assert f"member 'kim' ({type(model).__name__})" in str(caught.value)
