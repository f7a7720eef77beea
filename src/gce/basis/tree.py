"""Regression trees as atoms: grown on the quadratic model of an objective, columns coded once a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce import native
from gce.basis.base import Habit
from gce.basis.coded import Coded, Rows
from gce.basis.planted import Planted, dropped, within
from gce.objectives import Model, Objective
from gce.parameters import Rules, check_parameters, count
from gce.parameters import within as between
from gce.parts import Parts
from gce.rows import Inputs
from gce.streams import RoundStreams
from gce.trees import Grove

Grown = tuple[NDArray[Any], ...]

#: Where all rows are learned from, nobody asks what they hold.
_UNNAMED = np.empty(0, np.uint64)
#: Levels of a symmetric tree, which has room for two to that many leaves from the start.
_MOST_LEVELS = 16


def growing() -> ModuleType:
    """The growers, which take a moment to load."""
    return import_module("gce.trees.growing")


class Tree(Coded):
    """Regression trees of a few leaves, one an output.

    A tree lowers the quadratic model of what it is asked for, ``sum D g + g^2 H / 2``, leaf by leaf, the most useful
    cut first. Where only its direction counts, its leaves are then stretched until the largest reaches the bound.

    Parameters
    ----------
    leaves : int, default=31
        At most.
    depth : int, default=64
        At most.
    least : float, default=20
        Rows in a leaf, at least.
    l2 : float, default=1.0
        Rows without a slope that each leaf has beside its own: small leaves say less.
    columns : float, default=1.0
        Share of the columns that a tree may cut, drawn anew for each.
    rows : float, default=1.0
        Share of the rows that an atom learns from, drawn anew for each.
    codes : int, default=256
        Into how many parts a column is cut beforehand, at most.
    shrinkage : float, default=0.1
        What is taken of a step, where algorithm and limits are left to the class: the shorter the steps, the more there
        may be of them.
    """

    parameter_rules: ClassVar[Rules] = {
        "l2": between(0, np.inf, "[)"),
        "columns": between(0, 1, "(]"),
        "rows": between(0, 1, "(]"),
        "shrinkage": between(1e-6, 1),
    }

    def __init__(
        self,
        leaves: int = 31,
        depth: int = 64,
        least: float = 20,
        l2: float = 1.0,
        columns: float = 1.0,
        rows: float = 1.0,
        codes: int = 256,
        shrinkage: float = 0.1,
    ) -> None:
        self.leaves = leaves
        self.depth = depth
        self.least = least
        self.l2 = l2
        self.columns = columns
        self.rows = rows
        self.codes = codes
        self.shrinkage = shrinkage

    @property
    def habit(self) -> Habit:
        check_parameters(self)
        return Habit(
            "boosting", calls=round(50 / self.shrinkage), patience=round(3 / self.shrinkage), shrinkage=self.shrinkage
        )

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> TreeAtoms:
        check_parameters(self)
        model, seen = objective.model, self.coded(X)
        names = seen.names if self.rows < 1 else _UNNAMED
        slope, bend = (np.ascontiguousarray(t.cpu().numpy()) for t in (model.slope, model.bend))
        leaf = np.empty((len(slope), slope.shape[2], seen.codes.shape[1]), np.int32)
        jobs = []
        for m, unit in enumerate((model.unit / self.rows).tolist()):
            key, columns = self._drawn(len(seen.codes), slope.shape[2], rng, m)
            rows = growing().chosen(bend[m], names, key, self.rows)
            # rows are counted by their share of H, and a row without a slope bends as much as the others do on average
            asked = seen.codes, rows, slope[m], bend[m]
            limits = seen.bins.widths, self.least * unit, self.l2 * unit
            jobs += [partial(self._grow, *asked, j, own, *limits, leaf[m, j]) for j, own in enumerate(columns)]
        worth = 1 + slope.size * len(seen.codes) // growing().WORTH_A_THREAD
        with native.workers(min(native.threads(), len(jobs), worth)) as run:
            return self._atoms(objective, model, seen, run(jobs), leaf)

    def _drawn(self, d: int, outputs: int, rng: RoundStreams, m: int) -> tuple[np.uint64, list[NDArray[np.int64]]]:
        """A key to rows, and the columns that the tree of each output may cut."""
        count = min(d, max(1, round(self.columns * d)))
        if count == d and self.rows == 1:
            return np.uint64(0), [np.arange(d)] * outputs
        drawn = torch.randint(2**62, (1 + outputs * d,), generator=rng.members[m]).numpy()
        lowest = np.argsort(drawn[1:].reshape(outputs, d), axis=1)[:, :count]
        return np.uint64(drawn[0]), list(np.sort(lowest, 1))

    def _grow(self, *what: Any) -> Grown:
        """One tree: feature, cut, left, value."""
        return growing().grow(*what, self.leaves, self.depth)

    def _atoms(
        self, objective: Objective, model: Model, seen: Rows, trees: list[Grown], leaf: NDArray[np.int32]
    ) -> TreeAtoms:
        """Trees in units of the bound, an atom of ``k`` trees a member."""
        members, k, rows = leaf.shape
        bound, sizes = objective.bound.cpu().numpy(), np.array([len(tree[0]) for tree in trees])
        feature, cut, left, value = map(np.concatenate, zip(*trees, strict=True))
        # a leaf whose rows have neither a slope nor a bend (0 / 0) says nothing
        np.nan_to_num(value, copy=False)
        value /= np.repeat(np.tile(bound, members), sizes)
        ends, length = np.cumsum(sizes), np.ones(members)
        if model.free:
            # one step serves all outputs of an atom: the farthest leaf of all reaches its bound
            farthest = np.maximum.reduceat(np.abs(value), (ends - sizes)[::k])
            length = np.where(farthest > 0, farthest, 1.0)
        value = np.clip(value / np.repeat(length, sizes.reshape(members, k).sum(1)), -1, 1)
        known = np.empty((members, rows, k))
        for i, own in enumerate(np.split(value, ends[:-1])):
            np.take(bound[i % k] * own, leaf[i // k, i % k], out=known[i // k, :, i % k], mode="clip")
        parts = sizes, feature, seen.bins.thresholds(feature, cut, left > 0), left, value[:, None]
        device = objective.bound.device
        atoms = TreeAtoms(Grove(*map(torch.from_numpy, parts)), objective.bound.cpu()).to(device)
        atoms.known = seen.X, torch.from_numpy(known).to(device)
        atoms.length = torch.from_numpy(length).to(device) if model.free else None
        # outputs on the rows of the fit are asked for in the round that made them, and in no other
        if (last := getattr(self, "_last", None)) is not None:
            last.known = None
        self._last = atoms
        return atoms


class SymmetricTree(Tree):
    """Trees with one cut for all nodes of a level: stiffer than others of their depth, which suits few rows.

    Parameters
    ----------
    depth : int, default=5
        Levels; leaves are two to that.
    least, l2, columns, rows, codes, shrinkage
        As in :class:`Tree`.
    """

    parameter_rules: ClassVar[Rules] = {"depth": count(1, _MOST_LEVELS)}

    def __init__(
        self,
        depth: int = 5,
        least: float = 1,
        l2: float = 3.0,
        columns: float = 1.0,
        rows: float = 1.0,
        codes: int = 128,
        shrinkage: float = 0.1,
    ) -> None:
        self.depth = depth
        self.least = least
        self.l2 = l2
        self.columns = columns
        self.rows = rows
        self.codes = codes
        self.shrinkage = shrinkage

    @property
    def leaves(self) -> int:  # type: ignore[override]
        return 2**self.depth

    def _grow(self, *what: Any) -> Grown:
        return growing().grow_level(*what, self.depth)


class TreeAtoms(Planted):
    """Frozen trees: an atom is ``k`` of them, one an output, with leaves in units of the bound.

    Parameters
    ----------
    grove : Grove
        Of leaves with one number each, in [-1, 1].
    bound : Tensor of shape (k,)
    """

    @property
    def foreign(self) -> str | None:
        return None if type(self) is TreeAtoms else super().foreign

    def stored(self) -> Parts:
        parts = Parts({}, {"bound": self.bound})
        parts.add("grove", self.grove.stored())
        return parts

    @classmethod
    def restored(cls, parts: Parts, inputs: int, bound: Tensor) -> TreeAtoms:
        grove = Grove.restored(parts.within("grove"), inputs, 1, torch.float64)
        own = parts.finite("bound", len(bound))
        if len(grove) % len(bound):
            raise ValueError(f"{len(grove)} trees cannot be divided among {len(bound)} outputs")
        if not within(own, bound) or grove.value.abs().max() > 1:
            raise ValueError("the trees can leave the ensemble's bound")
        return cls(grove, own)

    @property
    def form(self) -> tuple[object, ...]:
        return type(self), *self.bound.tolist()

    def __len__(self) -> int:
        return len(self.get_buffer("size")) // len(self.bound)

    def forward(self, X: Inputs) -> Tensor:
        if self.known is not None and self.known[0] is X:
            return self.known[1]
        each = self.bound.repeat(len(self))[:, None]
        outs = dropped(self.grove, X, each, torch.arange(len(each)), len(each))
        return outs.view(len(self), len(self.bound), len(X)).transpose(1, 2)

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        k = len(self.bound)
        each = (weights * self.bound).expand(len(self), k).reshape(-1, 1)
        return dropped(self.grove, X, each, torch.arange(len(each)) % k, k)[..., 0].T

    def select(self, index: Tensor) -> Self:
        k = len(self.bound)
        trees = (index[:, None] * k + torch.arange(k, device=index.device)).flatten()
        return type(self)(self.grove.select(trees), self.bound)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        return cls(Grove.cat([part.grove for part in parts]), parts[0].bound)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.grove, factor * self.bound)
