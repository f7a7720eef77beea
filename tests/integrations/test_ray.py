"""The recipe for Ray of docs/scaling.md: run by ``make distributed``, in an environment that has Ray."""

import pytest

pytest.importorskip("ray")

import recipes

BEFORE = """
import ray

ray.init(num_cpus=2, include_dashboard=False)
"""
#: Lines after which the second process ends itself once, in its fourth round.
DEADLY = """
import os
import signal
from pathlib import Path


def deadly(step):
    import torch.distributed as dist

    if dist.get_rank() == 1 and not Path("{mark}").exists() and len(list(Path("{rounds}").glob("*round-*"))) > 3:
        Path("{mark}").touch()
        os.kill(os.getpid(), signal.SIGKILL)


"""


def run(folder, **more):
    return recipes.run(folder, "ray.train", RAY_USAGE_STATS_ENABLED="0", **more)


def test_the_recipe_gives_the_model_of_one_process(tmp_path):
    assert "group of size 2" in run(tmp_path, before=BEFORE)


def test_a_killed_worker_is_started_again_and_the_model_is_the_same(tmp_path):
    mark = tmp_path / "killed"
    before = BEFORE + DEADLY.format(mark=mark, rounds=tmp_path / "rounds")
    said = run(tmp_path, before=before, model="callbacks=[deadly]")
    assert mark.exists()
    # both starts
    assert said.count("Started training worker group of size 2") == 2
