"""scikit-learn's own displays, asked in the way that fits our models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import PredictionErrorDisplay

from gce.plotting.style import axes_for


def calibration_display(model: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None, **kwargs: Any) -> Any:
    """How often a classifier is right when it says so.

    For two classes: the share of ``classes_[1]`` against its probability. For more: the share of right answers against
    the probability of the class that was predicted.

    Parameters
    ----------
    model : classifier
        Fitted.
    X : array-like of shape (n, d)
    y : array-like of shape (n,)
    n_bins : int, default=10
        Of equally many rows each.
    ax : matplotlib Axes, optional
        Default: a new figure.
    **kwargs
        For :meth:`sklearn.calibration.CalibrationDisplay.from_predictions`.

    Returns
    -------
    sklearn.calibration.CalibrationDisplay
    """
    # half a second of imports that nothing else needs
    from sklearn.calibration import CalibrationDisplay

    if not is_classifier(model):
        raise ValueError(f"calibration is asked of a classifier's probabilities, got a {type(model).__name__}")
    probability, several = model.predict_proba(X), len(model.classes_) > 2
    truth = np.asarray(y) == model.classes_[probability.argmax(1) if several else 1]
    said = probability.max(1) if several else probability[:, 1]
    options = {"n_bins": n_bins, "strategy": "quantile", "name": type(model).__name__, "pos_label": True} | kwargs
    display = CalibrationDisplay.from_predictions(truth, said, ax=axes_for(ax), **options)
    asked = "the predicted class" if several else str(model.classes_[1])
    answer = "share of right answers" if several else f"share of {asked}"
    display.ax_.set(xlabel=f"mean probability of {asked}", ylabel=answer)
    return display


def residual_display(model: Any, X: Any, y: Any, *, output: int = 0, ax: Any = None, **kwargs: Any) -> Any:
    """Residuals against predictions.

    Parameters
    ----------
    model : regressor
        Fitted.
    X : array-like of shape (n, d)
    y : array-like of shape (n,) or (n, k)
    output : int, default=0
        Which target, where there are several.
    ax : matplotlib Axes, optional
        Default: a new figure.
    **kwargs
        For :meth:`sklearn.metrics.PredictionErrorDisplay.from_predictions`.

    Returns
    -------
    sklearn.metrics.PredictionErrorDisplay
    """
    if not is_regressor(model):
        raise ValueError(f"residuals are asked of a regressor's predictions, got a {type(model).__name__}")
    truth, answer = (np.asarray(values, dtype=np.float64) for values in (y, model.predict(X)))
    truth, answer = (values.reshape(len(values), -1)[:, output] for values in (truth, answer))
    options = {"random_state": 0, "scatter_kwargs": {"alpha": 0.6, "s": 18, "color": "#0072B2"}} | kwargs
    return PredictionErrorDisplay.from_predictions(truth, answer, ax=axes_for(ax), **options)
