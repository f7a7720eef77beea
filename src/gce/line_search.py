"""Line searches: how far to go along a direction. Each maps a line and a round to step sizes ``(M, J)``."""

from __future__ import annotations

from typing import ClassVar

import torch
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from torch import Tensor

from gce.parameters import POSITIVE, Rules
from gce.risk import Line


class LineSearch(BaseEstimator):
    """A rule for the step size."""

    def __call__(self, line: Line, t: int) -> Tensor:
        """Sizes in ``[0, line.limit]``, shape ``(M, J)``, for round ``t`` (from 1)."""
        raise NotImplementedError


class Exact(LineSearch):
    """The minimiser along the line, end points included.

    The slope of a convex risk does not fall, so its sign at the two ends decides whether an end is best, and its root
    lies between them otherwise: in closed form for a quadratic, else bracketed to rounding. The point returned has a
    slope that is not positive, so the risk cannot have risen on the way.
    """

    def __call__(self, line: Line, t: int) -> Tensor:
        zero = torch.zeros_like(line.limit)
        at_zero, at_limit = line.slope(zero), line.slope(line.limit)
        inside = (at_zero < 0) & (at_limit > 0)
        size = torch.where(at_zero < 0, line.limit, zero)
        if not inside.any():
            return size
        if line.quadratic:
            root = line.limit * (at_zero / (at_zero - at_limit))
        else:
            root = bracketed_root(line, at_zero, at_limit, inside)
        return torch.where(inside, root, size)


def bracketed_root(line: Line, at_zero: Tensor, at_limit: Tensor, inside: Tensor) -> Tensor:
    """Left end of a bracket of the slope's root, by Chandrupatla's method (1997), elementwise.

    Each pass takes the inverse quadratic step where the last three points say that it is safe, and halves otherwise;
    entries that are not ``inside`` carry an inert bracket along.
    """
    # the root lies between a (newest) and b (opposite sign); c is the point before a
    a, fa = line.limit, torch.where(inside, at_limit, 1.0)
    b, fb = torch.zeros_like(a), torch.where(inside, at_zero, -1.0)
    step = torch.full_like(a, 0.5)
    for _ in range(100):
        x = a + step * (b - a)
        fx = torch.where(inside, line.slope(x), 0.0)
        same = torch.sign(fx) == torch.sign(fa)
        c, fc = torch.where(same, a, b), torch.where(same, fa, fb)
        b, fb = torch.where(same, b, a), torch.where(same, fb, fa)
        a, fa = x, fx
        width = (b - a).abs()
        open_ = inside & (fa != 0) & (width > 4 * torch.finfo(a.dtype).eps * line.limit)
        if not open_.any():
            break
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = open_ & (phi.square() < xi) & ((1 - phi).square() < 1 - xi)
        inverse = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        margin = (2 * torch.finfo(a.dtype).eps * line.limit / width).clamp(max=0.5)
        step = torch.where(smooth, inverse.nan_to_num(0.5).clamp(min=margin, max=1 - margin), 0.5)
    return torch.where(fa <= 0, a, b)


class Brent(LineSearch):
    """SciPy's bounded Brent search on the risk's value; the ends are compared, since it never returns them.

    Parameters
    ----------
    xatol : float, default=1e-10
        Tolerance of the size, relative to its limit.
    """

    parameter_rules: ClassVar[Rules] = {"xatol": POSITIVE}

    def __init__(self, xatol: float = 1e-10) -> None:
        self.xatol = xatol

    def __call__(self, line: Line, t: int) -> Tensor:
        size = torch.zeros_like(line.limit)
        for m in range(size.shape[0]):
            for j in range(size.shape[1]):
                size[m, j] = self._one(line, m, j)
        return size

    def _one(self, line: Line, m: int, j: int) -> float:
        limit = float(line.limit[m, j])
        if limit == 0:
            return 0.0

        def risk(share: float) -> float:
            probe = torch.zeros_like(line.limit)
            probe[m, j] = share * limit
            return float(line.value(probe)[m])

        found = minimize_scalar(risk, bounds=(0.0, 1.0), method="bounded", options={"xatol": self.xatol})
        # ties go to the shorter step
        return limit * min((0.0, float(found.x), 1.0), key=risk)


class OpenLoop(LineSearch):
    """``numerator / (t + 1)``, at most the limit: no look at the risk. The paper's is 1, Jaggi's (2013) is 2.

    Parameters
    ----------
    numerator : float, default=1.0
    """

    parameter_rules: ClassVar[Rules] = {"numerator": POSITIVE}

    def __init__(self, numerator: float = 1.0) -> None:
        self.numerator = numerator

    def __call__(self, line: Line, t: int) -> Tensor:
        return line.limit.clamp(max=self.numerator / (t + 1))


LINE_SEARCHES: dict[str, LineSearch] = {
    "exact": Exact(),
    "brent": Brent(),
    "1/(t+1)": OpenLoop(1.0),
    "2/(t+1)": OpenLoop(2.0),
}
