"""Stacks: weights proved best on answers that a hand-written loop gives, and predictions that ask only who counts."""

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import brier_score_loss, log_loss, mean_absolute_error, mean_pinball_loss, mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from gce import ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionClassifier, GreedySelectionRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * RNG.normal(size=60)
LABELS = np.array(["ant", "bee", "cat"])[np.digitize(Y, [0.3, 1.2])]
NEW = RNG.normal(size=(25, 3))


def numbers():
    return [
        ("ridge", Ridge()),
        ("tree", DecisionTreeRegressor(max_depth=2, random_state=0)),
        ("stump", DecisionTreeRegressor(max_depth=1, random_state=0)),
    ]


def classes():
    return [
        ("logistic", LogisticRegression()),
        ("bayes", GaussianNB()),
        ("tree", DecisionTreeClassifier(max_depth=2, random_state=0)),
    ]


def fitted(members, y):
    return [(name, clone(model).fit(X[:30], y[:30])) for name, model in members]


class Counting(RegressorMixin, BaseEstimator):
    """A model that counts what it is asked; ``answer`` times the first column."""

    def __init__(self, answer=1.0):
        self.answer = answer

    def fit(self, X, y):
        self.asked_, self.fits_ = 0, getattr(self, "fits_", 0) + 1
        return self

    def predict(self, X):
        self.asked_ += 1
        return self.answer * X[:, 0]


# Answers.


@pytest.mark.parametrize("least", [0, 1])
def test_out_of_fold_answers_are_those_of_a_loop_written_by_hand(least):
    weight = np.random.default_rng(0).integers(least, 3, len(Y)).astype(float)
    stack = ConvexStackingRegressor(numbers(), cv=4, random_state=3).fit(X, Y, weight)
    np.testing.assert_array_equal(stack.result_.out_of_fold.rows, np.flatnonzero(weight))
    for (_, model), answer in zip(numbers(), stack.result_.out_of_fold.outputs.predictions, strict=True):
        expected = np.empty(len(Y))
        for train, test in KFold(4, shuffle=True, random_state=3).split(X):
            expected[test] = clone(model).fit(X[train], Y[train], weight[train]).predict(X[test])
        np.testing.assert_allclose(
            answer[:, 0] + stack.result_.out_of_fold.risk.offset, expected[weight > 0], rtol=1e-13
        )


def test_folds_are_five_shuffled_and_stratified():
    stack = ConvexStackingClassifier(classes(), mix="probabilities", random_state=3).fit(X, LABELS)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=3).split(X, LABELS))
    codes = np.searchsorted(np.unique(LABELS), LABELS)
    for (_, model), answer in zip(classes(), stack.result_.out_of_fold.outputs.predictions, strict=True):
        expected = np.empty(len(Y))
        for train, test in folds:
            p = clone(model).fit(X[train], codes[train]).predict_proba(X[test])
            expected[test] = p[np.arange(len(test)), codes[test]]
        np.testing.assert_array_equal(answer[:, 0], expected)


def test_members_are_fitted_on_all_rows():
    stack = ConvexStackingRegressor(numbers(), cv=3, random_state=0).fit(X, Y)
    for name, model in numbers():
        np.testing.assert_array_equal(stack.named_estimators_[name].predict(NEW), model.fit(X, Y).predict(NEW))
    mixed = sum(w * model.predict(NEW) for w, model in zip(stack.weights_, stack.estimators_, strict=True))
    np.testing.assert_allclose(stack.predict(NEW), mixed, rtol=1e-13)


def test_rows_of_a_group_are_held_out_together():
    groups = np.arange(len(Y)) // 4
    for stack, y in ((ConvexStackingRegressor(numbers()), Y), (ConvexStackingClassifier(classes()), LABELS)):
        for train, test in stack.set_params(cv=3, random_state=0).fit(X, y, groups=groups).result_.out_of_fold.splits:
            assert not set(groups[train]) & set(groups[test])


