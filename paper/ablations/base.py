"""What ablations have in common: fits that several of them may share, and results gathered over splits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper.ledger import Ledger, Record

#: Sets of which every split is run, and larger ones of which one is.
MANY = ("diabetes", "boston", "iris", "wine", "breast_cancer")
LARGER = ("digits", "ca_housing")


@dataclass(frozen=True)
class Scope:
    """What is run on.

    Parameters
    ----------
    seeds : int
        Random splits of each set in ``many``; of each in ``larger`` there is one.
    many, larger : sequence of str
        Names of data sets.
    load : callable
        As :func:`gce.datasets.load`.
    results : Path
        Where other experiments leave theirs.
    """

    seeds: int
    many: Sequence[str]
    larger: Sequence[str]
    load: Callable[..., Any]
    results: Path

    def places(self, without: Iterable[str] = ()) -> list[Record]:
        """Sets and splits, the sets of the caller's choice left out."""
        sets = [(name, self.seeds) for name in self.many] + [(name, 1) for name in self.larger]
        left_out = set(without)
        return [{"set": name, "split": split} for name, n in sets for split in range(n) if name not in left_out]


class Ablation(ABC):
    """A question, the fits that answer it, and the answer as a section of the page."""

    name: str
    title: str
    claim: str

    @abstractmethod
    def fits(self, scope: Scope) -> list[Record]:
        """Keys of the fits it needs: ``set``, ``split``, ``model`` and the model's ``settings``."""

    @abstractmethod
    def section(self, found: Found, scope: Scope) -> str:
        """Tables, and sentences that are computed from them."""


class Found:
    """Results of the ledger, by set and model.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def by_split(self, scope: Scope, name: str, model: str, settings: Record) -> dict[int, Record]:
        """A model's results on the splits of a set that are done."""
        splits = [place["split"] for place in scope.places() if place["set"] == name]
        keys = {split: key_of({"set": name, "split": split}, model, settings) for split in splits}
        return {split: self._ledger[key] for split, key in keys.items() if key in self._ledger}

    def values(self, scope: Scope, name: str, model: str, settings: Record, what: str) -> list[float]:
        """One number of each split that is done; a dot leads into a dict: ``"free.train_loss"``."""
        return [dig(result, what) for result in self.by_split(scope, name, model, settings).values()]


def dig(result: Record, what: str) -> Any:
    """A value inside dicts, by a path of names with dots between."""
    for part in what.split("."):
        result = result[part]
    return result


def key_of(place: Record, model: str, settings: Record) -> Record:
    """The ledger's key of a fit."""
    return {**place, "model": model, "settings": settings}


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    return ", ".join(names) if names else "none"
