"""What may be odd about a table as a whole: its type, its shape, its memory."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
import torch

from campaign.inputs_tables import Cells, as_numbers, objects
from campaign.inputs_values import Plain, odd

Mutation = Callable[[Random, Any, Cells], Any]


def _another_type(rng: Random, table: Any, cells: Cells) -> Any:
    """An array of another type of numbers, or of none."""
    numbers = np.nan_to_num(np.clip(as_numbers(cells), -5, 5))
    types = ["float16", "float32", "longdouble", "complex128", "int8", "uint64", "datetime64[s]", "timedelta64[s]",
             "U5", "S5", "V8", "bool", ">f8", ">i4", "datetime64[Y]", "S0"]  # fmt: skip
    kind = rng.choice(types)
    return numbers.astype("int64").astype(kind) if kind[0] in "Vdt" else numbers.astype(kind)


def _another_shape(rng: Random, table: Any, cells: Cells) -> Any:
    X = as_numbers(cells)
    shapes = [X[:, :, None], X.ravel(), np.float64(3), X.T, X[:0], X[:, :0], X[None], X[:0, :0], X[:1, :1], [X], [[X]]]
    return rng.choice(shapes)


def _another_memory(rng: Random, table: Any, cells: Cells) -> Any:
    """The same numbers in memory of another order, or that cannot be written."""
    X = as_numbers(cells)
    if rng.random() < 0.3:
        X.setflags(write=False)
    strided = np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::-2]
    broad = np.broadcast_to(X[:1], X.shape) if len(X) else X
    packed = np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(X.shape)
    return rng.choice([np.asfortranarray(X), strided, broad, packed, X[::-1], np.asmatrix(X), X.view(np.recarray)])


def _structured(rng: Random, table: Any, cells: Cells) -> Any:
    fields = rng.choice([[("a", float), ("b", int)], [("a", "U3")], [("a", object)], [("a", float, (2,))]])
    found = np.zeros(cells.rows, dtype=fields)
    return rng.choice([found, found.view(np.recarray), found[:, None]])


def _masked(rng: Random, table: Any, cells: Cells) -> Any:
    X = as_numbers(cells) if rng.random() < 0.7 else objects(cells)
    share = rng.choice([0.0, 0.3, 1.0])
    return np.ma.masked_array(X, mask=np.random.default_rng(rng.randrange(99)).random(X.shape) < share)


def _ragged(rng: Random, table: Any, cells: Cells) -> Any:
    rows = objects(cells).tolist()
    if rows:
        rows[-1] = rng.choice([[], rows[-1][:-1], rows[-1] + [1.0], None, 1.0, "text", rows])
    return rows if rng.random() < 0.7 else tuple(rows)


def _nested(rng: Random, table: Any, cells: Cells) -> Any:
    rows = as_numbers(cells)
    return rng.choice([[list(row) for row in rows], [tuple(row) for row in rows], list(rows),
    [[[v] for v in row] for row in rows],
                       [torch.from_numpy(row) for row in rows], [pd.Series(row) for row in rows],
                       [dict(enumerate(row)) for row in rows],
                       [set(row) for row in rows], [str(row) for row in rows], [range(2)] * cells.rows])  # fmt: skip


def _not_a_table(rng: Random, table: Any, cells: Cells) -> Any:
    makers = [lambda: None, lambda: "text", lambda: {"a": [1, 2]}, lambda: iter([[1.0]]), Plain, lambda: 5, lambda: [],
              lambda: [[]], lambda: [[], []], lambda: (), lambda: pd.Series([1.0, 2.0]), lambda: pl.Series([1.0]),
              lambda: pa.array([1.0]), lambda: pl.LazyFrame({"x0": [1.0]}), lambda: pd.DataFrame,
              lambda: np.array(None),
              lambda: [[[1]]], lambda: [None] * cells.rows, lambda: ["a"] * cells.rows, lambda: b"bytes",
              lambda: pd.Index([1, 2]), lambda: pa.record_batch({"x0": [1.0, 2.0]}), lambda: odd(rng)]  # fmt: skip
    return rng.choice(makers)()


def _tensor(rng: Random, table: Any, cells: Cells) -> Any:
    X = torch.from_numpy(as_numbers(cells))
    makers = [X.float, X.half, X.bfloat16, lambda: X.clone().requires_grad_(), X.to_sparse, lambda: X.to("meta"),
              lambda: X.to(torch.complex64), lambda: X[0] if len(X) else X, lambda: X.t(), lambda: X > 0,
              lambda: X.nan_to_num().int(),
              lambda: torch.nested.nested_tensor(list(X)), lambda: torch.nn.Parameter(X), lambda: X.to_sparse_csr(),
              lambda: torch.quantize_per_tensor(X.nan_to_num().float(), 0.1, 0, torch.qint8)]  # fmt: skip
    return rng.choice(makers)()


def _sparse(rng: Random, table: Any, cells: Cells) -> Any:
    """Sparse rows with odd entries: infinite ones, duplicates, explicit zeros, complex numbers, other index types."""
    S = sp.csr_matrix(np.nan_to_num(as_numbers(cells)))
    kind = rng.randrange(10)
    if kind < 3 and S.nnz:
        S.data[0] = [np.nan, np.inf, 1e308][kind]
    elif kind == 3:
        S.data[:] = 0
    elif kind == 4 and S.nnz:
        d = S.shape[1]
        rows, columns = [0] * 4, [d - 1] * 4
        return sp.coo_matrix(([1.0, 2.0, 1e308, 1e308], (rows, columns)), shape=S.shape)
    elif kind == 5:
        return S.astype(rng.choice([complex, bool, np.int8, np.float32, np.longdouble, np.uint64]))
    elif kind == 6:
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    elif kind == 7 and S.nnz:
        S.indices = S.indices[::-1].copy()
        S.has_sorted_indices = False
    elif kind == 8:
        return rng.choice(
            [sp.dia_matrix(S), sp.coo_array(S.toarray()[:, 0]), sp.csr_array(S.toarray()[:, 0]), sp.bsr_array(S)]
        )
    elif kind == 9 and S.nnz:
        S.indices[0] = rng.choice([-1, 10**6])
    return S


def _of_pandas(rng: Random, table: Any, cells: Cells) -> Any:
    """A frame of pandas with an odd index, or odd blocks."""
    frame = pd.DataFrame(as_numbers(cells))
    kind = rng.randrange(8)
    if kind == 0:
        frame.index = rng.choices(range(3), k=len(frame))
    elif kind == 1:
        frame.columns = pd.MultiIndex.from_tuples([("a", j) for j in range(frame.shape[1])])
    elif kind == 2:
        frame = frame.astype(pd.SparseDtype(float, 0.0))
    elif kind == 3:
        frame.columns = pd.date_range("2020", periods=frame.shape[1])
    elif kind == 4:
        frame.columns = pd.CategoricalIndex([f"c{j}" for j in range(frame.shape[1])])
    elif kind == 5:
        frame = frame.astype(object).where(frame > 0, None)
    elif kind == 6:
        frame = pd.DataFrame({"x0": frame.iloc[:, 0] if frame.shape[1] else [], "x1": [frame] * len(frame)})
    else:
        frame = pd.DataFrame(objects(cells), dtype=object)
    return frame


def _of_polars(rng: Random, table: Any, cells: Cells) -> Any:
    n = cells.rows
    makers = [lambda: pl.Series([[1, 2]] * n), lambda: pl.Series([{"a": 1}] * n), lambda: pl.Series([None] * n),
              lambda: pl.Series(["a"] * n, dtype=pl.Categorical), lambda: pl.Series(["b"] * n, dtype=pl.Enum(["a",
              "b"])),
              lambda: pl.Series([b"x"] * n), lambda: pl.Series([Plain()] * n, dtype=pl.Object),
              lambda: pl.Series([1] * n, dtype=pl.Int128), lambda: pl.Series([1] * n, dtype=pl.Duration),
              lambda: pl.Series([1] * n, dtype=pl.Time), lambda: pl.Series([1] * n, dtype=pl.Date),
              lambda: pl.Series([2**62] * n, dtype=pl.Date if rng.random() < 0.1 else pl.Datetime("us",
              "Europe/Berlin")),
              lambda: pl.Series(["1.5"] * n).cast(pl.Decimal(10, 2)), lambda: pl.Series([[1.0, 2.0]] * n,
              dtype=pl.Array(pl.Float64, 2))]  # fmt: skip
    return pl.DataFrame({"x0": as_numbers(cells)[:, :1].ravel() if cells.columns else [], "x1": rng.choice(makers)()})


def _of_arrow(rng: Random, table: Any, cells: Cells) -> Any:
    n = cells.rows
    makers = [lambda: pa.nulls(n), lambda: pa.array([[1]] * n), lambda: pa.array([{"a": 1}] * n),
    lambda: pa.array([b"x"] * n),
              lambda: pa.array(["a", None] * n)[:n].dictionary_encode(), lambda: pa.array([1] * n, pa.decimal128(5, 2)),
              lambda: pa.array([1] * n, pa.time32("s")), lambda: pa.array([1] * n, pa.duration("s")),
              lambda: pa.array([2**62] * n, pa.timestamp("s", "UTC")), lambda: pa.array([1] * n, pa.date32()),
              lambda: pa.array([True, None] * n)[:n], lambda: pa.array([1.5] * n, pa.float16()),
              lambda: pa.array([2**63] * n, pa.uint64()),
              lambda: pa.chunked_array([pa.array(["a"] * n)]), lambda: pa.array(["a"] * n, pa.large_string()),
              lambda: pa.array(["a"] * n, pa.string_view()), lambda: pa.array([1] * n,
              pa.month_day_nano_interval()) if n == 0 else pa.nulls(n)]  # fmt: skip
    x0 = pa.array(as_numbers(cells)[:, :1].ravel() if cells.columns else [0.0] * n)
    return pa.table([x0, rng.choice(makers)()], names=["x0", rng.choice(["x1", "x0"])])


CONTAINER_MUTATIONS: tuple[Mutation, ...] = (
    _another_type, _another_type, _another_shape, _another_memory, _structured, _masked, _ragged, _nested, _not_a_table,
    _not_a_table, _tensor, _sparse, _sparse, _of_pandas, _of_polars, _of_arrow,
)  # fmt: skip
