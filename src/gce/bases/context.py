"""What oracle calls of one fit share, so that a basis is plain parameters, and what "auto" means for a basis."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gce.distributed.world import World

if TYPE_CHECKING:
    from gce.bases.trees.samples import RowSamples

Value = TypeVar("Value")


class FitContext:
    """Per-fit state that is passed to every call of :meth:`gce.bases.Basis.minimize`.

    Parameters
    ----------
    deadline : float, default=math.inf
        When oracle calls must be done, on the clock of ``time.monotonic``.
    world : World, optional
        Processes that make the same oracle calls on the same rows, and may divide the work. Default: this one alone.
    samples : RowSamples, optional
        All training rows, where those of oracle calls are a sample of them.

    Attributes
    ----------
    deadline : float
    world : World
    samples : RowSamples or None
    cut_short : bool
        An oracle call returned less than it would have without the deadline.

    Examples
    --------
    >>> context, rows = FitContext(), [1, 2, 3]
    >>> context.cached((rows,), "total", lambda: sum(rows))
    6
    >>> context.cached((rows,), "total", lambda: 1 / 0)
    6
    """

    def __init__(
        self, deadline: float = math.inf, world: World | None = None, samples: RowSamples | None = None
    ) -> None:
        self.deadline = deadline
        self.world = World() if world is None else world
        self.samples = samples
        self.cut_short = False
        # the owners are kept beside each value: the identity of a freed object could be given to another
        self._cache: dict[tuple[tuple[int, ...], Hashable], tuple[tuple[object, ...], object]] = {}

    def set_deadline(self, deadline: float) -> None:
        """Start a new time limit, with ``cut_short`` false again.

        Parameters
        ----------
        deadline : float
            On the clock of ``time.monotonic``.
        """
        self.deadline, self.cut_short = deadline, False

    def note_cut_short(self) -> None:
        """Record that an oracle call ended early because of the deadline."""
        self.cut_short = True

    def cached(self, owners: tuple[object, ...], name: Hashable, compute: Callable[[], Value]) -> Value:
        """Return a value that is computed once per fit.

        Parameters
        ----------
        owners : tuple
            The objects that the value belongs to, such as the rows, compared by identity.
        name : hashable
            Which of their values.
        compute : callable
            Computes it, without arguments.

        Returns
        -------
        object
            What ``compute`` returned the first time.
        """
        key = tuple(map(id, owners)), name
        if key not in self._cache:
            self._cache[key] = owners, compute()
        return self._cache[key][1]  # type: ignore[return-value]


class FitDefaults(NamedTuple):
    """What "auto" means for models of a basis.

    Parameters
    ----------
    algorithm, line_search : str
        Their names.
    calls : int
        Maximum number of oracle calls per member.
    patience : int
        Rounds without improvement after which a member stops.
    learning_rate : float
        Fraction of the full step that boosting takes.
    screening_rounds : int
        Rounds after which the family must have improved on the families fitted before it; 0: no such test.
    """

    algorithm: str = "pairwise"
    line_search: str = "exact"
    calls: int = 100
    patience: int = 20
    learning_rate: float = 0.1
    screening_rounds: int = 0
