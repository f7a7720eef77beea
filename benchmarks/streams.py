"""Going on with new rows: a stream whose relation drifts, and models that learn from it batch by batch.

    python benchmarks/streams.py [--seeds 3] [--batches 30]

Prequential: every batch of 500 rows is predicted before it is learned from. Made-up streams (the same relation
throughout, one that turns slowly, one that changes every ten batches and comes back) and the hours of bike rentals in
their order. Compared are a GCE that is left alone, reweighted on the last batch, continued by ``warm_start``, both, or
fitted again on the last five batches; LightGBM left alone, by ``refit`` (new leaf values in old trees), continued by
``init_model``, or fitted again; and River's adaptive random forest, row by row, where it is installed. Writes
benchmarks/results/streams.md. The hours of bike rentals are looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol

import numpy as np
from data_sets import load
from harness import RESULTS, refuse_gaps, run_script
from numpy.typing import NDArray

import gce

Array = NDArray[np.float64]
Batch = tuple[Array, Array]

MACHINE = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, one thread"
#: Rows of a batch, batches of a window, rounds (or trees) of the first fit and of each batch.
ROWS, WINDOW, FIRST, MORE = 500, 5, 100, 20
#: Batches learned from before the first is judged.
WARM_UP = 1
#: Trees only, on all rows: early stopping would compare losses of rows that differ in their relation.
STREAM = {"basis": "tree", "cv": None, "validation_fraction": None, "n_iter_no_change": None, "warm_start": True}


class Learner(Protocol):
    """Learns from batches one after another."""

    def learn(self, X: Array, y: Array) -> None: ...

    def predict(self, X: Array) -> Array: ...


class Alone:
    """A model of the first batch."""

    def __init__(self, model: Any) -> None:
        self.model, self.fitted = model, False

    def learn(self, X: Array, y: Array) -> None:
        if not self.fitted:
            self.model.fit(X, y)
            self.fitted = True

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))


class Reweighted(Alone):
    """The atoms of the first batch, with the best weights for the last one."""

    def learn(self, X: Array, y: Array) -> None:
        if self.fitted:
            self.now = self.model.reweight(X, y)
        else:
            super().learn(X, y)
            self.now = self.model

    def predict(self, X: Array) -> Array:
        return np.asarray(self.now.predict(X))


class Continued:
    """More rounds on each batch."""

    def __init__(self, seed: int) -> None:
        self.model = gce.GCERegressor(max_iter=FIRST, max_atoms=10_000, random_state=seed, **STREAM)
        self.fitted = False

    def learn(self, X: Array, y: Array) -> None:
        if self.fitted:
            self.model.set_params(max_iter=self.model.max_iter + MORE)
        self.model.fit(X, y)
        self.fitted = True

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))


class ContinuedAndReweighted(Continued):
    """More rounds on each batch, then the best weights of all atoms for the last window."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.window: list[Batch] = []

    def learn(self, X: Array, y: Array) -> None:
        super().learn(X, y)
        self.window = [*self.window, (X, y)][-WINDOW:]
        self.now = self.model.reweight(*map(np.concatenate, zip(*self.window, strict=True)))

    def predict(self, X: Array) -> Array:
        return np.asarray(self.now.predict(X))


class Again:
    """A new fit on the last batches."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make, self.window = make, list[Batch]()

    def learn(self, X: Array, y: Array) -> None:
        self.window = [*self.window, (X, y)][-WINDOW:]
        self.model = self.make().fit(*map(np.concatenate, zip(*self.window, strict=True)))

    def predict(self, X: Array) -> Array:
        return np.asarray(self.model.predict(X))


class LightGBM:
    """LightGBM's trees of the first batch, and what ``going_on(booster, X, y)`` makes of them."""

    PARAMETERS: ClassVar[dict[str, Any]] = {
        "objective": "l2",
        "num_leaves": 15,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
    }

    def __init__(self, going_on: Callable[[Any, Array, Array], Any], seed: int) -> None:
        self.going_on, self.booster, self.parameters = going_on, None, {**self.PARAMETERS, "seed": seed}

    def learn(self, X: Array, y: Array) -> None:
        import lightgbm

        if self.booster is None:
            self.booster = lightgbm.train(self.parameters, lightgbm.Dataset(X, y), FIRST)
        else:
            self.booster = self.going_on(self.booster, X, y)

    def predict(self, X: Array) -> Array:
        assert self.booster is not None
        return np.asarray(self.booster.predict(X))


class River:
    """River's adaptive random forest, row by row."""

    def __init__(self, seed: int) -> None:
        from river.forest import ARFRegressor

        self.model = ARFRegressor(seed=seed)

    def learn(self, X: Array, y: Array) -> None:
        for row, target in zip(X.tolist(), y.tolist(), strict=True):
            self.model.learn_one(dict(enumerate(row)), target)

    def predict(self, X: Array) -> Array:
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in X.tolist()])


