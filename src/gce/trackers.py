"""A fit's curves where other tools look at them. A tracker is a callback: it hears of every round."""

from __future__ import annotations

import math
import re
import weakref
from pathlib import Path
from typing import Any, Self

from gce.algorithms import Step
from gce.callbacks import Means
from gce.extras import extra


class Tracker:
    """A round's numbers, means over all members, as they stand in ``history_``.

    A clone of a model tracks with the same object, as scikit-learn's own callbacks do: writers and trials are made
    once. So one tracker is for one fit at a time, and the fits of a search that is given one write their curves over
    each other.
    """

    def __init__(self) -> None:
        self.means = Means()

    def __sklearn_clone__(self) -> Self:
        return self

    def curves(self, step: Step) -> dict[str, float]:
        """A round's points by the names of their curves: the whole fit's, and of several families the family's own."""
        means = self.means(step)
        if step.family is None:
            return means
        # what MLflow takes in a name; a slash makes a group
        family = re.sub(r"[^\w -]", "_", step.family)
        return means | {f"{family}/{name}": value for name, value in means.items()}


class TensorBoard(Tracker):
    """Curves for TensorBoard, one point a round.

    Parameters
    ----------
    writer : path or SummaryWriter
        A folder, where an event file is opened in the first round, written out after every round and closed with this
        object, or a writer of ``torch.utils.tensorboard``, which stays the caller's to close.
    """

    def __init__(self, writer: str | Path | Any) -> None:
        super().__init__()
        self.writer = writer
        self._open: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # an open event file belongs to this process: another goes on in its folder
        return {**self.__dict__, "_open": None, "writer": getattr(self.writer, "log_dir", self.writer)}

    def __call__(self, step: Step) -> bool:
        if self._open is None:
            self._open = self._opened() if isinstance(self.writer, str | Path) else self.writer
        for name, value in self.curves(step).items():
            self._open.add_scalar(name, value, step.t)
        self._open.flush()
        return False

    def _opened(self) -> Any:
        opened = extra("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(self.writer))
        # it has a thread of its own, which would outlive a hundred fits
        weakref.finalize(self, opened.close)
        return opened


class MLflow(Tracker):
    """Curves for MLflow, one point a round.

    Parameters
    ----------
    run : str or mlflow.ActiveRun, optional
        A run or its id. Default: the active run (MLflow starts one where there is none).
    """

    def __init__(self, run: str | Any | None = None) -> None:
        super().__init__()
        self.run = run

    def __call__(self, step: Step) -> bool:
        run = self.run if self.run is None or isinstance(self.run, str) else self.run.info.run_id
        extra("mlflow", "mlflow").log_metrics(self.curves(step), step=step.t, run_id=run)
        return False


class OptunaPruning(Tracker):
    """End a trial of Optuna that looks hopeless.

    Every round the mean validation value is reported; where the study's pruner then says so, ``optuna.TrialPruned``
    leaves ``fit``. The value is a loss or minus a score: a study that maximises is told its negative. Of several
    families, rounds that are worse than the best of an earlier family report that: the fit has it already.

    Parameters
    ----------
    trial : optuna.Trial
    """

    def __init__(self, trial: Any) -> None:
        super().__init__()
        self.trial = trial
        self._best: dict[str | None, float] = {}

    def __call__(self, step: Step) -> bool:
        optuna = extra("optuna", "optuna")
        if step.validation is None:
            raise ValueError("OptunaPruning needs rows held out: set cv or validation_fraction, or give fit X_val")
        value = self._value(step)
        # a FixedTrial, which replays settings, belongs to no study
        study = getattr(self.trial, "study", None)
        maximise = study is not None and study.direction == optuna.study.StudyDirection.MAXIMIZE
        self.trial.report(-value if maximise else value, step.t)
        if self.trial.should_prune():
            raise optuna.TrialPruned(f"pruned in round {step.t} at a validation value of {value:.6g}")
        return False

    def _value(self, step: Step) -> float:
        """The mean validation value of a round, or that of an earlier family's best round where it is better."""
        if step.t == 1:
            self._best = {}
        value = self.means(step)["validation"]
        earlier = [best for family, best in self._best.items() if family != step.family]
        self._best[step.family] = min(value, self._best.get(step.family, math.inf))
        return min([value, *earlier])
