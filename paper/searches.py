"""Searches over settings that go on where they were killed: fixed grids, and stages of sampled trials.

A grid's fits are lines of the ledger. A staged search keeps its trials in an Optuna study of its own, an SQLite file;
when it is over, its outcome is one line of the ledger. What a trial tries depends on the seed, the trial's number and
the stages before it, on nothing else: a search that was killed continues as if it had not been.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.ledger import Ledger, Record

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

Settings = dict[str, Any]
Rng = np.random.Generator


class StoppedError(Exception):
    """No new fit may start: the time is up, or the process that asked for it is gone."""


@dataclass(frozen=True)
class Job:
    """What a search needs to know of its surroundings.

    Parameters
    ----------
    key : dict
        Data set, split, method and seed: the beginning of every key in the ledger.
    fit : callable
        From settings to a record with ``validation``, ``test`` and ``seconds``.
    ledger : Ledger
    scratch : Path
        Where a study may put its file.
    check : callable
        Called before every fit; raises :class:`StoppedError`.
    seed : int
    """

    key: Record
    fit: Callable[[Settings], Record]
    ledger: Ledger
    scratch: Path
    check: Callable[[], None]
    seed: int

    def checked_fit(self, settings: Settings) -> Record:
        self.check()
        return self.fit(settings)


class Search(ABC):
    """Which settings are tried, and in what order."""

    @abstractmethod
    def run(self, job: Job) -> None:
        """Bring the search to its end, all results in the ledger."""


@dataclass(frozen=True)
class Grid(Search):
    """All of a few settings, or ``count`` of them drawn without replacement."""

    settings: Sequence[Settings]
    count: int

    def run(self, job: Job) -> None:
        chosen = _some(self.settings, self.count, np.random.default_rng(job.seed))
        for settings in chosen:
            # the count is not in the key: a grid that is widened later repeats nothing
            job.ledger.once({**job.key, "settings": settings}, partial(self._fit, job, settings, len(chosen)))

    def _fit(self, job: Job, settings: Settings, count: int) -> Record:
        return {**job.checked_fit(settings), "of": count}


class Stage(ABC):
    """A part of a search: so many trials, proposed once the stages before it have a best one."""

    name: str
    trials: int

    @abstractmethod
    def propose(self, best: Settings, seed: int, first: int) -> list[Settings]:
        """The stage's settings, given the best so far and the number of the stage's first trial."""


@dataclass(frozen=True)
class RandomStage(Stage):
    """Independent draws."""

    name: str
    trials: int
    draw: Callable[[Settings, Rng], Settings]

    def propose(self, best: Settings, seed: int, first: int) -> list[Settings]:
        numbers = range(first, first + self.trials)
        return [{**best, **self.draw(best, np.random.default_rng((seed, number)))} for number in numbers]


@dataclass(frozen=True)
class GridStage(Stage):
    """A grid that may depend on the best so far; of it ``trials`` points, drawn without replacement."""

    name: str
    trials: int
    grid: Callable[[Settings], Sequence[Settings]]

    def propose(self, best: Settings, seed: int, first: int) -> list[Settings]:
        points = [{**best, **point} for point in self.grid(best)]
        return _some(points, self.trials, np.random.default_rng((seed, first)))


def _some(points: Sequence[Settings], count: int, rng: Rng) -> list[Settings]:
    chosen = sorted(rng.choice(len(points), min(count, len(points)), replace=False))
    return [points[i] for i in chosen]


@dataclass(frozen=True)
class Staged(Search):
    """Stages one after the other, each starting from the best trial so far (the first of equals).

    Parameters
    ----------
    start : dict
        Settings before the first stage.
    stages : sequence of Stage
    space : callable
        From nothing to ``{name: Optuna distribution}``; a function, so that Optuna is imported where a search is run.
    budget : str
        The budget in words, part of the key.
    """

    start: Settings
    stages: Sequence[Stage]
    space: Callable[[], Mapping[str, BaseDistribution]]
    budget: str

    def run(self, job: Job) -> None:
        job.ledger.once({**job.key, "budget": self.budget}, lambda: self._outcome(job))

    def _outcome(self, job: Job) -> Record:
        # results of another folder are another study: a fresh folder starts afresh
        place = hashlib.sha256(str(job.ledger.path.resolve()).encode()).hexdigest()[:8]
        name = f"{job.key['set']}-{job.key['split']}-{job.key['method']}-{self.budget}-{job.seed}-{place}"
        name = re.sub(r"[^\w.-]+", "_", name)
        done = _Trials(job.scratch / f"{name}.db", name, self.space())
        best, number = self.start, 0
        for stage in self.stages:
            for settings in stage.propose(best, job.seed, number):
                done.once(number, settings, stage.name, job.checked_fit)
                number += 1
            best = done.best(number)["settings"]
        return done.summary()


class _Trials:
    """The trials of a study, by number. A trial is written when it is over, in one transaction: none is half there."""

    def __init__(self, path: Path, name: str, space: Mapping[str, BaseDistribution]) -> None:
        self._path = path
        self._study = _open_study(path, name)
        self._space = dict(space)
        self._records: list[Record] = [
            {"settings": trial.params, "validation": trial.value, **trial.user_attrs}
            for trial in self._study.get_trials(deepcopy=False)
        ]
        self._by_settings = {_name(record["settings"]): record for record in reversed(self._records)}

    def once(self, number: int, settings: Settings, stage: str, fit: Callable[[Settings], Record]) -> None:
        if number < len(self._records):
            if _name(self._records[number]["settings"]) != _name(settings):
                raise ValueError(
                    f"trial {number} of the study {self._path} has settings {self._records[number]['settings']}, not "
                    f"{settings}: it was begun by another search; move the file away and run again"
                )
            return
        known = self._by_settings.get(_name(settings))
        # the same settings and seed give the same model: a repeated draw counts as a trial but is not fitted again
        result = {**fit(settings), "fitted": 1} if known is None else {**known, "seconds": 0.0, "fitted": 0}
        self._add(settings, {**result, "stage": stage})

    def _add(self, settings: Settings, result: Record) -> None:
        from optuna.trial import create_trial

        more = {name: value for name, value in result.items() if name not in ("validation", "settings")}
        self._study.add_trial(
            create_trial(params=settings, distributions=self._space, value=result["validation"], user_attrs=more)
        )
        self._records.append({"settings": settings, "validation": result["validation"], **more})
        self._by_settings.setdefault(_name(settings), self._records[-1])

    def best(self, count: int) -> Record:
        """The best of the first ``count`` trials: a resumed study also knows those of later stages."""
        return min(self._records[:count], key=lambda record: record["validation"])

    def summary(self) -> Record:
        best = self.best(len(self._records))
        more = {name: value for name, value in best.items() if name not in ("stage", "fitted", "seconds")}
        return {
            **more,
            "fit_seconds": best["seconds"],
            "seconds": sum(record["seconds"] for record in self._records),
            "trials": len(self._records),
            "fits": sum(record["fitted"] for record in self._records),
            "stages": dict(Counter(record["stage"] for record in self._records)),
            "validations": [_rounded(record["validation"]) for record in self._records],
        }


def _open_study(path: Path, name: str) -> Study:
    import optuna
    from sqlalchemy.pool import NullPool

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path.parent.mkdir(parents=True, exist_ok=True)
    # without a pool every connection is closed after its use: a study has no method that closes those of a pool
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}", engine_kwargs={"poolclass": NullPool})
    return optuna.create_study(study_name=name, storage=storage, load_if_exists=True)


def _name(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True)


def _rounded(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}") if math.isfinite(value) else value
