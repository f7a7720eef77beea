"""From ledgers to the cells of Table 1: which fit a search chose, how good it was and what it cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import rankdata

from paper.ledger import Ledger, Record

Place = tuple[str, str | int, str]


@dataclass(frozen=True)
class Cell:
    """One method on one split of one data set.

    Parameters
    ----------
    test : float or None
        Test error of the fit with the least validation error, the first of equals.
    validation : float or None
    settings : dict
        What was chosen.
    trials, fits, wanted : int
        Settings that were tried, those that needed a fit, and how many the search was to try.
    seconds : float
        Of all fits together.
    metric : str
    machines : tuple of str
    more : dict
        What the method says of the chosen fit: atoms, trees, rounds.
    """

    test: float | None
    validation: float | None
    settings: Record
    trials: int
    fits: int
    wanted: int
    seconds: float
    metric: str
    machines: tuple[str, ...]
    more: Record

    @property
    def finished(self) -> bool:
        return self.trials >= self.wanted

    def as_record(self) -> Record:
        return asdict(self)


def gather(folder: Path) -> dict[Place, Cell]:
    """All cells that the ledgers in a folder know of, by data set, split and method."""
    found: dict[Place, list[tuple[Record, Record]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.stem != "machines":
            for key, result in Ledger(path).items():
                found.setdefault((key["set"], key["split"], key["method"]), []).append((key, result))
    return {place: _searched(entries) or _grid(entries) for place, entries in found.items()}


_COMMON = {
    "test", "validation", "seconds", "fit_seconds", "settings", "trials", "fits", "validations", "of", "metric",
    "machine", "stages",
}  # fmt: skip


def _more(result: Record) -> Record:
    return {name: value for name, value in result.items() if name not in _COMMON}


def _searched(entries: Sequence[tuple[Record, Record]]) -> Cell | None:
    """The cell of a staged search; of several the longest."""
    results = [result for key, result in entries if "budget" in key]
    if not results:
        return None
    best = max(results, key=lambda result: result["trials"])
    return Cell(
        best["test"],
        best["validation"],
        best["settings"],
        best["trials"],
        best["fits"],
        best["trials"],
        best["seconds"],
        best["metric"],
        (best["machine"],),
        _more(best),
    )


def _grid(entries: Sequence[tuple[Record, Record]]) -> Cell:
    """The cell of a grid, each setting an entry; settings whose model gave no numbers are chosen last."""

    def validation(entry: tuple[Record, Record]) -> float:
        value = entry[1]["validation"]
        return math.inf if value is None else value

    key, best = min(entries, key=validation)
    results = [result for _, result in entries]
    return Cell(
        best["test"],
        best["validation"],
        key["settings"],
        len(entries),
        len(entries),
        max(result["of"] for result in results),
        sum(result["seconds"] for result in results),
        best["metric"],
        tuple(sorted({result["machine"] for result in results})),
        _more(best),
    )


def repeated(cells: Mapping[Place, Cell], name: str, method: str) -> dict[int, Cell]:
    """Finished cells of a method on the random splits of a set."""
    return {
        split: cell
        for (data, split, column), cell in cells.items()
        if data == name and column == method and isinstance(split, int) and cell.finished and cell.test is not None
    }


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error (None of a single value)."""
    if len(values) < 2:
        return statistics.fmean(values), None
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def ranks_by_split(cells: Mapping[Place, Cell], name: str, methods: Sequence[str]) -> list[list[float]]:
    """Each method's rank among ``methods`` on every split on which all are finished; equal errors share their mean."""
    by_method = [repeated(cells, name, method) for method in methods]
    splits = sorted(set.intersection(*(set(own) for own in by_method))) if by_method else []
    return [rankdata([own[split].test for own in by_method]).tolist() for split in splits]


def ranks(cells: Mapping[Place, Cell], name: str, methods: Sequence[str]) -> tuple[list[float], int] | None:
    """Ranks averaged over a set's splits, and their number; None where there is no split."""
    each = ranks_by_split(cells, name, methods)
    if not each:
        return None
    return [float(statistics.fmean(column)) for column in zip(*each, strict=True)], len(each)


def rank_difference(
    cells: Mapping[Place, Cell], names: Sequence[str], methods: Sequence[str], other: str
) -> tuple[float, float]:
    """The first method's mean rank less another's, over splits and then sets, and its standard error."""
    place = methods.index(other)
    each = [[row[0] - row[place] for row in ranks_by_split(cells, name, methods)] for name in names]
    summaries = [mean_and_error(values) for values in each if values]
    errors = [error or 0.0 for _, error in summaries]
    return statistics.fmean(mean for mean, _ in summaries), math.hypot(*errors) / len(summaries)


def summary(cells: Mapping[Place, Cell]) -> list[Record]:
    """All cells as plain records, in the order of their places."""
    order = sorted(cells, key=lambda place: (place[0], str(place[1]).zfill(4), place[2]))
    return [_record(place, cells[place]) for place in order]


def _record(place: Place, cell: Cell) -> dict[str, Any]:
    data, split, method = place
    return {"set": data, "split": split, "method": method, **cell.as_record()}
