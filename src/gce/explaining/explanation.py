"""One row a member: what it weighs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gce.explaining.numerals import above, four, rise, signed
from gce.explaining.pictures import ExplanationDisplay
from gce.theory import rendering

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why members weigh what they weigh; ``str()`` and notebooks show it as a table, ``plot`` as a picture.

    Parameters
    ----------
    names : tuple of P str
    weights : array of shape (P,)
        On the simplex.
    own_loss : array of shape (P,)
        The loss of a member alone.
    loss_without : array of shape (P,)
        The least loss of the other members; NaN where there is no other.
    alignment : array of shape (P,)
        ``<D, g - f>``: how the loss begins to change when weight moves to the member. 0 for members in use; above 0 it
        is the reason why a member is not.
    seconds : array of shape (P,) or None
        What a member takes to answer for one row.
    loss, gap : float
        The loss of the ensemble, and by how much it is above the least one at most.
    """

    names: tuple[str, ...]
    weights: Array
    own_loss: Array
    loss_without: Array
    alignment: Array
    seconds: Array | None
    loss: float
    gap: float

    @classmethod
    def joined(cls, parts: Sequence[Self], shares: Sequence[float]) -> Self:
        """Put the ensembles together that a greater one averages, each with weights, rows and a loss of its own.

        Losses add up by shares, and so do gaps. Taking away a member changes the loss of its own part alone. Its own
        loss is that on the rows of its part.

        Parameters
        ----------
        parts : sequence of Explanation
        shares : sequence of float
            What each part weighs; they sum to 1.
        """
        loss = float(sum(share * part.loss for part, share in zip(parts, shares, strict=True)))
        rises = [share * (part.loss_without - part.loss) for part, share in zip(parts, shares, strict=True)]
        times = [part.seconds for part in parts if part.seconds is not None]
        return cls(
            tuple(name for part in parts for name in part.names),
            np.concatenate([share * part.weights for part, share in zip(parts, shares, strict=True)]),
            np.concatenate([part.own_loss for part in parts]),
            loss + np.concatenate(rises),
            # a part's loss counts by its share, and so does its weight: their quotient is what it was
            np.concatenate([part.alignment for part in parts]),
            np.concatenate(times) if len(times) == len(parts) else None,
            loss,
            float(sum(share * part.gap for part, share in zip(parts, shares, strict=True))),
        )

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which members have weight, ``(P,)``."""
        return self.weights > 0

    @property
    def order(self) -> NDArray[np.intp]:
        """Members as they are shown: the heaviest first, those of equal weight by their own loss."""
        return np.lexsort((self.own_loss, -self.weights))

    @property
    def seconds_used(self) -> float:
        """What members in use take to answer for one row; NaN where that is not known."""
        return np.nan if self.seconds is None else float(self.seconds[self.used].sum())

    @property
    def seconds_all(self) -> float:
        """What all members would take."""
        return np.nan if self.seconds is None else float(self.seconds.sum())

    def certificate(self) -> str:
        """The loss and its proof, in words."""
        used, members = int(self.used.sum()), len(self.names)
        return (
            f"loss {self.loss:.4g}, proven within {above(self.gap)} of the best convex combination; "
            f"{used} of {members} member{'s' if members > 1 else ''} in use"
        )

    def to_frame(self) -> Any:
        """A pandas DataFrame, a row a member by name, the heaviest first."""
        pandas = import_module("pandas")
        columns = {
            "weight": self.weights,
            "own_loss": self.own_loss,
            "loss_without": self.loss_without,
            "alignment": self.alignment,
        }
        if self.seconds is not None:
            columns["seconds_per_1000_rows"] = 1000 * self.seconds
        frame = pandas.DataFrame(columns, index=pandas.Index(self.names, name="member"))
        return frame.iloc[self.order]

    def plot(self, ax: Any = None) -> ExplanationDisplay:
        """Draw weights, losses without each member and own losses side by side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Its place is divided among the three. Default: a new figure, as high as there are members.
        """
        return ExplanationDisplay(self).plot(ax)

    def table(self) -> rendering.Table:
        """Its rows as they are shown."""
        order = self.order
        columns: dict[str, list[float | str | None]] = {
            "weight": [f"{w:.4f}" if w > 0 else "0" for w in self.weights[order]],
            "own loss": [four(v) for v in self.own_loss[order]],
            "loss without": [four(v) for v in self.loss_without[order]],
            "rise": [rise(v, self.loss) for v in self.loss_without[order]],
            "alignment": [signed(v, self.loss) for v in self.alignment[order]],
        }
        if self.seconds is not None:
            columns["s / 1,000 rows"] = [f"{1000 * s:.2g}" for s in self.seconds[order]]
        words = self.certificate()
        return rendering.Table(words[0].upper() + words[1:], [self.names[j] for j in order], columns, self._notes())

    def _notes(self) -> list[str]:
        notes = []
        if not self.used.all():
            notes.append(
                "Alignment: how the loss begins to change when weight moves to a member. Where it would rise, the "
                "weight is 0."
            )
        if any(rise(loss, self.loss).startswith("-") for loss in self.loss_without):
            notes.append(
                "Losses without a member are those of the best weights over the others: where they are below the loss, "
                "these weights are not the best ones."
            )
        if self.seconds is not None:
            notes.append(
                f"Predictions ask the members in use only: {1000 * self.seconds_used:.2g} s for 1,000 rows, where all "
                f"members would take {1000 * self.seconds_all:.2g} s."
            )
        return notes

    def __str__(self) -> str:
        return rendering.text(self.table())

    def _repr_html_(self) -> str:
        return rendering.html(self.table())
