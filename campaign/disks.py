"""Disks that are full, read-only, slow, gone, or in use by somebody else."""

from __future__ import annotations

import json
import random
import re
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from campaign import disk_faults
from campaign.children import DONE, FAILED, Child, Tick
from campaign.disk_faults import Inside, can_close_folders, can_mount
from campaign.kill_jobs import FILE_JOBS, FIT_JOBS, SHARD_JOBS, Job
from campaign.kills import BrokenError, Kills, Reference, leftovers
from campaign.outcomes import Outcome

PROMISE = "A disk's fault is an error that names the file, or none; the old file stays; afterwards the same call works."
FULL = 80

FULL_DISK, READ_ONLY, REMOVED = "full disk", "read-only folder", "folder removed meanwhile"
#: What may be wrong while a job works.
FAULTS = {
    FULL_DISK: disk_faults.full,
    "files of a few kilobytes (RLIMIT_FSIZE)": disk_faults.short_files,
    READ_ONLY: disk_faults.read_only,
    "slow disk": disk_faults.slow,
    REMOVED: disk_faults.removed,
}
DIRECTORY, LINK, LOCK = "a folder in the place of the file", "a link in the place of the file", "two processes"
KINDS = (*FAULTS, DIRECTORY, LINK, LOCK)
ALL_THE_SAME, NAMED = "done", "an error names the file"
JOBS = (*FILE_JOBS, FIT_JOBS[0], FIT_JOBS[1], FIT_JOBS[36], SHARD_JOBS[0])


