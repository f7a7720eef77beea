"""The pruning path: the loss of an ensemble at every size, from all of its members down to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gce._utils import text
from gce._utils.numerals import format_bound, format_change, format_number
from gce._utils.optional import import_pandas

if TYPE_CHECKING:
    from gce.inspection.explanation.pictures import PruningPathDisplay

#: How many names of removed members a row of the table lists.
_LISTED = 3


@dataclass(frozen=True, eq=False)
class PathStep:
    """An ensemble on the pruning path, with the best weights for its members.

    Parameters
    ----------
    size : int
        Number of members with positive weight.
    loss : float
        Its loss.
    gap : float
        An upper bound on the distance of ``loss`` from the least loss of these members.
    names : tuple of str
        Names of the members with positive weight.
    weights : array of shape (size,)
        Their weights.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.inspection import PathStep
    >>> PathStep(size=2, loss=1.0, gap=0.0, names=("ridge", "tree"), weights=np.array([0.7, 0.3])).names
    ('ridge', 'tree')
    """

    size: int
    loss: float
    gap: float
    names: tuple[str, ...]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PruningPath:
    """The loss of an ensemble at every size, as returned by ``pruning_path``.

    ``str(path)`` and notebooks show a table, ``plot`` draws the loss against the size.

    Parameters
    ----------
    steps : tuple of PathStep
        From all members in use down to one.

    Examples
    --------
    >>> import numpy as np
    >>> from gce.inspection import PathStep, PruningPath
    >>> both = PathStep(2, 1.0, 0.0, ("ridge", "tree"), np.array([0.7, 0.3]))
    >>> one = PathStep(1, 1.1, 0.0, ("ridge",), np.ones(1))
    >>> path = PruningPath((both, one))
    >>> path.sizes.tolist()
    [2, 1]
    >>> print(path)
    Pruning path: loss 1 with 2 members, 1.1 with 1 (+10 %)
    <BLANKLINE>
        loss  increase  removed
    2  1.000
    1  1.100     +10 %     tree
    <BLANKLINE>
    - At each size the weights are optimal for the remaining members, to a gap of at most 0.
    """

    steps: tuple[PathStep, ...]

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of members in use at each step, decreasing."""
        return np.array([step.size for step in self.steps], dtype=np.intp)

    @property
    def losses(self) -> NDArray[np.float64]:
        """Loss at each step."""
        return np.array([step.loss for step in self.steps])

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Gap at each step: an upper bound on how far the loss is from the least one of the same members."""
        return np.array([step.gap for step in self.steps])

    def to_frame(self) -> Any:
        """Return the path as a pandas DataFrame with one row per size, the largest first.

        Returns
        -------
        pandas.DataFrame
            Columns ``loss``, ``gap`` and ``members``; the index is the size.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        pandas = import_pandas()
        columns = {"loss": self.losses, "gap": self.gaps, "members": [step.names for step in self.steps]}
        return pandas.DataFrame(columns, index=pandas.Index(self.sizes, name="size"))

    def plot(self, ax: Any = None, *, size: int | None = None) -> PruningPathDisplay:
        """Plot the loss against the number of members.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        size : int, optional
            A size on the path to mark.

        Returns
        -------
        PruningPathDisplay
        """
        # most who fit a model do not draw it
        from gce.inspection.explanation.pictures import PruningPathDisplay

        return PruningPathDisplay(self, size).plot(ax)

    def table(self) -> text.TextTable:
        """Return the table that ``str`` and notebooks show."""
        full, last = self.steps[0], self.steps[-1]
        increases = [format_change(step.loss, full.loss) for step in self.steps]
        columns: dict[str, list[float | str | None]] = {
            "loss": [format_number(step.loss) for step in self.steps],
            "increase": [*increases],
            "removed": ["", *map(_removed, self.steps, self.steps[1:])],
        }
        title = f"Pruning path: loss {full.loss:.4g} with {full.size} member{'s' if full.size != 1 else ''}"
        if len(self.steps) > 1:
            title += f", {last.loss:.4g} with {last.size}" + (f" ({increases[-1]})" if increases[-1] else "")
        bound = format_bound(float(self.gaps.max()))
        notes = [f"At each size the weights are optimal for the remaining members, to a gap of at most {bound}."]
        return text.TextTable(title, [str(step.size) for step in self.steps], columns, notes)

    def __str__(self) -> str:
        return text.render_text(self.table())

    def _repr_html_(self) -> str:
        return text.render_html(self.table())


def _removed(before: PathStep, after: PathStep) -> str:
    """Members removed between two steps; the last step, the best single member, may be one removed earlier."""
    names = [name for name in before.names if name not in after.names]
    back = [f"; {name} is back" for name in after.names if name not in before.names]
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "") + "".join(back[:1])
