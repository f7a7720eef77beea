"""Stacks of every kind of member: pipelines, frames, text, sparse rows, other libraries; parameters and routing."""

import doctest
from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags

import gce
from gce import ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionRegressor
from gce.estimators.stacking import convex, selection

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.3 * RNG.normal(size=60)
LABELS = np.array(["ant", "bee", "cat"])[np.digitize(Y, [0.3, 1.2])]


def numbers():
    return [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=2, random_state=0))]


def is_probability(p, several):
    assert p.shape[1] == several
    np.testing.assert_allclose(p.sum(1), 1, atol=1e-12)


# Rows of every kind.


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_reach_members_as_frames(library):
    frame = library.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down"), "b": X[:, 2]})
    chosen = make_column_transformer((OneHotEncoder(), ["kind"]), (StandardScaler(), ["a", "b"]))
    members = [("all", make_pipeline(chosen, Ridge())), ("gce", gce.GCERegressor(max_atoms=2, random_state=0))]
    stack = ConvexStackingRegressor(members, cv=2, random_state=0).fit(frame, Y)
    assert list(stack.feature_names_in_) == ["a", "kind", "b"]
    assert stack.n_features_in_ == 3
    assert stack.predict(frame).shape == (60,)
    assert np.array_equal(stack.predict(frame[["kind", "b", "a"]]), stack.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        stack.predict(frame[["kind", "a"]])


def test_lists_of_text():
    text = ["good fine" if value > 1 else "bad poor" for value in Y]
    members = [
        ("counts", make_pipeline(CountVectorizer(), MultinomialNB())),
        ("there", make_pipeline(CountVectorizer(), BernoulliNB())),
    ]
    stack = ConvexStackingClassifier(members, cv=3, random_state=0).fit(text, Y > 1)
    assert stack.predict(["good fine", "bad poor"]).tolist() == [True, False]
    assert not hasattr(stack, "n_features_in_")


def test_sparse_rows_are_those_written_out():
    rows = X * (np.abs(X) > 0.5)
    exact = {"solver": "cholesky", "fit_intercept": False}
    members = [("weak", Ridge(**exact)), ("strong", Ridge(100, **exact))]
    dense = ConvexStackingRegressor(members, cv=3, random_state=0).fit(rows, Y)
    sparse = clone(dense).fit(scipy.sparse.coo_array(rows), Y)
    np.testing.assert_allclose(sparse.predict(scipy.sparse.csr_array(rows)), dense.predict(rows), rtol=1e-9)


def test_precomputed_kernels_are_cut_both_ways():
    kernel = X @ X.T
    stack = ConvexStackingClassifier([("svm", SVC(kernel="precomputed"))], mix="scores", cv=3, random_state=0)
    linear = ConvexStackingClassifier([("svm", SVC(kernel="linear"))], mix="scores", cv=3, random_state=0)
    np.testing.assert_allclose(stack.fit(kernel, Y > 1).risk_, linear.fit(X, Y > 1).risk_, rtol=1e-6)
    outer = ConvexStackingClassifier([("inner", stack)], cv=2, random_state=0).fit(kernel, Y > 1)
    plain = ConvexStackingClassifier([("inner", linear)], cv=2, random_state=0).fit(X, Y > 1)
    np.testing.assert_allclose(outer.risk_, plain.risk_, rtol=1e-6)
    assert not get_tags(clone(stack).set_params(prefit=True)).input_tags.pairwise
    with pytest.raises(ValueError, match=r"'svm' \(SVC\) has one column per training row .*: set fold_weight=0"):
        stack.set_params(fold_weight=0.5).fit(kernel, Y > 1)


def test_missing_values_are_the_members_own_business():
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    members = [
        ("a", HistGradientBoostingClassifier(max_iter=3, max_depth=2)),
        ("b", DecisionTreeClassifier(max_depth=2)),
    ]
    is_probability(ConvexStackingClassifier(members, cv=2).fit(gaps, LABELS).predict_proba(gaps), 3)


def test_libraries_in_one_stack():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    members = [
        ("logistic", make_pipeline(StandardScaler(), LogisticRegression())),
        ("xgboost", xgboost.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1)),
        ("lightgbm", lightgbm.LGBMClassifier(n_estimators=5, max_depth=2, n_jobs=1, verbose=-1)),
        ("gce", gce.GCEClassifier(max_atoms=2, random_state=0)),
    ]
    for mix in ("probabilities", "scores"):
        stack = ConvexStackingClassifier(members, mix=mix, cv=2, random_state=0).fit(X, LABELS)
        is_probability(stack.predict_proba(X), 3)
        assert stack.gap_ <= 1e-6 * stack.risk_
        assert set(stack.predict(X)) <= set(LABELS)


