"""What may come of a call with odd inputs: a finite result, or an exception in words. All else is a fault."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

import gce
from campaign.inputs_words import OF_SKLEARN, Mention, named, printable, shortened

#: Where the package is; a checkout may have its name too.
OWN = f"{Path(gce.__file__).parent}{os.sep}"
#: Exceptions that scikit-learn's users expect of validation; files that are missing or unwritable are OSErrors.
CUSTOMARY = (ValueError, TypeError, NotFittedError)
#: Those that are about the machine: lawful where a path or an optional package is in the words.
OF_THE_MACHINE = (ImportError, MemoryError, OSError)
#: Warnings of one call beyond which they are a flood.
MOST_WARNINGS = 3
#: Phrases of numpy, torch and Python itself about their own business.
INTERNAL = (
    "index out of bounds", "is out of bounds", "out of range", "'NoneType'", "has no attribute", "object is not",
    "unsupported operand", "not supported between", "must match the size", "could not be broadcast",
    "not broadcastable",
    "cannot be broadcast", "mat1 and mat2", "expected scalar type", "Expected all tensors", "division by zero",
    "truth value", "unhashable", "cannot unpack", "not enough values to unpack", "too many values to unpack",
    "ufunc", "safe_open", "cannot convert float", "assert", "array must not contain infs", "zero-size array",
    "need at least one array", "argument must be a string or a real number", "missing 1 required",
    "positional argument",
    "unexpected keyword", "int too large to convert", "Python int too large", "not JSON serializable", "Object of type",
    "DefaultCPUAllocator", "unrecognized", "<lambda>", "inhomogeneous", "codec can't", "surrogates not allowed",
)  # fmt: skip
#: Where scikit-learn's own checks use such a phrase, its users know it.
FOREIGN = (f"{Path('sklearn')}/",)
MOST_LETTERS = 2000
#: What precedes the words of a check of validation rows, which may be scikit-learn's.
VALIDATION = "validation rows (X_val, y_val): "
#: What is noted at the error of a member of a stack.
OF_MEMBERS = re.compile(r"while fitting member '.+' \(\w+\)")
#: What an error about the machine names.
MACHINE_WORDS = ("file", "folder", "path", "install", "gib", "allocate", "/", "director")


class Hang(BaseException):
    """A case took longer than it may."""


class FaultError(Exception):
    """A broken promise, in words."""


def watched(
    what: str, call: Callable[[], Any], mentions: tuple[Mention, ...] = (), others: tuple[str, ...] = ()
) -> Any:
    """The result of a call whose warnings are few.

    Parameters
    ----------
    what : str
        The call, for the words of a fault.
    call : callable
        Called without arguments.
    mentions : tuple of str or tuple
        What an exception must name one of: the names and values of what is odd. All parts of a tuple are needed.
    others : tuple of str
        Parts of the paths of modules whose warnings are not ours, such as those of a stack's members.

    Raises
    ------
    FaultError
        An exception is not lawful, or the warnings are not.
    Refused
        The call ended in a lawful exception.
    """
    refusal = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = call()
        except FaultError:
            raise
        except Exception as error:
            problem = unlawful(error, mentions)
            if problem:
                raise FaultError(f"{what}: {problem}") from error
            refusal = error
    check_warnings(what, [own for own in said if not any(part in own.filename for part in others)])
    if refusal is not None:
        raise Refused(what, refusal)
    return result


class Refused(Exception):  # noqa: N818
    """A call was refused, lawfully."""

    def __init__(self, what: str, error: Exception) -> None:
        super().__init__(f"{what}: {type(error).__name__}: {error}")
        self.error = error


def check_warnings(what: str, said: list[warnings.WarningMessage]) -> None:
    """Raise a FaultError where warnings are many, or not for users."""
    for warning in said:
        if not issubclass(warning.category, UserWarning):
            place = f"{Path(warning.filename).name}:{warning.lineno}"
            raise FaultError(f"{what}: {warning.category.__name__} at {place}: {shortened(str(warning.message))}")
    # Python shows the same words of the same line once
    different = {(str(warning.message), warning.filename, warning.lineno) for warning in said}
    if len(different) > MOST_WARNINGS:
        raise FaultError(f"{what}: {len(different)} warnings, the first is {shortened(str(said[0].message))}")


def unlawful(error: Exception, mentions: tuple[Mention, ...]) -> str:
    """What is wrong with an exception; empty where it is as scikit-learn's users expect it."""
    words = str(error)
    shown = f"{type(error).__name__} at {place(error)}: {shortened(words)}"
    if any(OF_MEMBERS.fullmatch(note) for note in getattr(error, "__notes__", ())):
        # a member's own error, as its library raises it
        return ""
    of_the_machine = isinstance(error, OF_THE_MACHINE)
    if not of_the_machine and (not isinstance(error, CUSTOMARY) or of_numpy(error)):
        return shown
    if of_the_machine and not any(word in words.casefold() for word in MACHINE_WORDS):
        return f"names no path, package or size: {shown}"
    # frames of compiled code have no file
    last = next(frame for frame in traceback.extract_tb(error.__traceback__)[::-1] if frame.filename[0] != "<")
    ours = last.filename.startswith(OWN)
    if len(words.split()) < 3 or (ours and (len(words) > MOST_LETTERS or not printable(words))):
        return f"not a sentence of at most {MOST_LETTERS} letters: {shown}"
    if not ours and not any(part in last.filename for part in FOREIGN) and not isinstance(error, OSError):
        return f"raised outside of validation: {shown}"
    if ours and not linecache.getline(last.filename, last.lineno or 0).strip().startswith("raise"):
        return f"not raised by a check: {shown}"
    # a member's own words are quoted, after ours
    own, of_member, _ = words.partition("its own error: ")
    if internal(own if ours and of_member else words, ours and VALIDATION not in words):
        return f"internal words: {shown}"
    if not of_the_machine and mentions and not named(words, mentions):
        return f"names none of {mentions}: {shown}"
    return ""


