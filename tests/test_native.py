"""The compiled kernels: the same bits on every instruction set, and gradients and sums that are right."""

import ctypes
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gce._utils import native, reductions, rowwise
from gce.bases.neural import kernels

#: What kernels make of the same numbers, a digest each.
PROGRAM = """
import hashlib, itertools, json, sys

import numpy as np
import torch

sys.path.insert(0, sys.argv[1])
import gce
from gce._utils import reductions
from gce.bases import Networks
from gce.bases.neural import compiled
from gce.bases.neural.descent import Schedule
from gce.bases.neural.network import SingleNeuron, TwoLayer
from gce.losses import links
from gce.preprocessing import Standardizer
from gce.preprocessing.sparse import SparseRows
from helpers import oracle_problem

rng, digests = np.random.default_rng(0), {}


def note(name, *numbers):
    parts = (np.ascontiguousarray(part).tobytes() for part in numbers)
    digests[name] = hashlib.sha256(b"".join(parts)).hexdigest()


scores = torch.from_numpy(np.concatenate([rng.normal(size=(999, 3)) * size for size in (1e-9, 0.1, 1, 30, 1e3)]))
note("sigmoid", links.sigmoid(scores[:, :1]))
note("softmax", links.softmax(scores))
note("log-odds", links.log_odds(links.sigmoid(scores[:, :1])))
note("centred", links.centred_log(links.softmax(scores)))
X = rng.normal(size=(997, 9)) * 10.0 ** rng.integers(-3, 4, (997, 9))
scaling = Standardizer.fit(X, np.ones(997), 4.0, "robust")
note("scaled", scaling.transform(X), scaling.transform(np.asfortranarray(X)))
for size in (np.float32, np.float64):
    cache, gradient = rng.normal(size=(11, 5_003)).astype(size), rng.normal(size=5_000)
    products, total = np.zeros((2, 11)), np.zeros(5_003)
    reductions.inner_products_by_part(cache, gradient, np.array([1_999, 5_000]), products)
    reductions.combination(cache, rng.normal(size=11), total)
    note(f"sums of {size.__name__}", products, total)

FORMS = [("relu", "hardtanh"), ("tanh", "tanh")]
for dtype, form in itertools.product((torch.float32, torch.float64), FORMS):
    for n, d, h, k, batch in ((1_300, 5, 10, 1, 5_000), (700, 13, 7, 3, 200), (97, 3, 21, 9, 97), (50, 0, 2, 1, 50)):
        architecture = TwoLayer(h, *form)
        rows, objective, start = oracle_problem(architecture, n, d, k, members=1, dtype=dtype)
        schedule = Schedule(rate=1e-2, floor=1e-5, patience=10, last_epochs=5, max_epochs=5)
        dice = torch.Generator().manual_seed(1)
        trained, _ = compiled.descend(architecture, start, objective, rows, schedule, batch, dice)
        note(f"trained {dtype} {form} {n}", *trained)
        nets = Networks(architecture, trained, torch.ones(k, dtype=torch.float64))
        weights = torch.full((1, k), 0.3, dtype=torch.float64)
        note(f"outputs {dtype} {form} {n}", nets(rows), nets(rows.float()))
        note(f"mixed {dtype} {form} {n}", nets.mix(rows, weights), nets.mix(rows.float(), weights))
        if d:
            note(f"of sparse {dtype} {form} {n}", nets.mix(SparseRows.from_matrix(rows.numpy()), weights))
neuron = Networks(SingleNeuron(), [torch.from_numpy(rng.normal(size=(1, 1, 9)))], torch.ones(1).double())
note("neuron", neuron(torch.from_numpy(X)))
model = gce.GCERegressor(basis="neural", max_atoms=3, cv=2, random_state=0)
note("fit", model.fit(X[:300], np.sin(X[:300, 0]) + X[:300, 1]).predict(X))
for basis, classes in itertools.product(("tree", "symmetric"), (2, 3)):
    labels = np.digitize(np.sin(X[:300, 0]), [0.0, 0.5][: classes - 1])
    model = gce.GCEClassifier(basis=basis, max_atoms=20, cv=2, random_state=0)
    note(f"boosted {basis} {classes}", model.fit(X[:300], labels).predict_proba(X))
json.dump(digests, sys.stdout)
"""


def levels():
    """The instruction sets of this processor."""
    return native.LEVELS[: native._load("baseline").gce_cpu_level() + 1]


