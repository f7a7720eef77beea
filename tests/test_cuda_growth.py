"""Trees on a GPU: the kernels of gce/kernels on a stand-in for one, and on a real one where there is one."""

import ctypes
import shutil
import subprocess
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gce
from gce._utils import cuda
from gce._utils.devices import on_cpu
from gce._utils.random import Streams
from gce.bases import FitContext, SymmetricTree, Tree
from gce.bases.objectives import Linear
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import binned_on_device
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.grower_cuda import CudaKernels, CudaScratch, CudaTrees, DeviceGrower, TreeTensors
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData
from helpers import GPU

HERE = Path(__file__).parent
COMPILER = shutil.which("g++")
#: The stand-in keeps what threads of a block share in a section of its own, which other systems' linkers do not name.
EMULATED = pytest.mark.skipif(COMPILER is None, reason="no g++ here")


class EmulatedKernels:
    """Kernels on a stand-in for a GPU, which runs threads in an order drawn by a seed."""

    device = torch.device("cpu")

    def __init__(self, library, threads, blocks):
        self._library, self._threads, self._blocks = ctypes.CDLL(str(library)), threads, blocks
        self.launches = 0

    def resident_blocks(self, name):
        return self._blocks

    def launch(self, name, blocks, threads, *given):
        self.launches += 1
        sizes = ctypes.c_int64(blocks), ctypes.c_int64(min(threads, self._threads)), ctypes.c_uint64(self.launches)
        getattr(self._library, name.removeprefix("gce_"))(*map(cuda._argument, given), *sizes)

    def launch_together(self, name, blocks, *given):
        self.launch(name, blocks, self._threads, *given)


