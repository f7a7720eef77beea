"""The encoder as operators: from the columns of a table to the inputs of networks."""

from __future__ import annotations

import numpy as np

from gce.io.onnx.graph import Graph, is_internal_name
from gce.preprocessing import Column, Standardizer, Table
from gce.preprocessing.schema import OTHER

#: Names of the graph's outputs, which must not be names of columns.
OUTPUTS = ("label", "probabilities", "variable")


def encode_inputs(graph: Graph, table: Table) -> str:
    """Add the graph's inputs and their encoding.

    Parameters
    ----------
    graph : Graph
        The graph.
    table : Table
        The table of the model.

    Returns
    -------
    str
        Inputs of networks ``(rows, width)``; the encoded columns if the width is 0.
    """
    X, encoder = _encoded_columns(graph, table), table.encoder
    parts = []
    if len(encoder.numbers):
        numbers = X if len(encoder.numbers) == len(table.columns) else graph("Gather", X, encoder.numbers, axis=1)
        parts.append(_scale(graph, encoder.scaling, numbers))
    if len(encoder.flagged):
        parts.append(_indicators(graph, table, X))
    if len(parts) == 2:
        return graph("Concat", *parts, axis=1)
    return parts[0] if parts else X


def _encoded_columns(graph: Graph, table: Table) -> str:
    """The columns as numbers ``(rows, d)``: codes of categories, NaN for missing values."""
    if all(column.kind != "category" for column in table.columns):
        return graph.input("X", np.float64, len(table.columns))
    names = [column.name for column in table.columns]
    clash = next(
        (name for i, name in enumerate(names) if name in (*names[:i], *OUTPUTS, "") or is_internal_name(name)), None
    )
    if clash is not None:
        raise ValueError(f"the column name {clash!r} is empty, a duplicate, or used by the graph: rename the column")
    return graph("Concat", *(_column(graph, column) for column in table.columns), axis=1)


def _column(graph: Graph, column: Column) -> str:
    if column.kind != "category":
        return graph.input(column.name, np.float64, 1)
    if all(isinstance(category, str) for category in column.categories):
        return _code_of_text(graph, column)
    return _code_of_number(graph, column)


def _code_of_text(graph: Graph, column: Column) -> str:
    codes = {"": np.nan, **{str(category): float(code) for code, category in enumerate(column.categories)}}
    mapping = {"keys_strings": list(codes), "values_floats": list(codes.values()), "default_float": float(OTHER)}
    text = graph.input(column.name, object, 1)
    return graph.cast(graph("LabelEncoder", text, domain="ai.onnx.ml", **mapping), np.float64)


def _code_of_number(graph: Graph, column: Column) -> str:
    inexact = next((category for category in column.categories if float(category) != category), None)
    if inexact is not None:
        raise ValueError(
            f"column {column.name!r} has the category {inexact!r}, which is no float64: convert it to text"
        )
    number, categories = graph.input(column.name, np.float64, 1), np.array(column.categories, dtype=np.float64)
    hits = graph.cast(graph("Equal", number, categories), np.float64)
    # without a hit the result is the code of all other categories
    code = graph("Add", graph("MatMul", hits, np.arange(len(categories))[:, None] - float(OTHER)), np.float64(OTHER))
    return graph("Where", _is_present(graph, number), code, number)


def _indicators(graph: Graph, table: Table, X: str) -> str:
    """Indicators of codes and missing values; all 0 for what does not occur in a column's training rows."""
    encoder = table.encoder
    column = graph("Gather", X, encoder.flagged, axis=1)
    missing = graph("And", graph("Not", _is_present(graph, column)), np.isnan(encoder.codes))
    hits = graph("Or", graph("Equal", column, encoder.codes), missing)
    indicators = graph("Where", hits, encoder.on, encoder.off)
    columns, position = np.unique(encoder.flagged, return_inverse=True)
    if np.isin(columns, encoder.numbers).all():
        return indicators
    counts = graph("MatMul", graph.cast(hits, np.float64), np.eye(len(columns))[position])
    # a number that is present has no indicator
    has_value = graph("Add", counts, np.isin(columns, encoder.numbers).astype(np.float64))
    is_known = graph("Gather", graph("Greater", has_value, np.float64(0)), position.astype(np.int64), axis=1)
    return graph("Where", is_known, indicators, np.float64(0))


def _scale(graph: Graph, scaling: Standardizer, X: str) -> str:
    """Scaled numbers ``(rows, p)``, with outliers clipped smoothly; missing values become 0, the centre."""
    z = graph("Mul", graph("Sub", X, scaling.mean), 1 / scaling.scale)
    z = graph("Where", _is_present(graph, z), z, np.float64(0))
    clip = scaling.clip
    if np.isinf(clip):
        return z
    z = graph("Clip", z, np.float64(-1e9 * clip), np.float64(1e9 * clip))
    square = _squared(graph, graph("Div", z, np.float64(clip)))
    root = graph("Sqrt", graph("Sqrt", graph("Add", _squared(graph, square), np.float64(1))))
    return graph("Clip", graph("Div", z, root), np.float64(-clip), np.float64(clip))


def _is_present(graph: Graph, value: str) -> str:
    """Whether numbers are not NaN; old runtimes have no IsNaN in float64."""
    return graph("Equal", value, value)


def _squared(graph: Graph, value: str) -> str:
    return graph("Mul", value, value)
