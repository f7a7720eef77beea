"""Kernels of forests and of prediction on a stand-in for a GPU: see emulated_threads.hpp."""

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
#: Of warps and blocks: small ones have as many ways to go wrong, and take less time.
LANES, THREADS = 8, 24
SIZES = [f"-DGCE_LANES={LANES}", f"-DGCE_THREADS={THREADS}"]
FLAGS = ["-shared", "-fPIC", "-std=c++17", "-O1", "-ffp-contract=off", *SIZES]


@cache
def library():
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "emulated.so"
        command = [COMPILER, *FLAGS, f"-I{HERE}", f"-I{cuda.SOURCES}", HERE / "emulated_forests.cpp", "-o", made]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(made))


class EmulatedKernel:
    """As :class:`gce._utils.cuda.Kernel`, for tensors in a processor's memory; the order of threads is drawn anew."""

    launches = 0

    def __init__(self, file, name, device):
        self._function = getattr(library(), name)
        self._function.restype = None

    def __call__(self, blocks, threads, *given):
        EmulatedKernel.launches += 1
        sizes = ctypes.c_int64(blocks), ctypes.c_int64(min(threads, THREADS)), ctypes.c_uint64(EmulatedKernel.launches)
        self._function(*map(cuda._argument, given), *sizes)

    def resident_blocks(self, threads):
        return 3
