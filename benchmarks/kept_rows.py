"""Results of a benchmark that can be killed and run again: one line of JSON for each set, seed and model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from accuracy_models import machine
from harness import RESULTS

Row = dict[str, Any]


def read(name: str) -> list[Row]:
    """The lines of ``results/NAME.jsonl``."""
    path = RESULTS / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(name: str, cases: Iterable[tuple[str, int, str]], measure: Callable[[str, int, str], Row]) -> None:
    """Measure each case of a set, a seed and a model that has no line yet."""
    done = {(row["set"], row["seed"], row["model"]) for row in read(name)}
    for case in cases:
        if case in done:
            continue
        began = time.perf_counter()
        found = measure(*case)
        row = {"set": case[0], "seed": case[1], "model": case[2], **found}
        row |= {"seconds": round(time.perf_counter() - began, 2), "machine": machine()}
        with (RESULTS / f"{name}.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")


def table(rows: list[Row], value: str, digits: int = 4) -> str:
    """Means over seeds of one value, sets down and models across, the least one of each set in bold."""
    sets, models = (list(dict.fromkeys(row[key] for row in rows)) for key in ("set", "model"))
    lines = ["| | " + " | ".join(models) + " |", "|---|" + "---:|" * len(models)]
    ranks = []
    for name in sets:
        own = {m: [row[value] for row in rows if (row["set"], row["model"]) == (name, m)] for m in models}
        means = {m: float(np.mean(found)) if found else float("nan") for m, found in own.items()}
        least = min(mean for mean in means.values() if mean == mean)
        ranks.append([sum(other < mean for other in means.values()) + 1 for mean in means.values()])
        cells = [f"**{v:.{digits}g}**" if v == least else f"{v:.{digits}g}" if v == v else "" for v in means.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines.append("| mean rank | " + " | ".join(f"{rank:.2f}" for rank in np.mean(ranks, 0)) + " |")
    return "\n".join(lines)


def write(name: str, text: str) -> None:
    """Write ``results/NAME.md``."""
    (RESULTS / f"{name}.md").write_text(text)