def test_lightgbm_s_underscores_are_the_spaces_of_column_names():
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame(X, columns=["my first", "b", "c"])
    own = lightgbm.LGBMRegressor(n_estimators=2, n_jobs=1, verbose=-1).fit(frame, Y)
    stack = ConvexStackingRegressor([("lightgbm", own), ("ridge", Ridge().fit(frame, Y))], prefit=True).fit(frame, Y)
    assert stack.feature_names_in_[0] == "my first"


def test_catboost_too():
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=3, depth=2, verbose=False, allow_writing_files=False, thread_count=1)
    members = [*numbers(), ("catboost", model)]
    assert ConvexStackingRegressor(members, cv=2, random_state=0).fit(X, Y, np.ones(60)).weights_.shape == (3,)


class Plain:
    """A model of no library."""

    def predict(self, X):
        return X[:, 0]


def test_anything_that_predicts_may_be_prefit():
    stack = ConvexStackingRegressor([("plain", Plain()), ("ridge", Ridge().fit(X, Y))], prefit=True).fit(X, Y)
    assert dict(zip(stack.member_names_, stack.weights_, strict=True))["ridge"] > 0.9


# Parameters.


def test_a_dropped_member_is_not_there():
    stack = ConvexStackingRegressor(numbers(), cv=3, random_state=0).set_params(tree="drop").fit(X, Y)
    assert stack.named_estimators_["tree"] == "drop"
    assert stack.member_names_ == ["ridge"]
    np.testing.assert_array_equal(stack.predict(X), stack.estimators_[0].predict(X))


def test_parameters_of_members_are_searched():
    grid = {"ridge__alpha": [0.1, 1e6], "tree": ["drop", DecisionTreeRegressor(max_depth=1)]}
    search = GridSearchCV(ConvexStackingRegressor(numbers(), cv=2, random_state=0), grid, cv=2).fit(X, Y)
    assert search.best_params_["ridge__alpha"] == 0.1
    assert search.best_estimator_.get_params()["ridge__alpha"] == 0.1


def test_the_parameters_given_are_left_alone():
    members = numbers()
    stack = ConvexStackingRegressor(members, cv=2).fit(X, Y)
    assert not hasattr(members[0][1], "coef_")
    assert stack.named_estimators["ridge"] is members[0][1]


def test_the_page_shows_members_by_name():
    page = ConvexStackingRegressor(numbers())._repr_html_()
    assert "ridge" in page
    assert "DecisionTreeRegressor" in page


def test_frozen_members_survive_a_clone():
    members = [(name, FrozenEstimator(model.fit(X[:30], Y[:30]))) for name, model in numbers()]
    scores = cross_val_score(ConvexStackingRegressor(members, prefit=True), X[30:], Y[30:], cv=2)
    assert scores.shape == (2,)


def test_a_stack_may_be_a_member_of_a_stack():
    inner = ConvexStackingRegressor(numbers(), cv=2, random_state=0)
    outer = GreedySelectionRegressor([("inner", inner), ("knn", KNeighborsRegressor())], cv=2, random_state=0)
    assert outer.fit(X, Y).score(X, Y) > 0.5
    theirs = StackingRegressor([("inner", inner), ("knn", KNeighborsRegressor())], cv=2)
    assert theirs.fit(X, Y).score(X, Y) > 0.5


def test_examples_of_the_docstrings_run():
    for module in (convex, selection):
        done = doctest.testmod(module)
        assert done.failed == 0
        assert done.attempted >= 2 * 7


# Sample weights, groups and other metadata.


class Remembering(RegressorMixin, BaseEstimator):
    """A model that keeps what its fit was given."""

    seen: ClassVar[list[tuple]] = []

    def fit(self, X, y, sample_weight=None, colour=None):
        self.seen.append((len(X), sample_weight, colour))
        self.mean_ = np.average(y, weights=sample_weight)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.fixture
def seen():
    Remembering.seen.clear()
    yield Remembering.seen
    Remembering.seen.clear()


