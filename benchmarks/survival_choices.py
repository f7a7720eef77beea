"""What was tried for survival analysis, on other splits than those of survival.md.

    python benchmarks/survival_choices.py [--seeds 5]

A second fit with Breslow's baseline of the first, and how hazards may change with time. Split seeds from 100. Writes
benchmarks/results/survival_choices.md.
"""

from __future__ import annotations

import argparse
from typing import Any, Self
from unittest.mock import patch

import numpy as np
import pandas as pd
from harness import machine, run_script
from survival import RESULTS, SETS, judged

from gce import GCESurvival

FIRST = 100


class Again(GCESurvival):
    """Learns a second time, on the scale of the baseline that the first fit found."""

    def fit(self, X: Any, y: Any) -> Self:
        super().fit(X, y)
        # a scale must increase, also where no held-out row had an event
        times, found = self.event_times_, self.baseline_ + 1e-9 * np.arange(1, len(self.baseline_) + 1)
        with patch("gce.training.survival.nelson_aalen", lambda given: (times, found)):
            return super().fit(X, y)


class Tried(GCESurvival):
    """With other constants of the module that picks the loss."""

    constants: dict[str, int]

    def fit(self, X: Any, y: Any) -> Self:
        with patch.multiple("gce.training.survival", **self.constants):
            return super().fit(X, y)


class Quadratic(Tried):
    constants = {"_DEGREE": 2}  # noqa: RUF012


class FiveIntervals(Tried):
    constants = {"_MOST_INTERVALS": 5}  # noqa: RUF012


def tried(seed: int) -> dict[str, Any]:
    same = {"random_state": seed, "n_jobs": 1}
    found = {
        "cox": GCESurvival(**same),
        "cox, a second fit with Breslow's baseline": Again(**same),
        "hazards": GCESurvival(loss="hazards", **same),
        "hazards, quadratic in time": Quadratic(loss="hazards", **same),
        "hazards, five intervals": FiveIntervals(loss="hazards", **same),
    }
    for model in found.values():
        # scikit-learn reads parameters from the constructor of the class
        type(model).__init__ = GCESurvival.__init__  # type: ignore[method-assign]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(FIRST, FIRST + parser.parse_args().seeds)
    lines = [line for name in SETS for seed in seeds for line in judged(name, seed, tried(seed))]
    frame, host = pd.DataFrame(lines), machine()
    means = frame.groupby(["model", "set"])[["concordance", "brier"]].mean().groupby("model").mean()
    text = [
        "# What was tried for survival analysis",
        "",
        f"Means over the six data sets of survival.md and split seeds {seeds[0]} to {seeds[-1]}, which are not those",
        "of that page. Concordance: higher is better; integrated Brier score: lower is better. A second fit on the",
        "scale of Breslow's baseline, the next step towards the maximum of Cox's partial likelihood, takes twice as",
        f"long. Machine: {host['cpu']}, {host['cores']} cores. Script: `benchmarks/survival_choices.py`.",
        "",
        "| | concordance | Brier |",
        "|---|---:|---:|",
        *(f"| {name} | {means.loc[name, 'concordance']:.4f} | {means.loc[name, 'brier']:.4f} |" for name in tried(0)),
    ]
    (RESULTS / "survival_choices.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    run_script(main)
