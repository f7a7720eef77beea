"""The paper's Theorems 1 to 3 with their corollaries, as formulas of named numbers.

**The constant c.** Theorems 2 and 3 bound an excess risk by ``c / sqrt(n)``, with one of three constants:

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

    Parameters
    ----------
    q : float
        At least 1.
    bound : float
        ``B``.

    Returns
    -------
    float

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
    """``q`` of a loss ``|f - y|^q``, None for the logistic loss; other losses raise a ValueError.

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
    >>> from gce.losses import Logistic, Power, Squared
    >>> lipschitz(Squared(), bound=3.0), lipschitz(Power(3), bound=0.5), lipschitz(Logistic(), bound=10.0)
    (12.0, 3.0, 1.0)
    """
    positive(bound=bound)
    exponent(loss)
    return loss.lipschitz(bound)


def loss_range(loss: Loss, bound: float, offset: float = 0.0) -> tuple[float, float]:
    """Smallest and largest loss of a score in ``offset +- bound``.

    For ``|f - y|^q`` the target is assumed in ``offset +- bound`` too, so that the loss is at most ``(2B)^q`` (the
    proofs use the larger ``2 c_phi B = q (2B)^q``). For the logistic loss scores reach ``S = |offset| + B``, and the
    loss goes from ``ln(1 + e^-S)`` to ``ln(1 + e^S)``: a range of exactly ``S``.

    Parameters
    ----------
    loss : Squared, Power or Logistic
    bound : float
        ``B``.
    offset : float, default=0.0

    Returns
    -------
    tuple of two floats

    Examples
    --------
    >>> from gce.losses import Logistic, Squared
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
    """McDiarmid's bound on how far a function of ``count`` independent variables exceeds its mean.

    One-sided, if no variable can change it by more than ``difference``: ``difference sqrt(count ln(1/delta) / 2)``.

    Parameters
    ----------
    count : int
        Number of variables.
    difference : float
        Largest change by one variable.
    delta : float
        Probability of exceeding the returned deviation.

    Returns
    -------
    float

    Examples
    --------
    The appendix's (I), with ``4 c_phi B / n`` for ``c_phi = B = 1``, is ``sqrt(8 ln(1/delta) / n)``:

    >>> import math
    >>> n, delta = 100, 0.05
    >>> math.isclose(mcdiarmid(n, 4 / n, delta), math.sqrt(8 * math.log(1 / delta) / n))
    True
    """
    at_least(1, count=count)
    not_negative(difference=difference)
    probability(delta=delta)
    return difference * math.sqrt(count * math.log(1 / delta) / 2)


def hoeffding(n: int, width: float, delta: float) -> float:
    """Hoeffding's bound on how far a mean of ``n`` values of range ``width`` falls below its expectation.

    ``width sqrt(ln(1/delta) / (2n))``, one-sided: the risk of a model that does not depend on the ``n`` rows is at most
    its mean loss on them plus this, with probability ``1 - delta``.

    Parameters
    ----------
    n : int
        Number of values.
    width : float
        Difference of the largest and the smallest possible value.
    delta : float
        Probability of a larger deviation.

    Returns
    -------
    float

    Examples
    --------
    >>> round(hoeffding(1000, width=1.0, delta=0.05), 4)
    0.0387
    """
    at_least(1, n=n)
    return mcdiarmid(n, width / n, delta)


def _confidence(lipschitz: float, bound: float, delta: float) -> float:
    """``sqrt(2 ln(1/delta))``, after a check of the other factors."""
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
        The paper's absolute constant, whose value it does not give; :func:`admissible_constant` is a value for which
        the bound can be proved.

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

    The terms that do not depend on ``delta`` are twice those of :func:`stated_constant`; the notes of this module show
    where the paper loses the factor.

    Parameters
    ----------
    lipschitz, bound, delta, p, D : float
        As in :func:`stated_constant`.

    Returns
    -------
    float

    Examples
    --------
    >>> round(appendix_constant(lipschitz=1, bound=1, delta=0.05, p=13, D=1), 3)
    27.318
    """
    not_negative(p=p, D=D)
    return 2 * lipschitz * bound * (_confidence(lipschitz, bound, delta) + 2 * D * math.sqrt(p) + 4)


def one_sided_constant(*, lipschitz: float, bound: float, delta: float, p: float, D: float) -> float:
    """``c`` by the same proof for the one-sided supremum: ``2 c_phi B (sqrt(2 ln(1/delta)) + D sqrt(p))``.

    It is smaller than :func:`stated_constant`, so the theorems hold as stated; see the notes of this module.

    Parameters
    ----------
    lipschitz, bound, delta, p, D : float
        As in :func:`stated_constant`.

    Returns
    -------
    float

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

    Returns
    -------
    float

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

    Parameters
    ----------
    c : float
        A constant such as :func:`stated_constant`.
    n : int
        Training rows.

    Returns
    -------
    float

    Examples
    --------
    >>> c = stated_constant(lipschitz=lq_lipschitz(2, 1.0), bound=1.0, delta=0.05, p=13, D=1)
    >>> round(excess_risk(c, n=10_000), 4)
    0.6443
    """
    at_least(1, n=n)
    not_negative(c=c)
    return c / math.sqrt(n)
