"""adult with raw categories: text columns as they are, no setting, beside peers at their defaults.

    python benchmarks/adult.py [--states 3]

The split is ``RandomState(0).permutation(n)``, the first 80 % to fit on. Every fit is a line of JSON under
benchmarks/results/adult.jsonl and is not repeated; adult.md is made of them. The set is looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from typing import Any

import numpy as np
import pandas as pd
from data_sets import stored
from harness import RESULTS, run_script
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import gce


def table() -> tuple[pd.DataFrame, np.ndarray]:
    """The set as a user has it: numbers, and categories in words."""
    with np.load(stored("adult"), allow_pickle=False) as held:
        frame = pd.DataFrame(held["X"].astype(float)).rename(columns="c{}".format)
        for j in held["cat_cols"].tolist():
            frame[f"c{j}"] = held[f"cat_{j}"].astype(str)[frame[f"c{j}"].astype(int)]
        return frame, held["y"].astype(int)


def models(state: int) -> dict[str, Any]:
    text, numbers = make_column_selector(dtype_include=[object, "str"]), make_column_selector(dtype_include="number")
    one_hot = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers))
    from xgboost import XGBClassifier

    return {
        "GCE default": gce.GCEClassifier(random_state=state, verbose=False),
        "GCE, ten folds": gce.GCEClassifier(cv=10, random_state=state, verbose=False),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=state),
        "MLP (one-hot, standardised)": make_pipeline(one_hot, MLPClassifier(random_state=state)),
        "XGBoost": XGBClassifier(enable_categorical=True, random_state=state),
    }


def measured(name: str, state: int) -> dict[str, Any]:
    """One fit, and its figures on the rows left over."""
    X, y = table()
    train, test = np.split(np.random.RandomState(0).permutation(len(X)), [int(0.8 * len(X))])
    if name in ("HistGradientBoosting", "XGBoost"):
        X = X.astype(dict.fromkeys(X.select_dtypes(exclude="number").columns, "category"))
    model, began = models(state)[name], time.perf_counter()
    model.fit(X.iloc[train], y[train])
    seconds = time.perf_counter() - began
    error = 100 * float((model.predict(X.iloc[test]) != y[test]).mean())
    loss = float(log_loss(y[test], model.predict_proba(X.iloc[test])))
    return {"model": name, "state": state, "error": error, "log_loss": loss, "seconds": seconds}


def report(lines: list[dict[str, Any]]) -> str:
    out = ["# adult with raw categories", "", __doc__.split("\n\n")[2].replace("\n", " ").strip(), ""]
    out += [f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}."]
    out += ["", "| model | test error %, by random state | mean | log-loss | fit s |", "|---|---|---:|---:|---:|"]
    for name in dict.fromkeys(line["model"] for line in lines):
        own = sorted((line for line in lines if line["model"] == name), key=lambda line: line["state"])
        errors = ", ".join(f"{line['error']:.2f}" for line in own)
        mean, loss, seconds = (np.mean([line[key] for line in own]) for key in ("error", "log_loss", "seconds"))
        out.append(f"| {name} | {errors} | {mean:.2f} | {loss:.4f} | {seconds:.0f} |")
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    given = parser.parse_args()
    path = RESULTS / "adult.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for state in range(given.states):
        for name in given.only or models(0):
            if any(line["model"] == name and line["state"] == state for line in lines):
                continue
            lines.append(measured(name, state))
            with path.open("a") as ledger:
                ledger.write(json.dumps(lines[-1]) + "\n")
            (RESULTS / "adult.md").write_text(report(lines))


if __name__ == "__main__":
    run_script(main)
