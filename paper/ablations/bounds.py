"""The effect of B."""

from __future__ import annotations

import numpy as np

from paper.ablations.base import Ablation, Found, Scope, key_of, listed
from paper.ledger import Record
from paper.rounded import markdown, spread

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def settings_of(factor: float) -> Record:
    """The default bound needs no telling: that fit is shared with others."""
    return {} if factor == 1 else {"bound_factor": factor}


class Bounds(Ablation):
    """Multiples of the default bound."""

    name, title = "bounds", "Effect of B"
    claim = "a bound larger than the range of targets can help, for the class then is larger."

    def fits(self, scope: Scope) -> list[Record]:
        places = scope.places(without=("ca_housing",))
        return [key_of(place, "gce", settings_of(factor)) for place in places for factor in FACTORS]

    def section(self, found: Found, scope: Scope) -> str:
        rows: dict[str, list[list[str]]] = {"train_loss": [], "test_loss": [], "test_error": [], "iterations": []}
        means: dict[str, list[float]] = {}
        for name in (*scope.many, *scope.larger):
            results = [found.by_split(scope, name, "gce", settings_of(factor)) for factor in FACTORS]
            splits = sorted(set.intersection(*(set(own) for own in results)))
            if not splits:
                continue
            for part, table in rows.items():
                table.append([name, *(spread(own[split][part] for split in splits) for own in results)])
            means[name] = [float(np.mean([own[split]["test_loss"] for split in splits])) for own in results]
        if not means:
            return "Not run."
        head = ["set", *(f"B x {factor:g}" for factor in FACTORS)]
        titles = ("Training loss", "Test loss", "Test error (MAE or %)", "Rounds until validation rows stopped it")
        tables = [f"{title}:\n\n{markdown(head, table)}" for title, table in zip(titles, rows.values(), strict=True)]
        return "\n\n".join([_INTRODUCTION, *tables, _sentence(means)])


_INTRODUCTION = """\
GCE at its defaults, stopped by validation rows, with multiples of its default bound (4/3 of the farthest target's
distance from the mean; 10 for classes). Below 3/4 the hull cannot reach every target."""


def _sentence(means: dict[str, list[float]]) -> str:
    """Which multiple tests best, and what the extremes cost beside the default."""
    best = {name: FACTORS[int(np.argmin(own))] for name, own in means.items()}
    larger = [name for name, factor in best.items() if factor > 1]
    smaller = [name for name, factor in best.items() if factor < 1]
    each = "; ".join(f"{name} {factor:g}" for name, factor in best.items())
    cost = [
        float(np.median([own[place] / own[FACTORS.index(1.0)] for own in means.values()]))
        for place in (0, len(FACTORS) - 1)
    ]
    return (
        f"Least mean test loss at these multiples: {each}. A larger bound than the default tests best on {len(larger)} "
        f"of {len(best)} sets ({listed(larger)}), a smaller one on {len(smaller)} ({listed(smaller)}). Beside the "
        f"default, the median set's test loss is x{cost[0]:.2f} at a quarter of it and x{cost[1]:.2f} at eight times."
    )
