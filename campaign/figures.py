"""Figures that are shown, of random small tables: each is computed again from public predictions."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
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
from campaign.isolated import isolated
from campaign.outcomes import Outcome
from gce.bases import Forest, Neural, SymmetricTree, Tree
from gce.cli.app import app
from gce.inspection import concordance_index
from gce.losses import Quantiles

PROMISE = (
    "figures that the command line, reports, histories and explanations show are those of public predictions, "
    "with weights and without"
)
FULL = 200

Array = NDArray[np.float64]

BASES: list[Any] = [
    Tree(max_leaf_nodes=4),
    SymmetricTree(max_depth=2),
    Forest(n_estimators=4),
    Neural(hidden=3, max_epochs=10),
]
LEVELS = (0.1, 0.5, 0.8)
#: What a page calls a metric.
TITLES = {
    "rmse": "RMSE",
    "mae": "MAE",
    "pinball_loss": "Mean pinball loss",
    "error": "Error",
    "log_loss": "Log-loss",
    "roc_auc": "ROC AUC",
    "wrong_labels": "Wrong labels",
    "wrong_rows": "Rows with a wrong label",
    "concordance": "Concordance",
}
#: Of the rounding of sums in another order.
CLOSE = 1e-8
#: Scores that differ by less may be ties, whose order the rounding of sums decides: ranks are known up to these.
TIED = 1e-9


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases in processes of their own: a random table and a task each."""
    yield from isolated(Figures, cases, seed, folder)


