"""What processes tell each other: right for any number of them, in few messages one after another."""

from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from types import SimpleNamespace

import numpy as np
import pytest

from gce.distributed import world as module


class Post:
    """What processes that are threads send each other, with the part of ``torch.distributed`` that they need."""

    ReduceOp = SimpleNamespace(SUM="sum", MAX="max")

    def __init__(self, rank, boxes):
        self.rank, self.boxes, self.sent, self.rings = rank, boxes, 0, 0

    def isend(self, tensor, to):
        self.sent += 1
        self.boxes[self.rank, to].put(tensor.clone())
        return SimpleNamespace(wait=lambda: None)

    def irecv(self, tensor, source):
        return SimpleNamespace(wait=lambda: tensor.copy_(self.boxes[source, self.rank].get(timeout=20)))

    def send(self, tensor, to):
        self.isend(tensor, to)

    def recv(self, tensor, source):
        self.irecv(tensor, source).wait()

    def broadcast(self, tensor, source):
        for to in {to for _, to in self.boxes if to != source} if self.rank == source else ():
            self.isend(tensor, to)
        if self.rank != source:
            self.recv(tensor, source)

    def all_reduce(self, tensor, how):
        self.rings += 1


def processes(size):
    boxes = {(a, b): Queue() for a in range(size) for b in range(size)}
    worlds = []
    for rank in range(size):
        world = module._ProcessGroup.__new__(module._ProcessGroup)
        world.rank, world.size, world._dist = rank, size, Post(rank, boxes)
        world._other = module.torch.empty(0, dtype=module.torch.int64)
        worlds.append(world)
    return worlds


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8, 12, 17])
def test_sums_and_maxima_are_those_of_all(size):
    rng = np.random.default_rng(size)
    worlds = processes(size)
    for name, total in (("add_up", np.sum), ("take_largest", np.max)):
        given = rng.integers(-(2**40), 2**40, (size, 5))
        own = given.copy()
        with ThreadPoolExecutor(size) as pool:
            list(pool.map(lambda world, numbers, name=name: getattr(world, name)(numbers), worlds, own))
        np.testing.assert_array_equal(own, np.broadcast_to(total(given, axis=0), given.shape))
    corners = size.bit_length() - 1
    # along each edge of the cube, and to one partner beyond it
    assert max(world._dist.sent for world in worlds) <= 2 * (corners + (size & (size - 1) > 0))
    assert all(queue.empty() for queue in worlds[0]._dist.boxes.values())


def test_many_numbers_go_around_the_ring(monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 8)
    for size, rings in ((2, 0), (3, 1)):
        worlds = processes(size)
        with ThreadPoolExecutor(size) as pool:
            list(pool.map(lambda world: world.add_up(np.ones(8, np.int64)), worlds))
        assert [world._dist.rings for world in worlds] == [rings] * size


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_every_process_has_something_for_every_other(size):
    """Also nothing for some of them, and for all of them."""
    rng = np.random.default_rng(size)
    lengths = rng.integers(0, 4, (size, size)) * rng.integers(0, 2, (size, 1))
    given = [[rng.integers(0, 256, length).astype(np.uint8) for length in row] for row in lengths]
    worlds = processes(size) if size > 1 else [module.World()]
    with ThreadPoolExecutor(size) as pool:
        found = list(pool.map(lambda world, parts: world.all_to_all(list(parts)), worlds, given))
    for to, parts in enumerate(found):
        for source, part in enumerate(parts):
            np.testing.assert_array_equal(part, given[source][to])
    assert size == 1 or all(queue.empty() for queue in worlds[0]._dist.boxes.values())


class Held:
    """A tensor that others drop while it is looked at, or never."""

    def __init__(self, *counts):
        self.counts = list(counts)

    def _use_count(self):
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]


def test_tensors_are_kept_until_threads_of_gloo_have_dropped_them(monkeypatch):
    dropped = Held(3, 2, 2, 1)
    module._wait_until_released(dropped)
    assert dropped.counts == [1]
    # what somebody else holds is not waited for
    monkeypatch.setattr(module, "_RELEASED", 0.0)
    module._wait_until_released(Held(2))
