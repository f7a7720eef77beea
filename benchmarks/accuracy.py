"""GCE and its peers at their defaults on the development sets: errors, ranks, win rates, seconds.

    python benchmarks/accuracy.py [--models NAME ...] [--sets NAME ...] [--seeds N ...] [--folder FOLDER]
    python benchmarks/accuracy.py --retime MODEL ... [--sets NAME ...]
    python benchmarks/accuracy.py --tables-only

The split is ``RandomState(seed).permutation(n)``, the first 80 % to fit on. Every fit is a line of JSON in a file a
model under benchmarks/results/accuracy/ and is not repeated: delete a line, or GCE's file when GCE has changed, to have
it again. ``--retime`` fits seed 0 once more and replaces the seconds of rows that are there, and nothing else of them:
for a quiet hour. accuracy.md and accuracy_ranks.png are made of what is there, after every set. A fit that fails, a
model that is not installed and a set that is not there have no line; the exit status is then not 0. Sets that do not
come with scikit-learn are looked for in GCE_DATA_HOME, a folder of ``NAME.npz`` with ``X`` and ``y``.
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import accuracy_rows
from accuracy_rows import THREADS
from harness import RESULTS, THREAD_VARIABLES, logger, refuse_gaps, run_script


def fill(models: list[str], sets: list[str], seeds: list[int], folder: Path) -> None:
    """Fit whatever has no row yet, model by model and set by set."""
    import accuracy_models as peers
    from accuracy_sets import cut
    from data_sets import categories

    here = present(sets)
    lacking = [f"{name} cannot be had" for name in sets if name not in here]
    for model in models:
        if not peers.importable(model):
            lacking.append(f"{model}: {peers.MODELS[model].module} is not installed")
            continue
        there = accuracy_rows.read(folder, model)
        for name in here:
            # rows of runs that gave categories as numbers lack the word, and are fitted again
            wanted = "categories" if model in peers.NATIVE and categories(name) else "set"
            todo = [seed for seed in seeds if wanted not in there.get((name, seed), {})]
            if model in peers.SLOW:
                todo = [seed for seed in todo if seed == 0 and size(name) < peers.SLOW_ROWS]
            for place, seed in enumerate(todo):
                rows = cut(name, seed)
                if place == 0:
                    peers.warm_up(model, rows.X_train.shape[1], rows.regression)
                figures = peers.measured(model, rows, seed)
                logger.info("%s %s %d: %s", model, name, seed, figures)
                if "failed" in figures and not figures["failed"].startswith(peers.NOT_RUN):
                    lacking.append(f"{model} on {name}, seed {seed}: {figures['failed']}")
                    continue
                head = {"set": name, "seed": seed, "model": model, "rows": size(name)}
                head |= {"categories": "native"} if peers.native(model, rows) else {}
                accuracy_rows.record(folder, model, {**head, **figures, **peers.origin(model)})
            if todo:
                tables(folder)
    refuse_gaps(lacking)


def retime(models: list[str], sets: list[str], folder: Path) -> None:
    """Fit seed 0 again, for its seconds."""
    import accuracy_models as peers
    from accuracy_sets import cut

    here = present(sets)
    lacking = [f"{name} cannot be had" for name in sets if name not in here]
    for model in models:
        for name in here:
            row = accuracy_rows.read(folder, model).get((name, 0), {})
            if "fit_seconds" not in row:
                continue
            rows = cut(name, 0)
            peers.warm_up(model, rows.X_train.shape[1], rows.regression)
            again = peers.measured(model, rows, 0)
            logger.info("%s %s: %s", model, name, again)
            if "failed" in again:
                lacking.append(f"{model} on {name}, seed 0: {again['failed']}")
            else:
                held = accuracy_rows.read(folder, model)
                held[name, 0] = accuracy_rows.timed_again(row, again, peers.origin(model))
                accuracy_rows.replace(folder, model, held)
    tables(folder)
    refuse_gaps(lacking)


def present(sets: list[str]) -> list[str]:
    """Those that can be had here."""
    from data_sets import MissingDataError

    found = []
    for name in sets:
        try:
            size(name)
        except MissingDataError as missing:
            logger.warning("%s", missing)
        else:
            found.append(name)
    return found


def size(name: str) -> int:
    from data_sets import load

    return len(load(name)[0])


def tables(folder: Path) -> None:
    """The page and the picture, beside the folder."""
    from accuracy_models import MODELS
    from accuracy_picture import draw
    from accuracy_ranks import set_ranks
    from accuracy_tables import page, ranked

    rows = {model: accuracy_rows.read(folder, model) for model in MODELS}
    folder.with_suffix(".md").write_text(page(rows))
    panels = [
        (f"Mean rank by {title}", held.models, set_ranks(held.values, held.sets))
        for title, held in ranked(rows).items()
        if len(held.models) > 1
    ]
    if panels:
        draw(panels, folder.with_name(f"{folder.name}_ranks.png"))


def main() -> None:
    # before anything loads numpy: these are read once
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(THREADS)))
    from accuracy_models import MODELS
    from accuracy_sets import SEEDS, SETS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="+", type=int, choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--folder", type=Path, default=RESULTS / "accuracy")
    parser.add_argument("--retime", nargs="+", choices=list(MODELS), metavar="MODEL")
    parser.add_argument("--tables-only", action="store_true")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)  # not the models' own, which tell of every round
    if given.retime:
        retime(given.retime, given.sets, given.folder)
    elif given.tables_only:
        tables(given.folder)
    else:
        fill(given.models, given.sets, given.seeds, given.folder)
        tables(given.folder)


if __name__ == "__main__":
    run_script(main)
