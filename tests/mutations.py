"""Mutated model files, each refused in one sentence or as good as the original: run by test_model_files.py.

A program of its own, because its memory is measured. Its one argument is a folder to write to.
"""

import io
import json
import os
import pickle
import random
import resource
import signal
import struct
import sys
import tarfile
import zipfile
import zlib
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch

import gce
from gce.basis import Forest, Tree, TreeAtoms
from gce.mixing import MixedFit
from gce.storage import container

FOLDER = Path(sys.argv[1])
ROWS = np.random.default_rng(1).normal(size=(20, 3))
SECONDS, GIB = 20, 2**30
NAN, INF = float("nan"), float("inf")


def fitted():
    """Some models, to be mutated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    many, three = np.column_stack([X[:, 0] ** 2, X[:, 1]]), np.array(["a", "b", "c"])[np.arange(40) % 3]
    greedy = {"max_atoms": 3, "cv": 2, "random_state": 0}
    basis = {"hidden": 2, "max_epochs": 2}
    at_once = {"hidden": 2, "max_epochs": 2, "random_state": 0}
    yield gce.GCERegressor(basis=gce.Neural(**basis, shared=False), **greedy).fit(X, many)
    yield gce.GCEClassifier(basis=gce.Neural(**basis, batch_size=16), **greedy).fit(X, three)
    trees = {"tree": Tree(leaves=4, least=2), "forest": Forest(trees=3)}
    yield gce.GCERegressor(basis=trees["tree"], **{**greedy, "max_atoms": 12}).fit(X, many)
    yield gce.GCEClassifier(basis=trees, **greedy).fit(X, three)
    yield gce.NGCERegressor(n_atoms=2, cv=2, **at_once).fit(X, many)
    yield gce.NGCERegressor(n_atoms=2, cv=2, **at_once).fit(X, many).reweight(X, many)
    yield gce.NNClassifier(**at_once).fit(X, three)


def said(model):
    name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    return getattr(model, name)(ROWS)


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
        return os.mkdir, (str(FOLDER / "executed"),)


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


# Contents that no fit leaves, under a checksum that is right: whoever alters a file can compute it anew.


def put(*where, value):
    def edit(meta, tensors):
        holder = meta
        for key in where[:-1]:
            holder = holder[key]
        holder[where[-1]] = value

    return edit


def tensor(name, change):
    def edit(meta, tensors):
        tensors[name] = change(tensors[name].clone())

    return edit


def filled(value, *index):
    def change(t):
        t[index or (0,) * t.ndim] = value
        return t

    return change


def other_precision(t):
    return t.float() if t.dtype == torch.float64 else t.double()


def without_tensor(name):
    return lambda meta, tensors: tensors.pop(name)


def without(*where):
    def edit(meta, tensors):
        holder = meta
        for key in where[:-1]:
            holder = holder[key]
        del holder[where[-1]]

    return edit


NET, STACK = ("fit", "course", "atoms", "0"), "fit.course.atoms.0"
EVERY = [
    put("content", value="round"),
    put("opaque", value={"cv": ["x"]}),
    put("written", value={"time": "now", "versions": {"gce": 1}}),
    without("written"),
    put("estimator", value="BaseEstimator"),
    put("estimator", value="gce.GCERegressor"),
    put("estimator", value=["GCERegressor"]),
    put("parameters", value=[]),
    put("parameters", "__class__", value="x"),
    put("parameters", "n_jobs", value="many"),
    put("parameters", "n_jobs", value=True),
    put("parameters", "n_jobs", value=0),
    put("parameters", "cv", value={"object": "os.system", "parameters": {}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"n_splits": -1}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"evil": 1}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"n_splits": {"tuple": [2]}}}),
    put("parameters", "cv", value={"array": [[1, 2], [3]], "dtype": "float64"}),
    put("parameters", "cv", value={"array": [1], "dtype": "object"}),
    put("parameters", "cv", value={"float": "1e5"}),
    put("parameters", "cv", value={"dict": [[[1], 2]]}),
    put("parameters", "cv", value={"weird": 1}),
    put("parameters", "cv", value={"__reduce__": ["os.system", ["true"]]}),
    put("fitted", value=5),
    put("fitted", "predict", value={}),
    put("fitted", "__class__", value={"value": 1}),
    put("fitted", "n_features_in_", value={"value": 99}),
    put("fitted", "n_features_in_", value={"value": 3.0}),
    put("fitted", "_seed", value={"value": -1}),
    put("fitted", "loss_", value={"value": {"object": "KFold", "parameters": {}}}),
    put("fitted", "loss_", value={"value": {"object": "Power", "parameters": {"q": "x"}}}),
    put("fitted", "loss_", value={"value": {"object": "Power", "parameters": {"q": 0.5}}}),
    put("fitted", "loss_", value={"value": {"object": "__import__", "parameters": {}}}),
    put("fitted", "loss_", value={"value": "squared_error"}),
    put("fitted", "table_", value={}),
    put("fitted", "table_", value={"state": None}),
    put("fitted", "table_", value={"state": {"columns": 3, "clip": 4.0}}),
    *(put("fitted", "table_", "state", "clip", value=value) for value in (0, -1, "x")),
    *(put("fitted", "table_", "state", "columns", 1, "name", value=value) for value in (5, None, ["x"])),
    *(put("fitted", "table_", "state", "columns", 1, "kind", value=value) for value in ("category", "date", 3)),
    *(put("fitted", "table_", "state", "columns", 1, "levels", value=value) for value in ([[]], 3, "ab", ["a", "a"])),
    without("fitted", "table_", "state", "columns", 0),
    *(tensor("fitted.table_.mean", change) for change in (filled(NAN), lambda t: t[:-1], torch.Tensor.float)),
    *(tensor("fitted.table_.scale", filled(value)) for value in (NAN, 0.0, -1.0, INF)),
    tensor("fitted.table_.numbers", filled(2)),
    without_tensor("fitted.table_.numbers"),
    *(without("fitted", name) for name in ("n_features_in_", "table_", "loss_", "offset_", "bound_", "_seed")),
    *(without_tensor(f"fitted.{name}.array") for name in ("offset_", "bound_")),
    *(tensor("fitted.offset_.array", change) for change in (filled(NAN), filled(INF), torch.Tensor.float)),
    *(tensor("fitted.offset_.array", change) for change in (lambda t: t[None], lambda t: t[:0], lambda t: t.repeat(2))),
    *(tensor("fitted.bound_.array", change) for change in (filled(NAN), filled(0.0), filled(-1.0))),
]
CLASSES = [
    put("estimator", value="GCERegressor"),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b", "b"]}),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b"]}),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b", 3]}),
    put("fitted", "classes_", value={"dtype": "<U99999", "labels": [str(i) for i in range(10_000)]}),
    put("fitted", "classes_", value={"dtype": "datetime64[s]", "labels": ["a", "b", "c"]}),
    put("fitted", "classes_", value={"dtype": "object", "labels": [["a"], ["b"], ["c"]]}),
    put("fitted", "classes_", value={"dtype": "V8", "labels": [1, 2, 3]}),
    put("fitted", "classes_", value={"dtype": "int8", "labels": [1, 2, 300]}),
    put("fitted", "classes_", value={"dtype": "object", "labels": "abc"}),
    put("fitted", "_one_dimensional", value={"value": True}),
    without("fitted", "classes_"),
    without("fitted", "temperature_"),
    *(put("fitted", "temperature_", value={"value": value}) for value in (0, -1, "hot", True)),
]
NUMBERS = [
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b"]}),
    put("estimator", value="NGCEClassifier"),
    put("estimator", value="NNClassifier"),
    without("fitted", "residuals_"),
    put("fitted", "_one_dimensional", value={"value": True}),
    put("fitted", "_one_dimensional", value={"value": 1}),
    *(tensor("fitted.residuals_.array", change) for change in (filled(NAN), filled(1e9), lambda t: t[:, :1])),
]


def zeros_without_end(meta, tensors):
    """A stack that takes no bytes, and a round that asks for all of it."""
    meta["fit"]["course"]["atoms"]["kinds"].append("zero")
    meta["fit"]["course"]["atoms"]["1"] = {"count": 2**31}
    tensors["fit.course.added"] = tensors["fit.course.added"].clone()
    tensors["fit.course.added"][-1] = torch.tensor([1, 2**31])


def weights(change):
    """All weights of a course, or those that its rounds moved."""

    def edit(meta, tensors):
        (name,) = {"fit.course.path.weights", "fit.course.path.moved"} & tensors.keys()
        tensors[name] = change(tensors[name].clone())

    return edit


def grove(name, *changes):
    """Edits of one tensor of a fit's trees."""
    return [tensor(f"{STACK}.grove.{name}", change) for change in changes]


