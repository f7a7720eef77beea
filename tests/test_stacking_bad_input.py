"""What a stack refuses: one sentence, with the member's name and what to do."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import gce
from gce import ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionClassifier, GreedySelectionRegressor
from gce._utils.numerals import format_bound

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=30)
LABELS = np.where(Y > 0, "up", "down")
RIDGE = [("ridge", Ridge())]
BAYES = [("bayes", GaussianNB())]


class Bare:
    """A model that only predicts."""

    def predict(self, X):
        return X[:, 0]


class Gone(RegressorMixin, BaseEstimator):
    """A model without an answer to three rows of every fold."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.where(np.arange(len(X)) < 3, np.nan, 0.0)


class Broken(Gone):
    def fit(self, X, y):
        raise RuntimeError("cannot learn this")


MEMBERS = {
    "none": ([], "no member to combine"),
    "dropped": ([("a", "drop")], "no member to combine"),
    "no list": (Ridge(), r"list of \(name, estimator\)"),
    "no pairs": ([Ridge()], r"list of \(name, estimator\)"),
    "no names": ([(1, Ridge())], r"list of \(name, estimator\)"),
    "same names": ([("a", Ridge()), ("b", Ridge()), ("a", Ridge())], r"\['a'\] occur more than once"),
    "underscores": ([("a__b", Ridge())], r"cannot be named \['a__b'\]"),
    "a parameter's name": ([("loss", Ridge())], r"cannot be named \['loss'\]"),
    "a class": ([("a", Ridge)], r"'a' is the class Ridge: give an instance, Ridge\(\)"),
    "a model that cannot be fitted": ([("bare", Bare())], r"'bare' \(Bare\) lacks fit or get_params .*prefit=True"),
    "a classifier": (BAYES, r"'bayes' \(GaussianNB\) is a classifier"),
    "nothing to ask": ([("scaler", StandardScaler())], r"'scaler' \(StandardScaler\) has no predict"),
    "NaN": ([*RIDGE, ("gone", Gone())], r"'gone' \(Gone\) returns NaN or infinity in 3 of 6 rows"),
}


@pytest.mark.parametrize("kind", [ConvexStackingRegressor, GreedySelectionRegressor])
@pytest.mark.parametrize("fault", MEMBERS)
def test_members_that_cannot_be_used(kind, fault):
    estimators, words = MEMBERS[fault]
    with pytest.raises(ValueError, match=words):
        kind(estimators).fit(X, Y)


def test_a_scorer_s_question_does_not_hide_what_is_wrong():
    with pytest.raises(ValueError, match=r"list of \(name, estimator\)"):
        cross_val_score(ConvexStackingRegressor(Ridge()), X, Y, cv=2, error_score="raise")


def test_an_error_in_a_member_says_whose_it_is():
    with pytest.raises(RuntimeError, match="cannot learn this") as caught:
        ConvexStackingRegressor([*RIDGE, ("broken", Broken())]).fit(X, Y)
    assert "while fitting member 'broken' (Broken)" in caught.value.__notes__


SETTINGS = {
    "loss": ({"loss": "mse"}, "unknown loss 'mse'"),
    "tol": ({"tol": -1}, "tol must be a number of at least 0, got -1"),
    "prefit": ({"prefit": "yes"}, "prefit must be True or False, got 'yes'"),
    "fold_weight": ({"fold_weight": 1.5}, r"fold_weight must be in \[0, 1\], got 1.5"),
    "cv=prefit": ({"cv": "prefit"}, "use prefit=True"),
    "cv word": ({"cv": "loo"}, "cv must be None, an int, a splitter or an iterable"),
    "cv=1": ({"cv": 1}, "cv must be an integer of at least 2, got 1"),
    "cv number": ({"cv": 2.5}, "cv must be None, an int"),
    "no partition": ({"cv": ShuffleSplit(2, random_state=0)}, "hold out every row exactly once"),
    "no splits": ({"cv": []}, "30 of 30 rows never"),
    "half": ({"cv": [(np.arange(15), np.arange(15, 30))]}, "15 of 30 rows never and 0 more than once"),
    "far": ({"cv": [(np.arange(15), np.arange(15, 31))]}, "indices of 30 rows"),
}


