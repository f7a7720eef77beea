"""Losses: what one row costs, and how that cost changes with the score.

Every loss is stateless and works on raw scores ``pred`` of shape ``(..., n, k)`` against targets ``y`` of shape
``(n, k)`` (numbers for regression, 0/1 for two classes, one-hot rows for more). A user's own loss subclasses
:class:`Loss` and needs only ``value``; its gradient then comes from automatic differentiation.

Frank-Wolfe's O(1/t) rate asks for a smooth risk. Where ``smoothness`` is infinite (absolute error, pinball,
``q < 2``) the duality gap still bounds the suboptimality, because that needs convexity alone, but convergence of the
iterates is not claimed.
"""

from gce.losses.base import Loss, ResidualLoss
from gce.losses.classes import CrossEntropy, Logistic, LogMixture
from gce.losses.numbers import REGRESSION, Power, PseudoHuber, Quantile, Squared, weighted_quantile
from gce.losses.softened import SoftPower, SoftQuantile

__all__ = [
    "REGRESSION",
    "CrossEntropy",
    "LogMixture",
    "Logistic",
    "Loss",
    "Power",
    "PseudoHuber",
    "Quantile",
    "ResidualLoss",
    "SoftPower",
    "SoftQuantile",
    "Squared",
    "weighted_quantile",
]
