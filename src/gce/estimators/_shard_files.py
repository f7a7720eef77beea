"""Codes, targets and weights of the training rows of a process, in files of its working folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from gce._utils.workspace import Workspace
from gce.bases.base import Basis
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import Bins
from gce.bases.trees.coding import code_rows
from gce.bases.trees.stored import StoredRows
from gce.bases.trees.tree import Tree
from gce.distributed import Division
from gce.estimators._shard_blocks import Block, ShardReader, take_rows
from gce.estimators._shard_choice import HELD, TRAINED, Chosen, class_key
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
    statistics : array of shape (n, p), optional
        Statistics of the target of the rows in memory, without their own targets.
    files : Workspace
    """

    reader: ShardReader
    chosen: Chosen
    division: Division
    data: FitData
    statistics: Array | None
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
        bins = {most: BinnedRows.of(given.X, most).bins for most in sorted({basis.max_bins for basis in trees})}
        codes = {most: self._codes(most, found, rows) for most, found in bins.items()}
        names = np.zeros(rows, np.uint64) if any(basis.subsample < 1 for basis in trees) else None
        y = self.files.array("y", (rows, given.y.shape[1]), np.float64)
        weight, held_out = (self.files.array(name, (1, rows), np.float64) for name in ("weight", "held_out"))
        at = 0
        for block, statistics in self._training_blocks():
            part = slice(at, at + len(block.number))
            at = part.stop
            X = self._rows(block, statistics)
            y[part] = self.data.target.encode(block.y)
            weight[0, part] = block.weight * self._factors(y[part])
            self._write_rows(X, bins, codes, names, part)
        assert at == own
        last = slice(own, rows)
        y[last], held_out[0, last] = given.y[few:].numpy(), given.held_out[0, few:].numpy()
        self._write_rows(given.X[few:], bins, codes, names, last)
        count = self._normalize(weight[:, :own])
        stored = StoredRows(
            rows,
            given.X.shape[1],
            {most: (bins[most], codes[most]) for most in bins},
            self.division,
            names,
            given.X[:0] if isinstance(given.X, MixedRows) else None,
            self.files.array,
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

    def _codes(self, most: int, bins: Bins, rows: int) -> NDArray[np.uint8]:
        return self.files.array(f"codes-{most}", (-(-len(bins.edges) // 4), rows, 4), np.uint8)

    def _training_blocks(self) -> Iterator[tuple[Block, Array | None]]:
        """Blocks of training rows, with the statistics ``(n, p)`` of those that were chosen, NaN for the others."""
        at = self.chosen.first
        for shard in self.reader.own:
            for block in self.reader.blocks(shard):
                role = self.chosen.roles.of(block)
                known = at + np.cumsum(role != TRAINED) - 1
                at += int((role != TRAINED).sum())
                kept = np.flatnonzero(role != HELD)
                if len(kept) == 0:
                    continue
                statistics = None
                if self.statistics is not None:
                    statistics = np.where((role != TRAINED)[:, None], self.statistics[known], np.nan)[kept]
                yield take_rows(block, kept), statistics

    def _rows(self, block: Block, chosen: Array | None) -> Rows:
        table = self.data.table
        X = table.encode(read_frame(block.features))
        table.check_range(X)
        if table.statistics is None or chosen is None:
            return table.rows(X, _CPU)
        assert isinstance(X, np.ndarray)
        # rows that were chosen are the only ones whose targets are in the statistics
        return table.rows(X, _CPU, np.where(np.isnan(chosen), table.statistics.transform(X), chosen))

    def _write_rows(
        self,
        X: Rows,
        bins: dict[int, Bins],
        codes: dict[int, NDArray[np.uint8]],
        names: NDArray[np.uint64] | None,
        part: slice,
    ) -> None:
        """Write the codes and the hashes of rows to their part of the files."""
        columns = np.asarray((X.columns if isinstance(X, MixedRows) else X).numpy())  # type: ignore[union-attr]
        for most, own in bins.items():
            code_rows(own, columns, codes[most][:, part])
        if names is not None:
            names[part] = np.concatenate([hash_rows(np.round(some * 2.0**20)) for some in telling_blocks(X)])

    @cached_property
    def _class_factors(self) -> Array | float:
        """Factors of the classes, ``(classes,)``, by the weights of all rows."""
        target = self.data.target
        if target.classes is None:
            return 1.0
        total = np.array([self.chosen.class_weights[class_key(label)] for label in target.classes.tolist()])
        return target.row_factors(target.encode(target.classes), total)

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
