"""What is killed: fits with checkpoints, and whatever replaces a file."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gce
from campaign.children import Tick
from campaign.kill_fits import FITS, NUMBERS, X, course, fitted
from gce.bases import Neural, Tree
from gce.cli import main
from gce.distributed import process_group
from gce.estimators import _shard_choice
from gce.io.models import digest
from gce.training.callbacks import CallbackList

#: Rows of the files of a fit of shards, and of its sample, so that some rows are neither sampled nor held out.
SHARD_ROWS, SAMPLED = 1200, 256
FAST = ["--set", "max_atoms=10", "--set", "cv=3", "--quiet", "--json"]


@dataclass(frozen=True)
class Job:
    """Work that may be killed and is then called again.

    Parameters
    ----------
    name : str
        What it does, in the words of the page.
    work : callable
        Of a folder for its files, the :class:`Materials` and a function that it calls at every tick.
    result : callable
        A hash of what the work left in the folder, but for the clock; an error where a file is not whole.
    replaces : str, optional
        The file in the folder that it replaces.
    goes_on : bool, default=False
        It keeps rounds, and may leave a model of fewer rounds when Ctrl-C is pressed.
    processes : int, default=1
        How many processes do it together.
    """

    name: str
    work: Callable[[Path, Materials, Tick], None]
    result: Callable[[Path], str]
    replaces: str | None = None
    goes_on: bool = False
    processes: int = 1


@dataclass(frozen=True)
class Materials:
    """Files that jobs read.

    Parameters
    ----------
    folder : Path
        Of ``old.safetensors`` and ``new.safetensors``, two models; ``rows.csv``; ``data``, rows in Parquet files.
    """

    folder: Path
    columns: list[str] = field(default_factory=lambda: list("abcd"))

    def write(self) -> None:
        """Write all files: for a forked process."""
        import pandas as pd

        self.folder.mkdir()
        for name, atoms in (("old", 3), ("new", 8)):
            model = gce.GCERegressor(basis=Tree(max_leaf_nodes=6), cv=3, max_atoms=atoms, random_state=0, n_jobs=1)
            model.fit(pd.DataFrame(X, columns=self.columns), NUMBERS).save(self.path(f"{name}.safetensors"))
            model.to_onnx(self.path(f"{name}.onnx"))
        frame = pd.DataFrame(X, columns=self.columns).assign(y=NUMBERS)
        frame.to_csv(self.path("rows.csv"), index=False)
        self.path("data").mkdir()
        rows = np.random.default_rng(1).normal(size=(SHARD_ROWS, len(self.columns)))
        many = pd.DataFrame(rows, columns=self.columns).assign(y=np.sin(rows[:, 0]) + rows[:, 1] * rows[:, 2])
        for part in range(2):
            many[part::2].to_parquet(self.path("data") / f"{part}.parquet", row_group_size=150, index=False)

    def path(self, name: str) -> Path:
        return self.folder / name

    def model(self) -> Any:
        return gce.load(self.path("new.safetensors"))

    def old(self, name: str) -> bytes:
        """What a file holds that is about to be replaced."""
        found = self.path(f"old{Path(name).suffix}")
        return found.read_bytes() if found.exists() else b"what was there before"


def _fit(fit: tuple[str, str, str], folder: Path, materials: Materials, tick: Tick) -> None:
    model = fitted(fit, folder / "rounds", tick)
    (folder / "course").write_text(course(model))


def _course(folder: Path) -> str:
    return (folder / "course").read_text()


def _shards(folder: Path, materials: Materials, tick: Tick) -> None:
    # the constants are those of this process alone
    _shard_choice.MOST_ROWS = _shard_choice.FEWEST_ROWS = SAMPLED
    basis = [Tree(max_leaf_nodes=6), Neural(hidden=4, max_epochs=2)]
    with process_group(timeout=30) as world:
        shards = gce.Shards(str(materials.path("data") / "*.parquet"), target="y", folder=folder / "work")
        model = gce.GCERegressor(basis=basis, max_iter=12, callbacks=[tick], random_state=0, n_jobs=1)
        model.fit(shards, checkpoint=folder / "rounds")
        if world.rank == 0:
            (folder / "course").write_text(course(model))


def _save(folder: Path, materials: Materials, tick: Tick) -> None:
    materials.model().save(folder / "m.safetensors")


def _report(folder: Path, materials: Materials, tick: Tick) -> None:
    materials.model().report(folder / "page.html", _frame(materials), NUMBERS)


def _onnx(folder: Path, materials: Materials, tick: Tick) -> None:
    materials.model().to_onnx(folder / "m.onnx")


def _frame(materials: Materials) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=materials.columns)


def _cli(words: Iterable[str], folder: Path, materials: Materials, tick: Tick) -> None:
    """The command line, in this process; it leaves by an exit status."""
    places = {"AT": str(folder), "FROM": str(materials.folder)}
    sys.argv = ["gce", *(re.sub("AT|FROM", lambda found: places[found[0]], word) for word in words)]
    os.environ["TERM"] = "dumb"
    try:
        main()
    except SystemExit as leaving:
        if leaving.code:
            raise


def _cli_fit(folder: Path, materials: Materials, tick: Tick) -> None:
    called = CallbackList.__call__

    def ticking(watchers: CallbackList, step: Any) -> bool:
        tick(step)
        return called(watchers, step)

    # a command has no parameter for callbacks; the class is that of this process alone
    CallbackList.__call__ = ticking
    _cli(_FIT_WORDS, folder, materials, tick)


def _model(folder: Path) -> str:
    """What the predictions of a saved model depend on, and the predictions."""
    model = gce.load(folder / "m.safetensors")
    return f"{digest(model)} {hashlib.sha256(np.asarray(model.raw_predict(X)).tobytes()).hexdigest()}"


def _page(folder: Path) -> str:
    """The figures and sections of a page, which has an end."""
    text = (folder / "page.html").read_text()
    if not (text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")):
        raise ValueError(f"a page of {len(text)} letters that ends in {text[-40:]!r}")
    return hashlib.sha256("".join(re.findall('data-value="[^"]*"|href="#[^"]*"', text)).encode()).hexdigest()


def _bytes(name: str, folder: Path) -> str:
    return hashlib.sha256((folder / name).read_bytes()).hexdigest()


def _name(family: str, loss: str, algorithm: str) -> str:
    return f"fit of {family}, {loss}" + ("" if algorithm == "auto" else f", {algorithm}")


FIT_JOBS = [Job(_name(*fit), partial(_fit, fit), _course, goes_on=True) for fit in FITS]
SHARD_JOBS = [
    Job("fit of Shards", _shards, _course, goes_on=True),
    Job("fit of Shards by two processes", _shards, _course, goes_on=True, processes=2),
]
_FIT_WORDS = ("fit", "FROM/rows.csv", "--target", "y", "--checkpoint", "AT/rounds", "--out", "AT/m.safetensors", *FAST)
_TABLE = "predictions.parquet"
FILE_JOBS = [
    Job("save", _save, _model, "m.safetensors"),
    Job("report", _report, _page, "page.html"),
    Job("to_onnx", _onnx, partial(_bytes, "m.onnx"), "m.onnx"),
    Job("gce fit --out", _cli_fit, _model, "m.safetensors", goes_on=True),
    Job(
        "gce predict --out",
        partial(_cli, ("predict", "FROM/new.safetensors", "FROM/rows.csv", "--out", f"AT/{_TABLE}")),
        partial(_bytes, _TABLE),
        _TABLE,
    ),
    Job(
        "gce export",
        partial(_cli, ("export", "FROM/new.safetensors", "AT/m.onnx")),
        partial(_bytes, "m.onnx"),
        "m.onnx",
    ),
]
