"""The weights of an ensemble's atoms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gce.plotting.readings import Shares, shares
from gce.plotting.style import MEMBERS, axes_for, whole_numbers


class WeightsDisplay:
    """What each atom weighs, coloured by member: over the round that made it, or by rank where there are no rounds.

    Use :meth:`from_estimator` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    shares : Shares
        The numbers, see :class:`gce.plotting.readings.Shares`.
    estimator_name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib BarContainer
        One a member; a round's bars stand on each other, so that their height is what the round is worth.
    """

    def __init__(self, shares: Shares, *, estimator_name: str | None = None) -> None:
        self.shares = shares
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw a fitted model's weights.

        Parameters
        ----------
        estimator : GCE..., NGCE... or NN... estimator
            Fitted.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the estimator's class.
        **kwargs
            For every bar, as in ``Axes.bar``.

        Returns
        -------
        WeightsDisplay
        """
        return cls(shares(estimator), estimator_name=type(estimator).__name__).plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
        **kwargs
            For every bar, as in ``Axes.bar``.

        Returns
        -------
        WeightsDisplay
        """
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        drawn, self.bars_ = self.shares, []
        height: dict[int, float] = {}
        members = np.unique(drawn.member)
        for m in members:
            own = drawn.weights[drawn.member == m]
            place = drawn.born[drawn.member == m] if drawn.by_round else np.argsort(np.argsort(-own, kind="stable")) + 1
            bottom = [height.get(int(x), 0.0) for x in place]
            for x, weight in zip(place, own, strict=True):
                height[int(x)] = height.get(int(x), 0.0) + float(weight)
            style = {"color": MEMBERS[int(m) % len(MEMBERS)], "width": 0.8, "label": f"member {m}", **kwargs}
            self.bars_.append(self.ax_.bar(place, own, bottom=bottom, **style))
        where = "round that made the atom (0: the offset)" if drawn.by_round else "atoms of a member, heaviest first"
        self.ax_.set(xlabel=where, ylabel="weight", title=(self.estimator_name if name is None else name) or "")
        whole_numbers(self.ax_.xaxis)
        # two or three bars must not fill the width
        least, most = self.ax_.get_xlim()
        self.ax_.set_xlim(least, max(most, least + 6))
        if len(members) > 1:
            self.ax_.legend(frameon=False, ncols=1 + len(members) // 8)
        return self
