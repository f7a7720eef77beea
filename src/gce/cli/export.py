"""``gce export``: a model as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from gce.cli import options
from gce.cli.models import load_model
from gce.cli.rendering import show, size
from gce.cli.writing import make_room


def export(
    model: options.ModelFile,
    out: Annotated[Path, typer.Argument(metavar="ONNX", help="The graph: m.onnx.")],
    debug: options.Debug = False,
) -> None:
    """Write a model as one ONNX graph, its encoder included, for runtimes that know no Python."""
    if out.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"{str(out)!r} must end in .onnx, the one format there is", param_hint="ONNX")
    make_room(out)
    load_model(model).to_onnx(out)
    show(escape(f"{out} ({size(out.stat().st_size)})"))
