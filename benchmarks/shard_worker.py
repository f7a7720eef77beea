"""One process of a fit that benchmarks/shard_fits.py measures: ``python shard_worker.py SETTINGS.json``."""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np


class Counter:
    """The sums over processes: when each one ended, its bytes and its seconds."""

    def __init__(self) -> None:
        self.sums: list[tuple[float, int, float]] = []

    def watch(self, kind: Any, name: str) -> None:
        inner = getattr(kind, name)

        def counted(world: Any, numbers: Any) -> None:
            if world.size == 1:
                # what one process adds up is no message
                return
            began = time.perf_counter()
            inner(world, numbers)
            ended = time.perf_counter()
            self.sums.append((ended, numbers.nbytes, ended - began))

        setattr(kind, name, counted)

    def between(self, began: float, ended: float) -> dict[str, Any]:
        """Calls, bytes and seconds of the sums in a time."""
        own = [one for one in self.sums if began < one[0] < ended]
        return {"calls": len(own), "bytes": sum(one[1] for one in own), "in_sums": sum(one[2] for one in own)}


class Memory(threading.Thread):
    """The most memory that a process had to itself, without pages of files."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0

    def run(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            own = next(line for line in lines if line.startswith("RssAnon"))
            self.most = max(self.most, int(own.split()[1]) * 1024)
            time.sleep(0.02)


def frame_of(pattern: str) -> Any:
    import pandas as pd

    folder = Path(pattern).parent
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))])


def gce_fit(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import gce
    from gce.distributed import process_group, world

    parameters = dict(settings["parameters"])
    if parameters.get("basis") == "tree-63":
        parameters["basis"] = gce.bases.Tree(max_leaf_nodes=63, max_features=0.75, learning_rate=0.2)
    #: When the last round had ended, and how long all of them had taken.
    last = [0.0, 0.0]

    def note(step: Any) -> None:
        last[:] = time.perf_counter(), step.seconds

    about = {"random_state": 0, "n_jobs": settings["threads"], "verbose": False, "callbacks": [note]}
    model = gce.GCERegressor(**about, **parameters)
    counter = Counter()
    for name in ("add_up", "take_largest"):
        counter.watch(world._ProcessGroup, name)
    if settings.get("in_memory"):
        rows = frame_of(settings["files"])
        y = rows.pop("y")
        began = time.perf_counter()
        model.set_params(cv=None, validation_fraction=0.1).fit(rows, y)
        return model, {"seconds": time.perf_counter() - began}
    with process_group():
        began = time.perf_counter()
        model.fit(gce.Shards(settings["files"], target="y", folder=settings.get("folder")))
        seconds = time.perf_counter() - began
    rounds = [entry["seconds"] for entry in model.history_ if entry.get("family") in (None, "tree")]
    ended, took = last
    return model, {
        "seconds": seconds,
        "rounds": len(rounds),
        "in_rounds": rounds[-1],
        **counter.between(ended - took, ended),
    }


def sums(settings: dict[str, Any]) -> dict[str, Any]:
    """The median seconds of a sum over processes, by its bytes, one right after another."""
    from gce.distributed import find_world, process_group

    found = {}
    with process_group():
        world = find_world()
        for size in settings["sums"]:
            numbers, took = np.zeros(size // 8, np.int64), []
            for _ in range(settings["times"]):
                began = time.perf_counter()
                world.add_up(numbers)
                took.append(time.perf_counter() - began)
            # the first ones open the window of TCP
            found[str(size)] = float(np.median(took[len(took) // 4 :]))
    return {"seconds": found}


def lightgbm_fit(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import lightgbm

    rows = frame_of(settings["files"])
    y = rows.pop("y")
    began = time.perf_counter()
    about = {"random_state": 0, "n_jobs": settings["threads"], "verbose": -1}
    model = lightgbm.LGBMRegressor(**about, **settings["lightgbm"]).fit(rows, y)
    return model, {"seconds": time.perf_counter() - began}


def fit(settings: dict[str, Any]) -> dict[str, Any]:
    """What a fit took, and where there are test rows what its model predicts of them."""
    model, found = (lightgbm_fit if "lightgbm" in settings else gce_fit)(settings)
    if settings.get("test"):
        test = frame_of(settings["test"])
        y = test.pop("y").to_numpy()
        found["rmse"] = float(np.sqrt(np.mean((model.predict(test) - y) ** 2)))
        found["r2"] = float(1 - found["rmse"] ** 2 / np.var(y))
    return found


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    watching = Memory()
    watching.start()
    if settings.get("limit"):
        resource.setrlimit(resource.RLIMIT_DATA, (settings["limit"],) * 2)
    found = sums(settings) if "sums" in settings else fit(settings)
    found["memory"] = watching.most
    if os.environ.get("RANK", "0") == "0":
        Path(settings["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
