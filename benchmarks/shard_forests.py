"""Should all trees of a forest learn from one sample of the rows, or each from a sample of its own?

    python benchmarks/shard_forests.py made-up | covertype | fits | processes

Forests of 20 trees, as in the default, on one sample that all trees share, on samples of their own, and on all rows;
and the default ensemble with each of them. Boosted trees learn from all rows and networks from the shared sample, as in
a fit of Shards; families are weighed on rows held out. ``fits`` are fits of Shards, with samples of each tree and with
one for all. ``processes`` is what a process has to do of a forest. Figures are added to
benchmarks/results/shard_forests.json, and the page shard_forests.md is made of what is there.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from data_sets import load
from harness import CORES, RESULTS, logger, processor, run_script
from shard_group import environment
from shard_rows import products, write_rows
from shard_worker import frame_of
from sklearn.metrics import log_loss
from torch import Tensor

from gce import GCEClassifier, GCERegressor, Shards
from gce.bases import FitContext, Forest, Neural
from gce.bases.trees.forest import ForestAtoms
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.estimators import _shard_choice
from gce.losses import CrossEntropy, Loss
from gce.losses.regression import Squared
from gce.training import fit
from gce.training.calibration import HeldOutScores
from gce.training.families import default_bases
from gce.training.family_weights import solve_weights

TREES = 20
SEEDS = (0, 1, 2)
#: A sample has one row in so many.
PARTS = (8, 32)
#: The bound of boosted trees of classes: with the default one they have used it up after ten rounds on covertype.
WIDE = 1e5
#: Rows to fit on, to hold out, and to test on.
MADE_UP = (1_000_000, 100_000, 200_000)
#: Rows of fits of made-up numbers, the share of rows that memory has in fits, and rounds of networks.
FITTED, IN_MEMORY, ROUNDS = 400_000, 8, 20


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit on, to hold out and to test on; targets are numbers ``(n, 1)`` or one-hot classes ``(n, k)``."""

    X: np.ndarray
    Y: np.ndarray
    train: np.ndarray
    held_out: np.ndarray
    test: np.ndarray

    @property
    def loss(self) -> Loss:
        return Squared() if self.Y.shape[1] == 1 else CrossEntropy()

    @cached_property
    def offset(self) -> Tensor:
        means = torch.from_numpy(self.Y[self.train].mean(0))
        return means if self.Y.shape[1] == 1 else means.log() - means.log().mean()

    def test_loss(self, scores: Tensor) -> float:
        """The mean loss of scores of all rows ``(N, k)`` on the test rows: squared error or log-loss."""
        y = torch.from_numpy(self.Y[self.test])
        return float(self.loss.value(scores[self.test], y).mean())


def made_up() -> Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, sum(MADE_UP)))
    y = products(X, rng)
    train, held_out, test = np.split(np.arange(len(y)), np.cumsum(MADE_UP)[:-1])
    return Rows(np.ascontiguousarray(X.T), y[:, None], train, held_out, test)


def covertype() -> Rows:
    X, y = load("covertype")
    order = np.random.RandomState(0).permutation(len(X))
    train, held_out, test = np.split(order, [int(0.72 * len(X)), int(0.8 * len(X))])
    Y = np.eye(7)[np.unique(y, return_inverse=True)[1]]
    return Rows(X.astype(np.float64), Y, train, held_out, test)


SETS = {"made-up": made_up, "covertype": covertype}


