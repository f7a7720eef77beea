"""Several fits as one: a hull a family of models over the same folds, and their shares solved on rows held out.

An average of convex combinations is one: the families' ensembles, each times its share, are the ensemble. The shares
are the weights of a small convex problem whose answers are known, so that they come with a certificate.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.algorithms import Step
from gce.basis.base import Atoms, Zero
from gce.calibration import HeldOut
from gce.callbacks import Turn
from gce.ensemble import ConvexEnsemble, lean
from gce.fitting import Fit, Problem
from gce.losses import Loss
from gce.risk import Risk
from gce.weighting import Outputs, Solution, solve

Array = NDArray[np.float64]

#: The gap, relative to the loss, to which shares are solved: so few are found to the last digits that matter, and rows
#: of weight 2 then count as two rows do.
TOL = 1e-12


class MixedFit:
    """Fits of several families, and what they count together.

    Parameters
    ----------
    fits : dict of Fit
        By the family's name, of the same members.

    Attributes
    ----------
    shares : dict of float
        What each family counts; what is left of 1 is the zero function's.
    closing : dict or None
        The last entry of the history, once the shares are solved.
    """

    def __init__(self, fits: dict[str, Fit]) -> None:
        self.fits = fits
        self._solved: dict[str, float] = {}
        self.closing: dict[str, Any] | None = None

    @property
    def begun(self) -> dict[str, Fit]:
        """Those that have rounds: a fit may end before the last family's turn."""
        return {name: fit for name, fit in self.fits.items() if fit.rounds}

    @property
    def shares(self) -> dict[str, float]:
        return self._solved or dict.fromkeys(self.begun, 1 / len(self.begun))

    @shares.setter
    def shares(self, given: dict[str, float]) -> None:
        self._solved = given

    @property
    def members(self) -> int:
        return next(iter(self.fits.values())).members

    @property
    def rounds(self) -> int:
        return len(self.history)

    @property
    def atoms(self) -> list[Atoms]:
        return [atoms for fit in self.begun.values() for atoms in fit.atoms]

    @property
    def history(self) -> list[dict[str, Any]]:
        """All families' rounds, one after another, and what they came to."""
        entries: list[dict[str, Any]] = []
        for name, fit in self.begun.items():
            rounds, seconds = len(entries), entries[-1]["seconds"] if entries else 0.0
            entries += [
                {**entry, "t": rounds + entry["t"], "seconds": seconds + entry["seconds"], "family": name}
                for entry in fit.history
            ]
        return entries if self.closing is None else [*entries, self.closing]

    def families(self, offset: Tensor) -> dict[str, ConvexEnsemble]:
        """Each family's ensemble by itself, in the smallest hull that holds it."""
        found, born = {}, 0
        for name, fit in self.begun.items():
            own = fit.ensemble(offset)
            later = torch.where(own.origin[:, 1] > 0, own.origin[:, 1] + born, 0)
            origin = torch.stack([own.origin[:, 0], later], 1)
            parts = [part for part in own.parts if isinstance(part, Atoms)]
            found[name] = ConvexEnsemble(parts, own.weights, origin, offset, own.bound)
            born += fit.rounds
        return found

    def close(self, problem: Problem, total: Array) -> HeldOut:
        """Solve the shares on the rows that were held out, and take down what they came to.

        Parameters
        ----------
        problem : Problem
        total : array of shape (M,)
            What each member's held-out rows count.

        Returns
        -------
        HeldOut
            What the mixed members say of the rows that they held out.
        """
        began, self.closing = time.perf_counter(), None
        before = self.history[-1]["seconds"]
        preds = {name: _at_best(fit, problem) for name, fit in self.begun.items()}
        gap = 0.0
        if problem.held_out.any():
            found = solved(problem.loss, problem.offset, [held_out(pred, problem, total) for pred in preds.values()])
            gap, (_, *weights) = found.gap, found.weights.tolist()
            self.shares = dict(zip(self.begun, weights, strict=True))
        pred = sum(share * preds[name] for name, share in self.shares.items())
        assert isinstance(pred, Tensor)
        self.closing = self._entry(problem, pred, gap, before + time.perf_counter() - began)
        return held_out(pred, problem, total)

    def _entry(self, problem: Problem, pred: Tensor, gap: float, seconds: float) -> dict[str, Any]:
        """What a history says of the families together."""
        everyone = list(range(self.members))
        columns = {
            "risk": problem.risk.value(pred[:, : problem.train_rows]).tolist(),
            "gap_lower": [gap] * self.members,
            "size": [0.0] * self.members,
            "atoms": [sum(fit.history[-1]["members"]["atoms"][m] for fit in self.begun.values()) for m in everyone],
        }
        if problem.held_out.any():
            columns["validation"] = problem.held_out_loss(pred, everyone).tolist()
        return self.entry(columns, seconds)

    def entry(self, columns: dict[str, list[float]], seconds: float) -> dict[str, Any]:
        """The last entry of a history, given what it says of each member."""
        means = {name: sum(column) / self.members for name, column in columns.items()}
        entry = {
            "t": 1 + sum(fit.rounds for fit in self.begun.values()),
            "seconds": seconds,
            "validation": None,
            **means,
        }
        return {**entry, "running": list(range(self.members)), "members": columns, "family": "all"}

    def ensemble(self, offset: Tensor) -> ConvexEnsemble:
        """All families, each times its share."""
        return mixed(self.families(offset), self.shares, self.members)

    def stages(self, offset: Tensor) -> tuple[ConvexEnsemble, list[Tensor]]:
        """Every atom that ever carried weight, and the weights of all of them after each round.

        A family's rounds show that family alone; the last stage is the ensemble.
        """
        found = [fit.stages(offset) for fit in self.begun.values()]
        sizes = [len(everyone) for everyone, _ in found]
        parts = [part for everyone, _ in found for part in everyone.parts if isinstance(part, Atoms)]
        origin = torch.cat([everyone.origin for everyone, _ in found])
        weights = torch.cat([everyone.weights for everyone, _ in found])
        paths = []
        for i, (_, path) in enumerate(found):
            before, after = sum(sizes[:i]), sum(sizes[i + 1 :])
            paths += [torch.nn.functional.pad(own, (0, 0, before, after)) for own in path]
        last = [share * path[-1] for share, (_, path) in zip(self.shares.values(), found, strict=True)]
        return ConvexEnsemble(parts, weights, origin, offset, found[0][0].bound), [*paths, torch.cat(last)]


