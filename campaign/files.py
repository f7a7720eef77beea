"""Altered files: models, checkpoints and tables, with wrong checksums and with right ones."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gce
from campaign.altered_folders import checkpoint
from campaign.altered_tables import altered_table
from campaign.isolated import isolated, limit_address_space
from campaign.model_uses import Used, check, use
from campaign.mutated_bytes import BLIND, INFORMED, STRANGE
from campaign.mutated_contents import hostile
from campaign.mutated_values import mutated
from campaign.outcomes import Outcome
from campaign.settings import settings
from campaign.sources import NAMES, Source, golden, made, rows_of
from gce.io import container

PROMISE = (
    "an altered model file, checkpoint or table is refused in one sentence that names it, or what it holds is used "
    "without a crash, a hang of 20 s, 1 GiB of memory or a read out of bounds"
)
FULL = 10_000
#: Models of which it is written down what must be refused.
KNOWN = ("networks rounds", "batches", "trees rounds", "families rounds", "families", "joint", "reweighted", "network")

#: Between one and the next of what must be refused: a prime, so that all have their turn and few cases see all sorts.
STRIDE = 7919

Ran = tuple[str, str]


class Draw(NamedTuple):
    """What decides a case.

    Parameters
    ----------
    rng : random.Random
    turn : int
        How many cases of its kind have smaller numbers.
    """

    rng: random.Random
    turn: int


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases in processes of their own."""
    yield from isolated(Files, cases, seed, folder)
    if (folder / "executed").exists():
        yield Outcome(-1, "payload", "a payload of some file was executed")


class Files:
    """Runs cases by their numbers.

    Parameters
    ----------
    seed : int
    folder : Path
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self.folder = seed, folder
        self.path = folder / "mutated.safetensors"
        (folder / "sources").mkdir(exist_ok=True)
        for name in NAMES:
            self.source(name)
        limit_address_space()

    def __call__(self, case: int) -> Outcome:
        kind = KINDS[case % len(KINDS)]
        draw = Draw(random.Random(f"{self._seed} {case}"), turn(case))
        try:
            what, result = kind(self, draw)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
            return Outcome(case, kind.__name__.strip("_"), " ".join(words.split())[:600])
        return Outcome(case, f"{what}: {result}")

    def source(self, name: str) -> Source:
        """A model that is fitted here."""
        return made(name, self.folder / "sources")

    def load(self) -> Any:
        """The model of the altered file, or None where it was refused as it should be."""
        try:
            return gce.load(self.path)
        except gce.ModelFileError as error:
            message = str(error)
            check(message.isprintable(), f"a message has control characters: {message!r}")
            check(message.startswith(repr(str(self.path))), f"a message does not begin with the file: {message}")
            check(len(message) < 500, f"a message is long: {message}")
            return None

    def contents(self, own: Source, rng: random.Random, what: str) -> Ran:
        """Contents with a right checksum: refused, or used."""
        try:
            container.write(self.path, *mutated(*_read(own.path), rng))
        except (ValueError, OverflowError, UnicodeEncodeError):
            # what cannot be written need not be read
            return what, "has no form in a file"
        model = self.load()
        if model is None:
            return what, "refused"
        return what, use(Used(model, own.X, own.y, self.path), rng)


def turn(case: int) -> int:
    """How many cases of the kind of this one have smaller numbers."""
    rounds, place = divmod(case, len(KINDS))
    return rounds * KINDS.count(KINDS[place]) + KINDS[:place].count(KINDS[place])


def _fitted(files: Files, draw: Draw) -> Ran:
    return files.contents(files.source(draw.rng.choice(NAMES)), draw.rng, "values, right checksum")


def _golden(files: Files, draw: Draw) -> Ran:
    path = draw.rng.choice(golden())
    return files.contents(Source(path, rows_of(path), None), draw.rng, "values of earlier formats, right checksum")


def _bytes(files: Files, draw: Draw) -> Ran:
    """Bytes with a wrong checksum: refused, or as good as the original."""
    own, change = files.source(draw.rng.choice(NAMES)), draw.rng.choice(BLIND + INFORMED)
    files.path.write_bytes(change(own.path.read_bytes(), draw.rng))
    model = files.load()
    if model is None:
        return "bytes, wrong checksum", "refused"
    same = np.array_equal(model.raw_predict(own.X), gce.load(own.path).raw_predict(own.X))
    check(same, f"{change.__name__}: taken, with other predictions")
    return "bytes, wrong checksum", "as good as the original"


def _hostile(files: Files, draw: Draw) -> Ran:
    """Contents that no fit leaves, and files that are something else."""
    edits = edits_of([files.source(name).path for name in KNOWN])
    place = draw.turn * STRIDE % (len(edits) + len(STRANGE))
    if place >= len(edits):
        files.path.write_bytes(STRANGE[place - len(edits)]())
        check(files.load() is None, "a file of another kind was taken")
        return "files of another kind", "refused"
    path, edit = edits[place]
    meta, tensors = container.read(path)
    edit(meta, tensors)
    container.write(files.path, meta, tensors)
    check(files.load() is None, f"contents that no fit leaves were taken: edit {place}, of {path.stem}")
    return "contents that no fit leaves, right checksum", "refused"


def edits_of(paths: Iterable[Path]) -> list[tuple[Path, Any]]:
    """What must be refused of each of these files."""
    return [(path, edit) for path in paths for edit in _edits_of(path)]


@cache
def _edits_of(path: Path) -> list[Any]:
    return hostile(gce.load(path))


@cache
def _read(path: Path) -> tuple[Any, Any]:
    return container.read(path)


def _checkpoint(files: Files, draw: Draw) -> Ran:
    return "checkpoint folders", checkpoint(files.folder, draw.rng)


def _table(files: Files, draw: Draw) -> Ran:
    return altered_table(files.source("categories rounds"), files.folder, draw.rng)


def _settings(files: Files, draw: Draw) -> Ran:
    own = files.source(draw.rng.choice(("trees rounds", "batches", "joint", "network", "survival")))
    return "settings", settings(own, files.path, draw.rng)


#: What case after case tries; of three hostile ones in twenty, a full campaign has more than there are edits.
KINDS: list[Callable[[Files, Draw], Ran]] = [
    *(_fitted, _bytes, _golden, _fitted, _hostile, _fitted, _checkpoint, _golden, _bytes, _table),
    *(_hostile, _bytes, _fitted, _hostile, _fitted, _golden, _fitted, _golden, _settings, _table),
]
