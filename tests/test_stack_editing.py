"""Edited stacks: weights are the best for the members that are left, answers are shared, and nothing else changes."""

import pickle
from copy import copy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from gce.frank_wolfe.simplex import solve_simplex

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = X[:, 0] + np.abs(X[:, 1]) + 0.2 * RNG.normal(size=80)
NEW = RNG.normal(size=(50, 3))
Y_NEW = NEW[:, 0] - np.abs(NEW[:, 1])
FLOWERS, KINDS = load_iris(return_X_y=True)
KINDS = np.array(["s", "ve", "vi"])[KINDS]


class Asked(RegressorMixin, BaseEstimator):
    """A column, as a model of a class that says how often such were fitted and asked."""

    fits = calls = 0

    def __init__(self, column=0, factor=1.0):
        self.column = column
        self.factor = factor

    def fit(self, X, y):
        type(self).fits += 1
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X):
        type(self).calls += 1
        return self.factor * np.asarray(X)[:, self.column]


def regressors():
    trees = [(f"tree{d}", DecisionTreeRegressor(max_depth=d, random_state=0)) for d in (1, 2, 3)]
    return [("linear", LinearRegression()), ("ridge", Ridge(30.0)), ("bad", Asked(0, -3.0)), *trees]


def classifiers():
    trees = [(f"tree{d}", DecisionTreeClassifier(max_depth=d, random_state=0)) for d in (1, 2)]
    return [("bayes", GaussianNB()), ("logistic", LogisticRegression(max_iter=500)), *trees]


