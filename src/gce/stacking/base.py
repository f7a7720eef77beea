"""What all stacks share: members in, answers gathered, weights solved, and the way back to predictions."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, is_classifier
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

from gce.losses import Loss
from gce.members import Split
from gce.parameters import FLAG, JOBS, SEED, Rules, check_parameters, count, instance, within
from gce.reading import row_weights
from gce.responses import Array, Response
from gce.settings import as_numpy, draw_seed
from gce.stacking.checks import check_fittable, check_prefit, is_dropped, models_of, named
from gce.stacking.crossfit import Rows, cross_fit
from gce.stacking.evidence import Evidence, Question, ask_fitted
from gce.stacking.folds import check_weight, folds_for
from gce.surgery.naming import by_name
from gce.table import as_targets, select_columns
from gce.weighting import Solution


class Stack(MetaEstimatorMixin, _BaseComposition):
    """A convex combination of the user's models, whatever the task and however weights are found.

    A fitted stack is its members, the ``Evidence`` (what they answered on rows they did not learn from) and the
    ``Solution`` (their weights): ``_settle`` sets every fitted attribute from the three.

    Parameters
    ----------
    estimators, loss, cv, prefit, fold_share, n_jobs, random_state, verbose
        See the subclasses, whose signatures they belong to.
    """

    estimators: list[tuple[str, Any]]
    loss: str | Loss
    cv: Any
    prefit: bool
    fold_share: float
    n_jobs: int | None
    random_state: Any
    verbose: int

    parameter_rules: ClassVar[Rules] = {
        "loss": instance("a name or a Loss object", str, Loss),
        "prefit": FLAG,
        "fold_share": within(0, 1),
        "n_jobs": JOBS,
        "random_state": SEED,
        "verbose": FLAG | count(0),
    }

    #: How members are asked; the classes in it are as members know them.
    _response: Response
    #: None in a copy ``without_cache``.
    _evidence: Evidence | None
    _solution: Solution

    # What the two ways of weighing do differently.

    def _check_settings(self) -> None:
        """Refuse wrong parameters, before any data is touched."""
        check_parameters(self)
        if self.prefit and self.fold_share:
            raise ValueError(f"prefit=True fits no models on folds: set fold_share=0, got {self.fold_share!r}")

    def _solve(self, evidence: Evidence, start: Array | None = None) -> Solution:
        """Weights for what members answered, looked for from where they start if that is known."""
        raise NotImplementedError

    # What the two tasks do differently.

    def _learn_targets(self, y: Any) -> NDArray[Any]:
        """Check the targets of a fit, settle the response; the targets as members see them."""
        raise NotImplementedError

    def _known_targets(self, y: Any) -> NDArray[Any]:
        """The same for rows that come later: refuse other targets than those of the fit."""
        raise NotImplementedError

    def _question(self, y: NDArray[Any], weight: Array) -> Question:
        """How answers to rows of targets ``y``, as members see them, and weights ``(n,)`` are judged."""
        raise NotImplementedError

    def _check_member(self, name: str, model: Any) -> None:
        """Refuse a member that cannot learn from targets as members see them."""

    def _check_folds(self, y: NDArray[Any], splits: list[Split]) -> None:
        """Refuse folds that members cannot learn from."""

    # Members as parameters.

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the stack and, if ``deep``, its members and theirs (``name__parameter``)."""
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the stack or of members; ``name="drop"`` leaves a member out."""
        self._set_params("estimators", **params)
        return self

    @property
    def named_estimators(self) -> Bunch:
        """The members as they were given, by name."""
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
        # the columns of a fitted member are rows of its own fit, which no later cut may touch
        tags.input_tags.pairwise = not self.prefit and any(own.pairwise for own in inputs)
        return tags

    def _tags_of_members(self) -> list[Any]:
        """Of those that have any."""
        return [get_tags(model) for model in models_of(self.estimators) if hasattr(model, "__sklearn_tags__")]

    def get_metadata_routing(self) -> MetadataRouter:
        """Who takes what: the stack sample weights and groups, members that it fits and ``cv`` what they ask for."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if self.prefit:
            return router
        fitting = MethodMapping().add(caller="fit", callee="fit")
        for name, model in self.estimators:
            if not is_dropped(model):
                router.add(**{name: model}, method_mapping=fitting)
        # no member can have the name of a parameter
        return router.add(cv=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))

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
        """Fit the members on all rows, and weights on what they answer out of fold.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix or list of n rows
            Handed to members as it is.
        y : array-like of shape (n,), or (n, k) for several regression targets
        sample_weight : array-like of shape (n,), optional
            For the members, each of which must take it, and for the weights, to which a row of weight 0 is not there.
            With metadata routing, members get it that ask for it.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together; handed to ``cv`` where that is a splitter.
        **fit_params
            For members' ``fit``, by metadata routing only (``sklearn.set_config(enable_metadata_routing=True)``).

        Returns
        -------
        self
        """
        self._check_settings()
        members = named(self.estimators, self.get_params(deep=False))
        # a fit that breaks off must not leave old weights behind new columns
        for name in ("_solution", "_evidence", "n_features_in_"):
            self.__dict__.pop(name, None)
        X = select_columns(as_numpy(X), None)
        X, y = validate_data(self, X, as_targets(as_numpy(y)), skip_check_array=True)
        (X,) = indexable(X)
        y = self._learn_targets(y)
        check_consistent_length(X, y)
        weight = self._check_weight(sample_weight, y)
        for name, model in members.items():
            self._response.check(name, model)
        self._seed = draw_seed(self.random_state)
        question = self._question(y, weight)
        if self.prefit:
            _raise_for_unused(fit_params, groups)
            for name, model in members.items():
                check_prefit(name, model, self)
            return self._weigh(members, ask_fitted(question, members, X))
        params, splitting = self._routed(members, None if sample_weight is None else weight, groups, fit_params)
        for name, model in members.items():
            check_fittable(name, model, "sample_weight" in params[name], self.fold_share > 0)
            self._check_member(name, model)
        splits = folds_for(self.cv, X, y, is_classifier(self), self._seed, splitting)
        check_weight(splits, weight)
        self._check_folds(y, splits)
        return self._weigh(*self._cross_fit(question, members, Rows(X, y, params), splits))

    def _cross_fit(
        self, question: Question, members: Mapping[str, Any], rows: Rows, splits: list[Split]
    ) -> tuple[dict[str, Any], Evidence]:
        return cross_fit(question, members, rows, splits, self.n_jobs, self.verbose, float(self.fold_share))

    def _check_weight(self, sample_weight: Any, y: NDArray[Any]) -> Array:
        weight = row_weights(sample_weight, y)
        if not weight.any():
            raise ValueError("all sample weights are zero: there is no row to fit")
        return weight

    def _routed(
        self, members: Mapping[str, Any], weight: Array | None, groups: Any, fit_params: Mapping[str, Any]
    ) -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Any]]:
        """What each member's ``fit`` is given, and what ``cv`` is told."""
        groups = as_targets(as_numpy(groups))
        if _routing_enabled():
            routed = process_routing(self, "fit", sample_weight=weight, groups=groups, **fit_params)
            told = {"groups": groups} if not hasattr(self.cv, "split") else routed["cv"]["split"]
            params = {name: routed[name]["fit"] for name in members}
            if groups is not None and not any("groups" in given for given in (told, *params.values())):
                raise ValueError(
                    f"nobody asks for groups: use a cv that keeps them whole, such as GroupKFold, got {self.cv!r}"
                )
            return params, told
        _raise_for_params(fit_params, self, "fit")
        own = {} if weight is None else {"sample_weight": weight}
        return dict.fromkeys(members, own), {"groups": groups}

    def _weigh(self, models: Mapping[str, Any], evidence: Evidence) -> Self:
        self._settle(models, evidence, self._solve(evidence))
        return self

    def _settle(self, models: Mapping[str, Any], evidence: Evidence | None, solution: Solution) -> None:
        """Become the fitted stack of these models, in the order of the solution's weights.

        Parameters
        ----------
        models : mapping of name to fitted model
            All of ``estimators`` that are not dropped.
        evidence : Evidence or None
        solution : Solution
        """
        self.estimators_ = list(models.values())
        self.named_estimators_ = Bunch(**{name: models.get(name, "drop") for name, _ in self.estimators})
        self.weights_ = by_name(list(models), solution.weights.copy())
        self.risk_, self.gap_, self.history_ = solution.loss, solution.gap, solution.history
        self._evidence, self._solution = evidence, solution

    def _replaced(self, models: Mapping[str, Any], evidence: Evidence | None, solution: Solution) -> Self:
        """Another stack of the same parameters, of these fitted models and weights; this one is left as it is.

        A model of a new name is a member of the new stack as it is; of the known ones the parameters are kept.
        """
        given = dict(self.estimators)
        other = copy(self)
        other.estimators = [(name, given.get(name, model)) for name, model in models.items()]
        other._settle(models, evidence, solution)
        return other

    def without_cache(self) -> Self:
        """A copy of the fitted stack without members' answers on the rows of the fit: smaller, predicts the same.

        What re-solves weights (``remove``, ``prune``, ...) asks for rows again.
        """
        check_is_fitted(self)
        other = copy(self)
        other._evidence = None
        return other

    def report(self, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Write one HTML page about this stack and how it and its members do on given rows.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist.
        X : as in ``fit``
            Rows that neither members nor weights have seen.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
            A row of weight 0 is a row that is not there.
        """
        # half a second of imports that nothing else needs
        from gce.report.stack import write

        write(self, path, X, y, sample_weight)

    # Predicting.

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_solution")

    @property
    def _members(self) -> dict[str, Any]:
        """The fitted members by name, in the order of the weights."""
        return {name: model for name, model in self.named_estimators_.items() if not is_dropped(model)}

    def _checked(self, X: Any) -> Any:
        """Rows to predict for, as members are given them."""
        check_is_fitted(self)
        X = as_numpy(X)
        if hasattr(self, "n_features_in_") and getattr(X, "ndim", 2) == 1:
            raise ValueError(
                f"X has one dimension, but the fit had {self.n_features_in_} columns: Reshape your data, a single row "
                "by X.reshape(1, -1)"
            )
        X = select_columns(X, getattr(self, "feature_names_in_", None))
        return validate_data(self, X, skip_check_array=True, reset=False)

    def _mixture(self, X: Any) -> Array:
        """The weighted sum of answers, ``(n, k)``; members of weight 0 are not asked."""
        X = self._checked(X)
        total: Any = 0.0  # an array from the first member on, added to in place
        for (name, model), weight in zip(self._members.items(), self._solution.weights, strict=True):
            if weight > 0:
                total += weight * self._response.ask(name, model, X)
        return total


def _raise_for_unused(fit_params: Mapping[str, Any], groups: Any) -> None:
    unused = [*fit_params, *([] if groups is None else ["groups"])]
    if unused:
        raise ValueError(f"prefit=True fits no member and needs no folds: leave out {', '.join(unused)}")
