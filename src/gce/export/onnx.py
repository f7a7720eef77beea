"""``model.to_onnx``: one graph of a whole model, and the file it goes to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any

import numpy as np

from gce.basis.stored import first_foreign
from gce.export.answer import as_labels, inverse_link, label
from gce.export.encoder import encoded
from gce.export.ensemble import scores
from gce.export.graph import Graph
from gce.storage.container import put


def to_onnx(model: Any, path: str | Path | IO[bytes]) -> None:
    """Write a fitted model, see :meth:`gce.base.ConvexModel.to_onnx`."""
    contents = _contents(model)
    if isinstance(path, str | Path):
        put(Path(path), contents)
    else:
        path.write(contents)


def _contents(model: Any) -> bytes:
    foreign = first_foreign(getattr(model, "_guests", ()))
    if foreign is not None:
        raise ValueError(f"{foreign} is not gce's own and cannot be written as ONNX: keep the model with joblib.dump")
    graph = Graph()
    raw = scores(graph, model.ensemble_, encoded(graph, model.table_), model.table_.width)
    outputs = len(model.offset_)
    about = {"estimator": type(model).__name__, "features": [column.name for column in model.table_.columns]}
    if hasattr(model, "classes_"):
        classes = as_labels(model.classes_)
        about["classes"] = classes.tolist()
        graph.output("label", label(graph, classes, raw, outputs), classes.dtype)
        softened = raw if model.temperature_ == 1 else graph("Div", raw, np.float64(model.temperature_))
        graph.output("probabilities", inverse_link(graph, model.loss_, softened), np.float64, len(classes))
    else:
        graph.output("variable", inverse_link(graph, model.loss_, raw), np.float64, outputs)
    return graph.model(sys.modules["gce"].__version__, {key: json.dumps(value) for key, value in about.items()})
