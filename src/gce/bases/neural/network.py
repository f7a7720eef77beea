"""Bounded networks: ``bound * squash(W2 act(W1 x + b1) + b2)`` and ``bound * tanh(u'x)``.

Many networks are one tensor program. Rows come last (``(nets, units, n)``): sums over rows run along memory, and the
first layer of all networks is one product with the same ``X'``. Gradients are written by hand: three products and two
elementwise passes, which on small data is several times less than what automatic differentiation launches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import is_
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.codecs import Parts
from gce.bases.base import Atoms
from gce.bases.neural import evaluation
from gce.bases.neural.monotone import Shaped, turned
from gce.preprocessing.mixed import Widths
from gce.preprocessing.sparse import Inputs, append_ones, matmul_into, matmul_transposed

Activation = Literal["relu", "tanh"]
Bounded = Literal["hardtanh", "tanh"]
Output = Bounded | Literal["identity"]
Parameters = list[Tensor]

_ROWS_AT_ONCE = 16_384
#: Numbers of a hidden layer that are held at a time while sparse rows are evaluated.
_HIDDEN_AT_ONCE = 1 << 25


def activate(z: Tensor, kind: Activation) -> Tensor:
    """The hidden layer's nonlinearity, in place."""
    return z.relu_() if kind == "relu" else z.tanh_()


def activate_backward(gradient: Tensor, hidden: Tensor, kind: Activation) -> Tensor:
    """Backpropagate a gradient through the hidden layer, in place, from the layer's *output*."""
    if kind == "relu":
        return torch.ops.aten.threshold_backward.grad_input(gradient, hidden, 0, grad_input=gradient)
    return gradient.mul_(1 - hidden.square())


def squash(z: Tensor, kind: Output) -> Tensor:
    """Unit outputs, in [-1, 1] unless they are left as they are."""
    if kind == "identity":
        return z
    return z.clamp(-1, 1) if kind == "hardtanh" else z.tanh()


def squash_backward(gradient: Tensor, z: Tensor, unit: Tensor, kind: Output) -> Tensor:
    """Backpropagate a gradient through the output layer's nonlinearity."""
    if kind == "identity":
        return gradient
    if kind == "hardtanh":
        return torch.ops.aten.hardtanh_backward(gradient, z, -1, 1)
    return gradient * (1 - unit.square())


def rounded_down(bound: Tensor, dtype: torch.dtype) -> Tensor:
    """The bound in a coarser precision, never above itself: an atom must not leave the hull by rounding."""
    near = bound.to(dtype)
    return torch.where(near > bound, torch.nextafter(near, torch.zeros_like(near)), near)


