"""The error on given rows after each round."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gce.plotting.readings import Array, Error, default_error, staged_errors
from gce.plotting.style import BLUE, axes_for, whole_numbers


class StagedErrorDisplay:
    """The error on given rows after each round of a greedy ensemble, each member standing still from its best round on.

    Use :meth:`from_estimator` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    errors : array of shape (T,)
    error_name : str, default="error"
    estimator_name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
    """

    def __init__(self, errors: Array, *, error_name: str = "error", estimator_name: str | None = None) -> None:
        self.errors = errors
        self.error_name = error_name
        self.estimator_name = estimator_name

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
        """Draw a greedy model's error on given rows after each round.

        Parameters
        ----------
        estimator : GCERegressor or GCEClassifier
            Fitted. A model that is trained all at once has no rounds and is refused.
        X : array-like of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
        error : callable, optional
            ``error(y, predictions, sample_weight=...)``, such as ``sklearn.metrics.mean_absolute_error``. Default: the
            share of wrong classes, or the root mean squared error.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the estimator's class.
        **kwargs
            For the line, as in ``Axes.plot``.

        Returns
        -------
        StagedErrorDisplay
        """
        error_name, usual = default_error(estimator)
        if error is not None:
            error_name = getattr(error, "__name__", "error").replace("_", " ")
        errors = staged_errors(estimator, X, y, sample_weight, error or usual)
        display = cls(errors, error_name=error_name, estimator_name=type(estimator).__name__)
        return display.plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
        **kwargs
            For the line, as in ``Axes.plot``.

        Returns
        -------
        StagedErrorDisplay
        """
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        label = self.estimator_name if name is None else name
        style = {"color": BLUE, "linewidth": 1.8, "label": label, **kwargs}
        (self.line_,) = self.ax_.plot(np.arange(1, len(self.errors) + 1), self.errors, **style)
        self.ax_.set(xlabel="round", ylabel=f"{self.error_name} on the given rows")
        whole_numbers(self.ax_.xaxis)
        # several models are compared on one axes: the legend has whoever is there
        if style["label"]:
            self.ax_.legend(frameon=False)
        return self
