"""Categories of columns, counted over all rows of shards in the first pass.

Sums of weights are made per logical shard and added in the order of shards, so that they have the same bits for any
number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gce._utils.optional import import_optional
from gce.estimators._shard_blocks import Block, ShardReader
from gce.preprocessing import read_frame
from gce.preprocessing.columns import Category, CategoryTotals, check_integers
from gce.preprocessing.open_shards import OpenShards
from gce.preprocessing.schema import categorical_indices
from gce.preprocessing.shard_types import kind_of

Array = NDArray[np.float64]

#: Values of a column that all logical shards keep together, each as many, and those that may have a code.
MOST_VALUES, MOST_CATEGORIES = 1 << 24, 1 << 20
#: Values that are worth a merge.
_MANY = 1 << 16


class _Counted(NamedTuple):
    """Values of a column, in the order of their first rows.

    Parameters
    ----------
    values : pyarrow.Array of length v
    weight : array of shape (v,)
    """

    values: Any
    weight: Array


def category_columns(opened: OpenShards, categorical: Any) -> dict[int, str]:
    """The columns whose values are categories, by their types and by ``categorical_features``.

    Parameters
    ----------
    opened : OpenShards
    categorical : "from_dtype", None, or list of str, int or bool

    Returns
    -------
    dict of int to str
        Their names by their indices.
    """
    chosen = categorical_indices(categorical, opened.columns)
    found = {}
    for j, name in enumerate(opened.columns):
        kind = kind_of(opened.schema.field(name).type) or ""
        if kind == "text" or kind.startswith("category") or (kind == "number" and j in chosen):
            found[j] = name
    return found


class CategoryCounts:
    """The weights of the values of some columns, in the rows that were added.

    Parameters
    ----------
    reader : ShardReader
    columns : dict of int to str
        Names of columns of categories by their indices.
    """

    def __init__(self, reader: ShardReader, columns: Mapping[int, str]) -> None:
        self._reader, self._columns = reader, columns
        #: Of the blocks of the current shard, and of the shards of this process.
        self._blocks = {j: [self._empty(name)] for j, name in columns.items()}
        self._shards = {j: [self._empty(name)] for j, name in columns.items()}
        #: Sums of weights, of their squares, and of the weights of the values of each column, by shard.
        self._sums = np.zeros((len(reader.shards), 2 + len(columns)))

    def add(self, shard: int, block: Block) -> None:
        """Count the rows of a block of the current shard."""
        self._sums[shard, :2] += _sum(block.weight), _sum(np.square(block.weight))
        for j, name in self._columns.items():
            self._blocks[j] = _compacted([*self._blocks[j], _count(block.features.column(name), block.weight)])

    def end_shard(self, shard: int) -> None:
        """Keep what was counted of the current shard."""
        for at, (j, name) in enumerate(self._columns.items()):
            counted = _merged(self._blocks[j])
            self._sums[shard, 2 + at] = _sum(counted.weight)
            self._shards[j].append(_heaviest(counted, MOST_VALUES // len(self._reader.shards)))
            self._blocks[j] = [self._empty(name)]
            if self._reader.opened.weight is None:
                # numbers of rows, whose sums have no order
                self._shards[j] = _compacted(self._shards[j])

    def totals(self) -> dict[int, CategoryTotals]:
        """What all processes have counted, by the indices of columns."""
        if not self._columns:
            return {}
        self._reader.world.add_up(self._sums.reshape(-1).view(np.int64))
        # one shard after another
        total, squares, *known = np.cumsum(self._sums, axis=0)[-1].tolist()
        rows = max(total, total**2 / squares)
        return {
            j: self._totals(name, self._of_all_processes(self._shards.pop(j)), total, known[at], rows)
            for at, (j, name) in enumerate(self._columns.items())
        }

    def _totals(self, name: str, every: _Counted, total: float, known: float, rows: float) -> CategoryTotals:
        pa = import_optional("pyarrow", "arrow")
        if pa.types.is_float64(every.values.type):
            check_integers(name, every.values.to_numpy())
        kept, share = _heaviest(every, MOST_CATEGORIES), dict[Category, float]()
        is_dictionary = pa.types.is_dictionary(self._reader.opened.schema.field(name).type)
        values = kept.values.dictionary_encode() if is_dictionary else kept.values
        # the values that rows are encoded by
        keys = read_frame(pa.table({name: values})).columns[0].tolist() if len(values) else []
        for key, weight in zip(keys, kept.weight.tolist(), strict=True):
            share[key] = share.get(key, 0.0) + weight / total
        cut = len(every.values) - len(kept.values)
        return CategoryTotals(share, rows, len(share) + cut, max(known - _sum(kept.weight), 0.0) / total)

    def _of_all_processes(self, own: list[_Counted]) -> _Counted:
        if self._reader.world.size == 1:
            return _merged(own)
        pa, ipc = (import_optional(name, "arrow") for name in ("pyarrow", "pyarrow.ipc"))
        table, sink = pa.concat_tables([pa.table([part.values, pa.array(part.weight)], ["value", "weight"])
                                        for part in own]), pa.BufferOutputStream()  # fmt: skip
        with ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        every = [ipc.open_stream(one).read_all() for one in self._reader.world.gather(bytes(sink.getvalue()))]
        return _merged([_Counted(one["value"].combine_chunks(), one["weight"].to_numpy()) for one in every])

    def _empty(self, name: str) -> _Counted:
        pa = import_optional("pyarrow", "arrow")
        column = pa.chunked_array([], self._reader.opened.schema.field(name).type)
        return _count(column, np.zeros(0))


def _count(column: Any, weight: Array) -> _Counted:
    """The values of a column, with the sums of the weights ``(n,)`` of their rows."""
    pa, compute = (import_optional(name, "arrow") for name in ("pyarrow", "pyarrow.compute"))
    dictionary = pa.types.is_dictionary(column.type)
    plain = column.cast(column.type.value_type) if dictionary else column
    if kind_of(plain.type) == "text":
        # in the end more than 2 GB of text may be together
        plain = plain.cast(pa.large_string())
    elif not dictionary:
        # both zeros are one number
        plain = compute.add(plain.cast(pa.float64(), safe=False), 0.0)
    encoded = plain.combine_chunks().dictionary_encode()
    values = encoded.dictionary
    place = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    total = _sums(place, weight, len(values) + 1)[: len(values)]
    if not pa.types.is_floating(values.type):
        return _Counted(values, total)
    known = np.flatnonzero(~np.isnan(values.to_numpy(zero_copy_only=False)))
    return _Counted(values.take(pa.array(known)), total[known])


def _merged(tables: list[_Counted]) -> _Counted:
    """The sums of equal values, one table after another."""
    pa = import_optional("pyarrow", "arrow")
    if len(tables) == 1:
        return tables[0]
    encoded = pa.concat_arrays([table.values for table in tables]).dictionary_encode()
    weight = np.concatenate([table.weight for table in tables])
    place = encoded.indices.to_numpy(zero_copy_only=False)
    return _Counted(encoded.dictionary, _sums(place, weight, len(encoded.dictionary)))


def _compacted(tables: list[_Counted]) -> list[_Counted]:
    """The tables, merged where that makes them much smaller."""
    later = sum(len(table.weight) for table in tables[1:])
    return [_merged(tables)] if later > max(len(tables[0].weight), _MANY) else tables


def _heaviest(counted: _Counted, most: int) -> _Counted:
    """At most so many values, those of the largest weights; equal ones by the order of their values."""
    if len(counted.weight) <= most:
        return counted
    pa, compute = (import_optional(name, "arrow") for name in ("pyarrow", "pyarrow.compute"))
    table = pa.table([counted.values, pa.array(counted.weight)], ["value", "weight"])
    kept = compute.sort_indices(table, [("weight", "descending"), ("value", "ascending")])[:most]
    return _Counted(counted.values.take(kept), counted.weight[kept.to_numpy()])


def _sums(place: NDArray[np.intp], weight: Array, size: int) -> Array:
    """The sums of weights by place, ``(size,)``, one after another; of no weights numpy makes integers."""
    return np.asarray(np.bincount(place, weight, size), dtype=np.float64)


def _sum(weight: Array) -> float:
    """The sum of weights ``(v,)``, one after another."""
    return float(np.cumsum(weight)[-1]) if len(weight) else 0.0