def _more_trees(booster: Any, X: Array, y: Array) -> Any:
    import lightgbm

    return lightgbm.train(dict(booster.params), lightgbm.Dataset(X, y), MORE, init_model=booster)


def ours(seed: int) -> dict[str, Callable[[], Learner]]:
    """Models of gce."""
    return {
        "GCE, left alone": lambda: Alone(gce.GCERegressor(random_state=seed)),
        "GCE, reweighted": lambda: Reweighted(gce.GCERegressor(random_state=seed)),
        "GCE, `warm_start`": lambda: Continued(seed),
        "GCE, `warm_start` and `reweight`": lambda: ContinuedAndReweighted(seed),
        "GCE, fitted again": lambda: Again(lambda: gce.GCERegressor(random_state=seed)),
    }


def learners(seed: int) -> dict[str, Callable[[], Learner]]:
    """What is compared."""
    refuse_gaps(f"{name} is not installed" for name in ("lightgbm", "river") if not find_spec(name))
    return {
        **ours(seed),
        "LightGBM, left alone": lambda: LightGBM(lambda booster, X, y: booster, seed),
        "LightGBM, `refit`": lambda: LightGBM(lambda booster, X, y: booster.refit(X, y), seed),
        "LightGBM, `init_model`": lambda: LightGBM(_more_trees, seed),
        "LightGBM, fitted again": lambda: Again(lambda: _LightGBMFit(seed)),
        "River, adaptive forest": lambda: River(seed),
    }


class _LightGBMFit:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def fit(self, X: Array, y: Array) -> _LightGBMFit:
        self.one = LightGBM(lambda booster, X, y: booster, self.seed)
        self.one.learn(X, y)
        return self

    def predict(self, X: Array) -> Array:
        return self.one.predict(X)


def made_up(angle: Callable[[int], float]) -> Callable[[int, int], Iterator[Batch]]:
    """A stream in which two of six columns trade places as an angle turns."""

    def stream(seed: int, batches: int) -> Iterator[Batch]:
        rng = np.random.default_rng(seed)
        for t in range(batches):
            X, a = rng.normal(size=(ROWS, 6)), angle(t)
            turning = 2 * np.cos(a) * X[:, 0] + 2 * np.sin(a) * X[:, 1]
            yield X, turning + np.abs(X[:, 2]) + X[:, 3] * (X[:, 4] > 0) + 0.3 * rng.normal(size=ROWS)

    return stream


def bikes(seed: int, batches: int) -> Iterator[Batch]:
    """Hours of bike rentals in their order, as logarithms: three weeks in a batch."""
    X, y = load("bike_hour")
    for t in range(min(batches, len(y) // ROWS)):
        here = slice(t * ROWS, (t + 1) * ROWS)
        yield np.asarray(X[here], dtype=np.float64), np.log1p(np.asarray(y[here], dtype=np.float64))


STREAMS = {
    "stationary": made_up(lambda t: 0.7),
    "turning": made_up(lambda t: t * np.pi / 30),
    "abrupt, coming back": made_up(lambda t: (t // 10 % 2) * np.pi / 2),
    "bikes": bikes,
}


def prequential(learner: Learner, stream: Iterator[Batch]) -> float:
    """The mean squared error on batches not yet seen."""
    errors = []
    for t, (X, y) in enumerate(stream):
        if t >= WARM_UP:
            errors.append(float(np.mean((learner.predict(X) - y) ** 2)))
        learner.learn(X, y)
    return float(np.mean(errors))


def write(found: dict[str, dict[str, list[float]]], seeds: int, batches: int) -> None:
    lines = [
        "# Going on with new rows",
        "",
        f"Mean squared error on the next batch (prequential), means of {seeds} seeds: {batches} batches of {ROWS}",
        f"rows. Windows have {WINDOW} batches; LightGBM and continued trees start with {FIRST} trees and get {MORE}",
        "more with each batch.",
        f"Machine: {MACHINE}. Script: `benchmarks/streams.py`.",
        "",
        f"| | {' | '.join(STREAMS)} |",
        f"|---|{'---:|' * len(STREAMS)}",
    ]
    for name in next(iter(found.values())):
        lines.append(f"| {name} | {' | '.join(f'{np.mean(found[stream][name]):.3f}' for stream in STREAMS)} |")
    (RESULTS / "streams.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=30)
    given = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for stream, batches_of in STREAMS.items():
        for seed in range(given.seeds):
            for name, make in learners(seed).items():
                one = prequential(make(), batches_of(seed, given.batches))
                found.setdefault(stream, {}).setdefault(name, []).append(one)
    write(found, given.seeds, given.batches)


if __name__ == "__main__":
    run_script(main)
