"""The paper's Theorems 1 to 3 with their corollaries, as formulas of named numbers.

**What c is.** Theorems 2 and 3 bound an excess risk by ``c / sqrt(n)``. Three constants can be had:

====================================  ==========================================================
:func:`stated_constant`               ``2 c_phi B (sqrt(2 ln(1/delta)) +   D sqrt(p) + 2)``
:func:`appendix_constant`             ``2 c_phi B (sqrt(2 ln(1/delta)) + 2 D sqrt(p) + 4)``
:func:`one_sided_constant`            ``2 c_phi B (sqrt(2 ln(1/delta)) +   D sqrt(p))``
====================================  ==========================================================

The first is what the theorems say. The second is what the appendix's chain of inequalities adds up to: (I) gives
``2 c_phi B sqrt(2 ln(1/delta))``, (II) says ``E sup |P - P_n| <= 2 E sup R_n``, (III) bounds that ``E sup R_n`` by
``2 c_phi E sup R_n f + 4 c_phi B / sqrt(n)``, and (IV) by ``E sup R_n f <= D B sqrt(p/n)``. So
``2 (2 c_phi D B sqrt(p) + 4 c_phi B) = 2 c_phi B (2 D sqrt(p) + 4)``: the factor 2 of (II) is lost where the four are
combined.

The third needs no new idea, and shows that the theorems are true as stated although their proof falls short. The last
step uses only ``P r <= P_n r + sup (P r' - P_n r')``, without absolute values. For that one-sided supremum
symmetrisation reads ``E sup (P - P_n) <= 2 E sup R_n`` (the appendix's Lemma 1 has the absolute value on the left alone
and fails for a class of a single function, where the right side is 0); the term of ``f*`` does not depend on ``f`` and
has mean 0, so that it costs nothing in place of ``2 c_phi B / sqrt(n)``, and so does ``y``; and contraction costs
``c_phi``, not ``2 c_phi`` (Ledoux and Talagrand 1991, (4.20) in the proof of Theorem 4.12, which itself has absolute
values and a factor 2; Mohri, Rostamizadeh and Talwalkar 2018, Lemma 5.7).

**McDiarmid's step** is right. A loss in ``[0, 2 c_phi B]`` makes a regret in ``[-2 c_phi B, 2 c_phi B]``; exchanging
one of ``n`` rows moves ``h`` by at most ``4 c_phi B / n`` (the appendix writes ``y_i`` for ``y_i'`` in one place), and
``exp(-2 t^2 / sum c_i^2) = delta`` gives ``t = sqrt(8 c_phi^2 B^2 ln(1/delta) / n)``. ``h`` is one random variable,
bounded from above only: ``ln(1/delta)`` and not ``ln(2/delta)``.

**The logistic loss** of the last corollary, less ``ln 2``, is not nonnegative as the corollary before it asks; nothing
but ``|phi(u)| <= c_phi |u|`` is used of that, and it holds.

**An offset** ``c`` around which the hull lies moves ``y``, not the formulas: read ``y - c`` for ``y`` where the loss
is ``phi(f - y)``. For the logistic loss the score is at most ``|c| + B`` in size, and that is the ``B`` to be used.
"""

from __future__ import annotations

import math

from gce.losses import Logistic, Loss, Power, Squared
from gce.theory.checks import at_least, not_negative, positive, probability


def lq_lipschitz(q: float, bound: float) -> float:
    """Corollary 1: ``|f - y|^q`` with ``f`` and ``y`` in ``[-B, B]`` has Lipschitz constant ``q (2B)^(q-1)``.

    Examples
    --------
    >>> lq_lipschitz(2, bound=3.0), lq_lipschitz(1, bound=3.0)
    (12.0, 1.0)
    """
    positive(bound=bound)
    if not q >= 1:
        raise ValueError(f"the loss |f - y|^q needs q >= 1, got q={q!r}")
    return float(q * (2 * bound) ** (q - 1))


