"""Targets, sample weights and groups: valid ones, and odd ones."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import torch

from campaign.inputs_columns import COLUMNS
from campaign.inputs_values import CELLS, odd


def plain_target(rng: Random, task: str, rows: int) -> Any:
    """Valid targets of a task."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    z = numbers.normal(size=rows)
    if task == "numbers":
        return z
    if task == "counts":
        return numbers.poisson(2.0, rows) * 1.0
    if task == "several":
        return np.column_stack([z, z**2])
    if task == "labels":
        return np.column_stack([z > 0, np.arange(rows) % 2]).astype(int)
    if task == "survival":
        found = np.zeros(rows, dtype=[("event", bool), ("time", float)])
        found["event"], found["time"] = np.arange(rows) % 3 > 0, np.exp(z)
        return found
    codes = np.arange(rows) % rng.choice([2, 2, 3])
    return rng.choice([codes, np.array(["no", "yes", "perhaps"])[codes]])


def _cells(rng: Random, y: Any) -> Any:
    """One target or some are odd."""
    make = rng.choice(CELLS)
    values = list(y)
    for i in range(len(values)):
        if i == 0 or rng.random() < 0.1:
            values[i] = make(rng)
    return values


def _column(rng: Random, y: Any) -> Any:
    numbers = np.random.default_rng(rng.randrange(2**32))
    return rng.choice(COLUMNS)(rng, numbers, len(y))


def _length(rng: Random, y: Any) -> Any:
    return rng.choice([y[:-1], y[:0], y[:1], np.concatenate([y, y[:1]])])


def _constant(rng: Random, y: Any) -> Any:
    return np.repeat(y[:1], len(y), axis=0)


def _sized(rng: Random, y: Any) -> Any:
    if y.dtype.kind not in "if":
        return np.arange(len(y))
    power = rng.choice([-320, -300, -160, -100, -50, 15, 50, 99, 101, 154, 160, 300, 308])
    with np.errstate(all="ignore"):
        return y * 10.0**power + rng.choice([0.0, 0.0, 1e6, 1e15])


def _few(rng: Random, y: Any) -> Any:
    """A class of one row, or a class a row."""
    return rng.choice([np.arange(len(y)), np.where(np.arange(len(y)) == 0, 9, np.arange(len(y)) % 2)])


def _typed(rng: Random, y: Any) -> Any:
    if y.dtype.kind not in "if":
        return y.astype(object) if y.dtype.names is None else [tuple(row) for row in y]
    kinds = ["float16", "float32", "longdouble", "complex128", "int8", "bool", "U5", "S5", "V8", "datetime64[s]",
             "timedelta64[s]", object, ">f8"]  # fmt: skip
    kind = rng.choice(kinds)
    return y.astype("int64").astype(kind) if str(kind)[:1] in "Vdt" else y.astype(kind)


def _shaped(rng: Random, y: Any) -> Any:
    return rng.choice([y[:, None], y[None], np.stack([y, y], -1), y[:, None, None], np.zeros((len(y), 0)), y[0],
                       [[v] for v in y], np.asmatrix(y) if y.dtype.kind in "if" else y[None]])  # fmt: skip


def _contained(rng: Random, y: Any) -> Any:
    flat = y if y.ndim == 1 and y.dtype.names is None else np.arange(len(y)) % 2
    makers: list[Callable[[], Any]] = [
        lambda: pd.Series(flat), lambda: pd.DataFrame({"y": flat}), lambda: pd.DataFrame({"y": flat, "z": flat}),
        lambda: pd.Series(pd.Categorical(flat)), lambda: pl.Series(flat.tolist()), lambda: pa.array(flat.tolist()),
        lambda: pa.chunked_array([flat.tolist()]), lambda: torch.as_tensor(np.arange(len(y)) % 2),
        lambda: np.ma.masked_array(flat, np.arange(len(y)) == 0), lambda: np.ma.masked_array(flat),
        lambda: flat.tolist(),
        lambda: pd.Series(flat, index=np.arange(len(flat))[::-1]), lambda: iter(flat), lambda: dict(enumerate(flat)),
        lambda: pd.Index(flat), lambda: pl.DataFrame({"y": flat.tolist()}), lambda: tuple(flat), lambda: pd.DataFrame(),
        lambda: torch.zeros(len(y), dtype=torch.bfloat16), lambda: torch.zeros(len(y), requires_grad=True),
        lambda: pd.Series(pd.Categorical(flat, categories=[*dict.fromkeys(flat.tolist()), "never"], ordered=True)),
    ]  # fmt: skip
    return rng.choice(makers)()


