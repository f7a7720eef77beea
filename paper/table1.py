"""The paper's Table 1, and the same comparison on repeated random splits.

    python -m paper.table1 [--sets NAME ...] [--methods NAME ...] [--splits 10] [--trials 20] [--share 0.05]
                           [--paper-trials N] [--full] [--jobs 2] [--device cpu] [--minutes M] [--folder FOLDER]
                           [--scratch FOLDER] [--report-only]

Plain: the six small sets, 5 % of the paper's trials on the paper's split and 20 trials a method on each of ten random
splits (fixed grids whole: 14 for NN and NGCE). ``--full``: all of the paper's trials, on every data set present.

Kill it and run it again: nothing that was finished is repeated. Fits and finished searches are lines in
FOLDER/table1/<set>.jsonl, searches under way are Optuna studies in the scratch folder, and the tables are
FOLDER/table1.md, .json and .png. Ledgers of several machines may be joined line by line.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from paper.budgets import SimplexProblem, Trials
from paper.machine import machine
from paper.methods import METHODS, Method
from paper.table1_report import write_report
from paper.units import DONE, FAILED, STOPPED, Catalogue, Site, Unit, log_progress, logger, plan, work

HERE = Path(__file__).parent
FULL, PLAIN = 1.0, 0.05


def arguments(argv: Sequence[str] | None, methods: Mapping[str, Method], catalogue: Catalogue) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(prog="paper.table1", description="The paper's Table 1.")
    parser.add_argument("--sets", nargs="+", metavar="NAME", help="default: the small ones")
    parser.add_argument("--methods", nargs="+", metavar="NAME", default=list(methods))
    parser.add_argument("--splits", type=int, default=10, help="random splits of a small set")
    parser.add_argument("--trials", type=int, default=20, help="of a method on a random split")
    parser.add_argument("--share", type=float, help="of the paper's trials, on its split; default 0.05")
    parser.add_argument("--paper-trials", type=int, help="on the paper's split, in place of a share")
    parser.add_argument("--full", action="store_true", help="all of the paper's trials, every data set present")
    parser.add_argument("--jobs", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--device", default="cpu", help="for the networks")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no fit is started")
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    parser.add_argument("--scratch", type=Path, default=HERE / "out" / "table1")
    parser.add_argument("--report-only", action="store_true")
    told = parser.parse_args(argv)
    for name in ("splits", "trials", "jobs", "minutes", "share", "paper-trials"):
        value = getattr(told, name.replace("-", "_"))
        if value is not None and not value > 0:
            parser.error(f"--{name} must be above 0, got {value}: with it nothing would be run")
    if told.paper_trials is not None and (told.full or told.share is not None):
        parser.error("--paper-trials stands in place of --share and --full: give one")
    if told.full and told.share is not None:
        parser.error(f"--full runs all of the paper's trials and --share {told.share} a part of them: give one")
    if told.share is not None and told.share > 1:
        parser.error(f"--share is a part of the paper's trials, at most 1, got {told.share}")
    for name, known in (("methods", methods), ("sets", catalogue.names)):
        unknown = [item for item in getattr(told, name) or () if item not in known]
        if unknown:
            parser.error(f"unknown {name} {unknown}; known are {', '.join(known)}")
    return told


def chosen_sets(told: argparse.Namespace, catalogue: Catalogue) -> list[str]:
    """The sets asked for; where none are, those that are present."""
    if told.sets:
        return list(told.sets)
    wanted = catalogue.names if told.full else catalogue.small
    absent = [name for name in wanted if not catalogue.present(name)]
    if absent:
        logger.info("left out, for their files are not here: %s", ", ".join(absent))
    return [name for name in wanted if name not in absent]


def run(units: Sequence[Unit], site: Site, jobs: int) -> Counter[str]:
    """Work on all units, in several processes: how many were done, stopped or failed."""
    ends: Counter[str] = Counter()
    began = time.monotonic()
    with parallel_config(backend="loky", inner_max_num_threads=1):
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        for end in parallel(delayed(work)(unit, site) for unit in units):
            ends[end] += 1
            minutes = (time.monotonic() - began) / 60
            logger.info(
                "%d of %d units, %.1f min%s", ends.total(), len(units), minutes, "" if end == DONE else f": {end}"
            )
    return ends


def main(
    argv: Sequence[str] | None = None,
    *,
    methods: Mapping[str, Method] = METHODS,
    catalogue: Catalogue | None = None,
) -> int:
    """Run what is asked for and not yet there, then write and print the tables: the exit status."""
    catalogue = catalogue or real_sets()
    told = arguments(argv, methods, catalogue)
    log_progress()
    folder = told.folder.resolve() / "table1"
    ends: Counter[str] = Counter()
    if not told.report_only:
        share = SimplexProblem(FULL if told.full else told.share or PLAIN)
        on_paper_split = Trials(told.paper_trials) if told.paper_trials else share
        units = plan(
            catalogue,
            chosen_sets(told, catalogue),
            [methods[name] for name in told.methods],
            on_paper_split,
            told.splits,
            Trials(told.trials),
        )
        site = Site(
            folder,
            told.scratch.resolve(),
            catalogue.load,
            told.device,
            time.time() + 60 * told.minutes,
            os.getpid(),
            {**machine(), "device": told.device, "jobs": told.jobs},
        )
        ends = run(units, site, told.jobs)
    sys.stdout.write(write_report(folder, methods))
    if ends[STOPPED]:
        logger.info("%d units stopped by --minutes: run again to go on", ends[STOPPED])
    return 1 if ends[FAILED] else 0


def real_sets() -> Catalogue:
    from gce import datasets

    return Catalogue(datasets.NAMES, datasets.SMALL, datasets.load, datasets.present)


if __name__ == "__main__":
    sys.exit(main())