def exponent(loss: Loss) -> float | None:
    """``q`` of a loss ``|f - y|^q``, None of the logistic loss; any other loss is refused.

    Examples
    --------
    >>> exponent(Squared()), exponent(Power(1.5)), exponent(Logistic())
    (2.0, 1.5, None)
    """
    # a subclass may mean another function: it is another loss
    if type(loss) is Squared:
        return 2.0
    if type(loss) is Power:
        return float(loss.q)
    if type(loss) is Logistic:
        return None
    raise ValueError(
        f"the bounds are for squared error, |f - y|^q (gce.losses.Power) and the logistic loss of two classes, "
        f"got {type(loss).__name__}"
    )


def lipschitz(loss: Loss, bound: float) -> float:
    """Lipschitz constant ``c_phi`` of Corollaries 1 (``|f - y|^q``) and 3 (logistic: 1).

    Parameters
    ----------
    loss : Squared, Power or Logistic
    bound : float
        ``B``: scores and targets stay in ``[-B, B]``.

    Returns
    -------
    float

    Examples
    --------
    >>> lipschitz(Squared(), bound=3.0), lipschitz(Power(3), bound=0.5), lipschitz(Logistic(), bound=10.0)
    (12.0, 3.0, 1.0)
    """
    positive(bound=bound)
    exponent(loss)
    return loss.lipschitz(bound)


def loss_range(loss: Loss, bound: float, offset: float = 0.0) -> tuple[float, float]:
    """Least and largest loss of a score in ``offset +- bound``.

    For ``|f - y|^q`` the target is assumed in ``offset +- bound`` too, so that the loss is at most ``(2B)^q`` (the
    proofs use the larger ``2 c_phi B = q (2B)^q``). For the logistic loss scores reach ``S = |offset| + B``, and the
    loss goes from ``ln(1 + e^-S)`` to ``ln(1 + e^S)``: a range of exactly ``S``.

    Examples
    --------
    >>> loss_range(Squared(), bound=1.5)
    (0.0, 9.0)
    >>> low, high = loss_range(Logistic(), bound=10.0, offset=-0.5)
    >>> round(high - low, 12)
    10.5
    """
    positive(bound=bound)
    q = exponent(loss)
    if q is not None:
        return 0.0, float((2 * bound) ** q)
    reach = abs(offset) + bound
    least = math.log1p(math.exp(-reach))
    return least, least + reach


def mcdiarmid(count: int, difference: float, delta: float) -> float:
    """How far above its mean a function of ``count`` independent variables lies with probability ``delta`` at most.

    One-sided, if no variable can move it by more than ``difference``: ``difference sqrt(count ln(1/delta) / 2)``.

    Examples
    --------
    The appendix's (I), with ``4 c_phi B / n`` for ``c_phi = B = 1``, is ``sqrt(8 ln(1/delta) / n)``:

    >>> n, delta = 100, 0.05
    >>> math.isclose(mcdiarmid(n, 4 / n, delta), math.sqrt(8 * math.log(1 / delta) / n))
    True
    """
    at_least(1, count=count)
    not_negative(difference=difference)
    probability(delta=delta)
    return difference * math.sqrt(count * math.log(1 / delta) / 2)


def hoeffding(n: int, width: float, delta: float) -> float:
    """How far a mean of ``n`` values of a range ``width`` falls short of its expectation, with probability ``delta``.

    ``width sqrt(ln(1/delta) / (2n))``, one-sided: for a model fixed before it saw the ``n`` rows, its risk is at most
    its mean loss on them plus this, with probability ``1 - delta``.

    Examples
    --------
    >>> round(hoeffding(1000, width=1.0, delta=0.05), 4)
    0.0387
    """
    at_least(1, n=n)
    return mcdiarmid(n, width / n, delta)


def _confidence(lipschitz: float, bound: float, delta: float) -> float:
    """``sqrt(2 ln(1/delta))``, once the numbers it stands beside have been checked."""
    positive(lipschitz=lipschitz, bound=bound)
    probability(delta=delta)
    return math.sqrt(2 * math.log(1 / delta))


