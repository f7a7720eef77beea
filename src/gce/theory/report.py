"""A fitted model's risk, bounded from its training rows and from rows it never saw.

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

from gce.basis import Basis
from gce.losses import Logistic
from gce.native import limited, torch_threads
from gce.theory import notes, rendering
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
    """Hoeffding's bound on rows that the model never saw.

    Parameters
    ----------
    rows : int
    risk : float
        Mean loss on them.
    confidence : float
        What Hoeffding's inequality adds.
    """

    rows: int
    risk: float
    confidence: float

    @property
    def total(self) -> float:
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
    """

    statement: str
    D: float
    p: int
    stated: float
    appendix: float
    one_sided: float


@dataclass(frozen=True)
class BoundReport:
    """What can be said about a fitted model's risk; ``str()`` and notebooks show it as a table.

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
        What keeps the sum from being a certificate, and what it rests on.
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

    def table(self) -> rendering.Table:
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
        return rendering.Table(title, [*names, "confidence", "sum"], columns, words)

    def __str__(self) -> str:
        return rendering.text(self.table())

    def _repr_html_(self) -> str:
        return rendering.html(self.table())


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
    """What learning theory says about a fitted model, from its training rows and from rows it never saw.

    Parameters
    ----------
    model : GCERegressor, GCEClassifier or another model whose scores stay in a hull
        Fitted, with one output and squared error, ``|f - y|^q`` or the logistic loss.
    X, y
        The rows it was trained on. They count alike: the theory knows no sample weights.
    delta : float, default=0.05
        Each column of the report holds with probability ``1 - delta``.
    X_held_out, y_held_out : optional
        Rows that played no part in fitting, tuning or choosing the model.
    draws : int, default=32
        Random sign vectors for the complexity, each the work of one atom.
    oracle : Basis, optional
        Asked for the complexity in place of the model's own basis (needed where a model has none): the same class,
        better trained. A fit's atoms are trained briefly, and on signs that shows: on 2,000 rows of 10 normal columns
        ``Neural()`` found 0.09 B, ``Neural(max_epochs=4000, patience=200)`` 0.31 B, in a hundred times the epochs.
    D : float, optional
        The paper's absolute constant; given, Theorem 2's ``c / sqrt(n)`` is reported as well, Corollary 3's for the
        logistic loss.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    BoundReport

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor, Pool
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
    check_possible(model)
    check_rows(X, X_held_out, y_held_out)
    loss, bound, offset = model.loss_, float(model.bound_[0]), float(model.offset_[0])
    slope, (low, high) = lipschitz(loss, bound), loss_range(loss, bound, offset)
    basis, rows = basis_of(model, oracle), model._checked(X)
    costs, target = costs_of(model, X, y)
    with torch_threads(model.n_jobs), limited(model.n_jobs):
        estimate = rademacher(basis, model._rows(rows), bound=bound, draws=draws, random_state=random_state)
    n, signs = len(costs), draws * len(costs)
    parts = {
        "risk": float(costs.mean()),
        "complexity": 2 * slope * estimate.mean,
        "draws": 2 * slope * mcdiarmid(signs, 2 * bound / signs, delta / 3),
        "confidence": 3 * mcdiarmid(n, (high - low) / n, delta / 3),
    }
    held_out = paper = target_held_out = rows_held_out = None
    if X_held_out is not None:
        rows_held_out = model._checked(X_held_out)
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
