"""Regression trees as atoms, grown on the quadratic model of an objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gce._utils.codecs import Parts
from gce._utils.params import Rules, among, check_parameters, count
from gce._utils.params import within as between
from gce._utils.random import RoundStreams
from gce.bases.boosted import Booster
from gce.bases.by_member import minimize_by_member
from gce.bases.context import FitContext, FitDefaults
from gce.bases.objectives import Objective
from gce.bases.proposal import Proposal
from gce.bases.trees import TreeArrays
from gce.bases.trees.atoms import TreeAtomsBase, sum_leaves, within
from gce.bases.trees.binned import BinnedRows, ConstrainedBasis
from gce.bases.trees.stored import StoredRows
from gce.bases.trees.tree_data import Shape, TreeSettings
from gce.losses import Loss
from gce.preprocessing.mixed import MixedRows, Widths
from gce.preprocessing.sparse import Inputs

#: Maximum depth of a symmetric tree, whose memory is allocated for all leaves at the start.
_MOST_LEVELS = 16


class Tree(ConstrainedBasis):
    """Regression trees with few leaves, one per output or one for all.

    A tree minimises the quadratic model of the objective, ``sum D g + g^2 H / 2`` with gradients ``D`` and Hessians
    ``H``, best split first. Where only its direction counts, the leaves are then scaled until the largest reaches the
    bound.

    Parameters
    ----------
    max_leaf_nodes : int, default=31
        Maximum number of leaves.
    max_depth : int, default=64
        Maximum depth.
    min_samples_leaf : float, default=20
        Minimum number of rows in a leaf.
    l2_regularization : float, default=1.0
        Rows without a gradient that are added to each leaf: small leaves are shrunk.
    max_features : float, default=1.0
        Fraction of the columns that a tree may split, drawn for each tree.
    subsample : float, default=1.0
        Fraction of the rows that an atom is trained on, drawn for each atom.
    max_bins : int, default=256
        Maximum number of bins per column.
    learning_rate : float, default=0.1
        Fraction of the full step that is taken, where the algorithm is "auto"; shorter steps allow more rounds.
    outputs_per_tree : {"one", "all"}, default="one"
        Where there are several classes or targets, each atom has a tree for every output, or one tree for all of them
        with a vector in each leaf: splits are chosen by the sum of their gains over the outputs. Tables with missing
        values or categories have a tree for every output in any case. On a GPU trees for all outputs are grown on the
        processor, and with several targets ``monotonic_cst`` needs "one".

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Tree
    >>> X = np.linspace(-1, 1, 200).reshape(-1, 1)
    >>> y = np.sign(X[:, 0])
    >>> model = GCERegressor(basis=Tree(max_leaf_nodes=4, learning_rate=0.3), max_iter=20, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    fits_quadratics = True
    looks_by_member = True

    parameter_rules: ClassVar[Rules] = {
        "l2_regularization": between(0, np.inf, "[)"),
        "max_features": between(0, 1, "(]"),
        "subsample": between(0, 1, "(]"),
        "learning_rate": between(1e-6, 1),
        "outputs_per_tree": among("one", "all"),
    }

    def __init__(
        self,
        max_leaf_nodes: int = 31,
        max_depth: int = 64,
        min_samples_leaf: float = 20,
        l2_regularization: float = 1.0,
        max_features: float = 1.0,
        subsample: float = 1.0,
        max_bins: int = 256,
        learning_rate: float = 0.1,
        outputs_per_tree: Literal["one", "all"] = "one",
    ) -> None:
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.subsample = subsample
        self.max_bins = max_bins
        self.learning_rate = learning_rate
        self.outputs_per_tree = outputs_per_tree

    @property
    def fit_defaults(self) -> FitDefaults:
        check_parameters(self)
        return FitDefaults(
            "boosting",
            calls=round(50 / self.learning_rate),
            patience=round(3 / self.learning_rate),
            learning_rate=self.learning_rate,
        )

    @property
    def grows_on_codes(self) -> bool:
        return self.outputs_per_tree == "one"

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        # who imports gce may never grow a tree
        from gce.bases.trees.growth import Growth, tree_grower

        if isinstance(X, MixedRows) and X.owner is not None:
            return minimize_by_member(self.minimize, objective, X, rng=rng, context=context)
        binned = self.binned(X, context)
        settings = self._settings(binned, len(objective.bound))
        asked = Growth(objective.model, objective.bound, rng.member_keys(), settings)
        grown = tree_grower(binned, context, settings.shape).grow(asked)
        atoms = TreeAtoms.later(grown.load, objective.bound)
        return Proposal(atoms, grown.outputs, grown.length if objective.model.free else None)

    def booster(self, loss: Loss, bound: Tensor, X: Inputs, context: FitContext) -> Booster | None:
        from gce.bases.trees.booster import BlockMemory, BoostedMember, TreeBooster, knows_loss
        from gce.bases.trees.grower import Scratch

        if X.device.type != "cpu" or not knows_loss(loss):
            return None
        scratch = context.cached((), "scratch of trees", Scratch)

        def member(number: int) -> BoostedMember:
            if isinstance(X, MixedRows) and X.owner is not None:
                binned, columns = self.binned(X.of_member(number), context), X.columns_of(number)
            else:
                binned, columns = self.binned(X, context), None
            return BoostedMember(binned, self._settings(binned, len(bound)), columns)

        memory = BlockMemory(X.allocate if isinstance(X, StoredRows) else None)
        return TreeBooster(member, scratch, bound, lambda trees: TreeAtoms(trees, bound), memory)

    def _settings(self, binned: BinnedRows, outputs: int) -> TreeSettings:
        """What trees of binned rows are grown by, for so many outputs."""
        d, vectors = len(binned.bins.widths), self.outputs_per_tree == "all" and outputs > 1
        if vectors and self._signs is not None:
            raise ValueError(
                f"monotonic_cst with {outputs} targets needs trees of their own: set outputs_per_tree='one', got 'all'"
            )
        # categories have an order for each output, but none for all
        vectors = vectors and binned.bins.kinds is None
        return TreeSettings(
            replace(self._shape, vector_leaves=vectors),
            least=self.min_samples_leaf,
            l2=self.l2_regularization,
            subsample=self.subsample,
            columns=min(d, max(1, round(self.max_features * d))),
            constraints=self.constraints(binned),
        )

    @property
    def _shape(self) -> Shape:
        return Shape(self.max_leaf_nodes, self.max_depth, symmetric=False)


class SymmetricTree(Tree):
    """Oblivious trees, with one split for all nodes of a level: a strong regulariser, which suits few rows.

    Parameters
    ----------
    max_depth : int, default=5
        Number of levels; a tree has ``2 ** max_depth`` leaves.
    min_samples_leaf, l2_regularization, max_features, subsample, max_bins, learning_rate, outputs_per_tree
        As in :class:`Tree`.

    Examples
    --------
    >>> from gce.bases import SymmetricTree
    >>> SymmetricTree(max_depth=3).max_leaf_nodes
    8
    """

    parameter_rules: ClassVar[Rules] = {"max_depth": count(1, _MOST_LEVELS)}

    def __init__(
        self,
        max_depth: int = 5,
        min_samples_leaf: float = 1,
        l2_regularization: float = 3.0,
        max_features: float = 1.0,
        subsample: float = 1.0,
        max_bins: int = 128,
        learning_rate: float = 0.1,
        outputs_per_tree: Literal["one", "all"] = "one",
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.subsample = subsample
        self.max_bins = max_bins
        self.learning_rate = learning_rate
        self.outputs_per_tree = outputs_per_tree

    @property
    def max_leaf_nodes(self) -> int:  # type: ignore[override]
        """Two to the power of ``max_depth``."""
        return 2**self.max_depth

    @property
    def _shape(self) -> Shape:
        return Shape(self.max_leaf_nodes, self.max_depth, symmetric=True)


class TreeAtoms(TreeAtomsBase):
    """Frozen trees: an atom is ``k`` trees, one per output, or one tree for all, with leaves in units of the bound.

    Parameters
    ----------
    trees : TreeArrays
        Leaves have one value each, or ``k``, in [-1, 1].
    bound : Tensor of shape (k,)

    Examples
    --------
    A stump that splits the first column at 0:

    >>> import torch
    >>> from gce.bases import TreeAtoms
    >>> from gce.bases.trees import TreeArrays
    >>> trees = TreeArrays(
    ...     size=torch.tensor([3]),
    ...     feature=torch.tensor([0, 0, 0], dtype=torch.int32),
    ...     threshold=torch.zeros(3, dtype=torch.float64),
    ...     left=torch.tensor([1, 0, 0], dtype=torch.int32),
    ...     value=torch.tensor([[0.0], [-1.0], [0.5]], dtype=torch.float64),
    ... )
    >>> atoms = TreeAtoms(trees, bound=torch.tensor([2.0], dtype=torch.float64))
    >>> atoms(torch.tensor([[-3.0], [3.0]], dtype=torch.float64)).tolist()
    [[[-2.0], [1.0]]]
    """

    #: Returns the trees, where nobody has looked at them yet.
    _load: Callable[[], TreeArrays] | None = None

    @classmethod
    def later(cls, load: Callable[[], TreeArrays], bound: Tensor) -> Self:
        """Atoms whose trees are loaded when they are first looked at: rounds need not wait for a device.

        Parameters
        ----------
        load : callable
            Returns the trees.
        bound : Tensor of shape (k,)
        """
        atoms = cls.__new__(cls)
        nn.Module.__init__(atoms)
        atoms.register_buffer("bound", bound)
        atoms._load = load
        return atoms

    @property
    def trees(self) -> TreeArrays:
        self._look()
        return super().trees

    def _look(self) -> None:
        if self._load is not None:
            for name, value in self._load().tensors().items():
                self.register_buffer(name, value)
            self._load = None

    def _apply(self, *given: Any, **named: Any) -> Self:
        # tensors that are not there yet would stay behind when the others are moved
        self._look()
        return super()._apply(*given, **named)

    def __getstate__(self) -> dict[str, Any]:
        self._look()
        return super().__getstate__()

    @property
    def unstorable_name(self) -> str | None:
        return None if type(self) is TreeAtoms else super().unstorable_name

    def stored(self) -> Parts:
        parts = Parts({}, {"bound": self.bound})
        parts.add("grove", self.trees.stored())
        return parts

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> TreeAtoms:
        stored, own = parts.within("grove"), parts.finite("bound", len(bound))
        value = stored.tensors.get("value")
        vectors = value is not None and value.ndim == 2 and value.shape[1] == len(bound)
        trees = TreeArrays.restored(stored, widths, len(bound) if vectors else 1, torch.float64)
        if len(trees) * trees.outputs % len(bound):
            raise ValueError(f"{len(trees)} trees cannot be divided among {len(bound)} outputs")
        if not within(own, bound) or trees.value.abs().max() > 1:
            raise ValueError("the trees can exceed the bound of the ensemble")
        return cls(trees, own)

    @property
    def form(self) -> tuple[object, ...]:
        return type(self), self.splits_columns, self.trees.outputs, *self.bound.tolist()

    @property
    def trees_per_atom(self) -> int:
        """One per output, or one."""
        return len(self.bound) // self.trees.outputs

    def __len__(self) -> int:
        return len(self.trees) // self.trees_per_atom

    def forward(self, X: Inputs) -> Tensor:
        trees = self.trees
        each = self.bound.repeat(len(self)).view(len(trees), trees.outputs)
        outs = sum_leaves(trees, X, each, torch.arange(len(each)), len(each))
        return outs.view(len(self), self.trees_per_atom, len(X), trees.outputs).transpose(1, 2).flatten(2)

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        trees, sums = self.trees, self.trees_per_atom
        # an ensemble gives the same weights again and again
        if self._mixed is None or self._mixed[0] is not weights:
            each = self.tree_weights(weights)
            self._mixed = weights, each, torch.arange(len(each)) % sums
        return sum_leaves(trees, X, *self._mixed[1:], sums).transpose(0, 1).flatten(1)

    def tree_weights(self, weights: Tensor) -> Tensor:
        wide = (weights * self.bound).expand(len(self), len(self.bound))
        return wide.reshape(len(self.trees), self.trees.outputs)

    def among(self, columns: NDArray[np.intp], inputs: NDArray[np.intp], widths: Widths) -> Self:
        # an atom of one member: its trees need not be looked at yet
        return type(self).later(lambda: self.trees.among(columns), self.bound)

    def select(self, index: Tensor) -> Self:
        k = self.trees_per_atom
        own = (index[:, None] * k + torch.arange(k, device=index.device)).flatten()
        return type(self)(self.trees.select(own), self.bound)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        return cls(TreeArrays.cat([part.trees for part in parts]), parts[0].bound)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.trees, factor * self.bound)
