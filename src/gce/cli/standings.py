"""Who came where: entries as a table on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import ROUNDED
from rich.table import Table

from gce.cli import figures
from gce.cli.contest import Entry
from gce.cli.tasks import Task


@dataclass(frozen=True)
class Standings:
    """The entries of a contest, in the order they were made.

    Parameters
    ----------
    task : Task
    entries : sequence of Entry
    """

    task: Task
    entries: Sequence[Entry]

    @property
    def shown(self) -> tuple[figures.Figure, ...]:
        """The figures, the first one first."""
        return figures.known(self.task)

    def is_best(self, entry: Entry, key: str) -> bool:
        """Whether nobody's figure is less."""
        return entry.figures[key] <= min(other.figures[key] for other in self.entries if other.figures)

    def table(self) -> Table:
        """For a terminal."""
        table = Table(box=ROUNDED)
        for head in self._heads():
            table.add_column(head, justify="left" if head == "model" else "right")
        for entry in self.entries:
            table.add_row(*(f"[bold]{text}[/bold]" if best else text for text, best in self._cells(entry)))
        return table

    def markdown(self) -> str:
        """For a file."""
        heads = self._heads()
        lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
        for entry in self.entries:
            lines.append("| " + " | ".join(f"**{text}**" if best else text for text, best in self._cells(entry)) + " |")
        return "\n".join([*lines, *(f"\n{line}" for line in self.failures())])

    def failures(self) -> list[str]:
        """Who failed, and why."""
        return [f"{entry.model} failed: {entry.failed}" for entry in self.entries if entry.failed is not None]

    def _heads(self) -> list[str]:
        return ["model", *(figure.title for figure in self.shown), "fit s", "predict s"]

    def _cells(self, entry: Entry) -> list[tuple[str, bool]]:
        """What is written, and whether it is the best of its column."""
        if entry.failed is not None:
            return [(entry.model, False), *(("failed", False) for _ in self.shown), ("", False), ("", False)]
        found = [(figure(entry.figures[figure.key]), self.is_best(entry, figure.key)) for figure in self.shown]
        seconds = [(f"{spent:.2f}", False) for spent in (entry.fit_seconds, entry.predict_seconds)]
        return [(entry.model, False), *found, *seconds]