@pytest.mark.parametrize("fault", SETTINGS)
def test_settings_that_mean_nothing(fault):
    given, words = SETTINGS[fault]
    with pytest.raises(ValueError, match=words):
        ConvexStackingRegressor(RIDGE, **given).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mix": "votes"}, "mix must be 'scores' or 'probabilities', got 'votes'"),
        ({"loss": "squared_error", "mix": "probabilities"}, "unknown loss 'squared_error': use one of 'log_loss', "),
        ({"loss": "squared_error"}, "unknown loss 'squared_error': use one of 'log_loss'"),
        ({"loss": "brier", "mix": "scores"}, "loss='brier' is for probabilities: set mix='probabilities'"),
        (
            {"estimators": [("svm", LinearSVC())], "mix": "probabilities"},
            r"'svm' \(LinearSVC\) has no predict_proba: .*CalibratedClassifierCV.*scores",
        ),
        ({"estimators": RIDGE, "mix": "probabilities"}, r"'ridge' \(Ridge\) has no predict_proba"),
        ({"estimators": RIDGE}, r"'ridge' \(Ridge\) has no decision_function: a model without predict_proba needs it"),
    ],
)
def test_settings_of_classifiers(given, words):
    with pytest.raises(ValueError, match=words):
        ConvexStackingClassifier(**{"estimators": BAYES, **given}).fit(X, LABELS)


@pytest.mark.parametrize(
    ("loss", "mix", "several", "own"),
    [
        (gce.losses.LogMixture(), "scores", 2, "Logistic"),
        (gce.losses.CrossEntropy(), "scores", 2, "Logistic"),
        (gce.losses.Logistic(), "scores", 3, "CrossEntropy"),
        (gce.losses.Logistic(), "probabilities", 2, "LogMixture"),
    ],
)
def test_a_log_loss_of_something_else(loss, mix, several, own):
    words = rf"{type(loss).__name__}\(\) does not fit {mix} of {several} classes: use 'log_loss', which is {own}\(\)"
    with pytest.raises(ValueError, match=words):
        ConvexStackingClassifier(BAYES, mix=mix, loss=loss).fit(X, np.arange(30) % several)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"max_iter": 0}, "max_iter must be an integer from 1 to 2147483647"),
        ({"n_bags": 0}, "n_bags must be an integer from 1 to 2147483647"),
        ({"bag_fraction": 0}, r"bag_fraction must be in \(0, 1\], got 0"),
        ({"bag_fraction": 1.5}, r"bag_fraction must be in \(0, 1\], got 1.5"),
    ],
)
def test_settings_of_selections(given, words):
    with pytest.raises(ValueError, match=words):
        GreedySelectionClassifier(BAYES, **given).fit(X, LABELS)


# Prefit members.


def test_a_prefit_member_must_be_fitted():
    with pytest.raises(NotFittedError, match=r"'raw' \(Ridge\) is not fitted, and members of .* as they are.*Frozen"):
        ConvexStackingRegressor([("ridge", Ridge().fit(X, Y)), ("raw", Ridge())], prefit=True).fit(X, Y)


def test_a_prefit_member_must_know_the_columns():
    narrow = [("ridge", Ridge().fit(X, Y)), ("narrow", Ridge().fit(X[:, :2], Y))]
    with pytest.raises(
        ValueError, match=r"'narrow' \(Ridge\) was fitted on other columns: its n_features_in_ is 2, but X has 3"
    ):
        ConvexStackingRegressor(narrow, prefit=True).fit(X, Y)
    a, b = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(X, columns=list("abd"))
    named = [("own", Ridge().fit(a, Y)), ("other", Ridge().fit(b, Y))]
    with pytest.raises(
        ValueError, match=r"'other' .* feature_names_in_ is \['a', 'b', 'd'\], but X has \['a', 'b', 'c'\]"
    ):
        ConvexStackingRegressor(named, prefit=True).fit(a, Y)


@pytest.mark.parametrize("mix", ["probabilities", "scores"])
def test_a_prefit_member_must_know_the_classes(mix):
    codes = [("own", GaussianNB().fit(X, LABELS)), ("codes", GaussianNB().fit(X, Y > 0))]
    with pytest.raises(
        ValueError, match=r"'codes' \(GaussianNB\) has the classes \[False, True\], which are not among"
    ):
        ConvexStackingClassifier(codes, mix=mix, prefit=True).fit(X, LABELS)


