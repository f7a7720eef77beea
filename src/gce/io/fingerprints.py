"""What makes a fit the fit it is: everything that shapes its rounds, by name."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from gce.io import container, values
from gce.preprocessing.mixed import inputs_of
from gce.preprocessing.sparse import Inputs
from gce.training.data import FitData
from gce.training.plan import FitPlan

#: Parameters that shape no round that was run: limits and conveniences. What the random state gave is the seed.
_FREE = {
    "max_iter",
    "max_atoms",
    "time_limit",
    "tol",
    "n_iter_no_change",
    "n_jobs",
    "device",
    "callbacks",
    "verbose",
    "warm_start",
    "temperature",
    "clip_predictions",
    "random_state",
}


def fingerprint(plan: FitPlan, data: FitData) -> dict[str, Any]:
    """JSON values by name; a fit with the same ones runs the same rounds.

    Parameters
    ----------
    plan : FitPlan
    data : FitData
    """
    problem, streams = data.problem, data.streams
    tensors = {
        "X": inputs_of(problem.X),
        "y": problem.y,
        "training weights": problem.train,
        "held-out rows": problem.held_out,
        "offset_": problem.offset,
        "bound_": problem.bound,
    }
    return {
        "estimator": plan.estimator,
        **{name: _parameter(value) for name, value in plan.parameters.items() if name not in _FREE},
        "random_state": streams.seed,
        **{name: _digest(tensor) for name, tensor in tensors.items()},
        # a member's random numbers are named by the rows it holds out, as they were before they were scaled
        "members": list(streams.names),
        **({"shards": dict(data.source)} if data.source else {}),
    }


def _parameter(value: Any) -> Any:
    try:
        return values.encode(value)
    except values.OpaqueError:
        # its repr may name an address, which is another one after a restart; data that it gives is in the tensors
        name = values.describe_opaque(value)
        if isinstance(value, list | tuple):
            return [_parameter(one) for one in value]
        if isinstance(value, dict):
            return [[_parameter(key), _parameter(one)] for key, one in value.items()]
        if not isinstance(value, BaseEstimator):
            return name
        return {"object": name, "parameters": {key: _parameter(own) for key, own in value.get_params(False).items()}}


def _digest(rows: Inputs) -> str:
    """A hash of a tensor, or of sparse rows."""
    tensors = [rows] if isinstance(rows, Tensor) else [*map(torch.from_numpy, _pieces(rows.matrix)), rows.centre]
    sha = hashlib.sha256(repr(tuple(rows.shape)).encode())
    for tensor in tensors:
        sha.update(repr((tensor.dtype, tuple(tensor.shape))).encode())
        sha.update(container.as_bytes(tensor.cpu().contiguous()))
    return sha.hexdigest()


def _pieces(matrix: Any) -> tuple[Any, ...]:
    return matrix.data, matrix.indices, matrix.indptr
