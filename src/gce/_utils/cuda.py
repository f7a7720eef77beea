"""CUDA kernels, compiled at run time by NVRTC, which comes with torch's CUDA builds, and launched on torch's streams.

Sources are the files of ``gce/kernels``, which the compiled loops of ``native/`` share headers with: what both include
computes the same bits. A machine's code is kept in torch's folder of compiled kernels and is made once per version.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SOURCES = Path(__file__).parents[1] / "kernels"

#: Products are never fused with sums: the processor's kernels do not fuse them either.
_OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space", "--define-macro=GCE_CUDA")
#: The first GPUs whose blocks can wait for each other.
_LEAST_CAPABILITY = (6, 0)
# numbers of the driver's interface
_COOPERATIVE_LAUNCH, _DYNAMIC_SHARED_BYTES = 95, 8


class CudaError(RuntimeError):
    """A call of the CUDA driver or of NVRTC failed."""


def missing(device: torch.device) -> str | None:
    """Why kernels cannot run on a device, in words that complete a sentence; None where they can.

    Parameters
    ----------
    device : torch.device
        The device.

    Returns
    -------
    str or None
    """
    if device.type != "cuda":
        return f"{device.type} is no CUDA device"
    return _missing(_index(device))


@cache
def _missing(index: int) -> str | None:
    if torch.version.cuda is None:
        return "torch was built without CUDA"
    capability = torch.cuda.get_device_capability(index)
    if capability < _LEAST_CAPABILITY:
        return f"{torch.cuda.get_device_name(index)} is older than compute capability 6.0"
    try:
        _nvrtc()
        if not _attribute(_COOPERATIVE_LAUNCH, index):
            return f"{torch.cuda.get_device_name(index)} cannot launch blocks that wait for each other"
    except (OSError, CudaError, AttributeError) as error:
        return str(error).splitlines()[0]
    return None


class Kernel:
    """A kernel of a file in ``gce/kernels``, on one device.

    Parameters
    ----------
    function : ctypes.c_void_p
        The driver's handle.
    index : int
        Number of the device.
    """

    def __init__(self, function: ctypes.c_void_p, index: int) -> None:
        self._function, self._index = function, index

    def __call__(self, blocks: int, threads: int, *given: Any, shared: int = 0) -> None:
        """Launch on torch's current stream, and return at once.

        Parameters
        ----------
        blocks, threads : int
            Number of blocks, and of threads in each.
        *given : Tensor, int, float or ctypes.Structure
            Arguments: pointers, int64, double and structures by value.
        shared : int, default=0
            Bytes of dynamic shared memory of a block.
        """
        if blocks:
            self._launch("cuLaunchKernel", blocks, threads, given, shared, (None,))

    def together(self, blocks: int, threads: int, *given: Any, shared: int = 0) -> None:
        """The same for blocks that wait for each other: they must all be resident, see :meth:`resident_blocks`.

        Parameters
        ----------
        blocks, threads : int
            Number of blocks, and of threads in each.
        *given : Tensor, int, float or ctypes.Structure
            Arguments.
        shared : int, default=0
            Bytes of dynamic shared memory of a block.
        """
        self._launch("cuLaunchCooperativeKernel", blocks, threads, given, shared, ())

    def resident_blocks(self, threads: int, shared: int = 0) -> int:
        """How many blocks of so many threads and bytes of dynamic shared memory the device runs at once.

        Parameters
        ----------
        threads : int
            Threads of a block.
        shared : int, default=0
            Bytes of dynamic shared memory of a block.

        Returns
        -------
        int
        """
        found = ctypes.c_int()
        with _context(self._index):
            self._allow(shared)
            _driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(found), self._function, threads,
                    ctypes.c_size_t(shared))  # fmt: skip
        return int(found.value * torch.cuda.get_device_properties(self._index).multi_processor_count)

    def _launch(
        self, how: str, blocks: int, threads: int, given: tuple[Any, ...], shared: int, more: tuple[Any, ...]
    ) -> None:
        values = [_argument(value) for value in given]
        places = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream(self._index).cuda_stream)
        with _context(self._index):
            self._allow(shared)
            _driver(how, self._function, blocks, 1, 1, threads, 1, 1, shared, stream, places, *more)

    def _allow(self, shared: int) -> None:
        # more than 48 KiB are given on request only
        if shared > 48 << 10:
            _driver("cuFuncSetAttribute", self._function, _DYNAMIC_SHARED_BYTES, shared)


def kernel(file: str, name: str, device: torch.device) -> Kernel:
    """A kernel, compiled when it is first asked for.

    Parameters
    ----------
    file : str
        Its file in ``gce/kernels``.
    name : str
        Its name, ``extern "C"``.
    device : torch.device
        Where it will run.

    Returns
    -------
    Kernel
    """
    return _kernel(file, name, _index(device))


@cache
def _kernel(file: str, name: str, index: int) -> Kernel:
    function = ctypes.c_void_p()
    with _context(index):
        _driver("cuModuleGetFunction", ctypes.byref(function), _module(file, index), name.encode())
    return Kernel(function, index)


@cache
def _module(file: str, index: int) -> ctypes.c_void_p:
    major, minor = torch.cuda.get_device_capability(index)
    options = (*_OPTIONS, f"--gpu-architecture=sm_{major}{minor}")
    module, kept = ctypes.c_void_p(), _cache_file(file, options)
    try:
        code = None if kept is None else kept.read_bytes()
    except OSError:
        code = None
    with _context(index):
        if code:
            try:
                _driver("cuModuleLoadData", ctypes.byref(module), code)
                return module
            except CudaError:  # a file that was cut off, say: it is written again
                pass
        code = compiled(file, options)
        _driver("cuModuleLoadData", ctypes.byref(module), code)
    if kept is not None:
        _keep(kept, code)
    return module


def prepare(device: torch.device) -> int:
    """Compile all kernels for a device, and keep them for later processes.

    Parameters
    ----------
    device : torch.device
        The device.

    Returns
    -------
    int
        Number of files.
    """
    files = [name for name in _texts() if name.endswith(".cu")]
    for file in files:
        _module(file, _index(device))
    return len(files)


def compiled(file: str, options: tuple[str, ...], nvrtc: Any = None) -> bytes:
    """Machine code of a file in ``gce/kernels``; every other file there can be included by its name.

    Parameters
    ----------
    file : str
        Its name.
    options : tuple of str
        Of NVRTC.
    nvrtc : ctypes.CDLL, optional
        Default: torch's.

    Returns
    -------
    bytes

    Raises
    ------
    CudaError
        It does not compile; the message is the compiler's.
    """
    library, program, size = _nvrtc() if nvrtc is None else nvrtc, ctypes.c_void_p(), ctypes.c_size_t()
    texts = {name: text for name, text in _texts().items() if name != file}
    headers, names = ((ctypes.c_char_p * len(texts))(*some) for some in (texts.values(), map(str.encode, texts)))
    _check_nvrtc(library, library.nvrtcCreateProgram(
        ctypes.byref(program), _texts()[file], file.encode(), len(texts), headers, names))  # fmt: skip
    try:
        given = (ctypes.c_char_p * len(options))(*map(str.encode, options))
        status = library.nvrtcCompileProgram(program, len(options), given)
        if status:
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise CudaError(f"{file} does not compile with {' '.join(options)}: {log.value.decode(errors='replace')}")
        _check_nvrtc(library, library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check_nvrtc(library, library.nvrtcGetCUBIN(program, code))
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@cache
def _texts() -> dict[str, bytes]:
    """The files of ``gce/kernels`` by name."""
    return {path.name: path.read_bytes() for path in sorted(SOURCES.iterdir()) if path.is_file()}


def _cache_file(file: str, options: tuple[str, ...]) -> Path | None:
    """Where machine code is kept: in the folder of torch's own kernels, by the same environment variables."""
    if os.environ.get("USE_PYTORCH_KERNEL_CACHE") == "0":
        return None
    version = (ctypes.c_int(), ctypes.c_int())
    _nvrtc().nvrtcVersion(*map(ctypes.byref, version))
    named = repr((file, options, [part.value for part in version], sorted(_texts().items())))
    return cache_folder() / f"gce_{hashlib.sha256(named.encode()).hexdigest()}.cubin"


