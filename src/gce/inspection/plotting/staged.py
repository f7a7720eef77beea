"""The error on given rows after each round."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from gce.inspection.plotting.readings import Array, Error, default_error, staged_errors
from gce.inspection.plotting.style import BLUE, axes_for, whole_numbers


class StagedErrorDisplay:
    """The error on given rows after each round of a fit; stopped members stay at their best round.

    Use :meth:`from_estimator` to create one. Parameters are stored as attributes.

    Parameters
    ----------
    errors : array of shape (T,)
        The error after each round.
    error_name : str, default="error"
        Its name, for the axis.
    estimator_name : str, optional
        For the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D

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
        display = cls(errors, error_name=error_name, estimator_name=type(estimator).__name__)
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
        self.ax_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        label = self.estimator_name if name is None else name
        style = {"color": BLUE, "linewidth": 1.8, "label": label, **kwargs}
        (self.line_,) = self.ax_.plot(np.arange(1, len(self.errors) + 1), self.errors, **style)
        self.ax_.set(xlabel="round", ylabel=f"{self.error_name} on the given rows")
        whole_numbers(self.ax_.xaxis)
        # the legend shows all models drawn on these axes
        if style["label"]:
            self.ax_.legend(frameon=False)
        return self
