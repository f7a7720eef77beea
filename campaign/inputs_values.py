"""Odd values: of parameters and arguments, and of single cells of a table."""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, ShuffleSplit, TimeSeriesSplit
from sklearn.tree import DecisionTreeRegressor

from gce import bases, frank_wolfe, losses, training

#: Words that some parameter of the library takes: most are wrong for most parameters.
WORDS = (
    "auto", "neural", "neuron", "tree", "forest", "symmetric", "sign", "squared", "absolute", "huber", "quantile",
    "poisson", "logistic", "cross_entropy", "ordinal", "exact", "brent", "open_loop", "frank_wolfe", "away", "pairwise",
    "blended", "boosting", "greedy", "each", "common", "robust", "balanced", "from_dtype", "scale", "clip", "cpu",
    "cuda",
    "cuda:99", "meta", "one", "all", "relu", "tanh", "hardtanh", "absolute", "softmax", "scores", "probabilities",
    "linear", "risk", "pairwise", "no_interactions", "r2", "roc_auc", "accuracy", "neg_log_loss", "stratified",
    "x0", "a", "y", "", " ", "x" * 10_000, "\ud800", "\x1b[31m", "é", "nan", "inf", "1", "None", "0",
)  # fmt: skip


def gives_nothing(*given: Any, **named: Any) -> None:
    """A callable that returns None, whatever it is given."""


def gives_nan(*given: Any, **named: Any) -> float:
    """A callable that returns NaN, whatever it is given."""
    return float("nan")


def gives_text(*given: Any, **named: Any) -> str:
    """A callable that returns text, whatever it is given."""
    return "text"


def gives_one(*given: Any, **named: Any) -> float:
    """A callable that returns 1, whatever it is given."""
    return 1.0


def numbered() -> Iterator[int]:
    """A generator, which can be iterated once."""
    yield from range(3)


class Plain:
    """An object of no use."""

    def __repr__(self) -> str:
        return "<a plain object>"


#: Makers of values that are of no class of this library, or odd for most parameters.
COMMON: tuple[Callable[[], Any], ...] = (
    lambda: None, lambda: 0, lambda: 1, lambda: 2, lambda: 3, lambda: -1, lambda: -2, lambda: 2**31, lambda: 2**63,
    lambda: 2**64, lambda: 10**30, lambda: -(10**30), lambda: 10**400, lambda: 0.0, lambda: -0.0, lambda: 0.5,
    lambda: 1.0, lambda: 1.5, lambda: -0.5, lambda: 1e-300, lambda: 5e-324, lambda: 1e300, lambda: 1e308,
    lambda: float("nan"), lambda: float("inf"), lambda: float("-inf"), lambda: True, lambda: False, lambda: b"x",
    lambda: [], lambda: [1], lambda: ["a"], lambda: [[1]], lambda: [None], lambda: {}, lambda: {"a": 1},
    lambda: {0: 1}, lambda: {"x0": 1}, lambda: {None: None}, lambda: {0: float("nan"), 1: -1}, lambda: (),
    lambda: (1, 2), lambda: {1}, lambda: frozenset(), lambda: np.array([]), lambda: np.array([1.0]),
    lambda: np.array([1, 2, 3]), lambda: np.array(3), lambda: np.array(0.5), lambda: np.array("auto"),
    lambda: np.array(None), lambda: np.float64(0.5), lambda: np.float32(2), lambda: np.float16(0.5),
    lambda: np.longdouble(1), lambda: np.int8(3), lambda: np.uint64(2), lambda: np.bool_(True), lambda: np.str_("auto"),
    lambda: np.datetime64("2020"), lambda: np.timedelta64(1, "s"), lambda: np.datetime64("NaT"),
    lambda: complex(1, 2), lambda: Plain(), lambda: int, lambda: Plain, lambda: gives_nothing, lambda: gives_nan,
    lambda: gives_text, lambda: gives_one, lambda: iter([1]), lambda: numbered(), lambda: range(3),
    lambda: slice(1), lambda: Ellipsis, lambda: NotImplemented, lambda: torch.tensor(1.0), lambda: torch.tensor(2),
    lambda: torch.tensor([1.0, 2.0]), lambda: torch.device("meta"), lambda: np.random.default_rng(0),
    lambda: np.random.RandomState(0), lambda: decimal.Decimal("0.5"), lambda: decimal.Decimal("NaN"),
    lambda: decimal.Decimal(2), lambda: fractions.Fraction(1, 2), lambda: datetime.timedelta(1),
    lambda: datetime.date(2020, 1, 1), lambda: pathlib.Path("nowhere"), lambda: [-1, 0, 1], lambda: [1, 0, 0],
    lambda: [2, 2, 2], lambda: np.array([[1, 0]]), lambda: np.ma.masked, lambda: [float("nan")] * 3,
    lambda: [[0, 1], [1, 2]], lambda: [["x0"], ["x1", "nowhere"]], lambda: memoryview(b"abc"), lambda: bytearray(3),
)  # fmt: skip
#: Splitters, some of them impossible for a small table.
SPLITS: tuple[Callable[[], Any], ...] = (
    LeaveOneOut, lambda: TimeSeriesSplit(3), lambda: KFold(100), lambda: KFold(2), lambda: GroupKFold(2),
    lambda: ShuffleSplit(2), lambda: [(np.arange(9), np.arange(9, 12))], lambda: [(np.arange(12), np.arange(12))],
    lambda: [(np.arange(0), np.arange(9))], lambda: [(np.arange(9), np.arange(0))], lambda: [([0], [1])],
    lambda: [(np.array([True] * 12), np.array([False] * 12))], lambda: [(1, 2, 3)], lambda: [("a", "b")],
    lambda: [(np.arange(9) * 1.0, np.arange(9, 12) * 1.0)], lambda: [([10**9], [0])], lambda: [([-1], [0])],
    lambda: [(np.arange(9), np.arange(9, 12))] * 3, lambda: [([0, 0, 1, 2, 3], [4, 4])], lambda: [([[0]], [[1]])],
)  # fmt: skip
#: Objects of this library and of others, right for some parameter and wrong for the rest.
OBJECTS: tuple[Callable[[], Any], ...] = (
    lambda: bases.Tree(max_leaf_nodes=3), lambda: bases.Neural(hidden=2, max_epochs=2), lambda: bases.Tree,
    lambda: bases.Forest(n_estimators=2), lambda: bases.SymmetricTree(max_depth=2), bases.SignTree,
    lambda: bases.Neuron(max_epochs=2), bases.Pool, lambda: bases.Union([]), lambda: bases.Union([bases.Tree(), 1]),
    lambda: bases.RegressorBasis(DecisionTreeRegressor(max_depth=1)), lambda: bases.RegressorBasis(None),
    lambda: bases.RegressorBasis(LogisticRegression()), lambda: bases.Pool(functions=[gives_one]),
    lambda: [bases.Tree(max_leaf_nodes=3), bases.Neural(hidden=2, max_epochs=2)], lambda: [bases.Tree(), bases.Tree()],
    lambda: {"one": bases.Tree(max_leaf_nodes=3), "": bases.SymmetricTree(max_depth=1)}, lambda: ["tree", "nowhere"],
    lambda: losses.Quantile(0.9), lambda: losses.Quantiles((0.1, 0.9)), losses.Poisson, losses.Hazards,
    lambda: losses.Tweedie(1.2), losses.Logistic, losses.CrossEntropy, losses.Ordinal, losses.MultiLabel,
    lambda: losses.Squared, frank_wolfe.Boosting, frank_wolfe.Pairwise, frank_wolfe.NonlinearGreedy,
    frank_wolfe.OpenLoop, frank_wolfe.Exact, lambda: frank_wolfe.Brent(0.1), lambda: frank_wolfe.Algorithm,
    lambda: [training.EarlyStopping(1, 0.0)], lambda: training.EarlyStopping(1, 0.0), lambda: [gives_nothing],
    lambda: Ridge(), lambda: Ridge, lambda: [("a", Ridge())], lambda: [("a", Ridge()), ("a", Ridge())],
    lambda: [("a__b", Ridge())], lambda: [("", None)], lambda: [("a", "drop")], lambda: [Ridge()],
    lambda: [(1, Ridge())], lambda: (("a", Ridge()),),
)  # fmt: skip


