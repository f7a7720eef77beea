"""Figures that are shown: each is computed again from public predictions, with and without sample weights."""

import json
import logging
import re

import numpy as np
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import (
    hamming_loss,
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    roc_auc_score,
    root_mean_squared_error,
    zero_one_loss,
)
from typer.testing import CliRunner

import gce
from gce.bases import SymmetricTree, Tree
from gce.cli.app import app
from gce.inspection import concordance_index
from gce.losses import Quantiles
from gce.training import family_weights, round_weights
from gce.training.metrics import TITLES

N, FOLDS = 150, 3
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 3))
SCORE = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=N)
#: Small weights of rows that are hard to predict: means with and without them differ.
WEIGHT = np.where(np.abs(SCORE) > 1, 0.25, 3.0)
SPLITS = [(np.flatnonzero(np.arange(N) % FOLDS != m), np.flatnonzero(np.arange(N) % FOLDS == m)) for m in range(FOLDS)]
FAMILIES = {"tree": Tree(max_leaf_nodes=4), "symmetric": SymmetricTree(max_depth=2)}
SMALL = {"basis": FAMILIES, "max_atoms": 6, "cv": SPLITS, "random_state": 0}
ALONE = {**SMALL, "basis": FAMILIES["symmetric"]}

TWO = np.where(SCORE > 0.5, "yes", "no")
THREE = np.digitize(SCORE, [-0.5, 0.8])
TIMES = np.column_stack([RNG.random(N) < 0.7, np.exp(-SCORE) * RNG.exponential(size=N) + 0.01])
TASKS = {
    "numbers": (gce.GCERegressor(**SMALL), SCORE),
    "one family": (gce.GCERegressor(**ALONE), SCORE),
    "targets": (gce.GCERegressor(**SMALL), np.column_stack([SCORE, 3 * X[:, 1]])),
    "absolute error": (gce.GCERegressor(loss="absolute_error", **SMALL), SCORE),
    "counts": (gce.GCERegressor(loss="poisson", **SMALL), RNG.poisson(np.exp(SCORE / 2)).astype(float)),
    "quantiles": (gce.GCERegressor(loss=Quantiles((0.2, 0.5, 0.9)), **SMALL), SCORE),
    "two classes": (gce.GCEClassifier(**SMALL), TWO),
    "rare class": (gce.GCEClassifier(class_weight={"yes": 10}, **SMALL), TWO),
    "balanced": (gce.GCEClassifier(class_weight="balanced", **ALONE), TWO),
    "hot": (gce.GCEClassifier(temperature=3.0, **SMALL), TWO),
    "three classes": (gce.GCEClassifier(**SMALL), THREE),
    "accuracy": (gce.GCEClassifier(scoring="accuracy", **SMALL), THREE),
    "ordinal": (gce.GCEClassifier(loss="ordinal", **ALONE), THREE),
    "labels": (gce.GCEClassifier(**ALONE), np.column_stack([SCORE > 0, X[:, 1] > 0.3]).astype(int)),
    "survival": (gce.GCESurvival(**ALONE), TIMES),
}
EVERY = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
NAMES = pytest.mark.parametrize("name", TASKS)


@pytest.fixture(scope="module")
def fitted():
    known = {}

    def fit(name, weighted):
        if (name, weighted) not in known:
            model, y = TASKS[name]
            known[name, weighted] = clone(model).fit(X, y, sample_weight=WEIGHT if weighted else None)
        return known[name, weighted]

    return fit


def held_out_scores(model):
    """The raw scores of each row by the member that did not train on it."""
    encoded, scores = model.encode_rows(X), None
    for m, (_, rows) in enumerate(SPLITS):
        own = model.ensemble_.of_member(m)(encoded)
        scores = own.clone() if scores is None else scores
        scores[rows] = own[rows]
    return scores


class Between:
    """What ranks rows: known up to ties, whose order the rounding of scores decides."""

    def __init__(self, of):
        self.low, self.high = of(-1e-9), of(1e-9)

    def __eq__(self, other):
        return self.low - 1e-9 <= other <= self.high + 1e-9

    def __repr__(self):
        return f"{self.low!r} to {self.high!r}"

    __hash__ = None


def agree(shown, found):
    """Compare metrics with those that were computed again."""
    assert shown.keys() == found.keys()
    for key, value in found.items():
        assert (key, shown[key]) == (key, value if isinstance(value, Between) else pytest.approx(value, rel=1e-9))


