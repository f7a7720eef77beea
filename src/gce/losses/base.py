"""The interface of a loss."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce._utils.params import Component

#: Scores and targets of at most this size, and targets of at least its reciprocal, are not what overflows.
_ORDER_1 = 100.0


class NonFiniteError(ValueError, FloatingPointError):
    """A risk, its gradient or Hessian, or a step size is infinite or NaN: a fit cannot go on.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from gce import GCERegressor
    >>> from gce.losses import Loss, NonFiniteError
    >>> class Unstable(Loss):
    ...     def value(self, pred, y):
    ...         return torch.log(torch.cosh(pred - y)).sum(-1)
    >>> try:
    ...     GCERegressor(loss=Unstable()).fit(np.eye(6), 1000.0 * np.arange(6))
    ... except NonFiniteError as error:
    ...     print(str(error).partition(" at ")[0])
    before the first round: the gradient of Unstable() is nan
    """


class Loss(Component):
    """A convex loss of one row's raw scores.

    A subclass needs only ``value``; the other methods have defaults, or are needed by some algorithms alone.

    Attributes
    ----------
    quadratic : bool
        The loss is quadratic in ``pred``, so that a line search has a closed form.
    separable : bool
        The loss is a sum over outputs, so that each output can have a line search of its own.
    has_hessian : bool
        ``hessian_root`` is implemented, so that weights over a finite pool can be found by second-order steps.
    lower_bound : float
        A lower bound on the loss of any row.
    link : {"identity", "log", "logit", "softmax"}
        How means of targets become raw scores, for models that predict means, such as forests.

    Examples
    --------
    A loss of one's own, differentiated automatically:

    >>> import math
    >>> import torch
    >>> from gce.losses import Loss
    >>> class LogCosh(Loss):
    ...     def value(self, pred, y):
    ...         return (torch.logaddexp(pred - y, y - pred) - math.log(2)).sum(-1)
    >>> LogCosh().gradient(torch.tensor([[1.0], [0.0]]), torch.zeros(2, 1))
    tensor([[0.7616],
            [0.0000]])
    """

    quadratic: ClassVar[bool] = False
    separable: ClassVar[bool] = False
    has_hessian: ClassVar[bool] = False
    lower_bound: ClassVar[float] = -math.inf
    link: ClassVar[str] = "identity"

    #: Whether conditional means of numbers and weights (``means``) give the best scores, as forests need.
    has_means = True

    def __init__(self) -> None:
        # without it, signature() would show the arguments of __new__, and scikit-learn reads parameters there
        super().__init__()

    @property
    def outputs_per_target(self) -> int:
        """Raw scores of each number in ``y``, which is repeated for them; more than one for several quantiles."""
        return 1

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        """Loss of each row.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n)
        """
        raise NotImplementedError(f"{type(self).__name__} must define value(pred, y)")

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        """Gradient of each row's loss with respect to its scores.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n, k)
        """
        with torch.enable_grad():
            leaf = pred.detach().requires_grad_()
            value = self.value(leaf, y)
            check_shape(self, "value", value, pred, y)
            (gradient,) = torch.autograd.grad(value.sum(), leaf)
        return gradient

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        """Square root of each row's Hessian ``H``, applied to directions.

        ``sum_r root(d)_r root(e)_r = d' H e`` for each row: the Hessian with respect to the weights of many models is
        then the product of one matrix with its transpose.

        Parameters
        ----------
        pred : Tensor of shape (n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.
        d : Tensor of shape (A, n, k)
            Directions.

        Returns
        -------
        Tensor of shape (A, n, r)
        """
        raise NotImplementedError(f"{type(self).__name__} does not know its curvature")

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        """Diagonal of each row's Hessian.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n, k)
        """
        unit = torch.eye(pred.shape[-1], dtype=pred.dtype, device=pred.device)
        roots = [self.hessian_root(pred, y, e.expand_as(pred)) for e in unit]
        for root in roots:
            check_root(self, root, pred)
        return torch.stack([root.square().sum(-1) for root in roots], -1)

    def majorizer(self, pred: Tensor, y: Tensor) -> Tensor:
        """Curvature of a parabola that oracles minimise in place of the loss, one for each output of a row.

        By default the diagonal of the Hessian. A loss whose second derivative vanishes, so that a step to the minimum
        of its second-order expansion would overshoot, has the curvature of a parabola that is nowhere below it.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n, k)
        """
        return self.curvature(pred, y)

    def step_scale(self, spread: Tensor) -> Tensor:
        """Factors of gradients and majorizers with which the latter are of order 1, whatever the unit of the targets.

        The regularisation of trees is then the same for all losses.

        Parameters
        ----------
        spread : Tensor of shape (k,)
            How far targets are from the offset.

        Returns
        -------
        Tensor of shape (k,)
        """
        return torch.ones_like(spread)

    def smoothed(self, width: float | Tensor) -> Loss | None:
        """Smooth minorant of a loss with a kink.

        Parameters
        ----------
        width : float or Tensor of shape (k,)
            Width of the smoothed kink; the minorant tends to the loss as it tends to 0.

        Returns
        -------
        Loss or None
            A twice differentiable loss that is nowhere above this one; None where this loss is smooth already.
        """
        return None

    def minorant(self, pred: Tensor, y: Tensor) -> Tensor:
        """Value at ``pred`` of an affine minorant with the slope ``gradient(pred, y)``.

        For a convex loss this is the loss itself. A smoothed loss may have a higher affine minorant of the loss that it
        approximates.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.
        y : Tensor of shape (n, k)
            Targets.

        Returns
        -------
        Tensor of shape (..., n)
        """
        return self.value(pred, y)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        """Constant scores with the least weighted loss.

        The default bisects the derivative for each output over the range of ``y``: exact up to rounding for a sum over
        outputs of convex losses with their minimum at ``pred = y``. Other losses override it.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.
        weight : Tensor of shape (n,)
            Sample weights.

        Returns
        -------
        Tensor of shape (k,)
        """
        low, high = y.amin(0), y.amax(0)
        for _ in range(80):
            middle = (low + high) / 2
            gradient = self.gradient(middle.expand_as(y), y)
            check_shape(self, "gradient", gradient, y, y)
            slope = (weight[:, None] * gradient).sum(0)
            low, high = torch.where(slope < 0, middle, low), torch.where(slope < 0, high, middle)
        if not is_finite(slope):
            raise non_finite("gradient", slope, self, middle, y, "before the first round")
        return (low + high) / 2

    def for_targets(self, y: Tensor, weight: Tensor) -> Loss:
        """The loss of a fit to these targets: parameters that are "auto" follow their scale.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.
        weight : Tensor of shape (n,)
            Sample weights.

        Returns
        -------
        Loss
            By default this loss itself.
        """
        return self

    def check_targets(self, y: Tensor) -> None:
        """Refuse targets that the loss is not defined for; by default it is for all numbers.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.

        Raises
        ------
        ValueError
            With the first such target.
        """

    def default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        """Half the width of the hull where the user gives none: 4/3 of the largest distance from the offset.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.
        offset : Tensor of shape (k,)
            The centre of the hull, a raw score.

        Returns
        -------
        Tensor of shape (k,)
        """
        reach = 4 / 3 * (y - offset).abs().amax(0)
        return torch.where(reach > 0, reach, 1.0)

    def move_base(self, y: Tensor, weight: Tensor, base: Tensor) -> tuple[Tensor, Tensor]:
        """Targets and weights with which the loss of ``pred`` is, up to a constant, that of ``pred + base``.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.
        weight : Tensor of shape (n,)
            Sample weights.
        base : Tensor of shape (n, k)
            Raw scores that are added to those of the model.

        Returns
        -------
        y : Tensor of shape (n, k)
        weight : Tensor of shape (n,)

        Raises
        ------
        ValueError
            There are no such targets and weights.
        """
        raise ValueError(f"the loss {type(self).__name__} cannot take base_score: it is for losses of numbers")

    def means(self, y: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Numbers and weights whose mean, through the link, is the best constant score: by default ``y`` itself.

        Parameters
        ----------
        y : Tensor of shape (n, k)
            Targets.
        weight : Tensor of shape (..., n)
            Sample weights.
        """
        return y, weight

    def predict(self, pred: Tensor) -> Tensor:
        """Inverse link: predictions (means or class probabilities) from raw scores.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.

        Returns
        -------
        Tensor of shape (..., n, k)
            Two columns of probabilities where ``k = 1`` and the loss is of two classes.
        """
        return pred

    def log_predict(self, pred: Tensor) -> Tensor:
        """Logarithms of predicted class probabilities.

        Parameters
        ----------
        pred : Tensor of shape (..., n, k)
            Raw scores.

        Returns
        -------
        Tensor of the shape of ``predict(pred)``
        """
        return self.predict(pred).log()

    def lipschitz(self, bound: float) -> float:
        """Lipschitz constant with respect to the scores.

        Parameters
        ----------
        bound : float
            Scores and targets are in ``[-bound, bound]``.

        Returns
        -------
        float
        """
        raise NotImplementedError(f"{type(self).__name__} does not know its Lipschitz constant")

    def smoothness(self, bound: float) -> float:
        """Lipschitz constant of the gradient; infinite where the loss has a kink.

        Parameters
        ----------
        bound : float
            Scores and targets are in ``[-bound, bound]``.

        Returns
        -------
        float
        """
        raise NotImplementedError(f"{type(self).__name__} does not know its smoothness")