@pytest.fixture(scope="module")
def compile_for(tmp_path_factory):
    """Kernels for warps of so many lanes and blocks of so many threads."""
    folder = tmp_path_factory.mktemp("emulated")

    def compiled(lanes, threads, blocks):
        library = folder / f"{lanes}_{threads}.so"
        if not library.exists():
            flags = ["-std=c++17", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-DGCE_CUDA"]
            sizes = [f"-DGCE_LANES={lanes}", f"-DGCE_THREADS={threads}"]
            folders = [f"-I{cuda.SOURCES}", f"-I{HERE}"]
            source = HERE / "emulated_trees.cpp"
            subprocess.run([COMPILER, *flags, *sizes, *folders, source, "-o", library], check=True)
        return EmulatedKernels(library, threads, blocks)

    return compiled


def drawn_problem(seed, n):
    """Narrow, wide, skewed and empty bins; gradients of any size, Hessians of 0, ties; samples and constraints."""
    rng = np.random.default_rng(seed)
    d, members, k, more = rng.integers(1, 10), rng.integers(1, 4), rng.integers(1, 3), rng.integers(0, 20)
    widths = rng.choice([1, 2, 3, 5, 17, 100, 256], d)
    codes = np.zeros((-(-d // 4), n + more, 4), np.uint8)
    for c, width in enumerate(widths):
        skewed = np.minimum(rng.geometric(0.3, n + more) - 1, width - 1)
        codes[c // 4, :, c % 4] = rng.integers(0, width, n + more) if rng.random() < 0.7 else skewed
    D, H = rng.normal(size=(members, n, k)) * 10.0 ** rng.integers(-5, 5), np.ones((members, n, k))
    D = np.round(D) if rng.random() < 0.3 else D
    if rng.random() < 0.6:
        H = rng.uniform(size=H.shape)
    if rng.random() < 0.4:
        H[:, rng.random(n) < 0.3] = 0
    D[H == 0] = 0
    data = TreeData(
        codes, widths, D, H, np.full(members, rng.choice([0, 1, 5]) / n), np.full(members, rng.choice([0, 1]) / n)
    )
    hashes = rng.integers(0, 2**63, (2, n + more)).astype(np.uint64)
    subsample = 1.0 if rng.random() < 0.5 else float(rng.uniform(0.01, 1))
    sampling = Sampling(hashes[0, :members].copy(), hashes[1].copy(), subsample, int(rng.integers(1, d + 1)))
    constraints = Constraints(
        rng.integers(-1, 2, d) if rng.random() < 0.4 else None,
        rng.integers(1, 8, (d, 2)).astype(np.uint64) if rng.random() < 0.4 else None,
    )
    return data, sampling, constraints, rng


def as_tensors(data, sampling, constraints, device="cpu"):
    def moved(array):
        return None if array is None else torch.from_numpy(array.copy()).to(device)

    return TreeTensors(
        *(moved(data.codes), moved(data.widths), int(data.widths.sum()), moved(data.gradient), moved(data.hessian)),
        *(moved(data.least), moved(data.l2), moved(sampling.keys), moved(sampling.names)),
        *(sampling.subsample, sampling.columns, moved(constraints.signs), moved(constraints.groups)),
    )


def assert_equal_trees(ours, theirs):
    """Trees of the processor and of a device are the same, to the bit."""
    np.testing.assert_array_equal(ours.size, theirs.size.cpu())
    used = np.arange(theirs.feature.shape[2]) < ours.size[..., None]
    parts = (part.cpu().numpy()[used] for part in (theirs.feature, theirs.cut, theirs.left, theirs.value[..., None]))
    for one, two in zip(ours.used(0), parts, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(ours.leaf, theirs.leaf.cpu())


def compare(seed, n, scratch):
    data, sampling, constraints, rng = drawn_problem(seed, n)
    for symmetric in (False, True):
        shape = Shape(int(rng.integers(2, 12)), int(rng.integers(1, 6)), symmetric)
        ours = GrownTrees(data, shape, sampling, constraints, Scratch())
        theirs = CudaTrees(as_tensors(data, sampling, constraints, scratch.kernels.device), shape, scratch)
        assert_equal_trees(ours, theirs)
        bound, free = rng.uniform(0.5, 2, data.gradient.shape[2]), bool(rng.integers(2))
        found = theirs.scale(torch.from_numpy(bound).to(scratch.kernels.device), free)
        for one, two in zip(ours.scale(bound, free), found, strict=True):
            np.testing.assert_array_equal(one, two.cpu())
        assert_equal_trees(ours, theirs)


@EMULATED
@given(st.integers(0, 10**6), st.integers(1, 60))
@settings(max_examples=80, deadline=None)
def test_one_thread_grows_the_processors_trees(compile_for, seed, n):
    compare(seed, n, CudaScratch(compile_for(1, 1, 1)))


@EMULATED
@given(st.integers(0, 10**6), st.integers(1, 60), st.sampled_from([1, 3, 7]))
@settings(max_examples=20, deadline=None)
def test_warps_and_blocks_grow_the_processors_trees(compile_for, seed, n, blocks):
    compare(seed, n, CudaScratch(compile_for(4, 8, blocks)))


@EMULATED
@pytest.mark.parametrize("seed", range(3))
def test_warps_of_32_lanes_grow_the_processors_trees(compile_for, seed):
    compare(seed, 100, CudaScratch(compile_for(32, 64, 2)))


@EMULATED
@pytest.mark.parametrize("symmetric", [False, True])
def test_many_rows_are_shared_by_blocks(compile_for, monkeypatch, symmetric):
    """Parts of rows, of histograms and of columns, each with several blocks."""
    monkeypatch.setattr("gce.bases.trees.grower_cuda._WORTH_A_BLOCK", 100)
    rng, n = np.random.default_rng(0), 6_000
    codes = rng.integers(0, 50, (2, n, 4)).astype(np.uint8)
    D = np.where(codes[0, :, 0] > 20, 1.0, -1.0) + codes[1, :, 1] / 50 + rng.normal(size=n)
    data = TreeData(codes, np.full(8, 50), D[None, :, None], np.ones((1, n, 1)), np.full(1, 20 / n), np.full(1, 1 / n))
    sampling = Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, 8)
    scratch, shape = CudaScratch(compile_for(4, 8, 5)), Shape(15, 4, symmetric)
    for _ in range(2):
        theirs = CudaTrees(as_tensors(data, sampling, Constraints()), shape, scratch)
        assert_equal_trees(GrownTrees(data, shape, sampling, Constraints(), Scratch()), theirs)


@EMULATED
def test_a_round_is_one_launch_and_memory_is_used_again(compile_for):
    data, sampling, constraints, _ = drawn_problem(1, 50)
    kernels = compile_for(1, 1, 1)
    scratch, tensors = CudaScratch(kernels), as_tensors(data, sampling, constraints)
    CudaTrees(tensors, Shape(6, 3, False), scratch)
    before, memory = kernels.launches, scratch._memory
    CudaTrees(tensors, Shape(6, 3, False), scratch)
    assert kernels.launches == before + 1
    assert scratch._memory is memory


@EMULATED
def test_trees_of_other_shapes_share_memory(compile_for):
    scratch = CudaScratch(compile_for(1, 1, 3))
    for seed in range(12):
        compare(seed, 20 + seed, scratch)


@EMULATED
def test_memory_that_does_not_suffice_is_said(compile_for, monkeypatch):
    monkeypatch.setattr("gce.bases.trees.grower_cuda.available", lambda device: 1000)
    data, sampling, constraints, _ = drawn_problem(1, 50)
    with pytest.raises(MemoryError, match=r"needs about 0\.0 GiB .* has 0\.0 GiB free: use device='cpu'"):
        CudaTrees(as_tensors(data, sampling, constraints), Shape(6, 3, False), CudaScratch(compile_for(1, 1, 1)))


@EMULATED
@pytest.mark.parametrize("basis", [Tree(5, subsample=0.7), SymmetricTree(3, max_bins=9)], ids=["tree", "symmetric"])
def test_atoms_of_a_device_are_the_processors(compile_for, monkeypatch, basis):
    rng = np.random.default_rng(0)
    X, D = torch.from_numpy(rng.normal(size=(60, 5))), torch.from_numpy(rng.normal(size=(2, 50, 2)))
    objective = Linear(D, torch.tensor([1.0, 2.0], dtype=torch.float64))
    rng = Streams(0, (0, 1)).at(1, torch.arange(2), torch.zeros(2, dtype=torch.long))
    proposal = partial(basis.minimize, objective, X, rng=rng)
    ours, scratch = proposal(context=FitContext()), CudaScratch(compile_for(1, 1, 1))
    monkeypatch.setattr("gce.bases.trees.growth.tree_grower", lambda binned, *_: DeviceGrower(binned, scratch))
    theirs = proposal(context=FitContext())
    assert torch.equal(ours.outputs, theirs.outputs)
    assert torch.equal(ours.step_length, theirs.step_length)
    for name, tensor in ours.atoms.trees.tensors().items():
        assert torch.equal(tensor, theirs.atoms.trees.tensors()[name])


@given(st.integers(0, 10**6), st.integers(1, 400), st.integers(2, 20))
@settings(max_examples=30, deadline=None)
def test_bins_by_tensor_operations_are_the_processors(seed, n, most):
    rng = np.random.default_rng(seed)
    X = np.where(
        rng.random((n, 5)) < 0.3, rng.choice([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0)]), rng.normal(size=(n, 5))
    )
    ours = BinnedRows.of(torch.from_numpy(X), most)
    bins, codes = binned_on_device(torch.from_numpy(X), most)
    assert torch.equal(codes, ours.tensor)
    for one, two in zip(bins.edges, ours.bins.edges, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_device_without_kernels_is_said(monkeypatch):
    binned = BinnedRows.of(torch.zeros(3, 1, dtype=torch.float64), 4)
    elsewhere = BinnedRows(binned.X, binned.bins, binned.tensor.to("meta"))
    with pytest.warns(UserWarning, match="trees are grown on the processor, not on meta: meta is no CUDA device"):
        gce.bases.trees.growth.tree_grower(elsewhere, FitContext(), Shape(6, 3, symmetric=False))


def test_tensors_on_the_cpu_are_not_copied():
    given = [torch.zeros(2), torch.arange(3)]
    assert all(one is two for one, two in zip(on_cpu(given), given, strict=True))


@GPU
@pytest.mark.parametrize("seed", range(30))
def test_a_gpu_grows_the_processors_trees(seed):
    scratch = CudaScratch(CudaKernels(torch.device("cuda")))
    compare(seed, [1, 17, 60, 3_000, 20_000][seed % 5], scratch)


@GPU
@pytest.mark.parametrize("basis", [Tree(), SymmetricTree()], ids=["tree", "symmetric"])
def test_a_fit_on_a_gpu_grows_the_processors_first_trees(basis):
    """Later rounds differ by the rounding of the GPU's gradients, which the sizes of leaves hide."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 6))
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.1 * rng.normal(size=2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours, theirs = (
            gce.GCERegressor(basis=basis, max_atoms=20, cv=2, random_state=0, device=device).fit(X, y)
            for device in ("cpu", "cuda")
        )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6, atol=1e-6)


@GPU
def test_bins_on_a_gpu_are_the_processors():
    X = torch.randn(5_000, 7, dtype=torch.float64).round(decimals=2)
    bins, codes = binned_on_device(X.cuda())
    ours = BinnedRows.of(X, 256)
    assert torch.equal(codes.cpu(), ours.tensor)
    for one, two in zip(bins.edges, ours.bins.edges, strict=True):
        np.testing.assert_array_equal(one, two)