def test_splits_may_be_given_as_indices_or_masks():
    even = np.arange(len(Y)) % 2 == 0
    by_mask = ConvexStackingRegressor(numbers(), cv=[(even, ~even), (~even, even)]).fit(X, Y)
    halves = [(np.flatnonzero(even), np.flatnonzero(~even)), (np.flatnonzero(~even), np.flatnonzero(even))]
    by_index = ConvexStackingRegressor(numbers(), cv=iter(halves)).fit(X, Y)
    np.testing.assert_array_equal(by_mask.predict(NEW), by_index.predict(NEW))


def test_workers_change_nothing():
    alone = ConvexStackingClassifier(classes(), cv=3, random_state=0).fit(X, LABELS)
    with joblib.parallel_config("threading"):
        together = clone(alone).set_params(n_jobs=3).fit(X, LABELS)
    np.testing.assert_array_equal(alone.predict_proba(NEW), together.predict_proba(NEW))


# The risk and its certificate.


REGRESSION = {
    "auto": mean_squared_error,
    "absolute_error": mean_absolute_error,
    "quantile": lambda y, f, sample_weight: mean_pinball_loss(y, f, alpha=0.9, sample_weight=sample_weight),
}


@pytest.mark.parametrize("kind", [ConvexStackingRegressor, GreedySelectionRegressor])
@pytest.mark.parametrize("loss", REGRESSION)
def test_the_risk_of_numbers_is_scikit_learn_s_metric(kind, loss):
    members, weight = fitted(numbers(), Y), RNG.uniform(0.5, 2, 30)
    given = gce.losses.Quantile(0.9) if loss == "quantile" else loss
    stack = kind(members, loss=given, prefit=True).fit(X[30:], 1e6 + Y[30:], weight)
    expected = REGRESSION[loss](1e6 + Y[30:], stack.predict(X[30:]), sample_weight=weight)
    np.testing.assert_allclose(stack.risk_, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", [ConvexStackingClassifier, GreedySelectionClassifier])
@pytest.mark.parametrize("several", [2, 3])
@pytest.mark.parametrize(("mix", "loss"), [("probabilities", "auto"), ("probabilities", "brier"), ("scores", "auto")])
def test_the_risk_of_classes_is_scikit_learn_s_metric(kind, several, mix, loss):
    y = LABELS if several == 3 else np.where(LABELS == "ant", "ant", "bee")
    members, weight = fitted(classes(), y), RNG.uniform(0.5, 2, 30)
    stack = kind(members, loss=loss, mix=mix, prefit=True).fit(X[30:], y[30:], weight)
    p = stack.predict_proba(X[30:])
    if loss == "auto":
        expected = log_loss(y[30:], p, sample_weight=weight, labels=stack.classes_)
    elif several == 2:
        expected = brier_score_loss(y[30:], p[:, 1], sample_weight=weight, pos_label=stack.classes_[1])
    else:
        expected = np.average(((p - (y[30:, None] == stack.classes_)) ** 2).mean(1), weights=weight)
    np.testing.assert_allclose(stack.risk_, expected, rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 999), mix=st.sampled_from(["probabilities", "scores"]))
def test_no_other_weights_are_better_by_more_than_the_gap(seed, mix):
    stack = CLASSIFIERS[mix]
    weights = np.random.default_rng(seed).dirichlet(np.full(3, 0.5))
    risk = float(stack.result_.out_of_fold.risk.value(stack.result_.out_of_fold.outputs.combine(weights)[None]))
    assert risk >= stack.risk_ - stack.gap_
    assert stack.gap_ <= 1e-6 * stack.risk_


CLASSIFIERS = {
    mix: ConvexStackingClassifier(classes(), mix=mix, cv=3, random_state=0).fit(X, LABELS)
    for mix in ("probabilities", "scores")
}


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "pseudo_huber"])
def test_selection_ends_no_lower_than_the_optimum(loss):
    best = ConvexStackingRegressor(numbers(), loss=loss, cv=3, random_state=0).fit(X, Y)
    for bags in (1, 4):
        chosen = GreedySelectionRegressor(numbers(), loss=loss, cv=3, random_state=0, n_bags=bags).fit(X, Y)
        assert chosen.risk_ >= best.risk_ - best.gap_
        assert chosen.risk_ - chosen.gap_ <= best.risk_
        np.testing.assert_allclose(sum(chosen.weights_), 1)
        assert (chosen.weights_ >= 0).all()


