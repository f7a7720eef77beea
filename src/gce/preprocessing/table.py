"""``model.table_``: the columns of the training data, and the encoding of new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gce.preprocessing.columns import OTHER, Column
from gce.preprocessing.encoder import Encoder
from gce.preprocessing.frames import Frame, Kind
from gce.preprocessing.interactions import Interactions, pack_interactions, read_interactions
from gce.preprocessing.mixed import MixedRows, Rows, Widths
from gce.preprocessing.parts import is_valid, restore_columns, starting_with, store_columns
from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.schema import Schema
from gce.preprocessing.sparse import Matrix, SparseRows, to_device
from gce.preprocessing.target_statistics import TargetStatistics

Array = NDArray[np.float64]

#: Largest distance of a number from its column's centre, in spreads, without clipping: squares of inputs must be finite
#: in float32.
MAX_SPREADS = 1e15


def expanded(schema: Schema, X: Matrix, statistics: Array | None = None) -> Matrix:
    """Encoded rows with the columns that trees split.

    Parameters
    ----------
    schema : Schema
        Kinds and categories of the columns.
    X : array or SparseRows of shape (n, d)
        Encoded rows.
    statistics : array of shape (n, M p), optional

    Returns
    -------
    array or SparseRows of shape (n, d + M p)
        Categories that are not frequent have the code of all others.
    """
    rare = [j for j, column in enumerate(schema.columns) if len(column.frequent) < len(column.categories)]
    if isinstance(X, SparseRows) or (not rare and statistics is None):
        return X
    out = np.empty((len(X), X.shape[1] + (0 if statistics is None else statistics.shape[1])))
    out[:, : X.shape[1]] = X
    if statistics is not None:
        out[:, X.shape[1] :] = statistics
    for j in rare:
        out[out[:, j] >= len(schema.columns[j].frequent), j] = OTHER
    return out


@dataclass(frozen=True, repr=False)
class Table:
    """The encoding of input tables in two steps: values to codes, and codes to the inputs of networks.

    Parameters
    ----------
    schema : Schema
        Kinds and categories of the columns.
    encoder : Encoder
        Scaling and indicators.
    statistics : TargetStatistics, optional
        Statistics of the target by category.

    Attributes
    ----------
    columns : tuple of Column
        Name, kind and categories of each column.
    width : int
        Number of inputs of a network.
    """

    schema: Schema
    encoder: Encoder
    statistics: TargetStatistics | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, kind and categories of each column."""
        return self.schema.columns

    @property
    def width(self) -> int:
        """Number of inputs of a network."""
        return self.encoder.width

    def encode(self, frame: Frame) -> Matrix:
        """A frame as numbers ``(n, d)``: codes of categories, -1 for others, NaN for missing values; then parts.

        Parameters
        ----------
        frame : Frame
            The rows.

        Returns
        -------
        array or SparseRows of shape (n, d)
        """
        return self.schema.encode(frame)

    def transform(self, X: Matrix) -> Matrix:
        """Inputs ``(n, width)`` of encoded rows ``(n, d)``.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded rows.

        Returns
        -------
        array or SparseRows of shape (n, width)
        """
        return self.encoder.transform(self._expanded(X, None))

    def rows(self, X: Matrix, device: torch.device, statistics: Array | None = None) -> Rows:
        """Encoded rows ``(n, d)`` as models see them, on a device.

        A table of numbers that had no missing values in the fit has inputs only, as sparse rows have.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded rows.
        device : torch.device
        statistics : array of shape (n, M p), optional
            Those of training rows; by default as of new rows.

        Returns
        -------
        Tensor, SparseRows or MixedRows of shape (n, width)
        """
        if len(self.encoder.flagged) == 0 and self.statistics is None:
            return to_device(self.transform(X), device)
        columns = torch.from_numpy(self.encoder.scale_columns(self._expanded(X, statistics))).to(device)
        return MixedRows(columns, self.encoder, self._categorical, self._owner)

    def _expanded(self, X: Matrix, statistics: Array | None) -> Matrix:
        if self.statistics is None:
            return expanded(self.schema, X)
        assert not isinstance(X, SparseRows)
        return expanded(self.schema, X, self.statistics.transform(X) if statistics is None else statistics)

    @cached_property
    def _categorical(self) -> NDArray[np.bool_]:
        kinds = [column.kind == "category" for column in self.columns]
        return np.array(kinds + [False] * (self.n_split - len(kinds)))

    @cached_property
    def _owner(self) -> NDArray[np.intp] | None:
        """The member that alone looks at a column that trees split, -1 for all, ``(n_split,)``; None: all at all."""
        if self.statistics is None:
            return None
        return np.concatenate([np.full(self.schema.width, -1), self.statistics.owner])

    @property
    def n_split(self) -> int:
        """Number of columns that trees split: the table's, their parts, and statistics."""
        return self.schema.width + (0 if self.statistics is None else len(self.statistics.owner))

    @property
    def widths(self) -> Widths:
        """Numbers of inputs and of columns."""
        return Widths(self.width, self.n_split)

    @cached_property
    def split_names(self) -> list[str]:
        """Names of the columns that trees split."""
        own = [column.name for column in self.columns]
        more = [] if self.statistics is None else self.statistics.column_names(own)
        return [*own, *self.schema.part_names, *more]

    @cached_property
    def split_sources(self) -> NDArray[np.intp]:
        """The table's column that each column that trees split is made of, ``(n_split,)``."""
        more = np.zeros(0, np.intp) if self.statistics is None else self.statistics.columns
        return np.concatenate([np.arange(len(self.columns)), self.schema.part_sources, more])

    @property
    def input_sources(self) -> NDArray[np.intp]:
        """The table's column that each input of a network is made of, ``(width,)``."""
        return self.split_sources[np.concatenate([self.encoder.numbers, self.encoder.flagged])]

    def check_range(self, X: Matrix) -> None:
        """Check that encoded rows ``(n, d)`` have no numbers that overflow in a network with ``clip=None``.

        Raises
        ------
        ValueError
            A number is too far from the centre of its column.
        """
        numbers = self.encoder.numbers
        if not np.isinf(self.encoder.scaling.clip) or len(X) == 0 or len(numbers) == 0:
            return
        numbers = numbers[numbers < self.schema.width]
        scaling = replace(
            self.encoder.scaling,
            mean=self.encoder.scaling.mean[: len(numbers)],
            scale=self.encoder.scaling.scale[: len(numbers)],
        )
        value, spreads = scaling.most_extreme(X if isinstance(X, SparseRows) else X[:, numbers])
        far = np.flatnonzero(spreads > MAX_SPREADS)
        if len(far):
            j = far[0]
            raise ValueError(
                f"column {self.split_names[numbers[j]]!r} holds {value[j]:.6g}, {spreads[j]:.2g} times its spread "
                f"from its centre, and clip=None does not clip: at most {MAX_SPREADS:.0e} times is supported; set clip "
                "to a number, or drop such values"
            )

    def get_feature_names_out(self) -> list[str]:
        """Names of the inputs: the column, with ``=category`` or ``is missing`` for indicators."""
        names = [self.split_names[j] for j in self.encoder.numbers]
        for j, code in zip(self.encoder.flagged.tolist(), self.encoder.codes.tolist(), strict=True):
            if np.isnan(code):
                names.append(f"{self.split_names[j]} is missing")
                continue
            column = self.columns[j]
            if code < 0:
                names.append(f"{column.name}=(other)")
            else:
                category = column.categories[int(code)] if column.kind == "category" else bool(code)
                names.append(f"{column.name}={category}")
        return names

    def monotonic_signs(self, monotone: Mapping[str, int] | ArrayLike) -> NDArray[np.int64]:
        """Monotonic constraints on the inputs.

        Scaling keeps the order of numbers; indicators are not constrained, so that a missing value may have any effect.

        Parameters
        ----------
        monotone : mapping of str to int, or array-like of shape (d,)
            Constraints on the columns: -1, 0 or 1.

        Returns
        -------
        array of shape (width,)
        """
        by_column = np.zeros(self.n_split, dtype=np.int64)
        by_column[: len(self.columns)] = self.schema.monotonic_signs(monotone)
        return np.concatenate([by_column[self.encoder.numbers], np.zeros(len(self.encoder.flagged), dtype=np.int64)])

    def read_interactions(self, given: Any) -> Interactions:
        """The ``interaction_cst`` parameter in one form, see :func:`gce.preprocessing.interactions.read_interactions`.

        Parameters
        ----------
        given : {"pairwise", "no_interactions"} or sequence of collections of str or int

        Returns
        -------
        str or tuple of tuple of int
            Sets of columns.
        """
        return read_interactions(given, [column.name for column in self.columns])

    def interaction_groups(self, interactions: Interactions) -> NDArray[np.uint64]:
        """The sets that each input belongs to, one bit each in ``W`` words: an indicator to those of its column.

        Parameters
        ----------
        interactions : str or tuple of tuple of int
            Sets of columns.

        Returns
        -------
        array of shape (width, W)
        """
        own = pack_interactions(interactions, len(self.columns))
        by_column = own[self.split_sources]
        return by_column[np.concatenate([self.encoder.numbers, self.encoder.flagged])]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""
        encoder, scaling = self.encoder, self.encoder.scaling
        clip = scaling.clip if np.isfinite(scaling.clip) else None
        columns, arrays = store_columns(self.columns)
        meta: dict[str, Any] = {"columns": columns, "clip": clip}
        arrays |= {name: getattr(encoder, name) for name in ("numbers", "flagged", "codes", "on", "off")}
        arrays |= {"mean": scaling.mean, "scale": scaling.scale}
        if self.statistics is not None:
            meta["statistics"], more = self.statistics.state()
            arrays |= {f"statistics.{name}": own for name, own in more.items()}
        return meta, arrays

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Table:
        """Restore a table from its state.

        Raises
        ------
        ValueError
            The parts of the state are inconsistent.
        """
        columns = restore_columns(meta["columns"], arrays)
        scaling = Standardizer(arrays["mean"], arrays["scale"], np.inf if meta["clip"] is None else float(meta["clip"]))
        encoder = Encoder(arrays["numbers"], scaling, arrays["flagged"], arrays["codes"], arrays["on"], arrays["off"])
        statistics = None
        if "statistics" in meta:
            statistics = TargetStatistics.from_state(meta["statistics"], starting_with("statistics.", arrays))
        table = cls(Schema(columns), encoder, statistics)
        table._check()
        return table

    def _check(self) -> None:
        encoder, scaling, index = self.encoder, self.encoder.scaling, self.encoder.flagged
        floats = (scaling.mean, scaling.scale, encoder.codes, encoder.on, encoder.off)
        consistent = (
            {column.kind for column in self.columns} <= set(get_args(Kind))
            and encoder.numbers.dtype == index.dtype == np.intp
            and all(part.dtype == np.float64 for part in floats)
            and np.array_equal(encoder.numbers, np.append(self.schema.numbers, range(self.schema.width, self.n_split)))
            and scaling.mean.shape == scaling.scale.shape == encoder.numbers.shape
            and (index.ndim == 1 and index.shape == encoder.codes.shape == encoder.on.shape == encoder.off.shape)
            and bool(((index >= 0) & (index < self.n_split)).all() and (np.diff(index) >= 0).all())
            and all(bool(np.isfinite(part).all()) for part in (scaling.mean, scaling.scale, encoder.on, encoder.off))
            and bool((scaling.scale > 0).all() and scaling.clip > 0)
        )
        consistent = consistent and all(map(is_valid, self.columns))
        if self.statistics is not None:
            sizes = {j: len(column.categories) for j, column in enumerate(self.columns) if column.categories}
            consistent = consistent and self.statistics.sizes.items() <= sizes.items()
        if not consistent or any(self._is_invalid_code(j, code) for j, code in zip(index, encoder.codes, strict=True)):
            raise ValueError("the parts of the table are inconsistent")

    def _is_invalid_code(self, j: int, code: float) -> bool:
        """Whether an indicator's code is not one of its column's."""
        if np.isnan(code):
            return False
        if j >= len(self.columns) or self.columns[j].is_number:
            return True
        column = self.columns[j]
        least, last = (0, 1) if column.kind == "boolean" else (-1, len(column.frequent) - 1)
        return code != int(code) or not least <= code <= last

    def __repr__(self) -> str:
        count = Counter(column.kind for column in self.columns)
        words: dict[Kind, str] = {
            "number": "numbers",
            "boolean": "booleans",
            "category": "categories",
            "date": "dates",
            "duration": "durations",
        }
        named = ((count[kind], kind if count[kind] == 1 else word) for kind, word in words.items())
        parts = ", ".join(f"{number} {word}" for number, word in named if number)
        missing = int(np.isnan(self.encoder.codes).sum())
        sources = 0 if self.statistics is None else len(self.statistics.sources)
        more = f"; statistics of the target for {sources}" if sources else ""
        about = f"{parts}; {missing} with missing values{more}"
        return f"<Table: {len(self.columns)} columns ({about}) as {self.width} inputs>"
