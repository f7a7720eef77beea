"""The result of a fit: immutable, plural in its families, and the one owner of what was kept and fitted."""

import dataclasses
import json
import logging
import pickle
import re

import cvxpy as cp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import gce
from gce.bases import Forest, Neural, SymmetricTree, Tree, Union
from gce.bases.context import FitDefaults
from gce.cli.app import app
from gce.training import round_weights, trial
from gce.training.family_weights import FamilyScreening

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 4))
Y = X[:, 0] * X[:, 1] + 0.8 * RNG.normal(size=90)
LABELS = np.array(["no", "yes"])[(X[:, 0] * X[:, 1] + 0.8 * RNG.normal(size=90) > 0).astype(int)]
TREE, NET = Tree(max_leaf_nodes=6, min_samples_leaf=2), Neural(hidden=3, max_epochs=10)
FAMILIES = {"tree": TREE, "symmetric": SymmetricTree(max_depth=3, min_samples_leaf=1), "neural": NET}
SMALL = {"cv": 3, "random_state": 0, "max_atoms": 40}


@pytest.fixture(scope="module")
def boosted():
    return gce.GCEClassifier(basis=TREE, **SMALL).fit(X, LABELS)


@pytest.fixture(scope="module")
def mixed():
    return gce.GCEClassifier(basis=FAMILIES, **SMALL).fit(X, LABELS)


def call(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def argmin_rounds(history):
    """The round at which each member alone was best, which is not what is kept where members stop together."""
    return (1 + np.argmin([entry["members"]["validation"] for entry in history], axis=0)).tolist()


def last_rounds(model):
    """Of each member the last round whose tree has weight: boosting gives weight to each tree up to the kept round."""
    made = [tuple(map(int, name.split(":"))) for name in model.atom_names_]
    return [max(t for m, t in made if m == member) for member in range(3)]


def drawn_rounds(model):
    """The rounds that a picture marks as kept, one list per family."""
    shown = gce.inspection.TrainingDisplay.from_estimator(model)
    marks = [[line for line in panel.lines if "best" in line.get_label()] for panel in shown.axes_]
    plt.close(shown.figure_)
    return [own.get_xdata().tolist() for (own,) in marks]


def reported(model, path):
    """The columns of kept rounds in a report, by their heads."""
    model.report(path, X, LABELS)
    (page,) = re.findall("<caption[^>]*>Members and their atoms</caption>.*?</table>", path.read_text(), re.DOTALL)
    head, *rows = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in page.split("<tr")[1:]]
    return {name: [int(row[i]) for row in rows] for i, name in enumerate(head) if name.startswith("kept")}


def reported_families(model, path):
    """The rounds kept of each family in a report: from the first to the last of its members."""
    model.report(path, X, LABELS)
    (page,) = re.findall("<caption[^>]*>Families and their weights</caption>.*?</table>", path.read_text(), re.DOTALL)
    head, *rows = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in page.split("<tr")[1:]]
    names = [re.sub("<.*?>", "", row[0]) for row in rows]
    return {name: row[head.index("rounds kept")] for name, row in zip(names, rows, strict=True)}


# The kept round has one owner.


def test_members_that_stop_together_are_kept_at_one_round_everywhere(boosted, tmp_path):
    (kept,) = {*last_rounds(boosted)}
    assert argmin_rounds(boosted.history_) != [kept] * 3, "this test needs members that would stop apart"
    (family,) = boosted.result_.families
    assert family.best_round == (kept,) * 3
    assert drawn_rounds(boosted) == [[kept]]
    assert reported(boosted, tmp_path / "page.html") == {"kept": [kept] * 3}
    expected = boosted.history_[kept - 1]["validation"]
    assert boosted.result_.best_validation == pytest.approx(expected, rel=1e-12)
    boosted.save(tmp_path / "m.safetensors")
    found = json.loads(call("inspect", tmp_path / "m.safetensors", "--json"))
    assert found["history"]["validation"]["best"] == pytest.approx(expected, rel=1e-12)


