"""``gce inspect``: what is in a model file."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from rich.box import ROUNDED
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from sklearn.base import is_classifier

from gce.cli import options
from gce.cli.figures import best_validation
from gce.cli.models import load_model
from gce.cli.rendering import counted, grid, harmless, json_of, show, size
from gce.storage import container

#: Of a category so many levels are shown; --json has all.
_LEVELS = 6


def inspect(model: options.ModelFile, json: options.Json = False, debug: options.Debug = False) -> None:
    """Show what is in a model file, whoever wrote it: nothing in it is executed, and an altered one is refused."""
    meta, tensors = container.read(model)
    found = {"command": "inspect", "file": _file(model, meta, tensors), **_contents(load_model(model))}
    if json:
        sys.stdout.write(json_of(found))
    else:
        show(*_summary(found))


def _file(path: str, meta: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    content = Path(path).read_bytes()
    return {
        "path": path,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "format": meta["version"],
        "tensors": len(tensors),
        "written": meta["written"],
    }


def _contents(model: Any) -> dict[str, Any]:
    columns = [
        {"name": c.name, "kind": c.kind, "levels": list(c.levels), "distinct": c.distinct, "lost": c.lost}
        for c in model.table_.columns
    ]
    weights = model.ensemble_.weights
    return {
        "estimator": type(model).__name__,
        "task": "classification" if is_classifier(model) else "regression",
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "settings": _settings(model),
        "loss": repr(model.loss_),
        "offset": model.offset_.tolist(),
        "bound": model.bound_.tolist(),
        "temperature": getattr(model, "temperature_", None),
        "columns": columns,
        "inputs": model.table_.width,
        "atoms": len(model.ensemble_),
        "largest_weight": float(weights.max()),
        "members": len(model.ensemble_.origin[:, 0].unique()),
        "gap": getattr(model, "gap_", None),
        "history": _course(model.history_) if hasattr(model, "history_") else None,
    }


def _settings(model: Any) -> dict[str, Any]:
    """Parameters that are not the defaults."""
    usual = type(model)().get_params(deep=False)
    given = model.get_params(deep=False)
    return {name: repr(value) for name, value in given.items() if repr(value) != repr(usual[name])}


def _course(history: list[dict[str, Any]]) -> dict[str, Any]:
    first, last = history[0], history[-1]
    course = {"rounds" if "t" in last else "epochs": len(history), "seconds": last["seconds"]}
    course |= {"members": len(last["members"]["risk"]), "risk": {"first": first["risk"], "last": last["risk"]}}
    if last["validation"] is not None:
        watched = {"first": first["validation"], "best": best_validation(history), "last": last["validation"]}
        course["validation"] = watched
    return course | {name: last[name] for name in ("gap", "gap_lower") if name in last}


def _summary(found: dict[str, Any]) -> list[RenderableType]:
    file, course = found["file"], found["history"]
    written = file["written"]
    versions = ", ".join(f"{name} {version}" for name, version in written["versions"].items())
    lines = [
        ("file", f"{file['path']}: {size(file['bytes'])}, format {file['format']}, its checksum holds"),
        ("sha256", file["sha256"]),
        ("written", f"{written['time']} by {versions}"),
        ("estimator", f"{found['estimator']}, {found['task']}"),
    ]
    if found["classes"] is not None:
        lines.append(("classes", _listed(found["classes"])))
    lines += [
        ("settings", ", ".join(f"{name}={value}" for name, value in found["settings"].items()) or "the defaults"),
        ("loss", found["loss"]),
        ("scores", f"within {_numbers(found['offset'])} ± {_numbers(found['bound'])}" + _temperature(found)),
        ("ensemble", f"{counted(found['atoms'], 'atom')} in {counted(found['members'], 'member')}"),
    ]
    if course is None:
        lines.append(("edited", f"weights were solved anew, to a gap of {found['gap']:.2g}"))
    else:
        unit = "rounds" if "rounds" in course else "epochs"
        lines.append(("fit", f"{counted(course[unit], unit[:-1])} in {course['seconds']:.1f} s"))
        lines += [(name, _stages(course[name])) for name in ("risk", "validation") if name in course]
    return [grid(lines), "", _columns(found["columns"])]


def _temperature(found: dict[str, Any]) -> str:
    return "" if found["temperature"] is None else f"; probabilities at temperature {found['temperature']:.3g}"


def _stages(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.4g} at {when}" for when, value in values.items())


def _columns(columns: list[dict[str, Any]]) -> Table:
    table = Table(box=ROUNDED)
    for head in ("column", "kind", "levels"):
        table.add_column(head, overflow="fold")
    for column in columns:
        levels = _listed(column["levels"])
        if column["lost"] is not None:
            levels = f"{column['lost']}: {levels}" if levels else column["lost"]
        # before the cells are measured: what is escaped later would be cut off
        table.add_row(escape(harmless(column["name"])), column["kind"], escape(harmless(levels)))
    return table


def _listed(levels: list[Any]) -> str:
    more = f" and {len(levels) - _LEVELS:,} more" if len(levels) > _LEVELS else ""
    return ", ".join(map(str, levels[:_LEVELS])) + more


def _numbers(values: list[float]) -> str:
    return _listed([f"{value:.4g}" for value in values])
