"""What all stacks share: members as parameters, fitting, and the mixture of their predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Bunch, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from gce._utils.params import (
    FLAG,
    JOBS,
    SEED,
    Rules,
    check_keywords,
    check_parameters,
    check_settable,
    count,
    instance,
    within,
)
from gce._utils.random import draw_seed
from gce.estimators.stacking.checks import (
    check_fittable,
    check_names,
    check_prefit,
    check_rows,
    check_unused,
    check_weights,
    is_dropped,
    models_of,
)
from gce.estimators.stacking.cross_fit import TrainingData, cross_fit
from gce.estimators.stacking.folds import check_fold_weights, make_folds
from gce.estimators.stacking.out_of_fold import OutOfFold, predict_fitted
from gce.estimators.stacking.problem import StackProblem
from gce.estimators.stacking.result import StackResult
from gce.estimators.stacking.solvers import WeightSolver
from gce.estimators.stacking.task import StackTask
from gce.losses import Loss
from gce.preprocessing import select_columns, targets_as_array
from gce.preprocessing.splits import Split, check_groups
from gce.training.predictions import Array


class BaseStack(MetaEstimatorMixin, _BaseComposition):
    """A convex combination of the user's models, whatever the task and the solver of the weights.

    ``fit`` stores one value, ``result_``, from which all other fitted attributes are read.
    """

    estimators: list[tuple[str, Any]]
    loss: str | Loss
    cv: Any
    prefit: bool
    fold_weight: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    parameter_rules: ClassVar[Rules] = {
        "loss": instance("a name or a Loss object", str, Loss),
        "prefit": FLAG,
        "fold_weight": within(0, 1),
        "n_jobs": JOBS,
        "random_state": SEED,
        "verbose": FLAG | count(0),
    }

    result_: StackResult[Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse unknown parameters before ``__init__`` does, with our names for those of other libraries."""
        check_keywords(cls, kwargs)
        return super().__new__(cls)

    def _check_params(self) -> None:
        """Refuse invalid parameters, before any data is read."""
        check_parameters(self)
        if self.prefit and self.fold_weight:
            raise ValueError(f"prefit=True fits no models on folds: set fold_weight=0, got {self.fold_weight!r}")

    @abstractmethod
    def _learn_task(self, y: Any) -> tuple[StackTask, NDArray[Any]]:
        """Check the targets of a fit: the task, and the targets encoded as members see them."""

    @abstractmethod
    def _solver(self, seed: int) -> WeightSolver:
        """The solver of the weights, with the stack's present parameters."""

    # Members as parameters.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of the stack.

        Parameters
        ----------
        deep : bool, default=True
            Include the members by name, and their parameters as ``name__parameter``.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack or of its members.

        Parameters
        ----------
        **params
            As in ``get_params``; ``name="drop"`` leaves a member out.
        """
        estimators = params.get("estimators", self.estimators)
        # whether it is a list of names and members is for fit to say
        pairs = estimators if isinstance(estimators, list | tuple) else ()
        names = {pair[0] for pair in pairs if isinstance(pair, list | tuple) and pair and isinstance(pair[0], str)}
        check_settable(type(self), params.keys() - names)
        self._set_params("estimators", **params)
        return self

    @property
    def named_estimators(self) -> Bunch:
        """The members as given, by name."""
        return Bunch(**dict(self.estimators))

    def _sk_visual_block_(self) -> Any:
        try:
            from sklearn.utils._repr_html.estimator import _VisualBlock
        except ImportError:  # scikit-learn before 1.7
            from sklearn.utils._estimator_html_repr import _VisualBlock
        names, estimators = zip(*self.estimators, strict=True)
        return _VisualBlock("parallel", estimators, names=names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inputs = [own.input_tags for own in self._tags_of_members()]
        tags.input_tags.allow_nan = all(own.allow_nan for own in inputs)
        tags.input_tags.sparse = all(own.sparse for own in inputs)
        # the columns of a fitted pairwise member are its training rows, which no later split may change
        tags.input_tags.pairwise = not self.prefit and any(own.pairwise for own in inputs)
        return tags

    def _tags_of_members(self) -> list[Any]:
        """Tags of the members that have any."""
        return [get_tags(model) for model in models_of(self.estimators) if hasattr(model, "__sklearn_tags__")]

    def get_metadata_routing(self) -> MetadataRouter:
        """Get the metadata routing: members and ``cv`` get what they request.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        if self.prefit:
            return router
        fitting = MethodMapping().add(caller="fit", callee="fit")
        for name, model in self.estimators:
            if not is_dropped(model):
                router.add(**{name: model}, method_mapping=fitting)
        # no member can have the name of a parameter
        return router.add(cv=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

    def _route(
        self, members: Mapping[str, Any], weight: Array | None, groups: Any, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Any]]:
        """Parameters of each member's ``fit``, and of the ``split`` of ``cv``."""
        groups = None if groups is None else check_groups(groups)
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weight, groups=groups, **fit_params)
            split_params = {"groups": groups} if not hasattr(self.cv, "split") else routed["cv"]["split"]
            params = {name: routed[name]["fit"] for name in members}
            if groups is not None and not any("groups" in requested for requested in (split_params, *params.values())):
                raise ValueError(
                    f"neither cv nor a member requests groups: use a cv such as GroupKFold, got {self.cv!r}"
                )
            return params, split_params
        _raise_for_params(fit_params, self, "fit")
        own = {} if weight is None else {"sample_weight": weight}
        return dict.fromkeys(members, own), {"groups": groups}

    # Fitting.

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members on all rows, and the weights on out-of-fold predictions.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            Passed to members unchanged.
        y : array-like of shape (n,), or (n, k) for several regression targets
        sample_weight : array-like of shape (n,), optional
            Used by the members, whose ``fit`` must accept it, and in the loss of the weights, where samples with zero
            weight are ignored. With metadata routing only members that request it get it.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together; passed to ``cv`` if that is a splitter.
        **fit_params
            For the ``fit`` of members, by metadata routing only
            (``sklearn.set_config(enable_metadata_routing=True)``).

        Returns
        -------
        self
        """
        self._check_params()
        members = check_names(self.estimators, self.get_params(deep=False))
        # an interrupted fit must not leave old weights beside new columns
        for name in ("result_", "n_features_in_"):
            self.__dict__.pop(name, None)
        X = select_columns(check_rows(X), None)
        X, y = validate_data(self, X, targets_as_array(y), skip_check_array=True)
        (X,) = indexable(X)
        task, y = self._learn_task(y)
        check_consistent_length(X, y)
        weight = check_weights(sample_weight, y)
        for name, model in members.items():
            task.response.check(name, model)
        seed = draw_seed(self.random_state)
        problem = task.problem(y, weight)
        task = replace(task, loss=problem.loss)
        if self.prefit:
            check_unused(fit_params, groups)
            for name, model in members.items():
                check_prefit(name, model, self)
            models, out_of_fold = members, predict_fitted(problem, members, X)
        else:
            params, split_params = self._route(members, None if sample_weight is None else weight, groups, fit_params)
            for name, model in members.items():
                check_fittable(name, model, "sample_weight" in params[name], self.fold_weight > 0)
                task.check_member(name, model)
            splits = make_folds(self.cv, X, y, task.stratified, seed, split_params)
            check_fold_weights(splits, weight)
            task.check_folds(y, splits, self.fold_weight)
            models, out_of_fold = self._cross_fit(problem, members, TrainingData(X, y, params), splits)
        solution = self._solver(seed).solve(out_of_fold)
        fitted = Bunch(**{name: models.get(name, "drop") for name, _ in self.estimators})
        self.result_ = StackResult(fitted, task, solution, out_of_fold, seed)
        return self

    def _cross_fit(
        self, problem: StackProblem, members: Mapping[str, Any], data: TrainingData, splits: list[Split]
    ) -> tuple[dict[str, Any], OutOfFold]:
        return cross_fit(problem, members, data, splits, self.n_jobs, self.verbose, float(self.fold_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return "result_" in vars(self)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members, without those dropped."""
        return list(self.result_.models.values())

    @property
    def named_estimators_(self) -> Bunch:
        """The fitted members by name; ``"drop"`` for those dropped."""
        return self.result_.named_estimators

    @property
    def member_names_(self) -> list[str]:
        """Names of the fitted members, in the order of ``weights_`` and ``estimators_``."""
        return list(self.result_.models)

    @property
    def weights_(self) -> Array:
        """Weights of the members, of shape (members,), in the order of ``member_names_``."""
        return self.result_.solution.weights.copy()

    @property
    def risk_(self) -> float:
        """Loss of the combination on the predictions that weights were solved on."""
        return self.result_.solution.loss

    @property
    def gap_(self) -> float:
        """No convex combination of the members has a loss below ``risk_ - gap_`` on these predictions."""
        return self.result_.solution.gap

    @property
    def history_(self) -> list[dict[str, Any]]:
        """Iterations of the solver."""
        return self.result_.solution.history

    # Predicting.

    def _validate_rows(self, X: Any) -> Any:
        """Rows to predict, as they are passed to members."""
        check_is_fitted(self)
        X, columns = check_rows(X), getattr(self, "n_features_in_", None)
        if columns is not None and getattr(X, "ndim", 2) == 1:
            raise ValueError(
                f"X has one dimension, but the fit had {columns} columns: Reshape your data, a single row by "
                "X.reshape(1, -1)"
            )
        X = select_columns(X, getattr(self, "feature_names_in_", None))
        return validate_data(self, X, skip_check_array=True, reset=False)

    def _mixture(self, X: Any) -> Array:
        """The weighted sum of members' responses, ``(n, k)``."""
        X = self._validate_rows(X)
        return self.result_.mixture(X)
