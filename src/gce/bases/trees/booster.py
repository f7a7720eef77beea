"""Whole rounds of boosting in one call of the kernels of native/boost.cpp.

Members are independent of each other: threads run ahead in whichever is behind, for several rounds at a time. Early
stopping looks at the rounds afterwards, and those that it does not want are dropped.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import parallel
from gce._utils.native import INT, array, kernel
from gce.bases.base import Atoms
from gce.bases.boosted import BoostedRounds, BoostingState
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower import Round, Scratch, TreeRound, joined_nodes
from gce.bases.trees.growth import sampling, tree_arrays, tree_data
from gce.bases.trees.stored import Allocate
from gce.bases.trees.tree_arrays import TreeArrays
from gce.bases.trees.tree_data import TreeSettings
from gce.losses import CrossEntropy, Gamma, Huber, Logistic, Loss, Poisson, Power, Quantile, Quantiles, Squared, Tweedie
from gce.losses.deviances import LogLinkLoss
from gce.losses.risk import Risk, ScaledRisk

Array = NDArray[np.float64]

#: The losses that kernels know, with their numbers in ``Boost`` of native/boost.cpp.
_LOSSES: dict[type[Loss], int] = {
    Squared: 0,
    Logistic: 1,
    CrossEntropy: 2,
    Poisson: 3,
    Gamma: 3,
    Tweedie: 3,
    Power: 4,
    Quantile: 4,
    Quantiles: 4,
    Huber: 5,
}
#: Rounds that are run in one call, and nodes that their trees may have memory for. Early stopping drops half of them on
#: average, at the end of some hundred.
_MOST_ROUNDS, _MOST_NODES = 16, 1 << 20

_ROUND = ctypes.POINTER(Round)
#: Arrays of a structure, by its fields.
_INPUTS = ("y", "weight", "held_out", "offset", "bound", "about")
_STATE = ("pred", "D", "H", "outputs", "zero", "level", "largest")
_RESULTS = ("size", "limit", "gap", "risk", "validation")


class Boost(ctypes.Structure):
    """``Boost`` of native/boost.cpp."""

    _fields_ = [
        ("rounds", _ROUND),
        *((name, ctypes.c_int64) for name in ("members", "count", "loss")),
        *((name, ctypes.c_void_p) for name in _INPUTS),
        ("learning_rate", ctypes.c_double),
        ("keys", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in (*_STATE, *_RESULTS, "done", "taken", "ends")),
        *((name, ctypes.c_int64) for name in ("own", "first", "shards")),
    ]


def knows_loss(loss: Loss) -> bool:
    """Whether the kernels compute a loss."""
    # of Huber's loss they have one width for all outputs
    other = (isinstance(loss, Power) and loss.q != 1) or (isinstance(loss, Huber) and isinstance(loss.delta, Sequence))
    return type(loss) in _LOSSES and not other


def _about(risk: Risk, model: Risk | None) -> Array:
    """What the gap is divided by, followed by the parameters of the loss, as native/boost.cpp reads them."""
    loss = risk.loss
    if isinstance(loss, LogLinkLoss):
        return np.array([1.0, loss.variance_power])
    if not isinstance(loss, Huber | Power | Quantile | Quantiles):
        return np.ones(1)
    k = risk.y.shape[1]
    scale = model.scale.numpy() if isinstance(model, ScaledRisk) else np.ones(k)
    if isinstance(loss, Huber):
        return np.concatenate([[scale.max(), float(cast(float, loss.delta))], scale])
    assert isinstance(model, ScaledRisk)
    # the absolute value is twice the pinball loss of the median
    factor = 2.0 if isinstance(loss, Power) else 1.0
    levels = loss.levels if isinstance(loss, Quantiles) else [getattr(loss, "quantile", 0.5)] * k
    return np.concatenate([[scale.max(), factor], levels, scale, model.loss.width.numpy()])


class BlockMemory:
    """Arrays that one block of rounds after another uses, each for a moment: fresh ones would take longer.

    Parameters
    ----------
    allocate : callable, optional
        From the name, the shape and the dtype of an array to an array. Default: in memory.
    """

    def __init__(self, allocate: Allocate | None = None) -> None:
        self._allocate = allocate or (lambda name, shape, dtype: np.empty(shape, dtype))
        self._kept: dict[str, NDArray[Any]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
        """The array of a name; what it holds is left over from the block before."""
        if name not in self._kept or self._kept[name].shape != shape:
            self._kept[name] = self._allocate(name, shape, dtype)
        return self._kept[name]


@dataclass(frozen=True, eq=False)
class BoostedMember:
    """What the trees of one member are grown from.

    Parameters
    ----------
    binned : BinnedRows
    settings : TreeSettings
    columns : array of shape (c,), optional
        Which of all columns these are. Default: all.
    """

    binned: BinnedRows
    settings: TreeSettings
    columns: NDArray[np.intp] | None = None

    def trees(self, gradient: Array, hessian: Array, unit: float, rounds: int, leaf: NDArray[np.int32]) -> TreeRound:
        """The arrays of its trees, grown from gradients and Hessians ``(1, n, k)``; leaves of rows ``(1, T, N)``."""
        settings, any_key = self.settings, np.zeros(1, np.uint64)
        data = tree_data(self.binned, settings, gradient, hessian, np.array([unit]))
        drawn = sampling(self.binned, settings, any_key)
        return TreeRound(data, settings.shape, drawn, settings.constraints, rounds, self.binned.shards, leaf)

    def grown(self, trees: TreeRound, t: int) -> TreeArrays:
        """Its trees of round ``t``, which look at all columns."""
        found = tree_arrays(self.binned, trees.nodes(t), trees.sizes[t], torch.device("cpu"))
        return found if self.columns is None else found.among(self.columns)


@dataclass(frozen=True, eq=False)
class TreeBooster:
    """Boosting of trees on rows that are binned.

    Parameters
    ----------
    member : callable
        The rows of the member of a number.
    scratch : Scratch
    bound : Tensor of shape (k,)
    atoms : callable
        From trees, ``k`` or one of each member, to atoms.
    memory : BlockMemory, optional
    """

    member: Callable[[int], BoostedMember]
    scratch: Scratch
    bound: Tensor
    atoms: Callable[[TreeArrays], Atoms]
    memory: BlockMemory = field(default_factory=BlockMemory)

    def at_once(self, members: Sequence[int]) -> int:
        """How many rounds of some members are run in one call."""
        own = self.member(members[0])
        shards = own.binned.shards
        # the same for all processes
        rows = len(own.binned.X) if shards is None else shards.rows
        nodes = len(members) * len(self.bound) * own.settings.shape.most_nodes(rows)
        return max(1, min(_MOST_ROUNDS, _MOST_NODES // nodes))

    def run(self, state: BoostingState, keys: NDArray[np.uint64]) -> BoostedRounds:
        """Run rounds of random numbers ``(R, M)``, one for each round and member."""
        block = _Block(self, state, keys)
        block.run(self.scratch)
        return block


class _Block:
    """Rounds that were run in one call."""

    def __init__(self, booster: TreeBooster, state: BoostingState, keys: NDArray[np.uint64]) -> None:
        (members, rows, k), n, count = state.pred.shape, state.risk.weight.shape[1], len(keys)
        self.count, self._booster, self._before, memory = count, booster, state.pred, booster.memory
        self._members = [booster.member(number) for number in state.members]
        division = self._members[0].binned.division
        inputs: dict[str, Tensor] = {
            "y": state.y,
            "weight": state.risk.weight,
            "held_out": state.held_out,
            "offset": state.risk.offset,
            "bound": state.bound,
            "about": torch.from_numpy(_about(state.risk, state.risk.modelled if state.model is None else state.model)),
        }
        self._arrays: dict[str, NDArray[Any]] = {name: _float64(given) for name, given in inputs.items()}
        self._arrays |= {
            "pred": _float64(state.pred.clone()),
            "zero": _float64(state.zero.clone()),
            "level": np.empty(members),
            "largest": np.empty((members, 2, k)),
            "D": memory.take("D", (members, n, k)),
            "H": memory.take("H", (members, n, k)),
            "outputs": memory.take("outputs", (members, rows, k)),
            "ends": np.array([n] if division is None else division.ends, np.int64),
            "keys": np.ascontiguousarray(keys, np.uint64),
            "done": np.zeros(members, np.int64),
            "taken": np.zeros(members, np.int64),
            **{name: np.empty((count, members)) for name in _RESULTS},
        }
        D, H = self._arrays["D"], self._arrays["H"]
        leaf = memory.take("leaf", (members, self._members[0].settings.shape.trees(k), rows), np.int32)
        self._trees = [
            own.trees(D[m : m + 1], H[m : m + 1], unit, count, leaf[m : m + 1])
            for m, (own, unit) in enumerate(zip(self._members, state.risk.unit.tolist(), strict=True))
        ]
        for own in self._trees:
            # members are divided among threads first
            own.struct.threads = max(1, parallel.threads() // members)
        self._rounds = (Round * members)(*(own.struct for own in self._trees))
        self._struct = Boost(
            rounds=ctypes.cast(self._rounds, _ROUND),
            members=members,
            count=count,
            loss=_LOSSES[type(state.risk.loss)],
            learning_rate=state.learning_rate,
            own=len(self._arrays["ends"]),
            first=0 if division is None else division.first,
            shards=1 if division is None else len(division.counts),
            **{name: given.ctypes.data for name, given in self._arrays.items()},
        )
        self.size, self.limit, self.gap, self.risk, self.validation = (
            torch.from_numpy(self._arrays[name]) for name in _RESULTS
        )

    def run(self, scratch: Scratch) -> None:
        """Run the rounds."""
        struct, size = ctypes.byref(self._struct), max(own.scratch_size for own in self._trees)
        boost_kernels().begin(struct)
        self._check()

        def work() -> None:
            memory = scratch.take(size)
            boost_kernels().boost(struct, memory.ctypes.data)
            scratch.give_back(memory)

        # shards are told of by one thread, in the same order everywhere
        threads = min(parallel.threads(), len(self._trees)) if self._members[0].binned.shards is None else 1
        with parallel.workers(threads) as run:
            run([work] * threads)
        self._check()

    def _check(self) -> None:
        for own in self._trees:
            own.check()

    def atoms(self, t: int) -> Atoms:
        """The atoms of round ``t``, counted from 0."""
        first = self._members[0]
        if first.columns is not None:
            each = [own.grown(trees, t) for own, trees in zip(self._members, self._trees, strict=True)]
            return self._booster.atoms(TreeArrays.cat(each))
        sizes = np.concatenate([own.sizes[t] for own in self._trees])
        nodes = joined_nodes(self._trees, t)
        return self._booster.atoms(tree_arrays(first.binned, nodes, sizes, torch.device("cpu")))

    def pred(self, t: int) -> Tensor:
        """Predictions after round ``t``, ``(M, N, k)``."""
        if t == self.count - 1:
            return torch.from_numpy(self._arrays["pred"])
        found = self._before.clone()
        boost_kernels().replay(ctypes.byref(self._struct), t + 1, _float64(found))
        return found


def _float64(given: Tensor) -> Array:
    return np.ascontiguousarray(given.numpy(), np.float64)


@dataclass(frozen=True)
class BoostKernels:
    """The functions of native/boost.cpp."""

    begin: Callable[..., int]
    boost: Callable[..., int]
    replay: Callable[..., None]


@cache
def boost_kernels() -> BoostKernels:
    """Load them."""
    struct = ctypes.POINTER(Boost)
    return BoostKernels(
        kernel("boost_begin", struct),
        kernel("boost", struct, ctypes.c_void_p),
        kernel("boost_replay", struct, INT, array(np.float64), result=ctypes.c_void_p),
    )
