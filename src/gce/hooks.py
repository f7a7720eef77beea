"""scikit-learn's own callbacks (its 1.9 and later): a fit as a task, and below it a task a round.

The protocol is experimental there. With an older scikit-learn a model has no ``set_callbacks``, and nothing here runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

try:
    from sklearn import callback as protocol
except ImportError:
    protocol = None

from gce.algorithms import Step

P = ParamSpec("P")
R = TypeVar("R")


class _Unsupported:
    """Nothing to inherit."""


#: What a model inherits: ``set_callbacks``, where the installed scikit-learn has it.
Support: Any = _Unsupported if protocol is None else protocol.CallbackSupportMixin


def with_callbacks(method: Callable[P, R]) -> Callable[P, R]:
    """A ``fit`` after which callbacks are torn down, however it ends."""
    return method if protocol is None else protocol.with_callbacks(method)


class FitTask:
    """A fit, as callbacks see it.

    Parameters
    ----------
    estimator : ConvexModel
    X, y, sample_weight
        What the user gave to ``fit``.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        self._given = {
            "X": X,
            "y": y,
            "metadata": {} if sample_weight is None else {"sample_weight": sample_weight},
        }

    @property
    def watched(self) -> bool:
        """Whether any callback is set."""
        return hasattr(self._estimator, "_skl_callbacks")

    def begin(self, rounds: int) -> None:
        """Set callbacks up and tell them of the fit, which has so many rounds at most (0: none are shown)."""
        if protocol is not None:
            # the round after the last is begun too: whether there is one is known only when the next does not come
            self._context = self._estimator._init_callback_context(max_subtasks=rounds + 1 if rounds else 0)
            self._context.call_on_fit_task_begin(estimator=self._estimator, **self._given)

    def end(self) -> None:
        """The model is fitted."""
        if protocol is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={}, **self._given)

    def rounds(self, fitted: Callable[[], Mapping[str, Any]]) -> Rounds:
        """A callback of the loop that passes rounds on.

        Parameters
        ----------
        fitted : callable
            What the model's attributes would be, had the fit ended after the round: called only if somebody asks.
        """
        return Rounds(self._estimator, self._context, self._given, fitted)


class Rounds:
    """The end of a round and the beginning of the next, passed on to scikit-learn's callbacks; a context manager.

    As in scikit-learn's own solvers, the task that was begun after the last round is ended as an empty one.
    """

    def __init__(
        self, estimator: Any, context: Any, given: Mapping[str, Any], fitted: Callable[[], Mapping[str, Any]]
    ) -> None:
        self._estimator, self._context, self._given, self._fitted = estimator, context, given, fitted

    def _begin(self) -> None:
        self._task = self._context.subcontext(task_name="round")
        self._task.call_on_fit_task_begin(estimator=self._estimator, **self._given)

    def __enter__(self) -> Self:
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._task.call_on_fit_task_end(estimator=self._estimator)

    def __call__(self, step: Step) -> bool:
        stop = self._task.call_on_fit_task_end(
            estimator=self._estimator, reconstruction_attributes=self._fitted, **self._given
        )
        self._begin()
        return stop