class Forests:
    """Forests of trees that learn from given rows; all have the bins of all rows."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self._X = rows, torch.from_numpy(rows.X)
        self._binned = Forest().binned(self._X, FitContext())

    def scores(self, samples: list[np.ndarray], seed: int) -> Tensor:
        """Scores of all rows ``(N, k)`` of a forest with a tree on each of the samples, measured from 0."""
        Y, k = self._rows.Y, self._rows.Y.shape[1]
        known = {id(some): WeightedTargets.of(np.ones(len(some)), Y[some]) for some in samples}
        members = tuple((some.astype(np.uint32), known[id(some)]) for some in samples)
        d = self._X.shape[1]
        trees = RandomTrees(self._binned, members, d if k == 1 else round(np.sqrt(d)), 1.0)
        seeds = torch.randint(2**62, (len(samples),), generator=torch.Generator().manual_seed(seed)).tolist()
        grown = trees.grown([[own] for own in seeds], torch.float32)
        link = "identity" if k == 1 else "log"
        atoms = ForestAtoms(grown, self._rows.offset, torch.full((k,), np.inf).double(), len(samples), link)
        return atoms(self._X)[0] + self._rows.offset


def family_scores(rows: Rows, folder: Path, part: int) -> dict[str, Tensor]:
    """Scores of all rows ``(N, k)`` of the families beside the forest; kept in files."""
    found = {}
    regression = rows.Y.shape[1] == 1
    y = rows.Y[:, 0] if regression else rows.Y.argmax(1)
    shared = sample(rows, part, [0])
    for name, basis in default_bases(len(rows.train), rows.X.shape[1]).items():
        if name == "forest":
            continue
        # networks do not learn from all rows
        path = folder / (f"{name}-{part}.npy" if name == "neural" else f"{name}.npy")
        if not path.exists():
            began = time.perf_counter()
            own = shared if name == "neural" else rows.train
            kind = GCERegressor if regression else GCEClassifier
            used = np.concatenate([own, rows.held_out])
            cut = [(np.arange(len(own)), np.arange(len(own), len(used)))]
            bound = None if regression or name == "neural" else WIDE
            model = kind(basis={name: basis}, cv=cut, random_state=0, bound=bound).fit(rows.X[used], y[used])
            np.save(path, model.raw_predict(rows.X).numpy())
            logger.info("%s: %d rounds, %.0f s", path.stem, len(model.history_), time.perf_counter() - began)
        found[name] = torch.from_numpy(np.load(path))
    return found


def sample(rows: Rows, part: int, seed: list[int]) -> np.ndarray:
    drawn = np.random.default_rng(seed).choice(rows.train, len(rows.train) // part, replace=False)
    return np.sort(drawn)


def ensemble_loss(rows: Rows, scores: list[Tensor]) -> float:
    """Of families that are weighed on the rows held out."""
    y, offset = torch.from_numpy(rows.Y[rows.held_out]), rows.offset
    weight = torch.ones(len(y), dtype=torch.float64)
    known = [HeldOutScores(one[rows.held_out], y, weight) for one in scores]
    weights = solve_weights(rows.loss, offset, known).weights[1:]
    mixed = sum(float(w) * (one - offset) for w, one in zip(weights, scores, strict=True)) + offset
    return rows.test_loss(mixed)


def measured(rows: Rows, folder: Path) -> dict[str, Any]:
    """Losses of forests and of ensembles with them, by the part of rows in a sample and how samples are drawn."""
    forests, found = Forests(rows), {}
    whole = {seed: forests.scores([rows.train] * TREES, seed) for seed in SEEDS}
    for part in PARTS:
        others = list(family_scores(rows, folder, part).values())
        without = ensemble_loss(rows, others)
        for seed in SEEDS:
            shared = sample(rows, part, [seed])
            ways = {
                "one sample": forests.scores([shared] * TREES, seed),
                "own samples": forests.scores([sample(rows, part, [seed, tree]) for tree in range(TREES)], seed),
                "all rows": whole[seed],
            }
            for way, scores in ways.items():
                figures = {"forest": rows.test_loss(scores), "ensemble": ensemble_loss(rows, [*others, scores])}
                logger.info("1/%d, %s, %d: %s", part, way, seed, figures)
                found.setdefault(f"1/{part}", {}).setdefault(way, []).append(figures)
        found[f"1/{part}"]["without a forest"] = without
    return {"rows": len(rows.train), "columns": rows.X.shape[1], "parts": found}


def fits(folder: Path) -> dict[str, Any]:
    """Test losses of fits of Shards, by set, families, way and seed."""
    found: dict[str, Any] = {}
    for name, (files, test, y) in {"covertype": covertype_files(folder), "additive": additive_files(folder)}.items():
        own = found[name] = {}
        for families, seed, way in product((["forest"], ["forest", "neural"]), SEEDS, WAYS):
            began = time.process_time()
            model = fitted(name, files, families, seed, way)
            if name == "covertype":
                loss = log_loss(y, model.predict_proba(test), labels=model.classes_)
            else:
                loss = float(np.mean((model.predict(test) - y) ** 2))
            own.setdefault(" and ".join(families), {}).setdefault(way, []).append(loss)
            logger.info("%s, %s, %s: %.5f, %.0f s", name, families, way, loss, time.process_time() - began)
    return found


WAYS = ("one sample", "own samples")


def fitted(name: str, files: str, families: list[str], seed: int, way: str) -> Any:
    """A fit whose memory has one row in eight."""
    kind = GCEClassifier if name == "covertype" else GCERegressor
    every: dict[str, Any] = {"forest": Forest(n_estimators=TREES), "neural": Neural(max_epochs=15)}
    model = kind(basis={own: every[own] for own in families}, max_iter=ROUNDS, random_state=seed, n_jobs=1)
    rows = 464_809 if name == "covertype" else FITTED
    with ExitStack() as stack:
        stack.enter_context(patch.object(_shard_choice, "MOST_ROWS", rows // IN_MEMORY))
        if way == "one sample":
            stack.enter_context(patch.object(fit, "_row_samples", lambda data: None))
        return model.fit(Shards(files, target="y"))


def covertype_files(folder: Path) -> tuple[str, pd.DataFrame, np.ndarray]:
    """Files of four fifths of covertype, and the other rows with their classes."""
    X, y = load("covertype")
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    order = np.random.RandomState(0).permutation(len(X))
    train, test = np.split(order, [int(0.8 * len(X))])
    frame.iloc[train].assign(y=y[train]).to_parquet(folder / "covertype.parquet", row_group_size=20_000)
    return str(folder / "covertype.parquet"), frame.iloc[test], y[test]


def additive_files(folder: Path) -> tuple[str, pd.DataFrame, np.ndarray]:
    """Files of made-up numbers, and other rows with their targets."""
    files = write_rows(folder, FITTED, 30, group=20_000, target="additive")
    test = frame_of(write_rows(folder, 100_000, 30, seed=1, target="additive"))
    return files, test.drop(columns="y"), test["y"].to_numpy()


def processes(folder: Path) -> dict[str, Any]:
    """What each of one, two and four processes of one thread does for a default forest of samples of 262,144 rows."""
    files, found = write_rows(folder, 600_000, 30), {}
    for size in (1, 2, 4):
        with tempfile.TemporaryDirectory() as own:
            out = Path(own) / "found.json"
            command = [sys.executable, str(Path(__file__).with_name("shard_forest_worker.py")), files, str(out)]
            started = [subprocess.Popen(command, env=about) for about in environment(size, 1)]
            failed = [process.wait() for process in started]
            if any(failed):
                raise RuntimeError(f"processes ended with {failed}")
            found[str(size)] = json.loads(out.read_text())
            logger.info("%d processes: %s", size, found[str(size)])
    return found


TEXT = f"""# Forests of Shards

