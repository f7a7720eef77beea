"""Forests of more rows than memory has: each tree has a sample of all rows, which its seed and the shards decide."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import gce
from gce._utils import parallel
from gce.bases import Forest
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.bases.trees.grower_sampled import SampledTrees
from gce.bases.trees.samples import RowSamples
from gce.bases.trees.stored import StoredRows
from gce.distributed import Division, World
from gce.estimators import _shard_choice
from gce.training import fit
from test_sharded_fits import mixed, numbers, written
from test_world_sums import processes

COUNTS = np.array([120, 0, 75, 1, 300, 44])
DRAWN, SEEDS = 200, [2**61 + 5, 17, 3, 99, 1]


def rows_in_shards(kind, seed=0):
    """Bins and codes of all rows, their targets and weights."""
    rng, n = np.random.default_rng(seed), int(COUNTS.sum())
    X = rng.normal(size=(n, 6))
    y = (X[:, 0] + X[:, 1] * X[:, 2])[:, None]
    weight = np.full(n, 1 / n)
    if kind == "weights":
        weight = rng.integers(1, 5, n).astype(np.float64)
        weight /= weight.sum()
    if kind == "classes":
        y = np.eye(3)[np.digitize(y[:, 0], [-0.5, 0.5])]
    if kind == "outputs":
        y = np.column_stack([y, X[:, 3] ** 2])
    binned = BinnedRows.of(torch.from_numpy(X), 64)
    return binned.bins, binned.codes, y, weight


def trees_of(kind, first, last, world):
    """What grows the trees of a process that has some of the shards."""
    bins, codes, y, weight = rows_in_shards(kind)
    own = slice(*(int(COUNTS[:shard].sum()) for shard in (first, last)))
    division = Division(COUNTS, first, last, world)
    # a row that is held out follows, which no tree may see
    part = np.concatenate([codes[:, own], np.full((len(codes), 1, 4), 255, np.uint8)], 1)
    stored = StoredRows(division.own_rows + 1, 6, {64: (bins, part)}, division)
    y, weight = torch.from_numpy(y[own]), torch.from_numpy(weight[own])
    samples = RowSamples.of(stored, y, weight, unit=1 / COUNTS.sum(), drawn=DRAWN, classes=kind == "classes")
    return SampledTrees(samples, 64, np.full(y.shape[1], 0.0 if kind == "classes" else 0.25), 3, 1.0)


def tensors_of(kind, cuts, worlds, seeds):
    """The trees that each of several processes ends with, which are threads, with other numbers of threads each."""

    def run(rank):
        with parallel.limited(1 + rank % 3):
            trees = trees_of(kind, cuts[rank], cuts[rank + 1], worlds[rank])
            return trees.grown([seeds], torch.float32).tensors()

    with ThreadPoolExecutor(len(worlds)) as pool:
        return list(pool.map(run, range(len(worlds))))


@pytest.mark.parametrize("kind", ["numbers", "weights", "classes", "outputs"])
def test_a_tree_is_that_of_its_rows_in_memory(kind):
    """By hand: rows of each shard in proportion, by the tree's seed and the shard's number."""
    bins, codes, y, weight = rows_in_shards(kind)
    ends = np.cumsum(COUNTS)
    taken = np.diff(ends * DRAWN // ends[-1], prepend=0)
    shards = list(zip(COUNTS, taken, ends - COUNTS, strict=True))
    members = []
    for seed in SEEDS:
        rows = np.concatenate([
            first + np.random.default_rng([seed, i]).choice(count, some, replace=False)
            for i, (count, some, first) in enumerate(shards)
        ])  # fmt: skip
        assert len(set(rows.tolist())) == DRAWN
        centre = 0.0 if kind == "classes" else 0.25
        members.append((rows.astype(np.uint32), WeightedTargets.of(weight[rows] * COUNTS.sum(), y[rows] - centre)))
    binned = BinnedRows(torch.zeros(len(y), 6), bins, torch.from_numpy(codes))
    known = RandomTrees(binned, tuple(members), 3, 1.0).grown([[seed] for seed in SEEDS], torch.float32).tensors()
    (found,) = tensors_of(kind, [0, len(COUNTS)], [World()], SEEDS)
    assert found.keys() == known.keys()
    for name, part in known.items():
        assert torch.equal(found[name], part), name


@pytest.mark.parametrize("kind", ["numbers", "weights", "classes", "outputs"])
@pytest.mark.parametrize("cuts", [[0, 1, 6], [0, 3, 6], [0, 1, 4, 6], [0, 1, 3, 4, 5, 6]], ids=str)
def test_trees_do_not_depend_on_the_processes(kind, cuts):
    """Also where there are fewer trees than processes."""
    size = len(cuts) - 1
    for seeds in (SEEDS, SEEDS[:2]):
        (known,) = tensors_of(kind, [0, 6], [World()], seeds)
        for found in tensors_of(kind, cuts, processes(size), seeds):
            for name, part in known.items():
                assert torch.equal(found[name], part), name


def test_only_rows_of_trees_are_sent():
    """The bytes of docs/scaling.md: a target, a weight where these differ, and the codes of a row, once."""
    for kind, numbers_sent in (("numbers", 1), ("weights", 2), ("classes", 1), ("outputs", 2)):
        worlds = processes(2)
        sent = [[], []]
        for world, own in zip(worlds, sent, strict=True):
            inner = world.all_to_all
            world.all_to_all = lambda parts, inner=inner, own=own, rank=world.rank: (
                own.append(len(parts[1 - rank])) or inner(parts)
            )
        tensors_of(kind, [0, 3, 6], worlds, SEEDS[:4])
        # two trees of each process, of whose rows the shards of the other one have these
        first = COUNTS[:3].sum() * DRAWN // COUNTS.sum()
        assert sent == [[(8 * numbers_sent + 8) * rows] * 2 for rows in (first, DRAWN - first)], kind


def test_the_largest_target_of_all_processes_decides_the_precision():
    """A huge target in the shards of one process only."""

    def run(rank, world):
        samples = trees_of("outputs", *((0, 3), (3, 6))[rank], world).samples
        if rank:
            samples.y[-1, 1] = -1e35
        return samples.largest(np.array([0.0, 1e35]))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, range(2), processes(2)))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0][1] == 2e35
    assert found[0][0] == np.abs(rows_in_shards("outputs")[2][:, 0]).max()


@pytest.fixture
def few(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 200)


@pytest.mark.parametrize("rows", [numbers, mixed], ids=["numbers", "mixed"])
@pytest.mark.parametrize("classes", [False, True], ids=["regression", "classes"])
def test_a_forest_sees_rows_that_memory_has_not(tmp_path, few, rows, classes):
    """Single trees know most of their own rows by heart: together those of many trees are most rows of the files."""
    frame, y = rows(1500)
    y = np.digitize(y, np.quantile(y, [0.3, 0.7])) if classes else y
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    kind = gce.GCEClassifier if classes else gce.GCERegressor
    settings = {"basis": Forest(n_estimators=25), "random_state": 0}
    model = kind(**settings).fit(shards)
    again = kind(**settings, n_jobs=2).fit(shards)
    np.testing.assert_array_equal(model.raw_predict(frame).numpy(), again.raw_predict(frame).numpy())
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fit, "_row_samples", lambda data: None)
        shared = kind(**settings).fit(shards)
    own, other = (one.score(frame, y) for one in (model, shared))
    assert own > other


def test_a_forest_is_continued_to_the_same_bits(tmp_path, few):
    frame, y = mixed(1000)
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    settings = {"basis": {"tree": "tree", "forest": Forest(n_estimators=4, max_bins=32)}, "random_state": 0}
    known = gce.GCERegressor(**settings, max_iter=3).fit(shards)

    def stop(step):
        return step.t == 2

    gce.GCERegressor(**settings, max_iter=3, callbacks=[stop]).fit(shards, checkpoint=tmp_path / "rounds")
    for _ in range(2):
        again = gce.GCERegressor(**settings, max_iter=3).fit(shards, checkpoint=tmp_path / "rounds")
        np.testing.assert_array_equal(again.raw_predict(frame).numpy(), known.raw_predict(frame).numpy())


def test_a_time_limit_leaves_whole_trees(tmp_path, few):
    frame, y = numbers(1000)
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    model = gce.GCERegressor(basis=Forest(n_estimators=6), random_state=0, time_limit=60).fit(shards)
    whole = gce.GCERegressor(basis=Forest(n_estimators=6), random_state=0).fit(shards)
    np.testing.assert_array_equal(model.raw_predict(frame).numpy(), whole.raw_predict(frame).numpy())
