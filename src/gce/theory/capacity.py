"""Capacity of classes: lower bounds on the VC dimension, upper bounds on the pseudodimension.

The pseudodimension ``p`` of the *class of atoms* enters Theorems 2 and 3; that of their convex hull is
infinite (Proposition 2). Books are quoted as [AB] for Anthony and Bartlett, *Neural Network Learning: Theoretical
Foundations* (1999).

Neither scaling by a positive bound nor squashing adds anything: ``Pdim(s o F) <= Pdim(F)`` for a nondecreasing ``s``
([AB], Theorem 11.3), and both ``u -> B clamp(u, -1, 1)`` and ``u -> B tanh(u)`` are nondecreasing.
"""

from __future__ import annotations

import math

import numpy as np

from gce.bases import Basis, Neural, Neuron, Pool
from gce.theory.checks import at_least


def vc_lower_bound(d: int, k: int) -> float:
    """Proposition 1 ([AB], Theorem 6.4): a lower bound for ``k`` linear threshold units with free weights.

    The VC dimension of ``bin(lin_k(T))`` on ``R^d`` is at least ``(dk/8) log2(k/4)``, provided that ``d > 3`` and
    ``k <= 2^(d/2 - 2)``. For ``k <= 4`` the bound is vacuous: the logarithm is not positive.

    Parameters
    ----------
    d : int
        Number of inputs.
    k : int
        Number of threshold units.

    Returns
    -------
    float

    Examples
    --------
    >>> vc_lower_bound(d=12, k=16)
    48.0
    >>> vc_lower_bound(d=12, k=17)
    Traceback (most recent call last):
        ...
    ValueError: Proposition 1 needs k <= 2^(d/2 - 2), which is 16 for d=12, got k=17; Proposition 2 goes on from there
    """
    at_least(1, d=d, k=k)
    if d <= 3:
        raise ValueError(f"Proposition 1 needs d > 3, got d={d}; Proposition 2 asks only for d >= 2")
    if math.log2(k) > d / 2 - 2:
        raise ValueError(
            f"Proposition 1 needs k <= 2^(d/2 - 2), which is {2 ** (d / 2 - 2):.6g} for d={d}, got k={k}; "
            "Proposition 2 goes on from there"
        )
    return d * k / 8 * math.log2(k / 4)


def threshold_units(d: int) -> int:
    """Pseudodimension of ``I(theta'x >= t)`` on ``R^d``: exactly ``d + 1`` ([AB], Section 3.3).

    The class is binary, so its pseudodimension is its VC dimension.

    Parameters
    ----------
    d : int
        Number of inputs.

    Returns
    -------
    int

    Examples
    --------
    >>> threshold_units(2)
    3
    """
    at_least(1, d=d)
    return d + 1


def single_neurons(d: int) -> int:
    """Pseudodimension of ``B tanh(u'x)`` on ``R^d``: exactly ``d``.

    The linear forms are a vector space of dimension ``d``, and that is its pseudodimension ([AB], Theorem 11.4);
    ``B tanh`` is continuous and strictly increasing and changes nothing ([AB], Theorem 11.3). A bias would add 1.

    Parameters
    ----------
    d : int
        Number of inputs.

    Returns
    -------
    int

    Examples
    --------
    >>> single_neurons(13)
    13
    """
    at_least(1, d=d)
    return d


def finite_class(size: int) -> int:
    """Pseudodimension of ``size`` functions: at most ``floor(log2(size))``, since ``p`` points take ``2^p`` of them.

    Parameters
    ----------
    size : int
        Number of functions.

    Returns
    -------
    int

    Examples
    --------
    >>> finite_class(8), finite_class(7)
    (3, 2)
    """
    at_least(1, size=size)
    return int(size).bit_length() - 1


def network_parameters(d: int, hidden: int) -> int:
    """Weights and biases of a two-layer network with one output: ``hidden (d + 2) + 1``.

    Parameters
    ----------
    d : int
        Number of inputs.
    hidden : int
        Number of hidden units.

    Returns
    -------
    int

    Examples
    --------
    >>> network_parameters(d=13, hidden=10)
    151
    """
    at_least(1, d=d, hidden=hidden)
    return hidden * (d + 2) + 1


