"""First pass over shards: a sample of their training rows and the rows held out, which are kept in memory.

Which rows these are depends on the seed and on the number of a row (or on its group), not on who reads it: all
processes have the same ones, however many there are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.optional import import_optional
from gce._utils.params import short_repr
from gce._utils.splitmix import splitmix64
from gce._utils.warn import warn_user
from gce.distributed import World
from gce.estimators._shard_blocks import Block, ShardReader, exchange_blocks, in_order, join_blocks, take_rows
from gce.estimators._shard_categories import CategoryCounts, category_columns
from gce.preprocessing.columns import CategoryTotals
from gce.preprocessing.splits import LEAST_TRAINED
from gce.training.targets import Target

Array = NDArray[np.float64]

#: Rows that are sampled, and rows that are held out, at most; numbers in each, and rows that wide tables have anyway.
MOST_ROWS, MOST_NUMBERS, FEWEST_ROWS = 1 << 18, 1 << 23, 1 << 12
#: Share of the rows that is held out, where that is not too many.
HELD_OUT = 0.1
#: Classes that a target may have.
_MOST_CLASSES = 10_000
#: Roles of rows.
TRAINED, SAMPLED, HELD = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Roles:
    """Which rows are held out, and which of the others are sampled.

    Parameters
    ----------
    seed : int
    held_out, sampled : float
        Shares of all rows, and of those that are not held out.
    wanted : array of int
        Rows that are sampled in any case: the first of each class, and the first with a missing value in each column.
    """

    seed: int
    held_out: float
    sampled: float
    wanted: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))

    def of(self, block: Block) -> NDArray[np.uint8]:
        """The role of each row ``(n,)``."""
        keys = block.number if block.group is None else block.group
        role = np.where(self._draw(block.number, 1) < self.sampled, SAMPLED, TRAINED).astype(np.uint8)
        held = self._draw(keys, 0) < self.held_out
        wanted = np.isin(block.number, self.wanted)
        role[wanted] = SAMPLED
        # rows of one group stay together, whatever they are wanted for
        role[held if block.group is not None else held & ~wanted] = HELD
        return role

    def _draw(self, keys: NDArray[np.uint64], stream: int) -> Array:
        """Numbers in [0, 1) that look random, one for each key."""
        start = splitmix64(splitmix64(np.array([self.seed % 2**64], np.uint64)) + np.uint64(stream))
        return (splitmix64(splitmix64(keys ^ start)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@dataclass(frozen=True, eq=False)
class Chosen:
    """The rows that every process keeps in memory, and what the first pass says about the others.

    Parameters
    ----------
    features : pyarrow.Table of shape (n, d)
    y : array of shape (n,) or (n, k)
    weight : array of shape (n,)
    group : array of shape (n,) or None
    held_out : array of shape (n,)
        Mask of the rows that are held out.
    number : array of shape (n,)
        Of each row among all rows, ascending.
    roles : Roles
    counts : array of shape (S,)
        Training rows of each logical shard.
    range_y : array of shape (2, k), or None
        The least and the greatest target; None for classes.
    range_weight : tuple of float
        The least and the greatest weight.
    class_weights : dict of float
        The sum of the weights of each class, by :func:`class_key`.
    categories : dict of int to CategoryTotals
        The values of columns of categories in all rows, where these are not all in memory.
    """

    features: Any
    y: NDArray[Any]
    weight: Array
    group: NDArray[np.uint64] | None
    held_out: NDArray[np.bool_]
    number: NDArray[np.uint64]
    roles: Roles
    counts: NDArray[np.int64]
    range_y: Array | None
    range_weight: tuple[float, float]
    class_weights: dict[str, float]
    categories: Mapping[int, CategoryTotals] = field(default_factory=dict)

    def training_blocks(self, reader: ShardReader) -> Iterator[Block]:
        """The training rows of a process.

        Parameters
        ----------
        reader : ShardReader

        Yields
        ------
        Block
        """
        for shard in reader.own:
            for block in reader.blocks(shard):
                kept = np.flatnonzero(self.roles.of(block) != HELD)
                if len(kept):
                    yield take_rows(block, kept)

    def class_factors(self, target: Target) -> Array | float:
        """Factors of the weights of classes, ``(classes,)``, by the weights of all rows.

        Parameters
        ----------
        target : Target

        Returns
        -------
        array of shape (classes,), or float
            1.0 where targets are numbers, or all classes have it.
        """
        if target.classes is None:
            return 1.0
        total = np.array([self.class_weights[class_key(label)] for label in target.classes.tolist()])
        return target.row_factors(target.encode(target.classes), total)


def class_key(label: Any) -> str:
    """What a class is called among processes."""
    return f"class {label!r}"


def choose_rows(reader: ShardReader, seed: int, fraction: float | None, categorical: Any = "from_dtype") -> Chosen:
    """Read all rows once.

    Parameters
    ----------
    reader : ShardReader
    seed : int
    fraction : float or None
        Share of the rows that the user wants held out; None: none.
    categorical : "from_dtype", None, or list of str, int or bool
        The parameter ``categorical_features``.

    Returns
    -------
    Chosen
    """
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_NUMBERS // max(len(reader.opened.columns), 1)))
    rows = reader.opened.rows
    held = 0.0 if fraction is None else min(fraction, most / rows)
    roles = Roles(seed, held, min(1.0, most / max(rows * (1 - held), 1.0)))
    scan = _Scan(reader, roles)
    # rows that are all in memory are counted there
    counts = CategoryCounts(reader, category_columns(reader.opened, categorical) if roles.sampled < 1 else {})
    for shard in reader.own:
        for block in reader.blocks(shard):
            scan.add(shard, block)
            counts.add(shard, block)
        counts.end_shard(shard)
    reader.compare_copies()
    return replace(scan.chosen(), categories=counts.totals())


class _Scan:
    """What the first pass has found in the shards of this process."""

    def __init__(self, reader: ShardReader, roles: Roles) -> None:
        self._reader, self._roles = reader, roles
        self._kept: list[Block] = []
        #: What a row is wanted for, with the first such row, and that row itself where no other reason keeps it.
        self._first: dict[str, int] = {}
        self._spare: list[Block] = []
        self._training = np.zeros(len(reader.shards), np.int64)
        self._shard: dict[int, int] = {}
        self._y: list[Array] = []
        self._weight: list[tuple[float, float]] = []
        #: Weights of classes, by logical shard.
        self._classes: dict[int, dict[str, float]] = {}

    def add(self, shard: int, block: Block) -> None:
        role = self._roles.of(block)
        new = self._wanted(block, role)
        self._shard.update(dict.fromkeys(new, shard))
        # whether others want an earlier row is not known yet
        spare = np.isin(block.number, np.array(new, np.uint64)) & (role == TRAINED)
        self._training[shard] += int((role != HELD).sum())
        self._kept.append(take_rows(block, np.flatnonzero(role != TRAINED)))
        self._spare.append(take_rows(block, np.flatnonzero(spare)))
        self._weight.append((float(block.weight.min()), float(block.weight.max())))
        if not self._reader.classes:
            y = np.asarray(block.y, dtype=np.float64).reshape(len(block.y), -1)
            self._y.append(np.stack([y.min(0), y.max(0)]))
            return
        labels, place = np.unique(block.y, return_inverse=True)
        total = self._classes.setdefault(shard, {})
        for label, weight in zip(labels.tolist(), np.bincount(place, block.weight).tolist(), strict=True):
            total[class_key(label)] = total.get(class_key(label), 0.0) + weight

    def _wanted(self, block: Block, role: NDArray[np.uint8]) -> list[int]:
        """The first rows of this process with a class, or with a missing value in a column."""
        found: list[int] = []
        for name in block.features.column_names:
            if f"column {name}" not in self._first:
                missing = _missing(block.features.column(name))
                if missing.any():
                    self._first[f"column {name}"] = int(block.number[missing.argmax()])
                    found.append(self._first[f"column {name}"])
        if self._reader.classes:
            # of groups that are held out no row can be trained on
            rows = np.flatnonzero(role != HELD) if block.group is not None else np.arange(len(role))
            labels, places = np.unique(block.y[rows], return_index=True)
            for label, place in zip(labels.tolist(), rows[places].tolist(), strict=True):
                if class_key(label) not in self._first:
                    self._first[class_key(label)] = int(block.number[place])
                    found.append(self._first[class_key(label)])
            if len(self._first) > _MOST_CLASSES + len(block.features.column_names):
                raise ValueError(
                    f"target {self._reader.opened.targets[0]!r} has more than {_MOST_CLASSES:,} classes, such as "
                    f"{short_repr(labels[0])}: use a regressor if these are numbers"
                )
        return found

    def chosen(self) -> Chosen:
        world = self._reader.world
        every = [json.loads(one) for one in world.gather(json.dumps(self._first).encode())]
        first = {reason: min(own[reason] for own in every if reason in own) for reason in sorted(set().union(*every))}
        roles = replace(self._roles, wanted=np.unique(np.array(list(first.values()), np.uint64)))
        for number, shard in self._shard.items():
            self._training[shard] += self._was_held(number, roles)
        world.add_up(self._training)
        self._check_rows()
        kept = in_order([*self._kept, *(_wanted_of(block, roles.wanted) for block in self._spare)])
        self._kept, self._spare = [], []
        everyone = join_blocks(exchange_blocks(kept, self._reader))
        self._check_held_out(int((roles.of(everyone) == HELD).sum()))
        return Chosen(
            everyone.features,
            everyone.y,
            everyone.weight,
            everyone.group,
            roles.of(everyone) == HELD,
            everyone.number,
            roles,
            self._training,
            self._ranges(world),
            self._weights(world),
            self._class_weights(world),
        )

    def _check_held_out(self, count: int) -> None:
        """Warn if no group is held out; refuse groups too large for memory, or that leave few rows to train on."""
        share, rows = self._roles.held_out, self._reader.opened.rows
        most = 4 * max(share * rows, FEWEST_ROWS)
        if self._reader.opened.group is not None:
            most = min(most, (1 - LEAST_TRAINED) * rows)
        if count > most:
            raise ValueError(
                f"{count:,} rows are in groups that are held out, where {share * rows:,.0f} were to be, of {rows:,}: "
                "give smaller groups, or none, or set another random_state"
            )
        if count == 0 and share > 0:
            warn_user(
                "no row is held out, so that there is no early stopping: there are too few rows or groups for "
                f"{100 * share:.2g} % of them; set another random_state or validation_fraction with cv=None",
                UserWarning,
            )

    def _check_rows(self) -> None:
        """Check that every process has something to learn from."""
        for rank, shards in enumerate(self._reader.assigned):
            if self._training[shards.start : shards.stop].sum() == 0:
                size = self._reader.world.size
                who = "the shards have" if size == 1 else f"process {rank} of {size} has"
                grouped = "" if self._reader.opened.group is None else ": give smaller groups, or another random_state"
                advice = grouped if size == 1 else ": start fewer processes"
                raise ValueError(f"{who} no training row of positive weight{advice}")

    def _was_held(self, number: int, roles: Roles) -> int:
        """1 for a row that would be held out if it were not wanted."""
        if number not in roles.wanted or self._reader.opened.group is not None:
            return 0
        row = Block(np.array([number], np.uint64), None, np.zeros(1), np.ones(1), None)
        return int(self._roles.of(row)[0] == HELD)

    def _ranges(self, world: World) -> Array | None:
        if self._reader.classes:
            return None
        own = np.stack(self._y) if self._y else np.zeros((0, 2, len(self._reader.opened.targets)))
        every = np.concatenate([np.frombuffer(one).reshape(-1, *own.shape[1:]) for one in world.gather(own.tobytes())])
        return np.stack([every[:, 0].min(0), every[:, 1].max(0)])

    def _class_weights(self, world: World) -> dict[str, float]:
        """Added up in the order of shards."""
        total: dict[str, float] = {}
        for written in world.gather(json.dumps(list(self._classes.values())).encode()):
            for shard in json.loads(written):
                for key, weight in shard.items():
                    total[key] = total.get(key, 0.0) + weight
        return total

    def _weights(self, world: World) -> tuple[float, float]:
        every = np.concatenate([np.frombuffer(one) for one in world.gather(np.array(self._weight).tobytes())])
        return float(every.min()), float(every.max())


def _missing(column: Any) -> NDArray[np.bool_]:
    pa = import_optional("pyarrow", "arrow")
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return np.zeros(len(column), bool)
    return np.asarray(column.is_null(nan_is_null=True))


def _wanted_of(block: Block, wanted: NDArray[np.uint64]) -> Block:
    return take_rows(block, np.flatnonzero(np.isin(block.number, wanted)))
