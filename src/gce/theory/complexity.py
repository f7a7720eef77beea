"""Empirical Rademacher complexity of a hull, estimated by fitting random signs with the oracle.

``Rad_n(co G) = E_eps sup_{f in co(G)} (1/n) sum_i eps_i f(x_i)``. For fixed signs that is a linear functional, and a
linear functional is largest over a convex hull at one of its vertices: ``sup over co(G) = sup over G`` (Mendelson
2003, Theorem 2.25). The right side is computed by an oracle, ``argmin <D, g>`` with ``D_i = -eps_i / n``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array
from torch import Tensor

from gce._utils.devices import as_numpy
from gce._utils.params import check_count, look_up
from gce._utils.random import Streams, draw_seed
from gce.bases import BASES, Basis, FitContext, Pool
from gce.bases.objectives import Linear
from gce.bases.pool import evaluate
from gce.preprocessing.mixed import MixedRows
from gce.preprocessing.sparse import Inputs
from gce.theory.bounds import mcdiarmid
from gce.theory.checks import positive, probability

Array = NDArray[np.float64]

#: Most signs (rows times draws) per oracle call: 256 MiB in float64.
_BATCH_SIGNS = 1 << 25


@dataclass(frozen=True)
class RademacherEstimate:
    """An estimate of the Rademacher complexity of a hull.

    Parameters
    ----------
    mean : float
        Mean over the draws.
    low, high : float
        Confidence interval for the empirical Rademacher complexity. If the oracle is exact it is
        McDiarmid's, over all ``draws * rows`` signs: one sign moves the mean by at most ``2B / (draws * rows)``, so
        that each side is ``B sqrt(2 ln(2 / (1 - confidence)) / (draws * rows))`` wide, whatever the class. A trained
        atom is below the supremum by an unknown amount: ``low`` still holds, and ``high`` is ``B``.
    confidence : float
        Coverage of the interval.
    standard_error : float
        Standard error of the mean.
    draws, rows : int
        Number of sign vectors and of rows.
    bound : float
        ``B``.
    exact : bool
        Whether the oracle finds the supremum; otherwise the mean is a lower estimate.

    Examples
    --------
    >>> from gce.bases import Pool
    >>> pool = Pool(functions=[lambda X: X[:, 0], lambda X: -X[:, 0]])
    >>> estimate = rademacher(pool, [[1.0], [-1.0]], bound=1.0, draws=200, random_state=0)
    >>> estimate.low < 0.5 < estimate.high, estimate.exact
    (True, True)
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
        """``"exact supremum"`` or ``"lower estimate"``."""
        return "exact supremum" if self.exact else "lower estimate"

    def __str__(self) -> str:
        return (
            f"Rademacher complexity on {self.rows} rows: {self.mean:.4g} ({self.kind}, {self.draws} draws; "
            f"{self.confidence:.0%} interval {self.low:.4g} to {self.high:.4g}, B = {self.bound:.4g})"
        )


def suprema(basis: Basis, X: Inputs, signs: ArrayLike, *, bound: float, seed: int = 0) -> Array:
    """``sup_g (1/n) sum_i eps_i g(x_i)`` over a basis and the zero function, for each row of signs.

    Parameters
    ----------
    basis : Basis
        With one output. If it is exact the supremum is returned, else a lower estimate.
    X : Tensor, SparseRows or MixedRows of shape (n, d)
        Encoded rows, as the basis sees them.
    signs : array of shape (draws, n)
    bound : float
        ``B``.
    seed : int, default=0
        Random seed of the basis.

    Returns
    -------
    array of shape (draws,)
        In ``[0, bound]``.

    Examples
    --------
    >>> import torch
    >>> from gce.bases import Pool
    >>> pool = Pool(functions=[lambda X: X[:, 0], lambda X: -X[:, 0]])
    >>> X = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    >>> suprema(pool, X, [[1, 1], [1, -1], [-1, 1]], bound=1.0).tolist()
    [0.0, 1.0, 1.0]
    """
    signs = torch.as_tensor(np.asarray(signs, dtype=np.float64), device=X.device)
    draws, n = signs.shape
    if n != len(X):
        raise ValueError(f"signs must have shape (draws, {len(X)}), one sign per row of X, got {tuple(signs.shape)}")
    width = torch.full((1,), bound, dtype=torch.float64, device=X.device)
    streams, context, found = Streams(seed, tuple(range(draws))), FitContext(), []
    for part in torch.arange(draws, device=X.device).split(max(1, _BATCH_SIGNS // n)):
        gradient = -signs[part, :, None] / n
        with torch.no_grad():
            rng = streams.at(1, part, torch.zeros_like(part))
            proposal = basis.minimize(Linear(gradient, width), X, rng=rng, context=context)
            found.append(-(gradient * proposal.evaluate(X)).sum((1, 2)))
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
        With one output; the zero function is added to its class, as in every fit.
    X : array-like, Tensor or MixedRows of shape (n, d), finite
        Encoded rows: those of an estimator are ``model.encode_rows(X)``, or ``model.table_.transform(X)`` for networks.
    bound : float
        ``B``: outputs of atoms are in ``[-B, B]``.
    draws : int, default=32
        Number of random sign vectors; all are fitted in one oracle call.
    random_state : int, RandomState or None, default=None
        Seed of the signs and of the basis.
    confidence : float, default=0.95
        Coverage of the interval.

    Returns
    -------
    RademacherEstimate
        Its ``kind`` says "exact supremum" for pools and "lower estimate" for trained atoms, which can be several
        times too small: a basis that trains longer finds more.

    Examples
    --------
    >>> from gce.bases import Pool
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
        raise ValueError(f"the complexity is defined for one output, got {np.size(bound)} bounds")
    width = float(np.asarray(bound).reshape(()))
    positive(bound=width)
    rows = chosen.seen(X if isinstance(X, MixedRows) else _checked(X))
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


def _checked(X: Any) -> Tensor:
    # a copy, since torch warns about read-only arrays
    checked = check_array(as_numpy(X), dtype=np.float64, order="C", copy=True, input_name="X")
    return torch.from_numpy(checked).to(X.device if isinstance(X, Tensor) else "cpu")


def _check_one_output(basis: Basis, X: Inputs) -> None:
    """Raise an error for a pool with several outputs; other bases have one output per bound."""
    if not isinstance(basis, Pool):
        return
    if basis.functions is not None and len(basis.functions) > 0:
        outputs = evaluate(basis.functions[0], X).shape[1]
    else:
        shape = np.asarray(basis.outputs).shape
        outputs = shape[2] if len(shape) == 3 else 1
    if outputs != 1:
        raise ValueError(f"the complexity is defined for one output, but the pool has {outputs}")
