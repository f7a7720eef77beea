"""Training and test losses of GCE, NN and NGCE: who underfits, who overfits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paper.ablations.base import LARGER, Ablation, Found, Scope, key_of, listed
from paper.ablations.coefficients import settings_of
from paper.ledger import Record
from paper.methods.nongreedy import DECAYS
from paper.rounded import markdown, spread

RATES = (0.01, 0.001)


def _network(rate: float, decay: float) -> Record:
    return {"learning_rate": rate, "weight_decay": decay}


def _together(rate: float, decay: float) -> Record:
    # without decay the fits are those that another ablation shares
    return {**settings_of("absolute", rate), **({"weight_decay": decay} if decay else {})}


#: GCE's two settings need no choice; of the others the one with the least validation loss is taken, split by split.
FIELDS: dict[str, tuple[str, list[Record]]] = {
    "GCE, paper's": ("gce_paper", [{"hidden": 10}]),
    "GCE, defaults": ("gce", [{}]),
    "NN, no decay": ("nn", [_network(rate, 0.0) for rate in RATES]),
    "NN, tuned": ("nn", [_network(rate, decay) for rate in RATES for decay in DECAYS]),
    "NGCE, no decay": ("ngce", [_together(rate, 0.0) for rate in RATES]),
    "NGCE, tuned": ("ngce", [_together(rate, decay) for rate in RATES for decay in DECAYS]),
}
#: What the paper says of whom.
SAID = (
    ("diabetes", "NN, tuned", "underfits"),
    ("diabetes", "NGCE, tuned", "underfits"),
    ("boston", "NN, tuned", "overfits"),
    ("boston", "NGCE, tuned", "overfits"),
    ("iris", "NN, tuned", "overfits"),
)
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
        every = {name: {field: chosen(found, scope, name, field) for field in FIELDS} for name in scope.many}
        results = {name: fields for name, fields in every.items() if all(fields.values())}
        if not results:
            return "Not run."
        rows = [_row(name, field, own) for name, fields in results.items() for field, own in fields.items()]
        sentences = [f"- {name}: {verdicts(fields)}." for name, fields in results.items()]
        head = ["set", "model", "training loss", "test loss", "training error", "test error"]
        return "\n\n".join([_INTRODUCTION, markdown(head, rows), "\n".join(sentences), *_tally(results)])


_INTRODUCTION = """\
Losses are MSE or cross-entropy, errors MAE or % of wrong classes, mean ± sd over splits. All train on the training
rows; validation loss chooses the round or epoch, and for NN and NGCE the rate (0.01, 0.001) and, where tuned, the
weight decay (0, 1e-6, ..., 0.1): the paper's 14 combinations. NN has 1,000 units, NGCE 100 modules of 10 units; both
are trained for at most 300 epochs."""


def _row(name: str, field: str, results: Sequence[Record]) -> list[str]:
    parts = ("train_loss", "test_loss", "train_error", "test_error")
    return [name, field, *(spread(result[part] for result in results) for part in parts)]


def ratios(results: dict[str, list[Record]]) -> dict[str, tuple[float, float]]:
    """Mean training and test loss of each model, as multiples of those of GCE at its defaults."""

    def mean(field: str, part: str) -> float:
        return float(np.mean([result[part] for result in results[field]]))

    parts = ("train_loss", "test_loss")
    base = [max(mean("GCE, defaults", part), 1e-12) for part in parts]
    return {
        field: (mean(field, parts[0]) / base[0], mean(field, parts[1]) / base[1])
        for field in results
        if field != "GCE, defaults"
    }


def verdicts(results: dict[str, list[Record]]) -> str:
    """Each model's reading in words."""
    words = [
        f"{field} {word_for(train, test)} (training x{train:.2g}, test x{test:.2g})"
        for field, (train, test) in ratios(results).items()
    ]
    return "beside GCE at its defaults " + ", ".join(words)


def word_for(train: float, test: float) -> str:
    """The paper's reading of two losses, each as a multiple of GCE's."""
    if train > MUCH and test > ALIKE:
        return "underfits"
    if train < 1 / MUCH and test > 1 / ALIKE:
        return "overfits"
    return "is alike" if 1 / ALIKE <= test <= ALIKE else "is better" if test < 1 else "is worse"


def _tally(results: dict[str, dict[str, list[Record]]]) -> list[str]:
    """The paper's words held against ours, and who has the least mean test loss where."""
    held = []
    for name, field, word in SAID:
        if name in results:
            ours = word_for(*ratios(results[name])[field])
            held.append(f"{field} {word} {name}: {'shown' if ours == word else f'not shown (it {ours})'}")
    best: dict[str, list[str]] = {}
    for name, fields in results.items():
        least = min(fields, key=lambda field: float(np.mean([r["test_loss"] for r in fields[field]])))
        best.setdefault(least, []).append(name)
    words = "; ".join(f"{field}: {listed(names)}" for field, names in best.items())
    reading = (
        f'"Underfits" is a training loss above {MUCH} times and a test loss above {ALIKE} times that of GCE at its '
        f'defaults; "overfits" a training loss below 1/{MUCH} and a test loss no better than 1/{ALIKE} of it.'
    )
    return [reading, *([f"The paper's words: {'; '.join(held)}."] if held else []), f"Least mean test loss: {words}."]
