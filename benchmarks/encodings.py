"""How columns are scaled, measured over the development sets: the evidence for the defaults of ``scale`` and ``clip``.

    python benchmarks/encodings.py [--device cuda] [--jobs 4] [--seeds 2]

Every fit is a line of JSON under benchmarks/results/encodings.jsonl, and is not repeated; encodings.md is made of them.
The split is ``RandomState(seed).permutation(n)``, the first 80 % to fit on, and the model the default one. Sets are
looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data_sets import stored
from harness import RESULTS, run_script
from sklearn import datasets

from gce import GCEClassifier, GCERegressor
from gce.estimators import _encoding
from gce.preprocessing import Table, scaling

REGRESSION = ("concrete", "energy", "kin8nm", "protein", "bike_hour", "elevators", "diamonds", "diabetes")
CLASSES = ("adult", "letter", "magic", "electricity6", "satimage", "digits", "breast_cancer", "wine")
#: scale, clip, the least number of columns that may share a unit, and whether flags have a variance of 1
VARIANTS: dict[str, tuple[str, float | None, int, bool]] = {
    "each by mean and spread (the paper's)": ("each", None, 32, False),
    "each, clip 4": ("each", 4.0, 32, False),
    "common for any columns of one unit, else each, clip 4 (the old default)": ("auto", 4.0, 1, False),
    "robust, clip 4": ("robust", 4.0, 32, False),
    "robust, clip 3": ("robust", 3.0, 32, False),
    "common for 32 columns of one unit, else robust, clip 4 (the default)": ("auto", 4.0, 32, False),
    "the default, flags of variance 1": ("auto", 4.0, 32, True),
}
WITH_CATEGORIES = ("adult", "diamonds")
#: Small sets (scikit-learn's own) are split so many times as often.
_SMALL = 5


def jobs(seeds: int) -> list[tuple[str, str, int]]:
    many = product(range(_SMALL * seeds), VARIANTS, CLASSES + REGRESSION)
    every = [(name, variant, seed) for seed, variant, name in many if seed < seeds or hasattr(datasets, f"load_{name}")]
    return [job for job in every if "flags" not in job[1] or job[0] in WITH_CATEGORIES]


def loaded(name: str) -> tuple[Any, Any, list[int]]:
    """Rows, targets, and which columns are categories."""
    if hasattr(datasets, f"load_{name}"):
        return *getattr(datasets, f"load_{name}")(return_X_y=True), []
    with np.load(stored(name), allow_pickle=False) as held:
        return held["X"].astype(np.float64), held["y"], held["cat_cols"].tolist() if "cat_cols" in held else []


def of_variance_1(table: Table) -> Table:
    """The table with flags divided by their spread, and clipped smoothly at 4 as numbers are."""
    own = table.encoder
    spread = np.sqrt(-own.on * own.off)  # 1 - p and -p
    on, off = (z / (1 + (z / 4) ** 4) ** 0.25 for z in (own.on / spread, own.off / spread))
    return replace(table, encoder=replace(own, on=on, off=off))


def measure(name: str, variant: str, seed: int, device: str) -> dict[str, Any]:
    """One fit and its figures on the rows left over."""
    scale, clip, scaling.MANY_COLUMNS, loud = VARIANTS[variant]
    # the old default had no quartiles
    scale = "each" if scaling.MANY_COLUMNS == 1 and not _one_unit(loaded(name)[0]) else scale
    _encoding.Table = (lambda *parts: of_variance_1(Table(*parts))) if loud else Table
    X, y, categories = loaded(name)
    train, test = np.split(np.random.RandomState(seed).permutation(len(X)), [int(0.8 * len(X))])
    kind = GCEClassifier if name in CLASSES else GCERegressor
    model = kind(scale=scale, clip=clip, categorical_features=categories, device=device, random_state=0, verbose=False)
    began = time.perf_counter()
    model.fit(X[train], y[train])
    line = {"set": name, "variant": variant, "seed": seed, "seconds": time.perf_counter() - began}
    if name not in CLASSES:
        return {**line, "error": float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))}
    proba, codes = model.predict_proba(X[test]), np.searchsorted(model.classes_, y[test])
    log_loss = -np.log(np.maximum(proba[np.arange(len(codes)), codes], 1e-15)).mean()
    raw = model.loss_.predict(model.raw_predict(X[test])).cpu().numpy()
    plain = -np.log(np.maximum(raw[np.arange(len(codes)), codes], 1e-15)).mean()
    figures = {"log_loss": float(log_loss), "log_loss_raw": float(plain), "temperature": model.temperature_}
    return {**line, "error": 100 * float((model.predict(X[test]) != y[test]).mean()), **figures}


def _one_unit(X: Any) -> bool:
    width = np.ptp(X, axis=0)
    return scaling.share_a_unit(width[width > 0])


def known(path: Path) -> dict[tuple[str, str, int], dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {(line["set"], line["variant"], line["seed"]): line for line in lines}


def report(lines: dict[tuple[str, str, int], dict[str, Any]], machine: str) -> str:
    """Markdown: each variant's mean error a set, and its geometric mean relative to the paper's scaling."""
    first = next(iter(VARIANTS))
    seeds = sorted({seed for *_, seed in lines})
    out = ["# Scaling of columns", "", __doc__.split("\n\n")[0].strip(), "", machine, ""]
    large = sorted({seed for name, _, seed in lines if not hasattr(datasets, f"load_{name}")})
    out += [
        f"Mean over splits {large} ({seeds[0]} to {seeds[-1]} for scikit-learn's own sets): RMSE, or error in %; last"
    ]
    out += ["column: geometric mean relative to the first row."]
    for sets in (REGRESSION, CLASSES):
        out += ["", f"| | {' | '.join(sets)} | relative |", "|---|" + "---:|" * (len(sets) + 1)]
        for variant in VARIANTS:
            cells, ratios = [], []
            for name in sets:
                own = [lines[name, variant, s]["error"] for s in seeds if (name, variant, s) in lines]
                _base = [lines[name, first, s]["error"] for s in seeds if (name, first, s) in lines]
                cells.append(f"{np.mean(own):.4g}" if own else "")
                ratios += [np.mean(own) / np.mean(_base)] if len(own) == len(_base) > 0 else []
            whole = f"{np.exp(np.mean(np.log(ratios))):.4f}" if len(ratios) == len(sets) else ""
            out.append(f"| {variant} | {' | '.join(cells)} | {whole} |")
    out += ["", "Log-loss without and with the temperature:", "", f"| | {' | '.join(CLASSES)} |"]
    out += ["|---|" + "---:|" * len(CLASSES)]
    for variant in VARIANTS:
        some = [[lines[n, variant, s] for s in seeds if (n, variant, s) in lines] for n in CLASSES]
        plain, tempered = (
            [np.mean([x[key] for x in own]) for own in some if own] for key in ("log_loss_raw", "log_loss")
        )
        means = iter(zip(plain, tempered, strict=True))
        cells = ["{:.4f} to {:.4f}".format(*next(means)) if own else "" for own in some]
        out.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no fit after so long")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    given = parser.parse_args()
    path, began = given.folder / "encodings.jsonl", time.monotonic()
    done = known(path)
    todo = [job for job in jobs(given.seeds) if job not in done]
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool, path.open("a") as ledger:
        waiting = {pool.submit(measure, *job, given.device) for job in todo}
        for future in as_completed(waiting):
            line = future.result()
            ledger.write(json.dumps(line) + "\n")
            ledger.flush()
            done[line["set"], line["variant"], line["seed"]] = line
            if time.monotonic() - began > given.seconds:
                pool.shutdown(cancel_futures=True)
                break
    chip = torch.cuda.get_device_name() if given.device == "cuda" else f"{os.cpu_count()} cores"
    machine = f"Machine: {platform.machine()}, {chip}, Python {platform.python_version()}, torch {torch.__version__}."
    (given.folder / "encodings.md").write_text(report(done, machine))


if __name__ == "__main__":
    run_script(main)
