"""Processes that are killed at random moments, and called again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from campaign.children import DONE, FAILED, INTERRUPTED, Child, End, Moment, Tick, counted
from campaign.kill_jobs import FILE_JOBS, FIT_JOBS, SHARD_JOBS, Job, Materials
from campaign.memory_limits import has_cgroups
from campaign.outcomes import Outcome

PROMISE = "A fit that is killed and called again gives the same bits; every file is the old one or the new one."
FULL = 576

#: What ends a process, by weight; None is memory that is not given.
ENDS: dict[End, int] = {signal.SIGKILL: 4, signal.SIGTERM: 2, signal.SIGINT: 2, None: 2}
#: Exit statuses that are a sane end.
SANE: dict[End, tuple[int, ...]] = {
    signal.SIGKILL: (-signal.SIGKILL,),
    signal.SIGTERM: (-signal.SIGTERM,),
    signal.SIGINT: (INTERRUPTED, -signal.SIGINT),
    None: (-signal.SIGKILL,),
}
#: Words of memory that a process was refused, where there are no cgroups.
REFUSED = ("MemoryError", "alloc", "memory")


@dataclass(frozen=True)
class Reference:
    """A job that nobody killed.

    Parameters
    ----------
    result : str
        What it left.
    ticks, files : int
        Its rounds and file operations.
    seconds : float
        How long it took.
    """

    result: str
    ticks: int
    files: int
    seconds: float


class Kills:
    """Jobs that are killed, in a folder.

    Parameters
    ----------
    folder : Path
        Empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.materials = folder, Materials(folder / "materials")
        self._references: dict[str, Reference] = {}
        child = Child(lambda tick: self.materials.write(), folder / "at")
        status = child.wait()
        if status != DONE:
            raise RuntimeError(f"the materials could not be written ({status}): {child.said()}")

    @cached_property
    def memory(self) -> str:
        return "out of memory by cgroup" if has_cgroups() else "out of memory by RLIMIT_AS (no cgroup to be had)"

    def reference(self, job: Job) -> Reference:
        """What comes of a job that nobody kills, once for each job."""
        if job.name not in self._references:
            folder = self.fresh(job, f"reference-{len(self._references)}")
            self._references[job.name] = Reference(**json.loads(self.finished(job, folder, job.processes)))
        return self._references[job.name]

    def fresh(self, job: Job, name: str) -> Path:
        """A folder for a job, with the file that it will replace."""
        folder = self.folder / name / "at"
        folder.mkdir(parents=True)
        if job.replaces is not None:
            (folder / job.replaces).write_bytes(self.materials.old(job.replaces))
        return folder

    def finished(self, job: Job, folder: Path, processes: int) -> str:
        """Do a job to its end, and say what came of it, as JSON; an error where it fails."""
        answer = folder.parent / "answer"

        def work(tick: Tick) -> None:
            ticks, files, seconds = counted(partial(job.work, folder, self.materials), folder)
            if os.environ.get("RANK", "0") == "0":
                found = {"result": job.result(folder), "ticks": ticks, "files": files, "seconds": seconds}
                answer.write_text(json.dumps(found))

        children = [Child(partial(ranked, work, rank), folder) for rank in ranks(processes)]
        for child in children:
            status = child.wait()
            if status != DONE:
                raise BrokenError(f"called again it ended with {status}: {child.said()}")
        return answer.read_text()

    def killed(self, job: Job, folder: Path, end: End, moment: Moment, rank: int = 0) -> tuple[int | str, int]:
        """Kill one process of a job, whose others must end by themselves.

        Returns
        -------
        status : int or str
            Its exit status.
        ticks : int
            Rounds of the process that keeps them.
        """
        work = partial(job.work, folder, self.materials)
        children = [
            Child(partial(ranked, work, given), folder, end, moment if i == rank else None)
            for i, given in enumerate(ranks(job.processes))
        ]
        status = children[rank].wait()
        for i, child in enumerate(children):
            if i != rank and (other := child.wait()) not in (DONE, FAILED):
                raise BrokenError(f"process {i} ended with {other} after process {rank} had: {child.said()}")
        good = (DONE, *SANE[end])
        refused = end is None and status == FAILED and any(word in children[rank].said() for word in REFUSED)
        if status not in good and not refused:
            raise BrokenError(f"it ended with {status}: {children[rank].said()}")
        if end is None and status != DONE and not children[rank].struck:
            raise BrokenError(f"it took too much memory before its moment (see memory_limits.MORE): {status}")
        return status, children[0].ticks

    def check_standing(self, job: Job, folder: Path, expected: str, end: End) -> None:
        """The file is the old one, the new one, or after Ctrl-C a model of fewer rounds."""
        if job.replaces is None or (folder / job.replaces).read_bytes() == self.materials.old(job.replaces):
            return
        try:
            found = self.result(job, folder)
        except BrokenError as broken:
            raise BrokenError(f"{job.replaces} is neither the old file nor a new one: {broken}") from broken
        if found != expected and not (job.goes_on and end is signal.SIGINT):
            raise BrokenError(f"{job.replaces} is not what an undisturbed call writes")

    def result(self, job: Job, folder: Path) -> str:
        """What a job left in a folder; an error where that cannot be read."""
        found = folder.parent / "standing"
        child = Child(lambda tick: found.write_text(job.result(folder)), folder)
        if child.wait() != DONE:
            raise BrokenError(f"what it left cannot be read: {child.said()}")
        return found.read_text()

    def outcome(self, job: Job, case: int, rng: random.Random) -> Outcome:
        """Kill a job once, and call it again."""
        reference = self.reference(job)
        end: End = rng.choices(list(ENDS), list(ENDS.values()))[0]
        moment, rank = chosen_moment(reference, rng), rng.randrange(job.processes)
        processes = rng.randint(1, job.processes)
        kind = f"{self.memory if end is None else end.name}, {job.name}"
        folder = self.fresh(job, f"case-{case}")
        try:
            status, ticks = self.killed(job, folder, end, moment, rank)
            self.check_standing(job, folder, reference.result, end)
            ended = self.repeated(job, folder, ticks, processes)
        except BrokenError as broken:
            return Outcome(case, kind, f"{moment}: {broken}")
        shutil.rmtree(folder.parent)
        return Outcome(case, f"{kind}: {'done before' if status == DONE else ended}, bit-equal")

    def repeated(self, job: Job, folder: Path, ticks: int, processes: int = 1) -> str:
        """Call a job again that was killed after some ticks; what it did, in words."""
        reference = self.reference(job)
        again = Reference(**json.loads(self.finished(job, folder, processes)))
        if again.result != reference.result:
            raise BrokenError("what it left in the end differs from what an undisturbed call leaves")
        if left := leftovers(folder):
            raise BrokenError(f"it left {left} behind")
        if not job.goes_on:
            return "old or new file, and done again"
        # a round is kept before it ticks, so that there may be one more
        if not 0 < reference.ticks >= ticks + again.ticks:
            did = f"made {ticks} rounds, and {again.ticks} when it was called again"
            raise BrokenError(f"it did not resume: it {did}, of {reference.ticks} in all")
        return "resumed" if again.ticks < reference.ticks else "begun again, since no round was kept"