def _no_target(rng: Random, y: Any) -> Any:
    return odd(rng)


TARGET_MUTATIONS = (_cells, _cells, _cells, _column, _column, _length, _constant, _sized, _sized, _few, _typed, _shaped,
                    _contained, _contained, _no_target)  # fmt: skip


def odd_target(rng: Random, y: Any) -> tuple[Any, str]:
    """Targets with one mutation, and its name."""
    mutate = rng.choice(TARGET_MUTATIONS)
    return mutate(rng, y), f"y {mutate.__name__.strip('_')}"


def odd_weight(rng: Random, rows: int) -> tuple[Any, str]:
    """Odd sample weights of rows, and what they are."""
    u = np.random.default_rng(rng.randrange(2**32)).random(rows)
    first = np.arange(rows) == 0
    makers: dict[str, Callable[[], Any]] = {
        "ones": lambda: np.ones(rows), "tiny": lambda: u * 1e-300, "huge": lambda: u * 1e300,
        "zeros": lambda: np.zeros(rows),
        "denormal": lambda: np.full(rows, 5e-324), "spread": lambda: 10.0 ** (600 * u - 300),
        "one row": lambda: first * 1.0,
        "two rows": lambda: (np.arange(rows) < 2) * 1.0, "negative": lambda: u - 0.5,
        "negative zero": lambda: -np.zeros(rows),
        "NaN": lambda: np.where(first, np.nan, u), "infinite": lambda: np.where(first, np.inf, u),
        "integers": lambda: (u * 3).astype(int),
        "short": lambda: u[:-1], "matrix": lambda: u[:, None], "text": lambda: ["a"] * rows, "number": lambda: 2.0,
        "booleans": lambda: u > 0.5,
        "series": lambda: pd.Series(u), "polars": lambda: pl.Series(u), "tensor": lambda: torch.from_numpy(u),
        "complex": lambda: u + 1j,
        "objects": lambda: np.array([*u[:-1], 10**400], dtype=object), "masked": lambda: np.ma.masked_array(u, first),
        "none": lambda: [None] * rows,
        "large": lambda: np.where(first, 1e15, 1), "sums": lambda: np.full(rows, 1.7e308),
        "half": lambda: u.astype("float16"),
        "odd": lambda: odd(rng), "column": lambda: _column(rng, u),
    }  # fmt: skip
    name = rng.choice(sorted(makers))
    return makers[name](), f"weight {name}"


def odd_groups(rng: Random, rows: int) -> tuple[Any, str]:
    """Odd groups of rows, and what they are."""
    index = np.arange(rows)
    makers: dict[str, Callable[[], Any]] = {
        "of one": lambda: index, "one": lambda: np.zeros(rows), "text": lambda: [f"g{i % 3}" for i in index],
        "missing": lambda: [None, *index[1:]],
        "NaN": lambda: np.where(index == 0, np.nan, index % 3),
        "mixed": lambda: [i if i % 2 else str(i) for i in index], "short": lambda: index[1:],
        "matrix": lambda: np.column_stack([index, index]), "lists": lambda: [[i] for i in index],
        "category": lambda: pd.Series(pd.Categorical(index % 3)),
        "large": lambda: [10**400 + i % 2 for i in index], "dates": lambda: pd.Series(pd.date_range("2020",
        periods=rows)), "bytes": lambda: [b"g"] * rows,
        "odd": lambda: odd(rng), "column": lambda: _column(rng, index), "tensor": lambda: torch.from_numpy(index % 3),
        "dicts": lambda: [{}] * rows,
    }  # fmt: skip
    name = rng.choice(sorted(makers))
    return makers[name](), f"groups {name}"
