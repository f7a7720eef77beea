"""Displays of scikit-learn, with the options that suit our models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import PredictionErrorDisplay

from gce.inspection.plotting.style import axes_for


def calibration_display(model: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None, **kwargs: Any) -> Any:
    """Plot the calibration curve of a classifier.

    For two classes: the frequency of ``classes_[1]`` against its probability. For more: the frequency of correct
    predictions against the probability of the predicted class.

    Parameters
    ----------
    model : classifier
        A fitted classifier.
    X : array-like of shape (n, d)
        Rows to evaluate on.
    y : array-like of shape (n,)
        Their classes.
    n_bins : int, default=10
        Number of bins, with equally many rows each.
    ax : matplotlib Axes, optional
        Default: a new figure.
    **kwargs
        For :meth:`sklearn.calibration.CalibrationDisplay.from_predictions`.

    Returns
    -------
    sklearn.calibration.CalibrationDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCEClassifier
    >>> from gce.inspection import calibration_display
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCEClassifier(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] > 0)
    >>> display = calibration_display(model, X, X[:, 0] > 0, n_bins=2)
    >>> display.ax_.get_xlabel()
    'mean probability of True'
    """
    # imported here: it takes half a second
    from sklearn.calibration import CalibrationDisplay

    if not is_classifier(model):
        raise ValueError(f"calibration needs the probabilities of a classifier, got {type(model).__name__}")
    probability, several = model.predict_proba(X), len(model.classes_) > 2
    truth = np.asarray(y) == model.classes_[probability.argmax(1) if several else 1]
    claimed = probability.max(1) if several else probability[:, 1]
    options = {"n_bins": n_bins, "strategy": "quantile", "name": type(model).__name__, "pos_label": True} | kwargs
    display = CalibrationDisplay.from_predictions(truth, claimed, ax=axes_for(ax), **options)
    event = "the predicted class" if several else str(model.classes_[1])
    observed = "share of correct predictions" if several else f"share of {event}"
    display.ax_.set(xlabel=f"mean probability of {event}", ylabel=observed)
    return display


def residual_display(model: Any, X: Any, y: Any, *, output: int = 0, ax: Any = None, **kwargs: Any) -> Any:
    """Plot residuals against predictions.

    Parameters
    ----------
    model : regressor
        A fitted regressor.
    X : array-like of shape (n, d)
        Rows to evaluate on.
    y : array-like of shape (n,) or (n, k)
        Their targets.
    output : int, default=0
        Index of the target if there are several.
    ax : matplotlib Axes, optional
        Default: a new figure.
    **kwargs
        For :meth:`sklearn.metrics.PredictionErrorDisplay.from_predictions`.

    Returns
    -------
    sklearn.metrics.PredictionErrorDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import residual_display
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = residual_display(model, X, X[:, 0] ** 2)
    >>> len(display.y_pred)
    40
    """
    if not is_regressor(model):
        raise ValueError(f"residuals need the predictions of a regressor, got {type(model).__name__}")
    truth, predicted = (np.asarray(values, dtype=np.float64) for values in (y, model.predict(X)))
    truth, predicted = (values.reshape(len(values), -1)[:, output] for values in (truth, predicted))
    options = {"random_state": 0, "scatter_kwargs": {"alpha": 0.6, "s": 18, "color": "#0072B2"}} | kwargs
    return PredictionErrorDisplay.from_predictions(truth, predicted, ax=axes_for(ax), **options)