`python benchmarks/shard_forests.py`, on MACHINE.

## One sample for all trees, or one for each

Test loss (squared error; of covertype log-loss), means over {len(SEEDS)} draws of the samples: a forest of {TREES}
trees, and the default ensemble with it. Its boosted trees learn from all rows and its networks from one sample;
families are weighed on rows held out, their rounds are not. In brackets the change relative to one sample, and its
range over the draws. All forests have the bins of all rows. Boosted trees are weak on covertype, which flatters
forests: with the default bound best-first trees have used it up after ten rounds, so that they have one of
{WIDE:,.0f} here and end after 67; symmetric trees are at their best after one round."""

PROCESSES = f"""
## Trees that are divided among processes

A forest of {TREES} trees on samples of 262,144 of 540,000 rows of 30 columns, and its predictions of one sample and of
60,000 rows held out: CPU seconds of a process of one thread, the largest of all, and what all of them send together.
Every process unpacks the trees of all.

| | processor, s | rows of trees, MB | trees, MB | predictions, MB |
|---|---:|---:|---:|---:|"""


FITS = f"""
## Fits of Shards

Every tree has a sample of its own, and before all had the one in memory, a row in {IN_MEMORY}: test loss (log-loss of
covertype, 464,809 rows; squared error of `additive` in shard_rows.py, {FITTED:,} rows, noise 0.601) of fits of {TREES}
trees alone, and with networks of {ROUNDS} rounds. Means of {len(SEEDS)} seeds, and in brackets the range of changes.

