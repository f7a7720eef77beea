"""The paper's claim on Figure 1, held against the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

Verdict = Literal["shown", "undecided", "refuted"]
Curves = Mapping[str, NDArray[np.float64]]

#: A mean difference counts when Student's t calls it different from 0 at this level: 2.8 standard errors of 5 seeds.
LEVEL = 0.05
CLAIMS = ("pairwise best", "nonlinear greedy slowest")
#: Of each claim the algorithm it is about, and the sign that makes its error's difference to another one's positive.
_MEANING = {"pairwise best": ("pairwise", -1.0), "nonlinear greedy slowest": ("nonlinear", 1.0)}


def verdict(claim: str, errors: Curves) -> Verdict:
    """Whether a claim holds at one number of modules.

    Parameters
    ----------
    claim : str
        One of ``CLAIMS``.
    errors : mapping of str to array of shape (seeds,)
        Training error of each algorithm.

    Returns
    -------
    str
        ``"shown"`` if the algorithm is clearly (by a t test of the differences, seed by seed) ahead of, or behind,
        every other one; ``"refuted"`` if the contrary is clear for one of them; else ``"undecided"``.
    """
    who, sign = _MEANING[claim]
    margins = [_margin(sign * (errors[who] - errors[other])) for other in errors if other != who]
    if min(margins) > 1:
        return "shown"
    return "refuted" if min(margins) < -1 else "undecided"


def _margin(difference: NDArray[np.float64]) -> float:
    """The mean in units of what is clear; a single seed makes nothing clear."""
    if len(difference) < 2:
        return 0.0
    mean, error = float(difference.mean()), float(difference.std(ddof=1)) / np.sqrt(len(difference))
    if error == 0.0:
        return float(np.sign(mean)) * np.inf if mean else 0.0
    return mean / error / float(t.ppf(1 - LEVEL / 2, len(difference) - 1))


def verdicts(claim: str, curves: Curves, counts: Sequence[int]) -> list[Verdict]:
    """A claim's verdict at each of some numbers of modules, from curves ``(seeds, modules)``."""
    return [verdict(claim, {name: curve[:, k - 1] for name, curve in curves.items()}) for k in counts]


def in_all(found: Sequence[Verdict]) -> str:
    """Verdicts of several numbers of modules in one word or two."""
    if len(set(found)) == 1:
        return found[0]
    if "shown" not in found:
        return "not shown"
    return "mixed" if "refuted" in found else "in part"


def ordering(errors: Curves) -> list[str]:
    """Algorithms from the least mean error to the greatest."""
    return sorted(errors, key=lambda name: float(errors[name].mean()))


def ahead_from(who: str, other: str, curves: Curves) -> int | None:
    """The number of modules from which on one algorithm's mean error stays below another's; None: not at the end."""
    behind = np.flatnonzero(curves[who].mean(0) >= curves[other].mean(0))
    if len(behind) == 0:
        return 1
    last = int(behind[-1]) + 2
    return last if last <= curves[who].shape[1] else None
