"""Errors as one line on standard error and an exit code.

0 success; 1 failure (invalid data, unreadable file); 2 usage error; 130 interrupted by Ctrl-C; 141 standard output was
closed by its reader.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import typer

from gce.cli.rendering import fail, say, warn

FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141

Command = TypeVar("Command", bound=Callable[..., None])


class DataError(Exception):
    """An error in the user's data, described in one sentence."""


#: Errors whose messages are written for users.
_FOR_USERS = (DataError, ValueError, TypeError, OSError, ImportError)


def report_errors(command: Command) -> Command:
    """Wrap a command: errors become one line on standard error, or a traceback with ``--debug``."""

    @functools.wraps(command)
    def run(*args: Any, debug: bool = False, **options: Any) -> None:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                command(*args, **options)
                # a closed pipe is reported here rather than when the interpreter exits
                sys.stdout.flush()
            except (typer.Exit, typer.BadParameter):
                raise
            except BrokenPipeError:
                # the interpreter flushes once more when it exits
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(BROKEN_PIPE) from None
            except KeyboardInterrupt:
                say("interrupted")
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if debug:
                    raise
                fail(sentence(error) + ("" if isinstance(error, _FOR_USERS) else " (--debug shows the traceback)"))
                raise typer.Exit(FAILED) from None

    return run  # type: ignore[return-value]


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Put the name of a file before what a model says of its rows: the model knows columns only."""
    try:
        yield
    except ValueError as error:
        raise DataError(f"{file}: {error}") from error


def sentence(error: BaseException) -> str:
    """The first line of an error, with its file if the system names one, and its type if not written for users."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return text if text and isinstance(error, _FOR_USERS) else ": ".join(filter(None, (type(error).__name__, text)))


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    warn(next(iter(str(message).splitlines()), ""))
