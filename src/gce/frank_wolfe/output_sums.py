"""Sums over the cached outputs of atoms, in compiled loops that read single precision without conversion."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from gce._utils import parallel, reductions

if TYPE_CHECKING:
    from gce.distributed.division import Division


def inner_products(cache: Tensor, gradient: Tensor, division: Division | None) -> Tensor:
    """``<D, g>`` of atoms with known outputs, ``(M, T)``.

    Parameters
    ----------
    cache : Tensor of shape (M, T, N, k)
        Outputs on all rows, of which the first ``n`` are trained on.
    gradient : Tensor of shape (M, n, k)
        ``D``.
    division : Division or None
        The shards of the training rows, where they are divided among processes.

    Returns
    -------
    Tensor of shape (M, T)
    """
    outputs, D = cache.flatten(2).numpy(), gradient.reshape(len(gradient), -1).numpy()
    ends = np.array([D.shape[1]]) if division is None else gradient.shape[2] * division.ends
    parts = np.zeros((len(D), len(ends), outputs.shape[1]))
    _each_member(cache, lambda m: reductions.inner_products_by_part(outputs[m], D[m], ends, parts[m]))
    if division is None:
        return torch.from_numpy(parts[:, 0])
    whole = np.zeros((len(division.counts), len(D), outputs.shape[1]))
    whole[division.first : division.last] = parts.transpose(1, 0, 2)
    return torch.from_numpy(division.add_in_order(whole))


def add_outputs(cache: Tensor, coefficients: Tensor, total: Tensor) -> None:
    """Add ``sum_t coefficients_t G_t``, in the order of atoms.

    Parameters
    ----------
    cache : Tensor of shape (M, T, N, k)
    coefficients : Tensor of shape (M, T)
    total : Tensor of shape (M, N, k)
        Changed in place.
    """
    outputs, result, w = cache.flatten(2).numpy(), total.flatten(1).numpy(), coefficients.contiguous().numpy()
    _each_member(cache, lambda m: reductions.combination(outputs[m], w[m], result[m]))


def _each_member(cache: Tensor, one: Callable[[int], None]) -> None:
    worth = 1 + cache.numel() // parallel.WORTH_A_THREAD
    with parallel.workers(min(parallel.threads(), len(cache), worth)) as run:
        run([partial(one, m) for m in range(len(cache))])
