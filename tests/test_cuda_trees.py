"""Trees of GPUs against those of processors, to the bit: kernels in an emulator, and on a GPU where there is one."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulated import EMULATED, LANES, THREADS, EmulatedKernel
from gce import GCERegressor
from gce._utils import cuda
from gce.bases import Forest
from gce.bases.trees import grower_forest, predictor_cuda
from gce.bases.trees.grower_forest import DeviceForest
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.bases.trees.predictor_cuda import DeviceTrees
from helpers import GPU, random_trees
from test_random_trees import KINDS, rows_of
from test_trees_inference import INPUTS, rows_for

QUIET = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def predictions(seed, n, outputs, trees, value, number):
    """Trees and what their sums are asked for: rows, weights, the sum of each tree, and how many there are."""
    rng = np.random.default_rng(seed)
    grove, X = random_trees(rng, INPUTS, outputs, trees, value), rows_for(rng, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = np.inf
    count = int(rng.integers(1, trees + 1))
    weights, into = rng.normal(size=(trees, outputs)), rng.integers(0, count, trees)
    return grove, (torch.from_numpy(X).to(number), torch.from_numpy(weights), torch.from_numpy(into), count)


FLOATS = st.sampled_from([torch.float64, torch.float32])


@EMULATED
@QUIET
@given(st.integers(0, 10**6), st.integers(0, 300), st.integers(1, 3), st.integers(1, 9), FLOATS, FLOATS, st.booleans())
def test_sums_of_leaves(monkeypatch, seed, n, outputs, trees, value, number, tiled):
    monkeypatch.setattr(cuda, "kernel", EmulatedKernel)
    monkeypatch.setattr(predictor_cuda, "_ROWS", (THREADS,))
    if not tiled:
        monkeypatch.setattr(predictor_cuda, "_TILE_BYTES", 0)
    grove, asked = predictions(seed, n, outputs, trees, value, number)
    found = DeviceTrees(*grove.tensors().values()).summed(*asked)
    assert found.dtype == torch.float64
    assert np.array_equal(found, grove.summed(*asked))


@GPU
@pytest.mark.parametrize("value", [torch.float64, torch.float32])
@pytest.mark.parametrize("number", [torch.float64, torch.float32])
@pytest.mark.parametrize("outputs", [1, 3])
def test_sums_of_leaves_on_a_gpu(outputs, number, value):
    assert cuda.missing(torch.device("cuda")) is None
    grove, (X, weights, into, count) = predictions(0, 10_000, outputs, 40, value, number)
    there = type(grove)(*(part.cuda() for part in grove.tensors().values()))
    found = there.summed(X.cuda(), weights.cuda(), into, count)
    assert torch.equal(found.cpu(), grove.summed(X, weights, into, count))


@EMULATED
def test_rows_with_too_few_columns_are_refused(monkeypatch):
    monkeypatch.setattr(cuda, "kernel", EmulatedKernel)
    grove, (X, *rest) = predictions(0, 5, 1, 9, torch.float64, torch.float64)
    trees = DeviceTrees(*grove.tensors().values())
    with pytest.raises(ValueError, match="rows have 1 columns, but trees look at"):
        trees.summed(X[:, :1], *rest)
    with pytest.raises(ValueError, match="need a weight and a sum for each"):
        trees.summed(X, rest[0][1:], *rest[1:])


def forests(seed, kind, weighted, tries, least, n=60, d=6, members=2):
    """Random trees of several members, which learn from some of the rows each, and seeds for them."""
    rng = np.random.default_rng(seed)
    binned, weight, Y = rows_of(seed, kind, n, d, weighted)
    some = [np.flatnonzero(rng.random(n) < 0.8).astype(np.uint32) for _ in range(members)]
    learned = tuple((rows, WeightedTargets.of(weight[rows], Y[rows])) for rows in some)
    return RandomTrees(binned, learned, tries, least), rng.integers(2**62, size=(members, 2)).tolist()


@EMULATED
@QUIET
@given(
    st.integers(0, 10**6), st.sampled_from(KINDS), st.booleans(), st.integers(1, 6), st.sampled_from([0, 1, 2.5]),
    st.sampled_from([1, 5, 1024]), FLOATS,
)  # fmt: skip
def test_forests(monkeypatch, seed, kind, weighted, tries, least, few, dtype):
    emulate(monkeypatch, few)
    trees, seeds = forests(seed, kind, weighted, tries, least)
    assert_equal(DeviceForest(trees, torch.device("cpu")).grown(seeds, dtype), trees.grown(seeds, dtype))


@EMULATED
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("d", "tries"), [(150, 70), (33, 33), (40, 3)])
def test_forests_of_wide_tables(monkeypatch, d, tries, kind):
    """More columns than a warp has lanes, and than shared memory holds."""
    emulate(monkeypatch, 30)
    trees, seeds = forests(3, kind, True, tries, 1.0, n=120, d=d, members=1)
    found = DeviceForest(trees, torch.device("cpu")).grown(seeds, torch.float64)
    assert len(found.left) > 50
    assert_equal(found, trees.grown(seeds, torch.float64))


@EMULATED
def test_trees_that_memory_does_not_hold_at_once(monkeypatch):
    emulate(monkeypatch, 16)
    trees, seeds = forests(1, "number", False, 3, 1.0)
    forest, at_once, some = DeviceForest(trees, torch.device("cpu")), [], DeviceForest._some
    monkeypatch.setattr(DeviceForest, "_some", lambda self, *given: at_once.append(len(given[1])) or some(self, *given))
    monkeypatch.setattr(grower_forest, "available", lambda device: 60_000)
    assert_equal(forest.grown(seeds, torch.float64), trees.grown(seeds, torch.float64))
    assert sum(at_once) == 4
    assert len(at_once) > 1
    monkeypatch.setattr(grower_forest, "available", lambda device: 10_000)
    with pytest.raises(MemoryError, match=r"needs about 0.0 GiB of memory on cpu, .* use fewer rows"):
        forest.grown(seeds, torch.float64)


@GPU
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d", "tries"), [(300, 6, 3), (20_000, 28, 28), (2_000, 200, 14)])
def test_forests_on_a_gpu(kind, weighted, n, d, tries):
    trees, seeds = forests(0, kind, weighted, tries, 1.0, n, d)
    there = DeviceForest(trees, torch.device("cuda")).grown(seeds, torch.float32)
    assert_equal(there, trees.grown(seeds, torch.float32))


@GPU
def test_a_forest_that_is_fitted_on_a_gpu():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = X[:, 0] * X[:, 1]
    here, there = (
        GCERegressor(basis=Forest(10), cv=2, device=device, random_state=0, verbose=False).fit(X, y)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-6)


def emulate(monkeypatch, few):
    """Kernels on a stand-in for a GPU; nodes of so many rows are grown by a warp."""
    monkeypatch.setattr(cuda, "kernel", EmulatedKernel)
    for name, value in (("_FEW", few), ("_LARGE", THREADS), ("_SMALL", THREADS), ("_WARP", LANES)):
        monkeypatch.setattr(grower_forest, name, value)


def assert_equal(one, two):
    for (name, own), other in zip(one.tensors().items(), two.tensors().values(), strict=True):
        assert own.dtype == other.dtype, name
        assert torch.equal(own.cpu(), other), name
