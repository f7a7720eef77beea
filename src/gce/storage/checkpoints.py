"""A fit on disk, round by round: a head that says which fit it is, and a file of news a round; of each family its own.

Files are written whole or not at all and never changed, so that a fit that was killed leaves its rounds up to the last
one, and what a round costs does not grow with the number of rounds (but for its weights, one an atom).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from gce.active_set import ActiveSet, Standing
from gce.fitting import Fit, Keep, Round
from gce.parts import Parts
from gce.settings import users_line
from gce.storage import container, courses
from gce.storage.container import ModelFileError
from gce.streams import Streams

_HEAD = "head.safetensors"
#: What a series of rounds writes, after a name of its own where a fit has several.
_KINDS = ("round", "predictions", "best")
_ADVICE = "delete it and all later rounds to go on from the one before, or the whole folder to begin anew"
_ROUNDING_ADVICE = "delete it to go on to rounding only, or the whole folder to begin anew"


class Trail(NamedTuple):
    """What a fit left on disk, and goes on leaving there.

    Parameters
    ----------
    standing : Standing or None
        How its active set stood after the last round.
    keep : callable or None
        Told every round's news.
    """

    standing: Standing | None = None
    keep: Keep | None = None


class Checkpoint:
    """A folder for one fit.

    Parameters
    ----------
    folder : str or Path
        Made where it is missing. One that holds other files and no checkpoint is refused.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in (_HEAD, *(f"*{kind}-*.safetensors" for kind in _KINDS)):
            container.sweep(self.folder, name)
        #: The seed and the fingerprint of the fit in the folder; None where there is none yet.
        self.seed: int | None = None
        self._known: dict[str, Any] | None = None
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

    def claim(self, about: dict[str, Any], streams: Streams) -> None:
        """Take the folder for a fit; a folder of another fit is refused.

        Parameters
        ----------
        about : dict
            What shapes the fit, see :func:`gce.storage.fingerprints.fingerprint`.
        streams : Streams
        """
        known = about if self._known is None else self._known
        other = [name for name in {**about, **known} if known.get(name, self) != about.get(name, self)]
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
        # the lock goes with the handle
        os.close(handle)


class Series:
    """The rounds of a fit in a folder, or of one of its families.

    Parameters
    ----------
    checkpoint : Checkpoint
        Claimed.
    name : str
        What its files' names begin with.
    shape : (int, int)
        Rows of the fit, those held out among them, and what an atom sees of a row.
    bound : Tensor of shape (k,)
        The hull that rounds are run in.
    """

    def __init__(self, checkpoint: Checkpoint, name: str, shape: tuple[int, int], bound: Tensor) -> None:
        self._checkpoint, self._folder, self._name = checkpoint, checkpoint.folder, name
        self._mark = checkpoint.name + name
        self._rows, self._inputs = shape
        self._bound = bound

    def _path(self, kind: str, t: int) -> Path:
        return self._folder / f"{self._name}{kind}-{t:06d}.safetensors"

    def _numbers(self, kind: str) -> list[int]:
        """Rounds of which there is a file of a kind."""
        known = re.compile(rf"{re.escape(self._name)}{kind}-([0-9]{{6,}})\.safetensors")
        return [int(name[1]) for path in self._folder.iterdir() if (name := known.fullmatch(path.name))]

    def replay(self, fit: Fit) -> Standing | None:
        """Let a fit of no rounds stand where that in the folder stood, and say how its active set stood."""
        sequel, standing = courses.Sequel(self._checkpoint.members, len(self._bound)), None
        hull = self._bound
        for t in range(1, 1 + max(self._numbers("round"), default=0)):
            with _blamed(self._path("round", t)):
                parts = self._read("round", t)
                # limits may have changed, and room with them
                own = parts.finite("bound", len(hull)) if "bound" in parts.tensors else self._bound
                (news,) = courses.restore(parts, self._checkpoint.members, sequel.slots, self._inputs, own)
                sequel.check(news)
                fit.replay([news])
                standing, hull = _standing(parts.within("standing"), news), torch.maximum(hull, own)
        if standing is None:
            return None
        fit.bound = hull
        if standing.cached == 0:
            standing = replace(standing, pred=self._scores("predictions", fit.rounds, len(standing.members)))
        return standing

    def best(self, fit: Fit) -> Tensor | None:
        """Each member's scores at its best round, ``(M, N, k)``, where the folder knows them."""
        return self._scores("best", max(fit.stopping.best_round.values()), fit.members)

    def _scores(self, kind: str, t: int, members: int) -> Tensor | None:
        """Those after a round, which only the latest round has: after an earlier one they must be summed up again."""
        path = self._path(kind, t)
        if not path.exists():
            warnings.warn(
                f"{str(path)!r} is missing: the fit goes on from round {t}, but to rounding only",
                UserWarning,
                stacklevel=users_line(),
            )
            return None
        with _blamed(path, _ROUNDING_ADVICE):
            return self._read(kind, t).finite("pred", members, self._rows, len(self._bound))

    def keep(self, news: Round, active: ActiveSet) -> None:
        """Write a round's news, and the predictions of an active set that could not find them again."""
        if news.atoms is not None and news.atoms.foreign is not None:
            raise ValueError(
                f"{news.atoms.foreign} is not gce's own and cannot go into a checkpoint: fit without one, and keep the "
                "model with joblib.dump"
            )
        self._checkpoint.settle()
        standing = active.standing
        if standing.pred is not None:
            self._write("predictions", news.t, Parts({}, {"pred": standing.pred}))
        about = {"members": standing.members, "cache_bytes": standing.cache_bytes, "cached": standing.cached}
        parts = courses.store([news], self._checkpoint.members)
        parts.tensors["bound"] = self._bound
        parts.add("standing", Parts(about))
        self._write("round", news.t, parts)
        # from here on nobody asks for earlier predictions; a kill may have left those of two rounds
        for t in (news.t - 2, news.t - 1):
            self._path("predictions", t).unlink(missing_ok=True)

    def keep_best(self, fit: Fit, news: Round, active: ActiveSet) -> None:
        """The same, and the scores of a fit's members at their best rounds, where this is one."""
        if fit.at_best is None or news.t not in fit.stopping.best_round.values():
            self.keep(news, active)
            return
        self._checkpoint.settle()
        self._write("best", news.t, Parts({}, {"pred": fit.at_best}))
        self.keep(news, active)
        for t in self._numbers("best"):
            if t != news.t:
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


def _standing(parts: Parts, news: Round) -> Standing:
    """How an active set stood after a round, predictions aside."""
    members = parts.meta.get("members")
    if not isinstance(members, list) or not members or not set(members) <= set(news.members):
        raise ValueError("members go on that did not run")
    return Standing(members, parts.integer("cache_bytes", 0, 2**62), parts.integer("cached"), None)


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
