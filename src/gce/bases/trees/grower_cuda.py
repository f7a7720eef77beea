"""The trees of :mod:`gce.bases.trees.grower` on a CUDA device: the same, to the bit, in one launch without a sync.

The kernels are ``gce/kernels/grow_trees.cu``: a group of blocks for each tree, integer histograms in shared memory,
rows sorted by node on the device. Sums of integers have no order, and what is computed of them is in headers that the
processor's kernels include as well.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils import cuda
from gce._utils.memory import available, format_gib
from gce.bases.context import FitContext
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.growth import UNNAMED, GrownAtoms, Growth
from gce.bases.trees.tree_arrays import TreeArrays
from gce.bases.trees.tree_data import Shape

_FILE = "grow_trees.cu"
#: Threads of a block, as in gce/kernels/threads.cuh.
_THREADS = 512
#: Rows below which a second block costs more than it brings.
_WORTH_A_BLOCK = 2048
#: ``Counters`` of gce/kernels/group.cuh, in words of 64 bits.
_COUNTERS = 3
#: Fraction of the free memory that trees which grow side by side may take.
_SHARE = 0.5


class Kernels(Protocol):
    """Where kernels run, and how they are launched."""

    @property
    def device(self) -> torch.device:
        """Where tensors are."""

    def resident_blocks(self, name: str) -> int:
        """How many blocks of a kernel run at once."""

    def launch(self, name: str, blocks: int, threads: int, *given: Any) -> None:
        """Run a kernel on its own blocks."""

    def launch_together(self, name: str, blocks: int, *given: Any) -> None:
        """Run a kernel whose blocks wait for each other."""


@dataclass(frozen=True)
class CudaKernels:
    """The kernels on a CUDA device.

    Parameters
    ----------
    device : torch.device
    """

    device: torch.device

    def resident_blocks(self, name: str) -> int:
        return cuda.kernel(_FILE, name, self.device).resident_blocks(_THREADS)

    def launch(self, name: str, blocks: int, threads: int, *given: Any) -> None:
        cuda.kernel(_FILE, name, self.device)(blocks, threads, *given)

    def launch_together(self, name: str, blocks: int, *given: Any) -> None:
        cuda.kernel(_FILE, name, self.device).together(blocks, _THREADS, *given)


@dataclass(frozen=True, eq=False)
class TreeTensors:
    """What the trees of one round learn from and may do, on the device: :class:`gce.bases.trees.grower.TreeData`,
    ``Sampling`` and ``Constraints``, as tensors.

    Parameters
    ----------
    codes : Tensor of shape (B, N, 4), uint8
    widths : Tensor of shape (d,), int64
    bins : int
        The sum of ``widths``.
    gradient, hessian : Tensor of shape (M, n, k), float64
    least, l2 : Tensor of shape (M,), float64
    keys : Tensor of shape (M,), uint64
    names : Tensor of shape (N,) or (0,), uint64
    subsample : float
    columns : int
    signs : Tensor of shape (d,) or None, int64
    groups : Tensor of shape (d, W) or None, uint64
    """

    codes: Tensor
    widths: Tensor
    bins: int
    gradient: Tensor
    hessian: Tensor
    least: Tensor
    l2: Tensor
    keys: Tensor
    names: Tensor
    subsample: float
    columns: int
    signs: Tensor | None = None
    groups: Tensor | None = None

    @cached_property
    def trees(self) -> int:
        """One per member and output."""
        return self.gradient.shape[0] * self.gradient.shape[2]


_DTYPES = {
    "codes": torch.uint8,
    **dict.fromkeys(("widths", "signs"), torch.int64),
    **dict.fromkeys(("gradient", "hessian", "least", "l2"), torch.float64),
    **dict.fromkeys(("keys", "names", "groups"), torch.uint64),
}


class _Round(ctypes.Structure):
    """``Round`` of gce/kernels/grower.cuh."""

    _fields_ = [
        ("codes", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("n_rows", "n_columns", "bins")),
        *((name, ctypes.c_void_p) for name in ("widths", "gradient", "hessian")),
        *((name, ctypes.c_int64) for name in ("members", "n_train", "outputs")),
        *((name, ctypes.c_void_p) for name in ("least", "l2", "names", "keys")),
        ("subsample", ctypes.c_double),
        ("columns_per_tree", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("signs", "groups")),
        ("group_words", ctypes.c_int64),
        *((name, ctypes.c_int64) for name in ("symmetric", "leaves", "depth", "most_nodes")),
        *((name, ctypes.c_void_p) for name in ("feature", "cut", "left", "value", "size", "leaf")),
        *((name, ctypes.c_int64) for name in ("blocks", "block_groups")),
        ("scratch", ctypes.c_void_p),
        ("scratch_size", ctypes.c_int64),
        ("counters", ctypes.c_void_p),
    ]


class CudaScratch:
    """Memory that trees are grown in, used again by the next round.

    Parameters
    ----------
    kernels : Kernels
    """

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self._sizes: dict[tuple[int, ...], int] = {}
        self._memory = torch.empty(0, dtype=torch.uint8, device=kernels.device)
        self._counters = torch.empty(0, dtype=torch.int64, device=kernels.device)

    def lend(self, round_: _Round, trees: int) -> None:
        """Fill in a round's memory and the groups of blocks that grow trees side by side in it.

        Parameters
        ----------
        round_ : _Round
        trees : int
            How many trees there are.
        """
        size = self._size(round_)
        groups = min(trees, round_.blocks, len(self._memory) // size)
        if groups < min(trees, round_.blocks):
            # old memory is free before new memory is taken
            self._memory = self._memory.new_empty(0)
            groups = min(trees, round_.blocks, self._affordable(size))
            self._memory = self._memory.new_empty(groups * size)
        round_.blocks = groups * min(round_.blocks // groups, _useful_blocks(round_))
        self._counters = torch.zeros(groups, _COUNTERS, dtype=torch.int64, device=self.kernels.device)
        round_.block_groups, round_.scratch, round_.scratch_size = groups, self._memory.data_ptr(), size
        round_.counters = self._counters.data_ptr()

    def _size(self, round_: _Round) -> int:
        """Bytes that a tree needs, asked for once for each shape: that takes a sync."""
        names = ("n_columns", "bins", "n_train", "group_words", "symmetric", "leaves", "depth", "most_nodes", "blocks")
        key = tuple(getattr(round_, name) for name in names)
        if key not in self._sizes:
            bytes_ = torch.zeros(1, dtype=torch.int64, device=self.kernels.device)
            self.kernels.launch("gce_grow_scratch", 1, 1, round_, bytes_)
            self._sizes[key] = -(-int(bytes_.item()) // 256) * 256
        return self._sizes[key]

    def _affordable(self, size: int) -> int:
        """How many trees can grow side by side."""
        free = available(self.kernels.device)
        if free is not None and size > free:
            raise MemoryError(
                f"a tree needs about {format_gib(size)} of memory on {self.kernels.device}, which has "
                f"{format_gib(free)} free: use device='cpu', smaller max_bins, or fewer leaves or levels"
            )
        return 2**31 if free is None else max(1, int(_SHARE * free) // size)


def _useful_blocks(round_: _Round) -> int:
    return max(1, -(-round_.n_columns // 4) * -(-round_.n_train // _WORTH_A_BLOCK))


class CudaTrees:
    """The trees of one round, as :class:`gce.bases.trees.grower.GrownTrees` grows them, on a device.

    Parameters
    ----------
    data : TreeTensors
    shape : Shape
    scratch : CudaScratch

    Attributes
    ----------
    feature, cut, left : Tensor of shape (M, k, most_nodes), int32
        Nodes of each tree; numbers beyond its size are arbitrary.
    value : Tensor of shape (M, k, most_nodes), float64
    size : Tensor of shape (M, k), int64
        Number of nodes of each tree.
    leaf : Tensor of shape (M, k, N), int32
        The leaf of each row, also of rows that were not learned from.
    """

    def __init__(self, data: TreeTensors, shape: Shape, scratch: CudaScratch) -> None:
        (members, n, k), rows, d = data.gradient.shape, data.codes.shape[1], len(data.widths)
        device, most = scratch.kernels.device, shape.most_nodes(n)
        self._data, self._kernels = data, scratch.kernels
        self.feature, self.cut, self.left = (
            torch.empty(members, k, most, dtype=torch.int32, device=device) for _ in range(3)
        )
        self.value = torch.empty(members, k, most, dtype=torch.float64, device=device)
        self.size = torch.empty(members, k, dtype=torch.int64, device=device)
        self.leaf = torch.empty(members, k, rows, dtype=torch.int32, device=device)
        own = ("feature", "cut", "left", "value", "size", "leaf")
        name = "gce_grow_symmetric" if shape.symmetric else "gce_grow_best_first"
        self._round = _Round(
            n_rows=rows,
            n_columns=d,
            bins=data.bins,
            members=members,
            n_train=n,
            outputs=k,
            subsample=data.subsample,
            columns_per_tree=data.columns,
            group_words=0 if data.groups is None else data.groups.shape[1],
            symmetric=shape.symmetric,
            leaves=shape.most_leaves(n),
            depth=shape.max_depth,
            most_nodes=most,
            blocks=scratch.kernels.resident_blocks(name),
            **{part: getattr(self, part).data_ptr() for part in own},
            **{part: _address(part, getattr(data, part), device) for part in _DTYPES},
        )
        scratch.lend(self._round, data.trees)
        scratch.kernels.launch_together(name, self._round.blocks, self._round)

    def scale(self, bound: Tensor, free: bool) -> tuple[Tensor, Tensor]:
        """Turn leaf values into units of the bound; an atom is one member's trees.

        Parameters
        ----------
        bound : Tensor of shape (k,)
        free : bool
            Only the direction of an atom counts: its leaves are scaled until the farthest reaches the bound.

        Returns
        -------
        outputs : Tensor of shape (M, N, k)
            Of the scaled atoms.
        length : Tensor of shape (M,)
            What leaf values were divided by, beside the bound.
        """
        members, k, rows = self.leaf.shape
        outputs, length = bound.new_empty(members, rows, k), bound.new_empty(members)
        self._kernels.launch("gce_scale_trees", members, _THREADS, self._round, bound, int(free), length)
        blocks = max(1, min(self._kernels.resident_blocks("gce_tree_outputs"), -(-rows // _THREADS)))
        self._kernels.launch("gce_tree_outputs", blocks, _THREADS, self._round, bound, outputs)
        return outputs, length


def _address(name: str, given: Tensor | None, device: torch.device) -> int | None:
    if given is None:
        return None
    if given.dtype != _DTYPES[name] or not given.is_contiguous() or given.device.type != device.type:
        raise TypeError(
            f"{name} must be a contiguous tensor of {_DTYPES[name]} on {device}, got {given.dtype} on {given.device}"
        )
    return given.data_ptr()


@dataclass(frozen=True, eq=False)
class DeviceGrower:
    """Trees on the device that rows are on; nothing waits for it.

    Parameters
    ----------
    binned : BinnedRows
    scratch : CudaScratch
    """

    binned: BinnedRows
    scratch: CudaScratch

    def grow(self, asked: Growth) -> GrownAtoms:
        model, settings = asked.model, asked.settings
        signs, groups = settings.constraints.signs, settings.constraints.groups
        unit = model.unit / settings.subsample
        data = TreeTensors(
            codes=self.binned.tensor,
            widths=self._widths,
            bins=int(self.binned.bins.widths.sum()),
            gradient=model.gradient.contiguous(),
            hessian=model.hessian.contiguous(),
            least=settings.least * unit,
            l2=settings.l2 * unit,
            keys=self._moved(asked.keys),
            names=self._names if settings.subsample < 1 else self._moved(UNNAMED),
            subsample=settings.subsample,
            columns=settings.columns,
            signs=None if signs is None else self._moved(signs),
            groups=None if groups is None else self._moved(groups),
        )
        grown = CudaTrees(data, settings.shape, self.scratch)
        outputs, length = grown.scale(asked.bound.contiguous(), model.free)
        nodes = grown.size, grown.feature, grown.cut, grown.left, grown.value
        return GrownAtoms(partial(_arrays, self._edges, self._starts, *nodes), outputs, length)

    def _moved(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.binned.tensor.device)

    @cached_property
    def _widths(self) -> Tensor:
        return self._moved(self.binned.bins.widths)

    @cached_property
    def _names(self) -> Tensor:
        return self._moved(self.binned.names)

    @cached_property
    def _starts(self) -> Tensor:
        """Where the edges of each column begin, ``(d,)``."""
        return (self._widths - 1).cumsum(0) - (self._widths - 1)

    @cached_property
    def _edges(self) -> Tensor:
        # a leaf looks up a column that may have no edges
        return self._moved(np.concatenate([*self.binned.bins.edges, np.zeros(1)]))


def _arrays(
    edges: Tensor, starts: Tensor, size: Tensor, feature: Tensor, cut: Tensor, left: Tensor, value: Tensor
) -> TreeArrays:
    """Trees without the room that the largest ones need: as many nodes as there are, for which the host waits."""
    used = torch.arange(feature.shape[2], device=size.device) < size[..., None]
    feature, cut, left, value = (part[used] for part in (feature, cut, left, value))
    threshold = edges[starts[feature.long()] + cut].masked_fill(left == 0, 0.0)
    return TreeArrays(size.flatten(), feature, threshold, left, value[:, None])


def device_grower(binned: BinnedRows, context: FitContext) -> DeviceGrower | str:
    """The grower for rows on a device; where it has no kernels, why, in words that complete a sentence.

    Parameters
    ----------
    binned : BinnedRows
    context : FitContext
        Of the fit, whose trees share memory.

    Returns
    -------
    DeviceGrower or str
    """
    device = binned.tensor.device
    scratch = context.cached((), ("scratch of trees", device), lambda: CudaScratch(CudaKernels(device)))
    return cuda.missing(device) or DeviceGrower(binned, scratch)
