"""The circumstances of one fit: parameters checked, clock started, checkpoint opened, threads limited."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from sklearn.exceptions import ConvergenceWarning

from gce._utils.devices import find_device
from gce._utils.parallel import alone, limited, one_blas_thread, torch_threads
from gce._utils.params import check_parameters, is_number, short_repr
from gce._utils.random import draw_seed
from gce._utils.warn import warn_user
from gce.distributed import World, find_world
from gce.estimators._validation import FitInput, validate
from gce.io.checkpoints import Checkpoint, opened
from gce.preprocessing.shards import Shards
from gce.preprocessing.splits import is_hurried
from gce.training.callbacks import Callback, TimeLimit
from gce.training.data import FitData
from gce.training.plan import FitPlan, plan_fit
from gce.training.progress import shows_progress_bar
from gce.training.result import FitResult
from gce.training.rounds import NO_ROUNDS
from gce.training.sklearn_callbacks import FitTask


class FitSession:
    """A context manager around a fit: what is opened on entering is closed at the end, also after an error.

    Parameters
    ----------
    model : estimator
        Its parameters are checked on entering.
    given : FitInput
    clock : TimeLimit, optional
        Started before any data is read.
    checkpoint : str or Path, optional
        A folder in which rounds are kept.

    Attributes
    ----------
    clock : TimeLimit or None
    store : Checkpoint or None
        The checkpoint, opened.
    previous : FitResult or None
        The fit that a warm start continues; a checkpoint takes its place.
    seed : int
    task : FitTask
        The fit as scikit-learn's callbacks see it.
    callbacks : list of callables
        The user's.
    world : World
        The processes of the fit: of rows in files those of the process group, else this one alone.
    """

    store: Checkpoint | None
    previous: FitResult | None
    seed: int
    callbacks: list[Callback]

    def __init__(
        self,
        model: Any,
        given: FitInput,
        *,
        clock: TimeLimit | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        self._model, self._given, self._checkpoint, self._stack = model, given, checkpoint, ExitStack()
        self.clock = clock
        self.world = World()
        self.task = FitTask(model, given.X, given.y, given.sample_weight)

    def __enter__(self) -> Self:
        model = self._model
        check_parameters(model)
        # models that are trained all at once have no verbose, callbacks and warm_start
        given = vars(model)
        # a progress bar that cannot be drawn is refused before any work is done
        shows_progress_bar(given.get("verbose"))
        self.callbacks = _check_callbacks(given.get("callbacks"))
        if isinstance(self._given.X, Shards):
            self.world = find_world()
        with ExitStack() as stack:
            self.store = self._open_checkpoint(stack)
            self.previous = None if self.store is not None else _previous(given)
            find_device(model.device)
            self.seed = self._seed()
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch_threads(model.n_jobs))
            stack.enter_context(limited(model.n_jobs))
            if isinstance(self._given.X, Shards):
                # sums of tensors are rounded by how many threads there are, and processes may have different numbers
                stack.enter_context(alone())
                stack.enter_context(one_blas_thread())
            self._stack = stack.pop_all()
        return self

    def read(self, statistics: bool) -> FitData:
        """The data of the fit, of which columns with many categories may have statistics of the target."""
        if not isinstance(self._given.X, Shards):
            model, given, clock = self._model, self._given, self.clock
            data = validate(model, given, seed=self.seed, previous=self.previous, statistics=statistics)
            if clock is not None and given.X_val is None and is_hurried(model.cv, data.n_samples, clock.seconds):
                clock.shortcuts.append("rows were held out once, in place of folds")
            return data
        # most fits need none of it
        from gce._utils.workspace import workspace
        from gce.estimators._shard_data import read_shards

        # before a folder is made
        _ = self._given.X.roles
        files = self._stack.enter_context(workspace(self._given.X.folder))
        return read_shards(self._model, self._given, seed=self.seed, world=self.world, files=files)

    def plan(self, data: FitData) -> FitPlan:
        """What the fit will do; one process of several shows its progress."""
        plan = plan_fit(self._model, data)
        return plan if self.world.rank == 0 else replace(plan, verbose=False)

    def _open_checkpoint(self, stack: ExitStack) -> Checkpoint | None:
        """The checkpoint, which one process writes to and all read from."""
        if self._checkpoint is None:
            return None
        if self.world.rank == 0:
            store = stack.enter_context(opened(self._checkpoint))
            self.world.wait()
        else:
            self.world.wait()
            store = Checkpoint(self._checkpoint, writes=False)
        # nobody writes while others read
        store.before_writing = self.world.wait
        return store

    def _seed(self) -> int:
        if self.previous is not None:
            return self.previous.seed
        if self.store is not None and self.store.seed is not None and self._model.random_state is None:
            return self.store.seed
        # processes that draw a seed would draw different ones
        return int(self.world.gather(str(draw_seed(self._model.random_state)).encode())[0])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if error is None:
            self.task.end()
            if self.clock is not None and self.clock.message:
                warn_user(self.clock.message, ConvergenceWarning)


def start_clock(seconds: float | None) -> TimeLimit | None:
    """A time limit that starts now.

    Parameters
    ----------
    seconds : float or None
        An invalid value gives no limit here; :class:`FitSession` refuses it.

    Returns
    -------
    TimeLimit or None
    """
    return TimeLimit(float(seconds)) if seconds is not None and is_number(seconds) else None


def _previous(given: dict[str, Any]) -> FitResult | None:
    """The result that a warm start continues."""
    result: FitResult | None = given.get("_result")
    if result is None or not given.get("warm_start"):
        return None
    if result.edited:
        raise ValueError("an edited model has no rounds to continue from: set warm_start=False and fit again")
    if not result.has_stages:
        raise ValueError(NO_ROUNDS)
    return result


def _check_callbacks(given: Any) -> list[Callback]:
    callbacks = [] if given is None else list(given)
    if not all(map(callable, callbacks)):
        raise ValueError(f"callbacks must be a list of callables, got {short_repr(given)}")
    return callbacks
