"""Networks that see each column as several: how far each of its quantiles' bins is filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

import gce
from gce._utils.random import RoundStreams
from gce.bases import Atoms, FitContext, Proposal
from gce.bases.objectives import Objective
from gce.preprocessing.sparse import Inputs

BINS = 8


def edges_of(X: Tensor) -> Tensor:
    """Quantiles of each column, ``(d, BINS + 1)``."""
    return torch.quantile(X.double(), torch.linspace(0, 1, BINS + 1, dtype=torch.float64), dim=0).T


def filled(X: Tensor, edges: Tensor) -> Tensor:
    """Rows ``(n, d)`` as ``(n, d BINS)`` numbers in [-1, 1] (Gorishniy and others, 2022); empty bins are steps."""
    low, width = edges[:, :-1], edges.diff(dim=1).clamp(min=1e-9)
    return (2 * ((X.double()[:, :, None] - low) / width).clamp(0, 1) - 1).flatten(1).to(X.dtype)


class Piecewise(gce.bases.Neural):
    """Networks of such columns."""

    def minimize(
        self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext, last: Atoms | None = None
    ) -> Proposal:
        edges = context.cached((X,), "edges", lambda: edges_of(X[: objective.rows]))
        columns = context.cached((X,), "columns", lambda: filled(X, edges))
        inner = last.inner if isinstance(last, Filled) else None
        proposal = super().minimize(objective, columns, rng=rng, context=context, last=inner)
        return Proposal(Filled(proposal.atoms, edges))


class Filled(Atoms):
    """Atoms behind such columns."""

    def __init__(self, inner: Atoms, edges: Tensor) -> None:
        super().__init__()
        self.inner, self.edges = inner, edges

    @property
    def form(self) -> tuple[object, ...]:
        return type(self), *self.inner.form

    def __len__(self) -> int:
        return len(self.inner)

    def forward(self, X: Inputs) -> Tensor:
        return self.inner(filled(X, self.edges))

    def select(self, index: Tensor) -> Self:
        return type(self)(self.inner.select(index), self.edges)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.inner.scaled(factor), self.edges)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        return cls(type(parts[0].inner).cat([part.inner for part in parts]), parts[0].edges)