def test_weights_of_one_selection_are_shares_of_its_rounds():
    chosen = GreedySelectionClassifier(classes(), cv=3, random_state=0, max_iter=7).fit(X, LABELS)
    assert any(np.allclose(np.rint(chosen.weights_ * t), chosen.weights_ * t) for t in range(1, 8))


def near(first, second):
    """Predictions of two stacks of one squared-error problem, on its rows: as near as their gaps say.

    The squared distance of a combination from the best one is at most what its loss is above the least.
    """
    rows = X[30:]
    apart = np.mean((first.predict(rows) - second.predict(rows)) ** 2)
    return apart <= 2 * (first.gap_ + second.gap_) + 1e-20


@settings(deadline=None, max_examples=15)
@given(order=st.permutations(range(3)), twice=st.integers(0, 2))
def test_predictions_do_not_depend_on_order_or_duplicates(order, twice):
    members = fitted(numbers(), Y)
    first = ConvexStackingRegressor(members, prefit=True).fit(X[30:], Y[30:])
    other = [members[j] for j in order] + [("again", members[twice][1])]
    second = ConvexStackingRegressor(other, prefit=True).fit(X[30:], Y[30:])
    assert near(first, second)
    assert abs(first.risk_ - second.risk_) <= max(first.gap_, second.gap_)


@settings(deadline=None, max_examples=15)
@given(counts=st.lists(st.integers(0, 3), min_size=30, max_size=30).filter(any))
def test_repeated_rows_are_weighted_rows_and_rows_of_weight_0_are_not_there(counts):
    members = fitted(numbers(), Y)
    weighted = ConvexStackingRegressor(members, prefit=True, tol=1e-9).fit(X[30:], Y[30:], counts)
    repeated = clone(weighted).set_params(estimators=members)
    repeated.fit(X[30:].repeat(counts, 0), Y[30:].repeat(counts))
    # a row or two can be met but for rounding, which gaps cover; 1e-12 is for sums in another order
    assert abs(weighted.risk_ - repeated.risk_) <= max(weighted.gap_, repeated.gap_) + 1e-12 * weighted.risk_
    assert max(weighted.gap_, repeated.gap_) <= 1e-9 * max(weighted.risk_, repeated.risk_) + 1e-25
    assert len(weighted.result_.out_of_fold.outputs.predictions[0]) == np.count_nonzero(counts)


# What is asked of whom.


def test_members_of_weight_0_are_never_asked_by_predictions():
    members = [("good", Counting(1.0)), ("opposite", Counting(-1.0)), ("half", Counting(0.5))]
    stack = ConvexStackingRegressor(members, cv=3).fit(X, 1.5 * X[:, 0])
    np.testing.assert_array_equal(stack.weights_, [1, 0, 0])
    stack.predict(NEW)
    assert [model.asked_ for model in stack.estimators_] == [1, 0, 0]


def test_prefit_members_are_used_as_they_are():
    members = [("one", Counting().fit(X, Y)), ("two", Counting(2.0).fit(X, Y))]
    stack = ConvexStackingRegressor(members, prefit=True).fit(X, Y)
    assert all(own is model for own, (_, model) in zip(stack.estimators_, members, strict=True))
    assert [(model.fits_, model.asked_) for _, model in members] == [(1, 1), (1, 1)]
    assert stack.result_.out_of_fold.splits is None


class Nervous(Counting):
    """A model that has no answer to rows whose first column is negative."""

    def predict(self, X):
        return np.where(X[:, 0] < 0, np.nan, X[:, 0])


