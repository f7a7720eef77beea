"""A fit on disk: a head that identifies the fit, and one file per round of each family.

Files are written whole or not at all and never changed, so that a fit that was killed leaves its rounds up to the last
one, and what a round costs does not grow with the number of rounds (except for its weights, one per atom).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from gce._utils.codecs import Parts
from gce._utils.random import Streams
from gce._utils.warn import warn_user
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.slot import ActiveSetState
from gce.io import container
from gce.io.container import ModelFileError
from gce.io.fingerprints import fingerprint
from gce.io.migration import upgrade
from gce.io.rounds import Sequel, restore_rounds, store_rounds
from gce.preprocessing.mixed import Widths
from gce.training.data import FitData
from gce.training.family_fit import FamilyFit, Keep, ResumeState
from gce.training.plan import FamilyPlan, FitPlan
from gce.training.rounds import Round

_HEAD = "head.safetensors"
#: What a series of rounds writes, after a name of its own where a fit has several.
_KINDS = ("round", "predictions", "best")
#: Parameters that were added later, whose default is None.
_ADDED = {"interaction_cst"}
_ADVICE = "delete it and all later rounds to continue from the one before, or the whole folder to start again"
_ROUNDING_ADVICE = "delete it to continue up to rounding errors, or the whole folder to start again"


class Checkpoint:
    """A folder for one fit.

    Parameters
    ----------
    folder : str or Path
        Made where it is missing. One that holds other files and no checkpoint is refused.
    writes : bool, default=True
        Whether rounds are written; they are not where another process of the same fit does so.
    """

    def __init__(self, folder: str | Path, writes: bool = True) -> None:
        self.folder, self._writes = Path(folder), writes
        if writes:
            from gce.io.atomic import remove_partial_files

            self.folder.mkdir(parents=True, exist_ok=True)
            for name in (_HEAD, *(f"*{kind}-*.safetensors" for kind in _KINDS)):
                remove_partial_files(self.folder, name)
        #: The seed and the fingerprint of the fit in the folder; None where there is none yet.
        self.seed: int | None = None
        self._known: dict[str, Any] | None = None
        #: Called once all rounds of the folder have been read.
        self.before_writing: Callable[[], None] = _nothing
        #: Members of the fit that claimed the folder, and what its files are marked with.
        self.members, self.name = 0, ""
        if (self.folder / _HEAD).exists():
            with _blamed(self.folder / _HEAD):
                meta, _ = container.read(self.folder / _HEAD)
                head = Parts(meta)
                head.choice("content", ("checkpoint",))
                self.seed, self._known = head.integer("seed", 0, 2**256), head.within("about").meta
        elif any(self.folder.iterdir()):
            raise ValueError(
                f"checkpoint={str(self.folder)!r} holds other files and no checkpoint: give a new or an empty folder"
            )

    def begin(self, plan: FitPlan, data: FitData) -> None:
        """Take the folder for a fit; a folder of another fit is refused."""
        self._families = [family.name for family in plan.families]
        self.claim(fingerprint(plan, data), data.streams)

    def resume(self, family: FamilyPlan, fit: FamilyFit, data: FitData) -> ResumeState:
        """Replay the rounds of a family that are in the folder, and store those to come."""
        several, number = len(self._families) > 1, self._families.index(family.name)
        # a family may have a name that no file can have
        name = f"{number + 1}-{re.sub('[^A-Za-z0-9_]', '', family.name)}-" if several else ""
        X, divided = data.problem.X, family.problem.division is not None
        series = Series(self, name, None if divided else len(X), data.table.widths, family.problem.bound.cpu())
        state = series.replay(fit)
        for record in fit.rounds:
            if record.atoms is not None:
                record.atoms.to(X.device)
        keep: Keep = series.keep
        if several and not divided:
            keep = partial(series.keep_best, fit)
            best = series.best(fit) if fit.rounds else None
            fit.best_outputs = None if best is None else best.to(data.problem.y.device)
        return ResumeState(state, keep if self._writes else _keep_nothing)

    def claim(self, about: dict[str, Any], streams: Streams) -> None:
        """Take the folder for a fit of a fingerprint; a folder of another fit is refused.

        Parameters
        ----------
        about : dict
            What determines the fit, see :func:`gce.io.fingerprints.fingerprint`.
        streams : Streams
        """
        known = about if self._known is None else self._known
        # a fit from before there were interaction constraints had none
        named = {**dict.fromkeys(_ADDED & about.keys()), **upgrade(known)}
        other = [name for name in {**about, **named} if named.get(name, self) != about.get(name, self)]
        if other:
            raise ValueError(
                f"checkpoint={str(self.folder)!r} belongs to another fit (of another {', '.join(other)}): give "
                "another folder, or delete this one"
            )
        # as it is in the head: 4 and 4.0 are equal, but not in writing
        self._about, self.members = known, len(streams.names)
        self.name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        self._fresh, self.seed = self._known is None, streams.seed

    def settle(self) -> None:
        """Write the head, before anything else is written."""
        if self._fresh:
            head = Parts({"content": "checkpoint", "seed": self.seed, "about": self._about})
            container.write(self.folder / _HEAD, head.meta, {})
            self._fresh = False


def _nothing() -> None:
    """One process need not wait for others."""


def _keep_nothing(record: Round, active: ActiveSet) -> None:
    """Leave a round to the process that writes."""


@contextmanager
def opened(folder: str | Path) -> Iterator[Checkpoint]:
    """A folder that no other fit writes to meanwhile, where the system can see to that.

    The folder itself is locked, by ``flock``: the lock goes with the process that holds it, however that ends, and
    leaves no file behind. On Windows, and on file systems that know no such locks, nobody is kept out.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ValueError(f"checkpoint={str(folder)!r} is a file: give a folder of its own") from None
    with _locked(Path(folder)):
        yield Checkpoint(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        # a file system without locks answers with another error
        with suppress(OSError):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"checkpoint={str(folder)!r} is in use by another fit: wait until that has ended, or give another "
                    "folder"
                ) from None
        yield
    finally:
        # processes that were forked meanwhile have the handle too, and with it the lock
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


