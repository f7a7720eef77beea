"""GCE and its peers at their defaults on tables as people have them: categories, dates, text, missing values.

    python benchmarks/tables.py [--models NAME ...] [--tables NAME ...] [--seeds N ...] [--folder FOLDER]
    python benchmarks/tables.py --models AutoGluon --autogluon-python PYTHON
    python benchmarks/tables.py --retime MODEL ... [--tables NAME ...]
    python benchmarks/tables.py --tables-only

The tables are those of GCE_DATA_HOME/tables, where tables.json gives target, task and split: by chance or by groups
drawn by chance on seeds 0 to 2, by time once. Every fit has a process of its own with two threads, and is a line of
JSON in a file a model under benchmarks/results/tables/; it is not repeated, unless it failed: delete a line, or GCE's
file when GCE has changed, to have it again. ``--retime`` fits seed 0 once more and replaces the seconds of rows that
are there, and nothing else of them but for AutoGluon's, which also get new figures: for a quiet hour. tables.md is
made of what is there, after every model. AutoGluon is fitted by the interpreter of an environment of its own, because
it pins versions of its dependencies.
"""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import accuracy_rows
import tables_data
import tables_models
from accuracy_rows import THREADS, Row
from data_sets import MissingDataError
from harness import RESULTS, call, logger, refuse_gaps, run_script
from tables_models import AUTOGLUON, MODELS


def fit(model: str, table: str, seed: int, python: str | None) -> Row:
    """A row's figures, from a fresh process."""
    found = call("tables_models:measure", threads=THREADS, model=model, table=table, seed=seed, python=python)
    return {"failed": found["left_out"]} if "left_out" in found else found


def fill(models: list[str], tables: list[str], seeds: list[int], folder: Path, python: str | None) -> None:
    """Fit whatever has no figures yet, all models on one seed before the next seed."""
    described = tables_data.described()
    here, lacking = possible(models, python)
    for seed in seeds:
        for model in here:
            there = accuracy_rows.read(folder, model)
            for table in tables:
                about = described[table]
                if seed not in about.seeds or "fit_seconds" in there.get((table, seed), {}):
                    continue
                figures = fit(model, table, seed, python)
                logger.info("%s %s %d: %s", model, table, seed, figures)
                if "failed" in figures:
                    lacking.append(f"{model} on {table}, seed {seed}: {figures['failed']}")
                    continue
                head = {"set": table, "seed": seed, "model": model, "task": about.task, "split": about.split}
                accuracy_rows.record(folder, model, {**head, "rows": about.rows, **figures})
            page(folder)
    refuse_gaps(lacking)


def retime(models: list[str], tables: list[str], folder: Path, python: str | None) -> None:
    """Fit seed 0 again, for its seconds."""
    here, lacking = possible(models, python)
    for model in here:
        for table in tables:
            row = accuracy_rows.read(folder, model).get((table, 0), {})
            if "fit_seconds" not in row:
                continue
            again = fit(model, table, 0, python)
            logger.info("%s %s: %s", model, table, again)
            if "failed" in again:
                lacking.append(f"{model} on {table}, seed 0: {again['failed']}")
            else:
                # what AutoGluon finds depends on the work that it gets done within its seconds
                kept = {**row, **again} if model == AUTOGLUON else row
                accuracy_rows.record(folder, model, accuracy_rows.timed_again(kept, again, again))
    page(folder)
    refuse_gaps(lacking)


def possible(models: list[str], python: str | None) -> tuple[list[str], list[str]]:
    """Models that can be fitted here, and why the others cannot."""
    found = [model for model in models if tables_models.importable(model) and (python or model != AUTOGLUON)]
    others = [model for model in models if model not in found]
    return found, [f"{model} is not installed, or --autogluon-python is not given" for model in others]


def page(folder: Path) -> None:
    """The page of all rows, beside the folder."""
    from tables_page import page as written

    rows = {model: accuracy_rows.read(folder, model) for model in MODELS}
    folder.with_suffix(".md").write_text(written(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tables", nargs="+", metavar="TABLE")
    parser.add_argument("--seeds", nargs="+", type=int, choices=tables_data.SEEDS, default=list(tables_data.SEEDS))
    parser.add_argument("--folder", type=Path, default=RESULTS / "tables")
    parser.add_argument("--autogluon-python", metavar="PYTHON")
    parser.add_argument("--retime", nargs="+", choices=MODELS, metavar="MODEL")
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)  # not the models' own, which tell of every round
    if given.tables_only:
        page(given.folder)
        return
    try:
        known = list(tables_data.described())
    except MissingDataError as missing:
        parser.error(str(missing))
    unknown = sorted(set(given.tables or ()) - set(known))
    if unknown:
        parser.error(f"no tables of these names: {', '.join(unknown)}; there are {', '.join(known)}")
    tables = [name for name in known if name in (given.tables or known)]
    if given.retime:
        retime(given.retime, tables, given.folder, given.autogluon_python)
    else:
        fill(given.models, tables, given.seeds, given.folder, given.autogluon_python)


if __name__ == "__main__":
    run_script(main)
