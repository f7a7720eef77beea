"""``gce inspect``: the contents of a model file."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from rich.box import ROUNDED
from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from sklearn.base import is_classifier, is_regressor

from gce._utils.params import changed_parameters, counted
from gce._utils.text import escape_control
from gce.cli import figures, options
from gce.cli.models import load_model
from gce.cli.rendering import grid, print_json, show, size
from gce.io import container
from gce.training.result import FitResult

#: Categories shown per column; --json has all.
_MAX_CATEGORIES = 6


def inspect(model: options.ModelFile, json: options.Json = False, debug: options.Debug = False) -> None:
    """Show the contents of a model file. Nothing in it is executed, and an altered file is rejected."""
    meta, tensors = container.read(model)
    found = {"command": "inspect", "file": _file(model, meta, tensors), **_contents(load_model(model))}
    if json:
        print_json(found)
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
        {
            "name": c.name,
            "kind": c.kind,
            "categories": list(c.categories),
            "n_distinct": c.n_distinct,
            "time_zone": c.time_zone,
            "parts": [] if c.parts is None else list(c.parts.names),
            "warning": c.warning,
        }
        for c in model.result_.table.columns
    ]
    result, ordered = model.result_, getattr(model, "ordered_classes_", None)
    weights = result.ensemble.weights
    return {
        "estimator": type(model).__name__,
        "task": "classification" if is_classifier(model) else "regression" if is_regressor(model) else "survival",
        "classes": model.classes_.tolist() if is_classifier(model) else None,
        "ordered_classes": None if ordered is None else ordered.tolist(),
        "settings": {name: repr(value) for name, value, _ in changed_parameters(model)},
        "loss": repr(model.loss_),
        "offset": model.offset_.tolist(),
        "bound": model.bound_.tolist(),
        "temperature": result.calibration.temperature if is_classifier(model) else None,
        "columns": columns,
        "inputs": model.table_.width,
        "atoms": len(model.ensemble_),
        "largest_weight": float(weights.max()),
        "members": len(model.ensemble_.origin[:, 0].unique()),
        "gap": result.gap,
        "left_out": dict(result.left_out),
        "held_out": None if result.held_out is None else dict(result.held_out),
        "history": None if result.edited else _history(result),
    }


def _history(result: FitResult) -> dict[str, Any]:
    first, last = result.history[0], result.history[-1]
    found: dict[str, Any] = {
        f"{result.unit}s": result.n_rounds,
        "seconds": last["seconds"],
        "members": result.members,
    }
    found["risk"] = {"first": first["risk"], "last": last["risk"]}
    if result.best_validation is not None:
        found["validation"] = {
            "first": first["validation"],
            "best": result.best_validation,
            "last": last["validation"],
        }
    return found | {name: last[name] for name in ("suboptimality", "gap_lower", "weights_gap") if name in last}


def _summary(found: dict[str, Any]) -> list[RenderableType]:
    file, history = found["file"], found["history"]
    written = file["written"]
    versions = ", ".join(f"{name} {version}" for name, version in written["versions"].items())
    lines = [
        ("file", f"{file['path']}: {size(file['bytes'])}, format {file['format']}, checksum OK"),
        ("sha256", file["sha256"]),
        ("written", f"{written['time']} by {versions}"),
        ("estimator", f"{found['estimator']}, {found['task']}"),
    ]
    if found["classes"] is not None:
        lines.append(("classes", _listed(found["classes"])))
    if found["ordered_classes"] is not None:
        lines.append(("in order", _listed(found["ordered_classes"])))
    lines += [
        (
            "settings",
            ", ".join(f"{name}={value}" for name, value in found["settings"].items()) or "defaults",
        ),
        ("loss", found["loss"]),
        ("scores", f"within {_numbers(found['offset'])} ± {_numbers(found['bound'])}" + _temperature(found)),
        ("ensemble", f"{counted(found['atoms'], 'atom')} in {counted(found['members'], 'member')}"),
    ]
    if history is None:
        lines.append(("edited", f"weights re-optimised to a duality gap of {found['gap']:.2g}"))
    else:
        unit = "rounds" if "rounds" in history else "epochs"
        lines.append(("fit", f"{counted(history[unit], unit[:-1])} in {history['seconds']:.1f} s"))
        lines += [(name, _stages(history[name])) for name in ("risk", "validation") if name in history]
    lines += [("left out", f"{name}: {reason}") for name, reason in found["left_out"].items()]
    if found["held_out"]:
        shown = ", ".join(f"{title} {value}" for title, value in figures.written(found["held_out"]))
        lines.append(("held-out rows", shown))
    return [grid(lines), "", _columns(found["columns"])]


def _temperature(found: dict[str, Any]) -> str:
    return "" if found["temperature"] is None else f"; probabilities at temperature {found['temperature']:.3g}"


def _stages(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.4g} at {when}" for when, value in values.items())


def _columns(columns: list[dict[str, Any]]) -> Table:
    table = Table(box=ROUNDED)
    for head in ("column", "kind", "categories or parts"):
        table.add_column(head, overflow="fold")
    for column in columns:
        categories = _listed(column["categories"]) or ", ".join(column["parts"])
        if column["warning"] is not None:
            categories = f"{column['warning']}: {categories}" if categories else column["warning"]
        # before the cells are measured: what is escaped later would be cut off
        kind = column["kind"] if column["time_zone"] is None else f"{column['kind']}, {column['time_zone']}"
        table.add_row(*(escape(escape_control(cell)) for cell in (column["name"], kind, categories)))
    return table


def _listed(categories: list[Any]) -> str:
    more = f" and {len(categories) - _MAX_CATEGORIES:,} more" if len(categories) > _MAX_CATEGORIES else ""
    return ", ".join(map(str, categories[:_MAX_CATEGORIES])) + more


def _numbers(values: list[float]) -> str:
    return _listed([f"{value:.4g}" for value in values])
