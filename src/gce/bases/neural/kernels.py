"""Compiled loops for the CPU: training two-layer networks.

Rows are worked on in *tiles*, columns first; sums over rows are in a fixed number of lanes, so that every instruction
set gives the same bits. The loops are in ``native/neural.cpp``.

A network is a flat vector: ``W1 (h, d)``, ``b1 (h,)``, ``W2 (k, h)``, ``b2 (k,)``. Its *shape* is an array of five
int64: ``d``, ``h``, ``k``, and whether each of its layers is a tanh (or else a ReLU, and a clipped identity).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.native import FLOAT, INT, array, kernel

Array = NDArray[Any]

_INTS, _DOUBLES, _FLAGS = array(np.int64), array(np.float64), array(np.bool_)


@cache
def tile_rows() -> int:
    """Rows of a tile."""
    return int(kernel("tile", result=INT)())


@cache
def chunk_rows() -> int:
    """Rows of a chunk: gradients are summed within chunks first, so that threads can share a batch to the same bits."""
    return int(kernel("chunk", result=INT)())


def pack(X: Array, S: Array, rows: Array, shape: Array, packed: Array) -> None:
    """Copy rows of ``X (n, d)`` and ``S (n, k)`` to tiles, ``(tiles, (d + k) * tile_rows())``; the rest is 0."""
    _kernel("pack", X.dtype)(X, S, len(X), rows, len(rows), shape, packed)


def chunk_gradients(
    X: Array, S: Array, rows: Array, packed: Array, first: int, net: Array, shape: Array, into: Array
) -> float:
    """Gradients ``into`` of a chunk of rows from ``first`` on, packed here unless they all are; return their value."""
    value = ctypes.c_double()
    _kernel("chunk_gradients", net.dtype)(
        X, S, len(X), rows, len(rows), packed, len(packed), first, net, shape, into, ctypes.byref(value)
    )
    return value.value


@cache
def gradient_units() -> float:
    """Into how many units 1 is divided where gradients are added up as integers."""
    return float(kernel("gradient_units", result=FLOAT)())


@cache
def value_units() -> float:
    """The same for values."""
    return float(kernel("value_units", result=FLOAT)())


def piece_sums(X: Array, S: Array, rows: Array, ends: Array, net: Array, shape: Array, sums: Array) -> None:
    """Add the gradients of pieces of rows to integers, whose sum does not depend on their order.

    Parameters
    ----------
    X, S : array of shape (n, d), (n, k)
        Rows, and gradients of the linear objective.
    rows : int array of shape (r,)
        The rows of all pieces, one piece after another.
    ends : int array of shape (pieces + 1,)
        Where pieces begin and end among ``rows``.
    net : array of shape (P,)
    shape : array of shape (5,)
    sums : int array of shape (P + 2,)
        Gradients in :func:`gradient_units`, the value in :func:`value_units`, and how many chunks of rows are left out
        because of a number that is not finite.
    """
    _kernel("piece_sums", net.dtype)(X, S, len(X), rows, ends, len(ends) - 1, net, shape, sums)


def adam(
    net: Array, gradient: Array, share: float, mean: Array, square: Array, sign: Array, t: float, rate: float
) -> None:
    """One step of Adam on a flat network, its gradients multiplied by ``share``; what leaves its sign (0: any) is 0."""
    _kernel("adam", net.dtype)(net, gradient, share, mean, square, sign, len(net), t, rate)


def advance(state: Array, value: float, schedule: Array) -> bool:
    """The plateau rule of :class:`gce.bases.neural.descent.Plateau` for one network; True where the value is its best.

    ``state``: rate, best value, epochs since progress, epochs left, failed, steps. ``schedule``: floor, patience, last
    epochs, progress.
    """
    return bool(_advance()(state, value, schedule))


def train(
    X: Array,
    S: Array,
    present: Array,
    packed: Array,
    orders: Array,
    epochs: int,
    batches: Array,
    vectors: Array,
    state: Array,
    schedule: Array,
    shape: Array,
) -> None:
    """Train one network for some epochs, or until its rate is 0.

    Parameters
    ----------
    X, S : array of shape (n, d), (n, k)
        Rows, and gradients of the linear objective.
    present : bool array of shape (n,)
        Rows with a gradient: the others would add nothing and are skipped.
    packed : array of shape (tiles, (d + k) * tile_rows())
        The rows present, where each batch is all of them; empty for mini-batches.
    orders : int array of shape (epochs, n), or (1, n) for full batches
    epochs : int
    batches : int array of shape (batches + 1,)
        Where batches begin and end in an order.
    vectors : array of shape (7, P)
        The network, its best, gradients, a chunk's gradients, Adam's two means, and signs.
    state, schedule : array of shape (6,), (4,)
        See :func:`advance`.
    shape : array of shape (5,)
    """
    known = X, S, len(X), present, packed, len(packed), orders, len(orders), epochs, batches, len(batches) - 1
    _kernel("train", X.dtype)(*known, vectors, state, schedule, shape)


@cache
def _advance() -> Callable[..., Any]:
    return kernel("advance", _DOUBLES, FLOAT, _DOUBLES, result=ctypes.c_int)


@cache
def _kernel(name: str, dtype: np.dtype[Any]) -> Callable[..., Any]:
    one = array(dtype)
    kinds = {
        "pack": (one, one, INT, _INTS, INT, _INTS, one),
        "chunk_gradients": (one, one, INT, _INTS, INT, one, INT, INT, one, _INTS, one, ctypes.c_void_p),
        "piece_sums": (one, one, INT, _INTS, _INTS, INT, one, _INTS, _INTS),
        "adam": (one, one, FLOAT, one, one, one, INT, FLOAT, FLOAT),
        "train": (one, one, INT, _FLAGS, one, INT, _INTS, INT, INT, _INTS, INT, one, _DOUBLES, _DOUBLES, _INTS),
    }
    return kernel(f"{name}_f{8 * dtype.itemsize}", *kinds[name])
