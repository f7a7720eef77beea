"""Outputs of the graph: predicted values, or class probabilities and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from gce.io.onnx.graph import Graph
from gce.losses import CrossEntropy, Hazards, Logistic, Loss, MultiLabel, Ordinal, Quantiles
from gce.losses.deviances import LogLinkLoss
from gce.preprocessing.targets import by_label
from gce.training.result import FitResult

if TYPE_CHECKING:
    from gce.training.survival import SurvivalTarget
    from gce.training.targets import NumberTarget


def add_answers(graph: Graph, result: FitResult, raw: str) -> dict[str, Any]:
    """Add the outputs of a model.

    Parameters
    ----------
    graph : Graph
        The graph.
    result : FitResult
        The result of a fit.
    raw : str
        Raw scores ``(rows, k)``.

    Returns
    -------
    dict
        What readers of the outputs have to know beside them.
    """
    loss, target, outputs = result.loss, result.target, len(result.offset)
    if isinstance(loss, Hazards):
        return _survival(graph, result, loss, raw)
    if not target.classifies:
        mean, limits = inverse_link(graph, loss, raw), cast("NumberTarget", target).limits
        if limits is not None:
            mean = graph("Min", graph("Max", mean, limits[:1]), limits[1:])
        graph.output("variable", mean, np.float64, outputs)
        return {}
    temperature = result.calibration.temperature
    tempered = raw if temperature == 1 else graph("Div", raw, np.float64(temperature))
    if target.classes is None:
        graph.output("label", graph.cast(graph("Greater", raw, np.float64(0)), np.int64), np.int64, outputs)
        graph.output("probabilities", inverse_link(graph, loss, tempered, outputs), np.float64, outputs)
        return {}
    classes = as_labels(target.classes)
    if isinstance(loss, Ordinal):
        code = graph("ArgMax", _between(graph, tempered, outputs), axis=1, keepdims=0)
        label = graph("Gather", classes, code)
    else:
        label = predicted_label(graph, classes, raw, outputs)
    graph.output("label", label, classes.dtype)
    probabilities, order = inverse_link(graph, loss, tempered, outputs), target.label_order
    if order is not None:
        probabilities = graph("Gather", probabilities, order.astype(np.int64), axis=1)
    graph.output("probabilities", probabilities, np.float64, len(classes))
    return {"classes": by_label(classes, order).tolist()}


def _survival(graph: Graph, result: FitResult, loss: Hazards, raw: str) -> dict[str, Any]:
    """Risks ``(rows, 1)``, and probabilities of no event at the times of events, ``(rows, t)``."""
    target, like = cast("SurvivalTarget", result.target), torch.zeros(1, dtype=torch.float64)
    hazards = graph("Exp", graph("MatMul", raw, loss.powers(like).T.numpy()))
    risk = loss.risk(torch.eye(len(loss.ends), dtype=torch.float64)).numpy()
    graph.output("variable", graph("MatMul", hazards, risk), np.float64, 1)
    times = target.times
    cumulative = graph("MatMul", hazards, target.by_interval(result.calibration.baseline, times))
    graph.output("survival", graph("Exp", graph("Neg", cumulative)), np.float64, len(times))
    return {"times": times.tolist()}


def _between(graph: Graph, scores: str, outputs: int) -> str:
    """Probabilities of ordered classes: the differences of sorted probabilities to be above each."""
    # the graph sorts the smallest first: scores of being below, which are minus those of being above
    below = graph("Sigmoid", graph.sort(graph("Neg", scores), outputs))
    zero_first, one_last = np.array([0, 1, 0, 0]), np.array([0, 0, 0, 1])
    return graph("Sub", graph("Pad", below, one_last, np.float64(1)), graph("Pad", below, zero_first))


def inverse_link(graph: Graph, loss: Loss, scores: str, outputs: int = 1) -> str:
    """Add the inverse link of a loss.

    Parameters
    ----------
    graph : Graph
        The graph.
    loss : Loss
        The loss of the model.
    scores : str
        Raw scores ``(rows, k)``.
    outputs : int, default=1
        Their number, k, where the link depends on it.

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
    if link is MultiLabel.predict:
        return graph("Sigmoid", scores)
    if link is Ordinal.predict:
        return _between(graph, scores, outputs)
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