def stated_constant(*, lipschitz: float, bound: float, delta: float, p: float, D: float) -> float:
    """``c`` of Theorems 2 and 3 and the corollaries, as stated: ``2 c_phi B (sqrt(2 ln(1/delta)) + D sqrt(p) + 2)``.

    Parameters
    ----------
    lipschitz : float
        ``c_phi``, see :func:`lipschitz`.
    bound : float
        ``B``.
    delta : float
        The bound may fail with this probability.
    p : float
        Pseudodimension of the class of atoms, see :mod:`gce.theory.capacity`.
    D : float
        The paper's absolute constant, of which it says only that there is one; :func:`admissible_constant` is a value
        that can be proved.

    Returns
    -------
    float

    Examples
    --------
    >>> round(stated_constant(lipschitz=1, bound=1, delta=0.05, p=13, D=1), 3)
    16.107
    """
    not_negative(p=p, D=D)
    return 2 * lipschitz * bound * (_confidence(lipschitz, bound, delta) + D * math.sqrt(p) + 2)


def appendix_constant(*, lipschitz: float, bound: float, delta: float, p: float, D: float) -> float:
    """``c`` as inequalities (I) to (IV) of the appendix add up: ``2 c_phi B (sqrt(2 ln(1/delta)) + 2 D sqrt(p) + 4)``.

    Parameters as in :func:`stated_constant`, from which it differs by twice the terms that do not depend on ``delta``:
    see the top of this module for where the paper loses them.

    Examples
    --------
    >>> round(appendix_constant(lipschitz=1, bound=1, delta=0.05, p=13, D=1), 3)
    27.318
    """
    not_negative(p=p, D=D)
    return 2 * lipschitz * bound * (_confidence(lipschitz, bound, delta) + 2 * D * math.sqrt(p) + 4)


def one_sided_constant(*, lipschitz: float, bound: float, delta: float, p: float, D: float) -> float:
    """``c`` by the same proof for the one-sided supremum: ``2 c_phi B (sqrt(2 ln(1/delta)) + D sqrt(p))``.

    Parameters as in :func:`stated_constant`, which is larger: the theorems hold as stated. See the top of this module.

    Examples
    --------
    >>> round(one_sided_constant(lipschitz=1, bound=1, delta=0.05, p=13, D=1), 3)
    12.107
    """
    not_negative(p=p, D=D)
    return 2 * lipschitz * bound * (_confidence(lipschitz, bound, delta) + D * math.sqrt(p))


def admissible_constant() -> float:
    """A value of ``D`` with which (IV), ``E sup R_n f <= D B sqrt(p/n)``, can be proved for ``p >= 1``: about 16.4.

    Not the paper's, which names none. Functions of a class in ``[-B, B]`` that are ``2Bu`` apart in ``L2(P_n)`` are
    ``u^2`` apart in ``L1(P_n)`` once scaled to ``[0, 1]``, since ``|f - g|^2 <= 2B |f - g|``; there are at most
    ``e (p+1) (2e/u^2)^p`` of them (Haussler 1995, Corollary 3; Anthony and Bartlett 1999, Theorem 18.4). Chaining
    (Shalev-Shwartz and Ben-David 2014, Lemma 27.4) bounds the Rademacher complexity by
    ``(6B / sqrt(n)) sum_k 2^-k sqrt(ln N(B 2^-k))``, ``k >= 1``. With ``u = 2^-(k+1)`` and
    ``1 + ln(p+1) <= p (1 + ln 2)`` the entropy is at most ``p (2 + 2 ln 2 + 2 (k+1) ln 2)``.

    Examples
    --------
    >>> round(admissible_constant(), 2)
    16.36
    """
    log2 = math.log(2)
    return 6 * sum(2.0**-k * math.sqrt(2 + 2 * log2 + 2 * (k + 1) * log2) for k in range(1, 80))


