"""A fitted stack as one immutable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from sklearn.utils import Bunch

from gce._utils.params import counted, short_repr
from gce.estimators.stacking.checks import is_dropped
from gce.estimators.stacking.out_of_fold import OutOfFold
from gce.estimators.stacking.task import StackTask
from gce.frank_wolfe.simplex import Solution
from gce.training.predictions import Array

#: Members whose weights are shown.
_SHOWN = 5

Task = TypeVar("Task", bound=StackTask)


@dataclass(frozen=True, eq=False)
class StackResult(Generic[Task]):
    """Fitted members, their weights, and the predictions on which these were solved.

    Parameters
    ----------
    named_estimators : Bunch
        The fitted members by name; ``"drop"`` for those left out.
    task : StackTask
    solution : Solution
        Weights in the order of ``models``.
    out_of_fold : OutOfFold or None
        None in a copy made by ``without_cache``.
    seed : int
        Drawn from ``random_state`` when the stack was fitted.
    """

    named_estimators: Bunch
    task: Task
    solution: Solution
    out_of_fold: OutOfFold | None
    seed: int

    #: A stack has no rounds.
    solved_at_once: ClassVar[bool] = True

    def __repr__(self) -> str:
        """Members, their heaviest weights, and what these were solved to, in three lines."""
        weights = sorted(zip(self.models, self.solution.weights, strict=True), key=lambda pair: -pair[1])
        shown = ", ".join(f"{short_repr(name)} {weight:.3g}" for name, weight in weights[:_SHOWN])
        others = f", and {len(weights) - _SHOWN:,} others" if len(weights) > _SHOWN else ""
        rows = "no kept rows" if self.out_of_fold is None else counted(len(self.out_of_fold.rows), "row")
        return (
            f"StackResult of {counted(len(weights), 'member')} and {rows}, {self.task.loss!r}\n"
            f"  weights: {shown}{others}\n"
            f"  loss {self.solution.loss:.4g}, at most {max(self.solution.gap, 0.0):.2g} above the least; "
            f"{len(self.solution.used):,} in use"
        )

    @property
    def models(self) -> dict[str, Any]:
        """The fitted members by name, in the order of the weights."""
        return {name: model for name, model in self.named_estimators.items() if not is_dropped(model)}

    def mixture(self, X: Any) -> Array:
        """The weighted sum of members' responses, ``(n, k)``; members of zero weight are not evaluated."""
        total: Any = 0.0  # an array from the first member on, added to in place
        for (name, model), weight in zip(self.models.items(), self.solution.weights, strict=True):
            if weight > 0:
                total += weight * self.task.response.predict(name, model, X)
        return total

    def select(self, index: Sequence[int], out_of_fold: OutOfFold | None, solution: Solution) -> StackResult[Task]:
        """Keep some of the members.

        Parameters
        ----------
        index : sequence of P int
            Indices of the members to keep.
        out_of_fold : OutOfFold or None
            Of the kept members.
        solution : Solution
            Of the kept members.
        """
        models = list(self.models.items())
        kept = Bunch(**dict(models[j] for j in index))
        return replace(self, named_estimators=kept, out_of_fold=out_of_fold, solution=solution)
