"""Edits of fitted stacks: members removed, added and pruned, and weights re-optimised."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, indexable
from sklearn.utils.validation import check_is_fitted

from gce.estimators.stacking.base import BaseStack
from gce.estimators.stacking.checks import check_fittable, check_names, check_prefit, check_weights
from gce.estimators.stacking.cross_fit import TrainingData
from gce.estimators.stacking.editing import check_same_rows, problem_on, remaining_members, restrict, shrink
from gce.estimators.stacking.out_of_fold import OutOfFold, predict_fitted
from gce.estimators.stacking.result import StackResult
from gce.frank_wolfe.simplex import certify_weights, warn_of_gaps
from gce.inspection.editing.pruning import check_goal, choose, path_step
from gce.inspection.explanation import Explanation, PruningPath, explain
from gce.preprocessing import targets_as_array


class EditableStack(BaseStack):
    """A fitted stack that can be edited and explained.

    Every edit returns a new stack and leaves this one unchanged; members that it has are never fitted again. Weights
    are solved on the out-of-fold predictions that the stack keeps. A copy made by ``without_cache`` keeps none: its
    edits need rows, which its members should not have been fitted on.
    """

    def remove(
        self, names: str | Iterable[str], X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Remove members, and re-optimise the weights of the others.

        Parameters
        ----------
        names : str or list of str
            Members to remove.
        X : rows of any kind, optional
            Rows to solve weights on. Only for a stack without kept predictions (see ``without_cache``), which needs
            them.
        y : array-like of shape (n,) or (n, k), optional
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Their weights.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        result = self.result_
        left = remaining_members(list(result.models), names)
        out_of_fold = self._out_of_fold(X, y, sample_weight).select(left)
        solution = self._solver(result.seed).solve(out_of_fold, result.solution.weights[left])
        return self._edited(result.select(left, out_of_fold, solution))

    def add(self, name: str, model: Any, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add a member, and re-optimise all weights.

        If the stack fitted its members, it fits a clone of the new one too: on all rows, and on the same folds for
        out-of-fold predictions. If members had been fitted before (``prefit=True``), or the predictions are those of
        the fitted members (``reweight``, ``without_cache``), the new one must be fitted and is used as it is.

        Parameters
        ----------
        name : str
        model : estimator
        X : rows of any kind
            The rows that members predicted: those of the fit, or of the last ``reweight``; any rows if the stack keeps
            no predictions.
        y : array-like of shape (n,) or (n, k), optional
            Their targets; not needed for a fitted ``model`` if the stack keeps predictions.
        sample_weight : array-like of shape (n,), optional
            Their weights, if they had any.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        check_names([*self.estimators, (name, model)], self.get_params(deep=False))
        result = self.result_
        result.task.response.check(name, model)
        if X is None:
            raise ValueError(f"X must be given: the stack has no predictions of {name!r}")
        if result.out_of_fold is None:
            known = self._predict_members(X, y, sample_weight)
        else:
            known = result.out_of_fold
            check_same_rows(known, result.task, X, y, sample_weight)
        X = self._validate_rows(X)
        other = copy(self)
        other.estimators = [*self.estimators, (name, model)]
        if known.splits is None:
            check_prefit(name, model, self)
            models, new = {name: model}, predict_fitted(known.problem, {name: model}, X)
        else:
            models, new = other._fit_on_folds(name, model, known, X, y, sample_weight)
        out_of_fold = known.append(new)
        solution = self._solver(result.seed).solve(out_of_fold, np.append(result.solution.weights, 0.0))
        fitted = Bunch(**result.models, **models)
        return other._edited(replace(result, named_estimators=fitted, out_of_fold=out_of_fold, solution=solution))

    def prune(
        self,
        k: int | None = None,
        *,
        tol: float | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Keep a few members, with optimal weights.

        Members are removed one by one, the least missed first. The weights at each size are optimal, also if this
        stack's were selected greedily. ``pruning_path`` shows the loss at each size.

        Parameters
        ----------
        k : int, optional
            Maximum number of members.
        tol : float, optional
            Instead of ``k``: the accepted relative increase of the loss. 0.01 gives the smallest stack on the path
            whose loss is at most 1 % above the least.
        X : rows of any kind, optional
            As in ``remove``.
        y : array-like of shape (n,) or (n, k), optional
            As in ``remove``.
        sample_weight : array-like of shape (n,), optional
            As in ``remove``.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        check_goal(k, tol)
        result, accuracy = self.result_, self._solver(self.result_.seed).tol
        out_of_fold = self._out_of_fold(X, y, sample_weight)
        problems, points = shrink(result.models, out_of_fold, result.solution.weights, accuracy)
        (solution,) = choose(problems, points, k, tol)
        warn_of_gaps([solution], accuracy)
        used = solution.used.tolist()
        return self._edited(result.select(used, out_of_fold.select(used), restrict(solution, used)))

    def pruning_path(self, X: Any = None, y: Any = None, *, sample_weight: ArrayLike | None = None) -> PruningPath:
        """Compute the loss at each size that ``prune`` can choose, from all members in use down to one.

        Parameters
        ----------
        X : rows of any kind, optional
            As in ``remove``.
        y : array-like of shape (n,) or (n, k), optional
            As in ``remove``.
        sample_weight : array-like of shape (n,), optional
            As in ``remove``.

        Returns
        -------
        PruningPath
        """
        check_is_fitted(self)
        result, accuracy = self.result_, self._solver(self.result_.seed).tol
        out_of_fold = self._out_of_fold(X, y, sample_weight)
        problems, points = shrink(result.models, out_of_fold, result.solution.weights, accuracy)
        return PruningPath(tuple(path_step(problems, point) for point in points))

    def reweight(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Re-optimise the weights on other rows; nothing is fitted.

        Parameters
        ----------
        X : rows of any kind
            Members should not have been fitted on them.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        stack
            A new one, which keeps the predictions on these rows.
        """
        check_is_fitted(self)
        result = self.result_
        out_of_fold = self._predict_members(X, y, sample_weight)
        solution = self._solver(result.seed).solve(out_of_fold, result.solution.weights)
        return self._edited(result.select(range(len(result.models)), out_of_fold, solution))

    def without_unused(self) -> Self:
        """Return a copy without the members of zero weight; it predicts the same.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        result = self.result_
        used = result.solution.used.tolist()
        out_of_fold = None if result.out_of_fold is None else result.out_of_fold.select(used)
        return self._edited(result.select(used, out_of_fold, restrict(result.solution, used)))

    def without_cache(self) -> Self:
        """Return a copy without the kept out-of-fold predictions: smaller to pickle, it predicts the same.

        Returns
        -------
        stack
            A new one, whose edits need rows.
        """
        check_is_fitted(self)
        other = copy(self)
        other.result_ = replace(self.result_, out_of_fold=None)
        return other

    def explain(self, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None) -> Explanation:
        """Explain the weights, member by member.

        For each member: its weight, its own loss, the least loss without it, and the slope of the loss when weight
        moves to it.

        Parameters
        ----------
        X : rows of any kind, optional
            Rows that the fitted members predict, such as test rows. Default: the predictions that the stack keeps, on
            which its weights were solved; a stack that keeps none (see ``without_cache``) needs rows.
        y : array-like of shape (n,) or (n, k), optional
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Their weights.

        Returns
        -------
        Explanation
        """
        check_is_fitted(self)
        result = self.result_
        known, solution, remarks = result.out_of_fold, result.solution, []
        if known is None or X is not None or y is not None or sample_weight is not None:
            known = self._predict_members(X, y, sample_weight)
            remarks.append(f"On the {len(known.rows):,} rows given, predicted by the fitted members.")
            with torch.no_grad():
                solution = certify_weights(known.risk, known.outputs, solution.weights)
        tol = self._solver(result.seed).tol
        found = explain(self.member_names_, known.risk, known.outputs, solution, tol, known.seconds)
        return replace(found, remarks=tuple(remarks))

    def report(self, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Write an HTML report on this stack, and on how it and its members predict the given rows.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist.
        X : rows of any kind
            Rows that neither the members nor the weights were fitted on.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
            Samples with zero weight are ignored.
        """
        # half a second of imports that nothing else needs
        from gce.inspection.report.stack import write

        write(self, path, X, y, sample_weight)

    def _edited(self, result: StackResult[Any]) -> Self:
        """A copy with another result; members that are not among ``estimators`` become parameters as they are."""
        given = dict(self.estimators)
        other = copy(self)
        other.estimators = [(name, given.get(name, model)) for name, model in result.models.items()]
        other.result_ = result
        return other

    def _out_of_fold(self, X: Any, y: Any, sample_weight: Any) -> OutOfFold:
        """The kept predictions or, if there are none, those on the rows given."""
        kept = self.result_.out_of_fold
        if kept is None:
            return self._predict_members(X, y, sample_weight)
        if X is not None or y is not None or sample_weight is not None:
            raise ValueError(
                "this stack keeps its members' predictions: leave out the rows (X, y, sample_weight), or call reweight "
                "with them"
            )
        return kept

    def _predict_members(self, X: Any, y: Any, sample_weight: Any) -> OutOfFold:
        """Predictions of the fitted members on the rows given."""
        if X is None or y is None:
            given = {"X": X, "y": y, "sample_weight": sample_weight}
            alone = " and ".join(name for name, value in given.items() if value is not None)
            why = f"{alone} is not enough" if alone else "this stack keeps no predictions of its members"
            raise ValueError(f"{why}: give X and y, rows that members were not fitted on")
        X, result = self._validate_rows(X), self.result_
        return predict_fitted(problem_on(result.task, X, y, sample_weight), result.models, X)

    def _fit_on_folds(
        self, name: str, model: Any, known: OutOfFold, X: Any, y: Any, sample_weight: Any
    ) -> tuple[dict[str, Any], OutOfFold]:
        """Fit a new member as the others were, on the same folds."""
        if y is None:
            raise ValueError(f"y must be given: {name!r} is fitted like the other members")
        assert known.splits is not None
        task = self.result_.task
        y = task.encode(targets_as_array(y))
        weight = None if sample_weight is None else check_weights(sample_weight, y)
        params, _ = self._route({name: model}, weight, None, {})
        check_fittable(name, model, "sample_weight" in params[name], self.fold_weight > 0)
        task.check_member(name, model)
        (X,) = indexable(X)
        return self._cross_fit(known.problem, {name: model}, TrainingData(X, y, params), known.splits)
