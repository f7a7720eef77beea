"""Support of scikit-learn's callbacks (1.9 and later): a fit is a task with one subtask per round.

The protocol is experimental. With an older scikit-learn models have no ``set_callbacks``, and this module does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

try:
    from sklearn import callback as protocol
except ImportError:
    protocol = None

from gce.frank_wolfe.step import Step

P = ParamSpec("P")
R = TypeVar("R")


#: Base classes with ``set_callbacks``, if the installed scikit-learn has it.
CALLBACK_SUPPORT: tuple[type[Any], ...] = () if protocol is None else (protocol.CallbackSupportMixin,)


def with_callbacks(method: Callable[P, R]) -> Callable[P, R]:
    """Decorator of ``fit`` that tears callbacks down, also after an error."""
    return method if protocol is None else protocol.with_callbacks(method)


class FitTask:
    """A fit as a task of scikit-learn's callbacks.

    Parameters
    ----------
    estimator : ConvexModel
        The model.
    X, y, sample_weight : object
        The arguments of ``fit``.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        self._given = {
            "X": X,
            "y": y,
            "metadata": {} if sample_weight is None else {"sample_weight": sample_weight},
        }

    @property
    def has_callbacks(self) -> bool:
        """Whether any callback is set."""
        return hasattr(self._estimator, "_skl_callbacks")

    def begin(self, rounds: int) -> None:
        """Set callbacks up and start the task.

        Parameters
        ----------
        rounds : int
            Maximum number of rounds; 0 if there are no subtasks.
        """
        if protocol is not None:
            # after the last round a task is started too, because only early stopping knows that it is the last
            self._context = self._estimator._init_callback_context(max_subtasks=rounds + 1 if rounds else 0)
            self._context.call_on_fit_task_begin(estimator=self._estimator, **self._given)

    def end(self) -> None:
        """End the task: the model is fitted."""
        if protocol is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator, reconstruction_attributes={}, **self._given)

    def rounds(self, fitted: Callable[[], Mapping[str, Any]]) -> RoundTasks:
        """A callback that passes rounds on to scikit-learn's callbacks.

        Parameters
        ----------
        fitted : callable
            Returns the fitted attributes as of the current round; called only if a callback needs them.
        """
        return RoundTasks(self._estimator, self._context, self._given, fitted)


class RoundTasks:
    """Callback that ends the task of a round and starts the next one; a context manager.

    As in scikit-learn's own solvers, the task that was started after the last round is ended without work.

    Parameters
    ----------
    estimator : ConvexModel
        The model.
    context : CallbackContext
        scikit-learn's context of the fit.
    given : mapping
        The arguments of ``fit``, for the callbacks.
    fitted : callable
        Returns the fitted attributes as of the current round.
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
