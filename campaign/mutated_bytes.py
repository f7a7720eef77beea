"""Model files altered byte by byte or entry by entry, and files that are something else."""

import io
import json
import os
import pickle
import struct
import tarfile
import zipfile
import zlib

import torch

# Bytes altered by somebody who knows nothing of the format.


def flipped(raw, rng):
    data = bytearray(raw)
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def flipped_in_header(raw, rng):
    data, length = bytearray(raw), int.from_bytes(raw[:8], "little")
    data[rng.randrange(8 + length)] ^= 1 << rng.randrange(8)
    return bytes(data)


def truncated(raw, rng):
    return raw[: rng.choice([rng.randrange(len(raw)), rng.randrange(64), len(raw) - 1 - rng.randrange(8)])]


def grown(raw, rng):
    place = rng.choice([len(raw), rng.randrange(len(raw))])
    return raw[:place] + rng.randbytes(rng.randrange(1, 50)) + raw[place:]


def overwritten(raw, rng):
    first = rng.randrange(len(raw))
    return raw[:first] + rng.randbytes(min(len(raw) - first, rng.randrange(1, 200))) + raw[first + 200 :]


# Tensors and metadata altered with the checksum left as it was.


def header_of(raw):
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def with_header(header, body):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def swapped(raw, rng):
    header, body = header_of(raw)
    names = [name for name in header if name != "__metadata__"]
    one, other = rng.sample(names, 2)
    header[one], header[other] = header[other], header[one]
    return with_header(header, body)


def renamed(raw, rng):
    header, body = header_of(raw)
    name = rng.choice([name for name in header if name != "__metadata__"])
    header[name + "x"] = header.pop(name)
    return with_header(header, body)


def reshaped(raw, rng):
    header, body = header_of(raw)
    entry = header[rng.choice([name for name in header if name != "__metadata__"])]
    entry.update(
        rng.choice(
            [
                {"shape": entry["shape"][::-1] if len(set(entry["shape"])) > 1 else [*entry["shape"], 1]},
                {"shape": [2**60, 2**60]},
                {"shape": [0, 2**62]},
                {"dtype": rng.choice(["F16", "BF16", "F8_E4M3", "U64", "BOOL", "C64", "X"])},
                {"data_offsets": [0, 2**63]},
                {"data_offsets": [8, 0]},
                {"data_offsets": [0, len(body) + 8]},
            ]
        )
    )
    return with_header(header, body)


def annotated(raw, rng):
    header, body = header_of(raw)
    header["__metadata__"]["more"] = "words"
    return with_header(header, body)


def edited_text(raw, rng):
    header, body = header_of(raw)
    text = header["__metadata__"]["gce"]
    place = rng.randrange(len(text))
    header["__metadata__"]["gce"] = text[:place] + chr(rng.randrange(32, 1000)) + text[place + 1 :]
    return with_header(header, body)


def edited_value(raw, rng):
    header, body = header_of(raw)
    meta = json.loads(header["__metadata__"]["gce"])
    holder, key = rng.choice(list(places(meta)))
    before = holder[key]
    holder[key] = rng.choice([value for value in (0, 1, "x", None, [], {}, -1.5, True) if value != before])
    header["__metadata__"]["gce"] = json.dumps(meta)
    return with_header(header, body)


def places(value):
    """Where every value of some JSON stands."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield value, key
        yield from places(item)


# Files that are something else.


class Payload:
    def __reduce__(self):
        # in the current folder, where the program looks for it
        return os.mkdir, ("executed",)


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", pickle.dumps(Payload()))
        file.writestr("bomb", b"\0" * 2**24)
    return buffer.getvalue()


def tarred():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as file:
        info = tarfile.TarInfo("../../escaped")
        info.size = 2**24
        file.addfile(info, io.BytesIO(b"\0" * 2**24))
    return buffer.getvalue()


def torch_saved():
    buffer = io.BytesIO()
    torch.save({"payload": Payload()}, buffer)
    return buffer.getvalue()


def bomb(text, header=None):
    """A file whose own metadata is the given text."""
    return with_header(header or {"__metadata__": {"gce": text}}, b"")


def entry(dtype, length):
    """What a header says of a tensor of 8 bytes."""
    return {"dtype": dtype, "shape": [length], "data_offsets": [0, 8]}


PLAIN = {"gce": '{"format":"gce","version":1}'}
STRANGE = [
    lambda: pickle.dumps(Payload()),
    lambda: pickle.dumps(Payload(), protocol=0),
    torch_saved,
    zipped,
    tarred,
    lambda: zlib.compress(b"\0" * 2**24),
    lambda: b"",
    lambda: b"\0" * 8,
    lambda: b"{}",
    lambda: struct.pack("<Q", 2) + b"{}",
    lambda: struct.pack("<Q", 2**63) + b"{}",
    lambda: struct.pack("<Q", 2**64 - 1) + b"{}" * 100,
    lambda: struct.pack("<Q", 2**25 + 1) + b" " * (2**25 + 1),
    lambda: struct.pack("<Q", 2**25) + b"[" * 2**25,
    lambda: struct.pack("<Q", 2**20) + b"\xff" * 2**20,
    lambda: bomb("[" * 100_000),
    lambda: bomb('{"a":' * 100_000),
    lambda: bomb("[" + "{}," * 3_000_000 + "{}]"),
    lambda: bomb("[" + "{}," * 990_000 + "{}]"),
    lambda: bomb('{"format":"gce","version":1,"a":' + "[" * 900 + "]" * 900 + "}"),
    lambda: bomb('{"format":"gce","version":' + "9" * 5000 + "}"),
    lambda: bomb('{"format":"gce","version":1e999}'),
    lambda: bomb('{"format":"gce","version":NaN}'),
    lambda: bomb('{"format":"gce","version":1,"a":Infinity}'),
    lambda: bomb('{"format":"gce","version":1,"a":"\U0001f41d' + "b" * 2**22 + '"}'),
    lambda: bomb('{"format":"gce","version":1,"version":1}'),
    lambda: with_header({"__metadata__": PLAIN, "\x1b[31m" * 2000: entry("F16", 4)}, bytes(8)),
    lambda: with_header({"__metadata__": PLAIN, "\x1b[31m" * 2000: entry("F64", 4)}, bytes(8)),
    lambda: with_header({"__metadata__": PLAIN, "a": entry("F64", 1)}, bytes(8)).replace(b'"a":', b'"a": 1, "a":'),
    lambda: with_header({"__metadata__": PLAIN, "a": 5}, b""),
    lambda: with_header([1, 2], b""),
    lambda: with_header({"__metadata__": ["gce"]}, b""),
    lambda: bomb("", {"__metadata__": {"gce": 5}}),
    lambda: bomb("", {"__metadata__": {"gce": {"format": "gce"}}}),
    lambda: bomb("", {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(50_000)}),
    lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n",
    lambda: b"<!DOCTYPE html><html><body>404</body></html>",
]


BLIND = [flipped, flipped_in_header, truncated, grown, overwritten]
INFORMED = [swapped, renamed, reshaped, annotated, edited_text, edited_value]