def expected(model, scores, y, weight):
    """Metrics by scikit-learn of what the public methods make of raw scores."""
    weigh = {"sample_weight": weight}
    predicted = model.predict_from_raw(scores)
    if isinstance(model, gce.GCESurvival):
        earlier = np.abs(predicted).max() * (1 - 2 * np.argsort(np.argsort(y[:, 1])) / len(y))
        return {"concordance": Between(lambda slack: concordance_index(y, predicted + slack * earlier, weight))}
    if isinstance(model, gce.GCERegressor):
        if isinstance(model.loss_, Quantiles):
            each = zip(predicted.T, model.loss_.levels, strict=True)
            return {"pinball_loss": np.mean([mean_pinball_loss(y, p, alpha=a, **weigh) for p, a in each])}
        errors = {"rmse": root_mean_squared_error, "mae": mean_absolute_error}
        return {key: error(y, predicted, **weigh) for key, error in errors.items()}
    proba = model.probabilities(scores)
    if y.ndim == 2:
        each = [log_loss(a, np.column_stack([1 - p, p]), **weigh) for a, p in zip(y.T, proba.T, strict=True)]
        wrong = {"wrong_labels": hamming_loss, "wrong_rows": zero_one_loss}
        return {**{key: loss(y, predicted, **weigh) for key, loss in wrong.items()}, "log_loss": np.mean(each)}
    ranked = [1] if len(model.classes_) == 2 else range(len(model.classes_))

    def area(slack):
        own = [(y == model.classes_[j], proba[:, j]) for j in ranked]
        return np.mean([roc_auc_score(true, p + slack * true, **weigh) for true, p in own])

    return {
        "error": zero_one_loss(y, predicted, **weigh),
        "log_loss": log_loss(y, proba, labels=model.classes_, **weigh),
        "roc_auc": Between(area),
    }


# What a fit says about the rows it held out.


@EVERY
@NAMES
def test_metrics_of_held_out_rows_are_those_of_the_members_that_did_not_train_on_them(fitted, name, weighted):
    model = fitted(name, weighted)
    assert model.result_.round_weights is None
    found = expected(model, held_out_scores(model), TASKS[name][1], WEIGHT if weighted else None)
    agree(model.result_.held_out, found)


@EVERY
@pytest.mark.parametrize("balance", [{"yes": 10}, "balanced"])
def test_rows_given_for_validation_have_their_own_weights(weighted, balance):
    more = np.random.default_rng(8)
    X_val, weight = more.normal(size=(60, 3)), more.uniform(0, 2, 60) * (more.random(60) > 0.1)
    y_val = np.where(X_val[:, 0] > 0.7, "yes", "no")
    own = {"sample_weight_val": weight} if weighted else {}
    model = gce.GCEClassifier(class_weight=balance, **{**SMALL, "cv": "auto"})
    model.fit(X, TWO, sample_weight=WEIGHT, X_val=X_val, y_val=y_val, **own)
    found = expected(model, model.raw_predict(X_val), y_val, weight if weighted else None)
    agree(model.result_.held_out, found)


@EVERY
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_base_scores_are_added_to_the_predictions_of_held_out_rows(weighted, loss):
    base, weight = 0.5 * X[:, 2], WEIGHT if weighted else None
    y = TASKS["counts"][1]
    model = gce.GCERegressor(loss=loss, **SMALL).fit(X, y, sample_weight=weight, base_score=base)
    predicted = model.predict_from_raw(held_out_scores(model) + torch.from_numpy(base[:, None]))
    rmse = root_mean_squared_error(y, predicted, sample_weight=weight)
    assert model.result_.held_out["rmse"] == pytest.approx(rmse, rel=1e-9)


def test_weights_of_rounds_are_judged_by_rows_that_had_no_part_in_them(monkeypatch):
    monkeypatch.setattr(round_weights, "_ENOUGH", 10)
    monkeypatch.setattr(round_weights, "_ERRORS", -1e9)
    model = clone(TASKS["numbers"][0]).fit(X, SCORE)
    assert model.result_.round_weights is not None
    # without weights the residuals of prediction intervals are those of all held-out rows
    honest = np.sqrt(np.mean(model.residuals_**2))
    assert model.result_.held_out["rmse"] == pytest.approx(honest, rel=1e-9)
    assert honest != pytest.approx(expected(model, held_out_scores(model), SCORE, None)["rmse"], rel=1e-6)