def test_families_are_kept_at_their_own_rounds_and_judged_together(mixed, tmp_path):
    kept = {family.name: list(family.best_round) for family in mixed.result_.families}
    assert kept.keys() == FAMILIES.keys()
    lengths = [len(family.rounds) for family in mixed.result_.families]
    assert [entry.get("family") for entry in mixed.history_[:-1]] == np.repeat(list(kept), lengths).tolist()
    assert drawn_rounds(mixed) == [sorted(set(family.best_round)) for family in mixed.result_.families]
    shown = {name: " to ".join(map(str, sorted({min(own), max(own)}))) for name, own in kept.items()}
    assert reported_families(mixed, tmp_path / "page.html") == {**shown, "all together": "\u2013"}
    together = mixed.history_[-1]["validation"]
    least = np.min([entry["members"]["validation"] for entry in mixed.history_], axis=0).mean()
    assert together != pytest.approx(least, rel=1e-6), "this test needs a family that is better alone for a member"
    assert mixed.result_.best_validation == together
    mixed.save(tmp_path / "m.safetensors")
    found = json.loads(call("inspect", tmp_path / "m.safetensors", "--json"))
    assert found["history"]["validation"]["best"] == together


@pytest.mark.parametrize("basis", ["tree", "auto"])
def test_the_loss_of_what_is_kept_is_that_of_the_history(basis, tmp_path):
    pd.DataFrame(X, columns=list("abcd")).assign(label=LABELS).to_csv(tmp_path / "rows.csv", index=False)
    words = ["fit", tmp_path / "rows.csv", "-t", "label", "--out", tmp_path / "m.safetensors", "--seed", "0"]
    call(*words, "--set", f"basis={basis}", "--set", "max_atoms=20")
    model = gce.load(tmp_path / "m.safetensors")
    history = model.history_
    # boosted trees stop by the mean over members; families are judged together
    expected = history[-1]["validation"] if basis == "auto" else min(entry["validation"] for entry in history)
    least = np.min([entry["members"]["validation"] for entry in history], axis=0).mean()
    assert expected != pytest.approx(least, rel=1e-6)
    assert model.result_.best_validation == pytest.approx(expected, rel=1e-12)


# What was fitted has one owner.


@pytest.mark.parametrize("algorithm", ["pairwise", "frank-wolfe"])
def test_a_named_algorithm_fits_networks_and_its_bounds_are_about_networks(algorithm, tmp_path):
    model = gce.GCERegressor(algorithm=algorithm, max_atoms=3, cv=2, random_state=0).fit(X, Y)
    alike = gce.GCERegressor(basis="neural", algorithm=algorithm, max_atoms=3, cv=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), alike.predict(X))
    report = model.bound_report(X, Y, draws=2, random_state=0)
    assert report == alike.bound_report(X, Y, draws=2, random_state=0)
    model.save(tmp_path / "m.safetensors")
    back = gce.load(tmp_path / "m.safetensors")
    assert back.bound_report(X, Y, draws=2, random_state=0) == report
    for one in (model, back):
        assert {name: type(basis) for name, basis in one.result_.bases.items()} == {"neural": Neural}
    # parameters that are changed later say nothing about this fit
    assert model.set_params(algorithm="auto").bound_report(X, Y, draws=2, random_state=0) == report


def test_bounds_name_the_families_of_a_mixture(tmp_path):
    model = gce.GCERegressor(basis=FAMILIES, max_atoms=2, cv=2, random_state=0).fit(X, Y)
    model.save(tmp_path / "m.safetensors")
    back = gce.load(tmp_path / "m.safetensors")
    for one in (model, back, model.set_params(basis="neural"), model.reweight(X, Y)):
        with pytest.raises(ValueError, match="this model mixes tree, symmetric, neural"):
            one.bound_report(X, Y)
    for one in (model, back):
        assert list(one.result_.bases) == list(FAMILIES)
        for name, basis in FAMILIES.items():
            assert repr(one.result_.bases[name]) == repr(basis)


def test_a_mixture_with_a_basis_that_no_file_holds_is_not_mistaken_for_the_rest(tmp_path):
    mixture = [TREE, Union([TREE, NET])]
    model = gce.GCERegressor(basis=mixture, max_atoms=2, cv=2, random_state=0).fit(X, Y)
    with pytest.warns(UserWarning, match="basis cannot go into a model file"):
        model.save(tmp_path / "m.safetensors")
    back = gce.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    for one in (model, back):
        with pytest.raises(ValueError, match="is about one class of atoms, and this model mixes"):
            one.bound_report(X, Y)


def test_the_plan_resolves_auto_once():
    auto = gce.GCERegressor(max_atoms=2, cv=2, random_state=0).fit(X, Y).result_
    assert [family.name for family in auto.families] == list(auto.bases) == ["tree", "symmetric", "forest", "neural"]
    kinds = [Tree, SymmetricTree, Forest, Neural]
    assert [type(basis) for basis in auto.bases.values()] == kinds
    constrained = gce.GCERegressor(max_atoms=2, cv=2, monotonic_cst=[1, 0, 0, 0], random_state=0).fit(X, Y).result_
    assert list(constrained.bases) == [family.name for family in constrained.families] == list(auto.bases)


