"""Empirical Rademacher complexity of a hull, measured by asking the oracle to fit random signs.

``Rad_n(co G) = E_eps sup_{f in co(G)} (1/n) sum_i eps_i f(x_i)``. For fixed signs that is a linear functional, and a
linear functional is largest over a convex hull at one of its vertices: ``sup over co(G) = sup over G`` (Mendelson
2003, Theorem 2.25). The right side is what an oracle is for, ``argmin <D, g>`` with ``D_i = -eps_i / n``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from torch import Tensor

from gce.basis import BASES, Basis, Pool
from gce.basis.pool import evaluate
from gce.objectives import Linear
from gce.settings import as_numpy, check_count, draw_seed, look_up
from gce.streams import Streams
from gce.theory.bounds import mcdiarmid
from gce.theory.checks import positive, probability

Array = NDArray[np.float64]

#: Signs of so many rows and draws are put to the oracle at once: 256 MiB in float64.
_SIGNS_AT_ONCE = 1 << 25


@dataclass(frozen=True)
class RademacherEstimate:
    """What random signs told about a hull.

    Parameters
    ----------
    mean : float
        Mean over the draws.
    low, high : float
        Ends of a confidence interval for the empirical Rademacher complexity. Where the oracle is exact it is
        McDiarmid's, over all ``draws * rows`` signs: one sign moves the mean by at most ``2B / (draws * rows)``, so
        that each side is ``B sqrt(2 ln(2 / (1 - confidence)) / (draws * rows))`` wide, whatever the class. A trained
        atom is below the supremum by an unknown amount: ``low`` holds all the same, and ``high`` is only ``B``.
    confidence : float
    standard_error : float
        Of the mean, from the spread of the draws.
    draws, rows : int
    bound : float
    exact : bool
        The oracle finds the supremum; otherwise the mean is a lower estimate.
    """

    mean: float
    low: float
    high: float
    confidence: float
    standard_error: float
    draws: int
    rows: int
    bound: float
    exact: bool

    @property
    def kind(self) -> str:
        """In words, what the mean is a mean of."""
        return "exact supremum" if self.exact else "lower estimate"

    def __str__(self) -> str:
        return (
            f"Rademacher complexity on {self.rows} rows: {self.mean:.4g} ({self.kind}, {self.draws} draws; "
            f"{self.confidence:.0%} interval {self.low:.4g} to {self.high:.4g}, B = {self.bound:.4g})"
        )


def suprema(basis: Basis, X: Tensor, signs: ArrayLike, *, bound: float, seed: int = 0) -> Array:
    """``sup_g (1/n) sum_i eps_i g(x_i)`` over a basis and the zero function, for each row of signs.

    Parameters
    ----------
    basis : Basis
        With one output. What it returns is the supremum where the basis is exact, else a lower estimate of it.
    X : Tensor of shape (n, d)
        Rows as the basis sees them.
    signs : array of shape (draws, n)
    bound : float
    seed : int, default=0
        For what the basis draws at random.

    Returns
    -------
    array of shape (draws,)
        In ``[0, bound]``.

    Examples
    --------
    >>> pool = Pool(functions=[lambda X: X[:, 0], lambda X: -X[:, 0]])
    >>> X = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    >>> suprema(pool, X, [[1, 1], [1, -1], [-1, 1]], bound=1.0).tolist()
    [0.0, 1.0, 1.0]
    """
    signs = torch.as_tensor(np.asarray(signs, dtype=np.float64), device=X.device)
    draws, n = signs.shape
    if n != len(X):
        raise ValueError(f"signs must have shape (draws, {len(X)}), one sign a row of X, got {tuple(signs.shape)}")
    width = torch.full((1,), bound, dtype=torch.float64, device=X.device)
    streams, found = Streams(seed, tuple(range(draws))), []
    for part in torch.arange(draws, device=X.device).split(max(1, _SIGNS_AT_ONCE // n)):
        slope = -signs[part, :, None] / n
        with torch.no_grad():
            atoms = basis.minimize(Linear(slope, width), X, rng=streams.at(1, part, torch.zeros_like(part)))
            found.append(-(slope * atoms(X)).sum((1, 2)))
    # the zero function is in every hull: no supremum is negative
    return torch.cat(found).clamp(min=0).cpu().numpy() + 0.0


def rademacher(
    basis: str | Basis,
    X: Any,
    *,
    bound: float,
    draws: int = 32,
    random_state: Any = None,
    confidence: float = 0.95,
) -> RademacherEstimate:
    """Empirical Rademacher complexity of the convex hull of a basis on given rows.

    Parameters
    ----------
    basis : {"neural", "neuron"} or Basis
        With one output; its class is taken to contain the zero function, as every fit's does.
    X : array-like or Tensor of shape (n, d), finite
        Rows as the basis sees them: scaled, where it is used in an estimator (``model.table_.transform(X)``).
    bound : float
        ``B``: the atoms' outputs stay in ``[-B, B]``.
    draws : int, default=32
        Random sign vectors; all of them are trained at once, as the members of one oracle call.
    random_state : int, RandomState or None, default=None
    confidence : float, default=0.95

    Returns
    -------
    RademacherEstimate
        Its ``kind`` says "exact supremum" for pools and "lower estimate" for trained atoms, which can be low by a
        factor of several: a basis that trains longer finds more.

    Examples
    --------
    >>> pool = Pool(functions=[lambda X: np.sign(X[:, 0]), lambda X: -np.sign(X[:, 0])])
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> estimate = rademacher(pool, X, bound=1.0, draws=400, random_state=0)
    >>> estimate.kind
    'exact supremum'
    >>> truth = 0.0796  # E|S|/100 for a walk S of 100 steps
    >>> estimate.low < truth < estimate.high
    True
    """
    chosen = look_up("basis", basis, BASES, Basis)
    draws = check_count("draws", draws, 1)
    probability(confidence=confidence)
    if np.size(bound) != 1:
        raise ValueError(f"the complexity is that of a class with one output, got {np.size(bound)} bounds")
    width = float(np.asarray(bound).reshape(()))
    positive(bound=width)
    # a copy: torch warns of an array that may not be written to
    checked = check_array(as_numpy(X), dtype=np.float64, order="C", copy=True, input_name="X")
    rows = torch.from_numpy(checked).to(X.device if isinstance(X, Tensor) else "cpu")
    _check_one_output(chosen, rows)
    seed = draw_seed(random_state)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (draws, len(rows)))
    values = suprema(chosen, rows, signs, bound=width, seed=seed)
    mean = float(values.mean())
    error = mcdiarmid(draws * len(rows), 2 * width / (draws * len(rows)), (1 - confidence) / 2)
    return RademacherEstimate(
        mean=mean,
        low=max(0.0, mean - error),
        high=min(width, mean + error) if chosen.exact else width,
        confidence=float(confidence),
        standard_error=float(values.std(ddof=1) / np.sqrt(draws)) if draws > 1 else float("nan"),
        draws=draws,
        rows=len(rows),
        bound=width,
        exact=chosen.exact,
    )


def _check_one_output(basis: Basis, X: Tensor) -> None:
    """A pool has as many outputs as its functions have; other bases have as many as there are bounds."""
    if not isinstance(basis, Pool):
        return
    if basis.functions is not None and len(basis.functions) > 0:
        outputs = evaluate(basis.functions[0], X).shape[1]
    else:
        shape = np.asarray(basis.outputs).shape
        outputs = shape[2] if len(shape) == 3 else 1
    if outputs != 1:
        raise ValueError(f"the complexity is that of a class with one output, but the pool has {outputs}")