def relu_networks(d: int, hidden: int) -> int:
    """Upper bound on the pseudodimension of two-layer ReLU networks with one output, by counting sign patterns.

    The argument is that of Bartlett, Maiorov and Meir (1998) and of Bartlett, Harvey, Liaw and Mehrabian (2019, its
    Theorem 7) for two layers; the last inequality is solved by bisection where they give a closed form.

    Take ``m >= W`` points with thresholds ``r_i``, ``W`` being the number of parameters. A hidden unit is a half-space
    of ``R^d``: by Sauer's lemma it divides the points in at most ``(em/(d+1))^(d+1)`` ways, ``hidden`` units in at most
    that to the power ``hidden``. While all those signs stay as they are, every ``f(x_i) - r_i`` is a polynomial of
    degree 2 in the ``W`` parameters, and ``m`` such polynomials have at most ``2 (4em/W)^W`` sign vectors ([AB],
    Theorem 8.3, from Warren's theorem). If the points are shattered, the product is at least ``2^m``::

        m <= 1 + hidden (d + 1) log2(em/(d+1)) + W log2(4em/W)

    The right side is concave in ``m`` and larger than the left at ``m = W``, so that the inequality holds up to one
    number, which is returned. It is of order ``W log2 W``.

    Parameters
    ----------
    d : int
        Number of inputs.
    hidden : int
        Number of hidden units.

    Returns
    -------
    int

    Examples
    --------
    >>> relu_networks(d=13, hidden=10)
    2356
    """
    W = network_parameters(d, hidden)

    def possible(m: int) -> bool:
        first = hidden * (d + 1) * math.log2(math.e * m / (d + 1))
        return m <= 1 + first + W * math.log2(4 * math.e * m / W)

    low, high = W, 2 * W
    while possible(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return low


def tanh_networks(d: int, hidden: int) -> int:
    """Upper bound on the pseudodimension of two-layer tanh networks with one output (Karpinski and Macintyre 1997).

    With the constants of [AB], Theorem 8.13: a feed-forward network of ``W`` parameters and ``k`` computation units,
    all but the thresholded output unit being standard sigmoids, has VC dimension at most
    ``(Wk)^2 + 11 Wk log2(18 W k^2)``.

    It carries over in two steps. ``tanh(a) = 2 sigmoid(2a) - 1``, so that tanh networks with biases are sigmoid
    networks with other values of the same parameters. And the pseudodimension of ``F`` is the VC dimension of
    ``(x, r) -> I(f(x) - r >= 0)``, a network with one more input that goes straight to the output unit: one more
    parameter, no more units. So ``W = hidden (d + 2) + 2`` and ``k = hidden + 1``.

    Parameters
    ----------
    d : int
        Number of inputs.
    hidden : int
        Number of hidden units.

    Returns
    -------
    int

    Examples
    --------
    >>> tanh_networks(d=13, hidden=10)
    3132832
    """
    W, k = network_parameters(d, hidden) + 1, hidden + 1
    return math.floor((W * k) ** 2 + 11 * W * k * math.log2(18 * W * k**2))


def pseudodimension(basis: Basis, d: int, rows: int) -> int:
    """Pseudodimension of a basis with one output: exact for neurons, an upper bound otherwise.

    Parameters
    ----------
    basis : Neural, Neuron or Pool
    d : int
        Number of columns.
    rows : int
        Number of training rows, which determines the default size of ``Neural``.

    Returns
    -------
    int

    Examples
    --------
    >>> from gce.bases import Neural, Neuron
    >>> pseudodimension(Neuron(), d=13, rows=400)
    13
    >>> pseudodimension(Neural(hidden=10), d=13, rows=400) == relu_networks(13, 10)
    True
    """
    if isinstance(basis, Neuron):
        return single_neurons(d)
    if isinstance(basis, Neural):
        net = basis.architecture(rows)
        return relu_networks(d, net.hidden) if net.activation == "relu" else tanh_networks(d, net.hidden)
    if isinstance(basis, Pool):
        members = basis.functions if basis.functions is not None else np.asarray(basis.outputs)
        return finite_class(len(members) + 1)  # the zero function is in every hull
    raise ValueError(
        f"no bound on the pseudodimension of {type(basis).__name__} is known here: it is for Neural, Neuron and Pool"
    )
