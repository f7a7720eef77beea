"""Construction of ONNX graphs, operator by operator."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.optional import import_optional

Values = NDArray[Any]

#: The oldest versions that have all operators in all types used; newer runtimes read them too (onnxruntime from 1.12).
OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
#: Versions by domain; the last is onnxruntime's own, which only graphs with text need.
OPSETS = {"": OPSET, "ai.onnx.ml": ML_OPSET, "com.microsoft": 1}
#: Name of the dynamic dimension.
ROWS = "rows"


def is_internal_name(name: str) -> bool:
    """Whether a name may be that of an operator or constant of a graph."""
    return re.fullmatch(r"/[A-Za-z]+_[0-9]+", name) is not None


class Graph:
    """A graph under construction. A call adds an operator and returns the name of its result.

    Inputs of operators are names, or arrays, which become constants of the graph.
    """

    def __init__(self) -> None:
        self._onnx = import_optional("onnx", "onnx")
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._declared: list[Any] = []

    def __call__(self, op: str, *inputs: str | Values | np.generic, domain: str = "", **attributes: Any) -> str:
        result = f"/{op}_{len(self._nodes)}"
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        node = self._onnx.helper.make_node(op, names, [result], result, domain=domain, **attributes)
        self._nodes.append(node)
        return result

    def sort(self, values: str, count: int) -> str:
        """Add the sorting of each row.

        Parameters
        ----------
        values : str
            Numbers ``(rows, count)``.
        count : int
            How many there are in a row.

        Returns
        -------
        str
            The same numbers in increasing order.
        """
        # with one row more and without it again: of no row onnxruntime 1.30.0 ends the process by a division by zero
        more = self("Concat", values, np.zeros((1, count)), axis=0)
        result, number = f"/TopK_{len(self._nodes)}", self._constant(np.array([count]))
        # the second output, the indices, is not optional
        outputs = [result, f"{result}_indices"]
        node = self._onnx.helper.make_node("TopK", [more, number], outputs, result, axis=1, largest=0, sorted=1)
        self._nodes.append(node)
        return self("Slice", result, np.array([0]), np.array([-1]), np.array([0]))

    def _constant(self, value: Values | np.generic) -> str:
        name = f"/constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def tensor(self, value: Values) -> Any:
        """An array as an attribute of an operator."""
        return self._onnx.numpy_helper.from_array(np.ascontiguousarray(value))

    def cast(self, value: str, dtype: Any) -> str:
        """Add a cast of a value to another type.

        Parameters
        ----------
        value : str
            The value.
        dtype : dtype
            The type.

        Returns
        -------
        str
        """
        return self("Cast", value, to=self._type(dtype))

    def input(self, name: str, dtype: Any, width: int) -> str:
        """Add an input of shape ``(rows, width)``.

        Parameters
        ----------
        name : str
            Name of the input.
        dtype : dtype
            Its type.
        width : int
            Number of columns.

        Returns
        -------
        str
        """
        self._inputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), [ROWS, width]))
        return name

    def declare(self, value: str, dtype: Any, *shape: int | None) -> None:
        """Declare the type of the result of an operator that is not of the standard, whose type is not inferred.

        Parameters
        ----------
        value : str
            The result.
        dtype : dtype
            Its type.
        *shape : int or None
            Its shape, with None for unknown lengths.
        """
        self._declared.append(self._onnx.helper.make_tensor_value_info(value, self._type(dtype), shape))

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        """Add a value as an output of shape ``(rows, *shape)``.

        Parameters
        ----------
        name : str
            Name of the output.
        value : str
            The value.
        dtype : dtype
            Its type.
        *shape : int
            Its shape without rows.
        """
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name))
        self._outputs.append(self._onnx.helper.make_tensor_value_info(name, self._type(dtype), [ROWS, *shape]))

    def _type(self, dtype: Any) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def model(self, version: str, about: Mapping[str, str]) -> bytes:
        """Check the graph and serialize it.

        Parameters
        ----------
        version : str
            Version of gce.
        about : mapping of str to str
            Metadata of the model.

        Returns
        -------
        bytes
        """
        make = self._onnx.helper
        graph = make.make_graph(
            self._nodes, "gce", self._inputs, self._outputs, self._constants, value_info=self._declared
        )
        used = {node.domain for node in self._nodes} | {"", "ai.onnx.ml"}
        opsets = [make.make_opsetid(domain, version) for domain, version in OPSETS.items() if domain in used]
        versions = {"opset_imports": opsets, "ir_version": IR_VERSION}
        model = make.make_model(graph, producer_name="gce", producer_version=version, **versions)
        make.set_model_props(model, dict(about))
        self._onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString())
