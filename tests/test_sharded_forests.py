"""Forests whose trees are divided among processes: those of one process, and each tree is grown once."""

import os
import socket
import subprocess
import sys
from itertools import chain, product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from gce.bases import FitContext, Forest
from gce.bases.trees.grower_divided import DividedTrees, read_trees, write_trees
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.distributed import World
from sharded_forest import CASES, SAMPLED, fit_forest

PROGRAM = Path(__file__).parent / "sharded_forest.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Parquet files of each case."""
    folder, rng, n = tmp_path_factory.mktemp("forests"), np.random.default_rng(0), 501
    X = rng.normal(size=(n, 4))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    plain = pd.DataFrame(X, columns=list("abcd"))
    table = plain.assign(town=rng.choice(["Bern", "Basel", "Genf", None], n), who=rng.integers(0, 99, n).astype(str))
    table.loc[rng.random(n) < 0.2, "a"] = np.nan
    kinds = {
        "numbers": plain.assign(y=y),
        "weights": plain.assign(y=y, w=rng.integers(0, 4, n)),
        "two": plain.assign(y=y > 0),
        "classes": plain.assign(y=np.digitize(y, [-0.5, 0.5]), w=rng.random(n)),
        "tables": table.assign(y=y + (table["town"] == "Bern")),
    }
    for name, rows in kinds.items():
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pandas(rows), folder / name / "rows.parquet", row_group_size=60)
    return folder


@pytest.fixture(scope="module")
def alone(folder):
    return {(name, sampled): fit_forest(folder, name, sampled) for name, sampled in product(CASES, SAMPLED)}


@pytest.fixture(scope="module", params=[2, 3])
def said(folder, request):
    """What each of some processes said, once all have ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    about = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(request.param)}
    command, pipes = [sys.executable, str(PROGRAM), str(folder)], {"stdout": subprocess.PIPE, "text": True}
    processes = [
        subprocess.Popen(command, env=about | {"RANK": str(rank)}, stderr=subprocess.STDOUT, **pipes)
        for rank in range(request.param)
    ]
    return [process.communicate(timeout=120)[0] for process in processes]


def test_any_number_of_processes_grows_the_forest_of_one(folder, alone, said):
    size = len(said)
    for (name, sampled), (trees, known) in alone.items():
        files = [folder / f"{name}-{sampled}-of-{size}-{rank}" for rank in range(size)]
        for path in files:
            assert Path(f"{path}.npz").exists(), said
            found = load_file(f"{path}.safetensors")
            assert found.keys() == trees.keys()
            for part, tensor in trees.items():
                assert torch.equal(found[part], tensor), (name, sampled, part)
        every = [dict(np.load(f"{path}.npz")) for path in files]
        for key in ("validation", "risk", "step_size"):
            assert [own[key] for own in every] == [known[key]] * size, (name, sampled, key)
        # each tree once, by processes that have about as many, also where there are fewer trees than processes
        seeds = [own["seeds"].tolist() for own in every]
        assert sorted(chain(*seeds)) == sorted(known["seeds"].tolist())
        assert len(set(chain(*seeds))) == CASES[name][1]
        assert max(map(len, seeds)) - min(map(len, seeds)) <= 1
        # each row goes through the new trees in one process; later those held out do so in all, and those in memory,
        # which are counted in the leaves
        held_out = known["rows"] - 2 * known["in_memory"]
        assert 0 < held_out < known["in_memory"]
        assert (known["in_memory"] < known["samples"]) == (sampled == "some")
        assert sum(own["rows"] for own in every) == known["in_memory"] + size * (held_out + known["in_memory"])


def test_a_process_that_cannot_grow_its_trees_ends_the_others(said):
    assert "MemoryError: no memory for a tree" in said[0]
    for rank, other in enumerate(said[1:], 1):
        assert f"ProcessError: process {rank} of {len(said)} waited for the others in vain" in other


@given(count=st.integers(0, 50), size=st.integers(1, 12))
def test_shares_are_all_things_in_order(count, size):
    worlds = [World() for _ in range(size)]
    for rank, world in enumerate(worlds):
        world.rank, world.size = rank, size
    shares = [range(count)[world.share(count)] for world in worlds]
    assert [thing for share in shares for thing in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("outputs", [1, 2])
def test_trees_are_the_same_after_they_were_sent(dtype, outputs):
    """Also a tree that is one leaf, and one with more cuts than a byte counts."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(700, 3)), rng.normal(size=(700, outputs))
    rows = np.arange(700, dtype=np.uint32)
    binned = Forest().binned(torch.from_numpy(X), FitContext())
    members = tuple((some, WeightedTargets.of(np.ones(len(some)), Y[some])) for some in (rows, rows[:1], rows[:30]))
    trees = RandomTrees(binned, members, 2, 1.0)
    nodes = [trees.nodes(m, seed) for m in range(3) for seed in (1, 2)]
    assert not write_trees([], dtype)
    assert not read_trees(b"")
    for own, found in zip(nodes, read_trees(write_trees(nodes, dtype)), strict=True):
        for before, after in zip(own, found, strict=True):
            kind = torch.empty(0, dtype=dtype).numpy().dtype if before.dtype == np.float64 else before.dtype
            assert after.dtype == kind
            np.testing.assert_array_equal(after, before.astype(kind))
    seeds = [[1, 2], [3], [4, 5]]
    ours, theirs = DividedTrees(trees, World()).grown(seeds, dtype), trees.grown(seeds, dtype)
    for name, part in theirs.tensors().items():
        assert torch.equal(ours.tensors()[name], part), name