@pytest.fixture(scope="module")
def stack():
    return gce.ConvexStackingRegressor(regressors(), cv=KFold(4), random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def prefit():
    members = [(name, clone(model).fit(X, Y)) for name, model in regressors()]
    return gce.ConvexStackingRegressor(members, prefit=True).fit(NEW, Y_NEW)


@pytest.fixture(scope="module")
def classes():
    return gce.ConvexStackingClassifier(classifiers(), cv=3, mix="probabilities", random_state=0).fit(FLOWERS, KINDS)


def weight_of(stack, name):
    return stack.weights_[stack.member_names_.index(name)]


def heaviest(stack):
    return stack.member_names_[stack.weights_.argmax()]


def value(stack):
    """The loss of a stack's weights on the answers it keeps."""
    out_of_fold = stack.result_.out_of_fold
    return float(out_of_fold.risk.value(out_of_fold.outputs.combine(stack.result_.solution.weights)[None]))


def assert_optimal(stack, tol=1e-6):
    fresh = solve_simplex(stack.result_.out_of_fold.risk, stack.result_.out_of_fold.outputs, 1e-10)
    assert -fresh.gap <= stack.risk_ - fresh.loss <= stack.gap_ + fresh.gap
    assert stack.gap_ <= tol * stack.risk_
    assert value(stack) == pytest.approx(stack.risk_, rel=1e-12)


# Removing and adding.


@settings(max_examples=10, deadline=None)
@given(gone=st.lists(st.sampled_from([name for name, _ in regressors()]), min_size=1, max_size=5, unique=True))
def test_a_stack_without_members_has_the_best_weights_of_the_others(stack, gone):
    edited = stack.remove(gone)
    kept = [name for name, _ in regressors() if name not in gone]
    assert [name for name, _ in edited.estimators] == list(edited.named_estimators_) == edited.member_names_ == kept
    assert (edited.weights_ >= 0).all()
    assert edited.weights_.sum() == pytest.approx(1, abs=1e-12)
    assert_optimal(edited)
    assert edited.risk_ >= stack.risk_ - stack.gap_
    used = [
        (edited.named_estimators_[name].predict(NEW), w)
        for name, w in zip(edited.member_names_, edited.weights_, strict=True)
    ]
    np.testing.assert_allclose(edited.predict(NEW), sum(w * answer for answer, w in used), atol=1e-12)


@pytest.mark.parametrize("name", ["stack", "prefit", "classes"])
def test_what_is_removed_and_added_again_gives_the_loss_back(name, request):
    one = request.getfixturevalue(name)
    rows = {"stack": (X, Y), "prefit": (NEW, Y_NEW), "classes": (FLOWERS, KINDS)}[name]
    member = heaviest(one)
    model = dict(one.estimators)[member]
    without = one.remove(member)
    again = without.add(member, model, *rows)
    assert without.risk_ > one.risk_
    assert abs(again.risk_ - one.risk_) <= again.gap_ + one.gap_
    assert_optimal(again)
    weights = [weight_of(again, name) for name in one.member_names_]
    np.testing.assert_allclose(weights, one.weights_, atol=1e-2)
    assert clone(again).get_params().keys() == one.get_params().keys()


def test_weights_are_looked_for_from_where_they_are(stack):
    assert len(stack.history_) > 1
    assert len(stack.remove("bad").history_) == 1  # its weight was 0


def test_answers_are_shared_and_never_copied(stack):
    kept = stack.result_.out_of_fold.outputs.predictions
    without = stack.remove("tree1")
    assert all(
        a is b for a, b in zip(without.result_.out_of_fold.outputs.predictions, kept[:3] + kept[4:], strict=True)
    )
    again = without.add("tree1", DecisionTreeRegressor(max_depth=1, random_state=0), X, Y)
    assert all(a is b for a, b in zip(again.result_.out_of_fold.outputs.predictions, kept[:3] + kept[4:], strict=False))
    np.testing.assert_array_equal(again.result_.out_of_fold.outputs.predictions[-1].numpy(), kept[3].numpy())
    small = stack.prune(2)
    pointers = {answer.data_ptr() for answer in kept}
    assert {answer.data_ptr() for answer in small.result_.out_of_fold.outputs.predictions} < pointers
    assert without.result_.out_of_fold.risk is stack.result_.out_of_fold.risk


def test_only_the_new_member_is_fitted(stack):
    before = Asked.fits
    stack.remove("tree1")
    stack.prune(2)
    stack.reweight(NEW, Y_NEW)
    stack.explain()
    assert Asked.fits == before
    edited = stack.add("column", Asked(1), X, Y)
    assert Asked.fits == before + 5  # four folds and all rows
    assert edited.named_estimators_["linear"] is stack.named_estimators_["linear"]
    assert not hasattr(dict(edited.estimators)["column"], "n_features_in_")
    assert edited.named_estimators_["column"].factor == 1.0


def test_a_prefit_member_is_used_as_it_is_without_targets_too(prefit):
    model = Asked(1).fit(X, Y)
    one, other = prefit.add("column", model, NEW), prefit.add("column", model, NEW, Y_NEW)
    assert one.named_estimators_["column"] is model
    np.testing.assert_array_equal(one.weights_, other.weights_)
    assert_optimal(one)
    weight = np.linspace(1, 2, 50)
    weighted = gce.ConvexStackingRegressor(prefit.estimators, prefit=True).fit(NEW, Y_NEW, weight)
    assert_optimal(weighted.add("column", model, NEW, sample_weight=weight))
    with pytest.raises(ValueError, match="X, y or sample_weight differ: the 50 rows given are not the"):
        weighted.add("column", model, NEW, sample_weight=weight[::-1])
    labels = gce.ConvexStackingClassifier(
        [(name, clone(m).fit(FLOWERS, KINDS)) for name, m in classifiers()[:2]], prefit=True, mix="probabilities"
    ).fit(FLOWERS, KINDS)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(FLOWERS, KINDS)
    assert_optimal(labels.add("tree", tree, FLOWERS))


def test_the_models_of_folds_are_kept_of_new_members_too():
    stack = gce.ConvexStackingRegressor(regressors()[:2], cv=3, fold_weight=0.5, random_state=0).fit(X, Y)
    edited = stack.add("tree", DecisionTreeRegressor(max_depth=2, random_state=0), X, Y)
    assert len(edited.named_estimators_["tree"].folds) == 3
    assert isinstance(dict(edited.estimators)["tree"], DecisionTreeRegressor)
    clone(edited).fit(X, Y)


def test_weighted_rows_are_given_again_with_their_weights():
    weight = np.r_[np.zeros(5), np.linspace(0.5, 2, 75)]
    stack = gce.ConvexStackingRegressor(regressors()[:2], cv=KFold(4), random_state=0).fit(X, Y, weight)
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    edited = stack.add("tree", tree, X, Y, weight)
    whole = gce.ConvexStackingRegressor([*regressors()[:2], ("tree", tree)], cv=KFold(4)).fit(X, Y, weight)
    assert edited.risk_ == pytest.approx(whole.risk_, rel=2e-6)
    np.testing.assert_array_equal(
        edited.result_.out_of_fold.outputs.predictions[2].numpy(),
        whole.result_.out_of_fold.outputs.predictions[2].numpy(),
    )
    with pytest.raises(ValueError, match="the 80 rows given are not the 75 rows of positive weight"):
        stack.add("tree", tree, X, Y)


# Smaller ones.


@pytest.mark.parametrize("name", ["stack", "prefit", "classes"])
def test_a_path_has_the_best_weights_for_each_of_its_sizes(name, request):
    one = request.getfixturevalue(name)
    path, small = one.pruning_path(), one.prune(2)
    sizes = path.sizes.tolist()
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[0] == (one.weights_ > 0).sum()
    assert sizes[-1] == 1
    assert all(later >= earlier for earlier, later in pairwise(path.losses))
    place = {member: j for j, member in enumerate(one.named_estimators_)}
    for step in path.steps:
        answers = one.result_.out_of_fold.outputs.select([place[n] for n in step.names])
        alone = solve_simplex(one.result_.out_of_fold.risk, answers, 1e-10)
        assert abs(alone.loss - step.loss) <= alone.gap + step.gap
        assert step.weights.sum() == pytest.approx(1, abs=1e-12)
    chosen = next(step for step in path.steps if step.size <= 2)
    assert tuple(small.member_names_) == chosen.names
    assert len(small.estimators_) == chosen.size
    np.testing.assert_array_equal(small.weights_, chosen.weights)
    assert small.risk_ == chosen.loss


def test_a_tolerance_chooses_the_smallest_stack_within_it(stack):
    path = stack.pruning_path()
    for tol in (0.0, 0.05, 10.0):
        least = min(step.size for step in path.steps if step.loss <= (1 + tol) * path.steps[0].loss)
        assert len(stack.prune(tol=tol).estimators_) == least
    assert len(stack.prune(tol=10.0).estimators_) == 1


def test_a_gap_that_is_not_reached_is_said_of_smaller_stacks_too(stack):
    with pytest.warns(ConvergenceWarning, match="tol=0 requires 0"):
        copy(stack).set_params(tol=0.0).prune(2)


def test_unused_members_are_never_asked_and_can_be_dropped(stack):
    assert weight_of(stack, "bad") == 0
    calls = Asked.calls
    answers = stack.predict(NEW)
    assert Asked.calls == calls
    small = stack.without_unused()
    assert "bad" not in small.named_estimators_
    assert (small.weights_ > 0).all()
    np.testing.assert_array_equal(small.predict(NEW), answers)
    assert (small.risk_, small.gap_) == (stack.risk_, stack.gap_)
    assert_optimal(small)
    np.testing.assert_array_equal(stack.without_cache().without_unused().predict(NEW), answers)


# Other rows.


def test_reweighting_finds_the_best_weights_on_new_rows(stack, classes):
    edited = stack.reweight(NEW, Y_NEW)
    assert_optimal(edited)
    assert edited.risk_ == pytest.approx(np.mean((edited.predict(NEW) - Y_NEW) ** 2), rel=1e-9)
    assert edited.risk_ < np.mean((stack.predict(NEW) - Y_NEW) ** 2)
    assert edited.estimators_ == stack.estimators_
    assert_optimal(edited.remove("linear"))
    rows = np.r_[:30, 60:90]
    again = classes.reweight(FLOWERS[rows], KINDS[rows])
    chance = again.predict_proba(FLOWERS[rows])[np.arange(60), np.searchsorted(classes.classes_, KINDS[rows])]
    assert again.risk_ == pytest.approx(-np.log(chance).mean(), rel=1e-9)


def test_a_stack_without_cache_asks_its_members_for_rows(stack):
    bare = stack.without_cache()
    edited = bare.remove("tree3", X=NEW, y=Y_NEW)
    assert_optimal(edited)
    assert edited.risk_ == pytest.approx(stack.reweight(NEW, Y_NEW).remove("tree3").risk_, rel=2e-6)
    assert len(bare.prune(2, X=NEW, y=Y_NEW).estimators_) <= 2
    added = bare.add("column", Asked(1).fit(X, Y), NEW, Y_NEW)
    assert added.weights_.sum() == pytest.approx(1, abs=1e-12)
    explained = bare.explain(NEW, Y_NEW)
    np.testing.assert_array_equal(explained.weights, stack.weights_)
    assert explained.loss == pytest.approx(np.mean((stack.predict(NEW) - Y_NEW) ** 2), rel=1e-9)
    for edit in (
        lambda: bare.remove("tree3"),
        lambda: bare.prune(2),
        bare.pruning_path,
        bare.explain,
        lambda: bare.remove("linear", NEW),
    ):
        with pytest.raises(ValueError, match=r"(keeps no predictions of its members|X is not enough): give X and y"):
            edit()


def test_any_rows_are_explained():
    stack = gce.ConvexStackingRegressor(regressors(), cv=KFold(4), random_state=0).fit(X, Y)
    found = stack.explain(NEW, Y_NEW)
    members = np.array([stack.named_estimators_[name].predict(NEW) for name in found.names])
    mixed = found.weights @ members
    assert found.loss == pytest.approx(np.mean((stack.predict(NEW) - Y_NEW) ** 2), rel=1e-9)
    np.testing.assert_allclose(found.own_loss, np.mean((members - Y_NEW) ** 2, axis=1), rtol=1e-9)
    slopes = np.mean(2 * (mixed - Y_NEW) * (members - mixed), axis=1)
    np.testing.assert_allclose(found.alignment, slopes, atol=1e-9 * np.abs(slopes).max())
    assert found.best_loss == pytest.approx(stack.reweight(NEW, Y_NEW).risk_, rel=1e-5)
    assert f"On the {len(NEW)} rows given, predicted by the fitted members." in " ".join(str(found).split())
    # what the stack keeps is explained as before
    assert stack.explain().loss == stack.risk_
    with pytest.raises(ValueError, match="give X and y"):
        stack.explain(NEW)


# What stays.


@pytest.mark.parametrize("name", ["stack", "prefit", "classes"])
def test_no_edit_changes_the_stack(name, request):
    one = request.getfixturevalue(name)
    rows, y = (FLOWERS, KINDS) if name == "classes" else (NEW, Y_NEW)
    before, answers = pickle.dumps(one), one.predict(rows)
    first = next(iter(one.named_estimators_))
    one.remove(first)
    one.prune(1)
    one.prune(tol=0.1)
    one.pruning_path()
    one.reweight(rows, y)
    one.without_unused().explain()
    one.without_cache().remove(first, rows, y)
    one.explain()
    assert pickle.dumps(one) == before
    np.testing.assert_array_equal(one.predict(rows), answers)


def test_edited_stacks_are_stacks(stack, classes):
    for one, rows, y in ((stack, X, Y), (classes, FLOWERS, KINDS)):
        for edited in (one.remove(next(iter(one.named_estimators_))), one.prune(2), one.reweight(rows, y)):
            fresh = clone(edited).fit(rows, y)
            assert list(fresh.named_estimators_) == list(edited.named_estimators_)
            back = pickle.loads(pickle.dumps(edited))
            np.testing.assert_array_equal(back.predict(rows), edited.predict(rows))


def test_selection_keeps_its_rule_but_prunes_by_the_best_weights():
    stack = gce.GreedySelectionRegressor(regressors(), cv=KFold(4), max_iter=7, random_state=0).fit(X, Y)
    edited = stack.remove("linear")
    counts = edited.weights_ * 7 * 6 * 5 * 4
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)  # multiples of one over the rounds
    assert_optimal(stack.prune(3))
    explained = stack.explain()
    # the best weights prove more than those that were chosen greedily
    assert explained.loss - explained.gap <= explained.best_loss < explained.loss
    assert explained.gap <= stack.gap_


