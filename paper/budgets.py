"""How much of a search is run: a share of the paper's trials, or a number of trials."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


class Budget(ABC):
    """What a search may spend."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The budget in words: part of a search's key, and of the table."""

    @abstractmethod
    def allot(self, sizes: Sequence[int]) -> list[int]:
        """Trials for each stage of a search, given the paper's ``sizes``."""

    @abstractmethod
    def grid(self, size: int) -> int:
        """How many settings of a fixed grid are tried."""


@dataclass(frozen=True)
class SimplexProblem(Budget):
    """A share of the paper's trials, at least one in every stage; fixed grids are small and run whole."""

    share: float

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"share must be above 0 and at most 1, got {self.share!r}: 0.05 is 5 % of the trials")

    @property
    def label(self) -> str:
        return f"{100 * self.share:g} %"

    def allot(self, sizes: Sequence[int]) -> list[int]:
        # 1e-9: a product such as 0.07 * 100 may lie just above the whole number it stands for
        return [max(1, math.ceil(self.share * size - 1e-9)) for size in sizes]

    def grid(self, size: int) -> int:
        return size


@dataclass(frozen=True)
class Trials(Budget):
    """A number of trials for the whole search.

    Stages share it in proportion to the square roots of their sizes, one at least: in proportion to the sizes, 20
    trials of XGBoost's search would leave a single one to choose depth and child weight.
    """

    trials: int

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError(f"trials must be at least 1, got {self.trials!r}")

    @property
    def label(self) -> str:
        return f"{self.trials} trials"

    def allot(self, sizes: Sequence[int]) -> list[int]:
        parts = [0] * len(sizes)
        for _ in range(min(self.trials, sum(sizes))):
            open_ones = [i for i, size in enumerate(sizes) if parts[i] < size]
            # a stage without a trial comes first, then the one that is shortest of its due
            parts[min(open_ones, key=lambda i: (parts[i] > 0, parts[i] / math.sqrt(sizes[i])))] += 1
        return parts

    def grid(self, size: int) -> int:
        return min(size, self.trials)