FIT = [
    without("fit"),
    zeros_without_end,
    put("fit", "course", "atoms", "kinds", value=["networks"] * 1001),
    *(put("fit", "members", value=value) for value in (10**9, 3, 1, 0, -1, "2")),
    *(put("fit", "course", "rounds", value=value) for value in (10**9, 1, 0, 2.0)),
    put("fit", "roomy", value=1),
    *(tensor("fit.bound", change) for change in (filled(1e-9), filled(0.0), filled(NAN), lambda t: t[:0])),
    without("fit", "course", "path"),
    *(put("fit", "course", "first", value=value) for value in (2, 0)),
    put("fit", "course", "columns", value=["risk", "__class__"]),
    put("fit", "course", "columns", value=[]),
    put("fit", "course", "columns", value={"risk": 1}),
    put("fit", "course", "atoms", value={}),
    *(put("fit", "course", "atoms", "kinds", value=value) for value in ([], ["zero"], ["os.system"], ["Networks"], 3)),
    *(
        weights(change)
        for change in (
            lambda t: t * 2,
            lambda t: -t,
            filled(NAN),
            filled(INF),
            lambda t: t[:-1],
            lambda t: t.roll(1, 0),
        )
    ),
    *(tensor("fit.course.added", filled(value, 1, 1)) for value in (10**12, -1, 0)),
    *(tensor("fit.course.added", filled(value, 1, 0)) for value in (5, -1, -2)),
    *(tensor("fit.course.place", filled(value, 0, 0)) for value in (99, -1, 2**62)),
    *(tensor("fit.course.running", filled(value, 0, 0)) for value in (0, 2, 255)),
    tensor("fit.course.running", filled(0, 1)),
    tensor("fit.course.finished", filled(7, 0, 0)),
    tensor("fit.course.calls", filled(-5, 0, 0)),
    tensor("fit.course.calls", lambda t: t.double()),
    *(tensor("fit.course.promise", filled(value, 0, 0)) for value in (NAN, -1.0)),
    tensor("fit.course.seconds", filled(NAN)),
    tensor("fit.course.noted", filled(0)),
    tensor("fit.course.columns.validation", lambda t: torch.full_like(t, NAN)),
    *(
        without_tensor(f"fit.course.{name}")
        for name in ("running", "place", "added", "seconds", "noted", "columns.risk", "atoms.0.bound")
    ),
]
NETWORKS = [
    *(put(*NET, "architecture", value=value) for value in ("neuron", "TwoLayer", None)),
    *(put(*NET, "activation", value=value) for value in ("sigmoid", "__class__", 1)),
    put(*NET, "output", value="identity"),
    *(put(*NET, "hidden", value=value) for value in (10**9, 3, 0, 2.0)),
    *(put(*NET, "models", value=value) for value in (10**9, 0, "1")),
    put(*NET, "precision", value="float16"),
    put(*NET, "gain", value="big"),
    *(tensor(f"{STACK}.p0", change) for change in (filled(NAN), filled(INF), lambda t: t[:-1], other_precision)),
    tensor(f"{STACK}.p2", lambda t: t[:-1]),
    tensor(f"{STACK}.p3", lambda t: t.long()),
    *(tensor(f"{STACK}.bound", change) for change in (filled(1e9), filled(0.0), filled(NAN), lambda t: t[:0])),
    without_tensor(f"{STACK}.p1"),
]
MOVES = [
    *(put("fit", "course", "path", "blocks", value=value) for value in (0, 2, 2**31, "1")),
    *(tensor("fit.course.path.counts", change) for change in (filled(-1), filled(3), filled(2**62), lambda t: t[:-1])),
    *(tensor("fit.course.path.places", change) for change in (filled(-1), filled(99), filled(2**62), lambda t: t[:-1])),
    *(without_tensor(f"fit.course.path.{name}") for name in ("counts", "places", "moved")),
]
TREES = [
    *grove("size", filled(0), filled(-1), filled(2**62), lambda t: t[:-1], lambda t: t[:0], lambda t: t.int()),
    *grove("inner", filled(0), filled(2), lambda t: 1 - t, lambda t: t[:-1], lambda t: t.roll(1)),
    *grove("feature", filled(3), filled(-1), filled(2**31 - 1), lambda t: t.long(), lambda t: t[:-1]),
    *grove("threshold", filled(NAN), filled(INF), lambda t: t.float(), lambda t: t[:-1]),
    # its own child, its parent's, another tree's, far away
    *grove("left", filled(0), filled(-1), filled(2), filled(10**6), filled(2**31 - 1), lambda t: t.roll(1)),
    *grove("value", filled(1.5), filled(-1.5), filled(NAN), lambda t: t.float(), lambda t: t[:-1], lambda t: t[:, 0]),
    *(without_tensor(f"{STACK}.grove.{name}") for name in ("size", "inner", "feature", "threshold", "left", "value")),
    tensor(f"{STACK}.bound", filled(1e9)),
    put("fit", "course", "atoms", "kinds", value=["forests"]),
    put("fit", "roomy", value=False),
    tensor("fitted.bound_.array", lambda t: 2 * t),
]
FOREST = "mixed.1.course.atoms.0"
MIXED = [
    without("mixed"),
    *(put("mixed", "families", value=value) for value in ([], ["tree"], ["tree"] * 2, ["a", "b", "c"], ["tree", 1])),
    put("mixed", "families", value=[str(i) for i in range(2000)]),
    *(put("mixed", "columns", value=value) for value in ([], ["risk", "__class__"], ["validation"], {"risk": 1})),
    *(put("mixed", "seconds", value=value) for value in (-1.0, "0", None)),
    *(tensor("mixed.shares", change) for change in (filled(-0.1), filled(2.0), filled(NAN), lambda t: t[:1])),
    tensor("mixed.columns.risk", lambda t: t[:1]),
    without("mixed", "1"),
    put("mixed", "1", "members", value=3),
    tensor("mixed.0.bound", filled(1e-3)),
    *(put("mixed", "1", "course", "atoms", "0", "trees", value=value) for value in (0, 5, 2**31, True)),
    *(put("mixed", "1", "course", "atoms", "0", "link", value=value) for value in ("logit", "exp", None)),
    *(
        tensor(f"{FOREST}.grove.value", change)
        for change in (filled(-0.5), filled(1.5), filled(NAN), torch.Tensor.double)
    ),
    *(tensor(f"{FOREST}.grove.left", change) for change in (filled(0), filled(2), filled(10**6))),
    tensor(f"{FOREST}.grove.feature", filled(3)),
    *(tensor(f"{FOREST}.offset", change) for change in (filled(NAN), filled(1e4), lambda t: t[:2])),
    *(tensor(f"{FOREST}.bound", change) for change in (filled(1e9), filled(0.0), filled(-1.0))),
    *(
        without_tensor(name)
        for name in ("mixed.shares", "mixed.columns.risk", f"{FOREST}.offset", f"{FOREST}.grove.left")
    ),
]
ENSEMBLE = [
    without("ensemble"),
    put("ensemble", "atoms", "kinds", value=["networks", "networks"]),
    put("ensemble", "atoms", "0", "hidden", value=10**9),
    put("ensemble", "atoms", "0", "activation", value=None),
    *(tensor("ensemble.weights", change) for change in (lambda t: t * 2, filled(-1.0), filled(NAN), lambda t: t[:0])),
    *(tensor("ensemble.weights", change) for change in (lambda t: t[:, None, None], lambda t: t.float())),
    *(
        tensor("ensemble.origin", change)
        for change in (filled(-1), filled(2**62), lambda t: t[:, :1], lambda t: t.double())
    ),
    tensor("ensemble.atoms.0.p0", filled(NAN)),
    tensor("ensemble.atoms.0.p0", lambda t: t[..., :-1]),
    *(without_tensor(name) for name in ("ensemble.weights", "ensemble.origin", "ensemble.atoms.0.p1")),
]
HISTORY = [
    without("history"),
    put("history", "columns", value=["__class__"]),
    put("history", "columns", value=["validation"]),
    tensor("history.columns.risk", lambda t: t[:, 0]),
    tensor("history.columns.risk", lambda t: t[:0]),
    tensor("history.seconds", filled(NAN)),
    without_tensor("history.seconds"),
]
EDITED = [
    without("fitted", "gap_"),
    without("fitted", "_joint"),
    put("fitted", "_joint", "value", value=1),
    *(put("fitted", "gap_", "value", value=value) for value in (-1.0, "0", True, None)),
    put("estimator", value="NNRegressor"),
]


