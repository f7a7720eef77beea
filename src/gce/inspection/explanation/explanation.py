"""The weights of an ensemble explained, one row per member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from gce._utils import text
from gce._utils.numerals import format_bound, format_change, format_number, format_slope
from gce._utils.optional import import_pandas

if TYPE_CHECKING:
    from gce.inspection.explanation.pictures import ExplanationDisplay

Array = NDArray[np.float64]

PLURAL = {"member": "members", "family": "families", "atom": "atoms"}
#: Columns listed.
_COLUMNS = 20


@dataclass(frozen=True, eq=False)
class Explanation:
    """The weights of an ensemble and the reasons for them, as returned by ``explain``.

    ``str(explanation)`` and notebooks show a table, ``plot`` draws it.

    Parameters
    ----------
    names : tuple of P str
        Names of the members.
    weights : array of shape (P,)
        Non-negative, summing to 1.
    own_loss : array of shape (P,)
        Loss of each member alone.
    loss_without : array of shape (P,)
        Least loss of the other members; NaN for a single member.
    alignment : array of shape (P,)
        ``<D, g - f>``: the slope of the loss when weight moves to the member. Where the weights are the best ones, it
        is 0 for members in use, and a positive slope is the reason why a member is not used.
    seconds : array of shape (P,) or None
        Prediction time per row.
    loss : float
        Loss of the ensemble; NaN, as are ``own_loss``, ``loss_without`` and ``alignment``, where no rows are given.
    gap : float
        Upper bound on the distance of ``loss`` from the least loss of all weights.
    unit : {"member", "family", "atom"}, default="member"
        What the rows are.
    n_atoms : array of shape (P,), optional
        How many atoms each family has.
    importances : dict of str to float, optional
        What each column of the rows is worth, the shares of a whole.
    best_loss : float, optional
        Loss of the best weights on the same rows: ``loss``, if the present weights are the best ones.
    remarks : tuple of str, optional
        Sentences on the rows, and on where the weights come from.
    free : tuple of int, optional
        Which of them are the offset alone: it can have any weight, and is not counted.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from gce import ConvexStackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    >>> explanation = ConvexStackingRegressor(members, random_state=0).fit(X, y).explain()
    >>> [explanation.names[j] for j in explanation.order]
    ['ridge', 'tree']
    >>> bool((explanation.loss_without > explanation.loss).all())
    True
    """

    names: tuple[str, ...]
    weights: Array
    own_loss: Array
    loss_without: Array
    alignment: Array
    seconds: Array | None
    loss: float
    gap: float
    unit: str = "member"
    n_atoms: NDArray[np.intp] | None = None
    importances: Mapping[str, float] | None = None
    best_loss: float | None = None
    remarks: tuple[str, ...] = ()
    free: tuple[int, ...] = ()

    @classmethod
    def of_weights(
        cls, names: Sequence[str], weights: Array, unit: str = "member", n_atoms: NDArray[np.intp] | None = None
    ) -> Self:
        """What is known without rows: no losses, and no slopes.

        Parameters
        ----------
        names : sequence of P str
        weights : array of shape (P,)
        unit : {"member", "family", "atom"}, default="member"
        n_atoms : array of shape (P,), optional
        """
        unknown = np.full(len(names), np.nan)
        return cls(tuple(names), weights, unknown, unknown, unknown, None, np.nan, np.nan, unit, n_atoms)

    @classmethod
    def joined(cls, parts: Sequence[Self], shares: Sequence[float]) -> Self:
        """Join the explanations of the parts that an ensemble averages.

        Each part has its own weights, rows and loss. The loss and the gap of the ensemble are the weighted means of
        theirs. Removing a member changes the loss of its part alone; its own loss is that on the rows of its part.

        Parameters
        ----------
        parts : sequence of Explanation
        shares : sequence of float
            Weights of the parts, which sum to 1.
        """
        loss = float(sum(share * part.loss for part, share in zip(parts, shares, strict=True)))
        rises = [share * (part.loss_without - part.loss) for part, share in zip(parts, shares, strict=True)]
        times = [part.seconds for part in parts if part.seconds is not None]
        first = np.cumsum([0, *(len(part.names) for part in parts)]).tolist()
        return cls(
            tuple(name for part in parts for name in part.names),
            np.concatenate([share * part.weights for part, share in zip(parts, shares, strict=True)]),
            np.concatenate([part.own_loss for part in parts]),
            loss + np.concatenate(rises),
            # the share scales the loss of a part and the weights in it alike, so slopes stay the same
            np.concatenate([part.alignment for part in parts]),
            np.concatenate(times) if len(times) == len(parts) else None,
            loss,
            float(sum(share * part.gap for part, share in zip(parts, shares, strict=True))),
            parts[0].unit,
            best_loss=_mean_of_known([part.best_loss for part in parts], shares),
            remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
            free=tuple(before + j for before, part in zip(first, parts, strict=False) for j in part.free),
        )

    @property
    def used(self) -> NDArray[np.bool_]:
        """Mask of the members with positive weight, ``(P,)``."""
        return self.weights > 0

    @property
    def on_rows(self) -> bool:
        """Whether the weights are explained on rows, so that there are losses."""
        return not np.isnan(self.loss)

    @property
    def order(self) -> NDArray[np.intp]:
        """Indices of members in the order shown: by decreasing weight, then by their own loss."""
        return np.lexsort((self.own_loss, -self.weights))

    @property
    def seconds_used(self) -> float:
        """Prediction time of the members in use per row; NaN if unknown."""
        return np.nan if self.seconds is None else float(self.seconds[self.used].sum())

    @property
    def seconds_all(self) -> float:
        """Prediction time of all members per row; NaN if unknown."""
        return np.nan if self.seconds is None else float(self.seconds.sum())

    def in_use(self) -> str:
        """How many have weight, in words; the offset is not counted."""
        members = np.delete(self.used, np.array(self.free, dtype=np.intp))
        return f"{members.sum()} of {len(members)} {self.unit if len(members) == 1 else PLURAL[self.unit]} in use"

    def certificate(self) -> str:
        """The loss and its certificate, as a sentence."""
        if not self.on_rows:
            return self.in_use()
        best = "convex combination"
        if self.free:
            one = len(self.names) - len(self.free) == 1
            best = f"weights of {f'this {self.unit}' if one else f'these {PLURAL[self.unit]}'} and the offset"
        return f"loss {self.loss:.4g}, proven within {format_bound(self.gap)} of the best {best}; {self.in_use()}"

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame with one row per member, the largest weight first.

        Returns
        -------
        pandas.DataFrame
            Columns ``weight`` and, where they are known, ``own_loss``, ``loss_without``, ``alignment``, ``n_atoms``
            and ``seconds_per_1000_rows``; the index has the names.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        pandas = import_pandas()
        columns: dict[str, NDArray[Any]] = {"weight": self.weights}
        if self.on_rows:
            columns |= {"own_loss": self.own_loss, "loss_without": self.loss_without, "alignment": self.alignment}
        if self.n_atoms is not None:
            columns["n_atoms"] = self.n_atoms
        if self.seconds is not None:
            columns["seconds_per_1000_rows"] = 1000 * self.seconds
        frame = pandas.DataFrame(columns, index=pandas.Index(self.names, name=self.unit))
        return frame.iloc[self.order]

    def plot(self, ax: Any = None) -> ExplanationDisplay:
        """Plot weights, losses without each member and own losses side by side.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes whose area is divided among three panels. Default: a new figure, whose height follows from the number
            of members.

        Returns
        -------
        ExplanationDisplay
        """
        # most who fit a model do not draw it
        from gce.inspection.explanation.pictures import ExplanationDisplay

        return ExplanationDisplay(self).plot(ax)

    def table(self) -> text.TextTable:
        """Return the table that ``str`` and notebooks show."""
        order = self.order
        columns: dict[str, list[float | str | None]] = {
            "weight": [f"{w:.4f}" if w > 0 else "0" for w in self.weights[order]],
            **({} if self.n_atoms is None else {"atoms": [int(count) for count in self.n_atoms[order]]}),
        }
        if self.on_rows:
            columns |= {
                "own loss": [format_number(v) for v in self.own_loss[order]],
                "loss without": [format_number(v) for v in self.loss_without[order]],
                "increase": [format_change(v, self.loss) for v in self.loss_without[order]],
                "alignment": [format_slope(v, self.loss) for v in self.alignment[order]],
            }
        if self.seconds is not None:
            columns["s / 1,000 rows"] = [f"{1000 * s:.2g}" for s in self.seconds[order]]
        words = self.certificate()
        return text.TextTable(words[0].upper() + words[1:], [self.names[j] for j in order], columns, self._notes())

    def column_table(self) -> text.TextTable | None:
        """Return the table of columns, the most important first; None where nothing is known of them."""
        if self.importances is None:
            return None
        order = sorted(self.importances.items(), key=lambda pair: -pair[1])
        listed, rest = order[:_COLUMNS], order[_COLUMNS:]
        notes = ["Importance: the share of the fall of the training risk that a column brought."]
        if rest:
            notes.append(f"{len(rest)} more columns have {sum(share for _, share in rest):.4f} together.")
        shares: list[float | str | None] = [f"{share:.4f}" for _, share in listed]
        return text.TextTable("Columns", [name for name, _ in listed], {"importance": shares}, notes)

    def alignment_note(self) -> str:
        """What the signs of the slopes mean, as they are shown; empty where all are 0."""
        one = self._one()
        slopes = [format_slope(slope, self.loss) for slope in self.alignment]
        rising = np.array([slope.startswith("+") for slope in slopes])
        falling = any(slope.startswith("-") for slope in slopes)
        note = f"Alignment: the slope of the loss when weight moves to {one}."
        if not falling and not (rising & self.used).any():
            return f"{note} Where it is positive, the weight is 0." if rising.any() else ""
        if rising.any():
            note += " Where it is positive, more weight would raise the loss."
        return f"{note} Where it is negative, more weight would lower the loss." if falling else note

    def best_note(self) -> str:
        """What the best weights on the same rows would gain; empty where the present ones are as good."""
        change = "" if self.best_loss is None else format_change(self.best_loss, self.loss)
        if not change.startswith("-"):
            return ""
        return f"These weights are not optimal on these rows: the best have loss {self.best_loss:.4g} ({change})."

    def _one(self) -> str:
        return f"{'an' if self.unit[0] in 'aeiou' else 'a'} {self.unit}"

    def _notes(self) -> list[str]:
        if not self.on_rows:
            return ["Losses, and what a weight is good for, need rows: explain(X, y).", *self.remarks]
        notes = [*self.remarks, self.alignment_note(), self.best_note()]
        if any(format_change(loss, self.loss).startswith("-") for loss in self.loss_without):
            notes.append(
                f"Losses without {self._one()} are those of the best weights of the others, which is why they may be "
                "below the loss."
            )
        if self.seconds is not None:
            notes.append(
                f"Predictions evaluate only the members in use: {1000 * self.seconds_used:.2g} s for 1,000 rows, "
                f"instead of {1000 * self.seconds_all:.2g} s for all members."
            )
        return [note for note in notes if note]

    def __str__(self) -> str:
        return "\n\n".join(text.render_text(table).rstrip() for table in self._tables())

    def _repr_html_(self) -> str:
        return "".join(map(text.render_html, self._tables()))

    def _tables(self) -> list[text.TextTable]:
        columns = self.column_table()
        return [self.table()] if columns is None else [self.table(), columns]


def _mean_of_known(values: Sequence[float | None], shares: Sequence[float]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.dot(shares, known)) if len(known) == len(values) else None
