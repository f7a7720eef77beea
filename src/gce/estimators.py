"""scikit-learn's contract for the two tasks, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from gce.base import Array, GreedyConvexEnsemble
from gce.losses import REGRESSION, CrossEntropy, Logistic, Loss
from gce.scoring import class_codes, scores
from gce.settings import look_up
from gce.table import one_hot

_PARAMETERS = """
    Every round asks the basis for the model that points best downhill, chooses which weights move and how far, and
    stops when the rows held out no longer improve. Scores never leave ``offset_ +- bound_``.

    Parameters
    ----------
    algorithm : {"pairwise", "away", "frank-wolfe", "nonlinear", "blended"} or Algorithm, default="pairwise"
        Which atoms' weights move in a round, and what the oracle minimises.
    loss : %(loss)s, default="auto"
        %(loss_doc)s
    basis : {"neural", "neuron"} or Basis, default="neural"
        The class of models that are combined: small two-layer networks (see :class:`gce.Neural`), single neurons, or an
        object such as ``gce.Neural(hidden=100)`` or ``gce.Pool(functions)``.
    bound : float or array of shape (k,), optional
        Half the width of the hull around ``offset``. Default: %(bound)s.
    offset : float or "auto", default="auto"
        The constant around which the hull lies; "auto" is the best constant%(offset)s. The paper's is 0.
    line_search : {"exact", "brent", "1/(t+1)", "2/(t+1)"} or LineSearch, default="exact"
    scale : {"auto", "each", "common"}, default="auto"
        Centred columns are divided each by its own spread, or all by a common one. "auto" takes a common one where nine
        columns in ten have a range of at most twice the median range: they then look measured in one unit.
    clip : float or None, default=4.0
        Then far values are drawn in by ``z / (1 + (z/clip)^4)^(1/4)``; None: they are not.
    max_atoms : int, default=100
        Most oracle calls of a member (no limit for a pool, whose oracle trains nothing).
    max_iter : int, default=1000
        Most rounds.
    tol : float, default=1e-6
        A member is done when its gap, or the fall of its training risk over ``n_iter_no_change`` rounds, is at most
        ``tol`` times its risk.
    cv : "auto", None, int, splitter or iterable of (train, test), default="auto"
        One member a split, all trained at once and averaged into one ensemble. "auto": 5 folds (fewer where a class
        has fewer rows), which measured better than one hold-out on four of the five data sets of
        benchmarks/results/defaults.md. None: one hold-out.
    validation_fraction : float or None, default=0.2
        Share held out where ``cv`` is None; None trains on all rows, to the end.
    n_iter_no_change : int or None, default=20
        Rounds without a better validation value, or without a fall of the training risk, after which a member is done.
    scoring : str or callable, optional
        What to watch on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds after which the fit stops with the best rounds so far.
    device : str, default="cpu"
        A torch device, or "auto" for a GPU where there is one.
    n_jobs : int, optional
        Threads for fits and predictions; torch's own number is set during a fit and restored afterwards. Default: as
        many as torch uses.
    callbacks : iterable of callables, optional
        Each is called with every :class:`gce.Step`; a true answer stops the fit.
    verbose : bool or "auto", default="auto"
        A progress bar; "auto" draws one where standard error is a terminal.
    warm_start : bool, default=False
        Go on from the last fit's last round.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    ensemble_ : ConvexEnsemble
        The frozen atoms; ``ensemble_.weights`` are on the simplex.
    history_ : list of dict
        One a round: ``t``, ``risk``, ``validation``, ``gap`` (exact oracles) or ``gap_lower`` (trained atoms: a lower
        estimate, which can prove "not optimal" but never "optimal"), ``size``, ``atoms``, ``seconds``; means over
        members, whose own values are lists in ``members``. The gap is that of the iterate the round started from.
    n_iter_ : int
        Rounds run.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Standardizer
