"""What users touch."""

import io
import logging
import pickle
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss, make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from gce import GCEClassifier, GCERegressor, losses
from gce._utils import parallel
from gce.bases import Neural, Neuron, Pool
from gce.frank_wolfe.algorithms import ALGORITHMS
from helpers import GPU, in_domain

FAST = {"basis": Neural(hidden=5, max_epochs=20), "max_atoms": 8, "random_state": 0}


@pytest.fixture(scope="module")
def numbers():
    return make_regression(120, 4, noise=5.0, random_state=0)


@pytest.fixture(scope="module")
def classes():
    X, y = make_classification(150, 6, n_informative=4, n_classes=3, random_state=0)
    return X, np.array(["ant", "bee", "cat"])[y]


def test_history_is_plain(numbers):
    model = GCERegressor(cv=3, **FAST).fit(*numbers)
    assert len(model.history_) == model.n_iter_
    for t, entry in enumerate(model.history_, 1):
        assert entry["t"] == t
        assert {"risk", "validation", "gap_lower", "step_size", "seconds"} <= entry.keys()
        assert all(
            isinstance(entry[name], float) for name in ("risk", "validation", "gap_lower", "step_size", "seconds")
        )
        assert all(len(column) == 3 for column in entry["members"].values())
        assert entry["risk"] == pytest.approx(np.mean(entry["members"]["risk"]))
    seconds = [entry["seconds"] for entry in model.history_]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_ensemble_is_a_sparse_convex_combination_within_its_bound(numbers, classes, algorithm):
    for kind, (X, y) in ((GCERegressor, numbers), (GCEClassifier, classes)):
        model = kind(algorithm=algorithm, cv=3, **FAST).fit(X, y)
        weights = model.ensemble_.weights
        assert (weights > 0).all()
        assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
        assert len(model.ensemble_) <= 3 * (8 + 1)
        far = np.random.default_rng(0).normal(size=(500, X.shape[1])) * 1e3
        scores = model.raw_predict(far).numpy()
        assert (np.abs(scores - model.offset_) <= model.bound_ * (1 + 1e-12)).all()
        by_hand = model.offset_ + np.einsum("a,ank->nk", weights, model.ensemble_.outputs(model.encode_rows(far)))
        np.testing.assert_allclose(scores, by_hand, rtol=1e-12, atol=1e-12)


def test_staged_predictions_end_in_the_prediction(numbers, classes):
    for kind, (X, y) in ((GCERegressor, numbers), (GCEClassifier, classes)):
        model = kind(cv=3, **FAST).fit(X, y)
        stages = list(model.staged_predict(X))
        assert len(stages) == model.n_iter_
        if kind is GCERegressor:
            np.testing.assert_allclose(stages[-1], model.predict(X), rtol=1e-12)
        else:
            assert (stages[-1] == model.predict(X)).all()
            *_, last = model.staged_predict_proba(X)
            np.testing.assert_allclose(last, model.predict_proba(X), rtol=1e-10)


def test_an_early_stage_is_the_shorter_fit(numbers):
    X, y = numbers
    model = GCERegressor(cv=None, n_iter_no_change=None, **{**FAST, "max_atoms": 6}).fit(X, y)
    short = clone(model).set_params(max_atoms=1).fit(X, y)
    np.testing.assert_allclose(next(model.staged_predict(X)), short.predict(X), rtol=1e-10)


def test_the_best_round_is_kept_and_ties_keep_the_earlier(numbers):
    X, y = numbers
    model = GCERegressor(cv=None, n_iter_no_change=4, **{**FAST, "max_atoms": 40}).fit(X, y)
    validation = [entry["validation"] for entry in model.history_]
    best = int(np.argmin(validation)) + 1
    assert model.result_.families[0].best_round == (best,)
    assert model.n_iter_ == 40 or model.n_iter_ - best == 4
    constant = GCERegressor(scoring=lambda model, X, y: 1.0, cv=None, **FAST).fit(X, y)
    assert constant.result_.families[0].best_round == (1,)


def test_a_validation_set_of_the_users_own(numbers):
    X, y = numbers
    model = GCERegressor(**FAST).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    # the value watched is the loss on those rows, and on no others
    best = min(entry["validation"] for entry in model.history_)
    assert np.mean((model.predict(X[80:]) - y[80:]) ** 2) == pytest.approx(best)
    weight = np.r_[np.ones(20), np.zeros(20)]
    half = GCERegressor(**FAST).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:], sample_weight_val=weight)
    best = min(entry["validation"] for entry in half.history_)
    assert np.mean((half.predict(X[80:100]) - y[80:100]) ** 2) == pytest.approx(best)
    assert model.result_.members == 1
    with pytest.raises(ValueError, match="both determine the held-out rows"):
        GCERegressor(cv=3, **FAST).fit(X, y, X_val=X, y_val=y)