class Figures:
    """Runs cases by their numbers.

    Parameters
    ----------
    seed : int
    folder : Path
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self._folder = seed, folder

    def __call__(self, case: int) -> Outcome:
        name = list(TASKS)[case % len(TASKS)]
        kind = f"{name}, {'weighted' if case // len(TASKS) % 2 else 'plain'}"
        try:
            trial = Trial(case, self._seed, self._folder)
            for way in WAYS:
                way(trial)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            return Outcome(case, kind, ascii(" ".join(words.split()))[1:500])
        return Outcome(case, f"{kind}: all figures hold")


class Trial:
    """A random table, and a model that was fitted to it.

    Parameters
    ----------
    case, seed : int
    folder : Path
    """

    def __init__(self, case: int, seed: int, folder: Path) -> None:
        rng = np.random.default_rng([seed, case])
        self.path, self.rng = folder, rng
        self.name = list(TASKS)[case % len(TASKS)]
        rows, members = int(rng.integers(80, 250)), int(rng.integers(2, 5))
        X = rng.normal(size=(rows, int(rng.integers(1, 5))))
        score = X[:, 0] + 0.5 * X[:, -1] ** 2 + rng.exponential(0.7, rows)
        X[rng.random(X.shape) < rng.choice([0.0, 0.1])] = np.nan
        self.X = X
        # rows that are hard to predict have small weights, so that means with and without them differ
        own = np.where(score > np.median(score), 0.1, 2.0) * rng.uniform(0.5, 1.5, rows)
        self.weight = own if case // len(TASKS) % 2 else None
        model, self.y = TASKS[self.name](rng, score)
        place = rng.permutation(rows) % members
        self.splits = [(np.flatnonzero(place != m), np.flatnonzero(place == m)) for m in range(members)]
        chosen = rng.choice(len(BASES), int(rng.integers(1, 4)), replace=False)
        basis = BASES[chosen[0]] if len(chosen) == 1 else [BASES[j] for j in chosen]
        model.set_params(basis=basis, cv=self.splits, max_iter=int(rng.integers(1, 7)), random_state=case)
        self.model = model.fit(X, self.y, sample_weight=self.weight)

    @property
    def held_out_scores(self) -> torch.Tensor:
        """The raw scores of each row by the member that did not train on it."""
        encoded = self.model.encode_rows(self.X)
        scores = torch.zeros(len(self.X), len(self.model.offset_), dtype=torch.float64)
        for m, (_, rows) in enumerate(self.splits):
            scores[rows] = self.model.ensemble_.of_member(m)(encoded)[rows]
        return scores

    @property
    def fitted_weight(self) -> Array:
        """The weights of the loss: sample weights times class weights."""
        weight = np.ones(len(self.X)) if self.weight is None else self.weight
        given = getattr(self.model, "class_weight", None)
        return weight if given is None else weight * np.vectorize(lambda label: given.get(label, 1.0))(self.y)

    def mean_loss(self, scores: torch.Tensor, rows: NDArray[np.intp]) -> float:
        """The mean loss of the fit over some rows."""
        target = torch.from_numpy(np.array(self.model.result_.target.encode(self.y[rows])))
        return float(np.average(self.model.loss_.value(scores[rows], target).numpy(), weights=self.fitted_weight[rows]))


#: A metric that was computed again: a number, or between which numbers it must be.
Found = float | tuple[float, float]


def expected(model: Any, scores: torch.Tensor, y: NDArray[Any], weight: Array | None) -> dict[str, Found]:
    """Metrics by scikit-learn of what the public methods make of raw scores."""
    weigh, predicted = {"sample_weight": weight}, model.predict_from_raw(scores)
    if isinstance(model, gce.GCESurvival):
        earlier = TIED * np.abs(predicted).max() * (1 - 2 * np.argsort(np.argsort(y[:, 1])) / len(y))
        low, high = (concordance_index(y, predicted + sign * earlier, weight) for sign in (-1, 1))
        return {"concordance": (low, high)}
    if isinstance(model, gce.GCERegressor):
        if isinstance(model.loss_, Quantiles):
            each = [mean_pinball_loss(y, p, alpha=a, **weigh) for p, a in zip(predicted.T, LEVELS, strict=True)]
            return {"pinball_loss": float(np.mean(each))}
        return {
            "rmse": root_mean_squared_error(y, predicted, **weigh),
            "mae": mean_absolute_error(y, predicted, **weigh),
        }
    proba = model.probabilities(scores)
    if y.ndim == 2:
        pairs = [np.column_stack([1 - p, p]) for p in proba.T]
        each = [log_loss(own, pair, labels=[0, 1], **weigh) for own, pair in zip(y.T, pairs, strict=True)]
        return {
            "wrong_labels": hamming_loss(y, predicted, **weigh),
            "wrong_rows": zero_one_loss(y, predicted, **weigh),
            "log_loss": float(np.mean(each)),
        }
    ranked = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    own = [y == model.classes_[j] for j in range(proba.shape[1])]
    low, high = (
        float(np.mean([roc_auc_score(own[j], proba[:, j] + sign * TIED * own[j], **weigh) for j in ranked]))
        for sign in (-1, 1)
    )
    return {
        "error": zero_one_loss(y, predicted, **weigh),
        "log_loss": log_loss(y, proba, labels=model.classes_, **weigh),
        "roc_auc": (low, high),
    }


def compare(what: str, shown: Mapping[str, float], found: Mapping[str, Found]) -> None:
    """Raise an error where figures are not those that were computed again."""
    wrong = [
        f"{name} is {shown.get(name)!r}, computed again {value!r}"
        for name, value in found.items()
        if name not in shown or not _agree(shown[name], value)
    ]
    if wrong or shown.keys() != found.keys():
        raise AssertionError(f"{what}: {'; '.join(wrong) or f'{sorted(shown)} instead of {sorted(found)}'}")


def _agree(shown: float, found: Found) -> bool:
    low, high = found if isinstance(found, tuple) else (found, found)
    close = CLOSE * max(1.0, abs(low))
    return low - close <= shown <= high + close


# What is shown.


def of_held_out_rows(trial: Trial) -> None:
    found = expected(trial.model, trial.held_out_scores, trial.y, trial.weight)
    compare("held out", dict(trial.model.result_.held_out), found)


def of_the_history(trial: Trial) -> None:
    result, last = trial.model.result_, trial.model.history_[-1]
    rounds = len(trial.model.history_) - (len(result.families) > 1)
    compare("rounds", {"n_iter_": trial.model.n_iter_}, {"n_iter_": rounds})
    scores = trial.held_out_scores
    each = [trial.mean_loss(scores, rows) for _, rows in trial.splits]
    compare("history", {"best": result.best_validation}, {"best": float(np.mean(each))})
    if len(result.families) > 1:
        compare("last entry", {"validation": last["validation"]}, {"validation": float(np.mean(each))})


def of_the_file(trial: Trial) -> None:
    path = trial.path / "m.safetensors"
    trial.model.save(path)
    found = json.loads(call("inspect", path, "--json"))
    result, history = trial.model.result_, trial.model.history_
    compare("inspect", found["held_out"], dict(result.held_out))
    own = found["history"]
    shown = {"rounds": own["rounds"], "first": own["risk"]["first"], "last": own["risk"]["last"]}
    shown |= {"best": own["validation"]["best"], "atoms": found["atoms"]}
    again = {"rounds": trial.model.n_iter_, "first": history[0]["risk"], "last": history[-1]["risk"]}
    compare("inspect", shown, again | {"best": result.best_validation, "atoms": len(trial.model.ensemble_)})


def of_a_page(trial: Trial) -> None:
    # a row of weight 2 is two rows
    count = trial.rng.integers(0, 3, len(trial.X)) + (np.arange(len(trial.X)) < 60)
    rows = np.repeat(np.arange(len(trial.X)), count)
    model, X, y = trial.model, trial.X, trial.y
    weighted, repeated = headline(trial, X, y, count), headline(trial, X[rows], y[rows], None)
    compare("weighted and repeated rows", weighted, repeated)
    found = expected(model, model.raw_predict(X[rows]), y[rows], None)
    names = {TITLES[name]: value for name, value in found.items()}
    compare("page", {name: weighted[name] for name in names}, names)


def headline(trial: Trial, X: Array, y: NDArray[Any], weight: NDArray[Any] | None) -> dict[str, float]:
    """The headline of a report."""
    path = trial.path / "r.html"
    trial.model.report(path, X, y, weight)
    text = path.read_text("utf-8")
    tiles = re.findall(r'<dt>(.*?)</dt><dd class="value" data-value="([^"]+)', text)
    return {name: float(value) for name, value in tiles}


def of_an_explanation(trial: Trial) -> None:
    weigh = {} if trial.weight is None else {"sample_weight": trial.weight}
    found = trial.model.explain(trial.X, trial.y, **weigh)
    every = np.arange(len(trial.X))
    compare("explain", {"loss": found.loss}, {"loss": trial.mean_loss(trial.held_out_scores, every)})
    families = dict(
        zip((f.name for f in trial.model.result_.families), trial.model.result_.family_weights, strict=True)
    )
    shown = dict(zip(found.names, map(float, found.weights), strict=True))
    compare("explain", {name: shown[name] for name in families}, families)


def of_the_command_line(trial: Trial) -> None:
    options = OPTIONS.get(trial.name)
    if options is None:
        return
    columns = {f"x{j}": trial.X[:, j] for j in range(trial.X.shape[1])}
    frame = pl.DataFrame(columns | {"y": trial.y, "w": np.ones(len(trial.X)) if trial.weight is None else trial.weight})
    train, out = trial.path / "t.parquet", trial.path / "c.safetensors"
    frame.write_parquet(train)
    words = ["-t", "y", "--weights", "w", "--cv", "2", "--set", "max_iter=3", "--set", "basis=tree", *options, "--json"]
    shown = json.loads(call("fit", train, *words, "--out", out))["metrics"]
    model = gce.load(out)
    compare("fit", {name: shown[name] for name in model.result_.held_out}, dict(model.result_.held_out))
    shown = json.loads(call("fit", train, *words, "--test", train))["metrics"]
    found = expected(model, model.raw_predict(frame.select(*columns)), trial.y, frame["w"].to_numpy())
    compare("fit --test", {name: shown[name] for name in found}, found)


def call(*words: Any) -> str:
    """What a command writes to standard output."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exit_code:
        raise AssertionError(f"gce {words[0]} ended with {done.exit_code}: {done.output[:300]} {done.exception!r}")
    return done.stdout