def test_sample_weights_go_to_members_cut_like_the_rows(seen):
    weight = np.arange(1.0, 61)
    splits = list(KFold(3).split(X))
    ConvexStackingRegressor([("m", Remembering()), ("ridge", Ridge())], cv=splits).fit(X, Y, weight)
    expected = [weight, *(weight[train] for train, _ in splits)]
    for (rows, got, _), own in zip(seen, expected, strict=True):
        assert rows == len(own)
        np.testing.assert_array_equal(got, own)


def test_members_get_the_metadata_they_ask_for(seen):
    weight, colour = np.arange(1.0, 61), np.arange(60)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Remembering().set_fit_request(sample_weight=False, colour=True)
        weighted = Ridge().set_fit_request(sample_weight=True)
        splits = list(KFold(2).split(X))
        stack = ConvexStackingRegressor([("m", asking), ("ridge", weighted), ("knn", KNeighborsRegressor())], cv=splits)
        stack.fit(X, Y, sample_weight=weight, colour=colour)
        assert [(rows, own) for rows, own, _ in seen] == [(60, None), (30, None), (30, None)]
        for (_, _, got), own in zip(seen, [colour, *(colour[train] for train, _ in splits)], strict=True):
            np.testing.assert_array_equal(got, own)
        np.testing.assert_array_equal(stack.named_estimators_.ridge.coef_, Ridge().fit(X, Y, weight).coef_)
        np.testing.assert_array_equal(stack.result_.out_of_fold.risk.weight[0], weight / weight.sum())
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            stack.set_params(ridge=Ridge()).fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(routing):
    groups = np.arange(60) // 5
    with sklearn.config_context(enable_metadata_routing=routing):
        for cv in (3, GroupKFold(3)):
            stack = ConvexStackingRegressor(numbers(), cv=cv, random_state=0).fit(X, Y, groups=groups)
            assert all(not set(groups[train]) & set(groups[test]) for train, test in stack.result_.out_of_fold.splits)


def test_groups_that_nobody_asks_for_are_refused():
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="neither cv nor a member requests groups"),
    ):
        ConvexStackingRegressor(numbers(), cv=KFold(3)).fit(X, Y, groups=np.arange(60) // 5)


def test_members_that_are_fitted_need_not_say_what_their_fit_takes():
    with sklearn.config_context(enable_metadata_routing=True):
        frozen = [(name, FrozenEstimator(model.fit(X, Y))) for name, model in numbers()]
        stack = ConvexStackingRegressor(frozen, prefit=True).set_fit_request(sample_weight=True)
        stack.set_score_request(sample_weight=True)
        scores = cross_val_score(stack, X, Y, params={"sample_weight": np.ones(60)}, cv=2, error_score="raise")
    assert np.isfinite(scores).all()


def test_weights_of_rows_weigh_the_risk_too():
    weight = np.where(X[:, 0] > 0, 1.0, 1e-6)
    halves = [
        ("left", Ridge().fit(X[X[:, 0] < 0], Y[X[:, 0] < 0])),
        ("right", Ridge().fit(X[X[:, 0] > 0], Y[X[:, 0] > 0])),
    ]
    stack = ConvexStackingRegressor(halves, prefit=True)
    assert stack.fit(X, Y, weight).weights_[1] > 0.9
    assert stack.fit(X, Y, 1 / weight).weights_[0] > 0.9


def test_classes_that_a_fold_s_members_never_saw_are_refused_and_those_of_a_prefit_member_are_not():
    known = LABELS != "cat"
    prefit = [("two", GaussianNB().fit(X[known], LABELS[known])), ("three", GaussianNB().fit(X, LABELS))]
    stack = ConvexStackingClassifier(prefit, prefit=True).fit(X, LABELS)
    is_probability(stack.predict_proba(X), 3)
    by_class = [(np.flatnonzero(known), np.flatnonzero(~known)), (np.flatnonzero(~known), np.flatnonzero(known))]
    with pytest.raises(ValueError, match=r"training rows of fold 0 lack classes \['cat'\], which its test rows have"):
        ConvexStackingClassifier([("m", GaussianNB())], cv=by_class).fit(X, LABELS)
    cat, first, second = np.flatnonzero(~known), np.flatnonzero(known)[::2], np.flatnonzero(known)[1::2]
    lacking = [
        (first, second),
        (np.r_[second, cat[::2]], np.r_[first, cat[1::2]]),
        (np.r_[second, cat[1::2]], cat[::2]),
    ]
    stack = ConvexStackingClassifier([("m", GaussianNB())], cv=lacking).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"rows of fold 0 lack classes \['cat'\], which fold_weight > 0 requires"):
        stack.set_params(fold_weight=0.5).fit(X, LABELS)