def hostile(model):
    """What must be refused of a model's file."""
    kind = [*EVERY, *(CLASSES if hasattr(model, "classes_") else NUMBERS)]
    if isinstance(getattr(model, "_fit", None), MixedFit):
        return kind + MIXED
    if hasattr(model, "_fit"):
        trees = isinstance(model._fit.atoms[0], TreeAtoms)
        return kind + FIT + (MOVES + TREES if trees else NETWORKS)
    return kind + ENSEMBLE + (EDITED if hasattr(model, "gap_") else HISTORY)


def altered(meta, tensors, rng):
    """Anything else, anywhere: what loads must at least be a model."""
    if rng.random() < 0.5:
        name = rng.choice(list(tensors))
        own = tensors[name].clone()
        if own.numel() and rng.random() < 0.5:
            own.view(-1)[rng.randrange(own.numel())] = rng.choice([0, 1, 3, 100])
        else:
            own = rng.choice([own[..., None], own.flatten()[: rng.randrange(1 + own.numel())], own.double() * 1.5])
        tensors[name] = own
        return
    holder, key = rng.choice(list(places({name: meta[name] for name in meta if name not in ("written", "opaque")})))
    holder[key] = rng.choice([0, 1, 2, 10**6, "x", None, [], {}, -1.5, True, [1] * 9, {"value": 1}])


