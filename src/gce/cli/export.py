"""``gce export``: a model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from gce.cli import options
from gce.cli.models import load_model
from gce.cli.rendering import show, size
from gce.cli.writing import prepare_output


def export(
    model: options.ModelFile,
    out: Annotated[Path, typer.Argument(metavar="ONNX", help="The file to write, such as m.onnx.")],
    debug: options.Debug = False,
) -> None:
    """Export a model, preprocessing included, as one ONNX graph that runs without Python."""
    if out.suffix.lower() != ".onnx":
        raise typer.BadParameter(f"{str(out)!r} must end in .onnx, the only export format", param_hint="ONNX")
    prepare_output(out)
    load_model(model).to_onnx(out)
    show(escape(f"{out} ({size(out.stat().st_size)})"))
