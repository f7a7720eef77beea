"""The ``gce`` command and its subcommands."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer import rich_utils
from typer.core import TyperGroup
from typer.main import get_command

from gce._utils.version import __version__
from gce.cli.rendering import WideConsole

#: What the help of ``gce`` says of each command: the first paragraph of its function, which it does not load.
COMMANDS = {
    "fit": "Fit a model to a table, print its metrics and write its files.",
    "predict": "Predict the rows of a table, as CSV on standard output or to a file.",
    "inspect": "Show the contents of a model file. Nothing in it is executed, and an altered file is rejected.",
    "report": "Write a report about a model and its performance on a table: one self-contained HTML file.",
    "export": "Export a model, preprocessing included, as one ONNX graph that runs without Python.",
    "compare": "Fit GCE and models of other libraries, all at their defaults, and score them on the same rows.",
    "warmup": "Prepare a machine or a container image, so that its first fit is as fast as any other.",
}
_OPTIONS: dict[str, Any] = {"pretty_exceptions_enable": False, "rich_markup_mode": "markdown"}

# typer has no option for the console of helps and usage errors, and its own fails in terminals of ASCII
setattr(rich_utils, "Console", WideConsole)  # noqa: B010


class _Commands(TyperGroup):
    """Commands that are loaded when they are run: torch and scikit-learn take seconds of processor time."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is run, instead of the one that stands for it in the help."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else _load(name), rest


def _load(name: str) -> Any:
    from gce.cli.failures import report_errors

    alone = typer.Typer(add_completion=False, **_OPTIONS)
    alone.command(name)(report_errors(getattr(import_module(f"gce.cli.{name}"), name)))
    return get_command(alone)


def _stand_in() -> None:
    """Nothing: only its name and help are looked at."""


app = typer.Typer(cls=_Commands, no_args_is_help=True, **_OPTIONS)
for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(_stand_in)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"gce {__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Greedy convex ensembles: boosted trees, forests and neural networks in one convex combination, fitted to a table.

    Exit codes: 0 success, 1 failure (invalid data, unreadable file), 2 usage error, 130 interrupted.
    """
