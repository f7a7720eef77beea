"""The ablations: weights refitted and checked independently, tables from made-up results, runs that resume."""

import json

import numpy as np
import pytest
import torch

from gce._utils.random import Streams
from gce.bases import Pool
from gce.datasets import Dataset
from gce.frank_wolfe.algorithms import Pairwise
from gce.losses import CrossEntropy, Logistic, Squared
from gce.losses.line_search import Exact
from gce.training.callbacks import EarlyStopping
from gce.training.family_fit import FamilyFit, Method
from gce.training.problem import Problem
from helpers import outputs_of, targets
from paper.ablations import ABLATIONS, models
from paper.ablations import __main__ as command
from paper.ablations.base import Found, Scope, key_of
from paper.ablations.bounds import FACTORS
from paper.ablations.bounds import settings_of as bound_settings
from paper.ablations.coefficients import settings_of
from paper.ablations.hulls import STOPPED, WHOLE
from paper.ablations.losses import FIELDS, word_for
from paper.ablations.refit import Given, free, on_simplex
from paper.ablations.tuning import OURS, SAME_ROWS, compared
from paper.ledger import Ledger

LOSSES = [Squared(), Logistic(), CrossEntropy()]


def made_up(name, *, split=None):
    rng = np.random.default_rng([len(name), split or 0])
    X = rng.normal(size=(60, 3))
    score = X @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=60)
    if name == "numbers":
        y, facts = score, {"task": "regression", "metric": "mae", "classes": 0}
    else:
        classes = 2 if name == "two" else 3
        y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
        facts = {"task": "classification", "metric": "error", "classes": classes}
    parts = {}
    for part, rows in (("train", slice(0, 36)), ("val", slice(36, 48)), ("test", slice(48, 60))):
        parts |= {f"X_{part}": X[rows], f"y_{part}": y[rows]}
    return Dataset(name=name, note="", **facts, **parts)


def scope_in(folder, many=("numbers", "two", "three"), seeds=2):
    return Scope(seeds, many, (), made_up, folder)


def given_for(loss, seed=0, n=25, atoms=6):
    rng = np.random.default_rng(seed)
    k = outputs_of(loss)
    outputs = rng.uniform(-2, 2, (atoms, n, k))
    return Given(outputs, targets(loss, n, rng).numpy(), loss, np.zeros(k), np.full(k, 2.0))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_slope_is_that_of_the_risk(loss):
    given = given_for(loss)
    weights, step = np.random.default_rng(1).uniform(0, 0.3, 6), 1e-6
    numeric = [(given.risk(weights + step * e) - given.risk(weights - step * e)) / (2 * step) for e in np.eye(6)]
    assert given.slope(weights) == pytest.approx(np.array(numeric), abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_free_weights_fit_no_worse_than_the_simplex_and_that_no_worse_than_any_of_its_points(loss, seed):
    given = given_for(loss, seed)
    simplex, gap = on_simplex(given)
    assert simplex.min() >= 0
    assert simplex.sum() <= 1 + 1e-12
    assert given.risk(free(given, simplex)) <= given.risk(simplex) + 1e-12
    for weights in np.random.default_rng(seed).dirichlet(np.full(7, 0.5), 200):
        assert given.risk(simplex) <= given.risk(weights[:6]) + gap + 1e-12


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_simplex_fit_is_the_engines(loss):
    """Pairwise Frank-Wolfe over the same atoms as a pool, to its own certificate, comes to the same risk."""
    given = given_for(loss)
    n, f64 = len(given.y), torch.float64
    weight = torch.full((1, n), 1 / n, dtype=f64)
    offset, bound = torch.from_numpy(given.offset), torch.from_numpy(given.bound)
    rows, y = torch.zeros(n, 1, dtype=f64), torch.from_numpy(given.y)
    problem = Problem(given.loss, rows, y, weight, torch.zeros_like(weight), offset, bound)
    fit = FamilyFit("pool", 1, EarlyStopping(None, 1e-7))
    method = Method(Pairwise(), Pool(outputs=given.outputs), Exact(), Streams(0, (0,)))
    fit.run(problem, method, max_iter=3000, max_calls=np.inf)
    weights, gap = on_simplex(given)
    assert given.risk(weights) == pytest.approx(fit.record.history[-1]["risk"], abs=gap + 1e-6)
    assert gap < 1e-3 * given.risk(weights)


def test_free_weights_are_of_least_norm_where_many_are_best():
    given = given_for(Squared(), n=4, atoms=9)
    weights = free(given, np.full(9, 1 / 9))
    assert given.risk(weights) < 1e-20
    matrix = given.outputs[..., 0].T
    assert weights == pytest.approx(np.linalg.pinv(matrix) @ given.y[:, 0])


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(models, "EPOCHS", 4)
    plain = models.greedy

    def few_rounds(data, settings, seed):
        return plain(data, settings, seed).set_params(max_atoms=5)

    monkeypatch.setattr(models, "greedy", few_rounds)
    monkeypatch.setattr("paper.ablations.hulls.greedy", few_rounds)
    monkeypatch.setitem(models.MODELS, "gce", few_rounds)


def test_a_killed_run_goes_on_where_it_stopped(tmp_path, monkeypatch, quick):
    some = {name: ABLATIONS[name] for name in ("hulls", "coefficients", "bounds")}
    scope, calls, work = scope_in(tmp_path), [], command.work

    def counted(key, data):
        calls.append(key)
        return work(key, data)

    monkeypatch.setattr(command, "work", counted)
    path = tmp_path / "ablations.jsonl"
    command.run(some, scope, Ledger(path))
    everything = len(calls)
    assert everything == len({json.dumps(key) for key in calls}) == 3 * 2 * (2 + 6 + 6)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-2]) + lines[-2][:50])
    command.run(some, scope, Ledger(path))
    assert len(calls) == everything + 2
    command.run(some, scope, Ledger(path))
    assert len(calls) == everything + 2
    assert sum("machine" in key for key, _ in Ledger(path).items()) == 1
    check_hulls(Ledger(path), scope)
    text = command.page(ABLATIONS, scope, Ledger(path), ["elsewhere"])
    assert "elsewhere" in text
    assert all(ablation.title in text for ablation in ABLATIONS.values())
    assert "Table 1 has not been run" in text


