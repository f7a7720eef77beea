"""Forests of deep trees: one atom each, because a tree that repeats its training rows would take all the weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce import native
from gce.basis.base import Atoms, Habit
from gce.basis.tree import Coded, Grown, dense
from gce.losses import CrossEntropy, Logistic, Loss
from gce.objectives import Joint, Objective
from gce.rows import Inputs
from gce.streams import RoundStreams
from gce.trees import Bins, Grove

Link = Literal["identity", "logit", "log"]

#: The share of a forest's answer that is taken from the classes' frequencies: no class has a probability of 0.
_DOUBT = 0.01


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
    """

    habit: ClassVar[Habit] = Habit("nonlinear", "2/(t+1)", calls=1)

    def __init__(self, trees: int = 50, tries: float | None = None, least: float = 1, spread: bool = True) -> None:
        self.trees = trees
        self.tries = tries
        self.least = least
        self.spread = spread

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> ForestAtoms:
        if self.trees < 1 or self.least < 0 or (self.tries is not None and not 0 < self.tries <= 1):
            raise ValueError(f"Forest needs trees >= 1, least >= 0 and tries in (0, 1] or None, got {self!r}")
        if not isinstance(objective, Joint):
            raise ValueError("a Forest learns from targets: use algorithm='nonlinear', or 'auto'")
        risk, (bins, codes) = objective.risk, self.coded(X)
        link = _link(risk.loss)
        y = risk.y.cpu().numpy()
        tries = self._tries(len(codes), link)
        jobs = []
        for m, generator in enumerate(rng.members):
            weight, unit = risk.weight[m].cpu().numpy(), float(risk.unit[m])
            rows = np.flatnonzero(weight).astype(np.uint32)
            seeds = torch.randint(2**62, (self.trees,), generator=generator).tolist()
            own = weight[rows] / unit, np.ascontiguousarray(y[rows])
            jobs += [partial(_grown, bins, codes, rows, *own, tries, self.least, seed, self.spread) for seed in seeds]
        with native.workers(min(native.threads(), len(jobs))) as run:
            grove = Grove.of(run(jobs), torch.float32)
        offset, reach = risk.offset.cpu(), objective.bound.cpu()
        if link != "identity":
            # the farthest a score can be from the offset
            reach = offset.abs() + abs(math.log(_DOUBT)) + offset.exp().sum().log().abs() + 1
        return ForestAtoms(grove, offset, reach, self.trees, link).to(objective.bound.device)

    def _tries(self, d: int, link: Link) -> int:
        if self.tries is not None:
            return max(1, round(self.tries * d))
        return d if link == "identity" else max(1, round(math.sqrt(d)))


def _link(loss: Loss) -> Link:
    """How means of targets become scores."""
    if isinstance(loss, Logistic):
        return "logit"
    return "log" if isinstance(loss, CrossEntropy) else "identity"


def _grown(
    bins: Bins,
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    weight: NDArray[np.float64],
    Y: NDArray[np.float64],
    tries: int,
    least: float,
    seed: int,
    spread: bool,
) -> Grown:
    """One tree: feature, threshold, left, value."""
    from gce.trees import growing

    starts = np.append(0, np.cumsum(bins.widths))
    values = bins.values if spread else np.zeros(0)
    feature, cut, left, value = growing.scatter(codes, rows, weight, Y, tries, least, seed, values, starts)
    return feature, bins.thresholds(feature, cut, left > 0), left, value


class ForestAtoms(Atoms):
    """Frozen forests: an atom is the average of its trees, seen through a link and measured from the offset.

    Parameters
    ----------
    grove : Grove
        Of leaves with means of targets, ``(nodes, k)``.
    offset, bound : Tensor of shape (k,)
    trees : int
        Of each atom.
    link : {"identity", "logit", "log"}
        From means to scores; probabilities are first mixed with those of the offset, so that none is 0.
    """

    offset: Tensor
    bound: Tensor

    def __init__(self, grove: Grove, offset: Tensor, bound: Tensor, trees: int, link: Link) -> None:
        super().__init__()
        self.trees, self.link = trees, link
        for name, value in {**vars(grove), "offset": offset, "bound": bound}.items():
            self.register_buffer(name, value)

    @property
    def grove(self) -> Grove:
        return Grove(*(self.get_buffer(name) for name in ("size", "feature", "threshold", "left", "value")))

    @property
    def foreign(self) -> str | None:
        return None if type(self) is ForestAtoms else super().foreign

    @property
    def form(self) -> tuple[object, ...]:
        return type(self), self.trees, self.link

    def __len__(self) -> int:
        return len(self.get_buffer("size")) // self.trees

    def forward(self, X: Inputs) -> Tensor:
        grove = self.grove
        each = torch.full((len(grove), grove.outputs), 1 / self.trees, dtype=torch.float64, device=self.offset.device)
        mean = grove.summed(dense(X), each, self.trees)
        if self.link == "logit":
            p = (1 - _DOUBT) * mean + _DOUBT * torch.sigmoid(self.offset)
            scores = torch.log(p) - torch.log1p(-p)
        elif self.link == "log":
            scores = torch.log((1 - _DOUBT) * mean + _DOUBT * torch.softmax(self.offset, 0))
            scores = scores - scores.mean(-1, keepdim=True)
        else:
            scores = mean
        return (scores - self.offset).clamp(-self.bound, self.bound)

    def select(self, index: Tensor) -> Self:
        trees = (index[:, None] * self.trees + torch.arange(self.trees, device=index.device)).flatten()
        return type(self)(self.grove.select(trees), self.offset, self.bound, self.trees, self.link)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        return cls(Grove.cat([part.grove for part in parts]), first.offset, first.bound, first.trees, first.link)
