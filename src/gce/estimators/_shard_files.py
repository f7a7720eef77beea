"""Codes, targets and weights of the training rows of a process, in files of its working folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils.workspace import Workspace
from gce.bases import Basis, Neural
from gce.bases.neural.stored_inputs import StoredInputs
from gce.bases.trees.binned import BinnedBasis, BinnedRows
from gce.bases.trees.binning import FIRST_CODE_BIN, Bins
from gce.bases.trees.coding import code_rows
from gce.bases.trees.stored import StoredRows
from gce.bases.trees.tree import Tree
from gce.distributed import Division
from gce.estimators._shard_blocks import Block, ShardReader
from gce.estimators._shard_choice import Chosen
from gce.estimators._shard_statistics import RowStatistics
from gce.preprocessing import read_frame
from gce.preprocessing.mixed import MixedRows, Rows, telling_blocks
from gce.preprocessing.row_hashes import hash_rows
from gce.training.data import FitData
from gce.training.problem import Problem
from gce.training.targets import class_codes

Array = NDArray[np.float64]

_CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class CodeFiles:
    """What is written in the second pass.

    Parameters
    ----------
    reader : ShardReader
    chosen : Chosen
        The rows in memory.
    division : Division
        The training rows.
    data : FitData
        Of the rows in memory.
    statistics : RowStatistics, optional
        Statistics of the target of training rows, without their own targets.
    files : Workspace
    """

    reader: ShardReader
    chosen: Chosen
    division: Division
    data: FitData
    statistics: RowStatistics | None
    files: Workspace

    def write(self, bases: Sequence[Basis]) -> Problem:
        """Read all training rows of this process again, and write what boosted trees need of them.

        Parameters
        ----------
        bases : sequence of Basis
            Those that learn from all rows.

        Returns
        -------
        Problem
            The training rows of this process, then the rows that are held out.
        """
        given = self.data.problem
        few, own = given.train_rows, self.division.own_rows
        rows = own + len(given.y) - few
        trees = [basis for basis in bases if isinstance(basis, Tree)]
        binned = {basis.max_bins for basis in bases if isinstance(basis, BinnedBasis)}
        bins = {most: self._bins(most) for most in sorted(binned)}
        codes = {most: self._codes(most, found, rows) for most, found in bins.items()}
        inputs = self._inputs(rows) if any(isinstance(basis, Neural) for basis in bases) else None
        names = np.zeros(rows, np.uint64) if any(basis.subsample < 1 for basis in trees) else None
        y = self.files.array("y", (rows, given.y.shape[1]), np.float64)
        weight, held_out = (self.files.array(name, (1, rows), np.float64) for name in ("weight", "held_out"))
        at = 0
        for block in self.chosen.training_blocks(self.reader):
            part = slice(at, at + len(block.number))
            at = part.stop
            X = self._rows(block)
            y[part] = self.data.target.encode(block.y)
            weight[0, part] = block.weight * self._factors(y[part])
            self._write_rows(X, bins, codes, inputs, names, part)
        assert at == own
        last = slice(own, rows)
        y[last], held_out[0, last] = given.y[few:].numpy(), given.held_out[0, few:].numpy()
        self._write_rows(given.X[few:], bins, codes, inputs, names, last)
        count = self._normalize(weight[:, :own])
        stored = StoredRows(
            rows,
            given.X.shape[1],
            {most: (bins[most], codes[most]) for most in bins},
            self.division,
            names,
            table := given.X[:0] if isinstance(given.X, MixedRows) else None,
            self.files.array,
            None if inputs is None else StoredInputs(inputs, self.division, few, table, self.files.array),
        )
        return Problem(
            given.loss,
            # of which a fit needs what rows have
            cast(Rows, stored),
            torch.from_numpy(y),
            torch.from_numpy(weight),
            torch.from_numpy(held_out),
            given.offset,
            given.bound,
            torch.tensor([count], dtype=torch.float64),
            division=self.division,
        )

    def _bins(self, most: int) -> Bins:
        """The bins of the rows in memory, with one for every frequent category, which these need not have."""
        found = BinnedRows.of(self.data.problem.X, most).bins
        edges = list(found.edges)
        for j, column in enumerate(self.data.table.columns):
            if column.frequent:
                last = FIRST_CODE_BIN + len(column.frequent) - 1
                edges[j] = np.arange(max(last, len(edges[j])), dtype=np.float64)
        return replace(found, edges=tuple(edges))

    def _codes(self, most: int, bins: Bins, rows: int) -> NDArray[np.uint8]:
        return self.files.array(f"codes-{most}", (-(-len(bins.edges) // 4), rows, 4), np.uint8)

    def _inputs(self, rows: int) -> NDArray[np.float32]:
        X = self.data.problem.X
        return self.files.array("inputs", (rows, (X.columns if isinstance(X, MixedRows) else X).shape[1]), np.float32)

    def _rows(self, block: Block) -> Rows:
        table = self.data.table
        X = table.encode(read_frame(block.features))
        table.check_range(X)
        if self.statistics is None:
            return table.rows(X, _CPU)
        assert isinstance(X, np.ndarray)
        return table.rows(X, _CPU, self.statistics.of_training_rows(X, block))

    def _write_rows(
        self,
        X: Rows,
        bins: dict[int, Bins],
        codes: dict[int, NDArray[np.uint8]],
        inputs: NDArray[np.float32] | None,
        names: NDArray[np.uint64] | None,
        part: slice,
    ) -> None:
        """Write the codes, inputs and hashes of rows to their part of the files."""
        columns = np.asarray((X.columns if isinstance(X, MixedRows) else X).numpy())  # type: ignore[union-attr]
        for most, own in bins.items():
            code_rows(own, columns, codes[most][:, part])
        if inputs is not None:
            inputs[part] = columns
        if names is not None:
            names[part] = np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in telling_blocks(X)])

    @cached_property
    def _class_factors(self) -> Array | float:
        """Factors of the classes, ``(classes,)``, by the weights of all rows."""
        return self.chosen.class_factors(self.data.target)

    def _factors(self, y: Array) -> Array | float:
        """Factors of the sample weights of rows with targets ``(n, k)``."""
        factors = self._class_factors
        return factors if isinstance(factors, float) else factors[class_codes(y)]

    def _normalize(self, weight: Array) -> float:
        """Make weights ``(1, n)`` shares of the sum over all processes; returns how many rows they count as."""
        low, high = self.chosen.range_weight
        if low == high < 1 and isinstance(self._class_factors, float):
            # only proportions matter, to the last bit
            weight[:] = 1.0
        own = torch.from_numpy(weight)
        total, squares = (float(self.division.sum_rows(part)) for part in (own, own.square()))
        weight /= total
        return max(total, total**2 / squares)
