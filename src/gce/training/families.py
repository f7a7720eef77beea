"""Families: which classes of models are fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gce._utils.params import look_up, short_repr
from gce.bases import BASES, Basis, Forest, Neural, SymmetricTree, Tree
from gce.bases.neural.basis import FULL_BATCH_ROWS
from gce.losses import Loss
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import SparseRows
from gce.preprocessing.splits import SMALL_ROWS

#: Entries of sparse rows, zeros included, up to which "auto" fits trees: their growers look at every one of them.
SPARSE_FOR_TREES = 1 << 26

#: Epochs of an atom where there are more columns than rows.
WIDE_EPOCHS = 10

#: Bins of all columns together, and least bins of one, of trees where there are more columns than rows.
WIDE_BINS, FEWEST_BINS = 1 << 17, 16


def choose_bases(given: Any, rows: int, columns: int, *, trees: bool, means: bool = True) -> dict[str, Basis]:
    """The bases that are fitted, by the name of their family.

    Parameters
    ----------
    given : str, Basis, or several of them
        What the user asks for; "auto" is :func:`default_bases`.
    rows, columns : int
        Number of training rows and of encoded columns.
    trees : bool
        Rows suit trees (:func:`suits_trees`) and no algorithm is named.
    means : bool, default=True
        The loss has means (``Loss.has_means``), which forests predict.
    """
    if isinstance(given, str) and given == "auto":
        if not trees:
            return {"neural": _networks(rows, columns, Neural())}
        usual = default_bases(rows, columns)
        return {name: basis for name, basis in usual.items() if means or not isinstance(basis, Forest)}
    if isinstance(given, Mapping):
        several = dict(given)
        if not all(isinstance(name, str) for name in several):
            raise ValueError(f"basis must have strings as the names of its families, got {short_repr(given)}")
    elif isinstance(given, Sequence) and not isinstance(given, str):
        several = {_name(one): one for one in given}
        if len(several) < len(given):
            raise ValueError(f"basis={given!r} contains the same class twice: give a dict with a name for each")
    else:
        several = {_name(given): given}
    if not several:
        raise ValueError(f"basis must name at least one class of models, got {given!r}")
    found = {name: look_up("basis", one, BASES, Basis) for name, one in several.items()}
    if len(found) > 1 and any(basis.separate for basis in found.values()):
        raise ValueError(
            f"basis={given!r} has several families, which need weights that all outputs share: use shared=True in each"
        )
    return found


def unsuited_families(basis: Any, algorithm: Any, X: Rows, loss: Loss) -> tuple[tuple[str, str], ...]:
    """Families that "auto" leaves out because of the rows or the loss, each with the reason.

    Parameters
    ----------
    basis, algorithm : object
        What the user asks for.
    X : rows of shape (N, d)
    loss : Loss
    """
    if not all(isinstance(one, str) and one == "auto" for one in (basis, algorithm)):
        return ()
    if not suits_trees(X):
        size = f"{len(X):,} x {X.shape[1]:,} sparse rows"
        return tuple((name, f"{size} are too many for trees") for name in ("tree", "symmetric", "forest"))
    return () if loss.has_means else (("forest", f"it predicts means, which the loss {type(loss).__name__} does not"),)


def sees_statistics(given: Any) -> bool:
    """Whether all bases that the user asks for can look at statistics of the target, which each member has its own of.

    Parameters
    ----------
    given : str, Basis, or several of them
    """
    if isinstance(given, str):
        return given == "auto" or (given in BASES and BASES[given].looks_by_member)
    if isinstance(given, Basis):
        return given.looks_by_member
    several = list(given.values()) if isinstance(given, Mapping) else given
    return isinstance(several, Sequence) and all(map(sees_statistics, several))


def suits_trees(X: Rows) -> bool:
    """Whether "auto" fits trees to rows ``(N, d)``: to all but very large sparse ones."""
    return not isinstance(X, SparseRows) or len(X) * X.shape[1] <= SPARSE_FOR_TREES


def _name(given: Any) -> str:
    return given if isinstance(given, str) else type(given).__name__.lower()


def default_bases(rows: int, columns: int) -> dict[str, Basis]:
    """Boosted trees of two shapes, a forest and networks; their sizes depend on the number of rows.

    The numbers were chosen on the development sets: see benchmarks/results/ablation.md.
    """
    small, bins = rows < SMALL_ROWS, partial(_bins, rows, columns)
    return {
        "tree": Tree(max_leaf_nodes=16, min_samples_leaf=1, subsample=0.8, learning_rate=0.15, max_bins=bins(256))
        if small
        else Tree(max_leaf_nodes=63, max_features=0.75, learning_rate=0.2, max_bins=bins(256)),
        "symmetric": SymmetricTree(learning_rate=0.15 if small else 0.2, max_bins=bins(128)),
        "forest": Forest(n_estimators=20, max_bins=bins(256)),
        "neural": _networks(rows, columns, Neural() if rows <= FULL_BATCH_ROWS else Neural(max_epochs=15)),
    }


def _bins(rows: int, columns: int, usual: int) -> int:
    """Bins of a column: fewer where there are more columns than rows.

    The histograms of a node have a bin for each value of a column and are scanned whole, however few rows the node has:
    a round takes time in proportion to their bins, and with few rows there is little to gain from fine ones. Fewer
    columns for each tree would save as much, but miss the few that matter (benchmarks/results/wide.md).
    """
    return usual if columns <= rows else max(FEWEST_BINS, min(usual, WIDE_BINS // columns))


def _networks(rows: int, columns: int, usual: Neural) -> Neural:
    """Networks for a table with more columns than rows are trained briefly: an atom that is trained for long
    interpolates its rows, and predicts others worse than a constant does (benchmarks/results/sparse_text.md).
    """
    return Neural(max_epochs=WIDE_EPOCHS) if columns > rows and rows <= FULL_BATCH_ROWS else usual
