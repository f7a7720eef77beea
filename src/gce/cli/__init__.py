"""The command line: ``gce fit``, ``predict``, ``inspect``, ``report``, ``export``, ``compare``."""

from __future__ import annotations

import sys

#: Packages of the extra that brings the command line.
_EXTRA = ("typer", "rich", "polars")


def main() -> None:
    """Run ``gce``; without its packages one sentence says how to get them, and the exit code is 2."""
    try:
        from gce.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.stderr.write(f'gce needs {error.name} here: pip install "greedy-convex-ensemble[cli]"\n')
        raise SystemExit(2) from None
    app(prog_name="gce")
