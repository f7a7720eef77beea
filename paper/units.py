"""The work of Table 1 in units, one method on one split of one data set, and how a unit is brought to its end."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from paper.budgets import Budget
from paper.ledger import Ledger, Record
from paper.methods import Method
from paper.searches import Job, StoppedError

if TYPE_CHECKING:
    from gce.datasets import Dataset

logger = logging.getLogger("table1")

#: The paper's own split stands under this name beside the numbers of the repeated ones.
PAPER = "paper"
#: ca_housing a second time: the authors' code cut its targets down to whole numbers.
FLOORED = "ca_housing_floored"
DONE, STOPPED, FAILED = "done", "stopped", "failed"


@dataclass(frozen=True)
class Catalogue:
    """Data sets by name; ``small`` ones are split repeatedly. The interface of :mod:`gce.datasets`."""

    names: Sequence[str]
    small: Sequence[str]
    load: Callable[..., Dataset]
    present: Callable[[str], bool]

    def expand(self, name: str) -> list[str]:
        """A set's name, and that of its floored twin where it has one."""
        return [FLOORED, name] if f"{name}_floored" == FLOORED else [name]


@dataclass(frozen=True)
class Unit:
    """One method on one split (``"paper"`` or a number) of one data set."""

    data: str
    split: str | int
    method: Method
    budget: Budget

    @property
    def seed(self) -> int:
        return 0 if isinstance(self.split, str) else self.split

    def __str__(self) -> str:
        return (
            f"{self.data}, {self.split if isinstance(self.split, str) else f'split {self.split}'}, {self.method.name}"
        )


@dataclass(frozen=True)
class Site:
    """Where units are worked on.

    Parameters
    ----------
    folder : Path
        The ledgers, one a data set.
    scratch : Path
        Studies and locks.
    load : callable
        As :func:`gce.datasets.load`.
    device : str
    deadline : float
        No fit starts after this time.
    owner : int
        The process that hands out the units. If it is killed, its workers stop after the fit they are at.
    facts : dict
        What is to be known of the machine.
    """

    folder: Path
    scratch: Path
    load: Callable[..., Dataset]
    device: str
    deadline: float
    owner: int
    facts: Record

    def machine(self) -> str:
        """The name that results carry; with the first of them the machine is put on record."""
        name = hashlib.sha256(json.dumps(self.facts, sort_keys=True).encode()).hexdigest()[:8]
        Ledger(self.folder / "machines.jsonl").once(self.facts, lambda: {"name": name})
        return name

    def orphaned(self) -> bool:
        return self.owner not in (os.getpid(), os.getppid())

    def check(self) -> None:
        if time.time() > self.deadline or self.orphaned():
            raise StoppedError


def plan(
    catalogue: Catalogue,
    names: Sequence[str],
    methods: Sequence[Method],
    on_paper_split: Budget,
    splits: int,
    on_each_split: Budget,
) -> list[Unit]:
    """All units: GCE's defaults first, then set by set, digits behind the other small sets, large sets last."""
    units = []
    for name in sorted(names, key=lambda name: (name not in catalogue.small, name == "digits")):
        for method in methods:
            if name in catalogue.small:
                units += [Unit(name, split, method, on_each_split) for split in range(splits)]
            units += [Unit(variant, PAPER, method, on_paper_split) for variant in catalogue.expand(name)]
    return sorted(units, key=lambda unit: unit.method.name != "gce")


def work(unit: Unit, site: Site) -> str:
    """Bring a unit to its end, whatever of it was done before: how that went."""
    log_progress()
    try:
        site.check()
        with alone(site.scratch / f"{unit}.lock".replace(", ", "-")), threadpool_limits(1):
            _search(unit, site)
    except StoppedError:
        if site.orphaned():
            # nobody waits for an answer, and an idle worker would linger for minutes
            os._exit(1)
        return STOPPED
    except Exception:
        # the other units do not depend on this one; the run ends with an error all the same
        logger.exception("%s failed", unit)
        return FAILED
    return DONE


def log_progress() -> None:
    """Show what this experiment says, and of all others only warnings."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)


def _search(unit: Unit, site: Site) -> None:
    data = rows(site.load, unit.data, unit.split)

    def fit(settings: dict[str, Any]) -> dict[str, Any]:
        record = unit.method.fit(data, settings, seed=unit.seed, device=site.device)
        note = {"note": data.note} if data.note else {}
        return {**record, **note, "metric": data.metric, "machine": site.machine()}

    key = {"set": unit.data, "split": unit.split, "method": unit.method.name, "seed": unit.seed}
    ledger = Ledger(site.folder / f"{unit.data}.jsonl")
    unit.method.search(data, unit.budget).run(Job(key, fit, ledger, site.scratch, site.check, unit.seed))


@functools.lru_cache(maxsize=1)
def rows(load: Callable[..., Dataset], name: str, split: str | int) -> Dataset:
    which = {} if isinstance(split, str) else {"split": split}
    return load("ca_housing", floored=True, **which) if name == FLOORED else load(name, **which)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock: wait for another process at the same unit, such as a worker that outlived a killed run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
