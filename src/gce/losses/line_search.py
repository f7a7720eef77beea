"""Line searches: step sizes along a direction."""

from __future__ import annotations

from typing import ClassVar

import torch
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from torch import Tensor

from gce._utils.params import POSITIVE, Rules
from gce.losses.risk import Line


class LineSearch(BaseEstimator):
    """A step size rule.

    Examples
    --------
    A rule of one's own:

    >>> from gce.frank_wolfe import LineSearch
    >>> class FullStep(LineSearch):
    ...     def __call__(self, line, t):
    ...         return line.limit
    """

    def __call__(self, line: Line, t: int) -> Tensor:
        """Compute step sizes.

        Parameters
        ----------
        line : Line
            The risk along a direction.
        t : int
            The round, from 1.

        Returns
        -------
        Tensor of shape (M, J)
            Step sizes in ``[0, line.limit]``.
        """
        raise NotImplementedError


class Exact(LineSearch):
    """The minimiser along the line, end points included.

    The derivative of a convex risk is nondecreasing, so that its signs at the two ends tell whether an end is the
    minimiser, and its root lies between them otherwise: in closed form for a quadratic, else bracketed up to rounding.
    The derivative at the point returned is not positive, so that the risk has not increased.

    Examples
    --------
    The squared error from 0 toward 2, with its minimum half-way:

    >>> import torch
    >>> from gce.frank_wolfe import Exact
    >>> from gce.losses import Squared
    >>> from gce.losses.risk import Risk
    >>> y = torch.ones(1, 1, dtype=torch.float64)
    >>> risk = Risk(Squared(), y, weight=torch.ones_like(y), offset=torch.zeros_like(y[0]))
    >>> line = risk.along(torch.zeros_like(y[None]), 2 * y[None], limit=torch.ones_like(y))
    >>> float(Exact()(line, t=1))
    0.5
    """

    def __call__(self, line: Line, t: int) -> Tensor:
        zero = torch.zeros_like(line.limit)
        at_zero, at_limit = line.slope(zero), line.slope(line.limit)
        for slope, end in ((at_zero, zero), (at_limit, line.limit)):
            # an infinite one still has a sign
            if slope.isnan().any():
                raise line.risk.non_finite("derivative along a step", slope, line.pred + end[:, None] * line.d)
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
    """Left end of a bracket of the derivative's root, by Chandrupatla's method (1997), elementwise.

    Each iteration takes an inverse quadratic step where the last three points permit it, and bisects otherwise.

    Parameters
    ----------
    line : Line
        The risk along a direction.
    at_zero, at_limit : Tensor of shape (M, J)
        Derivatives at the two ends.
    inside : Tensor of shape (M, J)
        Entries whose root lies between the ends; the others carry an inert bracket along.

    Returns
    -------
    Tensor of shape (M, J)
        Step sizes with a derivative that is not positive.
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
    """SciPy's bounded Brent search on the value of the risk, compared with both ends, which it never returns.

    Parameters
    ----------
    xatol : float, default=1e-10
        Tolerance of the step size, relative to its limit.

    Examples
    --------
    The squared error from 0 toward 2, with its minimum half-way:

    >>> import torch
    >>> from gce.frank_wolfe import Brent
    >>> from gce.losses import Squared
    >>> from gce.losses.risk import Risk
    >>> y = torch.ones(1, 1, dtype=torch.float64)
    >>> risk = Risk(Squared(), y, weight=torch.ones_like(y), offset=torch.zeros_like(y[0]))
    >>> line = risk.along(torch.zeros_like(y[None]), 2 * y[None], limit=torch.ones_like(y))
    >>> round(float(Brent()(line, t=1)), 6)
    0.5
    """

    parameter_rules: ClassVar[Rules] = {"xatol": POSITIVE}

    def __init__(self, xatol: float = 1e-10) -> None:
        self.xatol = xatol

    def __call__(self, line: Line, t: int) -> Tensor:
        size = torch.zeros_like(line.limit)
        for m in range(size.shape[0]):
            for j in range(size.shape[1]):
                size[m, j] = self._search(line, m, j)
        return size

    def _search(self, line: Line, m: int, j: int) -> float:
        limit = float(line.limit[m, j])
        if limit == 0:
            return 0.0

        def risk(share: float) -> float:
            probe = torch.zeros_like(line.limit)
            probe[m, j] = share * limit
            return float(line.value(probe)[m])

        result = minimize_scalar(risk, bounds=(0.0, 1.0), method="bounded", options={"xatol": self.xatol})
        # ties go to the shorter step
        return limit * min((0.0, float(result.x), 1.0), key=risk)


class OpenLoop(LineSearch):
    """The step size ``numerator / (t + 1)``, at most the limit, whatever the risk.

    Parameters
    ----------
    numerator : float, default=1.0
        1 in the paper, 2 in Jaggi (2013).

    Examples
    --------
    >>> import torch
    >>> from gce.frank_wolfe import OpenLoop
    >>> from gce.losses import Squared
    >>> from gce.losses.risk import Risk
    >>> y = torch.ones(1, 1, dtype=torch.float64)
    >>> risk = Risk(Squared(), y, weight=torch.ones_like(y), offset=torch.zeros_like(y[0]))
    >>> line = risk.along(torch.zeros_like(y[None]), 2 * y[None], limit=torch.ones_like(y))
    >>> float(OpenLoop(numerator=2.0)(line, t=3))
    0.5
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