def check_hulls(ledger, scope):
    """Independently of the refits: greedy weights are points of the simplex, and simplex points are free ones."""
    found = Found(ledger)
    for name in scope.many:
        for kind in (STOPPED, WHOLE):
            results = found.by_split(scope, name, "hulls", kind)
            assert sorted(results) == [0, 1]
            for result in results.values():
                greedy, simplex, own = (result[part]["train_loss"] for part in ("greedy", "simplex", "free"))
                slack = 1e-6 + 1.01 * result["gap"]
                assert own <= simplex * (1 + 1e-5) <= greedy * (1 + 2e-5) + slack
                assert result["greedy"]["norm"] <= 1 + 1e-6


def test_a_fit_measures_what_the_estimator_predicts(quick):
    data = made_up("three", split=1)
    result = models.fit("ngce", data, settings_of("softmax", 0.01), seed=1)
    model = models.together(data, settings_of("softmax", 0.01), 1).fit(
        data.X_train, data.y_train, X_val=data.X_val, y_val=data.y_val
    )
    assert result["test_error"] == pytest.approx(100 * np.mean(model.predict(data.X_test) != data.y_test))
    given = model.predict_proba(data.X_train)[np.arange(36), data.y_train]
    assert result["train_loss"] == pytest.approx(-np.log(given).mean())
    assert result["atoms"] == 100


def test_multiples_of_the_bound_start_from_the_estimators_own():
    for name in ("numbers", "two"):
        data = made_up(name)
        model = models.greedy(data, {}, 0).set_params(max_atoms=1)
        model.fit(data.X_train, data.y_train, X_val=data.X_val, y_val=data.y_val)
        assert models.default_bound(data) == pytest.approx(float(model.bound_[0]))


def test_weights_are_measured_from_equal_ones():
    equal, alone = models.shape(np.full(4, 0.25)), models.shape(np.array([1.0, 0, 0, 0]))
    assert (equal["from_uniform"], equal["effective_atoms"]) == (0.0, pytest.approx(4))
    assert (alone["from_uniform"], alone["effective_atoms"]) == (0.75, 1.0)


def test_a_constants_loss():
    data = made_up("three")
    share = np.bincount(data.y_train) / 36
    assert models.constant_loss(data) == pytest.approx(-np.mean([np.log(share[y]) for y in data.y_test]))


def fill(ledger, scope, name, model, settings, **numbers):
    for split in range(scope.seeds):
        result = {part: value + 0.01 * split for part, value in numbers.items()}
        key = key_of({"set": name, "split": split}, model, settings)
        ledger.once(key, lambda result=result: {"seconds": 1.0, **result})


def test_who_underfits_and_who_overfits(tmp_path):
    scope, ledger = scope_in(tmp_path, many=("boston",)), Ledger(tmp_path / "ablations.jsonl")
    losses = {
        "GCE, paper's": (4.0, 9.0),
        "GCE, defaults": (4.0, 9.0),
        "NN, tuned": (0.5, 9.5),
        "NGCE, tuned": (20.0, 30.0),
    }
    for field, (train, test) in losses.items():
        model, settings = FIELDS[field]
        for place, own in enumerate(settings):
            # later settings are better in test, and worse in validation: they must not be taken
            numbers = {"train_loss": train, "test_loss": test / (1 + place), "val_loss": test + place}
            fill(ledger, scope, "boston", model, own, **numbers, train_error=1.0, test_error=2.0)
    text = ABLATIONS["losses"].section(Found(ledger), scope)
    for words in ("NN, tuned overfits", "NGCE, tuned underfits", "NGCE, no decay underfits", "GCE, paper's is alike"):
        assert words in text
    assert "Least mean test loss: GCE, paper's: boston" in text
    assert "NN, tuned overfits boston: shown; NGCE, tuned overfits boston: not shown (it underfits)" in text
    assert word_for(1.0, 3.0) == "is worse"
    assert word_for(1.2, 0.5) == "is better"


