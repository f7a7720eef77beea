"""The plan of a fit: every "auto" resolved once, frozen before the first round."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gce._utils.params import look_up
from gce.bases import Basis, Forest, Neural
from gce.bases.context import FitDefaults
from gce.frank_wolfe.algorithm import Algorithm
from gce.frank_wolfe.algorithms import ALGORITHMS, Boosting
from gce.losses.line_search import LINE_SEARCHES, LineSearch
from gce.preprocessing.interactions import restricts
from gce.training.callbacks import EarlyStopping, SharedEarlyStopping
from gce.training.data import FitData
from gce.training.families import choose_bases, suits_trees, unsuited_families
from gce.training.family_fit import FamilyFit, Method
from gce.training.problem import Problem, with_inputs


@dataclass(frozen=True, eq=False)
class FamilyPlan:
    """One family of models with all that it takes to fit it.

    Parameters
    ----------
    name : str
    problem : Problem
        In the hull of this family.
    method : Method
    max_calls : float
        Maximum number of oracle calls per member.
    max_iter : int
        Maximum number of rounds.
    patience : int or None
        Rounds without progress after which a member is done.
    tol : float
    inflated_bound : bool
        The hull of ``problem`` is wider than that of the fit.
    automatic : bool
        Neither the basis nor the algorithm was named: a time limit may change how long steps are.
    """

    name: str
    problem: Problem
    method: Method
    max_calls: float
    max_iter: int
    patience: int | None
    tol: float
    inflated_bound: bool
    automatic: bool

    @property
    def max_rounds(self) -> int:
        """Rounds at most: an algorithm that calls the oracle in every round has as many rounds as calls."""
        every_round = type(self.method.algorithm).needs_oracle is Algorithm.needs_oracle
        return int(min(self.max_iter, self.max_calls)) if every_round else self.max_iter

    def begin(self) -> FamilyFit:
        """A fit of no rounds."""
        stopping = SharedEarlyStopping if self.method.algorithm.append_only else EarlyStopping
        return FamilyFit(self.name, self.problem.members, stopping(self.patience, self.tol), self.inflated_bound)

    def limit(self, fit: FamilyFit) -> None:
        """Set the limits of a fit that may have begun under others."""
        fit.stopping.n_iter_no_change, fit.stopping.tol = self.patience, self.tol


@dataclass(frozen=True, eq=False)
class FitPlan:
    """What a fit will do.

    Parameters
    ----------
    estimator : str
        The name of the estimator's class.
    parameters : dict
        Its parameters as the user gave them.
    families : tuple of FamilyPlan
        In the order in which they are fitted.
    verbose : bool or "auto"
        Whether a progress bar is shown.
    left_out : tuple of (str, str)
        Families of "auto" that do not suit the rows or the loss, each with the reason.
    """

    estimator: str
    parameters: Mapping[str, Any]
    families: tuple[FamilyPlan, ...]
    verbose: bool | str
    left_out: tuple[tuple[str, str], ...] = ()


def plan_fit(model: Any, data: FitData) -> FitPlan:
    """Decide which families are fitted, and how.

    Parameters
    ----------
    model : estimator
        Its parameters, see :class:`gce.GCERegressor`, are attributes; a subclass may have others.
    data : FitData

    Returns
    -------
    FitPlan
    """
    bases = _choose_bases(model, data)
    cap = len(bases) > 1 or _is_auto(model.basis)
    families = tuple(_plan_family(name, basis, model, data, cap) for name, basis in bases.items())
    left_out = unsuited_families(model.basis, model.algorithm, data.problem.X, data.loss)
    return FitPlan(type(model).__name__, model.get_params(deep=False), families, model.verbose, left_out)


def bases_on_all_rows(model: Any, data: FitData) -> list[Basis]:
    """The bases of rows in files that learn from all of them, by codes or inputs; the others learn from a sample.

    Trees of forests learn from samples of their own, of which the codes are in the same files.

    Parameters
    ----------
    model : estimator
    data : FitData
        Of the sample.

    Returns
    -------
    list of Basis
    """
    return [
        basis
        for basis in _choose_bases(model, data).values()
        if _learns_from_codes(basis, algorithm := _algorithm(model.algorithm, basis.fit_defaults), data)
        or _learns_from_inputs(basis, algorithm, data)
        or (data.sampled and isinstance(basis, Forest))
    ]


def _learns_from_codes(basis: Basis, algorithm: Algorithm, data: FitData) -> bool:
    return isinstance(algorithm, Boosting) and basis.grows_on_codes and data.problem.risk.smooth


def _learns_from_inputs(basis: Basis, algorithm: Algorithm, data: FitData) -> bool:
    """Whether a family of networks is trained on inputs in files: on all rows, where memory has a sample of them."""
    linear = type(algorithm).objective is Algorithm.objective
    return data.sampled and linear and isinstance(basis, Neural) and basis.learns_from_stored_inputs


def _choose_bases(model: Any, data: FitData) -> dict[str, Basis]:
    """The bases that are fitted, with their constraints, by the name of their family."""
    problem, signs, interactions = data.problem, data.signs, data.interactions
    rows, columns = problem.train_rows, problem.X.shape[1]
    trees = suits_trees(problem.X) and model.algorithm == "auto"
    bases = choose_bases(model.basis, rows, columns, trees=trees, means=data.loss.has_means)
    if signs is not None:
        bases = {name: basis.monotone(torch.tensor(signs)) for name, basis in bases.items()}
    # where one set has all columns, nothing is constrained
    if interactions is not None and restricts(groups := data.table.interaction_groups(interactions)):
        bases = {name: basis.restrict_interactions(groups) for name, basis in bases.items()}
    return bases


def _plan_family(name: str, basis: Basis, model: Any, data: FitData, cap: bool) -> FamilyPlan:
    defaults, problem = basis.fit_defaults, data.problem
    line_search = _or_default(model.line_search, defaults.line_search)
    method = Method(
        _algorithm(model.algorithm, defaults),
        basis,
        look_up("line_search", line_search, LINE_SEARCHES, LineSearch),
        data.streams,
    )
    if data.divided is not None and _learns_from_codes(basis, method.algorithm, data):
        problem = data.divided
    elif data.divided is not None and _learns_from_inputs(basis, method.algorithm, data):
        problem = with_inputs(data.divided)
    max_calls = _max_calls(basis, model.max_atoms, cap)
    # given models predict what they predict: a wider hull would not lengthen them
    inflated = method.algorithm.append_only and model.bound is None and not basis.exact
    if inflated:
        # a limit that is lowered or raised later must not change the rounds before it
        factor = method.algorithm.bound_factor(max(max_calls, defaults.calls))
        problem = replace(problem, bound=factor * problem.bound)
    patience = _or_default(model.n_iter_no_change, defaults.patience)
    automatic = _is_auto(model.basis) and _is_auto(model.algorithm)
    return FamilyPlan(name, problem, method, max_calls, model.max_iter, patience, model.tol, inflated, automatic)


def _algorithm(given: Any, defaults: FitDefaults) -> Algorithm:
    if given != "auto":
        return look_up("algorithm", given, ALGORITHMS, Algorithm)
    algorithm = look_up("algorithm", defaults.algorithm, ALGORITHMS, Algorithm)
    return algorithm.set_params(learning_rate=defaults.learning_rate) if isinstance(algorithm, Boosting) else algorithm


def _max_calls(basis: Basis, given: Any, cap: bool) -> float:
    """Maximum number of oracle calls per member: the number that the user gave, or the default of the family.

    One number for several families is a ``cap``, because their defaults differ: it lowers them and never raises one (30
    rounds are few trees but as many forests). A basis that is named alone has the number that is given with it.
    """
    if basis.exact:
        return np.inf
    usual = basis.fit_defaults.calls
    calls: float = _or_default(given, usual)
    return min(calls, usual) if cap else calls


def _is_auto(given: Any) -> bool:
    return isinstance(given, str) and given == "auto"


def _or_default(given: Any, default: Any) -> Any:
    """What the user gave, or the default of the family."""
    return default if _is_auto(given) else given
