"""gce as a system of TabArena, which hands it raw tables and a budget and scores what comes back.

    build/autogluon/bin/python benchmarks/tabarena_gce.py [--subset small lite] [--time-limit 3600]

After `make autogluon`, which installs tabarena 0.1.0 from PyPI. A run downloads TabArena's data sets from OpenML and
the results of the other methods, and writes a leaderboard to out/tabarena. `--subset lite` is the first split of every
set, which is what TabArena asks for in a request to be listed.

Tested with that package, on made-up tables (tests/integrations/test_tabarena.py): an experiment of TabArena's bundle,
run on a task of one's own from the warm-up to the scores. Not run so far, because it needs the network: ``main``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import run_script
from tabarena.benchmark.exec_models import ExternalSystemModel
from tabarena.benchmark.experiment import TabArenaV0pt1ExperimentBundle
from tabarena.utils.config_utils import SystemConfigGenerator

import gce


class GCESystem(ExternalSystemModel):
    """Default fits of gce, which hold out rows, weigh families and calibrate by themselves.

    Parameters
    ----------
    settings : dict, optional
        Parameters of GCERegressor or GCEClassifier that differ from their defaults.
    **kwargs
        Those of ``ExternalSystemModel``: problem type, metric, budget.
    """

    def __init__(self, *, settings: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings or {}
        self._model: Any = None

    @property
    def warmup_fn(self) -> Callable[[], None]:
        """A fit of made-up rows: it loads torch and the kernels, which are compiled on a GPU's first fit."""
        return self._warm_up

    def _warm_up(self) -> None:
        X = np.random.default_rng(0).normal(size=(100, 3))
        y = X[:, 0] if self.problem_type == "regression" else X[:, 0] > 0
        model = self._estimator(self.num_cpus, self.num_gpus).set_params(max_iter=2, random_state=0)
        model.fit(X, y).predict(X)

    def _estimator(self, num_cpus: int | None, num_gpus: int | None) -> Any:
        kind = gce.GCERegressor if self.problem_type == "regression" else gce.GCEClassifier
        # without a limit of GPUs one that is there is used
        device = "auto" if num_gpus is None else "cuda" if num_gpus else "cpu"
        return kind(n_jobs=num_cpus, device=device, verbose=False).set_params(**self.settings)

    def _fit_system(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        *,
        validation_metadata: Any,
        num_cpus: int | None,
        num_gpus: int | None,
        time_limit: float | None,
        random_state: int | None,
        **context: Any,
    ) -> GCESystem:
        """Fit on all rows.

        Of ``context``, the target's name, the problem type and the metric are not needed: the loss is that of the
        default. The limit of memory is not known to gce, which looks at what is free.
        """
        seed = 0 if random_state is None else random_state
        model = self._estimator(num_cpus, num_gpus).set_params(time_limit=time_limit, random_state=seed)
        self._model = model.fit(X, y, groups=groups(X, validation_metadata.group_on))
        return self

    def _predict(self, X: pd.DataFrame) -> pd.Series:
        return pd.Series(self._model.predict(X), index=X.index)

    def _predict_proba(self, X: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame(self._model.predict_proba(X), index=X.index, columns=self._model.classes_)


def groups(X: pd.DataFrame, columns: str | list[str] | None) -> pd.Series | None:
    """The group of each row, which folds must not part: rows that agree in all these columns."""
    if not columns:
        return None
    return X.groupby([columns] if isinstance(columns, str) else columns, dropna=False, observed=True).ngroup()


def experiments(time_limit: float, **settings: Any) -> Any:
    """The one experiment of these settings, as TabArena's runner takes it."""
    generator = SystemConfigGenerator(model_cls=GCESystem, name="GCE", manual_configs=[{"settings": settings}])
    bundle = TabArenaV0pt1ExperimentBundle(models=[(generator, 0)], system_experiments=True)
    return bundle.build_experiments(time_limit=time_limit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subset", nargs="+", default=["small", "lite"], help="TabArena's names of subsets")
    parser.add_argument("--time-limit", type=float, default=3600, help="seconds of a fit")
    parser.add_argument("--folder", type=Path, default=Path("out/tabarena"))
    asked = parser.parse_args()

    from tabarena.contexts import TabArenaContext

    context = TabArenaContext()
    context.build_and_run_jobs(
        experiments(asked.time_limit), expname=str(asked.folder / "runs"), subset=asked.subset, debug_mode=True
    )
    board = context.leaderboard_to_website_format(leaderboard=context.compare(output_dir=asked.folder / "eval"))
    sys.stdout.write(board.to_markdown(index=False) + "\n")


if __name__ == "__main__":
    run_script(main)