def test_without_held_out_rows_there_are_no_metrics():
    model = gce.GCERegressor(basis=FAMILIES["tree"], max_atoms=2, cv=None, validation_fraction=None).fit(X, SCORE)
    assert model.result_.held_out is None


def test_an_edited_model_has_no_metrics_of_the_rows_that_its_members_held_out(fitted):
    model = fitted("numbers", False)
    assert model.reweight(X, SCORE).result_.held_out is None


@NAMES
def test_a_file_keeps_the_metrics(fitted, name, tmp_path):
    model = fitted(name, True)
    model.save(tmp_path / "m.safetensors")
    assert gce.load(tmp_path / "m.safetensors").result_.held_out == model.result_.held_out


# The history, and what is read off it.


def mean_loss(model, scores, y, weight):
    target = model.result_.target.encode(y)
    loss = model.loss_.value(scores, torch.from_numpy(np.ascontiguousarray(target))).numpy()
    return np.average(loss, weights=weight)


def raw_of(model, y):
    """The raw scores after each round: the link of these losses is undone."""
    stages = np.stack(list(model.staged_predict(X)))
    return stages.reshape(*stages.shape[:2], -1)


@EVERY
def test_every_entry_of_the_history_is_the_loss_of_its_stage(weighted):
    """One member: its stages are public predictions until its best round, and rows for validation are given."""
    weight = {"sample_weight": WEIGHT[:100], "sample_weight_val": WEIGHT[100:]} if weighted else {}
    model = gce.GCERegressor(**{**SMALL, "cv": "auto"})
    model.fit(X[:100], SCORE[:100], X_val=X[100:], y_val=SCORE[100:], **weight)
    stages, before = raw_of(model, SCORE), 0
    assert len(stages) == len(model.history_) == model.n_iter_ + 1
    for family in model.result_.families:
        for t in range(family.best_round[0]):
            entry, scores = model.history_[before + t], torch.from_numpy(stages[before + t])
            for column, rows in (("risk", slice(100)), ("validation", slice(100, None))):
                own = WEIGHT[rows] if weighted else None
                found = mean_loss(model, scores[rows], SCORE[rows], own)
                assert entry[column] == pytest.approx(found, rel=1e-9)
        before += len(family.history)
    last, scores = model.history_[-1], model.raw_predict(X)
    for column, rows in (("risk", slice(100)), ("validation", slice(100, None))):
        own = WEIGHT[rows] if weighted else None
        assert last[column] == pytest.approx(mean_loss(model, scores[rows], SCORE[rows], own), rel=1e-9)
    atoms = sum(1 for _ in model.atom_names_)
    assert last["n_atoms"] >= atoms - 1


@EVERY
@pytest.mark.parametrize("name", ["numbers", "counts", "two classes", "rare class", "three classes", "quantiles"])
def test_the_last_entry_is_the_ensemble_and_comparable_to_those_of_families(fitted, name, weighted):
    """Its validation value is the mean loss of members on the rows they hold out, as that of every round."""
    model, y = fitted(name, weighted), TASKS[name][1]
    factor = np.where(y == "yes", 10.0, 1.0) if name == "rare class" else np.ones(N)
    weight, scores = (WEIGHT if weighted else 1.0) * factor, held_out_scores(model)
    each = [mean_loss(model, scores[rows], y[rows], weight[rows]) for _, rows in SPLITS]
    assert model.history_[-1]["members"]["validation"] == pytest.approx(each, rel=1e-9)
    assert model.history_[-1]["validation"] == model.result_.best_validation == pytest.approx(np.mean(each), rel=1e-9)


