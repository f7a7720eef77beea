"""Bounds on the risk of a fitted model, from its training rows and from held-out rows.

**Training rows.** The inequality is the standard one for an *empirical* Rademacher complexity (Bartlett and Mendelson
2002; Mohri, Rostamizadeh and Talwalkar 2018, Theorem 3.3), not the paper's, whose complexity is an expectation bounded
by an unknown constant. For a hull fixed beforehand and a loss with range ``M``, with probability ``1 - delta`` and for
all ``f`` in the hull at once::

    R(f) <= R_n(f) + 2 c_phi Rad + 3 M sqrt(ln(3/delta) / 2n) + 2 c_phi B sqrt(2 ln(3/delta) / mn)

``delta`` is divided into three. One third: ``sup (R - R_n)`` exceeds its mean by ``M sqrt(ln(3/delta) / 2n)`` at most
(McDiarmid; one row moves it by ``M/n``), and that mean is at most twice the loss class's Rademacher complexity. One
third: that complexity exceeds the empirical one by as much at most (again ``M/n`` a row), which counts twice. One
third: the empirical one exceeds ``Rad``, its mean over ``m`` sign vectors, by ``B sqrt(2 ln(3/delta) / mn)`` at most
(one of the ``mn`` signs moves that mean by ``2B/mn``), times ``2 c_phi`` since contraction bounds the loss class's by
``c_phi`` times the hull's.

**The offset** ``c`` around which the hull lies is a constant, which a Rademacher complexity does not see. For
``|f - y|^q`` read ``y - c`` for ``y``: then ``|y - c| <= B`` is assumed, ``c_phi = q (2B)^(q-1)`` and ``M = (2B)^q``.
For the logistic loss scores lie in ``c +- B``, so that ``|f| <= S = |c| + B``, ``c_phi = 1`` and ``M = S`` exactly.

**Held-out rows.** The model is then one function, fixed beforehand: Hoeffding's ``M sqrt(ln(1/delta) / 2m)`` is all
that is needed, and none of what was chosen from the training rows counts against it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from gce._utils import text
from gce._utils.parallel import limited, torch_threads
from gce.bases import Basis
from gce.losses import Logistic
from gce.theory import notes
from gce.theory.bounds import (
    appendix_constant,
    excess_risk,
    hoeffding,
    lipschitz,
    loss_range,
    mcdiarmid,
    one_sided_constant,
    stated_constant,
)
from gce.theory.capacity import pseudodimension
from gce.theory.checks import probability
from gce.theory.complexity import RademacherEstimate, rademacher
from gce.theory.fitted import Fitted, basis_of, check_possible, check_rows, costs_of, loss_name


@dataclass(frozen=True)
class HeldOut:
    """Hoeffding's bound from rows that were not used in the fit.

    Parameters
    ----------
    rows : int
        Number of held-out rows.
    risk : float
        Mean loss on them.
    confidence : float
        The margin of Hoeffding's inequality.

    Examples
    --------
    >>> HeldOut(rows=100, risk=0.25, confidence=0.5).total
    0.75
    """

    rows: int
    risk: float
    confidence: float

    @property
    def total(self) -> float:
        """The bound: risk plus confidence."""
        return self.risk + self.confidence


@dataclass(frozen=True)
class PaperBound:
    """The paper's ``c / sqrt(n)`` on an *excess* risk, for a given ``D``; see :mod:`.bounds`.

    Parameters
    ----------
    statement : {"Theorem 2", "Corollary 3"}
        Theorem 2 compares every function of the hull with the Bayes function ``f*``. For the logistic loss the paper
        has Corollary 3 only, which compares the minimiser of the empirical risk with ``h*``, the best of the hull.
    D : float
    p : int
        The pseudodimension used, or a bound on it.
    stated, appendix, one_sided : float
        ``c / sqrt(n)`` with :func:`stated_constant`, :func:`appendix_constant` and :func:`one_sided_constant`.

    Examples
    --------
    >>> bound = PaperBound("Theorem 2", D=1.0, p=13, stated=0.6, appendix=1.1, one_sided=0.5)
    >>> bound.one_sided < bound.stated < bound.appendix
    True
    """

    statement: str
    D: float
    p: int
    stated: float
    appendix: float
    one_sided: float


@dataclass(frozen=True)
class BoundReport:
    """A bound on the risk of a fitted model; ``str()`` and notebooks show it as a table.

    Parameters
    ----------
    loss : str
    delta : float
        Each column may fail with this probability.
    rows : int
    risk : float
        Mean loss on the training rows.
    complexity, draws, confidence : float
        ``2 c_phi Rad``; what the finite number of sign vectors adds; what the finite number of rows adds.
    bound, offset, lipschitz, width, largest_loss : float
        ``B``, ``c``, ``c_phi``, the loss's range ``M`` and its largest value.
    rademacher : RademacherEstimate
    held_out : HeldOut or None
    paper : PaperBound or None
    notes : tuple of str
        Reservations and assumptions.

    Examples
    --------
    See :func:`bound_report`, which makes one.

    >>> estimate = RademacherEstimate(0.1, 0.0, 0.2, 0.95, 0.01, draws=32, rows=300, bound=1.0, exact=True)
    >>> constants = {"bound": 1.0, "offset": 0.0, "lipschitz": 4.0, "width": 4.0, "largest_loss": 4.0}
    >>> parts = {"risk": 0.25, "complexity": 0.75, "draws": 0.0, "confidence": 1.0}
    >>> report = BoundReport(
    ...     "squared error", 0.05, 300, **parts, **constants, rademacher=estimate, held_out=None, paper=None, notes=()
    ... )
    >>> report.total
    2.0
    """

    loss: str
    delta: float
    rows: int
    risk: float
    complexity: float
    draws: float
    confidence: float
    bound: float
    offset: float
    lipschitz: float
    width: float
    largest_loss: float
    rademacher: RademacherEstimate
    held_out: HeldOut | None
    paper: PaperBound | None
    notes: tuple[str, ...]

    @property
    def total(self) -> float:
        """The training column's sum."""
        return self.risk + self.complexity + self.draws + self.confidence

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts."""
        out = asdict(self) | {"total": self.total, "notes": list(self.notes)}
        out["rademacher"]["kind"] = self.rademacher.kind
        if self.held_out is not None:
            out["held_out"]["total"] = self.held_out.total
        return out

    def table(self) -> text.TextTable:
        """Its rows: a name, a number for the training rows, a number for the held-out rows."""
        there = self.held_out
        names = ["rows", "empirical risk", f"complexity, {self.rademacher.kind}", f"its {self.rademacher.draws} draws"]
        here = [self.rows, self.risk, self.complexity, self.draws, self.confidence, self.total]
        columns: dict[str, list[float | str | None]] = {"training": [*here]}
        if there is not None:
            columns["held out"] = [there.rows, there.risk, None, None, there.confidence, there.total]
        title = f"Bound on the risk ({self.loss}), each column with probability {1 - self.delta:g}"
        constants = (
            f"B = {self.bound:.4g}, offset = {self.offset:.4g}, Lipschitz constant = {self.lipschitz:.4g}, "
            f"range of the loss = {self.width:.4g}, Rademacher complexity = {self.rademacher.mean:.4g}"
        )
        words = [constants, *self.notes]
        if self.paper is not None:
            words.append(
                f"{self.paper.statement} for D = {self.paper.D:.4g} and pseudodimension {self.paper.p}: "
                f"{_COMPARED[self.paper.statement]} by at most {self.paper.stated:.4g} as stated, "
                f"{self.paper.appendix:.4g} as the appendix adds up, {self.paper.one_sided:.4g} by a one-sided proof."
            )
        return text.TextTable(title, [*names, "confidence", "sum"], columns, words)

    def __str__(self) -> str:
        return text.render_text(self.table())

    def _repr_html_(self) -> str:
        return text.render_html(self.table())


_COMPARED = {
    "Theorem 2": "R(f) - R(f*) is above R_n(f) - R_n(f*)",
    "Corollary 3": "for the minimiser f of R_n over the hull, which a fit approaches, and the best h* of the hull R(f) "
    "is above R(h*)",
}


def bound_report(
    model: Fitted,
    X: Any,
    y: Any,
    delta: float = 0.05,
    *,
    X_held_out: Any = None,
    y_held_out: Any = None,
    draws: int = 32,
    oracle: str | Basis | None = None,
    D: float | None = None,
    random_state: Any = None,
) -> BoundReport:
    """Bound the risk of a fitted model, from its training rows and from held-out rows.

    Parameters
    ----------
    model : GCERegressor, GCEClassifier or another convex ensemble
        Fitted, with one output and squared error, ``|f - y|^q`` or the logistic loss.
    X, y : array-like
        The training rows. Sample weights are not supported by the theory.
    delta : float, default=0.05
        Each column of the report holds with probability ``1 - delta``.
    X_held_out, y_held_out : optional
        Rows that played no part in fitting, tuning or choosing the model.
    draws : int, default=32
        Random sign vectors for the complexity, each as costly as one atom.
    oracle : Basis, optional
        Used for the complexity in place of the model's own basis (required if a model has none): the same class,
        trained longer. The atoms of a fit are trained briefly, which matters here: on 2,000 rows of 10 normal columns
        ``Neural()`` found 0.09 B, ``Neural(max_epochs=4000, patience=200)`` 0.31 B, in a hundred times the epochs.
    D : float, optional
        The paper's absolute constant. If given, the bound ``c / sqrt(n)`` of Theorem 2, or of Corollary 3 for the
        logistic loss, is reported as well.
    random_state : int, RandomState or None, default=None
        Seed of the sign vectors.

    Returns
    -------
    BoundReport

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Pool
    >>> X = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    >>> y, new = np.tanh(X[:, 0]), slice(300, 400)
    >>> pool = Pool([lambda X: np.tanh(X[:, 0]), lambda X: -np.tanh(X[:, 0])])
    >>> model = GCERegressor(basis=pool, bound=1.0, offset=0.0, random_state=0).fit(X[:300], y[:300])
    >>> report = bound_report(model, X[:300], y[:300], X_held_out=X[new], y_held_out=y[new], random_state=0)
    >>> report.rademacher.kind, report.rows, report.held_out.rows
    ('exact supremum', 300, 100)
    >>> round(report.confidence, 4), round(report.held_out.confidence, 4)
    (0.9913, 0.4895)
    >>> report.risk < report.held_out.total < report.total
    True
    """
    check_is_fitted(model)
    probability(delta=delta)
    result = model.result_
    check_possible(result)
    check_rows(X, X_held_out, y_held_out)
    loss, bound, offset = result.loss, float(result.bound[0]), float(result.offset[0])
    slope, (low, high) = lipschitz(loss, bound), loss_range(loss, bound, offset)
    basis, rows = basis_of(model, oracle), model.code_rows(X)
    costs, target = costs_of(model, X, y)
    with torch_threads(model.n_jobs), limited(model.n_jobs):
        estimate = rademacher(basis, model.encode_rows(X), bound=bound, draws=draws, random_state=random_state)
    n, signs = len(costs), draws * len(costs)
    parts = {
        "risk": float(costs.mean()),
        "complexity": 2 * slope * estimate.mean,
        "draws": 2 * slope * mcdiarmid(signs, 2 * bound / signs, delta / 3),
        "confidence": 3 * mcdiarmid(n, (high - low) / n, delta / 3),
    }
    held_out = paper = target_held_out = rows_held_out = None
    if X_held_out is not None:
        rows_held_out = model.code_rows(X_held_out)
        there, target_held_out = costs_of(model, X_held_out, y_held_out)
        held_out = HeldOut(len(there), float(there.mean()), hoeffding(len(there), high - low, delta))
    if D is not None:
        name, reach = ("Corollary 3", abs(offset) + bound) if isinstance(loss, Logistic) else ("Theorem 2", bound)
        paper = _paper_bound(name, n, slope, reach, delta, pseudodimension(basis, rows.shape[1], n), D)
    words = [
        *notes.reservations(model, exact=estimate.exact),
        *notes.assumptions(model, target, target_held_out),
        *notes.vacuous(sum(parts.values()), high),
        *notes.about_held_out(rows, rows_held_out),
    ]
    return BoundReport(
        loss=loss_name(loss),
        delta=float(delta),
        rows=n,
        bound=bound,
        offset=offset,
        lipschitz=slope,
        width=high - low,
        largest_loss=high,
        rademacher=estimate,
        held_out=held_out,
        paper=paper,
        notes=tuple(words),
        **parts,
    )


def _paper_bound(statement: str, n: int, slope: float, bound: float, delta: float, p: int, D: float) -> PaperBound:
    named = {"lipschitz": slope, "bound": bound, "delta": delta, "p": p, "D": D}
    constants = (c(**named) for c in (stated_constant, appendix_constant, one_sided_constant))
    return PaperBound(statement, float(D), p, *(excess_risk(c, n) for c in constants))
