"""Atoms used against difficulty."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from paper.ablations.base import Ablation, Found, Scope, key_of, listed
from paper.ledger import Record
from paper.rounded import markdown, spread

#: Most rounds of a fit, the paper's and this library's.
MOST = 100
KINDS: dict[str, tuple[str, Record]] = {"paper's settings": ("gce_paper", {"hidden": 10}), "defaults": ("gce", {})}
REGRESSION = ("diabetes", "boston", "ca_housing", "msd")


class Sizes(Ablation):
    """Rounds and atoms, set by set."""

    name, title = "sizes", "Atoms used against difficulty"
    claim = "regression uses up the maximum of 100 modules, classification far fewer."

    def fits(self, scope: Scope) -> list[Record]:
        plan = [(place, *kind) for place in scope.places() for kind in KINDS.values()]
        # 100 units, 100 atoms and 300 epochs each on 13,209 rows take too long for one core
        return [key_of(*item) for item in plan if not (item[0]["set"] == "ca_housing" and item[1] == "gce_paper")]

    def section(self, found: Found, scope: Scope) -> str:
        parts = [_INTRODUCTION]
        for title, (model, settings) in KINDS.items():
            names = (*scope.many, *scope.larger)
            by_set = {name: list(found.by_split(scope, name, model, settings).values()) for name in names}
            by_set = {name: results for name, results in by_set.items() if results}
            if by_set:
                rows = [_row(name, results) for name, results in by_set.items()]
                parts += [f"At the {title}:", markdown(_HEAD, rows), _sentence(by_set)]
        parts.append(_of_table1(scope.results / "table1.json"))
        return "\n\n".join(parts)


_INTRODUCTION = """\
Rounds are oracle calls until the validation loss had not improved for 10 rounds (paper's settings, 10 units) or 20
(defaults), 100 at most; atoms are those of positive weight at the best round. Difficulty is the test loss as a part
of the best constant's: 0 is solved, 1 is hopeless."""
_HEAD = [
    "set",
    "splits",
    "rounds",
    "fits that used up all 100 rounds",
    "best round's atoms",
    "difficulty",
    "test error",
]


def used_up(result: Record) -> bool:
    """Whether a fit went on to the last round."""
    return bool(result["iterations"] >= MOST)


def difficulty(result: Record) -> float:
    """What is left of the constant's test loss."""
    return float(result["test_loss"] / result["constant_loss"])


def _row(name: str, results: list[Record]) -> list[str]:
    rounds = spread(float(result["iterations"]) for result in results)
    last = f"{sum(map(used_up, results))} of {len(results)}"
    atoms = spread(float(result["atoms"]) for result in results)
    hard = spread(map(difficulty, results))
    return [name, str(len(results)), rounds, last, atoms, hard, spread(result["test_error"] for result in results)]


def _sentence(by_set: dict[str, list[Record]]) -> str:
    share = {
        task: [
            used_up(result) for name, results in by_set.items() for result in results if (name in REGRESSION) == kind
        ]
        for task, kind in (("regression", True), ("classification", False))
    }
    words = ", ".join(f"{sum(fits)} of {len(fits)} fits of {task}" for task, fits in share.items() if fits)
    line = f"All 100 rounds were used by {words}."
    if len(by_set) > 2:
        hard = [float(np.mean([difficulty(r) for r in results])) for results in by_set.values()]
        atoms = [float(np.mean([r["atoms"] for r in results])) for results in by_set.values()]
        line += f" Over sets, atoms and difficulty have a rank correlation of {float(spearmanr(hard, atoms)[0]):.2f}."
    return line


def _of_table1(path: Path) -> str:
    """What Table 1's fits at the paper's settings used, where they have been run."""
    if not path.exists():
        return "Table 1 has not been run: its fits at the paper's settings would stand here."
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["method"] == "gce_paper"]
    names = sorted({cell["set"] for cell in cells})
    rows = []
    for name in names:
        own = [cell["more"] for cell in cells if cell["set"] == name and "iterations" in cell["more"]]
        if own:
            full = sum(used_up(one) for one in own)
            rows.append([name, str(len(own)), spread(float(one["iterations"]) for one in own), f"{full} of {len(own)}"])
    full = [row[0] for row in rows if not row[3].startswith("0 ")]
    head = ["set", "splits", "rounds", "fits that used up all 100 rounds"]
    return (
        "Table 1's fits at the paper's settings, each the best of its settings on validation rows (stopped by error, "
        f"not by loss):\n\n{markdown(head, rows)}\n\nSets with a fit that used up all rounds: {listed(full)}."
    )
