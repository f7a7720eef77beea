"""The given rows, column by column."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.report.charts import sparkline
from gce.report.markup import NOTHING, Markup, Section, card, counted, percent, short, shown, table, tag
from gce.report.scales import all_one
from gce.report.trial import Array, Trial

_LISTED, _BINS, _LEVELS = 100, 20, 12


def section(trial: Trial) -> Section:
    """One line a column: its kind, gaps, range or commonest levels, and a tiny histogram."""
    sheet = trial.sheet
    lines = [_line(trial, j) for j in range(min(len(sheet.names), _LISTED))]
    head = ["column", "spread", "missing", "not in the fit", "range or levels", "kind"]
    # a column of blanks says nothing
    kept = [
        i for i in range(len(head)) if head[i] not in ("missing", "not in the fit") or any(line[i] for line in lines)
    ]
    head, rows = [head[i] for i in kept], [[line[i] for i in kept] for line in lines]
    body = table(head, rows, caption="Columns of the given rows", class_="words columns tall")
    note = "Ranges are least, median, largest."
    if len(rows) < len(sheet.names):
        note += f" The first {len(rows)} of {len(sheet.names):,} columns."
    if "not in the fit" in head:
        note += " Not in the fit: values that were rare or absent there, and share one code."
    lead = f"The {counted(trial.rows, 'row')} this page was made on, column by column."
    cards = [card("Columns", tag("div", body, data_chart="columns"), note=note, wide=True)]
    return Section("data", "Data", lead, cards)


def _line(trial: Trial, j: int) -> list[str]:
    """What there is to say of a column: see the heads."""
    kind, column = trial.model.table_.schema.columns[j].kind, trial.coded[:, j]
    missing, words, picture = _levels(trial.sheet.columns[j]) if kind == "category" else _numbers(column)
    if kind == "boolean":
        words = f"true {percent(float(np.nanmean(column)))}" if missing < 1 else NOTHING
    lost = trial.model.table_.columns[j].lost
    if lost is not None:
        words += f" (in the fit {lost})"
    # a category without a code of its own
    unseen = float((column == -1).mean()) if kind == "category" else 0.0
    shares = [percent(share) if share else "" for share in (missing, unseen)]
    return [trial.sheet.names[j], picture, *shares, words, kind]


def _numbers(column: Array) -> tuple[float, str, Markup | str]:
    known = column[~np.isnan(column)]
    missing = 1 - len(known) / len(column)
    if len(known) == 0:
        return missing, NOTHING, ""
    low, middle, high = (float(q) for q in np.quantile(known, [0, 0.5, 1]))
    if all_one(low, high):
        return missing, f"always {shown(low)}", ""
    words = " … ".join(shown(v, 3) for v in (low, middle, high))
    counts, _ = np.histogram(known, _BINS)
    return missing, words, sparkline(counts, f"histogram from {shown(low, 3)} to {shown(high, 3)}")


def _levels(column: NDArray[Any]) -> tuple[float, str, Markup | str]:
    values = column.tolist()
    counts = Counter(value for value in values if value is not None and value == value)
    known = sum(counts.values())
    missing = 1 - known / len(values)
    if not known:
        return missing, NOTHING, ""
    top = counts.most_common(_LEVELS)
    words = ", ".join(f"{short(str(level), 24)} {percent(count / known)}" for level, count in top[:3])
    if len(counts) > 3:
        words += f", {len(counts) - 3:,} more"
    return missing, words, sparkline([count for _, count in top], f"counts of the {len(top)} commonest levels")