def cache_folder() -> Path:
    """The folder of torch's own kernels."""
    own = os.environ.get("PYTORCH_KERNEL_CACHE_PATH")
    try:
        shared = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # no home
        shared = Path(tempfile.gettempdir())
    return Path(own) if own else Path(shared) / "torch" / "kernels"


def _keep(path: Path, code: bytes) -> None:
    """Write a file whole or not at all; where nothing can be written, it is compiled again by the next process."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        Path(name).replace(path)
    except OSError:
        pass


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def _argument(value: Any) -> Any:
    """A value as the driver takes it."""
    if isinstance(value, Tensor):
        if not value.is_contiguous():
            raise ValueError(f"a contiguous tensor is needed, got one of strides {value.stride()}")
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return ctypes.c_double(value) if isinstance(value, float) else value


@contextmanager
def _context(index: int) -> Iterator[None]:
    """Torch's context of a device, for calls of the driver from any thread."""
    _driver("cuCtxPushCurrent_v2", _primary(index))
    try:
        yield
    finally:
        _driver("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


@cache
def _primary(index: int) -> ctypes.c_void_p:
    torch.cuda.init()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _driver("cuDeviceGet", ctypes.byref(device), index)
    _driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


def _attribute(which: int, index: int) -> int:
    torch.cuda.init()
    found, device = ctypes.c_int(), ctypes.c_int()
    _driver("cuDeviceGet", ctypes.byref(device), index)
    _driver("cuDeviceGetAttribute", ctypes.byref(found), which, device)
    return found.value


def _driver(name: str, *given: Any) -> None:
    status = _function(name)(*given)
    if status:
        text = ctypes.c_char_p()
        _function("cuGetErrorString")(status, ctypes.byref(text))
        raise CudaError(f"{name} failed: {(text.value or b'unknown error').decode()}")


@cache
def _function(name: str) -> Callable[..., int]:
    return getattr(_cuda(), name)


@cache
def _cuda() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@cache
def _nvrtc() -> ctypes.CDLL:
    """NVRTC of torch's version: the one that torch has loaded, or a file beside torch's other libraries."""
    major = str(torch.version.cuda).split(".")[0]
    name = f"nvrtc64_{major}0_0.dll" if sys.platform == "win32" else f"libnvrtc.so.{major}"
    here = Path(torch.__file__).parent
    beside = [*here.parent.glob(f"nvidia/*/*/{name}*"), *here.glob(f"lib/{name}*"), *here.glob("lib/libnvrtc-*.so*")]
    for place in (name, *(str(path) for path in sorted(beside) if "builtins" not in path.name)):
        try:
            library = ctypes.CDLL(place)
        except OSError:
            continue
        load_builtins(*{path.parent for path in beside})
        return library
    raise OSError(f"{name}, the run-time compiler of CUDA {torch.version.cuda}, is not installed")


def load_builtins(*folders: Path) -> None:
    """Load what NVRTC looks for by name while it compiles, and would not find in a folder of its own.

    Parameters
    ----------
    *folders : Path
        Where it may be.
    """
    for path in (path for folder in folders for path in sorted(folder.glob("*nvrtc-builtins*"))):
        # one for another version does no harm, and one that cannot be loaded may not be needed
        with suppress(OSError):
            ctypes.CDLL(str(path))


def _check_nvrtc(library: Any, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CudaError(f"NVRTC failed: {library.nvrtcGetErrorString(status).decode()}")
