"""Loops compiled by numba and cached on disk, or run as plain Python where numba is not installed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

import numpy as np

logger = logging.getLogger(__name__)

Loop = TypeVar("Loop", bound=Callable[..., Any])

#: Messages about numba's cache that have been logged: once per process, not once per loop.
_logged: set[str] = set()


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """Decorator: ``numba.njit`` with these options and a cache on disk; an ImportError if numba is not installed."""
    from numba import njit

    def decorate(loop: Loop) -> Loop:
        dispatcher = njit(**options)(loop)
        # under NUMBA_DISABLE_JIT numba returns the loop itself
        return dispatcher if dispatcher is loop else _cached(dispatcher)

    return decorate


def jit(**options: Any) -> Callable[[Loop], Loop]:
    """Decorator: like :func:`compiled`, but plain Python, far slower, if numba is not installed."""

    def decorate(loop: Loop) -> Loop:
        try:
            return compiled(**options)(loop)
        except ImportError as error:
            _warn_of_plain_loops(loop.__module__, str(error))
            return _plain(loop)

    return decorate


def interruptible(loop: Loop) -> Loop:
    """Decorator: raise KeyboardInterrupt on Ctrl-C in a compiled loop.

    numba runs Python code to return arrays. A signal handler that raises there leaves its exception set while numba
    continues, and Python raises a SystemError, or several, each caused by the one before.
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
    """numba's cache on disk, whose errors are logged and ignored: a loop can be compiled without it."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    @property
    def cache_path(self) -> str:
        path: str = self._cache.cache_path
        return path

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return self._cache.load_overload(signature, context)
        except Exception as error:  # unpickling a damaged file can raise anything
            _log_once(
                "numba's cache in %s cannot be read (%s): loops are compiled again and the cache is overwritten; if "
                "this happens again, empty the folder, or set NUMBA_CACHE_DIR to another one",
                self.cache_path,
                error,
            )
            self._clear()
            return None

    def _clear(self) -> None:
        """Empty the index: numba reads the old one before it writes a new one."""
        try:
            self.flush()
        except OSError as error:
            logger.debug("numba's cache in %s cannot be emptied: %s", self.cache_path, error)

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            self._cache.save_overload(signature, result)
        except Exception as error:  # a full disk, or a damaged index that could not be replaced
            _log_once(
                "numba's cache in %s cannot be written (%s): every process compiles its loops again, which may take a "
                "minute; free disk space, or set NUMBA_CACHE_DIR to another folder",
                self.cache_path,
                error,
            )

    def flush(self) -> None:
        self._cache.flush()


def _cached(dispatcher: Any) -> Any:
    try:
        dispatcher.enable_caching()
    except (RuntimeError, OSError):
        _log_once(
            "numba finds no writable folder for its cache: every process compiles its loops again, which may take a "
            "minute; set NUMBA_CACHE_DIR to a permanent, writable folder"
        )
        return dispatcher
    dispatcher._cache = _Cache(dispatcher._cache)
    return dispatcher


def _log_once(message: str, folder: str = "", error: Exception | None = None) -> None:
    if message in _logged:
        return
    _logged.add(message)
    if error is None:
        logger.warning(message)
    else:
        logger.warning(message, folder, f"{type(error).__name__}: {error}")


@cache
def _warn_of_plain_loops(name: str, error: str) -> None:
    logger.warning("%s cannot be compiled (%s): it runs as plain Python, a hundred times slower", name, error)


def _plain(loop: Loop) -> Loop:
    """A loop in plain Python, where numbers overflow and divide as in compiled loops."""

    @wraps(loop)
    def run(*given: Any) -> Any:
        with np.errstate(all="ignore"):
            return loop(*given)

    return cast(Loop, run)
