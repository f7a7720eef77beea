"""Rows that live in files: :class:`gce.Shards`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gce._utils.params import NONE, Rule, Rules, instance

if TYPE_CHECKING:
    from gce.preprocessing.open_shards import OpenShards


def _has_names(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(name, str) for name in value)


_NAME, _NAMES = instance("the name of a column", str), Rule(_has_names, "a list of names")
_RULES: Rules = {
    "target": _NAME | _NAMES | NONE,
    "sample_weight": _NAME | NONE,
    "groups": _NAME | NONE,
    "drop": _NAME | _NAMES | NONE,
    "folder": instance("a path", str, Path) | NONE,
}


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows in Parquet or Arrow files, or in batches, which need not fit into memory together.

    Parameters
    ----------
    source : str, Path, list of these, or iterable of pyarrow.RecordBatch or pyarrow.Table
        Files, folders and patterns such as ``"data/*.parquet"``: Parquet (``.parquet``, ``.pq``) by row groups, Arrow
        and Feather (``.arrow``, ``.feather``, ``.ipc``) by record batches. Files are in the order of their names. An
        iterable must give the same batches whenever it is iterated, which a generator does not.
    target : str or list of str, optional
        The column to predict, or several. None for predictions.
    sample_weight : str, optional
        The column of sample weights.
    groups : str, optional
        The column of groups: rows of one group are held out together.
    drop : sequence of str, optional
        Columns that are neither features nor any of these. The index of a pandas frame is dropped in any case.
    folder : str or Path, optional
        Where a fit keeps its working files. Default: a temporary folder.

    See Also
    --------
    GCERegressor.fit : Fits rows of shards.
    GCERegressor.predict_shards : Predicts them.

    Notes
    -----
    Integers and floats of different widths in different files have their common type, and text is the same whether it
    is dictionary-encoded or not. All other differences between files are errors, before anything is fitted.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from gce import Shards
    >>> batches = [pa.table({"a": [1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0]}) for _ in range(2)]
    >>> opened = Shards(batches, target="y").open()
    >>> opened.rows, opened.columns, opened.targets
    (6, ('a',), ('y',))
    >>> opened.read(1)["y"].to_pylist()
    [0.0, 1.0, 2.0]
    """

    source: Any
    target: str | Sequence[str] | None = field(default=None, kw_only=True)
    sample_weight: str | None = field(default=None, kw_only=True)
    groups: str | None = field(default=None, kw_only=True)
    drop: Sequence[str] | None = field(default=None, kw_only=True)
    folder: str | Path | None = field(default=None, kw_only=True)

    def open(self) -> OpenShards:
        """Read the metadata of all files, or count the rows of all batches, and check that they fit together.

        Returns
        -------
        OpenShards
            What there is, and the rows of each unit.

        Raises
        ------
        FileNotFoundError
            A path does not exist, or no file matches a pattern.
        ValueError
            A file cannot be read or has no rows, columns differ among files or are of an unsupported type, or a named
            column does not exist or is named twice.
        """
        # a fit of rows in memory needs none of it
        from gce.preprocessing.open_shards import open_shards

        return open_shards(self)

    @property
    def roles(self) -> dict[str, tuple[str, ...]]:
        """The columns that are no features, by the parameter that names them.

        Raises
        ------
        ValueError
            What should name a column is no text, or should be a folder and is none.
        """
        for role, rule in _RULES.items():
            rule.check(f"Shards: {role}", getattr(self, role))
        named = {"target": self.target, "sample_weight": self.sample_weight, "groups": self.groups, "drop": self.drop}
        return {role: (names,) if isinstance(names, str) else tuple(names or ()) for role, names in named.items()}
