"""The fast rate of Theorem 1 and its entropy exponents."""

from __future__ import annotations

from gce.theory.checks import at_least, positive, probability


def stated_xi(p: float) -> float:
    """``xi = p/(p+2)``, the entropy exponent that the paper gives Theorem 1 for a class of pseudodimension ``p``.

    It is that of a class with *covering numbers* ``(1/eps)^p`` in L2 (``log N(co G) <= K (1/eps)^(2V/(V+2))`` for
    ``N(G) <= (C/eps)^V``: van der Vaart and Wellner 1996, Theorem 2.6.9). Pseudodimension ``p`` gives ``V = 2p``, as
    the paper's own appendix uses it: see :func:`covering_xi`.

    Parameters
    ----------
    p : float
        Pseudodimension.

    Returns
    -------
    float

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

    Parameters
    ----------
    p : float
        Pseudodimension.

    Returns
    -------
    float

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
        Training rows.
    tail : float
        The theorem's ``delta``, which is not a probability there: the bound holds with probability ``1 - e^-tail``.
    xi : float
        In (0, 1), see :func:`stated_xi` and :func:`covering_xi`.

    Returns
    -------
    float

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
    n, tail, xi : float
        As in :func:`fast_rate`; ``tail`` must also be at least a constant ``c_0``, which is not known.
    bound : float
        ``B``.
    c1 : float
        A constant that depends on those of the entropy only; its value is not known.

    Returns
    -------
    float

    Examples
    --------
    >>> round(theorem1_excess_risk(10_000, tail=1.0, xi=0.5, bound=1.0, c1=1.0), 6)
    0.017235
    """
    positive(bound=bound, c1=c1)
    probability(xi=xi)
    return 4 * c1 * bound**2 / xi * fast_rate(n, tail=tail, xi=xi)
