"""Displays of scikit-learn, with the options that suit our models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import PredictionErrorDisplay

from gce._utils.optional import import_optional
from gce.inspection.plotting.style import axes_for
from gce.preprocessing.frames import is_frame
from gce.preprocessing.schema import column_index


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


def partial_dependence_display(model: Any, X: Any, features: Any, *, ax: Any = None, **kwargs: Any) -> Any:
    """Plot partial dependence; scikit-learn is told which columns are categories, and integers are read as numbers.

    Parameters
    ----------
    model : estimator
        A fitted model.
    X : array-like or data frame of shape (n, d)
        Rows to average over.
    features : list of int, str, or pairs of these
        Columns, by index or name.
    ax : matplotlib Axes or array of Axes, optional
        Default: a new figure.
    **kwargs
        For :meth:`sklearn.inspection.PartialDependenceDisplay.from_estimator`.

    Returns
    -------
    sklearn.inspection.PartialDependenceDisplay

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import partial_dependence_display
    >>> X = np.arange(200)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = partial_dependence_display(model, X, [0], grid_resolution=5)
    >>> display.lines_.shape
    (1, 1)
    """
    # only pictures need it
    from sklearn.inspection import PartialDependenceDisplay

    import_optional("matplotlib.pyplot", "plot")
    kinds = {column.name: column.kind for column in model.table_.columns} if hasattr(model, "table_") else {}
    if is_frame(X):
        # scikit-learn's own function changes columns of pandas and arrays only
        X = nw.from_native(X, eager_only=True).to_pandas()
        names: list[Any] = list(X.columns)
    else:
        X = X if hasattr(X, "dtype") else np.asarray(X)
        names = list(kinds) or list(range(X.shape[1]))
    categories = [j for j, name in enumerate(names) if kinds.get(name) == "category"]
    for feature in features:
        for one in feature if isinstance(feature, tuple | list) else (feature,):
            name = names[column_index("features", one, [str(name) for name in names])]
            _check_drawable(name, kinds.get(name), X)
    given = {"categorical_features": categories} | kwargs if categories else kwargs
    return PartialDependenceDisplay.from_estimator(model, _as_floats(X, categories), features, ax=ax, **given)


def _check_drawable(name: Any, kind: str | None, X: Any) -> None:
    """Refuse columns that scikit-learn makes no grid of."""
    dated = kind in ("date", "duration")
    if dated or (kind == "category" and is_frame(X) and X[name].isna().any()):
        what = f"{kind}s" if dated else "missing categories"
        raise ValueError(
            f"column {name!r} has {what}, which scikit-learn does not draw: use gce.inspection.partial_dependence"
        )


def _as_floats(X: Any, categories: Sequence[int]) -> Any:
    """Rows with numbers in place of integers, but for categories: a grid has values between them."""
    if is_frame(X):
        whole = [j for j, dtype in enumerate(X.dtypes) if dtype.kind in "iu" and j not in categories]
        return X.astype({X.columns[j]: np.float64 for j in whole}) if whole else X
    return X.astype(np.float64) if X.dtype.kind in "iu" and not categories else X


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