| | | one sample | own samples |
|---|---|---:|---:|"""


def page(known: dict[str, Any]) -> str:
    lines = [TEXT.replace("MACHINE", known["machine"])]
    for name, own in known["sets"].items():
        lines += ["", f"### {name}: {own['rows']:,} rows of {own['columns']} columns", ""]
        lines += ["| rows of a sample | | forest | ensemble |", "|---|---|---:|---:|"]
        for part, ways in own["parts"].items():
            without = ways["without a forest"]
            lines.append(f"| {part} | without a forest | | {without:.5f} |")
            for way in ("one sample", "own samples", "all rows"):
                cells = [_cell(ways[way], ways["one sample"], kind) for kind in ("forest", "ensemble")]
                lines.append(f"| {part} | {way} | {' | '.join(cells)} |")
    if "fits" in known:
        lines.append(FITS)
    for name, own in known.get("fits", {}).items():
        for families, losses in own.items():
            before, after = (losses[way] for way in WAYS)
            changes = [100 * (new / old - 1) for new, old in zip(after, before, strict=True)]
            cell = f"{mean(after):.5f} ({mean(changes):+.1f} %, {min(changes):+.1f} to {max(changes):+.1f})"
            lines.append(f"| {name} | {families} | {mean(before):.5f} | {cell} |")
    if "processes" in known:
        lines.append(PROCESSES)
    for size, every in known.get("processes", {}).items():
        sent = [sum(own[part] for own in every) / 1e6 for part in ("rows", "trees", "predictions")]
        most = max(own["processor"] for own in every)
        cells = [f"{most:.1f}", *(f"{one:.0f}" for one in sent)]
        lines.append(f"| {size} process{'es' * (size != '1')} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(figures: list[dict[str, float]], base: list[dict[str, float]], kind: str) -> str:
    value = f"{mean(own[kind] for own in figures):.5f}"
    changes = [100 * (own[kind] / other[kind] - 1) for own, other in zip(figures, base, strict=True)]
    return value if figures is base else f"{value} ({mean(changes):+.1f} %, {min(changes):+.1f} to {max(changes):+.1f})"


OTHERS = {"fits": fits, "processes": processes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*SETS, *OTHERS], metavar="PART")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gce-forests")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    path = RESULTS / "shard_forests.json"
    for name in given.parts:
        folder = given.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        found = OTHERS[name](folder) if name in OTHERS else measured(SETS[name](), folder)
        known = json.loads(path.read_text()) if path.exists() else {"sets": {}}
        (known if name in OTHERS else known["sets"])[name] = found
        known["machine"] = f"{processor()}, {CORES} cores, which other work shared"
        path.write_text(json.dumps(known, indent=1) + "\n")
        path.with_suffix(".md").write_text(page(known))


if __name__ == "__main__":
    run_script(main)
