"""Predictions of rows in files: one Parquet file for each unit, complete or not there at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce._utils.optional import import_optional
from gce._utils.params import among
from gce.distributed.world import World, find_world
from gce.estimators._shard_blocks import compare_files
from gce.io.atomic import atomic_replace, remove_partial_files, write_bytes
from gce.io.models import digest
from gce.preprocessing.open_shards import OpenShards, assign
from gce.preprocessing.shard_checks import listed
from gce.preprocessing.shards import Shards

#: What the parts of a folder are predictions of.
_ABOUT = "_predictions.json"
_PARTS = "part-*.parquet"
#: Rows and numbers that are predicted at a time.
_BLOCK_ROWS, _BLOCK_NUMBERS = 65_536, 1 << 24


def predict_shards(model: Any, shards: Shards, folder: Path, method: str) -> list[Path]:
    """Predict every unit, and write those that no earlier call has written.

    Parameters
    ----------
    model : ConvexModel
    shards : Shards
    folder : Path
    method : str
        See :meth:`gce.GCERegressor.predict_shards`.

    Returns
    -------
    list of Path
        One for each unit.
    """
    _check_method(model, method)
    opened, world = shards.open(), find_world()
    columns = _columns(model, opened)
    about: dict[str, Any] = {"model": digest(model), "method": method, "shards": opened.fingerprint()}
    compare_files(world, about["shards"]["files"])
    world.check_equal(about)
    _claim(folder, about, world)
    parts = [folder / f"part-{i:06d}.parquet" for i in range(len(opened.units))]
    for i in _own_units(opened, world):
        if not parts[i].exists():
            _write_part(model, opened, i, columns, method, parts[i])
    world.wait()
    return parts


def _check_method(model: Any, method: str) -> None:
    among("predict", "predict_proba").check("method", method)
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} has no {method}: use method='predict'")


def _columns(model: Any, opened: OpenShards) -> list[str]:
    """The columns of the fit; all features where they had no names then."""
    # checks that it is fitted
    table = model.table_
    names = [str(name) for name in getattr(model, "feature_names_in_", opened.columns)]
    lacking = [name for name in names if name not in opened.schema.names]
    if lacking:
        raise ValueError(
            f"{opened.pieces[0].name} lacks {listed(lacking)}, which the model was fitted on: it has "
            f"{listed(opened.schema.names)}"
        )
    if len(names) != model.n_features_in_:
        raise ValueError(
            f"{opened.pieces[0].name} has {len(names)} features, and the model was fitted on {model.n_features_in_} "
            f"without names: {listed([column.name for column in table.columns])}; leave others out with drop"
        )
    return names


def _own_units(opened: OpenShards, world: World) -> range:
    rows = [unit.rows for unit in opened.units]
    # more processes than units have nothing to do: no error, unlike in a fit
    runs = assign(rows, min(world.size, len(rows)))
    return runs[world.rank] if world.rank < len(runs) else range(0)


def _claim(folder: Path, about: dict[str, Any], world: World) -> None:
    """Check that a folder has predictions like these or none, and note what it has; all processes learn of an error."""
    problem = ""
    if world.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        problem = _problem(folder, about)
        if not problem:
            remove_partial_files(folder, _PARTS)
            if not (folder / _ABOUT).exists():
                write_bytes(folder / _ABOUT, (json.dumps(about, indent=1) + "\n").encode())
    problem = world.gather(problem.encode())[0].decode()
    if problem:
        raise ValueError(problem)


def _problem(folder: Path, about: dict[str, Any]) -> str:
    """Why predictions cannot go into a folder, or nothing."""
    advice = "give another folder, or delete it first"
    if not (folder / _ABOUT).exists():
        other = any(folder.glob(_PARTS))
        return f"the folder {str(folder)!r} has files {_PARTS} without a {_ABOUT}: {advice}" if other else ""
    try:
        found = json.loads((folder / _ABOUT).read_text())
    except ValueError:
        return f"{str(folder / _ABOUT)!r} is not what predict_shards writes: {advice}"
    if about["model"] is None:
        return (
            f"the folder {str(folder)!r} has predictions already, and a model with parts that are not gce's own cannot "
            f"be recognised: {advice}"
        )
    different = [name for name in about if not isinstance(found, dict) or found.get(name) != about[name]]
    words = {"model": "another model", "method": "another method", "shards": "other rows"}
    if different:
        return f"the folder {str(folder)!r} has predictions of {words[different[0]]}: {advice}"
    if not about["shards"]["files"]:
        return (
            f"the folder {str(folder)!r} has predictions already, and batches in memory cannot be told from others: "
            f"{advice}"
        )
    return ""


def _write_part(model: Any, opened: OpenShards, i: int, columns: list[str], method: str, path: Path) -> None:
    pa, parquet = import_optional("pyarrow", "arrow"), import_optional("pyarrow.parquet", "arrow")
    with atomic_replace(path) as part:
        writer = None
        for X in _blocks(model, opened.read(i, columns)):
            try:
                values = getattr(model, method)(X)
            except ValueError as error:
                # the model knows columns only
                raise ValueError(f"{opened.units[i].name}: {error}") from error
            block = pa.table(_named(model, method, values))
            writer = parquet.ParquetWriter(part, block.schema) if writer is None else writer
            writer.write_table(block)
        assert writer is not None
        writer.close()


def _blocks(model: Any, table: Any) -> Iterator[Any]:
    """Rows as the model was fitted on: a table, or an array of columns without names."""
    step = max(1, min(_BLOCK_ROWS, _BLOCK_NUMBERS // table.num_columns))
    for first in range(0, table.num_rows, step):
        block = table.slice(first, step)
        yield block if hasattr(model, "feature_names_in_") else _as_array(block)


def _as_array(table: Any) -> NDArray[Any]:
    return np.column_stack([column.to_numpy() for column in table.columns])


def _named(model: Any, method: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    if method == "predict_proba":
        return {f"proba_{label}": values[:, j] for j, label in enumerate(model.classes_.tolist())}
    if values.ndim == 1:
        return {"prediction": values}
    return {f"prediction_{j}": values[:, j] for j in range(values.shape[1])}