def digests(level):
    command = [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)]
    environment = {**os.environ, "GCE_CPU": level}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_instruction_set_gives_the_same_bits():
    plain, *others = (digests(level) for level in levels())
    assert len(plain) > 60
    for other in others:
        assert other == plain


def by_autograd(X, S, net, shape):
    """Value and gradient of ``sum S * unit(X)``, in the plainest words there are."""
    d, h, k, tanh_hidden, tanh_output = shape.tolist()
    flat = torch.from_numpy(net).requires_grad_()
    W1, b1, W2, b2 = flat.split([h * d, h, k * h, k])
    z = torch.from_numpy(X) @ W1.view(h, d).T + b1
    hidden = torch.tanh(z) if tanh_hidden else torch.relu(z)
    out = hidden @ W2.view(k, h).T + b2
    unit = torch.tanh(out) if tanh_output else out.clamp(-1, 1)
    value = (torch.from_numpy(S) * unit).sum()
    value.backward()
    return value.item(), flat.grad.numpy()


@pytest.mark.parametrize("curved", [(0, 0), (1, 1), (0, 1), (1, 0)])
@pytest.mark.parametrize(("d", "h", "k"), [(1, 1, 1), (4, 5, 2), (5, 6, 3), (8, 7, 4), (13, 10, 1), (23, 24, 11)])
def test_gradients_of_any_shape_are_right(d, h, k, curved):
    rng = np.random.default_rng(0)
    shape = np.array([d, h, k, *curved])
    for n in (1, 47, 48, 49, kernels.tile_rows(), kernels.tile_rows() + 1, kernels.chunk_rows()):
        X, S, net = rng.normal(size=(n, d)), rng.normal(size=(n, k)), rng.normal(size=h * d + h + k * h + k) / 2
        rows, found = rng.permutation(n), np.empty((2, len(net)))
        packed = np.empty((-(-n // kernels.tile_rows()), (d + k) * kernels.tile_rows()))
        kernels.pack(X, S, rows, shape, packed)
        values = [
            kernels.chunk_gradients(X, S, rows, tiles, 0, net, shape, into)
            for tiles, into in zip((packed, packed[:0]), found, strict=True)
        ]
        assert values[0] == values[1]
        assert np.array_equal(*found)
        value, expected = by_autograd(X, S, net, shape)
        # sums of n h numbers of size one, each rounded
        np.testing.assert_allclose(values[0], value, rtol=0, atol=1e-14 * n * k)
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-14 * n * (d + h))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 2_048, 2_049, 5_000])
def test_sums_of_any_length_are_right(size, dtype):
    rng = np.random.default_rng(0)
    cache, gradient = rng.normal(size=(3, size + 2)).astype(dtype), rng.normal(size=size)
    total, ends = np.full(size + 2, 0.5), np.array([size // 3, size // 3, size])
    products = np.full((3, 3), 0.5)
    reductions.inner_products_by_part(cache, gradient, ends, products)
    parts = zip([0, *ends], ends, strict=False)
    exact = [
        [0.5 + math.fsum(row[first:last].astype(np.float64) * gradient[first:last]) for row in cache]
        for first, last in parts
    ]
    np.testing.assert_allclose(products, exact, rtol=0, atol=1e-13)
    cache[1] = np.nan  # what has no weight is not looked at
    reductions.combination(cache, np.array([2.0, 0, 3]), total)
    first, _, last = cache.astype(np.float64)
    np.testing.assert_allclose(total, 0.5 + 2 * first + 3 * last, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError])
def test_what_interrupts_the_conversion_of_an_argument_stays_what_it_is(kind, monkeypatch):
    class Interrupted:
        @staticmethod
        def from_param(given):
            raise kind

    # functions of the library keep the kinds of their arguments: one of its own
    own = ctypes.CDLL(native.library()._name)
    monkeypatch.setattr(native, "library", lambda: own)
    with pytest.raises(kind):
        native.kernel("cpu_level", Interrupted, result=native.INT)(0)


def test_arrays_of_another_kind_are_refused():
    with pytest.raises(ctypes.ArgumentError):
        rowwise.sigmoid(np.zeros(3, np.float32), np.zeros((3, 2)))
    with pytest.raises(ctypes.ArgumentError):
        rowwise.softmax(np.zeros((3, 2)), np.zeros((3, 2), order="F"))
