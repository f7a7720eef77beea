"""Table 1 on made-up data with methods that fit nothing: run as a program by the test that kills it.

``STUB_LOG`` names a file to which every fit appends when it begins and when it ends, ``STUB_SLEEP`` how long one takes.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from gce.datasets import Dataset
from paper.methods.base import Method
from paper.methods.forest import Forest
from paper.methods.xgboost import XGBoost
from paper.searches import Grid
from paper.table1 import main
from paper.units import Catalogue

NAMES = ("round", "square", "big")


def load(name, split=None):
    rng = np.random.default_rng([len(name), 0 if split is None else split + 1])
    X = rng.normal(size=(20_000 if name == "big" else 12, 2))
    y = (X[:, 0] > 0).astype(np.int64)
    third = len(X) // 6
    parts = {"train": slice(0, 4 * third), "val": slice(4 * third, 5 * third), "test": slice(5 * third, None)}
    rows = {f"{kind}_{part}": values[cut] for part, cut in parts.items() for kind, values in (("X", X), ("y", y))}
    return Dataset(name=name, task="classification", metric="error", classes=2, note="", **rows)


def say(text):
    if "STUB_LOG" in os.environ:
        with Path(os.environ["STUB_LOG"]).open("a") as file:
            file.write(text + "\n")


def value(data, settings, seed):
    """A number between 0 and 10 that depends on all three, with many ties."""
    text = json.dumps([data.name, float(data.X_train[0, 0]), settings, seed], sort_keys=True)
    return float(sum(text.encode()) % 11)


class Stubbed:
    def fit(self, data, settings, *, seed, device):
        what = json.dumps([self.name, data.name, float(data.X_train[0, 0]), settings], sort_keys=True)
        say(f"begin {what}")
        time.sleep(float(os.environ.get("STUB_SLEEP", "0")))
        say(f"end {what}")
        validation = value(data, settings, seed)
        return {"validation": validation, "test": (7 * validation) % 10, "seconds": 0.5}


class StubXGBoost(Stubbed, XGBoost):
    pass


class StubForest(Stubbed, Forest):
    pass


class StubGrid(Stubbed, Method):
    name, title = "grid", "a grid"

    def search(self, data, budget):
        return Grid([{"x": x} for x in range(14)], budget.grid(14))


METHODS = {method.name: method for method in (StubGrid(), StubXGBoost(), StubForest())}
CATALOGUE = Catalogue(NAMES, NAMES[:2], load, lambda name: True)

if __name__ == "__main__":
    sys.exit(main(methods=METHODS, catalogue=CATALOGUE))