def of_numpy(error: Exception) -> bool:
    """Whether an exception is of a type that numpy keeps to itself, such as those of its ufuncs."""
    module = type(error).__module__
    return module.startswith("numpy.") and module != "numpy.exceptions"


def internal(words: str, ours: bool) -> bool:
    """Whether words are of numpy's, torch's or Python's own business; scikit-learn repeats some that its users know."""
    known = not ours and any(phrase in words for phrase in OF_SKLEARN)
    return not known and any(phrase in words for phrase in INTERNAL)


def place(error: BaseException) -> str:
    """The innermost lines of an exception in gce and in all."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename.startswith(OWN)][-1:]
    both = own if own == frames[-1:] else [*own, frames[-1]]
    return ", ".join("/".join((*Path(f.filename).parts[-2:-1], f"{Path(f.filename).name}:{f.lineno}")) for f in both)


def check_predictions(what: str, values: Any, rows: int | None) -> None:
    """Raise a FaultError where predictions are not finite, or not one for each row."""
    array = np.asarray(values)
    if rows is not None and (array.ndim == 0 or len(array) != rows):
        raise FaultError(f"{what}: shape {array.shape} for {rows} rows")
    if array.dtype.kind in "fc" and not np.isfinite(array).all():
        raise FaultError(f"{what}: {int((~np.isfinite(array)).sum())} of {array.size} values are not finite")


def check_intervals(what: str, values: Any, rows: int | None) -> None:
    """Raise a FaultError where ends are not finite, unless all are infinite: held-out rows do not suffice."""
    array = np.asarray(values)
    if not (np.isneginf(array[..., 0]) & np.isposinf(array[..., 1])).all():
        check_predictions(what, values, rows)


def check_probabilities(what: str, values: Any, rows: int | None, one_class: bool) -> None:
    """Raise a FaultError where probabilities are outside of [0, 1], or those of classes do not sum to 1."""
    check_predictions(what, values, rows)
    array = np.asarray(values, dtype=np.float64)
    if (array < 0).any() or (array > 1).any():
        raise FaultError(f"{what}: from {array.min()} to {array.max()}")
    if one_class and np.abs(array.sum(1) - 1).max(initial=0) > 1e-6:
        raise FaultError(f"{what}: sums from {array.sum(1).min()} to {array.sum(1).max()}")


def said_of(error: BaseException) -> str:
    """An exception that no call expected, in words: of the fuzzer itself, or a hang."""
    if isinstance(error, Hang):
        frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(OWN)]
        where = f", at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"no end in the time allowed{where}"
    if isinstance(error, FaultError):
        return str(error)
    return f"the fuzzer itself: {type(error).__name__} at {place(error)}: {shortened(str(error))}"


def quiet() -> None:
    """Let nothing that a case prints reach the terminal of the campaign."""
    sys.stdout = sys.stderr = Path("/dev/null").open("w")  # noqa: SIM115
