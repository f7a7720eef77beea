"""Models fitted and scored on the same rows, with their times, and the results as a table."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.box import ROUNDED
from rich.table import Table

from gce.cli import figures
from gce.cli.failures import sentence
from gce.cli.peers import Peer, encode
from gce.cli.rows import Rows
from gce.cli.tasks import Task, new_model, values
from gce.training import metrics


@dataclass(frozen=True)
class Result:
    """A model's metrics and seconds, or why it failed."""

    model: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    failed: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, the metrics among them."""
        seconds = {"fit_seconds": self.fit_seconds, "predict_seconds": self.predict_seconds}
        return {"model": self.model, "failed": self.failed, **self.metrics, **seconds}


@dataclass(frozen=True)
class Comparison:
    """The rows of a comparison.

    Parameters
    ----------
    task : Task
    train, test : Rows
    categorical : sequence of str
        Columns of numbers that are categories.
    seed : int
    """

    task: Task
    train: Rows
    test: Rows
    categorical: Sequence[str]
    seed: int

    def fit_gce(self, **options: Any) -> Result:
        """Fit and score GCE; errors are raised, since they concern the data."""
        model = new_model(self.task, self.categorical).set_params(random_state=self.seed, **options)
        return self._score("GCE", model, self.train.X, self.test.X, values(self.train.y, self.task))

    def fit_peer(self, peer: Peer) -> Result:
        """Fit and score a peer; an error becomes its result."""
        try:
            data = encode(self.train.X, self.test.X, self.categorical)
            y = values(self.train.y, self.task)
            if self.task is Task.classification:
                y = np.unique(y, return_inverse=True)[1]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = peer.make(self.task, data, self.seed)
                return self._score(peer.name, model, data.X, data.X_test, y, **peer.fit_params(data))
        except Exception as error:
            return Result(peer.name, failed=sentence(error))

    def _score(self, name: str, model: Any, X: Any, X_test: Any, y: Any, **fit_params: Any) -> Result:
        start = time.perf_counter()
        model.fit(X, y, **fit_params)
        fitted = time.perf_counter()
        predicted = model.predict_proba(X_test) if self.task is Task.classification else model.predict(X_test)
        seconds = (fitted - start, time.perf_counter() - fitted)
        y_test = values(self.test.y, self.task)
        if self.task is Task.classification:
            classes = np.unique(values(self.train.y, self.task))
            found = metrics.of_classes(y_test, classes[predicted.argmax(1)], predicted, classes)
            return Result(name, found, *seconds)
        return Result(name, metrics.of_numbers(y_test, predicted), *seconds)

    @property
    def note(self) -> str | None:
        """One sentence about a figure that the test rows do not define."""
        if self.task is Task.regression:
            return None
        return figures.note_of_classes(values(self.test.y, self.task), np.unique(values(self.train.y, self.task)))


def notes(note: str | None, results: Sequence[Result]) -> list[str]:
    """One sentence about a figure that is not defined, if there is one, and one for each model that failed."""
    failed = [f"{result.model} failed: {result.failed}" for result in results if result.failed is not None]
    return failed if note is None else [note, *failed]


def cells(task: Task, results: Sequence[Result], bold: str) -> list[list[str]]:
    """Results as a table, its head first, the best of each metric within ``bold``, such as ``"**{}**"``."""
    columns = figures.known(task)
    fitted = [r for r in results if r.failed is None]
    best = {m.key: min(m.sign * r.metrics[m.key] for r in fitted) for m in columns}
    lines = [["model", *(m.title for m in columns), "fit s", "predict s"]]
    for r in results:
        if r.failed is not None:
            lines.append([r.model, *("failed" for _ in columns), "", ""])
            continue
        shown = [(m(r.metrics[m.key]), m.sign * r.metrics[m.key] <= best[m.key]) for m in columns]
        texts = [bold.format(text) if is_best else text for text, is_best in shown]
        lines.append([r.model, *texts, f"{r.fit_seconds:.2f}", f"{r.predict_seconds:.2f}"])
    return lines


def terminal_table(task: Task, results: Sequence[Result]) -> Table:
    """Results as a table of rich."""
    head, *body = cells(task, results, "[bold]{}[/bold]")
    table = Table(box=ROUNDED)
    for title in head:
        table.add_column(title, justify="left" if title == "model" else "right")
    for line in body:
        table.add_row(*line)
    return table


def markdown_table(task: Task, results: Sequence[Result], note: str | None) -> str:
    """Results as Markdown, followed by the notes."""
    head, *body = cells(task, results, "**{}**")
    rule = ["---", *("---:" for _ in head[1:])]
    lines = ["| " + " | ".join(line) + " |" for line in (head, rule, *body)]
    return "\n".join([*lines, *(f"\n{line}" for line in notes(note, results))])
