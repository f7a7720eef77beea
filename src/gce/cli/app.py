"""The ``gce`` command and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from gce._utils.version import __version__
from gce.cli.compare import compare
from gce.cli.export import export
from gce.cli.failures import report_errors
from gce.cli.fit import fit
from gce.cli.inspect import inspect
from gce.cli.predict import predict
from gce.cli.report import report
from gce.cli.warmup import warmup

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for command in (fit, predict, inspect, report, export, compare, warmup):
    app.command()(report_errors(command))


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
