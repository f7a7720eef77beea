"""Training and test losses of GCE, NN and NGCE: who underfits, who overfits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.ablations.base import LARGER, Ablation, Found, Scope, key_of, listed
from paper.ledger import Record
from paper.rounded import markdown, spread

RATES = (0.01, 0.001)
#: GCE's two settings need no choice; of the others the one with the least validation loss is taken, split by split.
FIELDS: dict[str, tuple[str, list[Record]]] = {
    "GCE, paper's": ("gce_paper", [{"hidden": 10}]),
    "GCE, defaults": ("gce", [{}]),
    "NN, no decay": ("nn", [{"learning_rate": rate, "weight_decay": 0.0} for rate in RATES]),
    "NN, decay": ("nn", [{"learning_rate": rate, "weight_decay": 1e-3} for rate in RATES]),
    "NGCE": ("ngce", [{"learning_rate": rate, "coefficients": "absolute"} for rate in RATES]),
}
#: A loss so many times GCE's counts as much larger, its inverse as much smaller; within ``ALIKE`` of 1 it is alike.
MUCH, ALIKE = 1.5, 1.2


def chosen(found: Found, scope: Scope, name: str, field: str) -> list[Record]:
    """Of each split on which all settings are done, the result with the least validation loss."""
    model, settings = FIELDS[field]
    each = [found.by_split(scope, name, model, own) for own in settings]
    splits = sorted(set.intersection(*(set(own) for own in each)))
    return [min((own[split] for own in each), key=lambda result: result["val_loss"]) for split in splits]


class Losses(Ablation):
    """Who underfits, who overfits."""

    name, title = "losses", "Training and test losses of GCE, NN and NGCE"
    claim = "NGCE and NN underfit diabetes, overfit boston, and NN iris."

    def fits(self, scope: Scope) -> list[Record]:
        plan = [(model, own) for model, settings in FIELDS.values() for own in settings]
        return [key_of(place, model, own) for place in scope.places(without=LARGER) for model, own in plan]

    def section(self, found: Found, scope: Scope) -> str:
        rows, sentences = [], []
        for name in scope.many:
            results = {field: chosen(found, scope, name, field) for field in FIELDS}
            if not all(results.values()):
                continue
            rows += [_row(name, field, own) for field, own in results.items()]
            sentences += [f"- {name}: {verdicts(results)}."]
        if not rows:
            return "Not run."
        head = ["set", "model", "training loss", "test loss", "training error", "test error"]
        return "\n\n".join([_INTRODUCTION, markdown(head, rows), "\n".join(sentences), *_tally(found, scope)])


_INTRODUCTION = """\
Losses are MSE or cross-entropy, errors MAE or % of wrong classes, mean ± sd over splits. All train on the training
rows; validation loss chooses the round or epoch, and for NN and NGCE the rate (0.01, 0.001). NN has 1,000 units, with
weight decay 0 or 0.001; NGCE 100 modules of 10 units without decay, as the paper has it. Both are trained for at most
300 epochs."""


def _row(name: str, field: str, results: Sequence[Record]) -> list[str]:
    parts = ("train_loss", "test_loss", "train_error", "test_error")
    return [name, field, *(spread(result[part] for result in results) for part in parts)]


def verdicts(results: dict[str, list[Record]]) -> str:
    """The others held against GCE at its defaults, by their mean losses."""
    mean = {
        field: {part: float(np.mean([result[part] for result in own])) for part in ("train_loss", "test_loss")}
        for field, own in results.items()
    }
    base = mean["GCE, defaults"]
    words = []
    for field, own in mean.items():
        if field != "GCE, defaults":
            train, test = (own[part] / max(base[part], 1e-12) for part in ("train_loss", "test_loss"))
            words.append(f"{field} {word_for(train, test)} (training x{train:.2g}, test x{test:.2g})")
    return "beside GCE at its defaults " + ", ".join(words)


def word_for(train: float, test: float) -> str:
    """The paper's reading of two losses, each as a multiple of GCE's."""
    if train > MUCH and test > ALIKE:
        return "underfits"
    if train < 1 / MUCH and test > 1 / ALIKE:
        return "overfits"
    return "is alike" if 1 / ALIKE <= test <= ALIKE else "is better" if test < 1 else "is worse"


def _tally(found: Found, scope: Scope) -> list[str]:
    """On how many sets each model has the least mean test loss."""
    best: dict[str, list[str]] = {}
    for name in scope.many:
        results = {field: chosen(found, scope, name, field) for field in FIELDS}
        if all(results.values()):
            least = min(FIELDS, key=lambda field: float(np.mean([r["test_loss"] for r in results[field]])))
            best.setdefault(least, []).append(name)
    words = "; ".join(f"{field}: {listed(names)}" for field, names in best.items())
    reading = (
        f'"Underfits" is a training loss above {MUCH} times and a test loss above {ALIKE} times that of GCE; '
        f'"overfits" a training loss below 1/{MUCH} and a test loss no better than 1/{ALIKE} of it.'
    )
    return [f"Least mean test loss: {words}.", reading]
