"""Compiled loops for the CPU in which a row gets the same bits whatever rows are beside it.

A product of matrices, or ``exp`` of a vector, rounds one way in the middle of a vector instruction and another way in
what is left over at the end. Here every row goes through the same operations in the same order, each of them rounded as
IEEE 754 says: sums are never reordered, products are fused with the sums they are added to where the source says so, on
every processor, and ``exp``, ``log`` and ``tanh`` are written out. The loops are in ``native/rowwise.cpp``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.native import FLOAT, INT, array, kernel

Array = NDArray[Any]

_NUMBERS = array(np.float64)
_LINKS = {
    "sigmoid": (_NUMBERS, INT, _NUMBERS),
    "softmax": (_NUMBERS, INT, INT, _NUMBERS),
    "exponential": (_NUMBERS, INT, _NUMBERS),
    "logarithm": (_NUMBERS, INT, _NUMBERS),
    "log_odds": (_NUMBERS, INT, _NUMBERS),
    "centred_log": (_NUMBERS, INT, INT, _NUMBERS),
}


def sigmoid(score: Array, result: Array) -> None:
    """Probabilities ``(n, 2)`` of two classes from the log-odds ``(n,)`` of the second."""
    _link("sigmoid")(score, len(score), result)


def softmax(scores: Array, result: Array) -> None:
    """Probabilities ``(n, k)`` from scores ``(n, k)``; sums are in the order of the classes."""
    _link("softmax")(scores, *scores.shape, result)


def exponential(score: Array, result: Array) -> None:
    """``exp`` of scores ``(n,)``; infinite beyond 710."""
    _link("exponential")(score, len(score), result)


def logarithm(mean: Array, result: Array) -> None:
    """``log`` of non-negative numbers ``(n,)``."""
    _link("logarithm")(mean, len(mean), result)


def log_odds(p: Array, result: Array) -> None:
    """``log(p / (1 - p))`` of probabilities ``(n,)``."""
    _link("log_odds")(p, len(p), result)


def centred_log(p: Array, result: Array) -> None:
    """``log(p)`` of probabilities ``(n, k)``, less its mean over the classes."""
    _link("centred_log")(p, *p.shape, result)


@cache
def _link(name: str) -> Callable[..., Any]:
    return kernel(name, *_LINKS[name])


def scaled(X: Array, mean: Array, factor: Array, clip: float, result: Array, first: int, last: int) -> None:
    """``z / (1 + (z / clip)^4)^(1/4)`` of ``z = (x - mean) * factor``, for rows ``first`` to ``last``.

    ``X`` may have any layout.
    """
    down, across = (stride // X.itemsize for stride in X.strides)
    _scaled()(X, down, across, X.shape[1], mean, factor, clip, result, first, last)


@cache
def _scaled() -> Callable[..., Any]:
    rows = np.ctypeslib.ndpointer(np.float64, ndim=2)
    return kernel("scaled", rows, INT, INT, INT, _NUMBERS, _NUMBERS, FLOAT, _NUMBERS, INT, INT)


def outputs(X: Array, nets: tuple[Array, ...], bound: Array, shape: Array, result: Array, start: int, end: int) -> None:
    """Outputs ``bound * unit`` of every atom on rows ``start`` to ``end`` of ``X``, into ``result (A, n, k)``.

    Parameters
    ----------
    X : array of shape (n, d), or (n, nets * h) where ``d`` is given as -1
        Rows, or the sums in the hidden units of all networks.
    nets : tuple of flat arrays
        ``W1, b1, W2, b2`` of all networks; without ``W2`` hidden units are the outputs.
    bound : array of shape (models * k,)
        Bounds of the outputs of an atom.
    shape : array of seven int64
        ``d``, ``h``, ``k`` of a network, the places of the layers' nonlinearities in
        :data:`gce.bases.neural.evaluation.CURVES`, the networks of an atom, and all networks.
    result : array of shape (A, n, k)
        Where outputs are written.
    start, end : int
        The rows.
    """
    of = _network_kernel("outputs", bound.dtype, X.dtype)
    of(X, *nets, len(nets[2]), bound, shape, len(X), start, end, result)


def mixture(
    X: Array, nets: tuple[Array, ...], bound: Array, shape: Array, weights: Array, result: Array, start: int, end: int
) -> None:
    """Add ``sum_a weights_a atom_a`` on rows ``start`` to ``end`` to ``result (n, k)``, in float64; see ``outputs``."""
    of = _network_kernel("mixture", bound.dtype, X.dtype)
    of(X, *nets, len(nets[2]), bound, shape, weights, start, end, result)


@cache
def _network_kernel(name: str, networks: np.dtype[Any], rows: np.dtype[Any]) -> Callable[..., Any]:
    layer, shape = array(networks), array(np.int64)
    rest = (INT, INT, INT, layer) if name == "outputs" else (_NUMBERS, INT, INT, _NUMBERS)
    full = f"{name}_f{8 * networks.itemsize}_f{8 * rows.itemsize}"
    return kernel(full, array(rows), layer, layer, layer, layer, INT, layer, shape, *rest)
