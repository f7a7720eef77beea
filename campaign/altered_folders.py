"""Checkpoint folders whose files are altered, missing, exchanged or of another fit."""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import gce
from campaign.model_uses import check
from campaign.mutated_bytes import BLIND, INFORMED
from campaign.mutated_values import mutated
from campaign.sources import GOLDEN
from gce.io import container
from tests.make_checkpoints import fit, models

#: Folders whose fits go on quickly.
NAMES = ("boosting", "trees", "forest", "sign_tree", "classes_symmetric", "neural", "families", "outputs_separate")


@cache
def _given() -> dict[str, Any]:
    return json.loads((GOLDEN / "v6_checkpoints.json").read_text())  # type: ignore[no-any-return]


@cache
def _models() -> dict[str, Any]:
    return dict(models(6))


def checkpoint(folder: Path, rng: random.Random) -> str:
    """Alter a folder and go on from it; what came of it."""
    name, work = rng.choice(NAMES), folder / "checkpoint"
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(GOLDEN / f"v6_checkpoint_{name}", work)
    way = rng.choice(WAYS)
    if not way(work, rng):
        return "has no form in a file"
    try:
        model = fit(clone(_models()[name]), _given(), name, work, 4)
    except ValueError as error:
        message = str(error)
        check(str(work) in message, f"a message does not name the folder: {message[:300]}")
        check(message.isprintable() and len(message) < 500, f"a message is long or has control characters: {message!r}")
        return f"{way.__name__}, refused"
    rows = np.array(_given()["rows"], dtype=float)
    check(bool(np.isfinite(model.raw_predict(rows).numpy()).all()), "a continued fit predicts no finite numbers")
    return f"{way.__name__}, continued"


def _some(work: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(work.iterdir()))


def bytes_altered(work: Path, rng: random.Random) -> bool:
    path, change = _some(work, rng), rng.choice(BLIND + INFORMED)
    try:
        path.write_bytes(change(path.read_bytes(), rng))
    except (ValueError, IndexError):
        return False
    return True


def values_altered(work: Path, rng: random.Random) -> bool:
    path = _some(work, rng)
    try:
        container.write(path, *mutated(*container.read(path), rng))
    except (ValueError, OverflowError, gce.ModelFileError):
        return False
    return True


def missing(work: Path, rng: random.Random) -> bool:
    _some(work, rng).unlink()
    return True


def exchanged(work: Path, rng: random.Random) -> bool:
    one, other = rng.sample(sorted(work.iterdir()), 2)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    return True


def of_another_fit(work: Path, rng: random.Random) -> bool:
    path = _some(work, rng)
    path.write_bytes(_some(GOLDEN / f"v6_checkpoint_{rng.choice(NAMES)}", rng).read_bytes())
    return True


def a_folder_instead(work: Path, rng: random.Random) -> bool:
    path = _some(work, rng)
    path.unlink()
    path.mkdir()
    return True


WAYS = [bytes_altered, values_altered, values_altered, missing, exchanged, of_another_fit, a_folder_instead]