def test_nobody_is_asked_about_rows_of_weight_0():
    members = [("nervous", Nervous()), ("one", Counting(0.5))]
    weight = (X[:, 0] >= 0).astype(float)
    prefit = [(name, model.fit(X, Y)) for name, model in members]
    ConvexStackingRegressor(prefit, prefit=True).fit(X, Y, weight)
    with pytest.raises(ValueError, match=f"'nervous'.* NaN or infinity in {(weight == 0).sum()} of 60 rows"):
        ConvexStackingRegressor(prefit, prefit=True).fit(X, Y)


def test_the_time_of_an_answer_is_kept_for_each_member():
    seconds = ConvexStackingRegressor(numbers(), cv=3).fit(X, Y).result_.out_of_fold.seconds
    assert len(seconds) == 3
    assert all(0 < taken < 1 for taken in seconds)


# Tasks.


def test_several_targets_and_a_target_that_is_a_column():
    both = np.column_stack([Y, X[:, 2]])
    stack = ConvexStackingRegressor(numbers(), cv=3, random_state=0).fit(X, both)
    assert stack.predict(NEW).shape == (25, 2)
    column = ConvexStackingRegressor(numbers(), cv=3, random_state=0).fit(X, Y[:, None])
    flat = ConvexStackingRegressor(numbers(), cv=3, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(column.predict(NEW), flat.predict(NEW)[:, None])


@pytest.mark.parametrize("several", [2, 3])
def test_scores_are_mixed_where_there_are_no_probabilities(several):
    y = LABELS if several == 3 else LABELS == "ant"
    members = [("svm", LinearSVC()), ("bayes", GaussianNB())]
    stack = ConvexStackingClassifier(members, mix="scores", cv=3, random_state=0).fit(X, y)
    raw = stack.decision_function(NEW)
    assert raw.shape == ((25,) if several == 2 else (25, 3))
    best = (raw > 0).astype(int) if several == 2 else raw.argmax(1)
    np.testing.assert_array_equal(stack.predict(NEW), stack.classes_[best])
    np.testing.assert_array_equal(stack.predict_proba(NEW).argmax(1), best)
    np.testing.assert_allclose(stack.predict_proba(NEW).sum(1), 1)


def test_a_stack_has_the_methods_that_its_mixture_means():
    hinge = type(
        "Hinge", (gce.losses.Loss,), {"value": lambda self, f, y: (1 - (2 * y - 1) * f).clamp(min=0).sum(-1)}
    )()
    has = {
        ("probabilities", "auto"): (True, False),
        ("scores", "auto"): (True, True),
        ("scores", hinge): (False, True),
        ("probabilities", gce.losses.Squared()): (True, False),
    }
    for (mix, loss), expected in has.items():
        stack = ConvexStackingClassifier(classes(), mix=mix, loss=loss)
        assert (hasattr(stack, "predict_proba"), hasattr(stack, "decision_function")) == expected


def test_a_loss_object_on_probabilities_sees_one_hot_rows():
    by_name = ConvexStackingClassifier(classes(), mix="probabilities", loss="brier", cv=3, random_state=0).fit(
        X, LABELS
    )
    squared = type("Own", (gce.losses.Loss,), {"value": lambda self, p, y: (p - y).square().mean(-1)})()
    own = ConvexStackingClassifier(classes(), mix="probabilities", loss=squared, cv=3, random_state=0, tol=1e-4).fit(
        X, LABELS
    )
    assert abs(own.risk_ - by_name.risk_) <= own.gap_ + by_name.gap_


def test_a_mixture_may_be_told_to_use_its_loss_by_object():
    by_name = ConvexStackingClassifier(classes(), mix="probabilities", cv=3, random_state=0).fit(X, LABELS)
    by_object = clone(by_name).set_params(loss=gce.losses.LogMixture()).fit(X, LABELS)
    np.testing.assert_array_equal(by_name.predict_proba(NEW), by_object.predict_proba(NEW))
    assert by_object.result_.out_of_fold.outputs.predictions[0].shape == (60, 1)