def test_softmax_is_called_worse_only_where_it_is(tmp_path):
    scope, ledger = scope_in(tmp_path, many=("iris", "wine"), seeds=3), Ledger(tmp_path / "ablations.jsonl")
    same = {"train_loss": 1.0, "test_error": 1.0, "from_uniform": 0.1, "effective_atoms": 90.0}
    for name, worse in (("iris", 1.0), ("wine", 0.0)):
        fill(ledger, scope, name, "ngce", settings_of("absolute", 0.01), test_loss=2.0, **same)
        for split in range(3):
            key = key_of({"set": name, "split": split}, "ngce", settings_of("softmax", 0.01))
            loss = 2.0 + worse + 0.02 * (split - 1)
            ledger.once(key, lambda loss=loss: {**same, "test_loss": loss, "seconds": 1.0})
    text = ABLATIONS["coefficients"].section(Found(ledger), scope)
    assert "clearly larger test loss on 1 of 2 sets (iris)" in text
    assert "smaller one on 0 (none)" in text
    assert "- Rate 0.01: softmax" in text


def test_who_uses_up_all_rounds(tmp_path):
    many = ("boston", "iris", "wine")
    scope, ledger = scope_in(tmp_path, many=many), Ledger(tmp_path / "ablations.jsonl")
    for name, rounds, loss in (("boston", 100, 6.0), ("iris", 30, 2.0), ("wine", 20, 1.0)):
        numbers = {"iterations": rounds, "atoms": rounds / 2, "test_loss": loss, "constant_loss": 10.0}
        fill(ledger, scope, name, "gce", {}, **numbers, test_error=1.0)
    cells = [{"set": "iris", "method": "gce_paper", "more": {"iterations": rounds}} for rounds in (100, 40)]
    (tmp_path / "table1.json").write_text(json.dumps({"cells": cells}))
    text = ABLATIONS["sizes"].section(Found(ledger), scope)
    assert "All 100 rounds were used by 2 of 2 fits of regression, 0 of 4 fits of classification." in text
    assert "rank correlation of 1.00" in text
    assert "| iris | 2 | 70.00 ± 42 | 1 of 2 |" in text


def cell(method, split, test, trials=14, wanted=14):
    facts = {"trials": trials, "wanted": wanted, "seconds": 2.0}
    return {"set": "iris", "split": split, "method": method, "test": test, **facts}


def test_tuned_peers_are_ranked_where_all_are_done(tmp_path):
    tests = {OURS: (1.0, 2.0, 9.0), SAME_ROWS: (9.0, 9.0, 9.0)}
    tests |= {"xgb": (2.0, 1.0, 1.0), "rf": (3.0, 3.0, 1.0), "nn": (3.0, 4.0, 1.0), "ngce": (5.0, 5.0, 1.0)}
    cells = [cell(method, split, value) for method, own in tests.items() for split, value in enumerate(own[:2])]
    cells += [cell(method, 2, own[2], trials=3) for method, own in tests.items()]  # not finished: must not count
    cells += [cell(method, "paper", own[2]) for method, own in tests.items()]
    ranks, _ = compared(cells, OURS)["iris"]
    assert ranks.tolist() == [[1, 2, 3.5, 3.5, 5], [2, 1, 3, 4, 5]]
    (tmp_path / "table1.json").write_text(json.dumps({"cells": cells}))
    text = ABLATIONS["tuning"].section(Found(Ledger(tmp_path / "none.jsonl")), scope_in(tmp_path))
    assert "Mean rank over sets: gce 1.50, xgb 1.50, rf 3.25, nn 3.75, ngce 5.00" in text
    assert "`gce_holdout` ranks first on 0 sets" in text


def test_bad_arguments_are_refused(capsys):
    for wrong in (["--seeds", "0"], ["--only", "nothing"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
    assert "nothing" in capsys.readouterr().err


def test_which_bound_tests_best(tmp_path):
    scope, ledger = scope_in(tmp_path, many=("iris", "wine")), Ledger(tmp_path / "ablations.jsonl")
    rest = {"train_loss": 1.0, "test_error": 1.0, "iterations": 30}
    for name, best in (("iris", 4.0), ("wine", 0.5)):
        for factor in FACTORS:
            fill(ledger, scope, name, "gce", bound_settings(factor), test_loss=2.0 - (factor == best), **rest)
    text = ABLATIONS["bounds"].section(Found(ledger), scope)
    assert "Least mean test loss at these multiples: iris 4; wine 0.5." in text
    assert "tests best on 1 of 2 sets (iris), a smaller one on 1 (wine)" in text
    assert "x1.00 at a quarter of it and x1.00 at eight times" in text
