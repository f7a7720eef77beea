"""A fit on disk, round by round: a head that says which fit it is, and a file of news a round.

Files are written whole or not at all and never changed, so that a fit that was killed leaves its rounds up to the last
one, and what a round costs does not grow with the number of rounds (but for its weights, one an atom).
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from gce.active_set import ActiveSet, Standing
from gce.fitting import Round
from gce.parts import Parts
from gce.settings import users_line
from gce.storage import container, courses
from gce.storage.container import ModelFileError
from gce.streams import Streams

_HEAD, _ROUND, _PREDICTIONS = "head.safetensors", "round-{:06d}.safetensors", "predictions-{:06d}.safetensors"
_ROUND_NAME = re.compile(r"round-([0-9]{6,})\.safetensors")
_ADVICE = "delete it and all later rounds to go on from the one before, or the whole folder to begin anew"


class Checkpoint:
    """A folder for one fit.

    Parameters
    ----------
    folder : str or Path
        Made where it is missing. One that holds other files and no checkpoint is refused.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        for name in (_HEAD, _ROUND, _PREDICTIONS):
            container.sweep(self._folder, name.replace("{:06d}", "*"))
        #: The seed and the fingerprint of the fit in the folder; None where there is none yet.
        self.seed: int | None = None
        self._known: dict[str, Any] | None = None
        self._members = 0
        if (self._folder / _HEAD).exists():
            with _blamed(self._folder / _HEAD):
                meta, _ = container.read(self._folder / _HEAD)
                head = Parts(meta)
                head.choice("content", ("checkpoint",))
                self.seed, self._known = head.integer("seed", 0, 2**256), head.within("about").meta
        elif any(self._folder.iterdir()):
            raise ValueError(
                f"checkpoint={str(self._folder)!r} holds other files and no checkpoint: give a new or an empty folder"
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
                f"checkpoint={str(self._folder)!r} belongs to another fit (of another {', '.join(other)}): give "
                "another folder, or delete this one"
            )
        # as it is in the head: 4 and 4.0 are equal, but not in writing
        self._about, self._members = known, len(streams.names)
        self._name = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        self._fresh, self.seed = self._known is None, streams.seed

    def rounds(self, inputs: int, bound: Tensor) -> tuple[list[Round], Standing | None]:
        """The rounds in the folder, and how the active set stood after the last of them.

        Parameters
        ----------
        inputs : int
            What a network sees of a row.
        bound : Tensor of shape (k,)
            The hull's.
        """
        course: list[Round] = []
        sequel, standing = courses.Sequel(self._members, len(bound)), None
        found = [int(name[1]) for path in self._folder.iterdir() if (name := _ROUND_NAME.fullmatch(path.name))]
        for t in range(1, 1 + max(found, default=0)):
            with _blamed(self._folder / _ROUND.format(t)):
                parts = self._read(_ROUND.format(t), "round")
                (news,) = courses.restore(parts, self._members, sequel.slots, inputs, bound)
                sequel.check(news)
                course.append(news)
                standing = _standing(parts.within("standing"), news)
        if standing is not None and standing.cached == 0:
            standing = replace(standing, pred=self._predictions(len(course), len(standing.members), len(bound)))
        return course, standing

    def _predictions(self, t: int, members: int, outputs: int) -> Tensor | None:
        """Those after a round, which only the latest round has: after an earlier one they must be summed up again."""
        path = self._folder / _PREDICTIONS.format(t)
        if not path.exists():
            warnings.warn(
                f"{str(path)!r} is missing: the fit goes on from round {t}, but to rounding only",
                UserWarning,
                stacklevel=users_line(),
            )
            return None
        with _blamed(path, "delete it to go on to rounding only, or the whole folder to begin anew"):
            return self._read(path.name, "predictions").finite("pred", members, None, outputs)

    def keep(self, news: Round, active: ActiveSet) -> None:
        """Write a round's news, and the predictions of an active set that could not find them again."""
        if news.atoms is not None and news.atoms.foreign is not None:
            raise ValueError(
                f"{news.atoms.foreign} is not gce's own and cannot go into a checkpoint: fit without one, and keep the "
                "model with joblib.dump"
            )
        if self._fresh:
            head = Parts({"content": "checkpoint", "seed": self.seed, "about": self._about})
            container.write(self._folder / _HEAD, head.meta, {})
            self._fresh = False
        standing = active.standing
        if standing.pred is not None:
            self._write(_PREDICTIONS.format(news.t), "predictions", Parts({}, {"pred": standing.pred}))
        about = {"members": standing.members, "cache_bytes": standing.cache_bytes, "cached": standing.cached}
        parts = courses.store([news], self._members)
        parts.add("standing", Parts(about))
        self._write(_ROUND.format(news.t), "round", parts)
        # from here on nobody asks for earlier predictions; a kill may have left those of two rounds
        for t in (news.t - 2, news.t - 1):
            (self._folder / _PREDICTIONS.format(t)).unlink(missing_ok=True)

    def _write(self, name: str, content: str, parts: Parts) -> None:
        container.write(self._folder / name, {"content": content, "of": self._name, **parts.meta}, parts.tensors)

    def _read(self, name: str, content: str) -> Parts:
        parts = Parts(*container.read(self._folder / name))
        parts.choice("content", (content,))
        if parts.meta.get("of") != self._name:
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
