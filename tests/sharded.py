"""A process of fits of shards: what the tests of several processes start.

    python tests/sharded.py SETTINGS.json ...

Rank and size come from the environment, as ``torchrun`` sets them.
"""

import json
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

import gce
from gce.distributed import process_group
from gce.estimators import _shard_choice


def main(*paths):
    fits = [json.loads(Path(path).read_text()) for path in paths]
    with process_group(timeout=fits[0].get("timeout", 60)) as world:
        for settings in fits:
            fit(settings, world.rank)


def fit(settings, rank):
    # so that small tables have rows that are neither sampled nor held out
    most_rows = settings.get("most_rows", _shard_choice.MOST_ROWS)
    files = settings["files"]
    # one pattern for each process, or one for all
    shards = gce.Shards(files if isinstance(files, str) else files[rank], target="y", **settings.get("shards", {}))
    kind = gce.GCEClassifier if settings["classes"] else gce.GCERegressor
    own = settings.get("only", {}).get(str(rank), {})
    model = kind(**{"random_state": 0, "n_jobs": 1, **settings["parameters"], **own})
    with patch.multiple(_shard_choice, MOST_ROWS=most_rows, FEWEST_ROWS=most_rows):
        model.fit(shards, checkpoint=settings.get("checkpoint"))
    model.save(Path(settings["out"]) / f"model-{rank}.safetensors", resumable=True)
    np.save(Path(settings["out"]) / f"scores-{rank}.npy", model.raw_predict(pd.read_parquet(settings["rows"])).numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