WAYS: list[Callable[[Trial], None]] = [
    of_held_out_rows,
    of_the_history,
    of_the_file,
    of_a_page,
    of_an_explanation,
    of_the_command_line,
]


# Tasks: from random numbers and a score to a model and targets.

Maker = Callable[[np.random.Generator, Array], tuple[Any, NDArray[Any]]]


def classes(score: Array, count: int) -> NDArray[np.intp]:
    """Classes in the order of a score, all frequent enough for any fold."""
    return np.digitize(score, np.quantile(score, np.arange(1, count) / count))


TASKS: dict[str, Maker] = {
    "numbers": lambda rng, score: (gce.GCERegressor(), score),
    "absolute error": lambda rng, score: (gce.GCERegressor(loss="absolute_error"), 100 * score),
    "targets": lambda rng, score: (gce.GCERegressor(), np.column_stack([score, rng.normal(size=len(score))])),
    "counts": lambda rng, score: (gce.GCERegressor(loss="poisson"), rng.poisson(np.exp(score / 3)).astype(float)),
    "quantiles": lambda rng, score: (gce.GCERegressor(loss=Quantiles(LEVELS)), score),
    "two classes": lambda rng, score: (gce.GCEClassifier(), classes(score, 2)),
    "rare class": lambda rng, score: (gce.GCEClassifier(class_weight={1: 10}), classes(score, 2)),
    "several classes": lambda rng, score: (gce.GCEClassifier(), classes(score, int(rng.integers(3, 6)))),
    "ordinal": lambda rng, score: (gce.GCEClassifier(loss="ordinal"), classes(score, 4)),
    "labels": lambda rng, score: (gce.GCEClassifier(), np.column_stack([score > 1, rng.random(len(score)) > 0.6]) * 1),
    "survival": lambda rng, score: (
        gce.GCESurvival(),
        np.column_stack([rng.random(len(score)) < 0.7, np.exp(-score) * rng.exponential(size=len(score)) + 0.01]),
    ),
}
#: What the command line is told of tasks that it knows.
OPTIONS = {
    "numbers": (),
    "absolute error": ("--set", "loss=absolute_error"),
    "counts": ("--set", "loss=poisson"),
    "two classes": (),
    "rare class": ("--set", "class_weight={1: 10}"),
    "several classes": (),
    "ordinal": ("--set", "loss=ordinal"),
}
