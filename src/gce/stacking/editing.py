"""Stacks edited: members removed, added and spared, weights solved anew; members that are there are never fitted again.

What members answered when weights were found is kept, and shared by a stack and those that are made of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted

from gce.explaining import Explanation, Pruned, explain
from gce.settings import as_numpy
from gce.stacking.base import Stack
from gce.stacking.checks import check_fittable, check_prefit, named
from gce.stacking.crossfit import Rows
from gce.stacking.evidence import Evidence, Question, ask_fitted
from gce.surgery.naming import check_known
from gce.surgery.paths import check_goal, chosen, merged, size_of, step_of
from gce.surgery.share import TOL, Share, warn_of_gaps
from gce.table import as_targets
from gce.weighting import Solution, certified


class EditableStack(Stack):
    """A fitted stack that can be edited; every edit gives a new stack, and leaves this one as it is.

    Weights are solved on the answers that the stack keeps. A copy ``without_cache`` keeps none: it is given rows, which
    its members, as they are, answer for; they should not have seen them.
    """

    def remove(
        self, names: str | Iterable[str], X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """The stack without some members, the weights of all others solved anew.

        Parameters
        ----------
        names : str or list of str
        X, y, sample_weight
            Rows to find weights on, where the stack keeps no answers, and only there.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        gone = check_known(names, list(self._members))
        left = [j for j, name in enumerate(self._members) if name not in gone]
        if not left:
            raise ValueError(f"without {', '.join(gone)} no member would be left: keep at least one")
        evidence = self._evidence_or(X, y, sample_weight).select(left)
        return self._of(left, evidence, self._solve(evidence, self._solution.weights[left]))

    def add(self, name: str, model: Any, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """The stack with one more member, all weights solved anew.

        Where members were fitted by the stack, so is this one: a clone of it on all rows, and on the same folds for
        answers out of fold. Where they were fitted before (``prefit=True``), or answered for rows as they are
        (``reweight``, ``without_cache``), it must be fitted and is used as it is.

        Parameters
        ----------
        name : str
        model : estimator
        X : rows of any kind
            Those that members answered for: the rows of the fit, or of the last ``reweight``; any where the stack
            keeps no answers.
        y : array-like of shape (n,) or (n, k), optional
            Their targets; may be left out where ``model`` is not fitted here and answers are kept.
        sample_weight : array-like of shape (n,), optional
            Their weights, where they had any.

        Returns
        -------
        stack
            A new one.
        """
        check_is_fitted(self)
        named([*self.estimators, (name, model)], self.get_params(deep=False))
        self._response.check(name, model)
        if X is None:
            raise ValueError(f"X must be given: {name!r} has not answered for any rows yet")
        other = copy(self)
        other.estimators = [*self.estimators, (name, model)]
        if self._evidence is None:
            known, question = self._answered(X, y, sample_weight)
        else:
            known, question = self._evidence, self._same(self._evidence, X, y, sample_weight)
        if known.splits is None:
            check_prefit(name, model, self)
            fitted, new = {name: model}, ask_fitted(question, {name: model}, self._checked(X))
        else:
            fitted, new = other._fitted_alike(name, model, question, known, self._checked(X), y, sample_weight)
        evidence = known.adding(new)
        solution = self._solve(evidence, np.append(self._solution.weights, 0.0))
        return other._replaced({**self._members, **fitted}, evidence, solution)

    def prune(
        self,
        k: int | None = None,
        *,
        tol: float | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Pruned:
        """A smaller stack, and what each size costs.

        Members go one by one, the one that is missed least first; weights at each size are the best ones, also where
        this stack's were selected.

        Parameters
        ----------
        k : int, optional
            Members to keep, at most.
        tol : float, optional
            Instead: the relative rise of the loss that is accepted. 0.01 gives the smallest stack on the path whose
            loss is at most 1 % above the least.
        X, y, sample_weight
            As in ``remove``.

        Returns
        -------
        Pruned
            ``model`` is the new stack, of the members that are kept alone; ``path`` has every size.
        """
        check_is_fitted(self)
        check_goal(k, tol)
        evidence = self._evidence_or(X, y, sample_weight)
        weights = self._solution.weights
        shares = [Share(tuple(self._members), evidence.outputs, evidence.risk, weights, tol=self._gap_asked())]
        with torch.no_grad():
            stands = merged(shares)
        stand = chosen(shares, stands, k, tol)
        warn_of_gaps(stand, self._gap_asked())
        used = stand[0].used.tolist()
        model = self._of(used, evidence.select(used), _among(stand[0], used))
        return Pruned(model, tuple(step_of(shares, one) for one in stands), size_of(shares, stand))

    def reweight(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """The same members with weights for other rows; nothing is fitted.

        Parameters
        ----------
        X : rows of any kind
            Members should not have seen them.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        stack
            A new one; the answers that it keeps are those for these rows.
        """
        check_is_fitted(self)
        evidence, _ = self._answered(X, y, sample_weight)
        return self._replaced(self._members, evidence, self._solve(evidence, self._solution.weights))

    def without_unused(self) -> Self:
        """The stack without the members of weight 0, which predictions never ask; all else is as it was."""
        check_is_fitted(self)
        used = self._solution.used.tolist()
        evidence = None if self._evidence is None else self._evidence.select(used)
        return self._of(used, evidence, _among(self._solution, used))

    def explain(self, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None) -> Explanation:
        """Why members weigh what they weigh: one row a member, with its weight, its own loss, the least loss without
        it, and how the loss would change if it got more weight.

        Parameters
        ----------
        X, y, sample_weight
            As in ``remove``.
        """
        check_is_fitted(self)
        evidence, solution = self._evidence_or(X, y, sample_weight), self._solution
        if self._evidence is None:
            with torch.no_grad():
                solution = certified(evidence.risk, evidence.outputs, solution.weights)
        names = list(self._members)
        return explain(names, evidence.risk, evidence.outputs, solution, self._gap_asked(), evidence.seconds)

    def _gap_asked(self) -> float:
        """The relative gap to which weights are solved."""
        return float(getattr(self, "tol", TOL))

    def _of(self, index: list[int], evidence: Evidence | None, solution: Solution) -> Self:
        """Another stack of some members."""
        members = list(self._members.items())
        return self._replaced(dict(members[j] for j in index), evidence, solution)

    def _evidence_or(self, X: Any, y: Any, sample_weight: Any) -> Evidence:
        """The answers that are kept, or those to rows that are given where none are."""
        if self._evidence is None:
            return self._answered(X, y, sample_weight)[0]
        if X is not None or y is not None or sample_weight is not None:
            raise ValueError("this stack keeps its members' answers: leave out the rows, or give them to reweight")
        return self._evidence

    def _answered(self, X: Any, y: Any, sample_weight: Any) -> tuple[Evidence, Question]:
        """What the members, as they are, answer for rows."""
        if X is None or y is None:
            raise ValueError("this stack keeps no answers of its members: give X and y, rows that they have not seen")
        X, question = self._checked(X), self._asked(X, y, sample_weight)
        return ask_fitted(question, self._members, X), question

    def _asked(self, X: Any, y: Any, sample_weight: Any) -> Question:
        y = self._known_targets(as_targets(as_numpy(y)))
        check_consistent_length(X, y)
        return self._question(y, self._check_weight(sample_weight, y))

    def _same(self, evidence: Evidence, X: Any, y: Any, sample_weight: Any) -> Question:
        """The question that kept answers are for, if rows given again are those that it was asked about."""
        n = _num_samples(X)
        if y is not None:
            same = evidence.question.same(self._asked(X, y, sample_weight))
        else:
            weight = self._check_weight(sample_weight, np.zeros(n))
            same = np.array_equal(np.flatnonzero(weight), evidence.rows)
            if same and sample_weight is not None:
                same = np.array_equal(weight[evidence.rows] / weight.sum(), evidence.question.weight)
        if not same:
            raise ValueError(
                f"members answered for {len(evidence.rows)} rows of positive weight, and the {n} rows given, with their"
                " targets and weights, are others: give the same ones, or give these to reweight first"
            )
        return evidence.question

    def _fitted_alike(
        self, name: str, model: Any, question: Question, known: Evidence, X: Any, y: Any, sample_weight: Any
    ) -> tuple[dict[str, Any], Evidence]:
        """A new member fitted as the others were, and its answers out of fold."""
        if y is None:
            raise ValueError(f"y must be given: {name!r} is fitted as the other members were")
        assert known.splits is not None
        y = self._known_targets(as_targets(as_numpy(y)))
        weight = None if sample_weight is None else self._check_weight(sample_weight, y)
        params, _ = self._routed({name: model}, weight, None, {})
        check_fittable(name, model, "sample_weight" in params[name], self.fold_share > 0)
        self._check_member(name, model)
        (X,) = indexable(X)
        return self._cross_fit(question, {name: model}, Rows(X, y, params), known.splits)


def _among(solution: Solution, used: list[int]) -> Solution:
    """A solution among some models that have all the weight; what holds among more models holds among these."""
    return replace(solution, weights=solution.weights[used], alignment=solution.alignment[used])
