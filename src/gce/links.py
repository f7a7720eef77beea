"""Between scores and probabilities: on the CPU by compiled loops, where a row gets the same bits wherever it stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from gce import native


def sigmoid(scores: Tensor) -> Tensor:
    """Probabilities ``(..., 2)`` of two classes from the log-odds ``(..., 1)`` of the second."""
    loops = native.rowwise()
    if loops is None or not _plain(scores):
        return torch.cat([torch.sigmoid(-scores), torch.sigmoid(scores)], -1)
    return _by_rows(loops.sigmoid, scores, (), 2).reshape(*scores.shape[:-1], 2)


def softmax(scores: Tensor) -> Tensor:
    """Probabilities ``(..., k)`` from a score a class."""
    loops = native.rowwise()
    if loops is None or not _plain(scores):
        return torch.softmax(scores, -1)
    k = scores.shape[-1]
    return _by_rows(loops.softmax, scores, (k,), k).reshape(scores.shape)


def log_odds(p: Tensor) -> Tensor:
    """``log(p / (1 - p))``, of any shape."""
    loops = native.rowwise()
    if loops is None or not _plain(p):
        return torch.log(p) - torch.log1p(-p)
    return _by_rows(loops.log_odds, p, ()).reshape(p.shape)


def centred_log(p: Tensor) -> Tensor:
    """``log(p)`` of probabilities ``(..., k)``, less its mean over the classes."""
    loops = native.rowwise()
    if loops is None or not _plain(p):
        scores = torch.log(p)
        return scores - scores.mean(-1, keepdim=True)
    k = p.shape[-1]
    return _by_rows(loops.centred_log, p, (k,), k).reshape(p.shape)


def _plain(t: Tensor) -> bool:
    """Whether compiled loops can take it."""
    return t.device.type == "cpu" and t.dtype == torch.float64 and not t.requires_grad


def _by_rows(loop: Callable[..., None], given: Tensor, row: tuple[int, ...], *answer: int) -> Tensor:
    """What a loop makes of numbers seen as rows of a shape, each with an answer of a shape."""
    rows = given.detach().contiguous().numpy().reshape(-1, *row)
    out = np.empty((len(rows), *answer))
    loop(rows, out)
    return torch.from_numpy(out)
