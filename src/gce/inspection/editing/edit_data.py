"""A fitted ensemble as problems over simplices, and back: what every edit does first and last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.bases.base import Atoms, Zero
from gce.frank_wolfe.ensemble import ConvexEnsemble, collect
from gce.frank_wolfe.simplex import Outputs, Solution, warn_of_gaps
from gce.inspection.editing.naming import atom_name, origins
from gce.inspection.editing.simplex_problem import TOL, SimplexProblem
from gce.losses.risk import Risk
from gce.training.calibration import HeldOutScores, gather_held_out, with_scale
from gce.training.problem import Problem
from gce.training.result import FitResult
from gce.training.targets import NumberTarget, Target

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EditData:
    """The rows on which an edit finds weights.

    Parameters
    ----------
    problem : Problem
    held_out_total : array of shape (M,)
        Total sample weight of the rows by which predictions of each member are calibrated.
    external : dict of Tensor of shape (N, k)
        The predictions of external models on the rows of the problem, by name.
    target : Target
    """

    problem: Problem
    held_out_total: Array
    external: Mapping[str, Tensor]
    target: Target


class NamedAtom(NamedTuple):
    """An atom: its member, its index there, and where it is stored."""

    member: int
    number: int
    part: Atoms
    position: int

    @property
    def name(self) -> str:
        """What the atom is called, such as ``"2:7"``."""
        return atom_name(self.member, self.number)


def named_atoms(ensemble: ConvexEnsemble) -> Iterator[NamedAtom]:
    """The atoms of an ensemble, in their order."""
    own = iter(origins(ensemble).tolist())
    for part in ensemble.parts:
        assert isinstance(part, Atoms)
        for position in range(len(part)):
            member, number = next(own)
            yield NamedAtom(member, number, part, position)


def atom_names(result: FitResult) -> list[str]:
    """The names of atoms and external models."""
    return [atom.name for atom in named_atoms(result.ensemble)] + [model.name for model in result.external]


def simplices(result: FitResult) -> list[ConvexEnsemble]:
    """The parts of an ensemble that have simplex weights of their own: its members, or all of it."""
    if result.ensemble.weights.ndim == 2:
        raise ValueError(
            "each output of this model has weights of its own (shared=False), and edits need weights that all outputs "
            "share: fit with gce.bases.Neural(shared=True)"
        )
    if result.one_simplex:
        return [result.ensemble]
    return [result.ensemble.of_member(m) for m in range(result.ensemble.members)]


def as_one_simplex(result: FitResult) -> FitResult:
    """The same ensemble, with all atoms and external models in one simplex."""
    external = tuple(replace(model, weights=np.array([model.weight])) for model in result.external)
    return replace(result, one_simplex=True, external=external)


def simplex_problems(result: FitResult, data: EditData) -> list[SimplexProblem]:
    """Each simplex with the predictions of its atoms, and of all external models, on its own rows."""
    problems = []
    for m, (part, weight) in enumerate(zip(simplices(result), own_rows(result, data.problem), strict=True)):
        problem = _simplex_problem(part, m, data.problem, weight)
        for model in result.external:
            outputs = data.external[model.name][weight.nonzero().flatten()]
            problem = problem.adding(model.name, outputs, float(model.weights[m]))
        problems.append(problem)
    return problems


def own_rows(result: FitResult, problem: Problem) -> Tensor:
    """Weights ``(M, N)`` of the rows on which each simplex finds its weights.

    The training rows of the member, unless some of its atoms interpolate them.
    """
    if result.one_simplex or not any(part.interpolates for part in result.ensemble.parts if isinstance(part, Atoms)):
        return problem.train
    if not problem.held_out.any(1).all():
        raise ValueError(
            "a forest interpolates its training rows, so that weights beside it are found on held-out rows, and this "
            "model held out none: use reweight with rows that it has not seen"
        )
    return problem.held_out


def rows_remark(result: FitResult, problem: Problem) -> str:
    """On which rows weights are explained, as a sentence."""
    held_out, rows = problem.held_out.any(0), problem.train.any(0) | problem.held_out.any(0)
    if result.one_simplex:
        return (
            f"On the {int(rows.sum()):,} rows given: each is predicted by the whole model, whose loss is too good on "
            "rows that it was fitted to."
        )
    if problem.held_out.any(1).all():
        return (
            f"On the {int(held_out.sum()):,} rows held out in the fit, each predicted by the members that held it out."
        )
    return f"On the training rows of each member, {int(rows.sum()):,} in all: none were held out."


def _simplex_problem(part: ConvexEnsemble, m: int, problem: Problem, weight: Tensor) -> SimplexProblem:
    """A part of an ensemble whose weights are to be found on rows of weights ``(N,)``.

    The zero functions among its atoms become one, named as that of member ``m``; it can have any weight.
    """
    rows = weight.nonzero().flatten()
    X = problem.X[rows]
    own = [atoms for atoms in part.parts if isinstance(atoms, Atoms) and not isinstance(atoms, Zero)]
    outputs = [output for atoms in own for output in atoms(atoms.seen(X))]
    atoms = list(named_atoms(part))
    constant = np.array([isinstance(atom.part, Zero) for atom in atoms])
    weights = part.weights.cpu().numpy()
    risk = Risk(problem.loss, problem.y[rows], weight[rows][None], problem.offset)
    return SimplexProblem(
        (atom_name(m, 0), *(atom.name for atom in atoms if not isinstance(atom.part, Zero))),
        Outputs([torch.zeros_like(risk.y), *outputs]),
        risk,
        np.append(weights[constant].sum(), weights[~constant]),
        (0,),
    )


def with_weights(
    result: FitResult, data: EditData, problems: Sequence[SimplexProblem], solutions: Sequence[Solution]
) -> FitResult:
    """A result of these weights.

    Predictions are calibrated by held-out rows; where there are none, or too few, the calibration stays as it is.
    """
    # only an edit and the end of a fit need it
    from gce.training.importances import column_importances

    warn_of_gaps(solutions, TOL)
    found = [
        dict(zip(problem.names, own.weights.tolist(), strict=True))
        for problem, own in zip(problems, solutions, strict=True)
    ]
    weights = {name: weight / len(problems) for own in found for name, weight in own.items()}
    external = tuple(
        replace(model, weights=np.array([own[model.name] for own in found]))
        for model in result.external
        if model.name in found[0]
    )
    ensemble = _assembled(result.ensemble, weights, len(problems))
    importances = None
    # what an external model does with the columns is not known
    if all(model.weight == 0 for model in external):
        importances = column_importances(ensemble, result.table, data.problem, data.held_out_total)
    edited = replace(
        result,
        families=(),
        family_weights=(),
        closing=None,
        left_out=(),
        # the weights are no longer those that predicted these rows
        held_out=None,
        ensemble=ensemble,
        importances=importances,
        external=external,
        gap=float(np.mean([own.gap for own in solutions])),
    )
    if not data.problem.held_out.any():
        return edited
    rows = _predict_held_out(edited, data)
    calibration = data.target.calibrate(result.loss, rows)
    if calibration is None:
        return edited
    if data.target.has_intervals:
        predict = partial(cast(NumberTarget, data.target).means, result.loss)
        calibration = with_scale(calibration, predict, data.problem, rows, simplices(edited))
    return replace(edited, calibration=calibration)


def _assembled(ensemble: ConvexEnsemble, weights: Mapping[str, float], members: int) -> ConvexEnsemble:
    """The atoms that have weight, by name; a member that has none keeps the zero function."""

    def chosen() -> Iterator[tuple[int, int, Atoms, int, Tensor]]:
        empty = set(range(members))
        for atom in named_atoms(ensemble):
            if not isinstance(atom.part, Zero) and weights.get(atom.name, 0.0) > 0:
                empty.discard(atom.member)
                yield *atom, ensemble.weights.new_tensor([weights[atom.name]])
        zero = Zero(1, len(ensemble.bound))
        for m in range(members):
            weight = weights.get(atom_name(m, 0), 0.0)
            if weight > 0 or m in empty:
                yield m, 0, zero, 0, ensemble.weights.new_tensor([weight])

    return collect(chosen(), ensemble.offset, ensemble.bound)


def _predict_held_out(result: FitResult, data: EditData) -> HeldOutScores:
    """Raw scores of each simplex on the rows that it holds out."""
    parts = list(simplices(result))

    def predict(m: int, rows: Tensor) -> Tensor:
        pred = parts[m](data.problem.X[rows])
        for model in result.external:
            pred += float(model.weights[m]) * data.external[model.name][rows]
        return pred

    return gather_held_out(data.problem, data.held_out_total, predict)
