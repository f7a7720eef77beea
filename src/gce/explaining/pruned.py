"""Smaller ensembles: what each size costs, and the one that was chosen."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gce.explaining.numerals import above, four, rise
from gce.explaining.pictures import PathDisplay
from gce.theory import rendering

#: Names of those who leave that are listed in a row.
_LISTED = 3


@dataclass(frozen=True, eq=False)
class PathStep:
    """The best weights of a smaller ensemble.

    Parameters
    ----------
    size : int
        Members in use.
    loss, gap : float
        Its loss, and by how much that is above the least one of these members at most.
    names : tuple of str
        Of the members in use.
    weights : array of shape (size,)
    """

    size: int
    loss: float
    gap: float
    names: tuple[str, ...]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pruned:
    """A smaller ensemble and the path that led to it; ``str()`` and notebooks show the path, ``plot`` draws it.

    Parameters
    ----------
    model : estimator
        The ensemble that was chosen.
    path : tuple of PathStep
        From all members in use down to one.
    size : int
        The size that was chosen.
    """

    model: Any
    path: tuple[PathStep, ...]
    size: int

    @property
    def chosen(self) -> PathStep:
        """The step of the path that the model is."""
        return next(step for step in self.path if step.size == self.size)

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row a size, the largest first."""
        pandas = import_module("pandas")
        columns = {
            "loss": [step.loss for step in self.path],
            "gap": [step.gap for step in self.path],
            "members": [step.names for step in self.path],
        }
        index = pandas.Index([step.size for step in self.path], name="size")
        return pandas.DataFrame(columns, index=index)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw loss against size, the chosen size marked.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        """
        return PathDisplay(self).plot(ax)

    def table(self) -> rendering.Table:
        """Its rows as they are shown."""
        full, chosen = self.path[0], self.chosen
        columns: dict[str, list[float | str | None]] = {
            "loss": [four(step.loss) for step in self.path],
            "rise": [rise(step.loss, full.loss) for step in self.path],
            "left out": ["", *map(_gone, self.path, self.path[1:])],
        }
        higher = rise(chosen.loss, full.loss)
        title = f"{chosen.size} of {full.size} members: loss {chosen.loss:.4g}, that of all {full.loss:.4g}"
        title += f" ({higher})" if higher else ""
        names = [f"{step.size}{' *' if step.size == self.size else ''}" for step in self.path]
        largest = above(max(step.gap for step in self.path))
        notes = [f"* chosen. At each size weights are the best ones for its members, to a gap of {largest} at most."]
        return rendering.Table(title, names, columns, notes)

    def __str__(self) -> str:
        return rendering.text(self.table())

    def _repr_html_(self) -> str:
        return rendering.html(self.table())


def _gone(before: PathStep, after: PathStep) -> str:
    """Who left between two steps; the best member alone may be one that had left before."""
    names = [name for name in before.names if name not in after.names]
    back = [f"; {name} is back" for name in after.names if name not in before.names]
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "") + "".join(back[:1])