class Trial:
    """A callback that ends a family which would hardly count beside those fitted before it.

    Parameters
    ----------
    fit : Fit
        The family's.
    others : list of Fit
        Those before it, fitted to the end.
    problem : Problem
    rounds : int
        When it is asked.
    """

    #: The share that is worth the rest of the fit.
    least = 0.05

    def __init__(self, fit: Fit, others: Sequence[Fit], problem: Problem, rounds: int) -> None:
        self._fit, self._others, self._problem, self._rounds = fit, others, problem, rounds

    @property
    def lost(self) -> bool:
        """Whether the family stands where it is asked, and does not count: also after a pause there."""
        asked = 0 < self._rounds == self._fit.rounds
        if not asked or not self._others or not self._problem.held_out.any():
            return False
        total = np.ones(self._fit.members)
        preds = [_at_best(fit, self._problem) for fit in (*self._others, self._fit)]
        rows = [held_out(pred, self._problem, total) for pred in preds]
        return bool(solved(self._problem.loss, self._problem.offset, rows).weights[-1] < self.least)

    def __call__(self, step: Step) -> bool:
        return self.lost


def turn(name: str, fits: Mapping[str, Fit], rounds: int, calls: float) -> Turn:
    """The turn of one of some families, within its limits."""
    others = [fit for other, fit in fits.items() if other != name]
    had, took = sum(fit.rounds for fit in others), sum(fit.seconds for fit in others)
    return Turn(name if others else None, had, took, rounds, calls)


def _at_best(fit: Fit, problem: Problem) -> Tensor:
    """Each member's scores at its best round on all rows, ``(M, N, k)``, measured from the offset."""
    if fit.at_best is not None:
        return fit.at_best
    ensemble = fit.ensemble(problem.offset)
    members = [ensemble.of_member(m) for m in range(fit.members)]
    return torch.stack([member(problem.X) for member in members]) - problem.offset


def held_out(pred: Tensor, problem: Problem, total: Array) -> HeldOut:
    """What members' scores ``(M, N, k)`` say of the rows that each held out."""
    parts = [HeldOut(*(t[:0] for t in (problem.y, problem.y, problem.held_out[0])))]
    for own, weight, mass in zip(pred, problem.held_out, total.tolist(), strict=True):
        rows = weight.nonzero().flatten()
        parts.append(HeldOut(problem.offset + own[rows], problem.y[rows], weight[rows] * mass))
    return HeldOut(*(torch.cat(column) for column in zip(*parts, strict=True)))


def solved(loss: Loss, offset: Tensor, held_out: Sequence[HeldOut]) -> Solution:
    """The best shares of families, after that of the zero function, by their answers on the same held-out rows."""
    first = held_out[0]
    risk = Risk(loss, first.y, (first.weight / first.weight.sum())[None], offset)
    answers = [(rows.pred - offset).contiguous() for rows in held_out]
    return solve(risk, Outputs([torch.zeros_like(first.pred), *answers]), TOL)


def mixed(families: dict[str, ConvexEnsemble], shares: dict[str, float], members: int) -> ConvexEnsemble:
    """Ensembles around one offset, each times its share; what is left to the zero function is one atom a member."""
    used = {name: own for name, own in families.items() if shares[name] > 0}
    first = next(iter(families.values()))
    parts, weights, origin = [], [], []
    for name, own in used.items():
        at = 0
        for part in own.parts:
            assert isinstance(part, Atoms)
            rows = slice(at, at + len(part))
            at += len(part)
            if not isinstance(part, Zero):
                parts.append(part)
                weights.append(shares[name] * own.weights[rows])
                origin.append(own.origin[rows])
    taken = first.weights.new_zeros(members)
    for some, who in zip(weights, origin, strict=True):
        taken.index_add_(0, who[:, 0], some)
    device = first.offset.device
    zero = Zero(members, len(first.offset))
    parts.insert(0, zero)
    weights.insert(0, (1 / members - taken).clamp(min=0))
    origin.insert(0, torch.stack([torch.arange(members), torch.zeros(members, dtype=torch.long)], 1).to(device))
    bound = torch.stack([own.bound for own in used.values()] or [first.bound]).amax(0)
    return lean(ConvexEnsemble(parts, torch.cat(weights), torch.cat(origin), first.offset, bound))
