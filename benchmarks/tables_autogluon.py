"""One fit of AutoGluon by the Python of its own environment: ``PYTHON benchmarks/tables_autogluon.py FOLDER``.

FOLDER has train.parquet, test.parquet and task.json; predictions are written to answer.npz, and seconds and version to
answer.json. Needs autogluon.tabular and nothing of this project.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def cpu_seconds() -> float:
    """User and system seconds of this process and of those it has ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def fitted(folder: Path, task: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A predictor of medium quality within the task's seconds, and what it took."""
    from autogluon.tabular import TabularPredictor, __version__

    train = pd.read_parquet(folder / "train.parquet")
    kind = "regression" if task["regression"] else "binary" if train[task["target"]].nunique() == 2 else "multiclass"
    # probabilities are judged, so they are what it is asked for: its default would be the error
    metric = "root_mean_squared_error" if task["regression"] else "log_loss"
    predictor = TabularPredictor(
        task["target"], problem_type=kind, eval_metric=metric, path=str(folder / "models"), verbosity=0
    )
    cpu, wall = cpu_seconds(), time.perf_counter()
    limits = {"time_limit": task["seconds"], "num_cpus": task["threads"], "num_gpus": 0}
    predictor.fit(train, presets="medium_quality", **limits)
    took = {"fit_seconds": time.perf_counter() - wall, "cpu_seconds": cpu_seconds() - cpu}
    return predictor, {**took, "version": __version__}


def main() -> None:
    folder = Path(sys.argv[1])
    task = json.loads((folder / "task.json").read_text())
    predictor, found = fitted(folder, task)
    test = pd.read_parquet(folder / "test.parquet")
    began = time.perf_counter()
    answer = predictor.predict(test).to_numpy()
    found["predict_seconds"] = time.perf_counter() - began
    held = {"answer": answer}
    if not task["regression"]:
        proba = predictor.predict_proba(test)
        held |= {"proba": proba.to_numpy(), "classes": proba.columns.to_numpy()}
    np.savez(folder / "answer.npz", **held)
    found = {key: round(value, 6) if isinstance(value, float) else value for key, value in found.items()}
    (folder / "answer.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
