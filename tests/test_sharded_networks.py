"""Networks of rows in files: steps of several processes, the same to the bit however rows are divided."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

import gce
from gce._utils.parallel import workers
from gce.bases.neural import compiled, divided, kernels
from gce.bases.neural.descent import Schedule
from gce.bases.neural.network import TwoLayer, drawn
from gce.bases.neural.stored_inputs import DividedInputs, StoredInputs
from gce.bases.objectives import Linear
from gce.distributed import Division, World
from gce.estimators import _shard_choice
from test_sharded_fits import described, ended, mixed, numbers, start, written

COUNTS = np.array([700, 0, 350, 1, 900, 49])


class Sums(World):
    """A process alone, whose sums are noted."""

    def __init__(self):
        self.noted = []

    def add_up(self, numbers):
        self.noted.append(numbers.copy())


def whole(counts=COUNTS, world=None):
    return Division(counts, 0, len(counts), world or World())


@pytest.mark.parametrize("batch_size", [64, 500, 5000])
def test_batches_do_not_depend_on_the_processes(batch_size):
    alone = divided.draw_batches(whole(), batch_size, (3, 4, 0))
    assert sorted(alone.rows.tolist()) == list(range(COUNTS.sum()))
    assert alone.sizes.sum() == COUNTS.sum()
    assert len(alone.sizes) == -(-COUNTS.sum() // batch_size)
    by_batch = [alone.rows[alone.ends[a] : alone.ends[b]] for a, b in zip(alone.first, alone.first[1:], strict=False)]
    assert [len(rows) for rows in by_batch] == alone.sizes.tolist()
    for cut in (1, 3, 5):
        parts = [Division(COUNTS, 0, cut, World()), Division(COUNTS, cut, 6, World())]
        found = [divided.draw_batches(part, batch_size, (3, 4, 0)) for part in parts]
        offsets = [0, COUNTS[:cut].sum()]
        for b, rows in enumerate(by_batch):
            theirs = [
                first + own.rows[own.ends[own.first[b]] : own.ends[own.first[b + 1]]]
                for own, first in zip(found, offsets, strict=True)
            ]
            assert sorted(np.concatenate(theirs).tolist()) == sorted(rows.tolist())
            assert all(np.array_equal(own.sizes, alone.sizes) for own in found)
    other = divided.draw_batches(whole(), batch_size, (3, 4, 1))
    assert not np.array_equal(alone.rows, other.rows)


def test_batches_are_of_about_the_same_size():
    counts = np.full(256, 1024)
    found = divided.draw_batches(whole(counts), 8192, (0, 1, 2))
    assert (np.abs(found.sizes - 8192) <= 512).all()
    part = divided.draw_batches(Division(counts, 32, 64, World()), 8192, (0, 1, 2))
    own = np.diff(part.ends[part.first])
    # two pieces of 512 rows, one more or less
    assert (np.abs(own - 1024) <= 512).all()


def network(dtype, d=5, k=2, n=None, seed=0):
    """A network, rows, and gradients of an objective that is scaled as those of fits are."""
    rng, n = np.random.default_rng(seed), COUNTS.sum() if n is None else n
    architecture = TwoLayer(7, "relu", "hardtanh", 1.0)
    start = drawn(architecture, d, k, [torch.Generator().manual_seed(seed)], 1, dtype, torch.device("cpu"))
    X = torch.from_numpy(rng.normal(size=(n, d))).to(dtype)
    gradient = torch.from_numpy(rng.normal(size=(1, n, k)))
    return architecture, start, X, gradient


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["single", "double"])
def test_sums_of_pieces_are_gradients_to_a_rounding(dtype):
    architecture, start, X, gradient = network(dtype)
    objective = Linear(gradient, torch.ones(2, dtype=torch.float64)).cast(dtype)
    schedule = Schedule(1e-2, 1e-5, 10, 10, 3)
    net = divided.DividedNet(
        architecture, [p[0] for p in start], objective.unit_gradient[0].numpy(), X.numpy(), schedule
    )
    rows, ends = np.random.default_rng(1).permutation(len(X)), np.array([0, 3, 3, 1500, 2000])
    vector, shape = net._vectors[0], net._shape
    sums = np.zeros(len(vector) + 2, np.int64)
    kernels.piece_sums(X.numpy(), net._gradients, rows, ends, vector, shape, sums)
    gradients, value, chunks = np.zeros(len(vector)), 0.0, 0
    for first, last in pairwise(ends):
        for at in range(0, last - first, kernels.chunk_rows()):
            part = np.empty_like(vector)
            value += kernels.chunk_gradients(
                X.numpy(), net._gradients, rows[first:last], np.zeros((0, 0), vector.dtype), at, vector, shape, part
            )
            gradients, chunks = gradients + part.astype(np.float64), chunks + 1
    assert sums[-1] == 0
    # each chunk is rounded to the nearest unit, and sums of float64 of order 1 are exact to far less
    np.testing.assert_allclose(sums[:-2] / kernels.gradient_units(), gradients, rtol=0, atol=0.51 * chunks * 2.0**-40)
    np.testing.assert_allclose(sums[-2] / kernels.value_units(), value, rtol=0, atol=0.51 * chunks * 2.0**-46)
    halves = [np.zeros_like(sums) for _ in range(2)]
    for part, own in zip(halves, (ends[:3], ends[2:]), strict=True):
        kernels.piece_sums(X.numpy(), net._gradients, rows, np.ascontiguousarray(own), vector, shape, part)
    np.testing.assert_array_equal(halves[0] + halves[1], sums)


def test_numbers_that_are_not_finite_are_counted():
    architecture, start, X, gradient = network(torch.float32)
    objective = Linear(gradient, torch.ones(2, dtype=torch.float64)).cast(torch.float32)
    X[17] = torch.inf
    data = DividedInputs(X, whole(), (0, 1))
    _, values = divided.descend(architecture, start, objective, data, Schedule(1e-2, 1e-5, 10, 10, 3), 500, None)
    assert np.isnan(values).all()


def test_huge_gradients_are_cut_off():
    """Beyond what integers of 64 bits hold a sum would change its sign."""
    architecture, start, X, gradient = network(torch.float64)
    net = divided.DividedNet(architecture, [p[0] for p in start], 1e30 * gradient[0].T.numpy(), X.numpy(),
                             Schedule(1e-2, 1e-5, 10, 10, 3))  # fmt: skip
    sums = np.zeros(net._vectors.shape[1] + 2, np.int64)
    kernels.piece_sums(
        X.numpy(), net._gradients, np.arange(len(X)), np.array([0, len(X)]), net._vectors[0], net._shape, sums
    )
    chunks = -(-len(X) // kernels.chunk_rows())
    assert np.abs(sums).max() <= chunks * 2**48
    assert sums[-1] == 0


@pytest.mark.parametrize("batch_size", [5000, 300], ids=["whole", "batches"])
def test_a_network_does_not_depend_on_how_rows_are_divided(batch_size):
    """Each of two processes is given the sums of one that has all rows, and theirs must add up to these."""
    architecture, start, X, gradient = network(torch.float32)
    bound, schedule = torch.ones(2, dtype=torch.float64), Schedule(1e-2, 1e-5, 2, 2, 6)
    objective = Linear(gradient, bound).of_rows(torch.arange(len(X)), whole()).cast(torch.float32)
    world = Sums()
    data = DividedInputs(X, whole(world=world), (5, 1))
    best, values = divided.descend(architecture, start, objective, data, schedule, batch_size, None)
    cut = COUNTS[:3].sum()
    parts = []
    for rows, shards in ((slice(0, cut), (0, 3)), (slice(cut, None), (3, 6))):
        given = Given(world.noted)
        own = DividedInputs(X[rows], Division(COUNTS, *shards, given), (5, 1))
        part = Linear(gradient[:, rows], bound)
        part._unit_gradient = objective.unit_gradient[:, :, rows]
        found, own_values = divided.descend(architecture, start, part, own, schedule, batch_size, None)
        assert own_values == values
        assert all(map(torch.equal, found, best))
        parts.append(given.own)
    for one, two, both in zip(*parts, world.noted, strict=True):
        np.testing.assert_array_equal(one + two, both)


class Given(World):
    """A process that is told the sums of all, and notes its own."""

    def __init__(self, sums):
        self._sums, self.own = iter(sums), []

    def add_up(self, numbers):
        self.own.append(numbers.copy())
        numbers[:] = next(self._sums)


def test_whole_batches_are_those_of_rows_in_memory():
    """Integers are rounded sums: after few steps of Adam parameters differ by what rounding leads to."""
    architecture, start, X, gradient = network(torch.float64)
    objective = Linear(gradient, torch.ones(2, dtype=torch.float64))
    schedule = Schedule(1e-2, 1e-5, 10, 10, 8)
    ours, values = divided.descend(
        architecture, start, objective, DividedInputs(X, whole(), (0, 1)), schedule, 5000, None
    )
    theirs, known = compiled.descend(architecture, start, objective, X, schedule, 5000, torch.Generator())
    np.testing.assert_allclose(values, known, rtol=1e-9)
    for one, two in zip(ours, theirs, strict=True):
        # a step of Adam is at most the rate: relative errors of gradients of 1e-12 / 1e-4 grow little in eight steps
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=0, atol=1e-8)


def drawn_rows(division, columns, gradient, seed, epochs=3):
    """The rows of the first epochs, by the numbers that they hold, and their unit gradients."""
    stored = StoredInputs(columns, division, drawn=500)
    objective = Linear(gradient, torch.ones(2, dtype=torch.float64))
    data, part = stored.draw(objective, seed)
    every = [(data.own, part.unit_gradient[0]), *(data.again(epoch) for epoch in range(1, epochs))]
    return data, [(own[:, 0].long().numpy(), unit) for own, unit in every]


def test_rows_are_drawn_of_every_shard_and_anew_in_every_epoch():
    columns = np.arange(COUNTS.sum() + 5, dtype=np.float32)[:, None]
    gradient = torch.from_numpy(np.random.default_rng(0).normal(size=(1, COUNTS.sum(), 2)))
    data, every = drawn_rows(whole(), columns, gradient, (0, 1))
    assert len(data) == 500
    for rows, unit in every:
        assert len(set(rows.tolist())) == 500
        assert rows.max() < COUNTS.sum()
        shares = np.bincount(np.repeat(np.arange(len(COUNTS)), COUNTS)[rows], minlength=len(COUNTS))
        np.testing.assert_array_equal(shares, data.division.counts)
        assert (np.abs(shares - 500 * COUNTS / COUNTS.sum()) < 1).all()
        # the gradients of these rows, scaled to a sum of 1
        expected = gradient[0, rows].T
        np.testing.assert_allclose(unit.numpy(), expected / expected.abs().sum(), rtol=1e-12)
    assert len({tuple(sorted(rows)) for rows, _ in every}) == 3
    other = drawn_rows(whole(), columns, gradient, (0, 2))[1]
    assert not any(np.array_equal(one[0], two[0]) for one, two in zip(every, other, strict=True))
    # a process that has not the first shard
    second = drawn_rows(Division(COUNTS, 1, 6, World()), columns[700:], gradient[:, 700:], (0, 1))[1]
    for (rows, _), (own, _) in zip(every, second, strict=True):
        np.testing.assert_array_equal(own, rows[rows >= 700])


def test_an_epoch_is_trained_on_its_own_rows():
    """By hand: networks of one epoch after another, each on the rows that are drawn for it."""
    architecture, start, X, gradient = network(torch.float32)
    stored = StoredInputs(X.numpy(), whole(), drawn=600)
    bound, schedule = torch.ones(2, dtype=torch.float64), Schedule(1e-2, 1e-5, 10, 10, 4)
    data, part = stored.draw(Linear(gradient, bound), (5, 1))
    found, _ = divided.descend(architecture, start, part.cast(torch.float32), data, schedule, 5000, None)
    net = divided.DividedNet(
        architecture, [p[0] for p in start], part.cast(torch.float32).unit_gradient[0].numpy(), data.own.numpy(),
        schedule,
    )  # fmt: skip
    with workers(1) as run:
        for epoch in range(4):
            if epoch:
                rows = whole().draw(600, (5, 1, epoch, 1 << 20))[1]
                objective = Linear(gradient, bound).of_rows(torch.from_numpy(rows), data.division)
                net._X, net._gradients = X[rows].numpy(), objective.unit_gradient[0].T.float().contiguous().numpy()
            net.train(divided.draw_batches(data.division, 5000, (5, 1, epoch)), data.division, run)
    expected = compiled.unpacked([net], start)
    assert all(map(torch.equal, found, expected))
    same, _ = divided.descend(
        architecture, start, part.cast(torch.float32), replace(data, again=None), schedule, 5000, None
    )
    assert not all(map(torch.equal, found, same))


def test_large_outputs_are_in_files():
    made = []

    def allocate(name, shape, dtype):
        made.append(shape)
        return np.zeros(shape, dtype)

    stored = StoredInputs(np.zeros((4, 1), np.float32), whole(np.array([4])), 4, allocate=allocate)
    assert stored.new_empty(2, 1 << 19).shape == (2, 1 << 19)
    stored.new_empty(3, 4)
    assert made == [(2, 1 << 19)]


@pytest.fixture
def sampled(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 200)


@pytest.mark.parametrize("rows", [numbers, mixed], ids=["numbers", "mixed"])
@pytest.mark.parametrize("algorithm", ["pairwise", "away", "frank-wolfe", "blended"])
def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path, sampled, rows, algorithm):
    frame, y = rows(1200)
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    settings = {"basis": "neural", "algorithm": algorithm, "max_iter": 9, "n_iter_no_change": None, "random_state": 0}
    known = gce.GCERegressor(**settings).fit(shards)
    for rounds in (1, 4, 6):
        gce.GCERegressor(**settings | {"max_iter": rounds}).fit(shards, checkpoint=tmp_path / "rounds")
    again = gce.GCERegressor(**settings).fit(shards, checkpoint=tmp_path / "rounds")
    np.testing.assert_array_equal(again.raw_predict(frame).numpy(), known.raw_predict(frame).numpy())
    risks = [entry["risk"] for entry in known.history_]
    # the line search is over all rows: no step raises the risk of all
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(risks))


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "pseudo_huber"])
def test_the_history_is_that_of_all_rows(tmp_path, sampled, loss):
    """Risk and step sizes are those of all training rows, by the scores of the fitted ensemble."""
    frame, y = numbers(1200)
    files = written(tmp_path / "data", frame, y)
    shards = gce.Shards(files, target="y")
    model = gce.GCERegressor(basis="neural", loss=loss, max_iter=4, n_iter_no_change=None, cv=None,
                             validation_fraction=None, random_state=0).fit(shards)  # fmt: skip
    result = model.result_
    scores = model.raw_predict(frame).reshape(-1, 1)
    values = result.loss.value(scores, torch.from_numpy(result.target.encode(y)))
    # networks see columns in single precision
    np.testing.assert_allclose(float(values.mean()), model.history_[-1]["risk"], rtol=1e-5)


def test_several_processes_with_networks_are_killed(tmp_path, monkeypatch):
    """Networks, then a forest, each on rows that are drawn from all of them."""
    frame, y = numbers(1500)
    files = written(tmp_path / "data", frame, y)
    rows = tmp_path / "rows.parquet"
    frame[:100].to_parquet(rows)
    parameters = {"basis": ["neural", "forest"], "max_iter": 12, "n_iter_no_change": None}
    checkpoint = tmp_path / "checkpoint"
    given = {"parameters": parameters, "files": files, "rows": rows, "most_rows": 300, "checkpoint": str(checkpoint)}
    processes = start(3, described(tmp_path, "killed", **given))
    while len(list(checkpoint.glob("*round-*.safetensors"))) < 3:
        assert all(process.poll() is None for process in processes), processes[0].communicate()[0]
        time.sleep(0.002)
    processes[2].kill()
    said = [process.communicate(timeout=90)[0] for process in processes]
    assert all("one of them ended or hangs" in text for text in said[:2]), said
    out = described(tmp_path, "again", **given)
    ended(start(2, out))
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 300)
    known = gce.GCERegressor(random_state=0, **parameters).fit(gce.Shards(files, target="y")).raw_predict(frame[:100])
    for rank in range(2):
        np.testing.assert_array_equal(np.load(out / f"scores-{rank}.npy"), known.numpy())
