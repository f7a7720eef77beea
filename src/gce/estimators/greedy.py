"""Greedy convex ensembles for numbers and for classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from numpy.typing import ArrayLike, NDArray

from gce.algorithms import Algorithm
from gce.base import Array
from gce.callbacks import Callback
from gce.estimators.documentation import GREEDY, documented
from gce.greedy import GreedyConvexEnsemble
from gce.line_search import LineSearch
from gce.losses import Loss
from gce.scoring import class_codes
from gce.tasks import Classification, Regression


@documented(
    GREEDY,
    loss='{"auto", "squared_error", "absolute_error", "pseudo_huber", "quantile"} or Loss',
    loss_doc='"auto" is "squared_error". Parameters go with objects: ``gce.losses.Quantile(0.9)``.',
    bound="4/3 of the farthest target's distance from the offset, for each output",
    offset=" (the weighted mean for squared error)",
    scores="predictions (of all targets)",
)
class GCERegressor(Regression, GreedyConvexEnsemble):
    """Regression by a greedy convex ensemble, for one target or several."""

    def __init__(
        self,
        *,
        algorithm: str | Algorithm = "auto",
        loss: str | Loss = "auto",
        basis: Any = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        line_search: str | LineSearch = "auto",
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        max_atoms: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        cv: Any = "auto",
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | str | None = "auto",
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        verbose: bool | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.algorithm = algorithm
        self.loss = loss
        self.basis = basis
        self.bound = bound
        self.offset = offset
        self.line_search = line_search
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.max_atoms = max_atoms
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions after each round, each member standing still from its best round on."""
        for pred in self._staged_scores(X):
            yield self._answer(pred)


@documented(
    GREEDY,
    loss='{"auto", "log_loss"} or Loss',
    loss_doc='"auto" is "log_loss": logistic with one score for two classes, cross-entropy for more.',
    bound="10",
    offset=" (the classes' log-odds)",
    scores="the log-odds of ``classes_[1]`` (two classes only)",
)
class GCEClassifier(Classification, GreedyConvexEnsemble):
    """Classification by a greedy convex ensemble, for two classes or more."""

    def __init__(
        self,
        *,
        algorithm: str | Algorithm = "auto",
        loss: str | Loss = "auto",
        basis: Any = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        line_search: str | LineSearch = "auto",
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        max_atoms: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        cv: Any = "auto",
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | str | None = "auto",
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        verbose: bool | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        temperature: float | str = "auto",
    ) -> None:
        self.algorithm = algorithm
        self.loss = loss
        self.basis = basis
        self.bound = bound
        self.offset = offset
        self.line_search = line_search
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.max_atoms = max_atoms
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state
        self.class_weight = class_weight
        self.temperature = temperature

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Classes predicted after each round, each member standing still from its best round on."""
        for pred in self._staged_scores(X):
            yield self.classes_[class_codes(pred)]

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Class probabilities after each round."""
        for pred in self._staged_scores(X):
            yield self._probabilities(pred)