def check_shape(loss: Loss, method: str, found: object, pred: Tensor, y: Tensor) -> None:
    """Raise a ValueError if a method of a loss returns no Tensor of the shape that scores ``(..., n, k)`` ask for."""
    one = method == "value"
    expected = tuple(pred.shape[:-1] if one else pred.shape)
    if (shape := _shape(found)) != expected:
        what = "one number for each row (a sum over outputs, such as .sum(-1))" if one else "one number for each score"
        raise ValueError(
            f"{method} of the loss {loss} returned {_described(found, shape)} for scores of shape {tuple(pred.shape)} "
            f"and targets of shape {tuple(y.shape)}: it must return {what}, a torch.Tensor of shape {expected}"
        )


def check_root(loss: Loss, found: object, d: Tensor) -> None:
    """Raise a ValueError if a root of the Hessian has not the rows of the directions ``(..., n, k)``."""
    shape = _shape(found)
    if shape is None or shape[:-1] != tuple(d.shape[:-1]) or len(shape) != d.ndim:
        before = ", ".join(map(str, d.shape[:-1]))
        raise ValueError(
            f"hessian_root of the loss {loss} returned {_described(found, shape)} for directions of shape "
            f"{tuple(d.shape)}: it must return a torch.Tensor of shape ({before}, r), with any r"
        )