class TwoLayer(Shaped):
    """``nets`` networks with one hidden layer and ``outputs`` outputs each: parameters in, gradients out.

    Parameters are ``W1 (nets, h, d)``, ``b1 (nets, h, 1)``, ``W2 (nets, outputs, h)``, ``b2 (nets, outputs, 1)``. In
    training they are *joined*: rows get a column of ones, and the hidden layer a unit that is always 1, so that biases
    and their gradients come out of the products that are made anyway.

    Parameters
    ----------
    hidden : int
    activation : {"relu", "tanh"}
    output : {"hardtanh", "tanh", "identity"}
        The last is the plain, unbounded network that hulls are compared with.
    gain : float, default=1.0
        Initial size of the first layer, in units of He's.
    """

    def __init__(self, hidden: int, activation: Activation, output: Output, gain: float = 1.0) -> None:
        self.hidden, self.activation, self.output, self.gain = hidden, activation, output, gain

    @property
    def compiled(self) -> bool:
        """Whether compiled loops can train this network; a subclass may mean something else by its layers."""
        return type(self) is TwoLayer and self.output != "identity"

    @property
    def curves(self) -> tuple[str, ...]:
        """Nonlinearities of its layers."""
        return self.activation, self.output

    def shapes(self, d: int, outputs: int) -> list[tuple[int, int]]:
        """Shapes of one network's parameters."""
        return [(self.hidden, d), (self.hidden, 1), (outputs, self.hidden), (outputs, 1)]

    def stored(self) -> dict[str, Any]:
        """As JSON, for a file."""
        about = {"activation": self.activation, "output": self.output}
        return {"hidden": int(self.hidden), **about, "gain": float(self.gain)}

    @classmethod
    def restored(cls, parts: Parts) -> TwoLayer:
        """From a file."""
        activation = parts.choice("activation", ("relu", "tanh"))
        output = parts.choice("output", ("hardtanh", "tanh", "identity"))
        return cls(parts.integer("hidden", 1), activation, output, parts.number("gain"))

    def start(self, d: int, outputs: int, rng: torch.Generator, dtype: torch.dtype) -> Parameters:
        """Initial parameters of one network, for inputs of unit variance."""
        h = self.hidden
        W1 = torch.randn(h, d, generator=rng, dtype=torch.float64) * (self.gain * math.sqrt(2 / max(d, 1)))
        b1 = torch.rand(h, 1, generator=rng, dtype=torch.float64) * 2 - 1
        W2 = torch.randn(outputs, h, generator=rng, dtype=torch.float64) / math.sqrt(h)
        return [p.to(dtype) for p in (W1, b1, W2, torch.zeros(outputs, 1))]

    def _signs(self, parameters: Parameters, inputs: Tensor) -> Parameters:
        """Units push up and down by turns: ``W2`` keeps a unit's sign, ``W1`` that sign times the input's.

        Their product is then of the input's sign, and both nonlinearities rise: every path from the input to every
        output goes its way. Units of one sign alone would make outputs convex, or concave, before they are squashed.
        """
        _, b1, W2, b2 = parameters
        units = torch.ones_like(b1)
        units[:, 1::2] = -1
        return [units * inputs, torch.zeros_like(b1), units.transpose(1, 2).expand_as(W2), torch.zeros_like(b2)]

    def join(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        """Joined parameters ``(nets, h + 1, d + 1)``, ``(nets, outputs, h + 1)``, and masks of what is learned."""
        W1, b1, W2, b2 = parameters
        nets, _, d = W1.shape
        # tanh(20) is 1 to the last bit, as relu(1) is
        unit = W1.new_zeros(nets, 1, d + 1)
        unit[..., -1] = 1.0 if self.activation == "relu" else 20.0
        first = torch.cat([torch.cat([W1, b1], 2), unit], 1)
        second = torch.cat([W2, b2], 2)
        learned = torch.ones_like(first)
        learned[:, -1] = 0
        return [first, second], [learned, torch.ones_like(second)]

    def split(self, joined: Parameters) -> Parameters:
        """Parameters from joined ones."""
        first, second = joined
        parts = (first[:, :-1, :-1], first[:, :-1, -1:], second[..., :-1], second[..., -1:])
        return [p.contiguous() for p in parts]

    def extend(self, X: Inputs) -> Inputs:
        """Rows as joined parameters expect them."""
        return append_ones(X)

    def forward(self, joined: Parameters, X: Inputs) -> tuple[Tensor, list[Tensor]]:
        """Unit outputs ``(nets, outputs, n)`` of extended rows ``X``, and what ``backward`` needs."""
        first, second = joined
        hidden = activate(matmul_transposed(first.flatten(0, 1), X), self.activation).view(*first.shape[:2], -1)
        z = torch.bmm(second, hidden)
        unit = squash(z, self.output)
        return unit, [hidden, z, unit]

    def backward(self, joined: Parameters, kept: list[Tensor], gradient: Tensor, X: Inputs, into: Parameters) -> None:
        """Write the gradients of all joined parameters ``into`` tensors of their shapes."""
        _, second = joined
        hidden, z, unit = kept
        pull = squash_backward(gradient, z, unit, self.output)
        torch.bmm(pull, hidden.transpose(1, 2), out=into[1])
        back = activate_backward(torch.bmm(second.transpose(1, 2), pull), hidden, self.activation)
        matmul_into(back.flatten(0, 1), X, into[0].view(-1, X.shape[1]))


class SingleNeuron(Shaped):
    """``nets`` neurons ``tanh(u'x)`` for each output: the atoms of the paper's Figure 1."""

    #: Nonlinearities of its layers.
    curves: ClassVar[tuple[str, ...]] = ("tanh", "identity")

    def shapes(self, d: int, outputs: int) -> list[tuple[int, int]]:
        return [(outputs, d)]

    def stored(self) -> dict[str, Any]:
        return {}

    @classmethod
    def restored(cls, parts: Parts) -> SingleNeuron:
        return cls()

    def start(self, d: int, outputs: int, rng: torch.Generator, dtype: torch.dtype) -> Parameters:
        u = torch.randn(outputs, d, generator=rng, dtype=torch.float64) / math.sqrt(max(d, 1))
        return [u.to(dtype)]

    def _signs(self, parameters: Parameters, inputs: Tensor) -> Parameters:
        return [inputs.expand_as(parameters[0])]

    def join(self, parameters: Parameters) -> tuple[Parameters, Parameters]:
        return parameters, [torch.ones_like(p) for p in parameters]

    def split(self, joined: Parameters) -> Parameters:
        return joined

    def extend(self, X: Inputs) -> Inputs:
        return X

    def forward(self, joined: Parameters, X: Inputs) -> tuple[Tensor, list[Tensor]]:
        (u,) = joined
        unit = matmul_transposed(u.flatten(0, 1), X).tanh_().view(*u.shape[:2], -1)
        return unit, [unit]

    def backward(self, joined: Parameters, kept: list[Tensor], gradient: Tensor, X: Inputs, into: Parameters) -> None:
        (unit,), (gu,) = kept, into
        matmul_into((gradient * (1 - unit.square())).flatten(0, 1), X, gu.flatten(0, 1))


Architecture = TwoLayer | SingleNeuron

#: Their names in files.
ARCHITECTURES: dict[str, type[TwoLayer] | type[SingleNeuron]] = {"two-layer": TwoLayer, "neuron": SingleNeuron}
_PRECISIONS = {"float64": torch.float64, "float32": torch.float32}


def drawn(
    architecture: Architecture,
    d: int,
    outputs: int,
    streams: Sequence[torch.Generator],
    each: int,
    dtype: torch.dtype,
    device: torch.device,
) -> Parameters:
    """Fresh parameters of ``each`` networks from every stream, of the signs they keep."""
    nets = [architecture.start(d, outputs, own, dtype) for own in streams for _ in range(each)]
    parameters = [torch.stack(column).to(device) for column in zip(*nets, strict=True)]
    signs = architecture.signs(parameters)
    return parameters if signs is None else turned(parameters, signs)


class Networks(Atoms):
    """Frozen networks of one architecture.

    Parameters
    ----------
    architecture : TwoLayer or SingleNeuron
    parameters : list of Tensor
        Leading dimension ``A * models``: an atom is ``models`` networks of ``k / models`` outputs each (1 where one
        network has all outputs, ``k`` where each output has its own network).
    bound : Tensor of shape (k,)
    models : int, default=1
        Networks per atom.

    Examples
    --------
    One network of zeros, which is the zero function:

    >>> import torch
    >>> from gce.bases import Networks
    >>> from gce.bases.neural.network import TwoLayer
    >>> shapes = (1, 2, 3), (1, 2, 1), (1, 1, 2), (1, 1, 1)
    >>> architecture = TwoLayer(hidden=2, activation="relu", output="tanh")
    >>> atoms = Networks(architecture, [torch.zeros(shape) for shape in shapes], bound=torch.ones(1))
    >>> atoms(torch.ones(4, 3)).flatten().tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    bound: Tensor
    #: The bound and the parameters that were evaluated last, ready for compiled loops.
    _served: tuple[list[Tensor], evaluation.Evaluator] | None = None

    def __init__(self, architecture: Architecture, parameters: Parameters, bound: Tensor, models: int = 1) -> None:
        super().__init__()
        self.architecture, self.models = architecture, models
        self._names = [f"p{i}" for i in range(len(parameters))]
        for name, p in zip(self._names, parameters, strict=True):
            self.register_buffer(name, p)
        self.register_buffer("bound", bound)

    @property
    def unstorable_name(self) -> str | None:
        if type(self) is not Networks:
            return super().unstorable_name
        known = type(self.architecture) in ARCHITECTURES.values()
        return None if known else f"a network of type {type(self.architecture).__name__}"

    def stored(self) -> Parts:
        (name,) = (name for name, kind in ARCHITECTURES.items() if type(self.architecture) is kind)
        (precision,) = (name for name, dtype in _PRECISIONS.items() if self.parameters_[0].dtype == dtype)
        meta = {"architecture": name, **self.architecture.stored(), "models": self.models, "precision": precision}
        return Parts(meta, {"bound": self.bound, **dict(zip(self._names, self.parameters_, strict=True))})

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> Networks:
        architecture = ARCHITECTURES[parts.choice("architecture", ARCHITECTURES)].restored(parts)
        dtype = _PRECISIONS[parts.choice("precision", _PRECISIONS)]
        outputs = len(bound)
        models, own = parts.integer("models", 1, outputs), parts.finite("bound", outputs)
        shapes = architecture.shapes(widths.inputs, outputs // models)
        parameters = [parts.finite(f"p{i}", None, *shape, dtype=dtype) for i, shape in enumerate(shapes)]
        networks = {len(p) for p in parameters}
        if models not in (1, outputs) or len(networks) > 1 or networks.pop() % models:
            raise ValueError("the parameters of the networks have inconsistent shapes")
        bounded = isinstance(architecture, SingleNeuron) or architecture.output != "identity"
        if not ((own > 0) & (own <= bound)).all() or not (bounded or bound.isinf().all()):
            raise ValueError("the networks can exceed the bound of the ensemble")
        return cls(architecture, parameters, own, models)

    def restricted(self, inputs: NDArray[np.intp]) -> Networks:
        """The same networks for inputs with the given indices; the weights of all others are 0.

        Parameters
        ----------
        inputs : array of shape (w,)
        """
        first, *others = self.parameters_
        return Networks(self.architecture, [first[..., torch.from_numpy(inputs)], *others], self.bound, self.models)

    def among(self, columns: NDArray[np.intp], inputs: NDArray[np.intp], widths: Widths) -> Networks:
        first, *others = self.parameters_
        # what a network does not look at has weight 0
        wide = first.new_zeros(*first.shape[:-1], widths.inputs)
        wide[..., torch.from_numpy(inputs).to(wide.device)] = first
        return Networks(self.architecture, [wide, *others], self.bound, self.models)

    @property
    def parameters_(self) -> Parameters:
        """The weights and biases of all networks."""
        return [getattr(self, name) for name in self._names]

    @property
    def form(self) -> tuple[object, ...]:
        shapes = tuple(tuple(p.shape[1:]) for p in self.parameters_)
        kind = type(self.architecture), tuple(vars(self.architecture).items())
        return type(self), kind, shapes, self.parameters_[0].dtype, self.models, *self.bound.tolist()

    def __len__(self) -> int:
        return len(self.parameters_[0]) // self.models

    def _evaluator(self, X: Inputs) -> evaluation.Evaluator | None:
        """The networks for compiled loops; None where tensor operations evaluate them."""
        if type(self.architecture) not in ARCHITECTURES.values() or not evaluation.serve(X):
            return None
        # the buffers change with the device and the precision
        parameters, curves = self.parameters_, self.architecture.curves
        own = [self.bound, *parameters]
        if self._served is None or not all(map(is_, self._served[0], own)):
            if isinstance(self.architecture, SingleNeuron):
                parameters = [*parameters, parameters[0].new_zeros(*parameters[0].shape[:2], 1)]
            bound = rounded_down(self.bound, parameters[0].dtype)
            self._served = own, evaluation.Evaluator(parameters, curves, bound, self.models)
        return self._served[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_served": None}

    def forward(self, X: Inputs) -> Tensor:
        if isinstance(X, Tensor) and (evaluator := self._evaluator(X)):
            return evaluator.outputs(X)
        parameters = self.parameters_
        dtype = parameters[0].dtype
        bound = rounded_down(self.bound, dtype)
        out = X.new_empty(len(self), len(X), len(bound), dtype=dtype)
        joined, _ = self.architecture.join(parameters)
        for first in range(0, len(X), _ROWS_AT_ONCE):
            block = slice(first, first + _ROWS_AT_ONCE)
            unit, _ = self.architecture.forward(joined, self.architecture.extend(X[block].to(dtype)))
            out[:, block] = unit.reshape(len(self), len(bound), -1).transpose(1, 2) * bound
        return out

    def rows_at_once(self, X: Inputs) -> int:
        fewest = super().rows_at_once(X)
        if isinstance(X, Tensor):
            return fewest
        # wide first layers are transposed again for every block of sparse rows
        units = self.parameters_[0].numel() // max(X.shape[1], 1)
        return min(_ROWS_AT_ONCE, max(fewest, _HIDDEN_AT_ONCE // units))

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        evaluator = self._evaluator(X)
        if evaluator is None:
            return super().mix(X, weights)
        wide = weights.expand(-1, len(self.bound)).contiguous()
        if isinstance(X, Tensor):
            return evaluator.mixture(X, wide)
        return torch.cat([evaluator.mixture(block, wide) for block in X.split(self.rows_at_once(X))])

    def select(self, index: Tensor) -> Self:
        parts = [p.unflatten(0, (-1, self.models))[index].flatten(0, 1) for p in self.parameters_]
        return type(self)(self.architecture, parts, self.bound, self.models)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        columns = zip(*(part.parameters_ for part in parts), strict=True)
        return cls(first.architecture, [torch.cat(column) for column in columns], first.bound, first.models)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.architecture, self.parameters_, factor * self.bound, self.models)
