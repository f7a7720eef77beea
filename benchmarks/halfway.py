"""All the way to the quartiles, halfway, or not at all: columns scaled three ways, default models, in one run.

    python benchmarks/halfway.py

Small sets: five members, ten splits (six for concrete and energy). Large sets: one hold-out, split 0, to be quick. The
split is ``RandomState(seed).permutation(n)``, the first 80 % to fit on. Sets are looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets

from gce import GCEClassifier, GCERegressor, base
from gce.table import Standardizer
from gce.table.encoder import Encoder

RESULTS = Path(__file__).parent / "results"
SMALL = {"diabetes": 10, "iris": 10, "wine": 10, "breast_cancer": 10, "concrete": 6, "energy": 6}
LARGE = ("kin8nm", "california", "bike_hour", "protein", "elevators", "magic", "satimage", "electricity6")
CLASSES = ("iris", "wine", "breast_cancer", "magic", "satimage", "electricity6")


def loaded(name: str) -> tuple[Any, Any]:
    if hasattr(datasets, f"load_{name}"):
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    with np.load(Path(os.environ["GCE_DATA_HOME"]) / f"{name}.npz", allow_pickle=False) as held:
        return held["X"].astype(np.float64), held["y"]


class AllTheWay(Encoder):
    """An encoder whose columns are divided by their quartiles' distance where that is narrower."""

    @classmethod
    def learn(cls, X: Any, weight: Any, schema: Any, scale: str, clip: float) -> Encoder:
        own = Encoder.learn(X, weight, schema, "robust", clip)
        each = Standardizer.fit(X, weight, clip, "each")
        low, middle, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0, method="inverted_cdf")
        width = (high - low) / 1.3489795
        narrower = (width > 1e-9 * each.scale) & (width < each.scale)
        mean, spread = np.where(narrower, middle, each.mean), np.where(narrower, width, each.scale)
        return Encoder(own.numbers, Standardizer(mean, spread, clip), own.flagged, own.codes, own.on, own.off)


def error(name: str, variant: str, seed: int) -> float:
    X, y = loaded(name)
    train, test = np.split(np.random.RandomState(seed).permutation(len(X)), [int(0.8 * len(X))])
    base.Encoder = AllTheWay if variant == "all the way" else Encoder
    kind = GCEClassifier if name in CLASSES else GCERegressor
    cv = "auto" if name in SMALL else None
    scale = "each" if variant == "not at all" else "robust"
    model = kind(scale=scale, cv=cv, random_state=seed, verbose=False).fit(X[train], y[train])
    answer = model.predict(X[test])
    return (
        100 * float((answer != y[test]).mean()) if name in CLASSES else float(np.sqrt(np.mean((answer - y[test]) ** 2)))
    )


def main() -> None:
    machine = f"Machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}."
    out = ["# Halfway to the quartiles", "", " ".join(__doc__.split("\n\n")[2].split()), "", machine, ""]
    out += ["| RMSE, or error in % | not at all | halfway (the default) | all the way |", "|---|---:|---:|---:|"]
    for name in (*SMALL, *LARGE):
        means = [
            np.mean([error(name, variant, seed) for seed in range(SMALL.get(name, 1))])
            for variant in ("not at all", "halfway", "all the way")
        ]
        out.append(f"| {name} | " + " | ".join(f"{mean:.4g}" for mean in means) + " |")
        (RESULTS / "halfway.md").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