# Why.


def test_an_explanation_says_what_each_member_is_worth(stack):
    explained = stack.explain()
    assert explained.names == tuple(stack.named_estimators_)
    np.testing.assert_array_equal(explained.weights, stack.weights_)
    member = heaviest(stack)
    at = explained.names.index(member)
    assert explained.loss_without[at] == pytest.approx(stack.remove(member).risk_, rel=2e-6)
    assert explained.alignment[explained.names.index("bad")] > 0
    assert explained.seconds is not None
    assert "bad" in str(explained)


# What is refused.


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda s: s.remove("tree9"), "names has 'tree9', which is not in this model: the nearest are 'tree"),
        (lambda s: s.remove([]), r"names is \[\], so there is nothing to remove"),
        (lambda s: s.remove(3), "names has 3, which is not in this model"),
        (lambda s: s.reweight(X, Y).add("new", Ridge(), X, Y), "is not fitted, and members of this stack are used as"),
        (lambda s: s.remove(list(s.named_estimators_)), "the stack would have no members"),
        (lambda s: s.remove("ridge", NEW, Y_NEW), "keeps its members' predictions: leave out the rows"),
        (lambda s: s.add("ridge", Ridge(), X, Y), r"names of members must be unique, but \['ridge'\]"),
        (lambda s: s.add("cv", Ridge(), X, Y), r"members cannot be named \['cv'\]"),
        (lambda s: s.add("new", Ridge()), "X must be given: the stack has no predictions of 'new'"),
        (lambda s: s.add("new", Ridge(), X), "y must be given: 'new' is fitted like the other members"),
        (
            lambda s: s.add("new", Ridge(), X[:-1], Y[:-1]),
            "the 79 rows given are not the 80 rows of",
        ),
        (lambda s: s.add("new", Ridge(), X, Y[::-1]), "that the members predicted: give the same rows"),
        (lambda s: s.add("new", Ridge(), X[:, :2], Y), "expecting 3 features"),
        (lambda s: s.add("new", DecisionTreeClassifier(), X, Y), "is a classifier, but a regressor is needed"),
        (lambda s: s.prune(0), "k must be an integer of at least 1, got 0"),
        (lambda s: s.prune(), "give either k, a size, or tol"),
        (lambda s: s.prune(1, tol=0.1), "give either k, a size, or tol"),
        (lambda s: s.reweight(NEW, Y_NEW[:-1]), "inconsistent numbers of samples"),
        (lambda s: s.reweight(NEW, np.full(50, np.nan)), "NaN"),
    ],
)
def test_what_cannot_be_done_is_said(stack, edit, words):
    with pytest.raises(ValueError, match=words):
        edit(stack)


def test_members_that_are_not_fitted_are_refused_where_none_is_fitted(prefit):
    with pytest.raises(ValueError, match="is not fitted"):
        prefit.add("new", Ridge(), NEW)
    with pytest.raises(ValueError, match="that the members predicted: give the same rows"):
        prefit.add("new", Ridge().fit(X, Y), X)
    with pytest.raises(ValueError, match="is not fitted yet"):
        gce.ConvexStackingRegressor(regressors()).remove("ridge")
