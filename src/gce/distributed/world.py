"""The processes of a fit, and what they tell each other: sums of integers, and bytes in the order of the processes.

Only integers are added up, because their sum does not depend on the order. Sums of floats are made of the sums of
logical shards, see :class:`gce.distributed.Division`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

#: Numbers from which on more than two processes add up by gloo's ring, which sends fewer bytes in more messages.
_LARGE = 1 << 20
#: Seconds after which a tensor that is still held is not waited for: it is held by somebody else.
_RELEASED = 1.0
_ADVICE = "start the fit again: with the same checkpoint folder it continues after the last round"


class ProcessError(RuntimeError):
    """Another process of the fit ended, or did not answer in time.

    Parameters
    ----------
    *args
        The message.

    Examples
    --------
    >>> from gce.distributed import ProcessError
    >>> raise ProcessError("process 1 of 2 ended")
    Traceback (most recent call last):
    ...
    gce.distributed.world.ProcessError: process 1 of 2 ended
    """


class World:
    """One process alone: nothing has to be told to anybody.

    Attributes
    ----------
    rank : int
        The number of this process, from 0.
    size : int
        How many processes there are.

    Examples
    --------
    >>> from gce.distributed import World
    >>> World().gather(b"rows")
    [b'rows']
    """

    rank = 0
    size = 1

    def share(self, count: int, rank: int | None = None) -> slice:
        """Which of a number of things a process does, where each process does some of them.

        Parameters
        ----------
        count : int
            How many things there are, all of about the same cost.
        rank : int, optional
            The number of the process. Default: this one.

        Returns
        -------
        slice
            Those of all processes follow each other in the order of their numbers; some are empty where there are
            fewer things than processes.
        """
        rank = self.rank if rank is None else rank
        return slice(count * rank // self.size, count * (rank + 1) // self.size)

    def add_up(self, numbers: NDArray[np.int64]) -> None:
        """Replace numbers by their sums over all processes.

        Parameters
        ----------
        numbers : array of int64
            Changed in place.
        """

    def take_largest(self, numbers: NDArray[np.int64]) -> None:
        """Replace each number by the largest of all processes.

        Parameters
        ----------
        numbers : array of int64
            Changed in place.
        """

    def gather(self, own: bytes) -> list[bytes]:
        """What every process has, in the order of their numbers.

        Parameters
        ----------
        own : bytes
            What this process has.

        Returns
        -------
        list of bytes
        """
        return [part.tobytes() for part in self.gather_arrays(np.frombuffer(bytearray(own), np.uint8))]

    def gather_arrays(self, own: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        """The same, without copies of what may be large.

        Parameters
        ----------
        own : array of shape (n,)
            What this process has.

        Returns
        -------
        list of arrays of shape (m,)
            This process's is ``own``.
        """
        return [own]

    def all_to_all(self, parts: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        """What every process has for this one, in the order of their numbers.

        Parameters
        ----------
        parts : list of arrays of shape (n,)
            What this process has for each.

        Returns
        -------
        list of arrays of shape (m,)
            What it has for itself is not copied.
        """
        return parts

    def wait(self) -> None:
        """Wait until all processes are here."""

    def check_equal(self, about: Mapping[str, Any]) -> None:
        """Check that all processes were started alike.

        Parameters
        ----------
        about : dict of str to JSON values
            What must not differ.

        Raises
        ------
        ValueError
            A value differs among the processes.
        """
        every = [json.loads(one) for one in self.gather(json.dumps(about, sort_keys=True).encode())]
        for rank, other in enumerate(every):
            for name in sorted({*about, *other}):
                ours, theirs = every[0].get(name), other.get(name)
                if ours != theirs:
                    ours, theirs = _first_difference(ours, theirs)
                    raise ValueError(
                        f"the processes of this fit differ in {name}: {_short(ours)} in process 0, {_short(theirs)} in "
                        f"process {rank}; start all of them with the same call and the same versions"
                    )


class _ProcessGroup(World):
    """The default process group of ``torch.distributed``."""

    def __init__(self) -> None:
        import torch.distributed as dist

        self._dist = dist
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        #: What another process sent: memory that is used again.
        self._other = torch.empty(0, dtype=torch.int64)

    def add_up(self, numbers: NDArray[np.int64]) -> None:
        self._combine(numbers, np.add, self._dist.ReduceOp.SUM)

    def take_largest(self, numbers: NDArray[np.int64]) -> None:
        self._combine(numbers, np.maximum, self._dist.ReduceOp.MAX)

    def _combine(self, numbers: NDArray[np.int64], how: np.ufunc, name: Any) -> None:
        own = torch.from_numpy(numbers)
        if self.size > 2 and len(numbers) >= _LARGE:
            self._answered(partial(self._dist.all_reduce, own, name))
            _wait_until_released(own)
            return
        # pairs along the edges of a cube: gloo's own sum takes 2 (p - 1) messages one after another, a cube log2 p
        corners = 1 << (self.size.bit_length() - 1)
        if len(self._other) < len(numbers):
            self._other = torch.empty_like(own)
        other = self._other[: len(numbers)]
        if self.rank >= corners:
            # one that is beyond the cube is added by its partner in it
            self._answered(partial(self._dist.send, own, self.rank - corners))
            self._answered(partial(self._dist.recv, own, self.rank - corners))
            return
        beyond = self.rank + corners
        if beyond < self.size:
            self._answered(partial(self._dist.recv, other, beyond))
            how(numbers, other.numpy(), out=numbers)
        for distance in (1 << i for i in range(corners.bit_length() - 1)):
            partner = self.rank ^ distance
            self._answered(partial(self._exchange, own, partner, other, partner))
            how(numbers, other.numpy(), out=numbers)
        if beyond < self.size:
            self._answered(partial(self._dist.send, own, beyond))

    def _exchange(self, own: torch.Tensor, to: int, other: torch.Tensor, source: int) -> None:
        waiting = [self._dist.isend(own, to)] if len(own) else []
        waiting += [self._dist.irecv(other, source)] if len(other) else []
        _let_others_run()
        for each in waiting:
            if each is not None:
                each.wait()
        _let_others_run()

    def gather_arrays(self, own: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
        sizes = np.zeros(self.size, np.int64)
        sizes[self.rank] = len(own)
        self.add_up(sizes)
        # one after another: padded to the same size they would take far more memory
        every = [own if rank == self.rank else np.empty(size, np.uint8) for rank, size in enumerate(sizes.tolist())]
        for rank, part in enumerate(every):
            if len(part):
                sent = torch.from_numpy(part)
                self._answered(partial(self._dist.broadcast, sent, rank))
                _wait_until_released(sent)
        return every

    def all_to_all(self, parts: list[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        sizes = np.zeros((self.size, self.size), np.int64)
        sizes[self.rank] = [len(part) for part in parts]
        self.add_up(sizes.reshape(-1))
        every = [np.empty(size, np.uint8) for size in sizes[:, self.rank].tolist()]
        every[self.rank] = parts[self.rank]
        for distance in range(1, self.size):
            # everybody sends to one and receives from another: nobody waits for a third
            to, source = (self.rank + distance) % self.size, (self.rank - distance) % self.size
            own, other = torch.from_numpy(parts[to]), torch.from_numpy(every[source])
            self._answered(partial(self._exchange, own, to, other, source))
        return every

    def wait(self) -> None:
        self.add_up(np.zeros(1, np.int64))

    def _answered(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except (RuntimeError, ValueError) as error:
            # what gloo and NCCL say of a closed connection or a time-out differs by version
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            first = first.rsplit("] ", 1)[-1].split(". ")[0].rstrip(".")
            raise ProcessError(
                f"process {self.rank} of {self.size} waited for the others in vain ({first}): one of them ended or "
                f"hangs; {_ADVICE}"
            ) from error


def _let_others_run() -> None:
    """Let gloo's thread send and receive now: it may have to wait for the rest of this thread's time slice else."""
    if hasattr(os, "sched_yield"):
        for _ in range(4):
            os.sched_yield()


def _wait_until_released(tensor: torch.Tensor) -> None:
    """Wait until gloo's threads have dropped a tensor of a collective call that has returned.

    A thread that drops a tensor after Python has waits for the interpreter lock. A process group that ends meanwhile
    waits for the thread, and in torch 2.6 it holds that lock: both would wait for ever.
    """
    end = time.monotonic() + _RELEASED
    while tensor._use_count() > 1 and time.monotonic() < end:  # type: ignore[attr-defined]
        time.sleep(0)


def find_world() -> World:
    """The processes that this one fits with: those of the default process group, or this one alone.

    Returns
    -------
    World

    Examples
    --------
    >>> from gce.distributed import find_world
    >>> find_world().size
    1
    """
    # a process group can only stand where this has been imported
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return World()
    if dist.get_backend() != "gloo":
        raise ValueError(
            f"the process group has the backend {dist.get_backend()!r}, and rows of Shards are on processors: start it "
            'with torch.distributed.init_process_group("gloo")'
        )
    return _ProcessGroup()


@contextmanager
def process_group(timeout: float = 600.0) -> Iterator[World]:
    """The process group that ``torchrun`` describes in the environment, for the length of a block.

    Parameters
    ----------
    timeout : float, default=600.0
        Seconds after which a process that does not answer is an error.

    Yields
    ------
    World
        Of this process alone where it was not started by ``torchrun``, or of a group that stands already.

    Examples
    --------
    >>> from gce.distributed import process_group
    >>> with process_group() as world:
    ...     world.rank
    0
    """
    import torch.distributed as dist

    from gce.distributed.meeting import agree_on_start

    if dist.is_initialized() or "WORLD_SIZE" not in os.environ:
        yield find_world()
        return
    limit = timedelta(seconds=timeout)
    store, rank, size = next(iter(dist.rendezvous("env://", timeout=limit)))  # type: ignore[attr-defined]
    own = dist.PrefixStore(agree_on_start(store, rank, size, timeout), store)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=own, rank=rank, world_size=size, timeout=limit)
    try:
        yield find_world()
    finally:
        dist.destroy_process_group()


def _first_difference(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """The first items of two lists that differ, or the values themselves."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        one, other = next((one, other) for one, other in zip(ours, theirs, strict=True) if one != other)
        return _first_difference(one, other)
    return ours, theirs


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