def test_a_frozen_member_does_not_learn_codes():
    numbers = np.digitize(Y, [-0.5, 0.5]) + 1
    # the codes 0, 1, 2 of the classes 1, 2, 3 hold the classes 1 and 2 that it knows, in other places
    frozen = [("frozen", FrozenEstimator(GaussianNB().fit(X[numbers < 3], numbers[numbers < 3])))]
    with pytest.raises(ValueError, match=r"'frozen' \(FrozenEstimator\) is frozen .* of \[1, 2, 3\]: .*prefit=True"):
        ConvexStackingClassifier(frozen, cv=2).fit(X, numbers)
    known = [("frozen", FrozenEstimator(GaussianNB().fit(X, Y > 0)))]
    stack = ConvexStackingClassifier(known, cv=2).fit(X, Y > 0)
    np.testing.assert_array_equal(stack.predict(X), known[0][1].predict(X))


def test_prefit_members_have_no_models_of_folds():
    with pytest.raises(ValueError, match=r"prefit=True fits no models on folds: set fold_weight=0, got 0.5"):
        ConvexStackingRegressor([("ridge", Ridge().fit(X, Y))], prefit=True, fold_weight=0.5).fit(X, Y)


def test_prefit_needs_no_folds():
    with pytest.raises(ValueError, match="leave out groups"):
        ConvexStackingRegressor([("ridge", Ridge().fit(X, Y))], prefit=True).fit(X, Y, groups=np.arange(30))


# Rows.


def test_targets_that_are_no_targets():
    with pytest.raises(ValueError, match=r"one class only, \['up'\]"):
        ConvexStackingClassifier(BAYES).fit(X, ["up"] * 30)
    with pytest.raises(ValueError, match="continuous"):
        ConvexStackingClassifier(BAYES).fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ConvexStackingRegressor(RIDGE).fit(X, Y[:20])
    with pytest.raises(ValueError, match="NaN"):
        ConvexStackingRegressor(RIDGE).fit(X, np.where(Y > 1, np.nan, Y))


def test_sample_weights_that_leave_nothing():
    with pytest.raises(ValueError, match="zero"):
        ConvexStackingRegressor(RIDGE).fit(X, Y, np.zeros(30))
    with pytest.raises(ValueError, match="one class only"):
        ConvexStackingClassifier(BAYES).fit(X, LABELS, (LABELS == "up").astype(float))


@pytest.mark.parametrize("member", [KNeighborsRegressor(), make_pipeline(StandardScaler(), Ridge())])
def test_a_member_that_takes_no_sample_weights_is_named(member):
    kind = type(member).__name__
    with pytest.raises(TypeError, match=rf"'odd' \({kind}\) takes no sample_weight in its fit.*routing"):
        ConvexStackingRegressor([*RIDGE, ("odd", member)]).fit(X, Y, np.ones(30))


def test_a_fold_must_leave_some_weight_to_learn_from():
    splits = list(KFold(3).split(X))
    weight = np.zeros(30)
    weight[splits[1][1]] = 1
    with pytest.raises(ValueError, match="fold 1 has no training row with a positive sample weight"):
        ConvexStackingRegressor(RIDGE, cv=splits).fit(X, Y, weight)


def test_other_metadata_needs_routing():
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        ConvexStackingRegressor(RIDGE).fit(X, Y, colour=np.ones(30))


def test_groups_and_a_list_of_splits():
    with pytest.raises(ValueError, match="groups and a list of splits"):
        ConvexStackingRegressor(RIDGE, cv=list(KFold(2).split(X))).fit(X, Y, groups=np.arange(30))


def test_a_row_that_lies_flat():
    stack = ConvexStackingRegressor(RIDGE).fit(X, Y)
    with pytest.raises(ValueError, match=r"had 3 columns: Reshape your data"):
        stack.predict(X[0])


# Gaps that cannot be reached.


def test_a_gap_beyond_float64_is_said_on_the_user_s_line():
    members = [("a", Ridge()), ("b", Ridge(100)), ("c", KNeighborsRegressor())]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stack = ConvexStackingRegressor(members, tol=1e-25, cv=3, random_state=0).fit(X, Y)
    (warning,) = caught
    assert warning.category is ConvergenceWarning
    assert warning.filename == __file__
    text = str(warning.message)
    assert f"within {format_bound(stack.gap_)} of the minimum" in text
    assert "tol=1e-25" in text
    assert f"the loss of the weights, {stack.risk_:.6g}," in text
    assert stack.gap_ < 1e-12 * stack.risk_
