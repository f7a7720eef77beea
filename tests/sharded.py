"""A process of a fit of shards: what the tests of several processes start.

    python tests/sharded.py SETTINGS.json

Rank and size come from the environment, as ``torchrun`` sets them.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import gce
from gce.distributed import process_group
from gce.estimators import _shard_choice


def main(path):
    settings = json.loads(Path(path).read_text())
    # so that small tables have rows that are neither sampled nor held out
    _shard_choice.MOST_ROWS = _shard_choice.FEWEST_ROWS = settings.get("most_rows", _shard_choice.MOST_ROWS)
    kind = gce.GCEClassifier if settings["classes"] else gce.GCERegressor
    with process_group(timeout=settings.get("timeout", 60)) as world:
        shards = gce.Shards(settings["files"], target="y", **settings.get("shards", {}))
        own = settings.get("only", {}).get(str(world.rank), {})
        model = kind(**{"random_state": 0, "n_jobs": 1, **settings["parameters"], **own})
        model.fit(shards, checkpoint=settings.get("checkpoint"))
        model.save(Path(settings["out"]) / f"model-{world.rank}.safetensors", resumable=True)
    rows = pd.read_parquet(settings["rows"])
    np.save(Path(settings["out"]) / f"scores-{world.rank}.npy", model.raw_predict(rows).numpy())


if __name__ == "__main__":
    main(sys.argv[1])
