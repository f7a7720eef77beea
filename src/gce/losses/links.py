"""Links between scores and probabilities.

On the CPU they are compiled loops, so that a row has the same bits whatever its position and the batch it is in.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gce._utils import rowwise


def sigmoid(scores: Tensor) -> Tensor:
    """Probabilities ``(..., 2)`` of two classes from the log-odds ``(..., 1)`` of the second class."""
    if not _is_plain(scores):
        return torch.cat([torch.sigmoid(-scores), torch.sigmoid(scores)], -1)
    return _by_rows(rowwise.sigmoid, scores, (), 2).reshape(*scores.shape[:-1], 2)


def softmax(scores: Tensor) -> Tensor:
    """Probabilities ``(..., k)`` from one score per class, ``(..., k)``."""
    if not _is_plain(scores):
        return torch.softmax(scores, -1)
    k = scores.shape[-1]
    return _by_rows(rowwise.softmax, scores, (k,), k).reshape(scores.shape)


def exp(scores: Tensor) -> Tensor:
    """Means from their logarithms, of any shape."""
    if not _is_plain(scores):
        return torch.exp(scores)
    return _by_rows(rowwise.exponential, scores, ()).reshape(scores.shape)


def log(mean: Tensor) -> Tensor:
    """Logarithms of positive means, of any shape."""
    if not _is_plain(mean):
        return torch.log(mean)
    return _by_rows(rowwise.logarithm, mean, ()).reshape(mean.shape)


def log_odds(p: Tensor) -> Tensor:
    """Log-odds ``log(p / (1 - p))`` of probabilities of any shape."""
    if not _is_plain(p):
        return torch.log(p) - torch.log1p(-p)
    return _by_rows(rowwise.log_odds, p, ()).reshape(p.shape)


def centred_log(p: Tensor) -> Tensor:
    """Logarithms of probabilities ``(..., k)``, centred over the classes."""
    if not _is_plain(p):
        scores = torch.log(p)
        return scores - scores.mean(-1, keepdim=True)
    k = p.shape[-1]
    return _by_rows(rowwise.centred_log, p, (k,), k).reshape(p.shape)


def _is_plain(t: Tensor) -> bool:
    """Whether compiled loops can process a tensor."""
    return t.device.type == "cpu" and t.dtype == torch.float64 and not t.requires_grad


def _by_rows(loop: Callable[..., None], values: Tensor, row: tuple[int, ...], *result: int) -> Tensor:
    """Apply a loop to numbers viewed as rows of shape ``row``; each row's result has the shape ``result``."""
    rows = values.detach().contiguous().numpy().reshape(-1, *row)
    out = np.empty((len(rows), *result))
    loop(rows, out)
    return torch.from_numpy(out)
