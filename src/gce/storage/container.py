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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

FORMAT, VERSION = "gce", 2
#: Ends the names of files that are being written.
TEMPORARY = ".tmp"

Meta = dict[str, Any]
Tensors = dict[str, Tensor]

#: Bytes of a header that are read at all, and values in its JSON, those of the metadata included: a JSON value takes up
#: to about 150 bytes of memory, so that a hostile header costs some hundred MiB at most.
HEADER_BYTES, JSON_VALUES = 2**25, 2_000_000
#: Tensors of a file: atoms are stacked, so that some dozens are usual.
_MOST_TENSORS = 10_000
#: The only key of safetensors' own metadata; a second one would escape the checksum.
_KEY = "gce"
#: No booleans: their bytes may be altered without altering them.
_DTYPES = ("F64", "F32", "I64", "I32", "U8")

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
    """Write a file whole or not at all; see :func:`packed`."""
    put(Path(path), packed(path, meta, tensors))


def packed(path: str | Path, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a file.

    Parameters
    ----------
    path : str or Path
        For errors to name.
    meta : dict
        JSON values, none of them an infinite or missing number.
    tensors : dict of Tensor
        Of type float64, float32, int64, int32 or uint8, on any device.
    """
    # copies: tensors in a file must not share memory
    ready = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    body = {"format": FORMAT, "version": VERSION, **meta}
    text = _canonical({**body, "sha256": _checksum(body, ready)})
    data = save(ready, {_KEY: text})
    length = int.from_bytes(data[:8], "little")
    if length > HEADER_BYTES or _values(data[8 : 8 + length]) > JSON_VALUES:
        raise ValueError(f"{str(path)!r} would need {len(text):,} bytes of metadata, more than a file may have")
    return data


def put(path: Path, data: bytes) -> None:
    """Give a file its contents, all of them or none."""
    with replacing(path) as part:
        part.write_bytes(data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside another one, which takes its place and its permissions when it was written without an error.

    A link stays one, and what it leads to is replaced. What the system has against it is said with the file's name.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        # renaming would put a file in place of a device
        raise ValueError(f"{str(path)!r} is there and is not a file: give the path of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to: make it first")
    part = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        part.touch(exist_ok=False)
        mode = stat.S_IMODE((path if path.exists() else part).stat().st_mode)
        # from the start, so that nobody else can read what only its owner may
        part.chmod(mode | stat.S_IWUSR)
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(mode)
        part.replace(path)
        _settle(path.parent)
    except OSError as error:
        if error.errno is None:
            raise
        # a full disk names no file, and nobody knows the name of the new one
        raise OSError(error.errno, error.strerror, str(path)) from error
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
    return _contents(Path(path), *_opened(Path(path)))


def unpacked(path: str | Path, data: bytes) -> tuple[Meta, Tensors]:
    """The same of bytes that were :func:`packed` for a path."""
    return _contents(Path(path), data, _header(Path(path), data[8 : 8 + int.from_bytes(data[:8], "little")]))


def _contents(path: Path, data: bytes, header: dict[str, Any]) -> tuple[Meta, Tensors]:
    meta = _parsed(path, header.pop("__metadata__", None))
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") not in _DTYPES:
            refuse(path, f"holds a tensor of a type that gce does not write ({name[:50]!r})")
    try:
        tensors = load(data)
    except SafetensorError as error:
        refuse(path, f"is not a safetensors file, or is cut off or altered ({first_line(error)})", error)
    except (RuntimeError, TypeError, OverflowError) as error:
        refuse(path, f"holds a tensor that cannot be read ({first_line(error)})", error)
    if any(max(tensor.shape, default=1) > len(data) for tensor in tensors.values()):
        refuse(path, "holds a tensor that is longer than the file")
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


def _opened(path: Path) -> tuple[bytes, dict[str, Any]]:
    """A file's bytes and the JSON of its header.

    They are read once, so that nobody can put others in their place after they were checked, and kept in memory of our
    own, which stays as it is whatever becomes of the file.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        refuse(path, "is not a file")
    with path.open("rb") as file:
        size = file.read(8)
        length = int.from_bytes(size, "little")
        text = file.read(length) if 0 < length <= HEADER_BYTES else b""
        if not 0 < length == len(text):
            refuse(path, "is not a safetensors file, or is cut off")
        header = _header(path, text)
        return size + text + file.read(), header


def _header(path: Path, text: bytes) -> dict[str, Any]:
    """The JSON of a header."""
    if _values(text) > JSON_VALUES:
        refuse(path, "has a header that gce would not write")
    header = _json(path, text)
    if not isinstance(header, dict):
        refuse(path, "is not a safetensors file")
    if len(header) > _MOST_TENSORS:
        refuse(path, f"holds more than {_MOST_TENSORS} tensors")
    return header


def _json(path: Path, text: str | bytes) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        refuse(path, f"has a header that cannot be read ({first_line(error)})", error)


def _parsed(path: Path, metadata: Any) -> Meta:
    """The JSON of the metadata, once its format and version are known ones."""
    text = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        refuse(path, "is a safetensors file, but not one of gce's")
    meta = _json(path, text)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        refuse(path, "is a safetensors file, but not one of gce's")
    version = meta.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        refuse(path, "has metadata that gce would not write")
    if version > VERSION:
        raise ModelFileError(
            f"{str(path)!r} was written by format version {version}, this gce reads up to {VERSION}", "upgrade gce"
        )
    if metadata.keys() != {_KEY}:
        refuse(path, "has metadata that gce would not write")
    return meta


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        # other readers might take the first of them
        raise ValueError("a key is there twice")
    return values


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"{text} is no finite number")
    return value


def _values(text: bytes) -> int:
    """At least as many values as JSON text can hold."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


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
    # the file is there already; not every file system has an answer
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def first_line(error: BaseException) -> str:
    """What an error says, short and harmless to a terminal."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
