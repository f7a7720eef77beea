"""Wrong input is refused before any training, in words that say what was wrong."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from gce import ConvexStackingClassifier, GCEClassifier, GCERegressor, NGCEClassifier
from gce._utils.random import RoundStreams
from gce.bases import FitContext, Neural, Neuron
from gce.bases.neural.basis import TrainedBasis
from gce.bases.neural.network import TwoLayer
from helpers import oracle_problem

X = np.random.default_rng(0).normal(size=(20, 3))
y = X[:, 0] + 1.0
labels = (y > 1).astype(int)


@pytest.fixture(autouse=True)
def no_training(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("training began")

    monkeypatch.setattr(TrainedBasis, "minimize", refuse)


def changed(array, value):
    array = np.array(array, dtype=float)
    array.flat[0] = value
    return array


CASES = [
    (GCERegressor(), (changed(X, np.inf), y), {}, "infinity"),
    (GCERegressor(), (X, changed(y, np.nan)), {}, "y contains NaN"),
    (GCERegressor(), (X, changed(y, np.inf)), {}, "y contains infinity"),
    (GCEClassifier(), (X, np.zeros(20)), {}, "one class only"),
    (GCERegressor(), (np.zeros((0, 3)), np.zeros(0)), {}, "0 sample"),
    (GCERegressor(cv=30), (X, y), {}, "n_splits=30 greater than the number of samples"),
    (GCEClassifier(cv=15), (X, labels), {}, "n_splits=15 cannot be greater than the number of members in each class"),
    (GCERegressor(), (X, y[:-1]), {}, "inconsistent numbers of samples"),
    (GCERegressor(), (X[:, 0], y), {}, "Expected 2D array"),
    (GCERegressor(), (X, y), {"sample_weight": -np.ones(20)}, "Negative values"),
    (GCERegressor(), (X, y), {"sample_weight": np.zeros(20)}, "all sample weights are zero|at least one non-zero"),
    (GCERegressor(), (X, y), {"sample_weight": np.ones(3)}, "sample_weight.shape"),
    (GCERegressor(loss="hinge"), (X, y), {}, "unknown loss 'hinge': use one of 'squared_error'"),
    (GCEClassifier(loss="squared_error"), (X, labels), {}, "unknown loss 'squared_error': use one of 'log_loss'"),
    (GCERegressor(algorithm="newton"), (X, y), {}, "unknown algorithm 'newton': use one of 'pairwise'"),
    (GCERegressor(basis="oak"), (X, y), {}, "unknown basis 'oak'"),
    (GCERegressor(line_search="wolfe"), (X, y), {}, "unknown line_search 'wolfe'"),
    (GCERegressor(device="abacus"), (X, y), {}, "device='abacus' is not available"),
    (GCERegressor(bound=-1.0), (X, y), {}, "bound must be a positive number"),
    (GCERegressor(bound=[1.0, 2.0]), (X, y), {}, "one for each of the 1 outputs"),
    (GCERegressor(cv="often"), (X, y), {}, "cv must be None, 'auto'"),
    (GCERegressor(cv=[]), (X, y), {}, "cv has no splits"),
    (GCERegressor(cv=None, validation_fraction=1.5), (X, y), {}, "validation_fraction must be"),
    (GCERegressor(max_atoms=0), (X, y), {}, "max_atoms must be 'auto' or an integer of at least 1, got 0"),
    (GCERegressor(max_iter=2.5), (X, y), {}, "max_iter must be an integer"),
    (GCERegressor(n_iter_no_change=0), (X, y), {}, "n_iter_no_change must be"),
    (GCERegressor(tol=-1), (X, y), {}, "tol must be a number of at least 0"),
    (GCERegressor(scale="wide"), (X, y), {}, "scale must be 'auto', 'each', 'common' or 'robust', got 'wide'"),
    (GCERegressor(categorical_features="text"), (X, y), {}, "categorical_features must be 'from_dtype' or a list"),
    (GCERegressor(categorical_features=["a"]), (X, y), {}, "names the column 'a', which X does not have"),
    (GCERegressor(categorical_features=[99]), (X, y), {}, "categorical_features has 99: use names, indices"),
    (GCERegressor(), (X, y), {"groups": [1, 2]}, "groups has 2 entries for"),
    (GCERegressor(cv=5), (X, y), {"groups": np.arange(len(y)) % 3}, "5 folds need as many groups or more.*set cv=3"),
    (GCERegressor(cv=5), (X, y), {"groups": np.zeros(len(y))}, r"groups has one group only, 0\.0, so that"),
    (GCEClassifier(class_weight="even"), (X, y > 0), {}, "class_weight must be 'balanced', a dict or None"),
    (
        GCEClassifier(class_weight={7: 1.0}),
        (X, y > 0),
        {},
        r"class_weight names \[7\], which are not among the classes",
    ),
    (GCEClassifier(class_weight={True: -1.0}), (X, y > 0), {}, "class weights must be positive numbers"),
    (GCEClassifier(temperature=0.0), (X, y > 0), {}, "temperature must be 'auto' or positive and finite, got 0.0"),
    (GCERegressor(clip=0), (X, y), {}, "clip must be positive"),
    (GCERegressor(time_limit=-1), (X, y), {}, "time_limit must be"),
    (GCERegressor(scoring="speed"), (X, y), {}, "scoring"),
    (GCERegressor(random_state="lucky"), (X, y), {}, "random_state must be"),
    (GCERegressor(), (X, y), {"X_val": X}, "must be given together"),
    (GCERegressor(), (X, y), {"sample_weight_val": y}, "needs X_val"),
    (GCERegressor(), (X, y), {"X_val": X[:, :2], "y_val": y}, "X has 2 features"),
    (
        GCERegressor(),
        (X, y),
        {"X_val": X, "y_val": y, "sample_weight_val": 0 * y},
        "nothing to monitor|at least one non-zero",
    ),
    (
        GCEClassifier(),
        (X, labels),
        {"X_val": X, "y_val": labels + 1},
        r"classes \[2\] are not among those of the fit, \[0, 1\]",
    ),
    (
        GCEClassifier(cv=[(np.flatnonzero(labels == 0), np.flatnonzero(labels == 1))]),
        (X, labels),
        {},
        r"classes \[1\] are in the validation rows of split 0 but not in its training rows",
    ),
]


@pytest.mark.parametrize(("model", "data", "extra", "words"), CASES, ids=[case[3] for case in CASES])
def test_refused(model, data, extra, words):
    with pytest.raises(ValueError, match=words):
        model.fit(*data, **extra)


@pytest.mark.parametrize(
    ("basis", "words"),
    [
        (Neural(hidden=0), "hidden must be an integer from 1 to 2147483647"),
        (Neural(activation="sin"), "'relu' or 'tanh'"),
        (Neural(output="cut"), "'hardtanh' or 'tanh'"),
        (Neural(inherit=2.0), r"inherit must be in \[0, 1\]"),
        (Neural(batch_size=0), "batch_size must be an integer of at least 1"),
        (Neural(restarts=0), "restarts must be an integer of at least 1"),
        (Neuron(restarts=0), "restarts must be an integer of at least 1"),
    ],
)
def test_basis_refused(basis, words, monkeypatch):
    monkeypatch.undo()
    rows, objective, _ = oracle_problem(TwoLayer(2, "relu", "hardtanh"), 10, 3, 1, members=1)
    with pytest.raises(ValueError, match=words):
        basis.minimize(objective, rows, rng=RoundStreams((0,), ((0,),)), context=FitContext())


def test_a_bound_that_targets_exceed_is_a_warning(monkeypatch):
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="the hull cannot reach them") as caught:
        model = GCERegressor(bound=0.5, max_atoms=2, random_state=0).fit(X, y)
    assert caught[0].filename == __file__  # it points at the user's line
    assert (np.abs(model.predict(X) - y.mean()) <= 0.5 + 1e-12).all()


@pytest.mark.parametrize(
    "model",
    [
        GCEClassifier(max_iter=2),
        NGCEClassifier(max_epochs=2),
        ConvexStackingClassifier([("tree", DecisionTreeClassifier())]),
    ],
)
def test_numbers_as_classes_are_told_of_regressors(model):
    rows, numbers = np.random.default_rng(1).normal(size=(300, 2)), np.random.default_rng(2).normal(size=300)
    with pytest.raises(
        ValueError, match=r"y looks continuous, with 300 distinct values in 300 rows.*GCERegressor"
    ) as error:
        model.fit(rows, numbers)
    # a few examples, not every value
    assert f"{numbers[0]:.4g}, {numbers[1]:.4g}, {numbers[2]:.4g}: use" in str(error.value)
    assert len(str(error.value)) < 300


def test_many_classes_are_not_all_listed():
    numbers = np.resize(np.arange(100.0), 300)
    split = [(np.arange(50), np.arange(50, 300))]
    with pytest.raises(ValueError, match=r"classes \[50.0, .*, 54.0\] and 45 more .*GCERegressor") as error:
        GCEClassifier(max_iter=2, cv=split).fit(np.random.default_rng(1).normal(size=(300, 2)), numbers)
    assert len(str(error.value)) < 400
    members, halves = [("tree", DecisionTreeClassifier())], [split[0][::-1], (np.arange(50), np.arange(50, 300))]
    with pytest.raises(ValueError, match=r"lack classes \[.*\] and \d+ more .*GCERegressor") as error:
        ConvexStackingClassifier(members, cv=halves).fit(np.random.default_rng(1).normal(size=(300, 2)), numbers)
    assert len(str(error.value)) < 400
