"""The appendix's table of data sets, our rows beside the paper's: ``python -m paper.data_sets [--folder FOLDER]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gce import datasets

TITLE = """# The data sets, our rows beside the paper's

Written by `python -m paper.data_sets`.

"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write and show the table: the exit status."""
    parser = argparse.ArgumentParser(prog="paper.data_sets", description="The appendix's table of data sets.")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "results")
    told = parser.parse_args(argv)
    text = TITLE + datasets.table().rstrip() + "\n"
    told.folder.mkdir(parents=True, exist_ok=True)
    (told.folder / "datasets.md").write_text(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
