"""Losses that are functions of the residual."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from gce.losses.base import Loss


class ResidualLoss(Loss):
    """A loss ``phi(pred - y)``, averaged over outputs.

    A subclass defines ``phi``, ``derivative`` and, where it has one, ``second_derivative``.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import ResidualLoss
    >>> class Quartic(ResidualLoss):
    ...     def phi(self, residual):
    ...         return residual**4
    ...     def derivative(self, residual):
    ...         return 4 * residual**3
    >>> Quartic().value(torch.tensor([[2.0, 0.0]]), torch.zeros(1, 2))
    tensor([8.])
    """

    separable: ClassVar[bool] = True

    def phi(self, residual: Tensor) -> Tensor:
        """Loss of residuals ``pred - y`` of any shape, elementwise.

        Parameters
        ----------
        residual : Tensor
            Residuals ``pred - y`` of any shape.
        """
        raise NotImplementedError

    def derivative(self, residual: Tensor) -> Tensor:
        """First derivative of ``phi``, elementwise.

        Parameters
        ----------
        residual : Tensor
            Residuals ``pred - y`` of any shape.
        """
        raise NotImplementedError

    def second_derivative(self, residual: Tensor) -> Tensor:
        """Second derivative of ``phi``, elementwise.

        Parameters
        ----------
        residual : Tensor
            Residuals ``pred - y`` of any shape.
        """
        raise NotImplementedError(f"{type(self).__name__} does not know its curvature")

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        return self.curvature(pred, y).sqrt() * d

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.second_derivative(pred - y) / y.shape[-1]

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        loss = self.phi(pred - y)
        return loss[..., 0] if y.shape[-1] == 1 else loss.mean(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        return self.derivative(pred - y) / y.shape[-1]

    def move_base(self, y: Tensor, weight: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
        return y - base, weight
