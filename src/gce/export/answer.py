"""What raw scores mean, as operators: numbers, or probabilities and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.export.graph import Graph
from gce.losses import CrossEntropy, Logistic, Loss


def inverse_link(graph: Graph, loss: Loss, scores: str) -> str:
    """What the loss makes of raw scores ``(rows, k)``."""
    link = type(loss).predict
    if link is Loss.predict:
        return scores
    if link is Logistic.predict:
        return graph("Concat", graph("Sigmoid", graph("Neg", scores)), graph("Sigmoid", scores), axis=1)
    if link is CrossEntropy.predict:
        return graph("Softmax", scores, axis=1)
    raise ValueError(
        f"the loss {type(loss).__name__} has a predict of its own and cannot be written as ONNX: keep the model with "
        "joblib.dump"
    )


def label(graph: Graph, classes: NDArray[Any], scores: str, outputs: int) -> str:
    """The class with the largest score, ``(rows,)``; of one score, the second class where it is positive."""
    if outputs == 1:
        first = graph("Squeeze", scores, np.array([1]))
        code = graph.cast(graph("Greater", first, np.float64(0)), np.int64)
    else:
        code = graph("ArgMax", scores, axis=1, keepdims=0)
    return graph("Gather", classes, code)


def as_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Classes in a type that ONNX has: text, booleans, int64 or float64."""
    if classes.dtype.kind in "iu" and classes.max() <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if classes.dtype.kind == "b":
        return classes
    if all(isinstance(one, str) for one in classes.tolist()):
        return classes.astype(object)
    raise ValueError(
        f"classes {classes.tolist()} are not all text, int64, float64 or booleans: encode y before the fit"
    )