def odd(rng: Random) -> Any:
    """An odd value of any kind."""
    kind = rng.random()
    if kind < 0.55:
        return rng.choice(COMMON)()
    if kind < 0.72:
        return rng.choice(WORDS)
    return rng.choice(SPLITS if kind < 0.8 else OBJECTS)()


#: Makers of cells that a column of numbers or text may hold by accident.
CELLS: tuple[Callable[[Random], Any], ...] = (
    lambda rng: None, lambda rng: float("nan"), lambda rng: float("inf"), lambda rng: float("-inf"),
    lambda rng: rng.choice([1e100, 1e154, 1e155, 1e200, 1e300, 1.7e308, -1.7e308]), lambda rng: 5e-324,
    lambda rng: -0.0, lambda rng: 10**400, lambda rng: -(10**400), lambda rng: 2**63, lambda rng: 2**64 - 1,
    lambda rng: True, lambda rng: "", lambda rng: " ", lambda rng: "a", lambda rng: "x" * 10_000,
    lambda rng: "\ud800", lambda rng: "\x00", lambda rng: "nan", lambda rng: "1e400", lambda rng: b"bytes",
    lambda rng: [1, 2], lambda rng: [], lambda rng: {"a": 1}, lambda rng: (1,), lambda rng: {1}, lambda rng: Plain(),
    lambda rng: complex(1, 2), lambda rng: decimal.Decimal("1.5"), lambda rng: decimal.Decimal("sNaN"),
    lambda rng: decimal.Decimal("Infinity"), lambda rng: decimal.Decimal("1e999"), lambda rng: fractions.Fraction(1, 3),
    lambda rng: fractions.Fraction(10**400), lambda rng: datetime.datetime(2020, 1, rng.randint(1, 28)),
    lambda rng: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), lambda rng: datetime.date(1, 1, 1),
    lambda rng: datetime.date(9999, 12, 31), lambda rng: datetime.time(1), lambda rng: datetime.timedelta(10**8),
    lambda rng: np.datetime64("NaT"), lambda rng: np.datetime64("2020-01-01"), lambda rng: np.float32(0.1),
    lambda rng: np.longdouble("1e4000"), lambda rng: np.array(1.0), lambda rng: np.array([1.0]),
    lambda rng: torch.tensor(1.0), lambda rng: Ellipsis, lambda rng: np.ma.masked, lambda rng: int,
)  # fmt: skip
