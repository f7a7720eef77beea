"""Raw scores of a fitted model, in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from gce._utils.parallel import limited
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import DENSE_BLOCK_SIZE, Matrix, SparseRows
from gce.training.result import FitResult

#: Rows that are predicted at a time.
_BLOCK_ROWS = 65_536
#: Numbers of dense rows that are scaled at a time.
_BLOCK_NUMBERS = 1 << 26


def encode_rows(result: FitResult, X: Matrix) -> Rows:
    """Coded rows as atoms see them, on the device of the model.

    Parameters
    ----------
    result : FitResult
    X : array or SparseRows of shape (n, d)

    Returns
    -------
    Tensor, SparseRows or MixedRows of shape (n, d')
    """
    return result.table.rows(X, result.ensemble.offset.device)


def raw_scores(result: FitResult, X: Matrix) -> Tensor:
    """Raw scores of coded rows, without those of external models.

    Parameters
    ----------
    result : FitResult
    X : array or SparseRows of shape (n, d)

    Returns
    -------
    Tensor of shape (n, k)
    """
    return _scores(result, result.ensemble, X)


def residual_scales(result: FitResult, X: Matrix) -> Tensor:
    """How large residuals of coded rows are expected to be, relative to their mean size, of a model that knows it.

    Parameters
    ----------
    result : FitResult
    X : array or SparseRows of shape (n, d)

    Returns
    -------
    Tensor of shape (n, k)
    """
    scale = result.calibration.scale
    assert scale is not None
    return scale.scales(_scores(result, scale.ensemble, X))


def _scores(result: FitResult, ensemble: ConvexEnsemble, X: Matrix) -> Tensor:
    """Raw scores ``(n, k)`` of an ensemble; one block of rows is encoded at a time."""
    step = _BLOCK_ROWS
    # sparse rows stay sparse, unless there are indicators of missing values beside them
    if not isinstance(X, SparseRows) or len(result.table.encoder.flagged):
        at_once = DENSE_BLOCK_SIZE if isinstance(X, SparseRows) else _BLOCK_NUMBERS
        step = min(step, max(1, at_once // max(X.shape[1], 1)))
    # no rows are one empty block: scores of shape (0, k)
    blocks = (X[first : first + step] for first in range(0, max(len(X), 1), step))
    each = [ensemble(encode_rows(result, block)) for block in blocks]
    if len(each) > 1:
        scores = np.concatenate([some.cpu().numpy() for some in each])
        each = [torch.from_numpy(scores).to(each[0].device)]
    # as arrays: torch would wake up its threads for one operation, which then wait for another at full speed
    if not np.isfinite(each[0].cpu().numpy()).all():
        result.table.check_range(X)
    return each[0]


def staged_scores(result: FitResult, X: Matrix, n_jobs: int | None) -> Iterator[Tensor]:
    """Raw scores of coded rows after each round; each member keeps those of its best round from then on.

    Parameters
    ----------
    result : FitResult
    X : array or SparseRows of shape (n, d)
    n_jobs : int or None
        Number of threads.

    Yields
    ------
    Tensor of shape (n, k)
    """
    if result.edited:
        raise ValueError("an edited model has no rounds and no staged predictions: use the model that was edited")
    # not around the loop: what the caller does between two rounds is not ours
    with torch.no_grad(), limited(n_jobs):
        ensemble, path = result.stages()
        outputs = ensemble.outputs(encode_rows(result, X))
    for weights in path:
        yield ensemble.offset + torch.einsum("ak,ank->nk", weights.expand(-1, outputs.shape[2]), outputs)