# The result.


def one_of_each():
    yield gce.GCERegressor(basis=NET, max_atoms=2, cv=2, random_state=0).fit(X, Y)
    yield gce.GCEClassifier(basis=FAMILIES, max_atoms=2, cv=2, random_state=0).fit(X, LABELS)
    at_once = {"hidden": 2, "max_epochs": 3, "random_state": 0}
    yield gce.NGCERegressor(n_atoms=2, **at_once).fit(X, Y)
    yield gce.NGCEClassifier(n_atoms=2, **at_once).fit(X, LABELS)
    yield gce.NNRegressor(**at_once).fit(X, Y)
    yield gce.NNClassifier(**at_once).fit(X, LABELS)


def test_a_result_is_immutable_and_always_plural():
    for model in one_of_each():
        result = model.result_
        for field in dataclasses.fields(result):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(result, field.name, None)
        assert type(result.families) is tuple
        assert len(result.families) == len(result.family_weights) >= 1
        assert sum(result.family_weights) <= 1 + 1e-9
        for family in result.families:
            with pytest.raises(dataclasses.FrozenInstanceError):
                family.best_round = (1,)
            assert len(family.best_round) == family.members == result.members
            assert all(1 <= t <= len(family.history) for t in family.best_round)
        for name in ("ensemble_", "history_", "bound_", "offset_", "result_"):
            with pytest.raises(AttributeError):
                setattr(model, name, None)


def test_a_result_is_pickled_without_what_can_be_computed_again():
    for model in one_of_each():
        fresh = len(pickle.dumps(model))
        answers, history = model.raw_predict(X), model.history_
        list(getattr(model, "staged_predict", lambda rows: ())(X))
        assert len(pickle.dumps(model)) == fresh
        back = pickle.loads(pickle.dumps(model))
        names = {field.name for field in dataclasses.fields(back.result_)}
        assert vars(back.result_).keys() == names
        assert back.history_ == history
        assert np.array_equal(back.raw_predict(X), answers)


def test_a_warm_start_that_fails_leaves_the_earlier_result():
    model = gce.GCERegressor(basis=TREE, max_atoms=2, cv=2, random_state=0).fit(X, Y)
    result = model.result_

    def fail(step):
        raise RuntimeError("a callback that fails")

    with pytest.raises(RuntimeError, match="a callback"):
        model.set_params(callbacks=[fail], warm_start=True, max_atoms=4).fit(X, Y)
    assert model.result_ is result


@pytest.mark.parametrize(
    "kind",
    [
        gce.GCERegressor,
        gce.GCEClassifier,
        gce.NGCERegressor,
        gce.NGCEClassifier,
        gce.NNRegressor,
        gce.NNClassifier,
    ],
)
def test_an_estimator_is_made_of_at_most_four_classes_of_ours(kind):
    own = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "gce"]
    assert len(own) <= 4, [base.__name__ for base in own]
    # nothing is synthesised: what a reader sees is what is called
    assert "__init__" in vars(kind)
    assert not hasattr(clone(kind()), "_result")


#: Networks must count after two rounds.
EARLY = {(Neural, "fit_defaults"): property(lambda basis: FitDefaults(screening_rounds=2))}
#: What leaves a family out: the fit, what is set before it, and which families it leaves out for which reason.
GATES = {
    "time": ({"basis": FAMILIES, "time_limit": 0.0}, {}, {"symmetric": "time limit", "neural": "time limit"}),
    "callback": (
        {"basis": FAMILIES, "callbacks": [lambda step: True]},
        {},
        {"symmetric": "stopped", "neural": "stopped"},
    ),
    "trial": (
        {"basis": {"tree": TREE, "neural": NET}},
        {(trial, "TRIAL_ROWS"): 1, (FamilyScreening, "min_weight"): 2.0, **EARLY},
        {"neural": r"after 2 rounds its weight was \d\S* %, less than 200 %"},
    ),
    "no better": ({"basis": {"tree": TREE, "same": TREE}}, {}, {"tree|same": "the same without it|best weight"}),
    "rounds": (
        {"basis": {"tree": TREE, "bad": Tree(max_leaf_nodes=2, learning_rate=0.001)}},
        {(round_weights, "_ENOUGH"): 1},
        {"bad": "without its rounds|without it|best weight"},
    ),
}