"""


def _documented(**parts: str) -> Any:
    def add(cls: type) -> type:
        cls.__doc__ = (cls.__doc__ or "") + _PARAMETERS % parts
        return cls

    return add


@_documented(
    loss='{"auto", "squared_error", "absolute_error", "pseudo_huber", "quantile"} or Loss',
    loss_doc='"auto" is "squared_error". Parameters go with objects: ``gce.losses.Quantile(0.9)``.',
    bound="4/3 of the farthest target's distance from the offset, for each output",
    offset=" (the weighted mean for squared error)",
)
class GCERegressor(RegressorMixin, GreedyConvexEnsemble):
    """Regression by a greedy convex ensemble, for one target or several."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        self._one_dimensional = y.ndim == 1
        return self._encode_y_val(y), None

    def _encode_y_val(self, y: Any) -> Array:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.ndim > 2:
            raise ValueError(f"y must be of shape (n,) or (n, k), got {y.shape}")
        return y[:, None] if y.ndim == 1 else y

    def _decode(self, target: Array) -> NDArray[Any]:
        return target[:, 0] if target.shape[1] == 1 else target

    def _pick_loss(self, outputs: int) -> Loss:
        return look_up("loss", "squared_error" if self.loss == "auto" else self.loss, REGRESSION, Loss)

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        reach = 4 / 3 * (y - offset).abs().amax(0)
        return torch.where(reach > 0, reach, 1.0)

    def _warn_of_bound(self, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        beyond = ((y - offset).abs() > bound).any(1)
        if beyond.any():
            warnings.warn(
                f"{int(beyond.sum())} of {len(y)} targets lie farther from the offset {offset.tolist()} than "
                f"bound={bound.tolist()}: the hull cannot reach them",
                UserWarning,
                stacklevel=4,
            )

    def predict(self, X: Any) -> Array:
        """Predict the target, ``(n,)`` or ``(n, k)`` as ``y`` was given."""
        return self._answer(self._scores(X))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after each round, each member standing still from its best round on."""
        for pred in self._staged_scores(X):
            yield self._answer(pred)

    def _answer(self, pred: Tensor) -> Array:
        answer = self.loss_.predict(pred).cpu().numpy()
        return answer[:, 0] if self._one_dimensional else answer


@_documented(
    loss='{"auto", "log_loss"} or Loss',
    loss_doc='"auto" is "log_loss": logistic with one score for two classes, cross-entropy for more.',
    bound="10",
    offset=" (the classes' log-odds)",
)
class GCEClassifier(ClassifierMixin, GreedyConvexEnsemble):
    """Classification by a greedy convex ensemble, for two classes or more."""

    def _encode_y(self, y: Any) -> tuple[Array, NDArray[np.intp] | None]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_.tolist()}: a classifier needs samples of at least 2 classes"
            )
        return one_hot(codes, len(self.classes_)), codes

    def _encode_y_val(self, y: Any) -> Array:
        y = column_or_1d(y, warn=True)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise ValueError(f"y_val has classes that y lacks: {unknown.tolist()}")
        return one_hot(np.searchsorted(self.classes_, y), len(self.classes_))

    def _decode(self, target: Array) -> NDArray[Any]:
        return self.classes_[target[:, 0].astype(np.intp) if target.shape[1] == 1 else target.argmax(1)]

    def _pick_loss(self, outputs: int) -> Loss:
        known: dict[str, Loss] = {"log_loss": Logistic() if outputs == 1 else CrossEntropy()}
        return look_up("loss", "log_loss" if self.loss == "auto" else self.loss, known, Loss)

    def _default_bound(self, y: Tensor, offset: Tensor) -> Tensor:
        return torch.full_like(offset, 10.0)

    def decision_function(self, X: Any) -> Array:
        """Raw scores: ``(n,)`` log-odds of ``classes_[1]`` for two classes, ``(n, k)`` for more."""
        return scores(self._scores(X))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, ``(n, classes)``."""
        pred = self._scores(X)
        return self.loss_.predict(pred).cpu().numpy()

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row, ``(n,)``."""
        codes = class_codes(self._scores(X))
        return self.classes_[codes]

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Classes predicted after each round, each member standing still from its best round on."""
        for pred in self._staged_scores(X):
            yield self.classes_[class_codes(pred)]

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after each round."""
        for pred in self._staged_scores(X):
            yield self.loss_.predict(pred).cpu().numpy()
