"""The weights of an ensemble's atoms."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gce.inspection.plotting.readings import Shares, shares
from gce.inspection.plotting.style import MEMBERS, axes_for, whole_numbers


class WeightsDisplay:
    """Weights of atoms, coloured by member, over the round that made them, or by rank if there are no rounds.

    Use :meth:`from_estimator` to create one. Parameters are stored as attributes.

    Parameters
    ----------
    shares : Shares
        The numbers, see :class:`gce.inspection.plotting.readings.Shares`.
    estimator_name : str, optional
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    bars_ : list of matplotlib BarContainer
        One per member; bars of a round are stacked, so their height is the weight of the round.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import WeightsDisplay
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = WeightsDisplay.from_estimator(model)
    >>> len(display.bars_)
    2
    """

    def __init__(self, shares: Shares, *, estimator_name: str | None = None) -> None:
        self.shares = shares
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the weights of a fitted model.

        Parameters
        ----------
        estimator : estimator of gce
            Fitted.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all bars, as in ``Axes.bar``.

        Returns
        -------
        WeightsDisplay
        """
        return cls(shares(estimator), estimator_name=type(estimator).__name__).plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all bars, as in ``Axes.bar``.

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
            position = (
                drawn.born[drawn.member == m] if drawn.by_round else np.argsort(np.argsort(-own, kind="stable")) + 1
            )
            bottom = [height.get(int(x), 0.0) for x in position]
            for x, weight in zip(position, own, strict=True):
                height[int(x)] = height.get(int(x), 0.0) + float(weight)
            style = {"color": MEMBERS[int(m) % len(MEMBERS)], "width": 0.8, "label": f"member {m}", **kwargs}
            self.bars_.append(self.ax_.bar(position, own, bottom=bottom, **style))
        where = "round that made the atom (0: the offset)" if drawn.by_round else "atoms of a member, heaviest first"
        self.ax_.set(xlabel=where, ylabel="weight", title=(self.estimator_name if name is None else name) or "")
        whole_numbers(self.ax_.xaxis)
        # a few bars do not fill the width
        least, most = self.ax_.get_xlim()
        self.ax_.set_xlim(least, max(most, least + 6))
        if len(members) > 1:
            self.ax_.legend(frameon=False, ncols=1 + len(members) // 8)
        return self
