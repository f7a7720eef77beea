"""NGCE's two parametrisations of convex weights: the paper's absolute values, and softmax."""

from __future__ import annotations

import numpy as np

from paper.ablations.base import LARGER, Ablation, Found, Scope, key_of, listed
from paper.ledger import Record
from paper.rounded import markdown, spread

KINDS = ("absolute", "softmax")
#: The paper's two, and one at which weights move far.
RATES = (0.001, 0.01, 0.1)
PARTS = ("train_loss", "test_loss", "test_error", "from_uniform", "effective_atoms")
Pairs = dict[str, list[Record]]


def settings_of(kind: str, rate: float) -> Record:
    """NGCE's settings; those of absolute values at the paper's rates are shared with another ablation."""
    return {"learning_rate": rate, "coefficients": kind}


class Parametrisations(Ablation):
    """Absolute values and softmax."""

    name, title = "coefficients", "NGCE: absolute values against softmax"
    claim = "softmax was found not to work well in practice."

    def fits(self, scope: Scope) -> list[Record]:
        plan = [(kind, rate) for rate in RATES for kind in KINDS]
        return [key_of(place, "ngce", settings_of(*own)) for place in scope.places(without=LARGER) for own in plan]

    def section(self, found: Found, scope: Scope) -> str:
        rows, sentences = [], []
        for rate in RATES:
            by_set = {name: pairs for name in scope.many if (pairs := _pairs(found, scope, name, rate))["softmax"]}
            for name, pairs in by_set.items():
                cells = [[spread(result[part] for result in pairs[kind]) for part in PARTS] for kind in KINDS]
                rows += [[name, f"{rate:g}", kind, *own] for kind, own in zip(KINDS, cells, strict=True)]
            if by_set:
                sentences.append(f"- Rate {rate:g}: {_sentence(by_set)}")
        if not rows:
            return "Not run."
        head = ["set", "rate", "weights", "training loss", "test loss", "test error", "distance from equal"]
        table = markdown([*head, "effective modules"], rows)
        return "\n\n".join([_INTRODUCTION, table, "\n".join(sentences), _REASON])


_INTRODUCTION = """\
NGCE of 100 modules with 10 units, weights (1/k + abs v) / (1 + sum abs v) or softmax(v), the same initial modules,
equal weights at the start. The distance from equal weights is half the sum of their differences from 1/k: 0 for equal
ones, near 1 for one module alone. Effective modules are 1 / sum of squared weights, 100 for equal ones."""

_REASON = """\
Started at equal weights, both move them along the same slope up to a common factor, to which Adam is indifferent: as
long as weights stay near equal the two are one method. The absolute values of the released code did not sum to 1; if
the paper's comparison was made with those, it compared two different hulls."""


def _pairs(found: Found, scope: Scope, name: str, rate: float) -> Pairs:
    """Results of both kinds on the splits where both are done."""
    by_kind = {kind: found.by_split(scope, name, "ngce", settings_of(kind, rate)) for kind in KINDS}
    shared = sorted(set.intersection(*(set(results) for results in by_kind.values())))
    return {kind: [results[split] for split in shared] for kind, results in by_kind.items()}


def _sentence(by_set: dict[str, Pairs]) -> str:
    """Where the two differ by more than two standard errors of their difference, split by split."""

    def clear(pairs: Pairs) -> float:
        both = [[result["test_loss"] for result in pairs[kind]] for kind in KINDS]
        apart = np.asarray(both[1]) - np.asarray(both[0])
        error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
        return float(apart.mean() / error) if error > 0 else 0.0

    worse = [name for name, pairs in by_set.items() if clear(pairs) > 2]
    better = [name for name, pairs in by_set.items() if clear(pairs) < -2]
    far = {kind: np.mean([r["from_uniform"] for pairs in by_set.values() for r in pairs[kind]]) for kind in KINDS}
    return (
        f"softmax has a clearly larger test loss on {len(worse)} of {len(by_set)} sets ({listed(worse)}), a clearly "
        f"smaller one on {len(better)} ({listed(better)}), by two standard errors of the difference; mean distance "
        f"from equal weights {far['absolute']:.3f} (absolute), {far['softmax']:.3f} (softmax)."
    )
