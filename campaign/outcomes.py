"""What came of the cases of a part: counts of what held, and the faults in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

#: Faults that a page lists for each part; all of them are counted.
LISTED = 20


@dataclass(frozen=True)
class Outcome:
    """The result of one case.

    Parameters
    ----------
    case : int
        The number of the case, which repeats it together with the seed.
    kind : str
        What was tried and what came of it, in a few words that many cases share, such as ``"SIGKILL, networks: resumed,
        bit-equal"``.
    fault : str, optional
        What went wrong, with all that is needed to see it. None where the promise held.
    """

    case: int
    kind: str
    fault: str | None = None


@dataclass
class Tally:
    """Counts of the outcomes of one part.

    Parameters
    ----------
    held : Counter of str
        Cases that kept the promise, by kind.
    faults : list of (int, str, str)
        Cases that did not: number, kind, what went wrong.
    seconds : float
        How long the part took.
    """

    held: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[int, str, str]] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        return self.held.total() + len(self.faults)

    def add(self, outcome: Outcome) -> None:
        if outcome.fault is None:
            self.held[outcome.kind] += 1
        else:
            self.faults.append((outcome.case, outcome.kind, outcome.fault))

    def to_json(self) -> dict[str, Any]:
        return {"held": dict(sorted(self.held.items())), "faults": self.faults, "seconds": round(self.seconds, 1)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Tally:
        faults = [(case, kind, words) for case, kind, words in value["faults"]]
        return cls(Counter(value["held"]), faults, value["seconds"])


def tallied(outcomes: Iterable[Outcome]) -> Tally:
    """All outcomes, counted."""
    tally = Tally()
    for outcome in outcomes:
        tally.add(outcome)
    return tally
