"""The parts of the campaign, in the order in which the page shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from campaign.outcomes import Outcome

#: Modules of this package; the longest are begun first.
PARTS = ("kills", "processes", "inputs", "figures", "certificates", "files", "disks", "outputs")


class Part(Protocol):
    """What a module of a part defines."""

    #: What must hold in every case, as a sentence.
    PROMISE: str
    #: The number of cases of ``make campaign``.
    FULL: int

    @staticmethod
    def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
        """Run cases by their numbers, within an empty folder; a case depends on its number and the seed alone."""


def part(name: str) -> Part:
    """The module of a part."""
    return cast(Part, import_module(f"campaign.{name}"))
