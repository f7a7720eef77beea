"""A process of fits of forests to shards: what tests/test_sharded_forests.py starts.

    python tests/sharded_forest.py FOLDER

Rank and size come from the environment, as ``torchrun`` sets them. After all other fits there is one in which the first
process cannot grow its trees.
"""

import sys
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np
from safetensors.torch import save_file

import gce
from gce.bases import Forest
from gce.bases.trees import grower_random
from gce.bases.trees.predictor import PreparedTrees
from gce.distributed import process_group
from gce.estimators import _shard_choice, _shard_data

#: The column of weights, and the number of trees: of some there are fewer than processes.
CASES = {"numbers": (None, 5), "weights": ("w", 3), "two": (None, 2), "classes": ("w", 4), "tables": (None, 4)}
#: Most rows that are sampled: all, or few, so that trees have samples of their own.
SAMPLED = {"all": 1 << 18, "some": 150}


def fit_forest(folder, name, sampled="all", n_jobs=1):
    """Trees of a fit and figures: the seeds of trees that this process grew, and how many rows it predicted."""
    weight, trees = CASES[name]
    kind = gce.GCEClassifier if name in ("two", "classes") else gce.GCERegressor
    model = kind(basis=Forest(n_estimators=trees), random_state=0, n_jobs=n_jobs)
    in_memory = []

    def choose(*given):
        chosen = _shard_choice.choose_rows(*given)
        in_memory.append(len(chosen.number))
        return chosen

    shards = gce.Shards(str(Path(folder) / name / "*.parquet"), target="y", sample_weight=weight)
    with (
        patch.object(grower_random, "scatter", wraps=grower_random.scatter) as grown,
        patch.object(PreparedTrees, "summed", autospec=True, side_effect=PreparedTrees.summed) as predicted,
        patch.multiple(_shard_choice, MOST_ROWS=SAMPLED[sampled], FEWEST_ROWS=SAMPLED[sampled]),
        patch.object(_shard_data, "choose_rows", side_effect=choose),
    ):
        model.fit(shards)
    (forest,) = [part for part in model.ensemble_.parts if part.interpolates]
    figures = {key: model.history_[-1][key] for key in ("validation", "risk", "step_size")}
    figures |= {"seeds": np.array([call.args[5] for call in grown.call_args_list], np.int64)}
    figures |= {"rows": sum(len(call.args[1]) for call in predicted.call_args_list), "in_memory": in_memory[0]}
    figures |= {"samples": model.n_samples_fit_}
    return forest.trees.tensors(), figures


def refuse(*args):
    raise MemoryError("no memory for a tree")


def main(folder):
    with process_group(timeout=60) as world:
        for name, sampled in product(CASES, SAMPLED):
            tensors, figures = fit_forest(folder, name, sampled, n_jobs=1 + world.rank)
            own = str(Path(folder) / f"{name}-{sampled}-of-{world.size}-{world.rank}")
            save_file(tensors, f"{own}.safetensors")
            np.savez(own, **figures)
        if world.rank == 0:
            grower_random.scatter = refuse
        fit_forest(folder, "numbers")


if __name__ == "__main__":
    main(sys.argv[1])
