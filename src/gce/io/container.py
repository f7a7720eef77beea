"""A safetensors file with JSON metadata, tensors, and a checksum of both.

A file may come from an untrusted source. Reading it runs no code from it, imports nothing by name, and needs at most a
small multiple of its size in memory; an invalid file raises an error of one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

FORMAT, VERSION = "gce", 7

Meta = dict[str, Any]
Tensors = dict[str, Tensor]

#: Maximum size of a header in bytes, and maximum number of values in its JSON, including the metadata: a JSON value
#: takes up to about 150 bytes of memory, so that a malicious header costs a few hundred MiB at most.
HEADER_BYTES, JSON_VALUES = 2**25, 2_000_000
#: Maximum number of tensors in a file: atoms are stacked, so that a few dozen are usual.
_MAX_TENSORS = 10_000
#: The only key of safetensors' own metadata; another one would not be covered by the checksum.
_KEY = "gce"
#: No booleans: their bytes can be modified without changing their values.
_DTYPES = ("F64", "F32", "I64", "I32", "I16", "U8")

ADVICE = "get or write the file again"


class ModelFileError(ValueError):
    """A model file is damaged, modified, not written by gce, or of a later format.

    Parameters
    ----------
    problem : str
        The file, and what is wrong with it.
    advice : str
        What to do about it.

    Examples
    --------
    >>> import gce
    >>> with open("model.safetensors", "wb") as file:
    ...     _ = file.write(b"something else")
    >>> try:
    ...     gce.load("model.safetensors")
    ... except gce.ModelFileError as error:
    ...     "model.safetensors" in error.problem
    True
    """

    def __init__(self, problem: str, advice: str = ADVICE) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}"


def write(path: str | Path, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write a file atomically.

    Parameters
    ----------
    path : str or Path
        The file.
    meta, tensors : dict
        See :func:`serialize`.
    """
    # most fits write no file
    from gce.io.atomic import atomic_replace

    with atomic_replace(Path(path)) as part:
        part.write_bytes(serialize(path, meta, tensors))


