"""Models that processes and threads fit and predict with, and their answers, which can be compared to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge

import gce
from gce.bases import Forest, Neural, SymmetricTree, Tree

ROWS, NEW = 300, 1000
FEW: dict[str, Any] = {"max_atoms": 4, "max_iter": 4, "cv": 2, "random_state": 0}
NET = Neural(hidden=3, max_epochs=3)
TREE = Tree(max_leaf_nodes=6)


def _stack(n_jobs: int | None) -> Any:
    members = [
        ("ridge", Ridge()),
        ("trees", gce.GCERegressor(basis=TREE, **FEW)),
        ("net", gce.GCERegressor(basis=NET, **FEW)),
    ]
    return gce.ConvexStackingRegressor(members, cv=2, random_state=0, n_jobs=n_jobs)


#: Estimators by name, of a number of jobs.
MODELS: dict[str, Callable[[int | None], Any]] = {
    "default classifier": lambda n_jobs: gce.GCEClassifier(**{**FEW, "max_atoms": 6}, n_jobs=n_jobs),
    "default regressor": lambda n_jobs: gce.GCERegressor(**{**FEW, "max_atoms": 6}, n_jobs=n_jobs),
    "trees": lambda n_jobs: gce.GCERegressor(basis=TREE, **FEW, n_jobs=n_jobs),
    "symmetric trees": lambda n_jobs: gce.GCEClassifier(basis=SymmetricTree(max_depth=3), **FEW, n_jobs=n_jobs),
    "forests": lambda n_jobs: gce.GCEClassifier(basis=Forest(n_estimators=4), **FEW, n_jobs=n_jobs),
    "networks": lambda n_jobs: gce.GCERegressor(basis=NET, **FEW, n_jobs=n_jobs),
    "joint networks": lambda n_jobs: gce.NGCEClassifier(
        n_atoms=2, hidden=3, max_epochs=3, random_state=0, n_jobs=n_jobs
    ),
    "mixed": lambda n_jobs: gce.GCEClassifier(basis=[TREE, NET], **FEW, n_jobs=n_jobs),
    "stack": _stack,
    "shards": lambda n_jobs: gce.GCERegressor(basis=TREE, max_iter=4, random_state=0, n_jobs=n_jobs),
}


class Asked(NamedTuple):
    """A model, and what it is fitted on.

    Parameters
    ----------
    name : str
        One of :data:`MODELS`.
    seed : int
        Of the rows.
    folder : Path
        Where files of models and rows are.
    n_jobs : int or None
        Of the estimator.
    """

    name: str
    seed: int
    folder: Path
    n_jobs: int | None = None

    @property
    def path(self) -> Path:
        """The file of the model that was fitted alone."""
        return self.folder / f"{self.name.replace(' ', '-')}.safetensors"

    def rows(self, count: int = ROWS, more: int = 0) -> tuple[Any, Any]:
        """Rows and targets; others with another ``more``."""
        rng = np.random.default_rng([self.seed, more])
        X = rng.normal(size=(count, 5))
        y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.1 * rng.normal(size=count)
        if self.classes:
            y = np.array(["low", "high"])[(y > y.mean()).astype(int)]
        if self.name not in ("mixed", "shards"):
            return X, y
        frame = pd.DataFrame(X, columns=list("abcde"))
        frame["kind"] = pd.Categorical.from_codes(rng.integers(3, size=count), ["red", "green", "blue"])
        return frame, y

    def estimator(self) -> Any:
        """The estimator, not fitted."""
        return MODELS[self.name](self.n_jobs)

    def fit(self) -> Any:
        """The fitted model."""
        X, y = self.rows()
        if self.name != "shards":
            return clone(self.estimator()).fit(X, y)
        # written by each for itself: a file that changes between two looks at it is refused
        path = self.folder / f"rows-{uuid4().hex}.parquet"
        X.assign(y=y).to_parquet(path, row_group_size=64)
        try:
            return self.estimator().fit(gce.Shards(path, target="y"))
        finally:
            path.unlink()

    def ready(self) -> Any:
        """A model that is ready to predict: of the file where there is one, else fitted."""
        return gce.load(self.path) if self.path.exists() else self.fit()

    def predicted(self, model: Any) -> str:
        """The model's name and the bits of its predictions."""
        X, _ = self.rows(NEW, more=1)
        bits = hashlib.sha256(np.ascontiguousarray(model.predict(X)).astype("U" if self.classes else float).tobytes())
        if self.classes:
            bits.update(np.ascontiguousarray(model.predict_proba(X)).tobytes())
        return f"{self.name}: {bits.hexdigest()[:16]}"

    @property
    def classes(self) -> bool:
        """Whether it predicts classes."""
        return "Classifier" in type(self.estimator()).__name__

    def answer(self) -> str:
        """Fit and predict, with torch in use before and after."""
        use_torch()
        answer = self.predicted(self.fit())
        use_torch()
        return answer

    def alone(self) -> str:
        """The same by one process with one thread; keeps the model in a file where it has such a form."""
        model = self.fit()
        if hasattr(model, "save"):
            model.save(self.path)
        return self.predicted(model)


def use_torch() -> None:
    """Compute something on two threads of torch's own, which stay: a copy of this process does not have them."""
    if torch.get_num_threads() != 2:
        torch.set_num_threads(2)
    numbers = torch.arange(1 << 18, dtype=torch.float64)
    if float((numbers * 2).sum()) != (1 << 18) * ((1 << 18) - 1.0):
        raise ValueError("torch has lost its sum")
