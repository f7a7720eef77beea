"""Classification losses: of raw scores, and of mixtures of probabilities."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from gce.losses import links
from gce.losses.base import Loss

#: Log-odds of a label that is certain.
_SURE = 20.0


class LogisticByOutput(Loss):
    """The logistic losses ``log(1 + exp(f)) - y f`` of several outputs coded 0 and 1, summed."""

    separable: ClassVar[bool] = True
    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0
    link: ClassVar[str] = "logit"

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        # log(1 + exp(f)) - y f without cancellation where both terms are large
        return (pred.clamp(min=0) - y * pred + (-pred.abs()).exp().log1p()).sum(-1)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - y without cancellation where p is close to y
        less = torch.sigmoid(-pred.abs())
        return torch.where(pred >= 0, (1 - y) - less, less - y)

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        return self.curvature(pred, y).sqrt() * d

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        less = torch.sigmoid(-pred.abs())
        return less * (1 - less)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        one = (weight[:, None] * y).sum(0)
        other = weight.sum() - one
        # where one class has nearly all the weight the difference has lost its digits, or is 0
        other = torch.where(other > 1e-6 * one, other, (weight[:, None] * (1 - y)).sum(0))
        return torch.log(one) - torch.log(other)

    def smoothness(self, bound: float) -> float:
        return 0.25


class Logistic(LogisticByOutput):
    """Logistic loss ``log(1 + exp(f)) - y f`` of two classes coded 0 and 1; the score ``f`` is the log-odds of class 1.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Logistic
    >>> score = torch.zeros(1, 1)
    >>> Logistic().value(score, torch.ones(1, 1))
    tensor([0.6931])
    >>> Logistic().predict(score)
    tensor([[0.5000, 0.5000]])
    """

    def predict(self, pred: Tensor) -> Tensor:
        return links.sigmoid(pred)

    def log_predict(self, pred: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(torch.cat([-pred, pred], -1))

    def lipschitz(self, bound: float) -> float:
        return 1.0


class MultiLabel(LogisticByOutput):
    """Sum of logistic losses of several labels, each of which a row may have (1) or not (0); one score per label.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import MultiLabel
    >>> MultiLabel().predict(torch.zeros(1, 3))
    tensor([[0.5000, 0.5000, 0.5000]])
    """

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        # a label that all rows have, or none, has no finite log-odds
        return super().start(y, weight).clamp(-_SURE, _SURE)

    def predict(self, pred: Tensor) -> Tensor:
        return links.sigmoid(pred[..., None])[..., 1]

    def log_predict(self, pred: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(pred)

    def lipschitz(self, bound: float) -> float:
        raise NotImplementedError("the Lipschitz constant of MultiLabel depends on how many labels there are")


class Ordinal(LogisticByOutput):
    """Sum of logistic losses of being above each class but the last, for classes in an order.

    There is one score for each class but the last, the log-odds to be above it; the targets are 1 for the classes below
    that of the row, and 0 for others.

    Probabilities to be above a class must not grow with the class. The scores of a row are therefore sorted, the
    largest first: exchanging two scores that are in the wrong order never raises the loss, because the targets of a row
    are in that order.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import Ordinal
    >>> Ordinal().predict(torch.tensor([[1.0, 0.0]]))
    tensor([[0.2689, 0.2311, 0.5000]])
    """

    def predict(self, pred: Tensor) -> Tensor:
        above = links.sigmoid(pred.sort(-1, descending=True).values[..., None])[..., 1]
        ends = above[..., :1]
        return -torch.cat([torch.ones_like(ends), above, torch.zeros_like(ends)], -1).diff()

    def log_predict(self, pred: Tensor) -> Tensor:
        # a class between two equal scores has probability 0
        return self.predict(pred).clamp(min=torch.finfo(pred.dtype).tiny).log()

    def lipschitz(self, bound: float) -> float:
        raise NotImplementedError("the Lipschitz constant of Ordinal depends on how many classes there are")


class CrossEntropy(Loss):
    """Cross-entropy ``log sum_j exp(f_j) - f_y`` of three classes or more, one score per class; targets are one-hot.

    Its constants are those of the Euclidean norm: the gradient ``p - e_y`` has norm at most sqrt(2), and no eigenvalue
    of the Hessian ``diag(p) - pp'`` exceeds 1/2.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import CrossEntropy
    >>> scores, y = torch.zeros(1, 3), torch.tensor([[0.0, 1.0, 0.0]])
    >>> CrossEntropy().value(scores, y)
    tensor([1.0986])
    >>> CrossEntropy().gradient(scores, y)
    tensor([[ 0.3333, -0.6667,  0.3333]])
    """

    has_hessian: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0
    link: ClassVar[str] = "softmax"

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        # log sum exp(f - f_y) with its largest term factored out: log1p of the others keeps their digits where that
        # term is the true class's
        scores = pred - (y * pred).sum(-1, keepdim=True)
        top, index = scores.max(-1, keepdim=True)
        others = (scores - top).exp().scatter(-1, index, 0.0).sum(-1)
        return top[..., 0] + torch.log1p(others)

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        # p - e_y without cancellation where p is close to e_y
        others = (1 - y) * torch.softmax(pred, -1)
        return others - y * others.sum(-1, keepdim=True)

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        # diag(p) - pp' = L L' with L = diag(sqrt p) - p sqrt(p)', because p sums to 1
        p = torch.softmax(pred, -1)
        return p.sqrt() * (d - (p * d).sum(-1, keepdim=True))

    def curvature(self, pred: Tensor, y: Tensor) -> Tensor:
        p = torch.softmax(pred, -1)
        return p * (1 - p)

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        # scores are defined up to a constant: centred ones need the smallest bound
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
    """Negative log-likelihood of a mixture of probabilities: convex in the weights of the mixture.

    ``pred`` are probabilities and targets one-hot. Only the true class's probability matters, so that its ``(n, 1)``
    values with targets of 1 are the same problem. Below ``TINY`` the logarithm is continued by its second-order Taylor
    expansion: convex, twice differentiable, and finite where every model gives the class a probability of 0. Above 1,
    where rounding may put a probability, the loss is negative, so that no lower bound is claimed.

    Examples
    --------
    >>> import torch
    >>> from gce.losses import LogMixture
    >>> LogMixture().value(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]]))
    tensor([0.6931])
    """

    TINY: ClassVar[float] = 2.0**-52
    has_hessian: ClassVar[bool] = True

    def _clip(self, pred: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The true class's probability, clipped at ``TINY``, and its shortfall below that in units of ``TINY``."""
        p = (y * pred).sum(-1)
        return p.clamp(min=self.TINY), (1 - p / self.TINY).clamp(min=0)

    def value(self, pred: Tensor, y: Tensor) -> Tensor:
        p, short = self._clip(pred, y)
        return short + short.square() / 2 - p.log()

    def gradient(self, pred: Tensor, y: Tensor) -> Tensor:
        p, short = self._clip(pred, y)
        return -y * ((1 + short) / p)[..., None]

    def hessian_root(self, pred: Tensor, y: Tensor, d: Tensor) -> Tensor:
        p, _ = self._clip(pred, y)
        return ((y * d).sum(-1) / p)[..., None]

    def start(self, y: Tensor, weight: Tensor) -> Tensor:
        return (weight[:, None] * y).sum(0) / weight.sum()

    def lipschitz(self, bound: float) -> float:
        return 2 / self.TINY

    def smoothness(self, bound: float) -> float:
        return self.TINY**-2
