"""Outputs of the graph: predicted values, or class probabilities and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.io.onnx.graph import Graph
from gce.losses import CrossEntropy, Logistic, Loss, Quantiles
from gce.losses.deviances import LogLinkLoss


def inverse_link(graph: Graph, loss: Loss, scores: str) -> str:
    """Add the inverse link of a loss.

    Parameters
    ----------
    graph : Graph
        The graph.
    loss : Loss
        The loss of the model.
    scores : str
        Raw scores ``(rows, k)``.

    Returns
    -------
    str
        Predictions ``(rows, k)``, or two columns of probabilities for two classes.

    Raises
    ------
    ValueError
        The loss has an inverse link of its own.
    """
    link = type(loss).predict
    if link is Loss.predict:
        return scores
    if link is Logistic.predict:
        return graph("Concat", graph("Sigmoid", graph("Neg", scores)), graph("Sigmoid", scores), axis=1)
    if link is CrossEntropy.predict:
        return graph("Softmax", scores, axis=1)
    if link is LogLinkLoss.predict:
        return graph("Exp", scores)
    if link is Quantiles.predict:
        return graph.sort(scores, loss.outputs_per_target)
    raise ValueError(
        f"the loss {type(loss).__name__} has its own predict method and cannot be exported to ONNX: save the model "
        "with joblib.dump"
    )


def predicted_label(graph: Graph, classes: NDArray[Any], scores: str, outputs: int) -> str:
    """Add the predicted class ``(rows,)``: the largest score, or of two classes the sign of the score.

    Parameters
    ----------
    graph : Graph
        The graph.
    classes : array of shape (c,)
        The classes.
    scores : str
        Raw scores ``(rows, outputs)``.
    outputs : int
        Number of scores; 1 for two classes.

    Returns
    -------
    str
    """
    if outputs == 1:
        first = graph("Squeeze", scores, np.array([1]))
        code = graph.cast(graph("Greater", first, np.float64(0)), np.int64)
    else:
        code = graph("ArgMax", scores, axis=1, keepdims=0)
    return graph("Gather", classes, code)


def as_labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Classes in a type that ONNX supports: text, booleans, int64 or float64."""
    if classes.dtype.kind in "iu" and classes.max() <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float64)
    if classes.dtype.kind == "b":
        return classes
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    raise ValueError(
        f"classes {classes.tolist()} are not all text, int64, float64 or booleans: encode y before fitting"
    )