def test_scoring_is_what_is_watched(numbers, classes):
    X, y = numbers
    model = GCERegressor(scoring="neg_mean_absolute_error", **FAST).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    best = min(entry["validation"] for entry in model.history_)
    assert mean_absolute_error(y[80:], model.predict(X[80:])) == pytest.approx(best)
    X, y = classes
    for scoring in (
        "accuracy",
        "neg_log_loss",
        "roc_auc_ovr",
        make_scorer(log_loss, greater_is_better=False, response_method="predict_proba"),
    ):
        model = GCEClassifier(scoring=scoring, temperature=1.0, **FAST)
        model.fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
        assert np.isfinite([entry["validation"] for entry in model.history_]).all()
    last = min(entry["validation"] for entry in model.history_)
    assert log_loss(y[100:], model.predict_proba(X[100:])) == pytest.approx(last)


@pytest.mark.parametrize("loss", [*losses.REGRESSION, losses.Power(1.5), losses.Quantile(0.9)], ids=str)
def test_regression_losses(numbers, loss):
    X, y = numbers
    y = in_domain(loss, y - y.min() if loss in ("poisson", "gamma", "tweedie") else y)
    model = GCERegressor(loss=loss, cv=None, **{**FAST, "max_atoms": 20}).fit(X, y)
    if isinstance(loss, losses.Quantile):
        assert 0.75 < (y < model.predict(X)).mean() <= 1
    else:
        assert mean_absolute_error(y, model.predict(X)) < 0.7 * mean_absolute_error(y, np.full_like(y, np.median(y)))


def test_several_targets_of_unlike_scale():
    X, Y = make_regression(150, 4, n_targets=2, random_state=0)
    Y = Y * np.array([1.0, 1e-3])
    for shared in (True, False):
        basis = Neural(hidden=10, max_epochs=60, shared=shared)
        model = GCERegressor(basis=basis, cv=None, random_state=0, max_atoms=40).fit(X, Y)
        assert model.predict(X).shape == Y.shape
        assert model.bound_[1] < 0.01 * model.bound_[0]
        error = np.square(model.predict(X) - Y).mean(0) / Y.var(0)
        assert error[0] < 0.5
        if not shared:
            # a simplex of its own: the small target is learned as well as the large one
            assert error[1] < 0.5
            weights = model.ensemble_.weights
            assert weights.shape[1] == 2
            torch.testing.assert_close(weights.sum(0), torch.ones(2, dtype=torch.float64))


def test_separate_networks_for_separable_losses_are_separate_fits():
    X, Y = make_regression(60, 3, n_targets=2, noise=5.0, random_state=0)
    settings = {"basis": Neural(hidden=3, max_epochs=10, shared=False), "max_atoms": 4, "random_state": 0}
    both = GCERegressor(validation_fraction=None, cv=None, **settings).fit(X, Y)
    first = both.result_.families[0].rounds[-1].weights[0][:, 0]
    twice = GCERegressor(validation_fraction=None, cv=None, **settings).fit(X, Y * np.array([1.0, 7.0]))
    # what the second target is does not touch the first one's weights
    torch.testing.assert_close(twice.result_.families[0].rounds[-1].weights[0][:, 0], first, rtol=1e-9, atol=1e-12)


def test_pool_of_functions_gives_a_certificate(numbers):
    X, y = numbers
    pool = Pool(functions=[lambda Z, j=j, s=s: s * 100 * np.tanh(Z[:, j]) for j in range(4) for s in (-1, 1)])
    model = GCERegressor(basis=pool, bound=100.0, validation_fraction=None, cv=None, tol=1e-9, offset=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    assert "gap" in model.history_[-1]
    assert model.history_[-1]["gap"] <= 1e-9 * model.history_[-1]["risk"]
    assert np.isfinite(model.predict(X[:5])).all()
    # the certificate is of the model that predicts
    assert np.mean((model.predict(X) - y) ** 2) == pytest.approx(model.history_[-1]["risk"])


def test_neuron_and_other_inputs(numbers):
    X, y = numbers
    model = GCERegressor(basis=Neuron(max_epochs=30), cv=None, max_atoms=10, random_state=0)
    expected = model.fit(X, y).predict(X)
    assert model.score(X, y) > 0.5
    tensors = clone(model).fit(torch.from_numpy(X), torch.from_numpy(y))
    assert np.array_equal(tensors.predict(torch.from_numpy(X)), expected)
    frame = pd.DataFrame(X, columns=list("abcd"))
    framed = clone(model).fit(frame, pd.Series(y))
    assert np.array_equal(framed.predict(frame), expected)
    assert np.array_equal(framed.predict(frame[list("dcba")]), expected)
    with pytest.raises(ValueError, match="feature names"):
        framed.predict(frame[list("abc")])


def test_nested_parameters_and_grid_search_in_two_processes(numbers):
    X, y = numbers
    model, folds = GCERegressor(cv=2, **FAST), KFold(2)
    search = GridSearchCV(model, {"basis__hidden": [2, 6]}, cv=folds, n_jobs=2).fit(X, y)
    scores = []
    for hidden in (2, 6):
        alone = GCERegressor(**{**FAST, "basis": Neural(hidden=hidden, max_epochs=20)}, cv=2)
        scores.append(np.mean([alone.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds.split(X)]))
    assert scores[0] != scores[1]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], scores, rtol=1e-9)
    assert search.best_params_ == {"basis__hidden": (2, 6)[int(np.argmax(scores))]}
    assert model.basis.hidden == 5


