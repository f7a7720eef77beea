"""What a fresh process waits for: its first fit, and the first row of a model that is loaded.

Imports nothing but the standard library until a clock runs.
"""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from typing import Any

#: The class that loads a model, of a module and a task.
LOADERS = {"catboost": "CatBoost", "xgboost": "XGB"}


def first_fit(module: str, stem: str, settings: dict[str, Any], began: float) -> dict[str, float]:
    """Import a library and fit diabetes.

    Parameters
    ----------
    module, stem : str
        The regressor is ``stem + "Regressor"``.
    settings : dict
    began : float
        When the process was started, by ``time.time()``.
    """
    if module == "gce":
        importlib.import_module("torch")
    X, y = importlib.import_module("sklearn.datasets").load_diabetes(return_X_y=True)
    at = time.perf_counter()
    # a library may load what a class needs only when that is asked for
    kind = getattr(importlib.import_module(module), stem + "Regressor")
    imported = time.perf_counter()
    kind(**settings).fit(X, y)
    done = time.perf_counter()
    return {"import_seconds": imported - at, "fit_seconds": done - imported, "total_seconds": time.time() - began}


def first_row(module: str, path: str, row: str, regression: bool) -> dict[str, float]:
    """Import a library, load the model at ``path`` and predict the row ``(1, d)`` in the .npy file ``row``."""
    began = time.perf_counter()
    if module == "gce":
        importlib.import_module("torch")
    torch = time.perf_counter() - began
    library, task = importlib.import_module(module), "Regressor" if regression else "Classifier"
    if module == "gce":
        model = library.load(path)
    elif module == "lightgbm":
        model = library.Booster(model_file=path)
    else:
        model = getattr(library, LOADERS[module] + task)()
        model.load_model(path)
    model.predict(importlib.import_module("numpy").load(row))
    seconds = time.perf_counter() - began
    beyond = seconds - torch if module == "gce" else None
    return {"seconds": seconds, "beyond_torch_seconds": beyond, "file_bytes": Path(path).stat().st_size}