def serialize(path: str | Path, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """The contents of a file.

    Parameters
    ----------
    path : str or Path
        Name of the file in errors.
    meta : dict
        JSON values without NaN and infinity.
    tensors : dict of Tensor
        float64, float32, int64, int32, int16 or uint8, on any device.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        The metadata are too large.
    """
    # copies: safetensors does not accept tensors that share memory
    ready = {name: t.detach().cpu().clone(memory_format=torch.contiguous_format) for name, t in tensors.items()}
    body = {"format": FORMAT, "version": VERSION, **meta}
    text = _canonical({**body, "sha256": checksum(body, ready)})
    data = save(ready, {_KEY: text})
    length = int.from_bytes(data[:8], "little")
    if length > HEADER_BYTES or _values(data[8 : 8 + length]) > JSON_VALUES:
        raise ValueError(f"{str(path)!r} would need {len(text):,} bytes of metadata, which is too much")
    return data


def read(path: str | Path) -> tuple[Meta, Tensors]:
    """The metadata and tensors of a file.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    ModelFileError
        The file was not written by gce, is damaged or modified, or is of a later format.
    OSError
        The file does not exist or cannot be read.
    """
    return _contents(Path(path), *_read_file(Path(path)))


def deserialize(path: str | Path, data: bytes) -> tuple[Meta, Tensors]:
    """The metadata and tensors of serialized contents; ``path`` names them in errors.

    Parameters
    ----------
    path : str or Path
        Name of the file in errors.
    data : bytes
        A result of :func:`serialize`.

    Returns
    -------
    tuple of dict
    """
    header = data[8 : 8 + int.from_bytes(data[:8], "little")]
    return _contents(Path(path), data, _described(Path(path), header, len(data)))


def _contents(path: Path, data: bytes, meta: Meta) -> tuple[Meta, Tensors]:
    try:
        tensors = load(data)
    except SafetensorError as error:
        raise_file_error(path, f"is not a safetensors file, or is truncated or modified ({first_line(error)})", error)
    except (RuntimeError, TypeError, OverflowError) as error:
        raise_file_error(path, f"contains a tensor that cannot be read ({first_line(error)})", error)
    if any(max(tensor.shape, default=1) > len(data) for tensor in tensors.values()):
        raise_file_error(path, "contains a tensor that is larger than the file")
    if meta.pop("sha256", None) != checksum(meta, tensors):
        raise_file_error(path, "was modified or damaged: its checksum does not match its contents")
    return meta, tensors


def raise_file_error(path: str | Path, problem: str, cause: BaseException | None = None) -> NoReturn:
    """Raise a ModelFileError about a file, for instance "is not a file".

    Parameters
    ----------
    path : str or Path
        The file.
    problem : str
        What is wrong with it.
    cause : BaseException, optional
        The cause of the error.
    """
    raise ModelFileError(f"{str(path)!r} {problem}") from cause


def _read_file(path: Path) -> tuple[bytes, Meta]:
    """The contents of a file and its metadata; of a file that is not ours, only the header is read.

    The contents are read once into memory, so that they cannot change after they were checked.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise_file_error(path, "is not a file")
    with path.open("rb") as file:
        size = file.read(8)
        length = int.from_bytes(size, "little")
        text = file.read(length) if 0 < length <= HEADER_BYTES else b""
        if not 0 < length == len(text):
            raise_file_error(path, "is not a safetensors file, or is truncated")
        total = os.fstat(file.fileno()).st_size
        meta = _described(path, text, total)
        # no more than was checked, if the file grows meanwhile
        return size + text + file.read(total - 8 - length), meta


def _described(path: Path, text: bytes, size: int) -> Meta:
    """The metadata of a header, whose tensors must be of our dtypes and fill a file of ``size`` bytes."""
    header = _header(path, text)
    meta = _parse_metadata(path, header.pop("__metadata__", None))
    end = 8 + len(text)
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.get("dtype") not in _DTYPES:
            raise_file_error(path, f"contains a tensor of an unsupported dtype ({name[:50]!r})")
        match entry.get("data_offsets"):
            # a number of many digits is no place, and a long message
            case [int(), int(last)] if 0 <= last < 2**63:
                end = max(end, 8 + len(text) + last)
            case _:
                raise_file_error(path, f"contains a tensor without a place in the file ({name[:50]!r})")
    if end != size:
        length = f"its header describes {end:,} bytes, but it has {size:,}"
        raise_file_error(path, f"is not a safetensors file, or is truncated or modified ({length})")
    return meta


def _header(path: Path, text: bytes) -> dict[str, Any]:
    """The JSON of a header."""
    if _values(text) > JSON_VALUES:
        raise_file_error(path, "has an invalid header")
    header = _json(path, text)
    if not isinstance(header, dict):
        raise_file_error(path, "is not a safetensors file")
    if len(header) > _MAX_TENSORS:
        raise_file_error(path, f"contains more than {_MAX_TENSORS} tensors")
    return header


def _json(path: Path, text: str | bytes) -> Any:
    try:
        return json.loads(
            text, parse_constant=_reject_constant, parse_float=_finite, object_pairs_hook=_reject_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise_file_error(path, f"has a header that cannot be read ({first_line(error)})", error)


def _parse_metadata(path: Path, metadata: Any) -> Meta:
    """The JSON of the metadata, after its format and version are checked."""
    text = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(text, str):
        raise_file_error(path, "is a safetensors file, but was not written by gce")
    meta = _json(path, text)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise_file_error(path, "is a safetensors file, but was not written by gce")
    version = meta.get("version")
    # a number of many digits is no version, and a long message
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version < 10**6:
        raise_file_error(path, "has invalid metadata")
    if version > VERSION:
        raise ModelFileError(
            f"{str(path)!r} has format version {version}, but this version of gce reads up to {VERSION}", "upgrade gce"
        )
    if metadata.keys() != {_KEY}:
        raise_file_error(path, "has invalid metadata")
    return meta


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        # other parsers might use the first of them
        raise ValueError("a key occurs twice")
    return values


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if abs(value) == float("inf"):
        raise ValueError(f"{text} is not a finite number")
    return value


def _values(text: bytes) -> int:
    """An upper bound on the number of values in JSON text."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def checksum(meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """The SHA-256 of metadata and of contiguous tensors on the CPU.

    Parameters
    ----------
    meta : dict
        JSON values without NaN and infinity.
    tensors : dict of Tensor

    Returns
    -------
    str
    """
    sha = hashlib.sha256(_canonical(meta).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        # the dtype and shape determine the number of bytes that follow, so that different contents have different input
        sha.update(_canonical([name, str(tensor.dtype), list(tensor.shape)]).encode())
        sha.update(as_bytes(tensor))
    return sha.hexdigest()


def as_bytes(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor on the CPU."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def first_line(error: BaseException) -> str:
    """The first line of an error message, truncated and without control characters."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
