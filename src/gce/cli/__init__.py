"""The command line: ``gce fit``, ``predict``, ``inspect``, ``report``, ``export``, ``compare``, ``warmup``."""

from __future__ import annotations

import sys

#: Packages that the extra ``cli`` installs.
_EXTRA = ("typer", "rich", "polars")


def main() -> None:
    """Run ``gce``; if its packages are not installed, say how to install them and exit with code 2."""
    try:
        from gce.cli.app import app

        app(prog_name="gce")
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        sys.stderr.write(f'the command line needs {error.name}: pip install "greedy-convex-ensemble[cli]"\n')
        raise SystemExit(2) from None
