"""Families: which classes of models are fitted, and how each is best learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from gce.algorithms import Algorithm
from gce.basis import BASES, Basis, Forest, Neural, SymmetricTree, Tree
from gce.basis.neural import FULL_BATCH_ROWS
from gce.fitting import Method, Problem
from gce.members import SMALL_ROWS
from gce.parameters import shown
from gce.rows import Inputs
from gce.settings import look_up

#: Numbers of sparse rows up to which trees are fitted unasked: their growers look at every one of them, zero or not.
SPARSE_FOR_TREES = 1 << 26

#: For how many epochs an atom is trained where columns outnumber rows.
WIDE_EPOCHS = 10


@dataclass(frozen=True)
class Family:
    """A class of models with all that it takes to fit it.

    Parameters
    ----------
    problem : Problem
        In the hull of this class.
    method : Method
    calls : float
        Most oracle calls of a member.
    patience : int or None
        Rounds without progress after which a member is done.
    """

    problem: Problem
    method: Method
    calls: float
    patience: int | None

    def rounds(self, max_iter: int) -> int:
        """Rounds at most: an algorithm that asks the oracle every round has as many as calls."""
        asks = type(self.method.algorithm).asks is Algorithm.asks
        return int(min(max_iter, self.calls)) if asks else max_iter


def chosen(given: Any, rows: int, columns: int, outputs: int, plain: bool) -> dict[str, Basis]:
    """The classes that a user asks for, by name.

    Parameters
    ----------
    given : str, Basis, or several of them
        "auto" is left to :func:`automatic`.
    rows, columns, outputs : int
        Of the table that they are fitted to.
    plain : bool
        Rows are such that trees can serve (:func:`for_trees`), no sign is to be kept and no algorithm is named.
    """
    if isinstance(given, str) and given == "auto":
        return automatic(rows, columns, outputs) if plain else {"neural": _networks(rows, columns, Neural())}
    if isinstance(given, Mapping):
        several = dict(given)
        if not all(isinstance(name, str) for name in several):
            raise ValueError(f"basis must have words as the names of classes, got {shown(given)}")
    elif isinstance(given, Sequence) and not isinstance(given, str):
        several = {_name(one): one for one in given}
        if len(several) < len(given):
            raise ValueError(f"basis={given!r} has a class twice: give a dict with a name for each")
    else:
        several = {_name(given): given}
    if not several:
        raise ValueError(f"basis must name at least one class, got {given!r}")
    found = {name: look_up("basis", one, BASES, Basis) for name, one in several.items()}
    if len(found) > 1 and any(basis.separate for basis in found.values()):
        raise ValueError(f"basis={given!r} mixes classes, whose outputs share their weights: use shared=True in each")
    return found


def for_trees(X: Inputs) -> bool:
    """Whether trees are fitted to rows ``(N, d)`` where a user leaves it open: to all but very many sparse ones."""
    return isinstance(X, Tensor) or len(X) * X.shape[1] <= SPARSE_FOR_TREES


def _name(given: Any) -> str:
    return given if isinstance(given, str) else type(given).__name__.lower()


def automatic(rows: int, columns: int, outputs: int) -> dict[str, Basis]:
    """Boosted trees of two shapes, a forest and networks, in sizes that suit a table.

    The numbers are chosen on the development sets: benchmarks/results/ablation.md says what each is worth.
    """
    small = rows < SMALL_ROWS
    return {
        "tree": Tree(leaves=16, least=1, rows=0.8) if small else Tree(leaves=63, columns=0.75),
        "symmetric": SymmetricTree() if small else SymmetricTree(shrinkage=0.2),
        "forest": Forest(trees=20),
        "neural": _networks(rows, columns, Neural() if rows <= FULL_BATCH_ROWS else Neural(max_epochs=15)),
    }


def _networks(rows: int, columns: int, usual: Neural) -> Neural:
    """Networks for a table: with more columns than rows an atom that is trained for long repeats its rows, and the
    first one predicts others worse than a constant does (benchmarks/results/sparse_text.md).
    """
    return Neural(max_epochs=WIDE_EPOCHS) if columns > rows and rows <= FULL_BATCH_ROWS else usual
