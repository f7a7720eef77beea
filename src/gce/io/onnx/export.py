"""``model.to_onnx``: the graph of a whole model, written to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from gce._utils.version import __version__
from gce.bases.registry import first_unstorable
from gce.io.atomic import write_bytes
from gce.io.onnx.encoder import EncodedRows
from gce.io.onnx.ensemble import raw_scores
from gce.io.onnx.graph import Graph
from gce.io.onnx.outputs import add_answers
from gce.training.result import FitResult


def to_onnx(estimator: str, result: FitResult, path: str | Path | IO[bytes]) -> None:
    """Export a fitted model.

    Parameters
    ----------
    estimator : str
        The name of the estimator, for the description of the graph.
    result : FitResult
        The result of its fit.
    path : str, Path or binary file
        Where the graph is written.

    Raises
    ------
    ValueError
        A part of the model cannot be exported.
    """
    contents = _serialize(estimator, result)
    if isinstance(path, str | Path):
        write_bytes(Path(path), contents)
    else:
        path.write(contents)


def _serialize(estimator: str, result: FitResult) -> bytes:
    foreign = first_unstorable(result.external)
    if foreign is not None:
        raise ValueError(
            f"{foreign} is not part of gce and cannot be exported to ONNX: save the model with joblib.dump"
        )
    graph = Graph()
    raw = raw_scores(graph, result.ensemble, EncodedRows(graph, result.table))
    about: dict[str, Any] = {"estimator": estimator, "features": [column.name for column in result.table.columns]}
    about |= add_answers(graph, result, raw)
    return graph.model(__version__, {key: json.dumps(value) for key, value in about.items()})
