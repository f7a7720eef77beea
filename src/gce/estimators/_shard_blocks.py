"""The rows of shards, block by block: features, targets, weights and groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gce._utils.optional import import_optional
from gce.distributed import World
from gce.preprocessing.open_shards import OpenShards, assign, digest_rows, logical_shards

Array = NDArray[np.float64]

#: Rows that are encoded together.
_BLOCK_ROWS = 1 << 16
#: The least weight that is not 0; its reciprocal is the largest.
_LEAST_WEIGHT = 1e-50


class Block(NamedTuple):
    """Rows of positive weight that were read together.

    Parameters
    ----------
    number : array of shape (n,)
        Of each row among all rows.
    features : pyarrow.Table of shape (n, d)
    y : array of shape (n,) or (n, k)
    weight : array of shape (n,)
    group : array of shape (n,) or None
        A hash of the group of each row.
    """

    number: NDArray[np.uint64]
    features: Any
    y: NDArray[Any]
    weight: Array
    group: NDArray[np.uint64] | None


@dataclass(frozen=True, eq=False)
class ShardReader:
    """The logical shards of a process.

    Parameters
    ----------
    opened : OpenShards
    world : World
    classes : bool
        Targets are labels.
    """

    opened: OpenShards
    world: World
    classes: bool
    #: Hashes of the rows of the units that were read, which all passes must find.
    _digests: dict[int, str] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def shards(self) -> list[range]:
        """The units of each logical shard."""
        return logical_shards([unit.rows for unit in self.opened.units])

    @cached_property
    def assigned(self) -> list[range]:
        """The logical shards of each process."""
        rows = [sum(self.opened.units[i].rows for i in shard) for shard in self.shards]
        return assign(rows, self.world.size)

    @property
    def own(self) -> range:
        """The logical shards of this process."""
        return self.assigned[self.world.rank]

    def blocks(self, shard: int) -> Iterator[Block]:
        """The rows of a logical shard, in their order."""
        rows = np.cumsum([0, *(unit.rows for unit in self.opened.units)])
        for unit in self.shards[shard]:
            whole = self._read(unit)
            for first in range(0, whole.num_rows, _BLOCK_ROWS):
                table = whole.slice(first, _BLOCK_ROWS)
                block = self._block(table, int(rows[unit]) + first, self.opened.units[unit].name)
                if len(block.number):
                    yield block

    def _read(self, unit: int) -> Any:
        """The rows of a unit, which must be those of the first pass."""
        table = self.opened.read(unit)
        digest = digest_rows(table)
        if self._digests.setdefault(unit, digest) != digest:
            raise ValueError(
                f"{self.opened.units[unit].name} has other values than when it was first read: let nothing write to "
                "the rows of a fit while they are read, and start it again"
            )
        return table

    def compare_copies(self) -> None:
        """Check, after the first pass, that processes which have files of their own read the same rows.

        Each process reads the rows of the next one, too: whatever is learned from was compared with another copy.

        Raises
        ------
        ValueError
            Two copies of a unit differ; in all processes.
        """
        world = self.world
        if world.size == 1:
            return
        marks = [json.loads(one) for one in world.gather(json.dumps(self.opened.marks()).encode())]
        if None not in marks[0] and all(other == marks[0] for other in marks):
            return
        digests = dict(self._digests)
        for shard in self.assigned[(world.rank + 1) % world.size]:
            digests |= {unit: digest_rows(self.opened.read(unit)) for unit in self.shards[shard]}
        seen: dict[str, tuple[str, int]] = {}
        for rank, every in enumerate(world.gather(json.dumps(digests).encode())):
            for unit, digest in json.loads(every).items():
                other, before = seen.setdefault(unit, (digest, rank))
                if other != digest:
                    raise ValueError(
                        f"{self.opened.units[int(unit)].name} has other values in process {rank} than in process "
                        f"{before}: copy the file again, or let all processes read the same one"
                    )

    def _block(self, table: Any, first: int, name: str) -> Block:
        number = np.arange(first, first + table.num_rows, dtype=np.uint64)
        weight = np.ones(len(number))
        if self.opened.weight is not None:
            weight = _weights(table, self.opened.weight, name)
            if not weight.all():
                kept = np.flatnonzero(weight)
                table, number, weight = table.take(kept), number[kept], weight[kept]
        columns = [self._target(table, target, name) for target in self.opened.targets]
        y = columns[0] if len(columns) == 1 else np.column_stack(columns)
        group = None if self.opened.group is None else hash_values(table.column(self.opened.group))
        return Block(number, table.select(list(self.opened.columns)), y, weight, group)

    def _target(self, table: Any, target: str, name: str) -> NDArray[Any]:
        column = table.column(target)
        if column.null_count:
            raise ValueError(f"target {target!r} has {column.null_count} missing value(s) in {name}: drop these rows")
        values = _values(column, self.classes)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"target {target!r} has NaN or infinity in {name}: drop these rows")
        return values


def compare_files(world: World, files: list[list[Any]]) -> None:
    """Check, before rows are read, that the files of all processes have the same names, sizes and ends.

    Parameters
    ----------
    world : World
    files : list of [name, size, hash]
        Those of this process.

    Raises
    ------
    ValueError
        The first file that differs, in all processes.
    """
    every = [json.loads(one) for one in world.gather(json.dumps(files).encode())]
    for rank, other in enumerate(every):
        for ours, theirs in zip_longest(every[0], other, fillvalue=(None, None, None)):
            if ours[0] != theirs[0]:
                first, second = ("no file" if name is None else name for name in (ours[0], theirs[0]))
                raise ValueError(
                    f"process {rank} has {second} where process 0 has {first}: give all processes the same files "
                    "in the same order"
                )
            if ours != theirs:
                what = "another size" if ours[1] != theirs[1] else "other bytes at its end"
                raise ValueError(
                    f"{ours[0]} has {what} in process {rank} than in process 0: copy the file again, or let all "
                    "processes read the same one"
                )


def _weights(table: Any, column: str, name: str) -> Array:
    """Sample weights ``(n,)``, which may all be 0 here."""
    try:
        weight = np.asarray(table.column(column).to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {column!r} of sample weights has other values than numbers in {name}") from error
    # beyond, products of two weights overflow
    good = (weight == 0) | ((weight > _LEAST_WEIGHT) & (weight < 1 / _LEAST_WEIGHT))
    if not good.all():
        raise ValueError(
            f"column {column!r} of sample weights holds {weight[~good][0]:g} in {name}: weights must be 0, or between "
            f"{_LEAST_WEIGHT:.0e} and {1 / _LEAST_WEIGHT:.0e}"
        )
    return weight


def hash_values(column: Any) -> NDArray[np.uint64]:
    """A hash of each value of an Arrow column ``(n,)``, the same in every process."""
    encoded = column.combine_chunks().dictionary_encode()
    digests = [
        hashlib.blake2b(repr(value).encode(), digest_size=8).digest() for value in encoded.dictionary.to_pylist()
    ]
    known = np.frombuffer(b"".join([*digests, bytes(8)]), np.uint64)
    # a missing group is a group
    return known[encoded.indices.cast("int64").fill_null(len(digests)).to_numpy()]


def take_rows(block: Block, rows: NDArray[np.intp]) -> Block:
    """The rows with some indices, which are ascending."""
    if len(rows) == len(block.number):
        return block
    group = None if block.group is None else block.group[rows]
    return Block(block.number[rows], block.features.take(rows), block.y[rows], block.weight[rows], group)


def join_blocks(blocks: list[Block]) -> Block:
    """All rows of several blocks, one after another."""
    pa = import_optional("pyarrow", "arrow")
    groups = [block.group for block in blocks if block.group is not None]
    return Block(
        np.concatenate([block.number for block in blocks]),
        pa.concat_tables([block.features for block in blocks]),
        np.concatenate([block.y for block in blocks]),
        np.concatenate([block.weight for block in blocks]),
        np.concatenate(groups) if groups else None,
    )


def in_order(blocks: list[Block]) -> Block:
    """All rows of several blocks, by their numbers."""
    joined = join_blocks(blocks)
    order = np.argsort(joined.number)
    return joined if (np.diff(order) == 1).all() else _reordered(joined, order)


def _reordered(block: Block, order: NDArray[np.intp]) -> Block:
    group = None if block.group is None else block.group[order]
    return Block(block.number[order], block.features.take(order), block.y[order], block.weight[order], group)


def exchange_blocks(own: Block, reader: ShardReader) -> list[Block]:
    """The blocks of all processes."""
    if reader.world.size == 1:
        return [own]
    every = reader.world.gather_arrays(write_block(own))
    return [read_block(one, reader.opened, reader.classes) for one in every]


def write_block(block: Block) -> NDArray[np.uint8]:
    """A block as an Arrow stream ``(bytes,)``."""
    pa = import_optional("pyarrow", "arrow")
    ipc = import_optional("pyarrow.ipc", "arrow")
    y = block.y.reshape(len(block.y), -1)
    columns = [*block.features.columns, *(pa.array(y[:, j]) for j in range(y.shape[1]))]
    columns += [pa.array(block.number), pa.array(block.weight)]
    columns += [] if block.group is None else [pa.array(block.group)]
    table = pa.table(columns, names=[str(j) for j in range(len(columns))])
    # its size first: memory that grows as it is written is copied again and again
    size = pa.MockOutputStream()
    with ipc.new_stream(size, table.schema) as stream:
        stream.write_table(table)
    written = np.empty(size.size(), np.uint8)
    with ipc.new_stream(pa.FixedSizeBufferWriter(pa.py_buffer(written)), table.schema) as stream:
        stream.write_table(table)
    return written


def read_block(written: NDArray[np.uint8], opened: OpenShards, classes: bool) -> Block:
    """The block of an Arrow stream."""
    pa = import_optional("pyarrow", "arrow")
    ipc = import_optional("pyarrow.ipc", "arrow")
    table, d, k = ipc.open_stream(pa.py_buffer(written)).read_all(), len(opened.columns), len(opened.targets)
    features = table.select(list(range(d))).rename_columns(list(opened.columns))
    targets = [_values(table.column(j), classes) for j in range(d, d + k)]
    number, weight, *group = (table.column(j).to_numpy() for j in range(d + k, table.num_columns))
    y = targets[0] if k == 1 else np.column_stack(targets)
    return Block(number, features, y, weight, group[0] if group else None)


def _values(column: Any, classes: bool) -> NDArray[Any]:
    """Targets as numpy has them: labels may be of any type."""
    return np.asarray(column.to_pylist()) if classes else np.asarray(column.to_numpy())
