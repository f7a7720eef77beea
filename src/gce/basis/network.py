"""Bounded networks: ``bound * squash(W2 act(W1 x + b1) + b2)`` and ``bound * tanh(u'x)``.

Many networks are one tensor program. Rows come last (``(nets, units, n)``): sums over rows run along memory, and the
first layer of all networks is one product with the same ``X'``. Gradients are written by hand: three products and two
elementwise passes, which on small data is several times less than what automatic differentiation launches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Self

import torch
from torch import Tensor

from gce.basis.base import Atoms

Activation = Literal["relu", "tanh"]
Output = Literal["hardtanh", "tanh"]
Parameters = list[Tensor]

_ROWS_AT_ONCE = 16_384


def activate(z: Tensor, kind: Activation) -> Tensor:
    """The hidden layer's nonlinearity, in place."""
    return z.relu_() if kind == "relu" else z.tanh_()


def activate_slope(slope: Tensor, hidden: Tensor, kind: Activation) -> Tensor:
    """Carry a slope back through the hidden layer, in place, from the layer's *output*."""
    if kind == "relu":
        return torch.ops.aten.threshold_backward.grad_input(slope, hidden, 0, grad_input=slope)
    return slope.mul_(1 - hidden.square())


def squash(z: Tensor, kind: Output) -> Tensor:
    """Unit outputs in [-1, 1]."""
    return z.clamp(-1, 1) if kind == "hardtanh" else z.tanh()


def squash_slope(slope: Tensor, z: Tensor, unit: Tensor, kind: Output) -> Tensor:
    """Carry a slope back through the output, from its input and output."""
    if kind == "hardtanh":
        return torch.ops.aten.hardtanh_backward(slope, z, -1, 1)
    return slope * (1 - unit.square())


def rounded_down(bound: Tensor, dtype: torch.dtype) -> Tensor:
    """The bound in a coarser precision, never above itself: an atom must not leave the hull by rounding."""
    near = bound.to(dtype)
    return torch.where(near > bound, torch.nextafter(near, torch.zeros_like(near)), near)


class TwoLayer:
    """``nets`` networks with one hidden layer and ``outputs`` outputs each: parameters in, slopes out."""

    def __init__(self, hidden: int, activation: Activation, output: Output) -> None:
        self.hidden, self.activation, self.output = hidden, activation, output

    def start(self, d: int, outputs: int, rng: torch.Generator, dtype: torch.dtype) -> Parameters:
        """Initial parameters of one network, for inputs of unit variance."""
        h = self.hidden
        W1 = torch.randn(h, d, generator=rng, dtype=torch.float64) * math.sqrt(2 / max(d, 1))
        b1 = torch.rand(h, 1, generator=rng, dtype=torch.float64) * 2 - 1
        W2 = torch.randn(outputs, h, generator=rng, dtype=torch.float64) / math.sqrt(h)
        return [p.to(dtype) for p in (W1, b1, W2, torch.zeros(outputs, 1))]

    def forward(self, parameters: Parameters, XT: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Unit outputs ``(nets, outputs, n)`` of rows ``XT`` of shape ``(d, n)``, and what ``backward`` needs."""
        W1, b1, W2, b2 = parameters
        nets, h, d = W1.shape
        z = torch.addmm(b1.reshape(nets * h, 1), W1.reshape(nets * h, d), XT)
        hidden = activate(z, self.activation).view(nets, h, -1)
        z2 = torch.baddbmm(b2, W2, hidden)
        unit = squash(z2, self.output)
        return unit, [hidden, z2, unit]

    def backward(self, parameters: Parameters, kept: list[Tensor], slope: Tensor, X: Tensor, into: Parameters) -> None:
        """Write the slopes of all parameters ``into`` tensors of their shapes."""
        _, _, W2, _ = parameters
        gW1, gb1, gW2, gb2 = into
        hidden, z2, unit = kept
        dz2 = squash_slope(slope, z2, unit, self.output)
        torch.bmm(dz2, hidden.transpose(1, 2), out=gW2)
        torch.sum(dz2, 2, keepdim=True, out=gb2)
        dz = activate_slope(torch.bmm(W2.transpose(1, 2), dz2), hidden, self.activation)
        torch.mm(dz.flatten(0, 1), X, out=gW1.view(-1, X.shape[1]))
        torch.sum(dz, 2, keepdim=True, out=gb1)


class SingleNeuron:
    """``nets`` neurons ``tanh(u'x)`` for each output: the atoms of the paper's Figure 1."""

    def start(self, d: int, outputs: int, rng: torch.Generator, dtype: torch.dtype) -> Parameters:
        u = torch.randn(outputs, d, generator=rng, dtype=torch.float64) / math.sqrt(max(d, 1))
        return [u.to(dtype)]

    def forward(self, parameters: Parameters, XT: Tensor) -> tuple[Tensor, list[Tensor]]:
        (u,) = parameters
        unit = (u.reshape(-1, u.shape[2]) @ XT).tanh_().view(*u.shape[:2], -1)
        return unit, [unit]

    def backward(self, parameters: Parameters, kept: list[Tensor], slope: Tensor, X: Tensor, into: Parameters) -> None:
        (unit,), (gu,) = kept, into
        torch.mm((slope * (1 - unit.square())).flatten(0, 1), X, out=gu.view(-1, X.shape[1]))


Architecture = TwoLayer | SingleNeuron


class Networks(Atoms):
    """Frozen networks of one architecture.

    Parameters
    ----------
    architecture : TwoLayer or SingleNeuron
    parameters : list of Tensor
        Leading dimension ``A * models``: an atom is ``models`` networks of ``k / models`` outputs each (1 where one
        network has all outputs, ``k`` where each output has a network of its own).
    bound : Tensor of shape (k,)
    models : int
    """

    bound: Tensor

    def __init__(self, architecture: Architecture, parameters: Parameters, bound: Tensor, models: int = 1) -> None:
        super().__init__()
        self.architecture, self.models = architecture, models
        self._names = [f"p{i}" for i in range(len(parameters))]
        for name, p in zip(self._names, parameters, strict=True):
            self.register_buffer(name, p)
        self.register_buffer("bound", bound)

    @property
    def parameters_(self) -> Parameters:
        return [getattr(self, name) for name in self._names]

    def __len__(self) -> int:
        return len(self.parameters_[0]) // self.models

    def forward(self, X: Tensor) -> Tensor:
        parameters = self.parameters_
        X = X.to(parameters[0].dtype)
        out = X.new_empty(len(self), len(X), len(self.bound))
        bound = rounded_down(self.bound, X.dtype)
        for first in range(0, len(X), _ROWS_AT_ONCE):
            block = slice(first, first + _ROWS_AT_ONCE)
            unit, _ = self.architecture.forward(parameters, X[block].T)
            out[:, block] = unit.reshape(len(self), len(bound), -1).transpose(1, 2) * bound
        return out

    def select(self, index: Tensor) -> Self:
        parts = [p.unflatten(0, (-1, self.models))[index].flatten(0, 1) for p in self.parameters_]
        return type(self)(self.architecture, parts, self.bound, self.models)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        columns = zip(*(part.parameters_ for part in parts), strict=True)
        return cls(first.architecture, [torch.cat(column) for column in columns], first.bound, first.models)
