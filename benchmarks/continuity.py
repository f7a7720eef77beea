"""Whether a change of the code leaves every answer as it was, to the bit: stored before it, compared after it.

    OMP_NUM_THREADS=1 python benchmarks/continuity.py store before.npz [--cases PATTERN]
    OMP_NUM_THREADS=1 python benchmarks/continuity.py compare before.npz [--cases PATTERN] [--page PAGE.md]

The cases are in continuity_cases.py and continuity_edits.py: how a model is made and what is done to it, on six small
sets and one that is large enough for the settings of large data. What models say, weigh and remember is stored as
``case/set/what``, with seconds of processor time. ``compare`` runs the cases again, on the same machine, writes a table
to standard output or to a page, and exits with 1 where anything differs, fails or is missing. Left out is what a clock
decides: time limits that bind, and all seconds. Times of code whose compiled loops are not cached yet count compiling.
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from continuity_cases import ATTRIBUTES, CLASSES, ENSEMBLE, FITTED, HISTORY, METHODS, bases, learning, of_each_way
from continuity_edits import edits, stacks, the_rest
from harness import run_script
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split

logger = logging.getLogger("continuity")

#: Seconds of fits that are too few to be compared.
LEAST = 0.05

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Rows:
    """A set: rows to fit, rows held out, and whether a Regressor or a Classifier is asked for."""

    X: Any
    y: Any
    X_new: Any
    y_new: Any
    task: str


def rows_of(name: str) -> Rows:
    """One of the sets, made anew: no case sees what another did to it."""
    rng = np.random.default_rng(7)
    if name in ("diabetes", "cancer"):
        X, y = (load_diabetes if name == "diabetes" else load_breast_cancer)(return_X_y=True)
        X, y = X[:210], y[:210]
    elif name == "iris":
        X, codes = load_iris(return_X_y=True)
        y = np.array(["setosa", "versicolor", "virginica"])[codes]
    elif name == "frame":
        X = pd.DataFrame({"size": rng.normal(size=200), "age": rng.integers(1, 90, 200).astype(float)})
        X["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, 200)]
        X["open"], X["town"] = rng.random(200) < 0.5, rng.integers(0, 8, 200)
        y = (X["size"] ** 2 + X["age"] / 30 + 2 * (X["colour"] == "red") + rng.normal(size=200) / 5).to_numpy()
        X = X.mask(pd.DataFrame(rng.random(X.shape) < [0.1, 0.1, 0.1, 0.1, 0], columns=X.columns))
    else:
        n, d = {"sparse": (180, 40), "several": (180, 6), "large": (6000, 8)}[name]
        X = rng.normal(size=(n, d)) * (rng.random((n, d)) < (0.15 if name == "sparse" else 1))
        y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=n) / 10
        y = np.c_[y, 5 * X[:, 2] - y**2, np.sign(X[:, 3])] if name == "several" else y
        X = sp.csr_matrix(X) if name == "sparse" else X
    X, X_new, y, y_new = train_test_split(X, y, test_size=50, random_state=0)
    return Rows(X, y, X_new, y_new, "Classifier" if name in CLASSES.split() else "Regressor")


def as_array(value: Any) -> NDArray[Any]:
    """An array that needs no pickle."""
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    return array.astype(str) if array.dtype == object else array


def read(model: Any, rows: Rows) -> Arrays:
    """All that a model says about rows it has not seen, and what it remembers; "refused" where it may not say it."""
    found: Arrays = {}
    for what, name in METHODS.items():
        if hasattr(model, name):
            try:
                answer = getattr(model, name)(rows.X_new)
                found[what] = as_array(answer if isinstance(answer, np.ndarray) else np.stack(list(answer)))
            except ValueError:
                found[what] = np.array("refused")
    found |= {what: as_array(getattr(model, name)) for what, name in ATTRIBUTES.items() if hasattr(model, name)}
    ensemble = getattr(model, FITTED["ensemble"], None)
    if ensemble is not None:
        found |= {f"ensemble.{what}": as_array(getattr(ensemble, name)) for what, name in ENSEMBLE.items()}
    for what, name in HISTORY.items():
        rounds = [entry for entry in getattr(model, FITTED["history"], ()) if name in entry]
        own = [value for entry in rounds for value in entry.get(FITTED["members"], {}).get(name, ())]
        if rounds:
            found[f"history.{what}"] = np.array([entry[name] for entry in rounds], dtype=float)
            found[f"history.members.{what}"] = np.array(own, dtype=float)
    return found


def one(work: Callable[[Any], Any], rows: Rows) -> Arrays:
    """A case on a set: what is read from the model that it makes, or the arrays that it gives itself; or its error."""
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = work(rows)
            fitted = time.process_time()
            found = {k: as_array(v) for k, v in made.items()} if isinstance(made, dict) else read(made, rows)
    except Exception as error:
        logger.exception("failed")
        return {"error": np.array(f"{type(error).__name__}: {error}")}
    seconds = {"seconds_fit": fitted - began, "seconds_predict": time.process_time() - fitted}
    return found | {what: np.array(value) for what, value in seconds.items()}


def run(pattern: str) -> Arrays:
    """All cases whose names have the pattern, on their sets."""
    found: Arrays = {}
    for kind in ("GCE", "NGCE", "NN"):  # compiled loops are loaded once: no case is charged with it
        one(learning()[f"default {kind}"][1], rows_of("frame"))
    for name, (sets, work) in (of_each_way() | learning() | bases() | edits() | stacks() | the_rest()).items():
        if re.search(pattern, name):
            logger.info("%s", name)
            for where in sets.split():
                found |= {f"{name}/{where}/{what}": value for what, value in one(work, rows_of(where)).items()}
    return found


@dataclass
class Line:
    """What became of a case, over its sets."""

    arrays: int = 0
    unequal: int = 0
    largest: float = 0.0
    relative: float = 0.0
    where: str = ""
    failed: str = ""
    before: float = 0.0
    now: float = 0.0

    @property
    def result(self) -> str:
        if self.failed:
            return f"**failed**: {self.failed}"
        return f"**{self.unequal} differ**, first {self.where}" if self.unequal else "equal to the bit"

    def judge(self, key: str, old: NDArray[Any], new: NDArray[Any] | None, error: str) -> None:
        """Compare one array."""
        self.arrays += 1
        if new is None:
            self.failed = self.failed or error or f"{key} is missing"
        elif old.dtype != new.dtype or old.shape != new.shape:
            self.failed = self.failed or f"{key} was {old.dtype}{old.shape}, is {new.dtype}{new.shape}"
        elif old.tobytes() != new.tobytes():
            self.unequal, self.where = self.unequal + 1, self.where or key
            if old.dtype.kind in "fiu":
                with np.errstate(invalid="ignore"):
                    far = float(np.nan_to_num(np.abs(new.astype(float) - old), nan=np.inf, posinf=np.inf).max())
                self.largest = max(self.largest, far)
                self.relative = max(self.relative, far / max(float(np.abs(old).max()), 1e-300))


def compared(old: Mapping[str, NDArray[Any]], new: Mapping[str, NDArray[Any]], pattern: str) -> dict[str, Line]:
    """A line a case that was stored; what is new is of no account."""
    lines: dict[str, Line] = {}
    for key, value in old.items():
        case, where, what = key.split("/", 2)
        if not re.search(pattern, case):
            continue
        line, place = lines.setdefault(case, Line()), f"{case}/{where}"
        if what == "seconds_fit":
            line.before, line.now = line.before + value, line.now + new.get(key, np.nan)
        elif not what.startswith("seconds"):
            line.judge(f"{where}/{what}", value, new.get(key), str(new.get(f"{place}/error", "")))
    return lines


def page(lines: dict[str, Line], added: int) -> str:
    """The table in Markdown."""
    bad = sum(bool(line.failed or line.unequal) for line in lines.values())
    ratios = [line.now / line.before for line in lines.values() if line.before > LEAST and line.now > 0]
    arrays, before, now = (sum(getattr(line, name) for line in lines.values()) for name in ("arrays", "before", "now"))
    text = [
        "# Continuity: answers before and after a change",
        "",
        f"{len(lines)} cases, {arrays:,} arrays; {bad} cases are not what they were. {added:,} arrays were not stored",
        f"before. Fits took {before:.0f} s of processor time, now {now:.0f} s; the median ratio of a case is "
        f"{np.median(ratios or [np.nan]):.2f}. Script: `benchmarks/continuity.py`.",
        "",
        "| case | arrays | result | largest difference | relative | fit, now / before |",
        "|---|---:|---|---:|---:|---:|",
    ]
    for case, line in sorted(lines.items(), key=lambda item: not (item[1].failed or item[1].unequal)):
        words = line.result.replace("|", "/").replace("\n", " ")[:200]
        far = f"{line.largest:.2g} | {line.relative:.2g}" if line.unequal else " | "
        ratio = f"{line.now / line.before:.2f}" if line.before > LEAST else ""
        text.append(f"| {case} | {line.arrays} | {words} | {far} | {ratio} |")
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("store", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--cases", default="", metavar="PATTERN", help="a regular expression that names must have")
    parser.add_argument("--page", type=Path, help="where the table is written; default: standard output")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("gce").setLevel(logging.ERROR)
    found = run(arguments.cases)
    failed = [key for key in found if key.endswith("/error")]
    if arguments.action == "store":
        np.savez_compressed(arguments.file, **found)
        logger.info("%d arrays, %d failed: %s", len(found), len(failed), failed)
        sys.exit(1 if failed else 0)
    with np.load(arguments.file) as stored:
        lines = compared(dict(stored), found, arguments.cases)
        text = page(lines, len(set(found) - set(stored)))
    if arguments.page is None:
        sys.stdout.write(text)
    else:
        arguments.page.write_text(text)
    sys.exit(1 if any(line.failed or line.unequal for line in lines.values()) else 0)


if __name__ == "__main__":
    run_script(main)
