"""Stacks: models of folds, what is kept of them, and what edits leave alone."""

import pickle
import sys
from dataclasses import replace

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, StratifiedKFold

import gce
from gce import ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionClassifier, GreedySelectionRegressor
from gce.frank_wolfe.simplex import certify_weights
from test_stacking import CLASSIFIERS, LABELS, NEW, X, Y, classes, numbers

# Models of folds.


@pytest.mark.parametrize("share", [0.25, 1.0])
@pytest.mark.parametrize("kind", ["numbers", "probabilities", "scores"])
def test_models_of_folds_count_their_share(kind, share):
    members, y = (numbers(), Y) if kind == "numbers" else (classes(), LABELS)
    if kind == "numbers":
        plain = ConvexStackingRegressor(members, cv=3, random_state=3)
        ask, splits = "predict", KFold(3, shuffle=True, random_state=3).split(X)
    else:
        plain = ConvexStackingClassifier(members, mix=kind, cv=3, random_state=3)
        ask, splits = "predict_proba", StratifiedKFold(3, shuffle=True, random_state=3).split(X, y)
    plain.fit(X, y)
    shared = clone(plain).set_params(fold_weight=share).fit(X, y)
    np.testing.assert_array_equal(shared.result_.solution.weights, plain.result_.solution.weights)
    splits, mixed = list(splits), 0.0
    for (_, model), weight in zip(members, plain.result_.solution.weights, strict=True):
        folds = [getattr(clone(model).fit(X[train], y[train]), ask)(NEW) for train, _ in splits]
        answer = (1 - share) * getattr(clone(model).fit(X, y), ask)(NEW) + share * np.mean(folds, 0)
        mixed = mixed + weight * (np.log(answer.clip(1e-5)) if kind == "scores" else answer)
    if kind == "scores":
        mixed = np.exp(mixed) / np.exp(mixed).sum(1, keepdims=True)
    np.testing.assert_allclose(getattr(shared, ask)(NEW), mixed, rtol=1e-9, atol=1e-12)
    assert pickle.loads(pickle.dumps(shared)).predict(NEW).tolist() == shared.predict(NEW).tolist()


def test_where_folds_are_all_no_model_is_fitted_on_all_rows():
    seen = []

    class Watched(Ridge):
        def fit(self, X, y, sample_weight=None):
            seen.append(len(X))
            return super().fit(X, y, sample_weight)

    for share, expected in ((0.0, [40, 40, 40, 60]), (0.5, [40, 40, 40, 60]), (1.0, [40, 40, 40])):
        seen.clear()
        stack = ConvexStackingRegressor([("watched", Watched())], cv=3, fold_weight=share, random_state=0).fit(X, Y)
        assert sorted(seen) == expected
        assert isinstance(stack.estimators_[0], Watched) == (share == 0)


# Keeping.


@pytest.mark.parametrize("by", [pickle, joblib])
def test_a_stack_can_be_kept_with_and_without_its_cache(by, tmp_path):
    stack = ConvexStackingClassifier(classes(), cv=3, random_state=0).fit(X, LABELS)
    drop_zero_atoms = stack.without_cache()
    assert drop_zero_atoms.result_.out_of_fold is None
    assert stack.result_.out_of_fold is not None
    for model in (stack, drop_zero_atoms):
        if by is pickle:
            again = pickle.loads(pickle.dumps(model))
        else:
            joblib.dump(model, tmp_path / "stack")
            again = joblib.load(tmp_path / "stack")
        np.testing.assert_array_equal(again.predict_proba(NEW), stack.predict_proba(NEW))
        np.testing.assert_array_equal(again.weights_, stack.weights_)
    assert len(pickle.dumps(drop_zero_atoms)) < len(pickle.dumps(stack))


def test_other_weights_make_another_stack_and_leave_the_first_alone():
    stack = ConvexStackingClassifier(classes(), mix="probabilities", cv=3, random_state=0).fit(X, LABELS)
    before, out_of_fold = stack.predict_proba(NEW), stack.result_.out_of_fold
    fewer = replace(out_of_fold, outputs=out_of_fold.outputs.select([2, 1]), seconds=out_of_fold.seconds[2:0:-1])
    weights = certify_weights(fewer.risk, fewer.outputs, np.array([0.25, 0.75]))
    other = stack._edited(stack.result_.select([2, 1], fewer, weights))
    codes = other.named_estimators_
    expected = 0.25 * codes.tree.predict_proba(NEW) + 0.75 * codes.bayes.predict_proba(NEW)
    np.testing.assert_allclose(other.predict_proba(NEW), expected, rtol=1e-13)
    assert [name for name, _ in other.estimators] == other.member_names_ == ["tree", "bayes"]
    assert other.fit(X, LABELS).risk_ >= stack.risk_ - stack.gap_
    np.testing.assert_array_equal(stack.predict_proba(NEW), before)
    assert len(stack.estimators) == len(stack.estimators_) == 3


def test_later_targets_are_read_as_those_of_the_fit():
    stack = CLASSIFIERS["probabilities"]
    assert stack.result_.task.encode(["cat", "ant"]).tolist() == [2, 0]
    with pytest.raises(ValueError, match=r"classes \['dog'\] are not among those of the fit, \['ant', 'bee', 'cat'\]"):
        stack.result_.task.encode(["cat", "dog"])
    one = ConvexStackingRegressor(numbers(), cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="y must have the shape of the fit"):
        one.result_.task.encode(np.ones((5, 2)))


class NoPandas:
    """An import hook under which pandas is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def test_weights_are_an_array_with_and_without_pandas(monkeypatch):
    def fitted():
        stack = ConvexStackingRegressor(numbers(), cv=3, random_state=0).fit(X, Y)
        ensemble = gce.GCERegressor(basis="tree", max_iter=3, random_state=0).fit(X, Y)
        return [stack, stack.remove("stump"), ensemble, ensemble.reweight(X, Y)]

    with_pandas = fitted()
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoPandas, *sys.meta_path])
    for one, other in zip(with_pandas, fitted(), strict=True):
        assert type(one.weights_) is type(other.weights_) is np.ndarray
        np.testing.assert_array_equal(one.weights_, other.weights_)
    stack, edited, ensemble, _ = with_pandas
    assert stack.member_names_ == ["ridge", "tree", "stump"]
    assert edited.member_names_ == ["ridge", "tree"]
    assert len(ensemble.weights_) == len(ensemble.atom_names_)


def test_a_fit_that_breaks_off_leaves_no_old_weights():
    stack = ConvexStackingRegressor(numbers(), cv=3).fit(X, Y)
    with pytest.raises(ValueError, match="hold out every row exactly once"):
        stack.set_params(cv=[(np.arange(30), np.arange(30, 60))]).fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="not fitted"):
        stack.predict(X)


# Structure.


@pytest.mark.parametrize(
    "kind",
    [ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionClassifier, GreedySelectionRegressor],
)
def test_at_most_four_classes_of_ours_make_a_stack(kind):
    assert len([base for base in kind.__mro__ if base.__module__.startswith("gce.")]) <= 4
