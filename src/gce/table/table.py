"""``model.table_``: how a fit read its columns, and how it reads new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gce.rows import Matrix, SparseRows
from gce.table.encoder import Encoder
from gce.table.scaling import Standardizer
from gce.table.schema import Column, Schema
from gce.table.sheet import Kind, Sheet

Array = NDArray[np.float64]

#: How many times its spread a number may lie from its column's centre where far ones are not drawn in: squares of
#: inputs must be numbers in float32.
FARTHEST = 1e15


@dataclass(frozen=True, repr=False)
class Table:
    """A fit's columns, in two steps: values to codes, codes to inputs of networks.

    Parameters
    ----------
    schema : Schema
    encoder : Encoder
    """

    schema: Schema
    encoder: Encoder

    @property
    def columns(self) -> tuple[Column, ...]:
        """Each column's name, kind and levels."""
        return self.schema.columns

    @property
    def width(self) -> int:
        """Inputs of a network."""
        return self.encoder.width

    def coded(self, sheet: Sheet) -> Matrix:
        """A user's rows as numbers, ``(n, d)``: categories by codes, -1 for one without a code, NaN for a gap."""
        return self.schema.code(sheet)

    def transform(self, X: Matrix) -> Matrix:
        """Coded rows ``(n, d)`` as inputs ``(n, width)``."""
        return self.encoder.transform(X)

    def check_reach(self, X: Matrix) -> None:
        """Refuse coded rows ``(n, d)`` with numbers that ``clip=None`` leaves as they are and no network can compute
        with.
        """
        numbers = self.encoder.numbers
        if not np.isinf(self.encoder.scaling.clip) or len(X) == 0 or len(numbers) == 0:
            return
        value, spreads = self.encoder.scaling.farthest(X if isinstance(X, SparseRows) else X[:, numbers])
        far = np.flatnonzero(spreads > FARTHEST)
        if len(far):
            j = far[0]
            raise ValueError(
                f"column {self.columns[numbers[j]].name!r} holds {value[j]:.6g}, {spreads[j]:.2g} times its spread "
                f"from its centre, and clip=None leaves that as it is: at most {FARTHEST:.0e} times can be computed "
                "with; give clip a number, or leave such values out"
            )

    def get_feature_names_out(self) -> list[str]:
        """A name for each input: the column's, with ``=level`` or ``is missing`` for flags."""
        names = [self.columns[j].name for j in self.encoder.numbers]
        for j, code in zip(self.encoder.flagged.tolist(), self.encoder.codes.tolist(), strict=True):
            column = self.columns[j]
            if np.isnan(code):
                names.append(f"{column.name} is missing")
            elif code < 0:
                names.append(f"{column.name}=(other)")
            else:
                level = column.levels[int(code)] if column.kind == "category" else bool(code)
                names.append(f"{column.name}={level}")
        return names

    def signs(self, monotone: Mapping[str, int] | ArrayLike) -> NDArray[np.int64]:
        """A user's signs of columns, ``(d,)`` or by name, as signs of inputs ``(width,)``.

        Scaling keeps the order of numbers; flags are free, so that a gap may count for anything.
        """
        by_column = self.schema.signs(monotone)
        return np.concatenate([by_column[self.encoder.numbers], np.zeros(len(self.encoder.flagged), dtype=np.int64)])

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Everything in it, as JSON values and arrays."""
        own, scaling = self.encoder, self.encoder.scaling
        clip = scaling.clip if np.isfinite(scaling.clip) else None
        columns = [{name: part for name, part in asdict(own).items() if part is not None} for own in self.columns]
        meta = {"columns": columns, "clip": clip}
        arrays = {name: getattr(own, name) for name in ("numbers", "flagged", "codes", "on", "off")}
        return meta, {**arrays, "mean": scaling.mean, "scale": scaling.scale}

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Table:
        """A table from its state; what does not fit together is refused."""
        known = ("distinct", "others")
        columns = tuple(
            Column(c["name"], c["kind"], tuple(c["levels"]), *(c.get(name) for name in known)) for c in meta["columns"]
        )
        scaling = Standardizer(arrays["mean"], arrays["scale"], np.inf if meta["clip"] is None else float(meta["clip"]))
        encoder = Encoder(arrays["numbers"], scaling, arrays["flagged"], arrays["codes"], arrays["on"], arrays["off"])
        table = cls(Schema(columns), encoder)
        table._check()
        return table

    def _check(self) -> None:
        own, scaling, places = self.encoder, self.encoder.scaling, self.encoder.flagged
        sound = (
            {column.kind for column in self.columns} <= {"number", "boolean", "category"}
            and own.numbers.dtype == places.dtype == np.intp
            and np.array_equal(own.numbers, self.schema.of_kind("number"))
            and scaling.mean.shape == scaling.scale.shape == own.numbers.shape
            and (places.ndim == 1 and places.shape == own.codes.shape == own.on.shape == own.off.shape)
            and bool(((places >= 0) & (places < len(self.columns))).all() and (np.diff(places) >= 0).all())
            and all(bool(np.isfinite(part).all()) for part in (scaling.mean, scaling.scale, own.on, own.off))
            and bool((scaling.scale > 0).all() and scaling.clip > 0)
        )
        sound = sound and all(_counted(column) for column in self.columns)
        if not sound or any(self._beyond(j, code) for j, code in zip(places, own.codes, strict=True)):
            raise ValueError("the table's parts do not fit together")

    def _beyond(self, j: int, code: float) -> bool:
        """Whether a flag's code is none of its column's."""
        column = self.columns[j]
        last = {"number": -1, "boolean": 1, "category": len(column.levels) - 1}[column.kind]
        least = 0 if column.kind == "boolean" else -1
        return not np.isnan(code) and (column.kind == "number" or code != int(code) or not least <= code <= last)

    def __repr__(self) -> str:
        count = Counter(column.kind for column in self.columns)
        words: dict[Kind, str] = {"number": "numbers", "boolean": "booleans", "category": "categories"}
        named = ((count[kind], kind if count[kind] == 1 else word) for kind, word in words.items())
        parts = ", ".join(f"{number} {word}" for number, word in named if number)
        gaps = int(np.isnan(self.encoder.codes).sum())
        return f"<Table: {len(self.columns)} columns ({parts}; {gaps} with gaps) as {self.width} inputs>"


def _counted(column: Column) -> bool:
    """Whether what is said of a column's levels can be; older files say nothing."""
    if column.distinct is None or column.others is None:
        return column.distinct is column.others is None
    whole = type(column.distinct) is int and len(column.levels) <= column.distinct < 2**53
    return column.kind == "category" and whole and type(column.others) is float and 0 <= column.others <= 1