def excess_risk(c: float, n: int) -> float:
    """``c / sqrt(n)``: the bound of Theorems 2 and 3 and of the corollaries.

    With probability ``1 - delta``, for all ``f`` in the hull, ``R(f) - R(f*) <= R_n(f) - R_n(f*) + c/sqrt(n)`` (Theorem
    2, ``f*`` the Bayes function), and ``R(f) <= R(h*) + c/sqrt(n)`` for the minimiser ``f`` of the empirical risk
    (Theorem 3, ``h*`` the best of the hull). Corollaries 2 and 3, for two classes, have the second only.

    Examples
    --------
    >>> c = stated_constant(lipschitz=lq_lipschitz(2, 1.0), bound=1.0, delta=0.05, p=13, D=1)
    >>> round(excess_risk(c, n=10_000), 4)
    0.6443
    """
    at_least(1, n=n)
    not_negative(c=c)
    return c / math.sqrt(n)


def stated_xi(p: float) -> float:
    """``xi = p/(p+2)``, the entropy exponent that the paper gives Theorem 1 for a class of pseudodimension ``p``.

    It is that of a class with *covering numbers* ``(1/eps)^p`` in L2 (``log N(co G) <= K (1/eps)^(2V/(V+2))`` for
    ``N(G) <= (C/eps)^V``: van der Vaart and Wellner 1996, Theorem 2.6.9). Pseudodimension ``p`` gives ``V = 2p``, as
    the paper's own appendix uses it: see :func:`covering_xi`.

    Examples
    --------
    >>> stated_xi(2)
    0.5
    """
    positive(p=p)
    return p / (p + 2)


def covering_xi(p: float) -> float:
    """``xi = p/(p+1)``: the exponent for pseudodimension ``p``, whose covering numbers are ``(C/eps)^(2p)`` in L2.

    ``2 xi = 2V/(V+2)`` with ``V = 2p``. That it cannot be :func:`stated_xi` is seen at ``p = 1``: half-lines
    ``I(x >= t)`` have VC dimension 1, and their convex hull, the distribution functions, has an entropy of order
    ``1/eps`` under a uniform distribution, so that ``2 xi = 1`` and not ``2/3``. The rate becomes
    ``(delta/n)^((p+1)/(2p+1))`` in place of ``(delta/n)^((p+2)/(2p+2))``: still faster than ``1/sqrt(n)``.

    Examples
    --------
    >>> covering_xi(1)
    0.5
    """
    positive(p=p)
    return p / (p + 1)


def fast_rate(n: int, *, tail: float, xi: float) -> float:
    """Theorem 1's rate ``(delta/n)^(1/(1 + xi))``.

    Parameters
    ----------
    n : int
    tail : float
        The theorem's ``delta``, which is not a probability there: the bound holds with probability ``1 - e^-tail``.
    xi : float
        In (0, 1), see :func:`stated_xi` and :func:`covering_xi`.

    Examples
    --------
    >>> round(fast_rate(10_000, tail=1.0, xi=stated_xi(2)), 6)
    0.002154
    """
    at_least(1, n=n)
    positive(tail=tail)
    probability(xi=xi)
    return (tail / n) ** (1 / (1 + xi))


def theorem1_excess_risk(n: int, *, tail: float, xi: float, bound: float, c1: float) -> float:
    """Theorem 1 (Mannor, Meir and Zhang 2003, Theorem 9): ``(4 c_1 B^2 / xi) (delta/n)^(1/(1 + xi))``.

    For two classes coded -1 and 1 and squared loss, with probability ``1 - e^-tail`` for all ``f`` in the hull,
    ``R(f) - R(f*) <= 4 (R_n(f) - R_n(f*))`` plus this.

    Parameters
    ----------
    n, tail, xi
        As in :func:`fast_rate`; ``tail`` must also be at least a constant ``c_0``, which is not known.
    bound : float
    c1 : float
        A constant that depends on the entropy's constants only; no value of it is known.

    Examples
    --------
    >>> round(theorem1_excess_risk(10_000, tail=1.0, xi=0.5, bound=1.0, c1=1.0), 6)
    0.017235
    """
    positive(bound=bound, c1=c1)
    probability(xi=xi)
    return 4 * c1 * bound**2 / xi * fast_rate(n, tail=tail, xi=xi)
