"""Signs that the parameters of monotone networks keep."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class InputLimits:
    """What networks may not do with their inputs.

    Parameters
    ----------
    signs : tuple of int
        One of -1, 0, 1 per input; empty where all are unconstrained.
    groups : array of shape (d, W), optional
        The sets of inputs that may interact, one bit each. Default: all may.
    """

    signs: tuple[int, ...] = ()
    groups: NDArray[np.uint64] | None = None

    def of(self, inputs: NDArray[np.intp]) -> InputLimits:
        """Those of some inputs."""
        signs = tuple(self.signs[i] for i in inputs) if self.signs else ()
        return InputLimits(signs, None if self.groups is None else self.groups[inputs])


class Shaped:
    """Networks that may be monotone: increasing (1) or decreasing (-1) in some inputs, unconstrained (0) in others.

    Every parameter then keeps a sign, or is free: training starts from parameters :func:`turned` to their signs, and
    each step ends with a zero for every parameter that left its own.
    """

    #: One of -1, 0, 1 per input; empty where all are unconstrained.
    inputs: tuple[int, ...] = ()

    def monotone(self, inputs: Sequence[int]) -> Self:
        """The same networks, monotone in the inputs that are not 0."""
        other = self.free
        if any(inputs):
            other.inputs = tuple(inputs)
        return other

    @property
    def free(self) -> Self:
        """The same networks without signs to keep: what is trained and frozen keeps them by itself."""
        other = copy(self)
        vars(other).pop("inputs", None)
        return other

    def signs(self, parameters: list[Tensor]) -> list[Tensor] | None:
        """The sign each parameter keeps, 0 for any, in their shapes; None where all are free."""
        return self._signs(parameters, parameters[0].new_tensor(self.inputs)) if self.inputs else None

    def _signs(self, parameters: list[Tensor], inputs: Tensor) -> list[Tensor]:
        raise NotImplementedError


def turned(parameters: list[Tensor], signs: list[Tensor]) -> list[Tensor]:
    """Drawn parameters of the signs they keep.

    In the input layer those of the wrong sign are 0, so that units look at different inputs at first: turned around,
    all units would look the same way. Later layers are turned around: a unit that nobody listens to learns nothing.
    """
    (first, *later), (kept, *others) = parameters, signs
    around = [torch.where(sign == 0, p, p.abs() * sign) for p, sign in zip(later, others, strict=True)]
    return [first.masked_fill(first * kept < 0, 0.0), *around]
