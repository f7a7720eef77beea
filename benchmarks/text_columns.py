"""Columns of text as categories alone, with all components of their n-grams, and with those that a fit keeps.

    GCE_DATA_HOME=FOLDER python benchmarks/text_columns.py TABLE SEED category|components|text

The folder has tables/TABLE.parquet. Each call appends a line to results/text_columns.jsonl, and writes
results/text_columns.md from all of them. Seeds 0 to 4 are left for the comparison with other libraries.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from harness import RESULTS, run_script
from sklearn.metrics import log_loss, root_mean_squared_error
from tables_data import folder

import gce
from gce.preprocessing import text_rule

#: Of each table its target, its column of text, and the rows of a fit.
TABLES = {
    "loans": ("interest_rate", "emp_title", 8_000),
    "seattle_pets": ("species", "animal_name", 41_980),
    "movielens": ("rating", "genres", 20_000),
}
MODES = {"category": "category alone", "components": "all 24 components", "text": "components that a fit keeps"}
ABOUT = """# Columns of text

Default fits, splits 80/20 by chance with seeds that no other page reports; RMSE of loans and movielens (20,000 rows to
fit), log-loss of seattle_pets. `emp_title` (job titles: 4,741 distinct of 10,000), `animal_name` (13,919 of 52,475) and
`genres` ("Action|Comedy": 901 of 100,004) are categories with statistics of the target in each row of this page; beside
that they are text or not. Dates are days. Numbers of components in brackets. Job titles say next to nothing of an
interest rate: 24 columns of noise cost half a percent there, which is why a fit keeps the components only that are
correlated with the target by more than three standard deviations of chance. Measured while the rule was chosen, on a
busy machine: there are no times; run 5 of category_statistics.md compares whole tables. To add a line:
`GCE_DATA_HOME=FOLDER python benchmarks/text_columns.py TABLE SEED MODE`.

"""


def measure(name: str, seed: int, mode: str) -> dict[str, Any]:
    """One fit, and its loss on the test rows."""
    target, text, rows = TABLES[name]
    frame = pd.read_parquet(folder() / f"{name}.parquet")
    for column in frame.select_dtypes("datetime"):
        frame[column] = (frame[column] - pd.Timestamp("2000-01-01")).dt.total_seconds() / 86_400
    y = frame.pop(target).to_numpy()
    order, cut = np.random.RandomState(seed).permutation(len(frame)), int(0.8 * len(frame))
    train, test = order[:cut][:rows], order[cut:]
    if mode == "components":
        text_rule.SIGNIFICANT = -1.0
    classes = name == "seattle_pets"
    kind = gce.GCEClassifier if classes else gce.GCERegressor
    model = kind(random_state=0, categorical_features=[text] if mode == "category" else "from_dtype")
    began = time.perf_counter()
    model.fit(frame.iloc[train], y[train])
    seconds = time.perf_counter() - began
    if classes:
        loss = log_loss(y[test], model.predict_proba(frame.iloc[test]), labels=model.classes_)
    else:
        loss = root_mean_squared_error(y[test], model.predict(frame.iloc[test]))
    parts = len(model.table_.schema.part_names)
    return {"table": name, "seed": seed, "mode": mode, "loss": loss, "parts": parts, "seconds": round(seconds)}


def page(lines: list[dict[str, Any]]) -> str:
    """The table of all lines."""
    seen = {(line["table"], line["seed"], line["mode"]): line for line in lines}
    rows = ["| table, seed | " + " | ".join(MODES.values()) + " |", "|---|" + "---:|" * len(MODES)]
    for name, seed in sorted({(table, seed) for table, seed, _ in seen}):
        own = [seen.get((name, seed, mode)) for mode in MODES]
        cells = ["" if line is None else f"{line['loss']:.4f} ({line['parts']})" for line in own]
        rows.append(f"| {name}, {seed} | " + " | ".join(cells) + " |")
    return ABOUT + "\n".join(rows) + "\n"


def main() -> None:
    log, line = RESULTS / "text_columns.jsonl", measure(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")
    (RESULTS / "text_columns.md").write_text(page([json.loads(line) for line in log.read_text().splitlines()]))


if __name__ == "__main__":
    run_script(main)
