"""Loops compiled by numba, kept on disk where that can be done, or run as plain Python where numba is missing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

logger = logging.getLogger(__name__)

Loop = TypeVar("Loop", bound=Callable[..., Any])

#: What numba's cache could not do and the log has been told of: once a process, not once a loop.
_told: set[str] = set()


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """``numba.njit`` with these options, what it compiled kept on disk; an ImportError where numba is missing."""
    from numba import njit

    def made(loop: Loop) -> Loop:
        dispatcher = njit(**options)(loop)
        # under NUMBA_DISABLE_JIT numba hands the loop back
        return dispatcher if dispatcher is loop else _cached(dispatcher)

    return made


def jit(**options: Any) -> Callable[[Loop], Loop]:
    """As :func:`compiled`, or plain Python where numba is missing: the same loops, far slower."""

    def made(loop: Loop) -> Loop:
        try:
            return compiled(**options)(loop)
        except ImportError as error:
            _warn_of_plain_loops(loop.__module__, str(error))
            return _plain(loop)

    return made


def interruptible(loop: Loop) -> Loop:
    """A loop for callers in Python, whose Ctrl-C is a KeyboardInterrupt.

    numba runs Python code to hand out arrays. A signal's handler that raises there leaves its exception set, numba goes
    on, and Python makes a SystemError of it, or several, each caused by the one before.
    """

    @wraps(loop)
    def call(*given: Any) -> Any:
        try:
            return loop(*given)
        except SystemError as error:
            cause: BaseException | None = error
            while isinstance(cause, SystemError):
                cause = cause.__cause__
            if cause is None:
                raise
            raise cause from None

    return cast(Loop, call)


class _Cache:
    """numba's cache on disk, without which a loop can still be compiled: what fails there is told, and no more."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    @property
    def cache_path(self) -> str:
        path: str = self._kept.cache_path
        return path

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return self._kept.load_overload(signature, context)
        except Exception as error:  # what unpickling a damaged file raises can be anything
            _tell_once(
                "numba's cache in %s cannot be read (%s): loops are compiled anew and written over it; should this "
                "happen again, empty the folder, or let NUMBA_CACHE_DIR name another",
                self.cache_path,
                error,
            )
            self._forget()
            return None

    def _forget(self) -> None:
        """An empty index: numba reads the old one before it writes a new one."""
        try:
            self.flush()
        except OSError as error:
            logger.debug("numba's cache in %s cannot be emptied: %s", self.cache_path, error)

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            self._kept.save_overload(signature, result)
        except Exception as error:  # a full disk, or a damaged index that could not be replaced
            _tell_once(
                "numba's cache in %s cannot be written (%s): every process compiles its loops anew, which may take a "
                "minute, until there is room, or NUMBA_CACHE_DIR names another folder",
                self.cache_path,
                error,
            )

    def flush(self) -> None:
        self._kept.flush()


def _cached(dispatcher: Any) -> Any:
    try:
        dispatcher.enable_caching()
    except (RuntimeError, OSError):
        _tell_once(
            "numba finds no folder that it can write to: every process compiles its loops anew, which may take a "
            "minute, until NUMBA_CACHE_DIR names a folder that can be written to and stays"
        )
        return dispatcher
    dispatcher._cache = _Cache(dispatcher._cache)
    return dispatcher


def _tell_once(words: str, folder: str = "", error: Exception | None = None) -> None:
    if words in _told:
        return
    _told.add(words)
    if error is None:
        logger.warning(words)
    else:
        logger.warning(words, folder, f"{type(error).__name__}: {error}")


@cache
def _warn_of_plain_loops(name: str, error: str) -> None:
    logger.warning("%s cannot be compiled (%s): it runs as plain Python, a hundred times slower", name, error)


def _plain(loop: Loop) -> Loop:
    """A loop as Python runs it, with numbers that overflow and divide as compiled ones do."""

    @wraps(loop)
    def run(*given: Any) -> Any:
        with np.errstate(all="ignore"):
            return loop(*given)

    return cast(Loop, run)