class Series:
    """The rounds of a fit in a folder, or of one of its families.

    Parameters
    ----------
    checkpoint : Checkpoint
        Claimed.
    name : str
        What its files' names begin with.
    rows : int or None
        Rows of the fit, those held out among them; None where their predictions are not kept, because they are computed
        again from the codes of rows, to the bit.
    widths : Widths
        What an atom may see of a row.
    bound : Tensor of shape (k,)
        The hull that rounds are run in.
    """

    def __init__(self, checkpoint: Checkpoint, name: str, rows: int | None, widths: Widths, bound: Tensor) -> None:
        self._checkpoint, self._folder, self._name = checkpoint, checkpoint.folder, name
        self._mark = checkpoint.name + name
        self._rows, self._widths = rows, widths
        self._bound = bound

    def _path(self, kind: str, t: int) -> Path:
        return self._folder / f"{self._name}{kind}-{t:06d}.safetensors"

    def _numbers(self, kind: str) -> list[int]:
        """Rounds of which there is a file of a kind."""
        known = re.compile(rf"{re.escape(self._name)}{kind}-([0-9]{{6,}})\.safetensors")
        return [int(name[1]) for path in self._folder.iterdir() if (name := known.fullmatch(path.name))]

    def replay(self, fit: FamilyFit) -> ActiveSetState | None:
        """Replay the rounds in the folder, and return the state of the active set after the last one."""
        sequel, state = Sequel(self._checkpoint.members, len(self._bound)), None
        hull = self._bound
        for t in range(1, 1 + max(self._numbers("round"), default=0)):
            with _blamed(self._path("round", t)):
                parts = self._read("round", t)
                # limits may have changed, and room with them
                own = parts.finite("bound", len(hull)) if "bound" in parts.tensors else self._bound
                (record,) = restore_rounds(parts, self._checkpoint.members, sequel.slots, self._widths, own)
                sequel.check(record)
                fit.replay([record])
                state, hull = _active_set_state(parts.within("standing"), record), torch.maximum(hull, own)
        if state is None:
            return None
        fit.bound = hull
        if state.cached == 0 and self._rows is not None:
            state = replace(state, pred=self._scores("predictions", fit.n_rounds, len(state.members)))
        return state

    def best(self, fit: FamilyFit) -> Tensor | None:
        """Each member's scores at its best round, ``(M, N, k)``, where the folder knows them."""
        return self._scores("best", max(fit.stopping.best_round.values()), fit.members)

    def _scores(self, kind: str, t: int, members: int) -> Tensor | None:
        """Those after a round, which only the latest round has: after an earlier one they must be summed up again."""
        path = self._path(kind, t)
        if not path.exists():
            words = f"the fit continues from round {t}, but only up to rounding errors"
            warn_user(f"{str(path)!r} is missing: {words}", UserWarning)
            return None
        with _blamed(path, _ROUNDING_ADVICE):
            assert self._rows is not None
            return self._read(kind, t).finite("pred", members, self._rows, len(self._bound))

    def keep(self, record: Round, active: ActiveSet) -> None:
        """Write a round's record, and the predictions of an active set that could not find them again."""
        if record.atoms is not None and record.atoms.unstorable_name is not None:
            raise ValueError(
                f"{record.atoms.unstorable_name} is not gce's own and cannot go into a checkpoint: fit without one, "
                "and keep the model with joblib.dump"
            )
        self._checkpoint.settle()
        state = active.state_without_predictions if self._rows is None else active.state
        if state.pred is not None:
            self._write("predictions", record.t, Parts({}, {"pred": state.pred}))
        about = {"members": state.members, "cache_bytes": state.cache_bytes, "cached": state.cached}
        parts = store_rounds([record], self._checkpoint.members)
        parts.tensors["bound"] = self._bound
        parts.add("standing", Parts(about))
        self._write("round", record.t, parts)
        # from here on nobody asks for earlier predictions; a kill may have left those of two rounds
        for t in (record.t - 2, record.t - 1):
            self._path("predictions", t).unlink(missing_ok=True)

    def keep_best(self, fit: FamilyFit, record: Round, active: ActiveSet) -> None:
        """The same, and the scores of a fit's members at their best rounds, where this is one."""
        if fit.best_outputs is None or record.t not in fit.stopping.best_round.values():
            self.keep(record, active)
            return
        self._checkpoint.settle()
        self._write("best", record.t, Parts({}, {"pred": fit.best_outputs}))
        self.keep(record, active)
        for t in self._numbers("best"):
            if t != record.t:
                self._path("best", t).unlink(missing_ok=True)

    def _write(self, kind: str, t: int, parts: Parts) -> None:
        meta = {"content": kind, "of": self._mark, **parts.meta}
        container.write(self._path(kind, t), meta, parts.tensors)

    def _read(self, kind: str, t: int) -> Parts:
        parts = Parts(*container.read(self._path(kind, t)))
        parts.choice("content", (kind,))
        if parts.meta.get("of") != self._mark:
            raise ValueError("it belongs to another fit")
        return parts


def _active_set_state(parts: Parts, record: Round) -> ActiveSetState:
    """The state of an active set after a round, without its predictions."""
    members = parts.meta.get("members")
    if not isinstance(members, list) or not members or not set(members) <= set(record.members):
        raise ValueError("members go on that did not run")
    return ActiveSetState(members, parts.integer("cache_bytes", 0, 2**62), parts.integer("cached"), None)


@contextmanager
def _blamed(path: Path, advice: str = _ADVICE) -> Iterator[None]:
    """Whatever goes wrong with a file is said with its name, and with what to do about it."""
    try:
        yield
    except ModelFileError as error:
        if error.advice != container.ADVICE:
            raise
        raise ModelFileError(error.problem, advice) from error
    except FileNotFoundError as error:
        raise ModelFileError(f"{str(path)!r} is missing", advice) from error
    except OSError:
        raise
    except Exception as error:
        raise ModelFileError(
            f"{str(path)!r} is no part of this checkpoint ({container.first_line(error)})", advice
        ) from error
