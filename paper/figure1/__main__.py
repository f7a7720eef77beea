"""``python -m paper.figure1``: run what is missing, draw what is there."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from paper.figure1.curves import ALGORITHM_NAMES, curves
from paper.figure1.panels import ROWS, Panel, absent, panels
from paper.figure1.report import complete, key_of, write
from paper.ledger import Ledger

logger = logging.getLogger("paper.figure1")
RESULTS = Path(__file__).parents[1] / "results"


def run(plan: Sequence[Panel], ledger: Ledger, modules: int, seeds: int) -> None:
    """Fill the ledger: one line an algorithm and panel."""
    for panel in plan:
        wanted = [name for name in ALGORITHM_NAMES if key_of(panel, name, modules, seeds) not in ledger]
        if not wanted or not panel.there():
            continue
        sample = panel.load()
        for name in wanted:
            work = partial(curves, panel, sample, name, modules, seeds)
            result = ledger.once(key_of(panel, name, modules, seeds), work)
            logger.info("%s, %s: %.0f s", panel.title, name, result["seconds"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m paper.figure1", description=__doc__)
    parser.add_argument("--modules", type=_count, default=100)
    parser.add_argument("--seeds", type=_count, default=5)
    parser.add_argument("--rows", type=_count, default=ROWS, help="training rows taken of a large set")
    parser.add_argument("--only", nargs="+", metavar="DATA", help="data sets to run; all that are done are drawn")
    parser.add_argument("--report-only", action="store_true", help="draw what is there, run nothing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    plan, ledger = panels(given.rows), Ledger(given.out / "figure1.jsonl")
    unknown = set(given.only or ()) - {panel.data for panel in plan}
    if unknown:
        parser.error(f"no panel on {', '.join(sorted(unknown))}; there are {sorted({p.data for p in plan})}")
    if not given.report_only:
        run([p for p in plan if given.only is None or p.data in given.only], ledger, given.modules, given.seeds)
    drawn = complete(plan, ledger, given.modules, given.seeds)
    if not drawn:
        parser.error(f"{ledger.path} has no finished panel of {given.modules} modules and {given.seeds} seeds")
    write(drawn, absent(plan), given.out)
    logger.info("wrote figure1.md and pictures of %d panels to %s", len(drawn), given.out)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    logger.setLevel(logging.INFO)
    main()
