"""Processes and threads: fits and predictions beside each other are those of one alone, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import gce
from campaign.growth import growth, too_much
from campaign.limited import fault_of
from campaign.outcomes import Outcome
from campaign.process_models import MODELS, Asked
from campaign.process_ways import COPIES, STARTS, Way

PROMISE = (
    "fits and predictions in forked, spawned and pooled processes and in threads have the bits of one process alone, "
    "in bounded time; 500 fits and 10,000 predictions in one process take no more memory, threads or open files"
)
#: Models that interpreters are started for, which takes seconds.
_STARTED = ("default classifier", "networks", "mixed", "stack")
_TRIED: list[tuple[Way, str]] = [(way, name) for name in MODELS for way in COPIES]
_TRIED += [(way, name) for name in _STARTED for way in STARTS]
_TRIED += [(way, "shards") for way in STARTS[:-1]]
#: Case 0 is the one about growth.
FULL = 1 + len(_TRIED)
#: Seconds of a case and of the long one: some twenty times what they take on one core.
SECONDS, LONG = 120.0, 1800.0
FITS, PREDICTIONS = 500, 10_000


class DifferentError(Exception):
    """An answer is not that of one process alone."""


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Try one way with one model in each case."""
    # files of models and rows are written by processes of the cases: this one computes nothing, so that it can fork
    processes = Processes(seed, folder)
    for case in cases:
        yield processes.long(case) if case == 0 else processes.outcome(case, *_TRIED[case - 1])


class Processes:
    """Runs cases in processes of their own.

    Parameters
    ----------
    seed : int
    folder : Path
    seconds : float, default=SECONDS
        The time limit of a case.
    """

    def __init__(self, seed: int, folder: Path, seconds: float = SECONDS) -> None:
        self._seed, self._folder, self._seconds = seed, folder, seconds
        self._alone: dict[str, str] = {}

    def asked(self, name: str, n_jobs: int | None = 1) -> Asked:
        return Asked(name, self._seed, self._folder, n_jobs)

    def alone(self, name: str) -> str:
        """The answer of one process with one thread."""
        if name not in self._alone:
            said = self._folder / "answer"

            def work() -> None:
                said.write_text(self.asked(name).alone())

            fault = fault_of(work, self._folder / "said", self._seconds)
            if fault is not None:
                raise DifferentError(f"{name} alone: {fault}")
            self._alone[name] = said.read_text()
        return self._alone[name]

    def outcome(self, case: int, way: Way, name: str) -> Outcome:
        """The outcome of a way with a model."""
        kind = way.__name__.replace("_", " ")
        try:
            self.check(way, self.asked(name, (None, 1, 2)[case % 3]))
        except DifferentError as error:
            return Outcome(case, kind, str(error))
        return Outcome(case, f"{kind}: {name}, same bits")

    def check(self, way: Way, asked: Asked) -> None:
        """Raise DifferentError where answers differ from those alone, or do not come in time."""
        self.alone(asked.name)
        found = self._folder / "answers"
        fault = fault_of(lambda: found.write_text("\n".join(way(asked))), self._folder / "said", self._seconds)
        if fault is not None:
            raise DifferentError(f"{asked.name}, n_jobs={asked.n_jobs}: {fault}")
        for answer in found.read_text().splitlines():
            name = answer.partition(":")[0]
            if name not in MODELS or answer != self.alone(name):
                raise DifferentError(f"{asked.name}, n_jobs={asked.n_jobs}: {answer} where one alone has another")

    def long(self, case: int, fits: int = FITS, predictions: int = PREDICTIONS) -> Outcome:
        """The outcome of many fits and predictions in one process."""
        for name in MODELS:
            self.alone(name)
        kind, said = f"{fits:,} fits and {predictions:,} predictions in one process", self._folder / "growth"

        def work() -> None:
            said.write_text(too_much(growth(self._fit_and_predict(predictions // fits), fits, fits // 5)) or "")

        fault = fault_of(work, self._folder / "said", LONG) or said.read_text() or None
        return Outcome(case, kind if fault else f"{kind}: no growth", fault)

    def _fit_and_predict(self, predictions: int) -> FitAndPredict:
        return FitAndPredict([self.asked(name, 2) for name in MODELS], self._alone, predictions)


class FitAndPredict:
    """One model after another is fitted or loaded, and predicts some times.

    Parameters
    ----------
    models : list of Asked
    alone : dict of str to str
        Their answers.
    predictions : int
        How many of each fit.
    """

    def __init__(self, models: list[Asked], alone: dict[str, str], predictions: int) -> None:
        self._models, self._alone, self._predictions = models, alone, predictions

    def __call__(self, time: int) -> None:
        asked = self._models[time % len(self._models)]
        fitted = asked.fit()
        loaded = gce.load(asked.path) if asked.path.exists() else fitted
        for i in range(self._predictions):
            if asked.predicted(loaded if i % 2 else fitted) != self._alone[asked.name]:
                raise DifferentError(f"fit {time}, {asked.name}: a prediction differs from the first one's")