def test_splitters_and_iterables(classes):
    X, y = classes
    splitter = StratifiedKFold(3)
    splits = list(splitter.split(X, y))
    models = [GCEClassifier(cv=cv, **FAST).fit(X, y) for cv in (splitter, splits, iter(splits))]
    assert all(np.array_equal(m.predict_proba(X), models[0].predict_proba(X)) for m in models)
    assert models[0].result_.members == 3


def test_time_limit_keeps_the_best_so_far(numbers):
    X, y = numbers
    began = time.monotonic()
    endless = {"max_atoms": 10**6, "max_iter": 10**6, "n_iter_no_change": None}
    model = GCERegressor(basis="neural", **endless, time_limit=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="neural was cut short"):
        model.fit(X, y)
    assert time.monotonic() - began < 5
    assert model.n_iter_ >= 1
    assert model.score(X, y) > 0.3


def test_callbacks_hear_every_round_and_can_stop(numbers):
    heard = []

    def third(step):
        heard.append((step.t, len(step.members), step.validation is not None))
        return step.t == 3

    model = GCERegressor(callbacks=[third], cv=2, **FAST).fit(*numbers)
    assert model.n_iter_ == 3
    assert heard == [(1, 2, True), (2, 2, True), (3, 2, True)]


def test_progress_bar_and_log(numbers, monkeypatch, caplog, capfd):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with caplog.at_level(logging.DEBUG, logger="gce"):
        GCERegressor(cv=2, **FAST).fit(*numbers)
    assert "validation" in screen.getvalue()
    assert "round 1" in caplog.text
    monkeypatch.undo()
    GCERegressor(cv=2, **FAST).fit(*numbers)
    assert capfd.readouterr() == ("", "")


def test_threads_are_left_as_they_were(numbers):
    before = torch.get_num_threads()
    seen = []
    model = GCERegressor(n_jobs=3, callbacks=[lambda step: seen.append(parallel.threads())], **FAST)
    model.fit(*numbers)
    assert set(seen) == {3}
    assert torch.get_num_threads() == before


def test_predict_from_many_threads(classes):
    X, y = classes
    model = GCEClassifier(cv=2, **FAST).fit(X, y)
    expected, answers = model.predict_proba(X), []
    workers = [threading.Thread(target=lambda: answers.append(model.predict_proba(X))) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(answers) == 8
    assert all(np.array_equal(answer, expected) for answer in answers)


def test_pickle_carries_a_fit_that_can_go_on(numbers):
    X, y = numbers
    settings = {**FAST, "cv": 2, "n_iter_no_change": None}
    whole = GCERegressor(**settings).fit(X, y)
    part = GCERegressor(**{**settings, "max_atoms": 4}, warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(part)).set_params(max_atoms=8).fit(X, y)
    assert np.array_equal(copy.predict(X), whole.predict(X))


def test_the_papers_setting_has_no_offset():
    X, y = load_diabetes(return_X_y=True)
    model = GCERegressor(offset=0.0, clip=None, cv=None, **FAST).fit(X, y)
    assert model.offset_.tolist() == [0.0]
    assert model.bound_[0] == pytest.approx(4 / 3 * y.max())


def test_mini_batches_beyond_the_small_data_limit():
    X, y = make_regression(4200, 3, random_state=0)
    model = GCERegressor(cv=None, validation_fraction=0.02, **{**FAST, "max_atoms": 6}).fit(X, y)
    assert model.ensemble_.parts[-1].parameters_[0].dtype == torch.float32
    assert model.ensemble_.weights.dtype == torch.float64
    assert model.score(X, y) > 0.7
    assert (np.abs(model.predict(X) - model.offset_) <= model.bound_ * (1 + 1e-12)).all()


@GPU
def test_a_gpu_gives_the_same_model_to_rounding(numbers):
    X, y = numbers
    cpu, gpu = (GCERegressor(cv=2, device=device, **{**FAST, "max_atoms": 3}).fit(X, y) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.predict(X), cpu.predict(X), rtol=1e-5)


def test_a_fit_that_breaks_off_leaves_no_old_ensemble_behind(numbers):
    X, y = numbers

    def stop(step):
        raise KeyboardInterrupt

    model = GCERegressor(**FAST).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[stop]).fit(X * 100, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="callbacks must be a list of callables"):
        GCERegressor(callbacks=stop, **FAST).fit(X, y)
