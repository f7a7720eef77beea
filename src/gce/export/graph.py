"""An ONNX graph, written operator by operator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.extras import extra

Values = NDArray[Any]

#: The oldest versions with every operator used, in every type used: whoever reads newer ones reads these. onnxruntime
#: does from 1.12 on.
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
#: Name of the dimension that is not fixed.
ROWS = "rows"


def inner(name: str) -> bool:
    """Whether a name is of the kind that a graph gives to its operators and constants."""
    return re.fullmatch(r"/[A-Za-z]+_[0-9]+", name) is not None


class Graph:
    """A graph in the making. A call adds an operator and gives the name of its result.

    Where an operator takes a name, an array may stand: it becomes a constant of the graph.
    """

    def __init__(self) -> None:
        self._onnx = extra("onnx", "onnx")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def __call__(self, op: str, *inputs: str | Values | np.generic, domain: str = "", **attributes: Any) -> str:
        result = f"/{op}_{len(self._nodes)}"
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        node = self._onnx.helper.make_node(op, names, [result], result, domain=domain, **attributes)
        self._nodes.append(node)
        return result

    def _constant(self, value: Values | np.generic) -> str:
        name = f"/constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def tensor(self, value: Values) -> Any:
        """An array as an operator's attribute."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(value))

    def cast(self, value: str, dtype: Any) -> str:
        """A value in another type."""
        return self("Cast", value, to=self._type(dtype))

    def input(self, name: str, dtype: Any, width: int) -> str:
        """An input of shape ``(rows, width)``."""
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), [ROWS, width]))
        return name

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        """Make a value an output of shape ``(rows, *shape)``."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), [ROWS, *shape]))

    def _type(self, dtype: Any) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(self, version: str, about: Mapping[str, str]) -> bytes:
        """The finished graph as a file's contents, checked."""
        make = self._onnx.helper
        graph = make.make_graph(self._nodes, "gce", self._inputs, self._outputs, self._constants)
        opsets = [make.make_opsetid("", OPSET), make.make_opsetid("ai.onnx.ml", ML_OPSET)]
        known = {"opset_imports": opsets, "ir_version": IR_VERSION}
        model = make.make_model(graph, producer_name="gce", producer_version=version, **known)
        make.set_model_props(model, dict(about))
        self._onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())