class BrokenError(Exception):
    """A promise was broken, in words."""


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Kill the jobs of the plan, one for each case."""
    kills, jobs = Kills(folder), plan()
    for case in cases:
        yield kills.outcome(jobs[case % len(jobs)], case, random.Random(f"kills {seed} {case}"))


def plan() -> list[Job]:
    """The jobs of the cases in turn: every third reads or replaces files, the others are fits of rows in memory."""
    fits = random.Random(0).sample(FIT_JOBS, len(FIT_JOBS))
    others = [*FILE_JOBS, *SHARD_JOBS]
    return [job for i, fit in enumerate(fits) for job in ([fit, others[i // 2 % len(others)]] if i % 2 else [fit])]


def chosen_moment(reference: Reference, rng: random.Random) -> Moment:
    """Just before a file operation, or some time after a round: never by the clock from the start of a long job.

    A busy machine does not move such kills to one end.
    """
    if rng.random() < 0.5:
        return Moment(file=1 + int(rng.random() * reference.files))
    ticks = rng.randrange(max(reference.ticks, 1))
    return Moment(ticks, rng.random() * reference.seconds / (reference.ticks + 1))


def ranks(size: int) -> list[dict[str, str]]:
    """The environment of each of several processes, as torchrun sets it; of one process alone it is empty."""
    if size == 1:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(size)}
    return [common | {"RANK": str(rank)} for rank in range(size)]


def ranked(work: Callable[[Tick], None], environment: dict[str, str], tick: Tick) -> None:
    """Work as one of several processes."""
    os.environ.update(environment)
    work(tick)


def leftovers(folder: Path) -> list[str]:
    """Unfinished files, and files of a working folder that take space."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    working = [path for path in files if "work" in path.parts[len(folder.parts) : -1] and path.stat().st_size]
    return sorted(path.name for path in {*working, *(path for path in files if path.suffix == ".tmp")})
