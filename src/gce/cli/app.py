"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

import gce
from gce.cli.compare import compare
from gce.cli.export import export
from gce.cli.failures import told
from gce.cli.fit import fit
from gce.cli.inspect import inspect
from gce.cli.predict import predict
from gce.cli.report import report

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")
for command in (fit, predict, inspect, report, export, compare):
    app.command()(told(command))


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"gce {gce.__version__}")
        raise typer.Exit


@app.callback()
def about(
    version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Greedy convex ensembles: convex ensembles of trees and networks, fitted to a table.

    Exit codes: 0 fine, 1 the work failed (bad data, an unreadable file), 2 the command was wrong, 130 interrupted.
    """
