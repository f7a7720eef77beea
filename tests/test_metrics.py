"""Metrics of predictions: scikit-learn's, and the area under the ROC curve as the share of pairs ranked rightly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)

from gce.training.metrics import of_classes, of_labels, of_numbers, of_quantiles, roc_auc, undefined

seeds = st.integers(0, 10**6)


def draw(seed, k, n=40):
    """Classes, probabilities with ties, and weights."""
    rng = np.random.default_rng(seed)
    classes = np.array(list("abcdefg"))[:k]
    y = np.concatenate([classes, classes, rng.choice(classes, n - 2 * k)])
    proba = np.round(rng.dirichlet(np.ones(k), n), 1) + 0.01
    return y, proba / proba.sum(1, keepdims=True), classes, rng.integers(0, 4, n).astype(float)


def ranked_rightly(positive, score, weight):
    """The share of the weight of pairs of a positive and a negative row whose scores are in order, ties as halves."""
    share = over = 0.0
    for i in np.flatnonzero(positive):
        for j in np.flatnonzero(~positive):
            over += weight[i] * weight[j]
            share += weight[i] * weight[j] * (float(score[i] > score[j]) + 0.5 * float(score[i] == score[j]))
    return share / over


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 5))
def test_it_is_that_of_scikit_learn(seed, k):
    y, proba, classes, weight = draw(seed, k)
    found = roc_auc(y, proba, classes)
    if k == 2:
        assert found.value == pytest.approx(roc_auc_score(y, proba[:, 1]))
        assert found.about == "0.5 is chance"
    else:
        assert found.value == pytest.approx(roc_auc_score(y, proba, multi_class="ovr", average="macro"))
        assert found.about == "one-vs-rest, mean over classes"
    weight += 0.5
    columns = [1] if k == 2 else range(k)
    expected = np.mean([ranked_rightly(y == classes[j], proba[:, j], weight) for j in columns])
    assert roc_auc(y, proba, classes, weight).value == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 5))
def test_weighted_rows_are_repeated_rows(seed, k):
    y, proba, classes, weight = draw(seed, k)
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    found, expected = roc_auc(y, proba, classes, weight), roc_auc(y[rows], proba[rows], classes)
    assert found.about == expected.about
    assert found.value == pytest.approx(expected.value, nan_ok=True)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_classes_without_rows_are_left_out_of_the_mean(seed):
    y, proba, classes, _ = draw(seed, 4)
    there = y != "c"
    found = roc_auc(y[there], proba[there], classes)
    areas = [roc_auc_score(y[there] == c, proba[there, j]) for j, c in enumerate(classes) if c != "c"]
    assert found.value == pytest.approx(np.mean(areas))
    assert found.about == "one-vs-rest, mean over the 3 of 4 classes that have rows"
    # rows without weight are no rows
    assert roc_auc(y, proba, classes, there.astype(float)) == found


def test_without_a_curve_the_reason_is_given():
    proba, classes = np.full((3, 2), 0.5), np.array(["a", "b"])
    only = np.array(["a"] * 3)
    found = roc_auc(only, proba, classes)
    assert np.isnan(found.value)
    assert found.about == "not defined: all rows are of class 'a'"
    assert np.isnan(roc_auc(np.array(["a", "b", "a"]), proba, classes, np.array([1.0, 0, 1])).value)
    assert undefined(np.array(["a", "new", "a"]), classes) == "no row is of class 'b'"
    assert (
        undefined(np.array(["x", "y", "x"]), np.array(["a", "b", "c"])) == "no row is of a class that the model knows"
    )
    assert undefined(np.array([True, True]), np.array([False, True])) == "all rows are of class True"
    assert undefined(np.array([0, 1, 1]), np.array([0, 1])) is None


def test_rows_of_unknown_classes_belong_to_the_rest():
    rng = np.random.default_rng(0)
    y, classes = np.array(list("abcz") * 5), np.array(["a", "b", "c"])
    proba = rng.dirichlet(np.ones(3), 20)
    expected = np.mean([roc_auc_score(y == c, proba[:, j]) for j, c in enumerate(classes)])
    assert roc_auc(y, proba, classes).value == pytest.approx(expected)


# Other metrics are scikit-learn's.


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 5), weighted=st.booleans())
def test_metrics_of_classes_are_those_of_scikit_learn(seed, k, weighted):
    y, proba, classes, weight = draw(seed, k)
    weight = weight + 0.5 if weighted else None
    predicted = classes[proba.argmax(1)]
    found = of_classes(y, predicted, proba, classes, weight)
    assert found["error"] == pytest.approx(zero_one_loss(y, predicted, sample_weight=weight))
    assert found["log_loss"] == pytest.approx(log_loss(y, proba, sample_weight=weight))
    assert found["roc_auc"] == roc_auc(y, proba, classes, weight).value


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(1, 3), weighted=st.booleans(), scale=st.sampled_from([1e-150, 1.0, 1e150]))
def test_metrics_of_numbers_are_those_of_scikit_learn(seed, k, weighted, scale):
    rng = np.random.default_rng(seed)
    y, predicted, weight = rng.normal(size=(20, k)), rng.normal(size=(20, k)), rng.random(20) if weighted else None
    found = of_numbers(scale * y, scale * predicted, weight)
    assert found["rmse"] == pytest.approx(scale * root_mean_squared_error(y, predicted, sample_weight=weight), rel=1e-9)
    assert found["mae"] == pytest.approx(scale * mean_absolute_error(y, predicted, sample_weight=weight), rel=1e-9)
    levels = np.array([0.1, 0.5, 0.9])[:k]
    each = [
        mean_pinball_loss(y[:, j], predicted[:, j], alpha=level, sample_weight=weight) for j, level in enumerate(levels)
    ]
    assert of_quantiles(y, predicted, levels, weight)["pinball_loss"] == pytest.approx(np.mean(each))


def test_a_class_that_nobody_knew_is_an_error():
    found = of_classes(np.array(["new"]), np.array(["a"]), np.array([[0.5, 0.5]]), np.array(["a", "b"]))
    assert found["error"] == 1
    assert found["log_loss"] == pytest.approx(-np.log(np.finfo(float).eps))
    assert np.isnan(found["roc_auc"])


def test_a_label_that_was_held_impossible_costs_a_finite_loss():
    y, proba = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    found = of_labels(y, proba.astype(int), proba)
    assert found == {"wrong_labels": 1, "wrong_rows": 1, "log_loss": pytest.approx(-np.log(np.finfo(float).eps))}