def left_out_by(gate, monkeypatch):
    given, patches, expected = GATES[gate]
    for (place, name), value in patches.items():
        monkeypatch.setattr(place, name, value)
    return gce.GCERegressor(**{**SMALL, **given}).fit(X, Y), expected


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("gate", GATES)
def test_families_that_are_left_out_are_named_with_the_reason(gate, monkeypatch, tmp_path, caplog):
    caplog.set_level(logging.INFO, "gce")
    model, expected = left_out_by(gate, monkeypatch)
    result, found = model.result_, dict(model.result_.left_out)
    weights = {family.name: w for family, w in zip(result.families, result.family_weights, strict=True)}
    assert {name for name, weight in weights.items() if weight == 0} == found.keys() & weights.keys()
    for names, reason in expected.items():
        ((name, why),) = [pair for pair in found.items() if re.fullmatch(names, pair[0])]
        assert re.search(reason, why)
        assert f"{name} is left out: {why}" in caplog.messages
    assert model.history_[-1]["left_out"] == found
    for resumable in (False, True):
        model.set_params(callbacks=None).save(tmp_path / "m.safetensors", resumable=resumable)
        back = gce.load(tmp_path / "m.safetensors")
        assert back.result_.left_out == result.left_out
        assert back.history_ == model.history_
    assert json.loads(call("inspect", tmp_path / "m.safetensors", "--json"))["left_out"] == found
    shown = " ".join(call("inspect", tmp_path / "m.safetensors").split())
    model.report(tmp_path / "r.html", X, Y)
    page = re.sub("<[^>]*>", " ", (tmp_path / "r.html").read_text())
    for name, why in found.items():
        assert f"{name}: {why}" in shown
        assert re.search(rf"\b{name}\s+{re.escape(why)}", page)
    # weights of an edited model are others
    assert model.reweight(X, Y).result_.left_out == ()


def test_a_forest_is_left_out_where_a_loss_has_no_means():
    times = np.rec.fromarrays([Y > -1, np.exp(Y)], names="event,time")
    model = gce.GCESurvival(loss="hazards", **{**SMALL, "max_atoms": 2}).fit(X, times)
    assert dict(model.result_.left_out)["forest"] == "it predicts means, which the loss Hazards does not"
    named = gce.GCESurvival(loss="hazards", basis="tree", **{**SMALL, "max_atoms": 2}).fit(X, times)
    assert named.result_.left_out == ()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_on_the_command_line_names_them(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame(X).assign(y=Y).to_csv(path, index=False)
    words = ("fit", path, "-t", "y", "--set", "max_atoms=2", "--cv", 2, "--time-limit", 1e-9)
    found = json.loads(call(*words, "--json"))["left_out"]
    assert found == dict.fromkeys(["symmetric", "forest", "neural"], "the time limit left no time for it")
    shown = " ".join(call(*words).split())
    assert all(f"{name} is left out: {reason}" in shown for name, reason in found.items())


def test_no_family_is_left_out_where_all_have_weight(boosted):
    assert boosted.result_.left_out == ()


@pytest.mark.parametrize("seed", range(3))
def test_weights_of_families_are_certified(seed):
    """Least squares over the families that are kept, by a conic solver."""
    model = gce.GCERegressor(basis=[TREE, NET, Forest(n_estimators=5)], max_atoms=15, random_state=seed)
    model.fit(X[:60], Y[:60], X_val=X[60:], y_val=Y[60:])
    result, last = model.result_, model.history_[-1]
    rows = model.encode_rows(X[60:])
    kept = [family for family, weight in zip(result.families, result.family_weights, strict=True) if weight > 0]
    outputs = (
        np.stack([family.ensemble(result.ensemble.offset)(rows)[:, 0].numpy() for family in kept], 1) - result.offset
    )
    w = cp.Variable(len(kept), nonneg=True)
    task = cp.Problem(cp.Minimize(cp.sum_squares(result.offset + outputs @ w - Y[60:]) / 30), [cp.sum(w) <= 1])
    least = task.solve(solver=cp.CLARABEL)
    loss = np.mean((model.predict(X[60:]) - Y[60:]) ** 2)
    assert last["validation"] == pytest.approx(loss, rel=1e-12)
    assert "gap_lower" not in last
    assert loss - least <= last["weights_gap"] + 1e-7 * least
    assert last["weights_gap"] <= 1e-9 * loss
