"""The given rows, column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.params import counted
from gce.inspection.report.charts import sparkline
from gce.inspection.report.evaluation import Array, Evaluation
from gce.inspection.report.markup import NOTHING, Markup, Section, card, percent, short, shown, table, tag
from gce.inspection.report.scales import all_one
from gce.preprocessing.dates import as_text

_LISTED, _BINS, _LEVELS = 100, 20, 12


def section(evaluation: Evaluation) -> Section:
    """One line per column: kind, missing values, range or most frequent categories, and a histogram."""
    sheet = evaluation.sheet
    lines = [_line(evaluation, j) for j in range(min(len(sheet.names), _LISTED))]
    head = ["column", "distribution", "missing", "unknown", "range or categories", "kind"]
    # columns without any entry are left out
    kept = [i for i in range(len(head)) if head[i] not in ("missing", "unknown") or any(line[i] for line in lines)]
    head, rows = [head[i] for i in kept], [[line[i] for i in kept] for line in lines]
    body = table(head, rows, caption="Columns of the given rows", class_="words columns tall")
    note = "Ranges are minimum, median, maximum."
    if evaluation.weight is not None:
        note += " Shares, medians and histograms are weighted."
    if len(rows) < len(sheet.names):
        note += f" The first {len(rows)} of {len(sheet.names):,} columns."
    if "unknown" in head:
        note += " Unknown: categories that were rare or absent in the fit and share one code."
    lead = f"The {counted(evaluation.rows, 'row')} of this report, column by column."
    cards = [card("Columns", tag("div", body, data_chart="columns"), note=note, wide=True)]
    return Section("data", "Data", lead, cards)


def _line(evaluation: Evaluation, j: int) -> list[str]:
    """The cells of a column, as in the head."""
    kind, column = evaluation.model.table_.schema.columns[j].kind, evaluation.coded[:, j]
    weight = np.ones(evaluation.rows) if evaluation.weight is None else evaluation.weight
    if kind == "category":
        missing, words, picture = _levels(evaluation.sheet.columns[j], weight)
    elif kind == "date" or kind == "duration":
        missing, words, picture = _numbers(column, weight, partial(as_text, kind))
    else:
        missing, words, picture = _numbers(column, weight, partial(shown, digits=3))
    if kind == "boolean":
        there = ~np.isnan(column)
        share = float(np.average(column[there], weights=weight[there])) if missing < 1 else np.nan
        words = f"true {percent(share)}" if missing < 1 else NOTHING
    lost = evaluation.model.table_.columns[j].warning
    if lost is not None:
        words += f" (in the fit {lost})"
    # the code of rare and unknown categories
    unseen = evaluation.mean(column == -1) if kind == "category" else 0.0
    shares = [percent(share) if share else "" for share in (missing, unseen)]
    return [evaluation.sheet.names[j], picture, *shares, words, kind]


def _numbers(column: Array, weight: Array, written: Callable[[float], str]) -> tuple[float, str, Markup | str]:
    there = ~np.isnan(column)
    present, own = column[there], weight[there]
    if len(present) == 0:
        return 1.0, NOTHING, ""
    missing = float(weight[~there].sum() / weight.sum())
    low, middle, high = float(present.min()), _median(present, own), float(present.max())
    if all_one(low, high):
        return missing, f"constant, {written(low)}", ""
    words = " … ".join(written(v) for v in (low, middle, high))
    counts, _ = np.histogram(present, _BINS, weights=own)
    return missing, words, sparkline(counts, f"histogram from {written(low)} to {written(high)}")


def _median(values: Array, weight: Array) -> float:
    """The median where a row of weight 2 counts as two rows: the mean of the two middle values where these differ."""
    order = np.argsort(values, kind="stable")
    reached, half = np.cumsum(weight[order]), weight.sum() / 2
    first, last = (np.searchsorted(reached, half * (1 + slack)) for slack in (-1e-12, 1e-12))
    return float((values[order[first]] + values[order[last]]) / 2)


def _levels(column: NDArray[Any], weight: Array) -> tuple[float, str, Markup | str]:
    counts: Counter[Any] = Counter()
    for value, own in zip(column.tolist(), weight.tolist(), strict=True):
        if value is not None and value == value:
            counts[value] += own
    present = sum(counts.values())
    if not present:
        return 1.0, NOTHING, ""
    missing = max(0.0, 1 - present / weight.sum())
    top = counts.most_common(_LEVELS)
    words = ", ".join(f"{short(str(level), 24)} {percent(count / present)}" for level, count in top[:3])
    if len(counts) > 3:
        words += f", {len(counts) - 3:,} more"
    return missing, words, sparkline([count for _, count in top], f"counts of the {len(top)} most frequent categories")
