"""Shapley values of a hull: those of its atoms, summed by their weights, because the values are linear in the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.random import draw_seed
from gce.bases.base import Atoms, Zero
from gce.bases.trees.atoms import TreeAtomsBase
from gce.inspection.shapley.coalitions import CoalitionGame, Part
from gce.inspection.shapley.tree_parts import TreeTerms, is_linear
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import Inputs, Matrix, SparseRows
from gce.training.result import FitResult
from gce.training.scores import encode_rows

Array = NDArray[np.float64]
Weighted = tuple[Atoms, Tensor]


@dataclass(frozen=True, eq=False)
class Attributions:
    """Values of rows in raw scores.

    Parameters
    ----------
    values : array of shape (n, d, k), or (n, d, d, k)
    base : array of shape (k,)
    errors : array like ``values``, or None where all are exact by construction
    """

    values: Array
    base: Array
    errors: Array | None = None


@dataclass(frozen=True, eq=False)
class HullGame:
    """A fitted model as a game between the user's columns.

    Parameters
    ----------
    result : FitResult
    """

    result: FitResult

    @cached_property
    def parts(self) -> list[Weighted]:
        """Atoms with weights ``(A, J)``, on the CPU, without those of weight 0 everywhere."""
        ensemble, found, first = self.result.ensemble, [], 0
        weights = ensemble.weights.cpu()
        wide = weights if weights.ndim == 2 else weights[:, None]
        for part in ensemble.parts:
            assert isinstance(part, Atoms)
            own = wide[first : first + len(part)]
            first += len(part)
            if not isinstance(part, Zero) and bool((own != 0).any()):
                found.append((part if ensemble.offset.device.type == "cpu" else _on_cpu(part), own))
        return found

    @property
    def count(self) -> int:
        """Number of the user's columns, ``d``."""
        return len(self.result.table.columns)

    @property
    def outputs(self) -> int:
        """Number of raw scores, ``k``."""
        return len(self.result.offset)

    def players(self, part: Atoms) -> NDArray[np.intp]:
        """The user's column that each column is made of that an atom sees.

        Parameters
        ----------
        part : Atoms
        """
        table = self.result.table
        return table.split_sources if part.splits_columns else table.input_sources

    def rows(self, X: Matrix) -> Rows:
        """Coded rows as atoms see them, on the CPU.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
        """
        return self.result.table.rows(X, torch.device("cpu"))

    def values(self, X: Matrix, n_permutations: int, random_state: object) -> Attributions:
        """Values without a background: trees by their training weight, other atoms against the average row.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Coded rows.
        n_permutations : int
        random_state : int, RandomState or None

        Returns
        -------
        Attributions
        """
        trees = [(part, own) for part, own in self.parts if isinstance(part, TreeAtomsBase)]
        others = [(part, own) for part, own in self.parts if not isinstance(part, TreeAtomsBase)]
        self.check_covers()
        rows = self.rows(X)
        total, base = np.zeros((len(X), self.count, self.outputs)), self.result.offset.copy()
        for part, own in trees:
            values, mean = TreeTerms.of(part, own, self.players(part), self.count).values(_seen(part, rows), own)
            total += values
            base += mean
        if not others:
            return Attributions(total, base)
        game = self._coalitions(others, rows, None, np.ones(1))
        values, errors = game.values(n_permutations, np.random.default_rng(draw_seed(random_state)))
        return Attributions(total + values, base + game.base, errors)

    def against(self, X: Matrix, background: Matrix, n_permutations: int, random_state: object) -> Attributions:
        """Values against the rows of a background.

        Parameters
        ----------
        X, background : arrays or SparseRows of shape (n, d) and (b, d)
            Coded rows.
        n_permutations : int
        random_state : int, RandomState or None

        Returns
        -------
        Attributions
        """
        linear = [(p, own) for p, own in self.parts if isinstance(p, TreeAtomsBase) and is_linear(p)]
        others = [one for one in self.parts if not any(one[0] is part for part, _ in linear)]
        rows, known, shares = self.rows(X), self.rows(background), np.full(len(background), 1 / len(background))
        total = np.zeros((len(X), self.count, self.outputs))
        base = shares @ self.result.ensemble(encode_rows(self.result, background)).cpu().numpy()
        for part, own in linear:
            terms = TreeTerms.of(part, own, self.players(part), self.count)
            total += terms.against(_seen(part, rows), _seen(part, known), shares, own)
        if not others:
            return Attributions(total, base)
        game = self._coalitions(others, rows, known, shares)
        values, errors = game.values(n_permutations, np.random.default_rng(draw_seed(random_state)))
        return Attributions(total + values, base, errors)

    def interactions(self, X: Matrix) -> Attributions:
        """Interaction values of trees, by their training weight; on the diagonal what pairs leave of the values.

        Parameters
        ----------
        X : array or SparseRows of shape (n, d)
            Coded rows.

        Returns
        -------
        Attributions
            Values of shape (n, d, d, k).
        """
        for part, _ in self.parts:
            if not isinstance(part, TreeAtomsBase) or not is_linear(part):
                what = "a classifier's forest" if isinstance(part, TreeAtomsBase) else type(part).__name__
                raise ValueError(
                    f"interaction values are those of sums of trees, and this model also has {what}: fit with "
                    "basis='tree' or basis='symmetric', or use shap_values"
                )
        single, rows = self.values(X, 2, 0), self.rows(X)
        total = np.zeros((len(X), self.count, self.count, self.outputs))
        for part, own in self.parts:
            terms = TreeTerms.of(cast(TreeAtomsBase, part), own, self.players(part), self.count)
            total += terms.pairs(_seen(part, rows), own)
        place = np.arange(self.count)
        total[:, place, place] = single.values - total.sum(2)
        return Attributions(total, single.base)

    def check_covers(self) -> None:
        """Refuse trees whose training weight is not known."""
        trees = [part for part, _ in self.parts if isinstance(part, TreeAtomsBase)]
        if any(part.trees.cover is None for part in trees):
            raise ValueError(
                "the model comes from an earlier version of gce, which did not count the training rows in the leaves "
                "of its trees: give a background of some rows, or fit again"
            )

    def _coalitions(self, parts: Sequence[Weighted], rows: Rows, known: Rows | None, shares: Array) -> CoalitionGame:
        found = []
        for part, own in parts:
            X = _seen(part, rows)
            # inputs are measured from the centre of each column: 0 is the average row
            background = np.zeros((1, X.shape[1])) if known is None else _seen(part, known)
            found.append(Part(_Function(part, own), X, background, self.players(part)))
        return CoalitionGame(found, self.count, self.outputs, shares)


class _Function:
    """Atoms with their weights as a function of dense rows."""

    def __init__(self, part: Atoms, weights: Tensor) -> None:
        self._part, self._weights = part, weights

    def __call__(self, X: Array) -> Array:
        with torch.no_grad():
            return self._part.mix(torch.from_numpy(np.ascontiguousarray(X)), self._weights).double().numpy()


def _seen(part: Atoms, rows: Rows) -> Array:
    """Rows as an atom sees them, dense."""
    seen: Inputs = part.seen(rows)
    return seen.toarray() if isinstance(seen, SparseRows) else seen.double().numpy()


def _on_cpu(part: Atoms) -> Atoms:
    every = torch.arange(len(part), device=next(part.buffers()).device)
    return part.select(every).cpu()
