"""Losses, their gradients and Hessians.

Every loss is stateless and works on raw scores ``pred`` of shape ``(..., n, k)`` and targets ``y`` of shape ``(n, k)``
(numbers for regression, 0/1 for two classes, one-hot rows for more). A loss of one's own subclasses :class:`Loss` and
needs only ``value``; its gradient is then computed by automatic differentiation.

Frank-Wolfe's O(1/t) rate assumes a smooth risk. Where ``smoothness`` is infinite (absolute error, pinball, ``q < 2``)
the duality gap still bounds the suboptimality, which needs convexity alone, but convergence is not guaranteed.

Examples
--------
>>> import torch
>>> from gce.losses import Squared
>>> pred, y = torch.tensor([[1.0], [3.0]]), torch.tensor([[0.0], [1.0]])
>>> Squared().value(pred, y)
tensor([1., 4.])
>>> Squared().gradient(pred, y).squeeze()
tensor([2., 4.])
"""

from gce.losses.base import Loss, NonFiniteError
from gce.losses.classification import CrossEntropy, Logistic, LogMixture, MultiLabel, Ordinal
from gce.losses.deviances import Gamma, Poisson, Tweedie
from gce.losses.hazards import Hazards
from gce.losses.quantiles import Quantiles, SoftQuantiles
from gce.losses.regression import Huber, Power, PseudoHuber, Quantile, Squared, weighted_quantile
from gce.losses.residual import ResidualLoss
from gce.losses.smoothed import SoftPower, SoftQuantile

#: Losses of numbers by name.
REGRESSION: dict[str, Loss] = {
    "squared_error": Squared(),
    "absolute_error": Power(1.0),
    "huber": Huber(),
    "pseudo_huber": PseudoHuber(),
    "quantile": Quantile(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "tweedie": Tweedie(),
}

__all__ = [
    "REGRESSION",
    "CrossEntropy",
    "Gamma",
    "Hazards",
    "Huber",
    "LogMixture",
    "Logistic",
    "Loss",
    "MultiLabel",
    "NonFiniteError",
    "Ordinal",
    "Poisson",
    "Power",
    "PseudoHuber",
    "Quantile",
    "Quantiles",
    "ResidualLoss",
    "SoftPower",
    "SoftQuantile",
    "SoftQuantiles",
    "Squared",
    "Tweedie",
    "weighted_quantile",
]
