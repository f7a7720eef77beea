"""``model.table_``: the columns of the training data, and the encoding of new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gce.preprocessing.encoder import Encoder
from gce.preprocessing.frames import Frame, Kind
from gce.preprocessing.interactions import Interactions, pack_interactions, read_interactions
from gce.preprocessing.mixed import MixedRows, Rows, Widths
from gce.preprocessing.scaling import Standardizer
from gce.preprocessing.schema import Column, Schema
from gce.preprocessing.sparse import Matrix, SparseRows, to_device

Array = NDArray[np.float64]

#: Largest distance of a number from its column's centre, in spreads, without clipping: squares of inputs must be finite
#: in float32.
MAX_SPREADS = 1e15

#: Keys of a column in model files, where they differ from its attributes.
_FILE_KEYS = {"categories": "levels", "n_distinct": "distinct", "other_share": "others"}


@dataclass(frozen=True, repr=False)
class Table:
    """The encoding of input tables in two steps: values to codes, and codes to the inputs of networks.

    Parameters
    ----------
    schema : Schema
        Kinds and categories of the columns.
    encoder : Encoder
        Scaling and indicators.

    Attributes
    ----------
    columns : tuple of Column
        Name, kind and categories of each column.
    width : int
        Number of inputs of a network.
    """

    schema: Schema
    encoder: Encoder

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, kind and categories of each column."""
        return self.schema.columns

    @property
    def width(self) -> int:
        """Number of inputs of a network."""
        return self.encoder.width

    def encode(self, frame: Frame) -> Matrix:
        """A frame as numbers ``(n, d)``: codes of categories, -1 for other categories, NaN for missing values.

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
        return self.encoder.transform(X)

    def rows(self, X: Matrix, device: torch.device) -> Rows:
        """Encoded rows ``(n, d)`` as models see them, on a device.

        A table of numbers that had no missing values in the fit has inputs only, as sparse rows have.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Encoded rows.
        device : torch.device

        Returns
        -------
        Tensor, SparseRows or MixedRows of shape (n, width)
        """
        if len(self.encoder.flagged) == 0:
            return to_device(self.transform(X), device)
        columns = torch.from_numpy(self.encoder.scale_columns(X)).to(device)
        return MixedRows(columns, self.encoder, self._categorical)

    @cached_property
    def _categorical(self) -> NDArray[np.bool_]:
        return np.array([column.kind == "category" for column in self.columns])

    @property
    def widths(self) -> Widths:
        """Numbers of inputs and of columns."""
        return Widths(self.width, len(self.columns))

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
        value, spreads = self.encoder.scaling.most_extreme(X if isinstance(X, SparseRows) else X[:, numbers])
        far = np.flatnonzero(spreads > MAX_SPREADS)
        if len(far):
            j = far[0]
            raise ValueError(
                f"column {self.columns[numbers[j]].name!r} holds {value[j]:.6g}, {spreads[j]:.2g} times its spread "
                f"from its centre, and clip=None does not clip: at most {MAX_SPREADS:.0e} times is supported; set clip "
                "to a number, or drop such values"
            )

    def get_feature_names_out(self) -> list[str]:
        """Names of the inputs: the column, with ``=category`` or ``is missing`` for indicators."""
        names = [self.columns[j].name for j in self.encoder.numbers]
        for j, code in zip(self.encoder.flagged.tolist(), self.encoder.codes.tolist(), strict=True):
            column = self.columns[j]
            if np.isnan(code):
                names.append(f"{column.name} is missing")
            elif code < 0:
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
        by_column = self.schema.monotonic_signs(monotone)
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
        by_column = pack_interactions(interactions, len(self.columns))
        return by_column[np.concatenate([self.encoder.numbers, self.encoder.flagged])]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The state for a file, as JSON values and arrays."""
        encoder, scaling = self.encoder, self.encoder.scaling
        clip = scaling.clip if np.isfinite(scaling.clip) else None
        columns = [
            {_FILE_KEYS.get(name, name): part for name, part in asdict(column).items() if part is not None}
            for column in self.columns
        ]
        meta = {"columns": columns, "clip": clip}
        arrays = {name: getattr(encoder, name) for name in ("numbers", "flagged", "codes", "on", "off")}
        return meta, {**arrays, "mean": scaling.mean, "scale": scaling.scale}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Table:
        """Restore a table from its state.

        Raises
        ------
        ValueError
            The parts of the state are inconsistent.
        """
        columns = tuple(
            Column(c["name"], c["kind"], tuple(c["levels"]), c.get("distinct"), c.get("others"))
            for c in meta["columns"]
        )
        scaling = Standardizer(arrays["mean"], arrays["scale"], np.inf if meta["clip"] is None else float(meta["clip"]))
        encoder = Encoder(arrays["numbers"], scaling, arrays["flagged"], arrays["codes"], arrays["on"], arrays["off"])
        table = cls(Schema(columns), encoder)
        table._check()
        return table

    def _check(self) -> None:
        encoder, scaling, index = self.encoder, self.encoder.scaling, self.encoder.flagged
        consistent = (
            {column.kind for column in self.columns} <= {"number", "boolean", "category"}
            and encoder.numbers.dtype == index.dtype == np.intp
            and np.array_equal(encoder.numbers, self.schema.indices_of_kind("number"))
            and scaling.mean.shape == scaling.scale.shape == encoder.numbers.shape
            and (index.ndim == 1 and index.shape == encoder.codes.shape == encoder.on.shape == encoder.off.shape)
            and bool(((index >= 0) & (index < len(self.columns))).all() and (np.diff(index) >= 0).all())
            and all(bool(np.isfinite(part).all()) for part in (scaling.mean, scaling.scale, encoder.on, encoder.off))
            and bool((scaling.scale > 0).all() and scaling.clip > 0)
        )
        consistent = consistent and all(_has_valid_counts(column) for column in self.columns)
        if not consistent or any(self._is_invalid_code(j, code) for j, code in zip(index, encoder.codes, strict=True)):
            raise ValueError("the parts of the table are inconsistent")

    def _is_invalid_code(self, j: int, code: float) -> bool:
        """Whether an indicator's code is not one of its column's."""
        column = self.columns[j]
        last = {"number": -1, "boolean": 1, "category": len(column.categories) - 1}[column.kind]
        least = 0 if column.kind == "boolean" else -1
        return not np.isnan(code) and (column.kind == "number" or code != int(code) or not least <= code <= last)

    def __repr__(self) -> str:
        count = Counter(column.kind for column in self.columns)
        words: dict[Kind, str] = {"number": "numbers", "boolean": "booleans", "category": "categories"}
        named = ((count[kind], kind if count[kind] == 1 else word) for kind, word in words.items())
        parts = ", ".join(f"{number} {word}" for number, word in named if number)
        missing = int(np.isnan(self.encoder.codes).sum())
        return f"<Table: {len(self.columns)} columns ({parts}; {missing} with missing values) as {self.width} inputs>"


def _has_valid_counts(column: Column) -> bool:
    """Whether a column's counts of categories are valid; they are None in old files."""
    if column.n_distinct is None or column.other_share is None:
        return column.n_distinct is column.other_share is None
    whole = type(column.n_distinct) is int and len(column.categories) <= column.n_distinct < 2**53
    return column.kind == "category" and whole and type(column.other_share) is float and 0 <= column.other_share <= 1
