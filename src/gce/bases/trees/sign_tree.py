"""Trees of the linear oracle, whose leaves are at the bound: the paper's objective for trees."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gce._utils import parallel
from gce._utils.params import check_parameters
from gce._utils.random import RoundStreams
from gce.bases.context import FitContext
from gce.bases.objectives import Objective
from gce.bases.proposal import Proposal
from gce.bases.regressor import best_step
from gce.bases.trees import Bins, TreeArrays
from gce.bases.trees.binned import BinnedBasis
from gce.bases.trees.binning import Grown
from gce.bases.trees.grower_sign import grow_by_sign
from gce.bases.trees.tree import TreeAtoms
from gce.preprocessing.sparse import Inputs


class SignTree(BinnedBasis):
    """Trees that minimise the linear objective ``<D, g>``, one tree per output.

    The least of ``sum D g`` over ``|g| <= B`` is at ``-B`` or ``B`` in every leaf, by the sign of the leaf's sum ``G``
    of gradients, and a cut is worth ``B (|G_left| + |G_right| - |G|)``: nothing, unless its sides disagree. See
    docs/trees.md, and for better ensembles :class:`gce.bases.Tree`.

    Parameters
    ----------
    max_leaf_nodes : int, default=31
        Maximum number of leaves.
    max_depth : int, default=64
        Maximum depth.
    min_samples_leaf : float, default=20
        Minimum number of rows in a leaf.

    Examples
    --------
    >>> import torch
    >>> from gce._utils.random import Streams
    >>> from gce.bases import FitContext, SignTree
    >>> from gce.bases.objectives import Linear
    >>> X = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
    >>> objective = Linear(torch.tensor([[[1.0], [1.0], [-3.0]]]).double(), bound=torch.tensor([2.0]).double())
    >>> rng = Streams(0, (0,)).at(1, torch.tensor([0]), torch.tensor([0]))
    >>> tree = SignTree(min_samples_leaf=1)
    >>> tree.minimize(objective, X, rng=rng, context=FitContext()).outputs.flatten().tolist()
    [-2.0, -2.0, 2.0]
    """

    def __init__(self, max_leaf_nodes: int = 31, max_depth: int = 64, min_samples_leaf: float = 20) -> None:
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        check_parameters(self)
        model = objective.model
        if not model.free:
            raise ValueError(
                "a SignTree minimises linear objectives, and that of algorithm='nonlinear' is not: use gce.bases.Tree"
            )
        binned = self.binned(X, context)
        bins, codes = binned.bins, binned.codes
        bound, jobs = objective.bound.cpu(), []
        for m in range(len(rng.members)):
            D, H = (t[m].T.contiguous().double().cpu().numpy() for t in (model.gradient, model.hessian))
            rows = np.flatnonzero(H.any(0) | D.any(0)).astype(np.uint32)
            least = self.min_samples_leaf * float(model.unit[m])
            jobs += [partial(self._grown, bins, codes, rows, D[j], H[j], least) for j in range(len(bound))]
        with parallel.workers(min(parallel.threads(), len(jobs))) as run:
            trees = TreeArrays.of(run(jobs))
        atoms = TreeAtoms(trees, bound).to(objective.bound.device)
        outputs = atoms(atoms.seen(X))
        return Proposal(atoms, outputs, best_step(model, outputs[:, : objective.rows]))

    def _grown(
        self,
        bins: Bins,
        codes: NDArray[np.uint8],
        rows: NDArray[np.uint32],
        D: NDArray[np.float64],
        H: NDArray[np.float64],
        min_samples_leaf: float,
    ) -> Grown:
        """One tree."""
        feature, cut, left, value, *rest = grow_by_sign(
            codes, rows, D, H, self.max_leaf_nodes, bins.widths, self.max_depth, min_samples_leaf, bins.kinds
        )
        return bins.as_splits((feature, cut, left, value[:, None], *rest))
