"""One process of a fit that benchmarks/shard_fits.py measures: ``python shard_worker.py SETTINGS.json``."""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np


class Counter:
    """Calls, bytes and seconds of the sums over processes."""

    def __init__(self) -> None:
        self.calls, self.bytes, self.seconds = 0, 0, 0.0

    def watch(self, kind: Any, name: str) -> None:
        inner = getattr(kind, name)

        def counted(world: Any, numbers: Any) -> None:
            began = time.perf_counter()
            inner(world, numbers)
            self.seconds += time.perf_counter() - began
            self.calls, self.bytes = self.calls + 1, self.bytes + numbers.nbytes

        setattr(kind, name, counted)


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
    model = gce.GCERegressor(random_state=0, n_jobs=settings["threads"], verbose=False, **parameters)
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
    first = model.history_[0]
    rounds = [entry["seconds"] for entry in model.history_ if entry.get("family") in (None, "tree")]
    shared = {"calls": counter.calls, "bytes": counter.bytes, "in_sums": counter.seconds}
    return model, {
        "seconds": seconds,
        "rounds": len(rounds),
        "in_rounds": rounds[-1],
        "first": first["seconds"],
        **shared,
    }


def lightgbm_fit(settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    import lightgbm

    rows = frame_of(settings["files"])
    y = rows.pop("y")
    began = time.perf_counter()
    model = lightgbm.LGBMRegressor(random_state=0, n_jobs=settings["threads"], verbose=-1).fit(rows, y)
    return model, {"seconds": time.perf_counter() - began}


def main() -> None:
    settings = json.loads(Path(sys.argv[1]).read_text())
    watching = Memory()
    watching.start()
    if settings.get("limit"):
        resource.setrlimit(resource.RLIMIT_DATA, (settings["limit"],) * 2)
    model, found = (lightgbm_fit if settings.get("peer") else gce_fit)(settings)
    found["memory"] = watching.most
    if settings.get("test"):
        test = frame_of(settings["test"])
        y = test.pop("y").to_numpy()
        found["rmse"] = float(np.sqrt(np.mean((model.predict(test) - y) ** 2)))
    import os

    if os.environ.get("RANK", "0") == "0":
        Path(settings["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
