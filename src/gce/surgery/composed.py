"""A fitted ensemble taken apart into shares on given rows, and put together again with other weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from gce.base import ConvexModel
from gce.basis.base import Atoms
from gce.calibration import HeldOut
from gce.ensemble import ConvexEnsemble
from gce.fitting import Problem
from gce.losses import Squared
from gce.members import Members, counted
from gce.native import limited, torch_threads
from gce.reading import Given, row_weights
from gce.responses import Numbers, Response, Scores
from gce.rows import Matrix
from gce.settings import as_numpy, support_first
from gce.surgery.gathering import Footing, assembled, share_of
from gce.surgery.guests import Guest
from gce.surgery.share import TOL, Share, warn_of_gaps
from gce.weighting import Solution

Array = NDArray[np.float64]


class Composed(ConvexModel):
    """A model whose ensemble has parts with weights of their own: one a member, or one in all."""

    #: Weights are one simplex over all atoms, and not one a member.
    _joint: bool = False
    _guests: tuple[Guest, ...] = ()

    def _scores(self, X: Any) -> Tensor:
        pred = super()._scores(X)
        for guest in self._guests:
            if guest.weight > 0:
                pred += guest.weight * guest(as_numpy(X))
        return pred

    def _response(self) -> Response:
        """How guests are asked."""
        return Scores(self.classes_) if is_classifier(self) else Numbers(len(self.offset_))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        with torch.no_grad(), torch_threads(self.n_jobs), limited(self.n_jobs):
            yield

    # Taken apart.

    def _as_one(self) -> Self:
        """The same model, its atoms and guests in one simplex."""
        check_is_fitted(self)
        other = copy(self)
        other._joint = True
        other._guests = tuple(replace(guest, weights=np.array([guest.weight])) for guest in self._guests)
        return other

    def _parts(self) -> list[ConvexEnsemble]:
        """What has weights of its own."""
        check_is_fitted(self)
        if self.ensemble_.weights.ndim == 2:
            raise ValueError(
                "each output of this model has weights of its own (shared=False), and edits are for weights that all "
                "outputs share: fit with gce.Neural(shared=True)"
            )
        if self._joint:
            return [self.ensemble_]
        return [self.ensemble_.of_member(m) for m in range(self.ensemble_.members)]

    def _footing(self, given: Given) -> Footing:
        """Rows to find weights on: those of the fit given again, or any where weights are one simplex."""
        # to read rows leaves traces of how they were given
        reader = copy(self)
        problem, members, order = reader._all_in_one(given) if self._joint else reader._again(given)
        guests = {guest.name: _answers(guest, given)[order] for guest in self._guests}
        return Footing(problem, members.held_out_total, guests)

    def _again(self, given: Given) -> tuple[Problem, Members, Tensor]:
        """The problem of the fit, and which of the rows given each of its rows was."""
        schema, rows = self._take(given, like=True)
        if len(rows.target) != self.n_samples_fit_:
            raise ValueError(
                f"the model was fitted to {self.n_samples_fit_} rows of positive weight, but {len(rows.target)} are "
                "given: give the rows of the fit, or use reweight for others"
            )
        members, X, target = self._members(rows, self._seed, self._check_validation(schema, given))
        # what members held out is not known of a model from an older file
        known = getattr(self, "_folds", list(members.names))
        if list(members.names) != known or len(known) != self.ensemble_.members:
            raise ValueError(
                "these are not the rows of the fit in their order, or cv splits them in another way: give the "
                "same rows and cv, or use reweight for others"
            )
        place = np.concatenate([rows.kept, np.arange(rows.given, rows.given + len(X) - len(rows.kept))])
        problem, _ = self._problem(X, target, members, False)
        return problem, members, torch.from_numpy(place[support_first(members.train)])

    def _all_in_one(self, given: Given) -> tuple[Problem, Members, Tensor]:
        """Given rows, on which one share finds its weights and calibrates its answers."""
        if given.groups is not None or given.X_val is not None:
            raise ValueError("a reweighted model holds out no rows: leave out groups, X_val and y_val")
        X, target, weight = self._judged(self.table_.schema, given.X, given.y, given.sample_weight)
        if target.shape[1] != len(self.offset_):
            raise ValueError(f"y has {target.shape[1]} target(s), but the model was fitted to {len(self.offset_)}")
        if not weight.any():
            raise ValueError("all sample weights are zero: there is no row to find weights on")
        return self._one_problem(X, target, weight, weight)

    def _echo(self, given: Given) -> Footing:
        """Given rows, on which one share is to say what this model says: its scores stand in for targets."""
        if given.groups is not None or given.X_val is not None:
            raise ValueError("a model that imitates another holds out no rows: leave out groups, X_val and y_val")
        X, answers = self._checked(given.X), self._scores(given.X).cpu().numpy()
        weight = row_weights(given.sample_weight, X)
        if not weight.any():
            raise ValueError("all sample weights are zero: there is no row to find weights on")
        problem, members, order = self._one_problem(X, answers, weight, np.zeros_like(weight))
        guests = {guest.name: _answers(guest, given)[order] for guest in self._guests}
        return Footing(replace(problem, loss=Squared()), members.held_out_total, guests)

    def _one_problem(self, X: Matrix, target: Array, weight: Array, held_out: Array) -> tuple[Problem, Members, Tensor]:
        """Coded rows as those of one member, and which of them each of its rows was."""
        total = weight.sum()
        members = Members(
            (weight / total)[None],
            (held_out / total)[None],
            (0,),
            held_out.sum(keepdims=True),
            np.array([counted(weight)]),
        )
        problem, _ = self._problem(X, target, members, False)
        return problem, members, torch.from_numpy(support_first(members.train))

    def _shares(self, footing: Footing) -> list[Share]:
        """Each part with the answers of its atoms, and of all guests, on its own rows."""
        shares = []
        for m, (part, weight) in enumerate(zip(self._parts(), self._own_rows(footing.problem), strict=True)):
            share = share_of(part, m, footing.problem, weight)
            for guest in self._guests:
                answer = footing.guests[guest.name][weight.nonzero().flatten()]
                share = share.adding(guest.name, answer, float(guest.weights[m]))
            shares.append(share)
        return shares

    def _own_rows(self, problem: Problem) -> Tensor:
        """Weights ``(M, N)`` of the rows on which each part finds its weights.

        Those that it learned from, unless some of its atoms repeat these.
        """
        if self._joint or not any(part.repeats for part in self.ensemble_.parts if isinstance(part, Atoms)):
            return problem.train
        if not problem.held_out.any(1).all():
            raise ValueError(
                "a forest repeats the rows that it learned from, so that weights beside it are found on rows held out, "
                "and this model held out none: use reweight with rows that it has not seen"
            )
        return problem.held_out

    # Put together.

    def _solved(self, footing: Footing, shares: Sequence[Share]) -> Self:
        """Another model of the best weights."""
        return self._edited(footing, shares, [share.solved() for share in shares])

    def _edited(self, footing: Footing, shares: Sequence[Share], solutions: Sequence[Solution]) -> Self:
        """Another model of these weights; this one is left as it is.

        Answers are calibrated by rows held out; where there are none, they stay calibrated as they are.
        """
        warn_of_gaps(solutions, TOL)
        found = [
            dict(zip(share.names, own.weights.tolist(), strict=True))
            for share, own in zip(shares, solutions, strict=True)
        ]
        other = copy(self)
        for name in ("_fit", "history_", "n_iter_"):
            other.__dict__.pop(name, None)
        weights = {name: weight / len(shares) for own in found for name, weight in own.items()}
        other.ensemble_ = assembled(self.ensemble_, weights, len(shares))
        other._guests = tuple(
            replace(guest, weights=np.array([own[guest.name] for own in found]))
            for guest in self._guests
            if guest.name in found[0]
        )
        other.gap_, other._joint = float(np.mean([own.gap for own in solutions])), self._joint
        if footing.problem.held_out.any():
            other._calibrate(other._held_out_again(footing))
        return other

    def _held_out_again(self, footing: Footing) -> HeldOut:
        """Raw scores of each part on the rows that it held out."""
        found = []
        for m, (part, weight) in enumerate(zip(self._parts(), footing.problem.held_out, strict=True)):
            rows = weight.nonzero().flatten()
            pred = part(footing.problem.X[rows])
            for guest in self._guests:
                pred += float(guest.weights[m]) * footing.guests[guest.name][rows]
            found.append(HeldOut(pred, footing.problem.y[rows], weight[rows] * footing.total[m]))
        return HeldOut(*(torch.cat(column) for column in zip(*found, strict=True)))


def _answers(guest: Guest, given: Given) -> Tensor:
    """Answers on all rows given, those for validation last."""
    return torch.cat([guest(as_numpy(X)) for X in (given.X, given.X_val) if X is not None])