class Disks(Kills):
    """Jobs on disks with faults, in a folder."""

    def outcome(self, job: Job, case: int, rng: random.Random) -> Outcome:
        """One fault, and the same call without it."""
        fault = KINDS[case % len(KINDS)]
        if fault in (DIRECTORY, LINK):
            job = FILE_JOBS[case // len(KINDS) % len(FILE_JOBS)]
        elif fault == LOCK:
            job = FIT_JOBS[rng.randrange(len(FIT_JOBS))]
        if (fault == FULL_DISK and not can_mount()) or (fault == READ_ONLY and not can_close_folders()):
            return Outcome(case, f"{fault}: not tried, since this needs a mount")
        kind = f"{fault}, {job.name}"
        try:
            ended = self.tried(job, fault, case, rng)
        except BrokenError as broken:
            return Outcome(case, kind, str(broken))
        return Outcome(case, f"{kind}: {ended}, then bit-equal")

    def tried(self, job: Job, fault: str, case: int, rng: random.Random) -> str:
        """What came of a job under a fault; an error where a promise was broken."""
        reference, folder = self.reference(job), self.fresh(job, f"case-{case}")
        with self.disk(job, folder, fault):
            if fault == LOCK:
                ended = self.locked(job, folder)
            elif fault in (DIRECTORY, LINK):
                ended = self.displaced(job, folder, fault)
            else:
                with self.fault(job, folder, fault, rng) as inside:
                    ended = self.disturbed(job, folder, inside)
                    self.check_left(job, folder, ended)
                    if fault == REMOVED and ended == ALL_THE_SAME:
                        made = folder.exists() and disk_faults.aside(folder).exists()
                        ended = "done in a new folder" if made else "removed after it was done"
            found = Reference(**json.loads(self.finished(job, folder, 1)))
            if found.result != reference.result:
                raise BrokenError("afterwards the same call leaves something else")
            if left := leftovers(folder):
                raise BrokenError(f"it left {left} behind")
        return ended

    @contextmanager
    def disk(self, job: Job, folder: Path, fault: str) -> Iterator[None]:
        """A file system of one megabyte where a fault needs one."""
        if fault not in (FULL_DISK, READ_ONLY) or not can_mount():
            yield
            return
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=True)
        try:
            if job.replaces is not None:
                (folder / job.replaces).write_bytes(self.materials.old(job.replaces))
            yield
        finally:
            subprocess.run(["umount", str(folder)], check=True)

    def fault(self, job: Job, folder: Path, fault: str, rng: random.Random) -> AbstractContextManager[Inside]:
        """What is wrong while a job works; a folder is removed before one of all its file operations."""
        if fault == REMOVED:
            return disk_faults.removed(folder, rng, self.reference(job).files)
        return FAULTS[fault](folder, rng)

    def disturbed(self, job: Job, folder: Path, inside: Inside) -> str:
        """Whether a job was done all the same, or failed with a sentence."""

        def work(tick: Tick) -> None:
            inside()
            job.work(folder, self.materials, tick)

        child = Child(work, folder)
        status = child.wait()
        if status == DONE:
            return ALL_THE_SAME
        if status != FAILED:
            raise BrokenError(f"it ended with {status}: {child.said()}")
        if not names_file(child.error(), job, folder):
            raise BrokenError(f"an error that does not name the file: {child.error()}")
        return NAMED

    def check_left(self, job: Job, folder: Path, ended: str) -> None:
        """What stands before the next call: all of the new file after a job that was done, else the old one."""
        aside = disk_faults.aside(folder)
        if ended == ALL_THE_SAME:
            if self.result(job, folder if folder.exists() else aside) != self.reference(job).result:
                raise BrokenError("it ended well, but left something else than an undisturbed call")
        elif aside.exists():
            # a command may fail after its file was there, and was removed
            self.check_standing(job, aside, self.reference(job).result, None)
        elif job.replaces is not None and (folder / job.replaces).read_bytes() != self.materials.old(job.replaces):
            raise BrokenError(f"{job.replaces} is not what it was")

    def displaced(self, job: Job, folder: Path, fault: str) -> str:
        """A folder or a link stands where the file should be."""
        path = folder / str(job.replaces)
        if fault == DIRECTORY:
            path.unlink()
            path.mkdir()
            ended = self.disturbed(job, folder, disk_faults.nothing)
            if ended == ALL_THE_SAME or not path.is_dir():
                raise BrokenError("a folder was replaced by a file")
            path.rmdir()
            return ended
        path.rename(folder / "elsewhere")
        path.symlink_to(folder / "elsewhere")
        ended = self.disturbed(job, folder, disk_faults.nothing)
        if not path.is_symlink() or (folder / "elsewhere").read_bytes() == self.materials.old(path.name):
            raise BrokenError("a link was not followed")
        self.check_left(job, folder, ended)
        return "its target is replaced"

    def locked(self, job: Job, folder: Path) -> str:
        """A second fit on one checkpoint is refused while the first runs."""
        begun, leave = folder.parent / "begun", folder.parent / "leave"

        def hold(tick: Tick) -> None:
            def wait(*_: Any) -> None:
                begun.touch()
                while not leave.exists():
                    time.sleep(0.002)

            job.work(folder, self.materials, wait)

        first = Child(hold, folder)
        until = time.monotonic() + 60
        while not begun.exists() and time.monotonic() < until:
            time.sleep(0.002)
        second = Child(partial(job.work, folder, self.materials), folder)
        status = second.wait()
        leave.touch()
        if (other := first.wait()) != DONE:
            raise BrokenError(f"the first of two ended with {other}: {first.said()}")
        if status != FAILED or "is in use by another fit" not in second.said():
            raise BrokenError(f"the second of two ended with {status}: {second.said()}")
        self.check_left(job, folder, ALL_THE_SAME)
        return "the second is refused by a sentence"


def names_file(error: str, job: Job, folder: Path) -> bool:
    """Whether an error names the file of a job, or one of those of a job that keeps rounds; none that is temporary."""
    if job.replaces is not None and str(folder / job.replaces) in error:
        return True
    found = re.findall(rf"{re.escape(str(folder))}/([^'\"\s]+)", error)
    return job.goes_on and any(".tmp" not in name for name in found)


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Try one fault in each case."""
    disks = Disks(folder)
    for case in cases:
        yield disks.outcome(JOBS[(case + case // len(KINDS)) % len(JOBS)], case, random.Random(f"disks {seed} {case}"))
