"""Callbacks that report the metrics of every round to TensorBoard, MLflow and Optuna."""

from __future__ import annotations

import math
import re
import weakref
from pathlib import Path
from typing import Any, Self

from gce._utils.optional import import_optional
from gce.frank_wolfe.step import Step
from gce.training.callbacks import MemberMeans


class Tracker:
    """Base class of callbacks that report metrics, averaged over all members as in ``history_``.

    A clone of a model shares the tracker, as scikit-learn's own callbacks are shared: writers and trials exist once. So
    a tracker is for one fit at a time, and the fits of a search would overwrite each other's curves.

    Attributes
    ----------
    means : MemberMeans
        Means over the members.
    """

    def __init__(self) -> None:
        self.means = MemberMeans()

    def __sklearn_clone__(self) -> Self:
        return self

    def curves(self, step: Step) -> dict[str, float]:
        """A round's metrics by the names of their curves: of the whole fit, and of the family if there are several.

        Parameters
        ----------
        step : Step
            The round.

        Returns
        -------
        dict of str to float
        """
        means = self.means(step)
        if step.family is None:
            return means
        # characters that MLflow accepts in a name; a slash makes a group
        family = re.sub(r"[^\w -]", "_", step.family)
        return means | {f"{family}/{name}": value for name, value in means.items()}


class TensorBoard(Tracker):
    """Callback that writes the metrics of every round to TensorBoard.

    Parameters
    ----------
    writer : path or SummaryWriter
        A folder, in which an event file is opened in the first round, flushed after every round and closed with this
        object, or a writer of ``torch.utils.tensorboard``, which the caller closes.

    Examples
    --------
    >>> from gce import GCERegressor
    >>> from gce.training import TensorBoard
    >>> model = GCERegressor(callbacks=[TensorBoard("runs/first")])
    """

    def __init__(self, writer: str | Path | Any) -> None:
        super().__init__()
        self.writer = writer
        self._open: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # an open event file belongs to this process: others write new files to its folder
        return {**self.__dict__, "_open": None, "writer": getattr(self.writer, "log_dir", self.writer)}

    def __call__(self, step: Step) -> bool:
        if self._open is None:
            self._open = self._open_writer() if isinstance(self.writer, str | Path) else self.writer
        for name, value in self.curves(step).items():
            self._open.add_scalar(name, value, step.t)
        self._open.flush()
        return False

    def _open_writer(self) -> Any:
        opened = import_optional("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(self.writer))
        # a writer has a thread, which would outlive the fit
        weakref.finalize(self, opened.close)
        return opened


class MLflow(Tracker):
    """Callback that logs the metrics of every round to MLflow.

    Parameters
    ----------
    run : str or mlflow.ActiveRun, optional
        A run or its id. By default the active run; MLflow starts one if there is none.

    Examples
    --------
    >>> from gce import GCERegressor
    >>> from gce.training import MLflow
    >>> model = GCERegressor(callbacks=[MLflow()])
    """

    def __init__(self, run: str | Any | None = None) -> None:
        super().__init__()
        self.run = run

    def __call__(self, step: Step) -> bool:
        run = self.run if self.run is None or isinstance(self.run, str) else self.run.info.run_id
        import_optional("mlflow", "mlflow").log_metrics(self.curves(step), step=step.t, run_id=run)
        return False


class OptunaPruning(Tracker):
    """Callback that prunes unpromising trials of Optuna.

    Every round reports the mean validation value; if the study's pruner decides so, ``fit`` raises
    ``optuna.TrialPruned``. The value is a loss or a negative score: a study that maximises gets its negative. With
    several families, rounds that are worse than the best of an earlier family report that one, which the fit keeps.

    Parameters
    ----------
    trial : optuna.Trial
        The trial.

    Examples
    --------
    An objective of a study:

    >>> from gce import GCERegressor
    >>> from gce.training import OptunaPruning
    >>> def objective(trial):
    ...     atoms = trial.suggest_int("max_atoms", 20, 200)
    ...     model = GCERegressor(max_atoms=atoms, callbacks=[OptunaPruning(trial)])
    ...     return model.fit(X, y).score(X_val, y_val)
    """

    def __init__(self, trial: Any) -> None:
        super().__init__()
        self.trial = trial
        self._best: dict[str | None, float] = {}

    def __call__(self, step: Step) -> bool:
        optuna = import_optional("optuna", "optuna")
        if step.validation is None:
            raise ValueError("OptunaPruning needs held-out rows: set cv or validation_fraction, or pass X_val to fit")
        value = self._value(step)
        # a FixedTrial, which replays parameters, belongs to no study
        study = getattr(self.trial, "study", None)
        maximise = study is not None and study.direction == optuna.study.StudyDirection.MAXIMIZE
        self.trial.report(-value if maximise else value, step.t)
        if self.trial.should_prune():
            raise optuna.TrialPruned(f"pruned in round {step.t} at a validation value of {value:.6g}")
        return False

    def _value(self, step: Step) -> float:
        """The mean validation value of a round, or that of an earlier family's best round if it is better."""
        if step.t == 1:
            self._best = {}
        value = self.means(step)["validation"]
        earlier = [best for family, best in self._best.items() if family != step.family]
        self._best[step.family] = min(value, self._best.get(step.family, math.inf))
        return min([value, *earlier])
