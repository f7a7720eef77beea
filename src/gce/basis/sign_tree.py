"""Trees of the linear oracle, whose leaves are at the bound: what the paper's objective means for a tree."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gce import native
from gce.basis.coded import Coded
from gce.basis.regressor import best_step
from gce.basis.tree import Grown, TreeAtoms
from gce.objectives import Objective
from gce.parameters import check_parameters
from gce.rows import Inputs
from gce.streams import RoundStreams
from gce.trees import Bins, Grove


class SignTree(Coded):
    """Trees that minimise the linear objective ``<D, g>``, one an output.

    The least of ``sum D g`` over ``|g| <= B`` is at ``-B`` or ``B`` in every leaf, by the sign of the leaf's sum ``G``
    of slopes, and a cut is worth ``B (|G_left| + |G_right| - |G|)``: nothing, unless its sides disagree. See
    docs/trees.md, and for better ensembles :class:`gce.Tree`.

    Parameters
    ----------
    leaves : int, default=31
        At most.
    depth : int, default=64
        At most.
    least : float, default=20
        Rows in a leaf, at least.
    """

    def __init__(self, leaves: int = 31, depth: int = 64, least: float = 20) -> None:
        self.leaves = leaves
        self.depth = depth
        self.least = least

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> TreeAtoms:
        check_parameters(self)
        model = objective.model
        if not model.free:
            raise ValueError(
                "a SignTree minimises a linear objective, and algorithm='nonlinear' has another: use gce.Tree"
            )
        seen = self.coded(X)
        bins, codes = seen.bins, seen.codes
        bound, jobs = objective.bound.cpu(), []
        for m in range(len(rng.members)):
            D, H = (t[m].T.contiguous().double().cpu().numpy() for t in (model.slope, model.bend))
            rows = np.flatnonzero(H.any(0) | D.any(0)).astype(np.uint32)
            least = self.least * float(model.unit[m])
            jobs += [partial(self._grown, bins, codes, rows, D[j], H[j], least) for j in range(len(bound))]
        with native.workers(min(native.threads(), len(jobs))) as run:
            grove = Grove.of(run(jobs))
        atoms = TreeAtoms(grove, bound).to(objective.bound.device)
        atoms.length = best_step(model, atoms(X)[:, : objective.rows])
        return atoms

    def _grown(
        self,
        bins: Bins,
        codes: NDArray[np.uint8],
        rows: NDArray[np.uint32],
        D: NDArray[np.float64],
        H: NDArray[np.float64],
        least: float,
    ) -> Grown:
        """One tree: feature, threshold, left, value."""
        from gce.trees.signs import grow_by_sign

        every = np.arange(len(codes))
        feature, cut, left, value = grow_by_sign(codes, rows, D, H, self.leaves, every, bins.widths, self.depth, least)
        return feature, bins.thresholds(feature, cut, left > 0), left, value[:, None]