@pytest.fixture(scope="module")
def weighed():
    """A model of weights of rounds, where weights that a row had no part in are worse than the best family alone."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 6))
    y = (rows[:, 0] + rows[:, 1] * rows[:, 2] + rng.normal(size=200) > 0).astype(int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(round_weights, "_ENOUGH", 10)
        patch.setattr(round_weights, "_ERRORS", -1e9)
        patch.setattr(family_weights, "FEWER_FAMILIES", -1.0)
        model = gce.GCEClassifier(basis=FAMILIES, max_atoms=40, cv=4, random_state=0).fit(rows, y)
    assert model.result_.round_weights is not None
    return model


def test_the_whole_is_no_worse_than_its_parts_where_all_are_judged_alike(weighed):
    """Weights of rounds are no worse on held-out rows than the best of families, of which each is one."""
    result = weighed.result_
    parts = [
        np.mean([family.history[t - 1]["members"]["validation"][m] for m, t in enumerate(family.best_round)])
        for family in result.families
    ]
    assert result.best_validation < min(parts) < result.held_out["log_loss"]


@EVERY
def test_rounds_are_counted_without_the_entry_of_the_ensemble(fitted, weighted):
    several, one = fitted("numbers", weighted), fitted("one family", weighted)
    assert several.n_iter_ == len(several.history_) - 1 == sum(len(f.rounds) for f in several.result_.families)
    assert one.n_iter_ == len(one.history_) == len(list(one.staged_predict(X)))


def test_a_log_shows_the_means_of_the_history(caplog):
    with caplog.at_level(logging.DEBUG, logger="gce"):
        model = gce.GCERegressor(
            basis=FAMILIES, max_atoms=40, n_iter_no_change=2, algorithm="away", cv=SPLITS, random_state=0
        ).fit(X, SCORE)
    assert any(len(entry["running"]) < FOLDS for entry in model.history_), "this test needs members that stop apart"
    lines = re.findall(r"\w+ round \d+ \((\d+) in all\)  validation (\S+)  risk (\S+)  gap >= (\S+)", caplog.text)
    assert len(lines) == model.n_iter_
    for t, validation, risk, gap in lines:
        entry = model.history_[int(t) - 1]
        shown = f"{entry['validation']:.4g}", f"{entry['risk']:.4g}", f"{entry['gap_lower']:.3g}"
        assert (validation, risk, gap) == shown


# The command line.


def call(*words):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def spoken(*words):
    return re.sub(r"\s+", " ", call(*words))


CLI = {
    "numbers": (SCORE, ()),
    "counts": (TASKS["counts"][1], ("--set", "loss=poisson")),
    "two classes": (TWO, ()),
    "rare class": (TWO, ("--set", "class_weight={'yes': 10}")),
    "ordinal": (THREE, ("--set", "loss=ordinal")),
    "accuracy": (THREE, ("--set", "scoring=accuracy")),
}
FORM = {"error": ".2f", "log_loss": ".4f", "roc_auc": ".4f", "rmse": ".4g", "mae": ".4g"}
TITLE = {"error": "error", "log_loss": "log-loss", "roc_auc": "ROC AUC", "rmse": "RMSE", "mae": "MAE"}


def lines(metrics):
    """How figures stand in the terminal."""
    return [
        f"{TITLE[key]} {format(100 * value if key == 'error' else value, FORM[key])}" for key, value in metrics.items()
    ]


@EVERY
@pytest.mark.parametrize("name", CLI)
def test_the_command_line_prints_what_scikit_learn_computes(name, weighted, tmp_path):
    y, options = CLI[name]
    frame = pl.DataFrame({**{f"x{j}": X[:, j] for j in range(3)}, "y": y, "w": WEIGHT})
    train, test, path = (tmp_path / file for file in ("train.parquet", "test.parquet", "m.safetensors"))
    frame[:100].write_parquet(train)
    frame[100:].write_parquet(test)
    own = ("--weights", "w") if weighted else ("--drop", "w")
    options = (*options, *own, "-t", "y", "--set", "max_atoms=4", "--set", "basis=tree", "--cv", "3")
    held_out = json.loads(call("fit", train, *options, "--out", path, "--json"))
    model = gce.load(path)
    assert {key: held_out["metrics"][key] for key in model.result_.held_out} == model.result_.held_out
    assert (held_out["rounds"], held_out["atoms"]) == (model.n_iter_, len(model.ensemble_))
    text = spoken("fit", train, *options)
    assert "on the rows held out for early stopping:" in text
    assert all(line in text for line in lines(model.result_.held_out))
    rows, weight = frame[100:].select("x0", "x1", "x2"), WEIGHT[100:] if weighted else None
    metrics = expected(model, model.raw_predict(rows), y[100:], weight)
    given = json.loads(call("fit", train, *options, "--test", test, "--json"))["metrics"]
    agree({key: given[key] for key in metrics}, metrics)
    text = spoken("fit", train, *options, "--test", test)
    assert all(line in text for line in lines({key: given[key] for key in metrics}))


@EVERY
@pytest.mark.parametrize("name", ["numbers", "one family", "rare class", "labels", "survival", "quantiles"])
def test_inspect_shows_what_the_model_has(fitted, name, weighted, tmp_path):
    model, path = fitted(name, weighted), tmp_path / "m.safetensors"
    model.save(path)
    found = json.loads(call("inspect", path, "--json"))
    assert found["held_out"] == model.result_.held_out
    history = found["history"]
    assert (history["rounds"], history["members"]) == (model.n_iter_, FOLDS)
    assert history["risk"] == {"first": model.history_[0]["risk"], "last": model.history_[-1]["risk"]}
    assert history["validation"]["best"] == model.result_.best_validation
    assert history["seconds"] == model.history_[-1]["seconds"]
    assert found["atoms"] == len(model.ensemble_) == len(model.ensemble_.weights)
    assert found["largest_weight"] == float(model.ensemble_.weights.max())
    text = spoken("inspect", path)
    assert f"{model.n_iter_} rounds in" in text
    assert "held-out rows" in text
    if name == "numbers":
        assert all(line in text for line in lines(model.result_.held_out))


def test_a_fit_that_holds_out_nothing_says_so(tmp_path):
    pl.DataFrame({"x": X[:, 0], "y": SCORE}).write_csv(tmp_path / "t.csv")
    options = ("-t", "y", "--set", "max_atoms=2", "--set", "basis=tree", "--cv", 1, "--set", "validation_fraction=None")
    text = spoken("fit", tmp_path / "t.csv", *options)
    assert "no rows were held out: use --test FILE for metrics" in text
    assert "early stopping:" not in text


def test_one_outlier_is_one_row_of_many(tmp_path):
    """Of more rows than residuals are kept of, one outlier was one in ten thousand of them."""
    rows = 25_000
    y = np.random.default_rng(0).normal(size=rows)
    y[7] = 5000.0
    pl.DataFrame({"x": np.arange(rows) % 2, "y": y}).write_parquet(tmp_path / "t.parquet")
    options = ("-t", "y", "--set", "max_atoms=1", "--set", "basis=tree", "--cv", 2, "--json")
    found = json.loads(call("fit", tmp_path / "t.parquet", *options))["metrics"]
    # the tree can only say the mean of each half of the rows
    assert found["rmse"] == pytest.approx(np.std(y), rel=0.02)


# Explanations.


@EVERY
@pytest.mark.parametrize("name", ["numbers", "counts", "two classes", "rare class"])
def test_explain_shows_losses_of_held_out_rows(fitted, name, weighted):
    model, y = fitted(name, weighted), TASKS[name][1]
    weight = WEIGHT if weighted else None
    found = model.explain(X, y, weight)
    factor = np.where(y == "yes", 10.0, 1.0) if name == "rare class" else np.ones(N)
    loss = mean_loss(model, held_out_scores(model), y, (1.0 if weight is None else weight) * factor)
    assert found.loss == pytest.approx(loss, rel=1e-9)
    weights = dict(zip(found.names, found.weights, strict=True))
    known = zip((family.name for family in model.result_.families), model.result_.family_weights, strict=True)
    for family, share in known:
        assert weights[family] == pytest.approx(share, abs=1e-9)
    assert found.n_atoms.sum() <= len(model.ensemble_)
    text = str(found)
    assert f"{found.loss:.4g}" in text
    for j in np.flatnonzero(found.used):
        assert f"{found.weights[j]:.4f}" in text
    assert found.importances == pytest.approx(dict(zip(("x0", "x1", "x2"), model.feature_importances_, strict=True)))


# Reports.

COUNT = RNG.integers(0, 4, N)
REPEATED = np.repeat(np.arange(N), COUNT)


def page(model, path, X, y, weight=None):
    """A report: its headline, its tables and the curves of its survival chart, as text and numbers."""
    model.report(path, X, y, weight)
    text = path.read_text()
    headline = {
        re.sub("<.*?>", "", name): float(value)
        for name, value in re.findall(r'<dt>(.*?)</dt><dd class="value" data-value="([^"]+)', text)
    }
    tables = {}
    for body in re.findall("<table.*?</table>", text, re.DOTALL):
        (caption,) = re.findall("<caption.*?>(.*?)</caption>", body)
        rows = [re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row in body.split("<tr")[1:]]
        tables[caption] = [[re.sub("<.*?>", "", cell) for cell in row] for row in rows]
    chart = re.search('data-chart="survival".*?</figure>', text, re.DOTALL)
    paths = [] if chart is None else re.findall(' d="(.*?)"', chart[0])
    curves = [list(map(float, re.findall(r"-?[\d.]+", path))) for path in paths]
    return headline, tables, curves


#: Tables that shuffle rows, or count them.
OTHERS = {"Permutation importance", "Families and their weights", "Members and their atoms"}


@NAMES
def test_a_row_of_weight_two_is_two_rows_in_a_report(fitted, name, tmp_path):
    model, y = fitted(name, False), TASKS[name][1]
    weighted = page(model, tmp_path / "weighted.html", X, y, COUNT)
    repeated = page(model, tmp_path / "repeated.html", X[REPEATED], y[REPEATED])
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-9)
    # a beeswarm has a dot for each row
    for caption in [name for name in weighted[1].keys() - OTHERS if not name.startswith("Shapley values of")]:
        # a head has the unit, weight or rows
        assert (caption, weighted[1][caption][1:]) == (caption, repeated[1][caption][1:])
    assert len(weighted[2]) == len(repeated[2]) >= (6 if name == "survival" else 0)
    for one, other in zip(weighted[2], repeated[2], strict=True):
        # coordinates of a drawing, rounded to a tenth of a thousandth of its width
        assert one == pytest.approx(other, abs=0.11)


@EVERY
@NAMES
def test_the_headline_of_a_report_is_what_scikit_learn_computes(fitted, name, weighted, tmp_path):
    model, y = fitted(name, weighted), TASKS[name][1]
    weight = COUNT.astype(float) + 0.5 if weighted else None
    found, tables, _ = page(model, tmp_path / "r.html", X, y, weight)
    metrics = expected(model, model.raw_predict(X), y, weight)
    for key, value in metrics.items():
        title = {"error": "Error", "pinball_loss": "Mean pinball loss", "log_loss": "Log-loss"}.get(key, key)
        title = {"rmse": "RMSE", "mae": "MAE", "roc_auc": "ROC AUC", "concordance": "Concordance"}.get(key, title)
        title = {"wrong_labels": "Wrong labels", "wrong_rows": "Rows with a wrong label"}.get(key, title)
        agree({title: found[title]}, {title: value})
    if name == "survival":
        assert found["Events"] == pytest.approx(np.average(y[:, 0], weights=weight))
    if name == "labels":
        share = np.average(y, axis=0, weights=weight)
        text = (tmp_path / "r.html").read_text()
        assert f"commoner answer for each label: {100 * np.minimum(share, 1 - share).mean():.1f}" in text
    if "Coverage of intervals" in tables and y.ndim == 1:
        for nominal, covered, width in tables["Coverage of intervals"][1:]:
            ends = model.predict_interval(X, float(nominal.split()[0]) / 100)
            inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
            assert float(width) == pytest.approx(np.average(ends[:, 1] - ends[:, 0], weights=weight), rel=1e-3)
            assert float(covered.split()[0]) == pytest.approx(100 * np.average(inside, weights=weight), abs=0.051)


@NAMES
def test_a_report_says_how_held_out_rows_are_predicted(fitted, name, tmp_path):
    model, y = fitted(name, False), TASKS[name][1]
    model.report(tmp_path / "r.html", X, y)
    (body,) = re.findall("On the rows held out by the fit.*?</section>", (tmp_path / "r.html").read_text(), re.DOTALL)
    values = re.findall("<dd.*?>(.*?)</dd>", body)[: len(model.result_.held_out)]
    known = [(key, model.result_.held_out[key]) for key in TITLES if key in model.result_.held_out]
    for shown, (key, value) in zip(values, known, strict=True):
        number = float(re.sub(r"[^\d.]", "", shown)) / (100 if "%" in shown else 1)
        assert (key, number) == (key, pytest.approx(value, rel=2e-3, abs=6e-4))


def test_the_report_compares_families_by_the_values_of_the_history(weighed, tmp_path):
    rows = np.random.default_rng(0).normal(size=(200, 6))
    _, tables, _ = page(weighed, tmp_path / "r.html", rows, (rows[:, 0] > 0).astype(int))
    head, *lines_ = tables["Families and their weights"]
    held_out = {line[0]: float(line[head.index("held-out")]) for line in lines_ if line[0] != "offset alone"}
    assert held_out.pop("all together") == pytest.approx(weighed.history_[-1]["validation"], rel=1e-3)
    for family in weighed.result_.families:
        kept = [family.history[t - 1]["members"]["validation"][m] for m, t in enumerate(family.best_round)]
        assert held_out[family.name] == pytest.approx(np.mean(kept), rel=1e-3)
