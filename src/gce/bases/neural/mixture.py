"""Points of the simplex as functions of free numbers: how weights are learned beside the atoms they belong to."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Coefficients(Protocol):
    """A map from free numbers ``v`` of shape ``(M, A)`` to weights on the simplex of the same shape."""

    def start(self, atoms: int) -> Tensor:
        """First free numbers of one member, ``(A,)``, whose weights are all ``1/A``."""

    def weights(self, v: Tensor) -> Tensor:
        """Weights, ``(M, A)``: none negative, each row of sum 1 to rounding."""

    def pull(self, v: Tensor, gradient: Tensor) -> Tensor:
        """A gradient in the weights, ``(M, A)``, carried back to ``v``."""


class Absolute:
    """The paper's ``alpha_i = (1/k + |v_i|) / (1 + sum |v|)``.

    No weight falls below ``1 / (k (1 + sum |v|))``: no atom is lost. ``|v|`` has no gradient at 0, where a start would
    never move; from ``v = 1`` weights start equal and all of them move.
    """

    def start(self, atoms: int) -> Tensor:
        return torch.ones(atoms, dtype=torch.float64)

    def weights(self, v: Tensor) -> Tensor:
        size = v.abs()
        return (1 / v.shape[1] + size) / (1 + size.sum(1, keepdim=True))

    def pull(self, v: Tensor, gradient: Tensor) -> Tensor:
        # d alpha_i / d|v_j| = ([i = j] - alpha_i) / (1 + sum |v|)
        total = 1 + v.abs().sum(1, keepdim=True)
        return v.sign() * (gradient - (gradient * self.weights(v)).sum(1, keepdim=True)) / total


class Softmax:
    """``alpha = softmax(v)``: what the paper tried first and found not to work well."""

    def start(self, atoms: int) -> Tensor:
        return torch.zeros(atoms, dtype=torch.float64)

    def weights(self, v: Tensor) -> Tensor:
        return v.softmax(1)

    def pull(self, v: Tensor, gradient: Tensor) -> Tensor:
        alpha = self.weights(v)
        return alpha * (gradient - (gradient * alpha).sum(1, keepdim=True))


COEFFICIENTS: dict[str, Coefficients] = {"absolute": Absolute(), "softmax": Softmax()}
