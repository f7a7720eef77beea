"""One safetensors file: JSON about it, tensors, and a checksum over both.

A file is data that a stranger may have written. Reading it runs no code from it, follows no name into Python, and takes
no more memory than a small multiple of its size: what does not hold is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

FORMAT, VERSION = "gce", 1
#: Ends the names of files that are being written.
TEMPORARY = ".tmp"

Meta = dict[str, Any]
Tensors = dict[str, Tensor]

#: Bytes of a header that are read at all, and values in its JSON: a JSON value takes up to about 150 bytes of memory,
#: so that a hostile header costs some hundred MiB at most.
HEADER_BYTES, JSON_VALUES = 2**25, 2_000_000
#: Tensors of a file: atoms are stacked, so that some dozens are usual.
_MOST_TENSORS = 10_000
#: The only key of safetensors' own metadata; a second one would escape the checksum.
_KEY = "gce"
#: No booleans: their bytes may be altered without altering them.
_DTYPES = (torch.float64, torch.float32, torch.int64, torch.uint8)


ADVICE = "get the file again or write it anew"


class ModelFileError(ValueError):
    """A file that cannot be what it should be: damaged, altered, foreign, or of a later format.

    Parameters
    ----------
    problem : str
        The file and what is wrong with it.
    advice : str
        What to do.
    """

    def __init__(self, problem: str, advice: str = ADVICE) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}"


def write(path: str | Path, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or Path
    meta : dict
        JSON values, none of them an infinite or missing number.
    tensors : dict of Tensor
        Of type float64, float32, int64 or uint8, on any device.
    """
    # copies: tensors in a file must not share memory
    ready = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    body = {"format": FORMAT, "version": VERSION, **meta}
    text = _canonical({**body, "sha256": _checksum(body, ready)})
    data = save(ready, {_KEY: text})
    if int.from_bytes(data[:8], "little") > HEADER_BYTES or _values(text) > JSON_VALUES:
        raise ValueError(f"{str(path)!r} would need {len(text):,} bytes of metadata, more than a file may have")
    put(Path(path), data)


def put(path: Path, data: bytes) -> None:
    """Give a file its contents, all of them or none."""
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _settle(path.parent)
    finally:
        part.unlink(missing_ok=True)


def read(path: str | Path) -> tuple[Meta, Tensors]:
    """The metadata and tensors of a file, as they were written.

    Raises
    ------
    ModelFileError
        The file is not one of gce's, is damaged or altered, or was written by a later format.
    OSError
        There is no such file, or it may not be read.
    """
    path = Path(path)
    if not stat.S_ISREG(path.stat().st_mode):
        refuse(path, "is not a file")
    with path.open("rb") as file:
        length, size = int.from_bytes(file.read(8), "little"), path.stat().st_size
    if not 0 < length <= min(size - 8, HEADER_BYTES):
        refuse(path, "is not a safetensors file, or is cut off")
    try:
        with safe_open(path, framework="pt") as opened:
            meta = _parsed(path, opened.metadata())
            if len(opened.keys()) > _MOST_TENSORS:
                refuse(path, f"holds more than {_MOST_TENSORS} tensors")
            # copies: the file may be overwritten while the model is in use
            tensors = {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118
    except SafetensorError as error:
        refuse(path, f"is not a safetensors file, or is cut off or altered ({first_line(error)})", error)
    except (RuntimeError, TypeError, OverflowError) as error:
        refuse(path, f"holds a tensor that cannot be read ({first_line(error)})", error)
    for name, tensor in tensors.items():
        if tensor.dtype not in _DTYPES or max(tensor.shape, default=1) > size:
            refuse(path, f"holds a tensor {name!r} of type {tensor.dtype} and shape {tuple(tensor.shape)}")
    given = meta.pop("sha256", None)
    if given != _checksum(meta, tensors):
        refuse(path, "was altered or damaged: its checksum does not match its contents")
    return meta, tensors


def refuse(path: str | Path, what: str, cause: BaseException | None = None) -> NoReturn:
    """Say what is wrong with a file."""
    raise ModelFileError(f"{str(path)!r} {what}") from cause


def sweep(folder: Path, names: str) -> None:
    """Delete what interrupted writes of files with names of a pattern left in a folder."""
    for part in folder.glob(f".{names}.*{TEMPORARY}"):
        part.unlink(missing_ok=True)


def _parsed(path: Path, metadata: dict[str, str] | None) -> Meta:
    """The JSON of a header, once its format and version are known ones."""
    text = (metadata or {}).get(_KEY, "")
    if not text:
        refuse(path, "is a safetensors file, but not one of gce's")
    if not text.isascii() or _values(text) > JSON_VALUES:
        refuse(path, "has metadata that gce would not write")
    try:
        meta = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        refuse(path, f"has metadata that cannot be read ({first_line(error)})", error)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        refuse(path, "is a safetensors file, but not one of gce's")
    version = meta.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        refuse(path, "has metadata that gce would not write")
    if version > VERSION:
        raise ModelFileError(
            f"{str(path)!r} was written by format version {version}, this gce reads up to {VERSION}", "upgrade gce"
        )
    if set(metadata or ()) != {_KEY}:
        refuse(path, "has metadata that gce would not write")
    return meta


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"{text} is no finite number")
    return value


def _values(text: str) -> int:
    """At least as many values as JSON text can hold."""
    return text.count(",") + text.count("[") + text.count("{")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    sha = hashlib.sha256(_canonical(meta).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        # the type and shape say how many bytes follow: no two contents look alike to the hash
        sha.update(_canonical([name, str(tensor.dtype), list(tensor.shape)]).encode())
        sha.update(as_bytes(tensor))
    return sha.hexdigest()


def as_bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _settle(folder: Path) -> None:
    """Ask the system to remember a new name in a folder, where folders can be asked."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
