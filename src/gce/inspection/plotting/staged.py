"""The error on given rows after each round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gce.inspection.plotting.readings import Array, Error, default_error, staged_errors
from gce.inspection.plotting.style import BLUE, axes_for, new_axes, panels, whole_numbers


class StagedErrorDisplay:
    """The error on given rows after each round of a fit; stopped members stay at their best round.

    Each family of a fit has axes of its own, with one scale for all, and the error of all families together. Use
    :meth:`from_estimator` to create one. Parameters are stored as attributes.

    Parameters
    ----------
    errors : array of shape (T,)
        The error after each round.
    error_name : str, default="error"
        Its name, for the axis.
    estimator_name : str, optional
        For the legend.
    families : dict of str to int, optional
        How many rounds each family has, by its name; errors after them are those of all families together. Default: all
        are of one family.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of several families the axes whose area is divided among ``axes_``.
    axes_ : list of matplotlib Axes
        One per family.
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D, or list of these for several families

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import StagedErrorDisplay
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = StagedErrorDisplay.from_estimator(model, X, X[:, 0] ** 2)
    >>> len(display.errors) == model.n_iter_
    True
    """

    def __init__(
        self,
        errors: Array,
        *,
        error_name: str = "error",
        estimator_name: str | None = None,
        families: Mapping[str, int] | None = None,
    ) -> None:
        self.errors = errors
        self.error_name = error_name
        self.estimator_name = estimator_name
        self.families = families

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        error: Error | None = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the error of a fitted model on given rows after each round.

        Parameters
        ----------
        estimator : GCERegressor or GCEClassifier
            Fitted. Other estimators have no rounds and raise a ValueError.
        X : array-like of shape (n, d)
            Rows to evaluate on.
        y : array-like of shape (n,) or (n, k)
            Their targets.
        sample_weight : array-like of shape (n,), optional
        error : callable, optional
            ``error(y, predictions, sample_weight=...)``, such as ``sklearn.metrics.mean_absolute_error``. Default: the
            misclassification rate, or the root mean squared error.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For the line, as in ``Axes.plot``.

        Returns
        -------
        StagedErrorDisplay
        """
        error_name, default = default_error(estimator)
        if error is not None:
            error_name = getattr(error, "__name__", "error").replace("_", " ")
        errors = staged_errors(estimator, X, y, sample_weight, error or default)
        families = {family.name: len(family.rounds) for family in estimator.result_.families if family.rounds}
        display = cls(errors, error_name=error_name, estimator_name=type(estimator).__name__, families=families)
        return display.plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For the line, as in ``Axes.plot``.

        Returns
        -------
        StagedErrorDisplay
        """
        families = self.families or {"": len(self.errors)}
        self.ax_ = axes_for(new_axes(len(families)) if ax is None else ax)
        self.figure_ = self.ax_.figure
        self.axes_ = panels(self.ax_, len(families))
        label = self.estimator_name if name is None else name
        style = {"color": BLUE, "linewidth": 1.8, "label": label, **kwargs}
        first, lines = 0, []
        for panel, (family, rounds) in zip(self.axes_, families.items(), strict=True):
            own = self.errors[first : first + rounds]
            first += rounds
            # a family of one round, such as a forest, has no line
            marker = {"marker": "o"} if len(own) == 1 else {}
            lines += panel.plot(np.arange(1, len(own) + 1), own, **marker | style)
            panel.set(xlabel="round", ylabel=f"{self.error_name} on the given rows")
            whole_numbers(panel.xaxis)
            if len(families) > 1:
                panel.set_title(family, fontsize=10)
                panel.axhline(self.errors[-1], color=style["color"], lw=1, ls=":", label=_together(style["label"]))
        if len(families) > 1:
            # a model that was drawn before is on the same scale
            top = max(1.05 * float(self.errors.max()), *(panel.get_ylim()[1] for panel in self.axes_))
            for panel in self.axes_:
                panel.set_ylim(min(0.0, float(self.errors.min())), top)
        self.line_ = lines[0] if len(lines) == 1 else lines
        # the legend shows all models drawn on these axes
        if style["label"]:
            self.axes_[0].legend(frameon=False)
        return self


def _together(label: str | None) -> str | None:
    return f"{label}, all families together" if label else None