# The trial.


class Trial:
    """Loads files and takes down what came of it."""

    def __init__(self):
        self.path, self.outcomes, self.files = FOLDER / "mutated.safetensors", Counter(), 0

    def load(self, what):
        """A model, or None where the file was refused as it should be."""
        self.files += 1
        signal.alarm(SECONDS)
        try:
            model = gce.load(self.path)
        except gce.ModelFileError as error:
            message = str(error)
            assert "\n" not in message, message
            assert message.startswith(repr(str(self.path))), message
            assert len(message) < 500, message
            self.outcomes[what, "refused"] += 1
            return None
        finally:
            signal.alarm(0)
        self.outcomes[what, "loaded"] += 1
        return model

    def raw(self, data, what, expected=None):
        """Bytes: refused, or as good as the original."""
        self.path.write_bytes(data)
        model = self.load(what)
        assert model is None or (expected is not None and np.array_equal(said(model), expected)), what

    def contents(self, meta, tensors, what):
        container.write(self.path, meta, tensors)
        return self.load(what)


BLIND = [flipped, flipped_in_header, truncated, grown, overwritten]
INFORMED = [swapped, renamed, reshaped, annotated, edited_text, edited_value]


def main():
    # these files need not outlive a power cut
    os.fsync = lambda *_: None
    rng, trial, sources, taken_in = random.Random(0), Trial(), [], []
    for i, model in enumerate(fitted()):
        path = FOLDER / f"{i}.safetensors"
        model.save(path)
        sources.append((path.read_bytes(), said(model), model, *container.read(path)))
    trial.raw(sources[0][0], "original", sources[0][1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for make in STRANGE:
        trial.raw(make(), "strange")
    for *_, model, meta, tensors in sources:
        for number, edit in enumerate(hostile(model)):
            body, parts = deepcopy(meta), dict(tensors)
            edit(body, parts)
            if trial.contents(body, parts, "hostile") is not None:
                taken_in.append((type(model).__name__, number))
    assert not taken_in, f"contents that no fit leaves were taken: {taken_in}"
    for _ in range(1000):
        raw, expected, *_ = rng.choice(sources)
        change = rng.choice(BLIND + INFORMED)
        trial.raw(change(raw, rng), change.__name__, expected)
    for _ in range(100):
        *_, meta, tensors = rng.choice(sources)
        body, parts = deepcopy(meta), dict(tensors)
        altered(body, parts, rng)
        model = trial.contents(body, parts, "altered")
        assert model is None or len(said(model)) == len(ROWS)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert not (FOLDER / "executed").exists(), "a payload was executed"
    assert taken < GIB, f"{taken / GIB:.2f} GiB were taken"
    sys.stdout.write(f"{trial.files} files, {taken / 2**20:.0f} MiB: {dict(trial.outcomes)}\n")


if __name__ == "__main__":
    main()
