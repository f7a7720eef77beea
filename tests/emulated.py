"""Kernels of GPUs on a processor, with all threads of their blocks, one after another: see emulated.hpp."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from gce._utils import cuda

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
#: For tests that run kernels this way.
EMULATED = pytest.mark.skipif(COMPILER is None, reason="no compiler here")
FLAGS = ["-shared", "-fPIC", "-std=c++17", "-O1", "-ffp-contract=off", "-Wno-unknown-pragmas"]


@cache
def library():
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "emulated.so"
        command = [COMPILER, *FLAGS, f"-I{HERE}", f"-I{cuda.SOURCES}", str(HERE / "emulated.cpp"), "-o", str(made)]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(made))


class EmulatedKernel:
    """As :class:`gce._utils.cuda.Kernel`, for tensors in a processor's memory."""

    def __init__(self, file, name, device):
        self._function = getattr(library(), name)
        self._function.restype = None

    def __call__(self, blocks, threads, *given, shared=0):
        self._function(*map(ctypes.c_int64, (blocks, threads, shared)), *map(cuda._argument, given))

    def resident_blocks(self, threads, shared=0):
        return 3
