"""What went wrong, in one sentence and an exit code.

0 fine; 1 the work failed (bad data, an unreadable file); 2 the command was wrong; 130 interrupted by Ctrl-C; 141 nobody
reads standard output any more.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import typer

from gce.cli.rendering import fail, say, warn

FAILED, INTERRUPTED, UNHEARD = 1, 130, 141

Command = TypeVar("Command", bound=Callable[..., None])


class DataError(Exception):
    """What a user has to know, in one sentence."""


#: Errors that are written to be read by users.
_MEANT = (DataError, ValueError, TypeError, OSError, ImportError)


def told(command: Command) -> Command:
    """A command whose failures are told: a sentence on standard error, a traceback with ``--debug`` alone."""

    @functools.wraps(command)
    def run(*args: Any, debug: bool = False, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **options)
                # what is left in the buffer would otherwise fail where nobody listens
                sys.stdout.flush()
            except (typer.Exit, typer.BadParameter):
                raise
            except BrokenPipeError:
                # the interpreter flushes once more when it ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(UNHEARD) from None
            except KeyboardInterrupt:
                say("interrupted")
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if debug:
                    raise
                fail(sentence(error) + ("" if isinstance(error, _MEANT) else " (--debug shows where)"))
                raise typer.Exit(FAILED) from None

    return run  # type: ignore[return-value]


def sentence(error: BaseException) -> str:
    """An error's first line, with the file where the system names one and its kind where nobody wrote it for users."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return text if text and isinstance(error, _MEANT) else ": ".join(filter(None, (type(error).__name__, text)))


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    warn(next(iter(str(message).splitlines()), ""))