def _shape(found: object) -> tuple[int, ...] | None:
    return tuple(found.shape) if isinstance(found, Tensor) else None


def _described(found: object, shape: tuple[int, ...] | None) -> str:
    return f"an object of type {type(found).__name__}" if shape is None else f"shape {shape}"


def is_finite(values: Tensor) -> bool:
    """Whether no value is infinite or NaN."""
    # a sum takes one pass without temporary memory; where it overflows, each number is looked at
    return math.isfinite(float(values.sum())) or bool(values.isfinite().all())


def non_finite(what: str, values: Tensor, loss: Loss, scores: Tensor, y: Tensor, where: str = "") -> NonFiniteError:
    """The error of a fit whose values are infinite or NaN at some scores, with the largest of these."""
    wrong = values[~values.isfinite()].flatten()
    found = f"is {float(wrong[0])}" if len(wrong) else "is too large to be added up"
    score, target = (float(numbers.abs().max()) for numbers in (scores, y))
    if score <= _ORDER_1 and 1 / _ORDER_1 <= target <= _ORDER_1:
        remedy = "write the loss so that it is finite there, for example without log(0) and divisions by 0"
    else:
        remedy = (
            "divide y, so that it is of order 1, give a smaller bound, or write the loss so that it does not overflow"
        )
    return NonFiniteError(
        f"{where + ': ' if where else ''}the {what} of {loss} {found} at scores of up to {score:.6g}, with targets of "
        f"up to {target:.6g}: {remedy}"
    )
