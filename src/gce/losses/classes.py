"""Losses of classes: of raw scores, and of mixed probabilities."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce import links
from gce.losses.base import Loss


class Logistic(Loss):
    """``log(1 + exp(-+f))`` for two classes coded 0 and 1, one score: the log-odds of class 1."""

    separable: ClassVar[bool] = True
    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        # log(1 + exp(f)) - y f, without the digits that it loses where both are large
        return (pred.clamp(min=0) - y * pred + (-pred.abs()).exp().log1p()).sum(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - y, without the digits that it loses where p is close to y
        less = torch.sigmoid(-pred.abs())
        return torch.where(pred >= 0, (1 - y) - less, less - y)

    def root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        return self.curvature(pred, y).sqrt() * d

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        less = torch.sigmoid(-pred.abs())
        return less * (1 - less)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        one = (weight[:, None] * y).sum(0)
        other = weight.sum() - one
        # beside a class of nearly all the weight the difference has lost its digits, or is 0
        other = torch.where(other > 1e-6 * one, other, (weight[:, None] * (1 - y)).sum(0))
        return torch.log(one) - torch.log(other)

    def predict(self, pred: Tensor) -> Tensor:
        return links.sigmoid(pred)

    def log_predict(self, pred: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(torch.cat([-pred, pred], -1))

    def lipschitz(self, bound: float) -> float:
        return 1.0

    def smoothness(self, bound: float) -> float:
        return 0.25


class CrossEntropy(Loss):
    """``log sum_j exp(f_j) - f_y`` for three classes or more, a score a class; targets are one-hot.

    Its constants are those of the Euclidean norm: the gradient ``p - e_y`` has length at most sqrt(2), and the
    Hessian ``diag(p) - pp'`` no eigenvalue above 1/2.
    """

    curved: ClassVar[bool] = True
    least: ClassVar[float] = 0.0

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        # log sum exp(f - f_y), its largest term apart: where that is the true class's, log(1 + the others) keeps digits
        scores = pred - (y * pred).sum(-1, keepdim=True)
        top, place = scores.max(-1, keepdim=True)
        others = (scores - top).exp().scatter(-1, place, 0.0).sum(-1)
        return top[..., 0] + torch.log1p(others)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - e_y, without the digits that it loses where p is close to e_y: there it is what the other classes have
        others = (1 - y) * torch.softmax(pred, -1)
        return others - y * others.sum(-1, keepdim=True)

    def root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        # diag(p) - pp' = L L' with L = diag(sqrt p) - p sqrt(p)', because p sums to 1
        p = torch.softmax(pred, -1)
        return p.sqrt() * (d - (p * d).sum(-1, keepdim=True))

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        p = torch.softmax(pred, -1)
        return p * (1 - p)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        # the scores are free up to one number: centred, they ask least of the bound
        log_prior = torch.log((weight[:, None] * y).sum(0) / weight.sum())
        return log_prior - log_prior.mean()

    def predict(self, pred: Tensor) -> Tensor:
        return links.softmax(pred)

    def log_predict(self, pred: Tensor) -> Tensor:
        return torch.log_softmax(pred, -1)

    def lipschitz(self, bound: float) -> float:
        return math.sqrt(2)

    def smoothness(self, bound: float) -> float:
        return 0.5


class LogMixture(Loss):
    """``-log`` of the probability that a mixture gives to the true class: convex in the weights of the mixture.

    ``pred`` are probabilities and targets one-hot. Only the true class's probability counts, so that ``(n, 1)`` of
    these against targets of 1 are the same problem. Below ``TINY`` the logarithm is continued by its second-order
    expansion there: convex, smooth to the second order, and finite where no model gave the class a chance. Above 1,
    where rounding may put a probability, it goes on below 0, so that no least cost is claimed.
    """

    TINY: ClassVar[float] = 2.0**-52
    curved: ClassVar[bool] = True

    def _short(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The true class's probability, at least ``TINY``, and by how many ``TINY`` it falls short of that."""
        p = (y * pred).sum(-1)
        return p.clamp(min=self.TINY), (1 - p / self.TINY).clamp(min=0)

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        p, short = self._short(pred, y)
        return short + short.square() / 2 - p.log()

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        p, short = self._short(pred, y)
        return -y * ((1 + short) / p)[..., None]

    def root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        p, _ = self._short(pred, y)
        return ((y * d).sum(-1) / p)[..., None]

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return (weight[:, None] * y).sum(0) / weight.sum()

    def lipschitz(self, bound: float) -> float:
        return 2 / self.TINY

    def smoothness(self, bound: float) -> float:
        return self.TINY**-2
