"""The compiled kernels of ``native/``, called by ctypes.

A call releases the interpreter lock. Kernels are compiled once for each instruction set, and the best one that the
processor has is loaded; all of them give the same bits. ``GCE_CPU`` may name another one: "baseline", "avx2" or
"avx512".
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

#: Instruction sets, from the one that every processor has to the best.
LEVELS = ("baseline", "avx2", "avx512")

#: Kinds of arguments that are not arrays.
INT, FLOAT = ctypes.c_int64, ctypes.c_double

_OUT_OF_MEMORY = -1
#: An object without contents: its place is the array's.
_PLACE = ctypes.c_char * 0


@cache
def array(dtype: Any) -> Any:
    """The kind of an argument that is a contiguous array of a dtype; an array of another kind is refused.

    As :func:`numpy.ctypeslib.ndpointer`, which takes five times as long.
    """
    expected = np.dtype(dtype)

    def from_param(given: Any) -> Any:
        if not isinstance(given, np.ndarray) or given.dtype != expected or not given.flags.c_contiguous:
            raise TypeError(f"a contiguous array of {expected} is needed")
        buffer: Any = given
        return _PLACE.from_buffer(buffer) if given.flags.writeable else ctypes.c_void_p(given.ctypes.data)

    return type(f"Array_{expected}", (), {"from_param": staticmethod(from_param)})


def kernel(name: str, *kinds: Any, result: Any = None) -> Callable[..., Any]:
    """A function of the library.

    Parameters
    ----------
    name : str
        Its name without the prefix ``gce_``.
    *kinds : ctypes types
        The kinds of its arguments: ``INT``, ``FLOAT`` and :func:`array`.
    result : ctypes type, optional
        What it returns. Default: a status, which becomes a MemoryError where memory does not suffice.

    Returns
    -------
    callable
    """
    function = getattr(library(), f"gce_{name}")
    function.argtypes, function.restype = kinds, ctypes.c_int if result is None else result
    if result is None:
        function.errcheck = _check

    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except ctypes.ArgumentError as error:
            raise _of_argument(error) from None

    return call


def _of_argument(error: ctypes.ArgumentError) -> BaseException:
    """The error itself, or what interrupted the conversion of an argument, of which ctypes keeps the name only."""
    kinds = (KeyboardInterrupt, MemoryError)
    return next((kind() for kind in kinds if f": {kind.__name__}" in str(error)), error)


@cache
def library() -> ctypes.CDLL:
    """The library that suits the processor."""
    baseline = _load("baseline")
    if baseline is None:
        raise ImportError(
            "the compiled kernels of gce are missing: install the package with pip, which builds them (with a C++ "
            "compiler where there is no wheel for the platform)"
        )
    best = LEVELS[baseline.gce_cpu_level()]
    asked = os.environ.get("GCE_CPU", best)
    if asked not in LEVELS or LEVELS.index(asked) > LEVELS.index(best):
        raise ValueError(f"GCE_CPU must be one of {LEVELS[: LEVELS.index(best) + 1]} on this processor, got {asked!r}")
    return baseline if asked == "baseline" else _load(asked) or baseline


def _load(level: str) -> ctypes.CDLL | None:
    found = find_spec(f"gce._utils._native_{level}")
    return None if found is None or found.origin is None else ctypes.CDLL(found.origin)


def _check(status: int, function: Any, given: Any) -> int:
    if status == _OUT_OF_MEMORY:
        raise MemoryError(f"memory does not suffice for {function.__name__}")
    return status
