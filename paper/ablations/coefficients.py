"""NGCE's two parametrisations of convex weights: the paper's absolute values, and softmax."""

from __future__ import annotations

import numpy as np

from paper.ablations.base import LARGER, Ablation, Found, Scope, key_of, listed
from paper.ledger import Record
from paper.rounded import markdown, spread

KINDS = ("absolute", "softmax")
RATE = 0.01
TITLES = {"absolute": "(1/k + abs v) / (1 + sum abs v)", "softmax": "softmax(v)"}


def settings_of(kind: str) -> Record:
    """One rate, the faster of the paper's two."""
    return {"learning_rate": RATE, "coefficients": kind}


class Parametrisations(Ablation):
    """Absolute values and softmax."""

    name, title = "coefficients", "NGCE: absolute values against softmax"
    claim = "softmax was found not to work well in practice."

    def fits(self, scope: Scope) -> list[Record]:
        return [key_of(place, "ngce", settings_of(kind)) for place in scope.places(without=LARGER) for kind in KINDS]

    def section(self, found: Found, scope: Scope) -> str:
        rows, apart = [], {}
        for name in scope.many:
            by_kind = {kind: found.by_split(scope, name, "ngce", settings_of(kind)) for kind in KINDS}
            shared = sorted(set.intersection(*(set(results) for results in by_kind.values())))
            if not shared:
                continue
            for kind, results in by_kind.items():
                parts = ("train_loss", "test_loss", "test_error", "from_uniform", "effective_atoms")
                cells = [spread(results[split][part] for split in shared) for part in parts]
                rows.append([name, TITLES[kind], *cells])
            difference = [by_kind["softmax"][s]["test_loss"] - by_kind["absolute"][s]["test_loss"] for s in shared]
            apart[name] = np.asarray(difference)
        if not rows:
            return "Not run."
        head = [
            "set",
            "weights",
            "training loss",
            "test loss",
            "test error",
            "distance from equal",
            "effective modules",
        ]
        return "\n\n".join([_INTRODUCTION, markdown(head, rows), _sentence(apart)])


_INTRODUCTION = """\
NGCE of 100 modules with 10 units, rate 0.01, the same initial modules, equal weights at the start. The distance from
equal weights is half the sum of their differences from 1/k: 0 for equal ones, near 1 for one module alone. Effective
modules are 1 / sum of squared weights, 100 for equal ones."""


def _sentence(apart: dict[str, np.ndarray]) -> str:
    """Where the two differ by more than two standard errors of their difference, split by split."""

    def clear(values: np.ndarray) -> float:
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
        return float(values.mean() / error) if error > 0 else 0.0

    worse = [name for name, values in apart.items() if clear(values) > 2]
    better = [name for name, values in apart.items() if clear(values) < -2]
    return (
        f"Softmax has a clearly larger test loss on {len(worse)} of {len(apart)} sets ({listed(worse)}) and a clearly "
        f"smaller one on {len(better)} ({listed(better)}), by two standard errors of the difference. Started at equal "
        "weights, both move them along the same slope up to a common factor, to which Adam is indifferent: as long as "
        "weights stay near equal the two are one method. The absolute values of the released code did not sum to 1; "
        "if the paper's comparison was made with those, it compared two different hulls."
    )
