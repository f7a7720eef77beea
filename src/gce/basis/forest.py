"""Forests of deep trees: one atom each, because a tree that repeats its training rows would take all the weight."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce import links, native
from gce.basis.base import Habit
from gce.basis.coded import Coded, Rows
from gce.basis.planted import Planted, dropped, within
from gce.basis.tree import Grown
from gce.clock import Pace
from gce.losses import CrossEntropy, Logistic, Loss
from gce.objectives import Joint, Objective
from gce.parameters import NONE, Rules, check_parameters, count
from gce.parameters import within as between
from gce.parts import Parts
from gce.rows import Inputs
from gce.streams import RoundStreams
from gce.trees import Grove

Link = Literal["identity", "logit", "log"]


def scattering() -> ModuleType:
    """The grower, which takes a moment to load."""
    return import_module("gce.trees.scattering")


#: The share of a forest's answer that is taken from the classes' frequencies: no class has a probability of 0.
DOUBT = 0.01
#: Rows by which it is found out how long it takes to ask a tree about all of them.
_ROWS_TRIED = 8192
#: How many times the spread of targets their offset is, from where on leaves are measured from it.
FAR = 64.0


class Forest(Coded):
    """Averages of extremely randomised trees, which look at targets and not at gradients.

    Deep trees repeat the rows they learned from, and their training risk says nothing: an ensemble with a forest finds
    its weights on rows that were held out. A forest is therefore an atom of its own, learned in one round.

    Parameters
    ----------
    trees : int, default=50
    tries : float or None, default=None
        Share of the columns that are tried at a node. None: all for numbers, for classes the square root of their
        number.
    least : float, default=1
        Rows in a leaf, at least.
    codes : int, default=256
        Into how many parts a column is cut beforehand, at most.
    """

    parameter_rules: ClassVar[Rules] = {"trees": count(1), "tries": between(0, 1, "(]") | NONE}

    def __init__(self, trees: int = 50, tries: float | None = None, least: float = 1, codes: int = 256) -> None:
        self.trees = trees
        self.tries = tries
        self.least = least
        self.codes = codes

    @property
    def habit(self) -> Habit:
        return Habit("nonlinear", "2/(t+1)", calls=1)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> ForestAtoms:
        check_parameters(self)
        if not isinstance(objective, Joint):
            raise ValueError("a Forest learns from targets: use algorithm='nonlinear', or 'auto'")
        risk, seen = objective.risk, self.coded(X)
        link = _link(risk.loss)
        centre = _centre(risk.y, risk.offset) if link == "identity" else torch.zeros_like(risk.offset)
        y = (risk.y - centre).cpu().numpy()
        tries, each = self._tries(len(seen.codes), link), []
        for m, generator in enumerate(rng.members):
            weight, unit = risk.weight[m].cpu().numpy(), float(risk.unit[m])
            rows = np.flatnonzero(weight).astype(np.uint32)
            seeds = torch.randint(2**62, (self.trees,), generator=generator).tolist()
            own = weight[rows] / unit, np.ascontiguousarray(y[rows])
            each.append([partial(_grown, seen, rows, *own, tries, float(self.least), seed) for seed in seeds])
        offset, reach = (risk.offset - centre).cpu(), objective.bound.cpu()
        if link != "identity":
            # the farthest a score can be from the offset
            farthest = offset.abs() + abs(math.log(DOUBT)) + offset.exp().sum().log().abs() + 1
            reach = torch.minimum(farthest, reach)

        def planted(grown: Sequence[Sequence[Grown]]) -> ForestAtoms:
            grove = Grove.of([tree for own in grown for tree in own], _precision(y))
            return ForestAtoms(grove, offset, reach, len(grown[0]), link).to(objective.bound.device)

        return planted(self._grown_in_time(each, lambda grown: _seconds(planted(grown), seen.X)))

    def hurried(self, end: float) -> None:
        self._end, self.rushed = end, False

    def _grown_in_time(
        self, jobs: Sequence[Sequence[Callable[[], Grown]]], asking: Callable[[list[list[Grown]]], float]
    ) -> list[list[Grown]]:
        """Each member's trees: all of them, or, where time is limited, as many for each as there is time for.

        ``asking`` tells the seconds that it takes to ask given trees about all rows, which comes after growing.
        """
        end = getattr(self, "_end", math.inf)
        step = self.trees if end == math.inf else 1
        grown: list[list[Grown]] = [[] for _ in jobs]
        pace, asked = Pace(end), 0.0
        with native.workers(min(native.threads(), step * len(jobs))) as run:
            for first in range(0, self.trees, step):
                some = run([job for own in jobs for job in own[first : first + step]])
                for m, own in enumerate(grown):
                    own += some[m * step : (m + 1) * step]
                if end < math.inf and first == 0 and pace.left > 0:
                    asked = asking(grown)
                if pace.spent(after=asked * (first + 2)):
                    break
        self.rushed |= len(grown[0]) < self.trees
        return grown

    def _tries(self, d: int, link: Link) -> int:
        if self.tries is not None:
            return max(1, round(self.tries * d))
        return d if link == "identity" else max(1, round(math.sqrt(d)))


def _seconds(atoms: ForestAtoms, X: Inputs) -> float:
    """What it takes to ask atoms about all rows, by a few of them."""
    few = X[:: max(1, len(X) // _ROWS_TRIED)]
    began = time.monotonic()
    atoms(few)
    return (time.monotonic() - began) * len(X) / len(few)


def _link(loss: Loss) -> Link:
    """How means of targets become scores."""
    if isinstance(loss, Logistic):
        return "logit"
    return "log" if isinstance(loss, CrossEntropy) else "identity"


def _centre(y: Tensor, offset: Tensor) -> Tensor:
    """What leaves measure targets ``(n, k)`` from, ``(k,)``: 0, or the offset of targets that lie far from 0 for their
    spread, whose differences would be lost in float32 and in sums of squares.
    """
    return torch.where(offset.abs() > FAR * (y - offset).abs().amax(0), offset, 0.0)


def _precision(y: NDArray[np.float64]) -> torch.dtype:
    """What means of targets ``(n, k)`` are kept in: float32 where it holds such numbers."""
    largest = np.abs(y).max(0)
    return torch.float32 if ((largest == 0) | ((largest > 1e-30) & (largest < 1e30))).all() else torch.float64


def _grown(
    seen: Rows,
    rows: NDArray[np.uint32],
    weight: NDArray[np.float64],
    Y: NDArray[np.float64],
    tries: int,
    least: float,
    seed: int,
) -> Grown:
    """One tree: feature, threshold, left, value."""
    bins, starts = seen.bins, np.append(0, np.cumsum(seen.bins.widths))
    feature, cut, left, value = scattering().scatter(
        seen.codes, rows, weight, Y, tries, least, seed, bins.values, starts
    )
    return feature, bins.thresholds(feature, cut, left > 0), left, value


class ForestAtoms(Planted):
    """Frozen forests: an atom is the average of its trees, seen through a link and measured from the offset.

    Parameters
    ----------
    grove : Grove
        Of leaves with means of targets, ``(nodes, k)``; of numbers far from 0 measured from the ensemble's offset.
    offset : Tensor of shape (k,)
        The ensemble's, or 0 where leaves are measured from that.
    bound : Tensor of shape (k,)
    trees : int
        Of each atom.
    link : {"identity", "logit", "log"}
        From means to scores; probabilities are first mixed with those of the offset, so that none is 0.
    """

    repeats = True
    offset: Tensor

    def __init__(self, grove: Grove, offset: Tensor, bound: Tensor, trees: int, link: Link) -> None:
        super().__init__(grove, bound)
        self.trees, self.link = trees, link
        self.register_buffer("offset", offset)

    @property
    def foreign(self) -> str | None:
        return None if type(self) is ForestAtoms else super().foreign

    def stored(self) -> Parts:
        parts = Parts({"trees": self.trees, "link": self.link}, {"offset": self.offset, "bound": self.bound})
        parts.add("grove", self.grove.stored())
        return parts

    @classmethod
    def restored(cls, parts: Parts, inputs: int, bound: Tensor) -> ForestAtoms:
        k, trees, link = len(bound), parts.integer("trees", 1), parts.choice("link", get_args(Link))
        own, offset = parts.finite("bound", k), parts.finite("offset", k)
        stored = parts.within("grove")
        value = stored.tensors.get("value")
        precise = link == "identity" and value is not None and value.dtype == torch.float64
        grove = Grove.restored(stored, inputs, k, torch.float64 if precise else torch.float32)
        if len(grove) % trees:
            raise ValueError(f"{len(grove)} trees are no forests of {trees}")
        if not within(own, bound):
            raise ValueError("the forests can leave the ensemble's bound")
        if link == "logit" and k > 1:
            raise ValueError("the link of two classes stands before several outputs")
        atoms = cls(grove, offset, own, trees, link)
        sound = bool(((grove.value >= 0) & (grove.value <= 1)).all()) and bool((atoms.prior > 0).all())
        if link != "identity" and not sound:
            raise ValueError("the forests' means are no probabilities")
        return atoms

    @property
    def form(self) -> tuple[object, ...]:
        return (
            type(self),
            self.trees,
            self.link,
            self.get_buffer("value").dtype,
            *self.offset.tolist(),
            *self.bound.tolist(),
        )

    def __len__(self) -> int:
        return len(self.get_buffer("size")) // self.trees

    @property
    def prior(self) -> Tensor:
        """The share of every probability that is the offset's, ``(k,)``."""
        return DOUBT * (torch.sigmoid(self.offset) if self.link == "logit" else torch.softmax(self.offset, 0))

    def forward(self, X: Inputs) -> Tensor:
        grove = self.grove
        each = torch.full((len(grove), grove.outputs), 1 / self.trees, dtype=torch.float64, device=self.offset.device)
        mean = dropped(grove, X, each, torch.arange(len(grove)) // self.trees, len(self))
        return (self._scores(mean) - self.offset).clamp(-self.bound, self.bound)

    def _scores(self, mean: Tensor) -> Tensor:
        """Scores of means of targets."""
        if self.link == "identity":
            return mean
        p = (1 - DOUBT) * mean + self.prior
        # beside a class of next to no weight the sum may round to 1, or beyond
        return links.log_odds(p.clamp(max=1 - 2**-53)) if self.link == "logit" else links.centred_log(p)

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        total = torch.zeros(len(X), len(self.bound), dtype=torch.float64, device=X.device)
        # atom by atom: sums of several would be ordered by the number of rows
        for weight, out in zip(weights, self(X), strict=True):
            total += weight * out
        return total

    def select(self, index: Tensor) -> Self:
        trees = (index[:, None] * self.trees + torch.arange(self.trees, device=index.device)).flatten()
        return type(self)(self.grove.select(trees), self.offset, self.bound, self.trees, self.link)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        return cls(Grove.cat([part.grove for part in parts]), first.offset, first.bound, first.trees, first.link)
