"""How well a fit keeps to ``time_limit``, and what the limit costs.

    python benchmarks/time_limits.py [--limits 3 8 20]

The first split of four sets of the accuracy benchmark, the default model. Writes benchmarks/results/time_limits.json
and time_limits.md. Leave the machine alone meanwhile: a limit is kept by the clock.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_models import warm_up
from accuracy_sets import cut
from harness import CORES, processor

import gce

RESULTS = Path(__file__).parent / "results"
SETS = ("digits", "california", "protein", "adult")


def measured(name: str, limit: float | None) -> dict[str, Any]:
    """One fit: its seconds, rounds and error."""
    rows = cut(name, 0)
    warm_up("GCE", rows.X_train.shape[1], rows.regression)
    kind = gce.GCERegressor if rows.regression else gce.GCEClassifier
    model = kind(random_state=0, time_limit=limit, verbose=False)
    began = time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    seconds = time.perf_counter() - began
    answer = model.predict(rows.X_test)
    wrong = answer - rows.y_test
    error = np.sqrt(np.mean(wrong**2)) if rows.regression else 100 * np.mean(wrong != 0)
    return {"set": name, "limit": limit, "seconds": seconds, "rounds": len(model.history_), "error": float(error)}


def page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Limits of time",
        "",
        "Seconds of a default fit (first split of each set) beside its `time_limit`, the rounds of all families",
        "together, and RMSE or error % on the test rows. A fit that ends by itself takes less than it may.",
        f"Machine: {processor()}, {CORES} cores. Script: `benchmarks/time_limits.py`.",
        "",
        "| set | limit | seconds | beyond the limit | rounds | error |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        limit, over = "none", ""
        if row["limit"] is not None:
            limit, over = f"{row['limit']:g}", f"{max(0.0, 100 * (row['seconds'] / row['limit'] - 1)):.1f} %"
        lines.append(
            f"| {row['set']} | {limit} | {row['seconds']:.2f} | {over} | {row['rounds']} | {row['error']:.4g} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limits", nargs="+", type=float, default=[3.0, 8.0, 20.0])
    given = parser.parse_args()
    rows = [measured(name, limit) for name in SETS for limit in (*given.limits, None)]
    (RESULTS / "time_limits.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "time_limits.md").write_text(page(rows))


if __name__ == "__main__":
    main()
