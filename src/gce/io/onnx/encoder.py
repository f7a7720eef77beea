"""The encoder as operators: from the columns of a table to what models see of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.bases.trees.binning import CODES, FIRST_CODE_BIN, MISSING_BIN, OTHER_BIN
from gce.io.onnx.dates import calendar_parts
from gce.io.onnx.graph import Graph, is_internal_name
from gce.io.onnx.text import text_parts
from gce.preprocessing import Column, Standardizer, Table
from gce.preprocessing.columns import OTHER
from gce.preprocessing.date_parts import DateParts
from gce.preprocessing.target_statistics import TargetStatistics
from gce.preprocessing.text_columns import TextParts

#: Names of the graph's outputs, which must not be names of columns.
OUTPUTS = ("label", "probabilities", "variable")


class EncodedRows:
    """The rows of a graph, in the forms that models need; a form is added to the graph when it is first asked for.

    Parameters
    ----------
    graph : Graph
        The graph, which gets its inputs.
    table : Table
        The table of the model.

    Attributes
    ----------
    codes : str
        The columns that trees split ``(rows, d)`` as numbers: codes of frequent categories, seconds of dates, NaN for
        missing values; then parts of columns and statistics of the target.
    """

    def __init__(self, graph: Graph, table: Table) -> None:
        self._graph, self._table = graph, table
        encoded = _with_parts(graph, table, _encoded_columns(graph, table))
        self.codes = _frequent_codes(graph, table, encoded)
        if table.statistics is not None:
            self.codes = graph("Concat", self.codes, _statistics(graph, table.statistics, encoded), axis=1)
        self._casts: dict[Any, str] = {}

    @property
    def width(self) -> int:
        """Number of inputs of networks."""
        return self._table.width

    @cached_property
    def _numbers(self) -> str:
        numbers = self._table.encoder.numbers
        return self.codes if len(numbers) == self._table.n_split else self._graph("Gather", self.codes, numbers, axis=1)

    @cached_property
    def _scaled(self) -> str:
        return _scale(self._graph, self._table.encoder.scaling, self._numbers)

    @cached_property
    def inputs(self) -> str:
        """Inputs of networks ``(rows, width)`` in float64; the encoded columns if the width is 0."""
        parts = [self._scaled] if len(self._table.encoder.numbers) else []
        if len(self._table.encoder.flagged):
            parts.append(_indicators(self._graph, self._table, self.codes))
        if len(parts) == 2:
            return self._graph("Concat", *parts, axis=1)
        return parts[0] if parts else self.codes

    def inputs_as(self, dtype: Any) -> str:
        """The same in another precision."""
        if dtype == np.float64:
            return self.inputs
        if dtype not in self._casts:
            self._casts[dtype] = self._graph.cast(self.inputs, dtype)
        return self._casts[dtype]

    @cached_property
    def columns(self) -> str:
        """What trees split, ``(rows, d + q)``: scaled numbers, then codes of the others; NaN for missing values."""
        graph, numbers = self._graph, self._table.encoder.numbers
        if len(numbers) == 0:
            return self.codes
        scaled = graph("Where", _is_present(graph, self._numbers), self._scaled, self._numbers)
        others = np.setdiff1d(np.arange(self._table.n_split), numbers)
        if len(others) == 0:
            return scaled
        return graph("Concat", scaled, graph("Gather", self.codes, others, axis=1), axis=1)

    @cached_property
    def place(self) -> NDArray[np.intp]:
        """Where each column of the table is among :attr:`columns`, ``(d,)``."""
        numbers, count = self._table.encoder.numbers, self._table.n_split
        return np.argsort(np.concatenate([numbers, np.setdiff1d(np.arange(count), numbers)]))

    def memberships(self, column: int, sets: NDArray[np.int64]) -> str:
        """Whether categories are in none of some sets: 0 for those that are, else 1, ``(rows, S)``.

        Parameters
        ----------
        column : int
            Index of the column.
        sets : array of shape (S, 4)
            See :class:`gce.bases.trees.TreeArrays`.

        Returns
        -------
        str
        """
        graph = self._graph
        code = graph("Gather", self.codes, np.int64(column), axis=1)
        last = np.float64(CODES - FIRST_CODE_BIN - 1)
        has_code = graph("And", graph("GreaterOrEqual", code, np.float64(0)), graph("LessOrEqual", code, last))
        bins = graph("Where", has_code, graph("Add", code, np.float64(FIRST_CODE_BIN)), np.float64(OTHER_BIN))
        bins = graph("Where", _is_present(graph, code), bins, np.float64(MISSING_BIN))
        # of the bins that this column has
        count = min(CODES, FIRST_CODE_BIN + len(self._table.columns[column].frequent))
        outside = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little").T[:count] == 0
        index = graph.cast(bins, np.int64)
        return graph.cast(graph("Gather", outside.astype(np.uint8), index, axis=0), np.float64)


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


def _frequent_codes(graph: Graph, table: Table, X: str) -> str:
    """Encoded columns with the code of all others for categories that are not frequent."""
    limits = [len(c.frequent) if len(c.frequent) < len(c.categories) else np.inf for c in table.columns]
    if not np.isfinite(limits).any():
        return X
    every = np.array(limits + [np.inf] * (table.schema.width - len(limits)))
    return graph("Where", graph("GreaterOrEqual", X, every), np.float64(OTHER), X)


def _statistics(graph: Graph, statistics: TargetStatistics, X: str) -> str:
    """Statistics of the target ``(rows, M p)``: a table of them for each column, looked up by its code."""
    found, order, first = [], [], 0
    for (j, size), values in zip(statistics.sizes.items(), statistics.values, strict=True):
        code = graph("Gather", X, np.int64(j), axis=1)
        place = graph("Where", graph("Less", code, np.float64(0)), np.float64(size + 1), code)
        place = graph.cast(graph("Where", _is_present(graph, code), place, np.float64(size)), np.int64)
        members, rows, count = values.shape
        found.append(graph("Gather", np.ascontiguousarray(values.transpose(1, 0, 2).reshape(rows, -1)), place, axis=0))
        order.append(first + np.arange(members * count).reshape(members, count))
        first += members * count
    joined = found[0] if len(found) == 1 else graph("Concat", *found, axis=1)
    return graph("Gather", joined, np.concatenate(order, axis=1).reshape(-1), axis=1)


def _with_parts(graph: Graph, table: Table, codes: str) -> str:
    """The encoded columns ``(rows, d)``, and the parts of all of them."""
    made = [codes]
    for j, column in enumerate(table.columns):
        if isinstance(column.parts, DateParts) and column.parts.names:
            made.append(calendar_parts(graph, column.parts, graph("Gather", codes, np.array([j]), axis=1)))
        if isinstance(column.parts, TextParts):
            made.append(text_parts(graph, column.parts, column.name, graph("Gather", codes, np.array([j]), axis=1)))
    return codes if len(made) == 1 else graph("Concat", *made, axis=1)


def _column(graph: Graph, column: Column) -> str:
    if column.kind != "category":
        return graph.input(column.name, np.float64, 1)
    if column.holds_text is not False:
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
