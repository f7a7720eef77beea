"""Fitted ensembles edited: atoms removed, added and spared, weights solved anew; nothing is trained again."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gce.explaining import Explanation, Pruned, explain
from gce.losses import Loss
from gce.reading import Given
from gce.surgery.composed import Composed
from gce.surgery.gathering import placed
from gce.surgery.guests import Guest
from gce.surgery.naming import by_name, check_known, check_new, is_zero
from gce.surgery.paths import check_goal, chosen, merged, size_of, step_of
from gce.surgery.share import TOL


class Editable(Composed):
    """A fitted ensemble that can be edited; every edit gives a new model, and leaves this one as it is.

    Atoms are called by member and index: ``"2:7"`` was made for member 2 in round 7 (or is the seventh of those trained
    at once), ``"2:0"`` is the zero function around the offset, which is there for any weights and cannot be removed.

    A model keeps no rows: they are given again. Each member finds its weights on the rows that it learned from, as
    fully corrective algorithms do (held-out rows are few, and measured worse: benchmarks/results/surgery.md); beside a
    forest, which repeats those, on the rows that it held out. Answers are calibrated on the rows it held out, as in a
    fit. An edited model has no rounds and no history.
    """

    @property
    def atom_names_(self) -> list[str]:
        """What atoms and guests are called, in the order of ``weights_``."""
        check_is_fitted(self)
        return [atom.name for atom in placed(self.ensemble_)] + [guest.name for guest in self._guests]

    @property
    def weights_(self) -> Any:
        """Weights of atoms and guests: a pandas Series by name where pandas is there, else an array.

        A DataFrame, a column an output, where each output has weights of its own.
        """
        names = self.atom_names_
        weights = self.ensemble_.weights.cpu().numpy().copy()
        if weights.ndim == 2:
            return by_name(names, weights)
        return by_name(names, np.append(weights, [guest.weight for guest in self._guests]))

    # Edits.

    def remove(
        self,
        names: str | Iterable[str],
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **validation: Any,
    ) -> Self:
        """The ensemble without some atoms or guests, the weights of all others solved anew.

        Parameters
        ----------
        names : str or list of str
            Of ``atom_names_``.
        X, y, sample_weight, groups
            The rows of the fit, as they were given to it.
        **validation
            ``X_val``, ``y_val`` and ``sample_weight_val``, where the fit had them.

        Returns
        -------
        estimator
            A new one, with ``gap_``: the mean loss of its members, each on its own rows, is that close to the least.
        """
        gone = check_known(names, self.atom_names_)
        for name in gone:
            if is_zero(name):
                raise ValueError(f"{name!r} is the zero function around the offset, which is always there")
        if not {name for name in self.atom_names_ if not is_zero(name)} - set(gone):
            raise ValueError(f"without {', '.join(gone)} nothing would be left but the offset: keep at least one atom")
        with self._at_work():
            footing = self._footing(Given(X, y, sample_weight, groups, **validation))
            return self._solved(footing, [share.without(gone) for share in self._shares(footing)])

    def add(
        self,
        name: str,
        model: Any,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **validation: Any,
    ) -> Self:
        """The ensemble with a fitted model of any library as a guest among its atoms, all weights solved anew.

        Its predictions (of a classifier: logarithms of ``predict_proba``, or ``decision_function``) are clipped to
        ``offset_ +- bound_``, so that the bound holds as before. At weight 0 it is never asked.

        Parameters
        ----------
        name : str
        model : fitted model
            Predicts from the same ``X``. A model that was fitted on these very rows looks better on them than it is,
            and gets too much weight: fit it on others, or give rows that it has not seen to ``reweight`` afterwards.
        X, y, sample_weight, groups, **validation
            As in ``remove``.

        Returns
        -------
        estimator
            A new one. ``save`` and ``to_onnx`` refuse guests, joblib keeps them.
        """
        check_new(name, self.atom_names_)
        if self.monotonic_cst is not None:
            raise ValueError(f"monotonic_cst={self.monotonic_cst!r} would no longer hold with a guest: leave it out")
        if not is_classifier(self) and type(self.loss_).predict is not Loss.predict:
            raise ValueError(
                f"scores of loss={self.loss_!r} are not yet numbers like those that {name!r} predicts: combine both by "
                "a ConvexStackingRegressor"
            )
        offset, bound = self.ensemble_.offset, self.ensemble_.bound
        guest = Guest(name, model, self._response(), offset, bound, np.zeros(len(self._parts())))
        other = copy(self)
        other._guests = (*self._guests, guest)
        with self._at_work():
            footing = other._footing(Given(X, y, sample_weight, groups, **validation))
            return other._solved(footing, other._shares(footing))

    def prune(
        self,
        k: int | None = None,
        *,
        X: Any,
        y: Any = None,
        tol: float | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **validation: Any,
    ) -> Pruned:
        """A smaller ensemble, and what each size costs.

        Atoms go one by one, the one that is missed least first, and the weights of those that stay are solved anew; of
        more than 64 several go at a time. Members shrink side by side; one that has no atom left is the offset. For one
        or two atoms a member, on large data, ``reweight(X, y).prune(k, X=X, y=y)`` measured better: there the atoms of
        all members serve together.

        Without ``y`` the smaller ensemble imitates this one: atoms of all members serve together, and the loss is the
        mean squared distance from the scores of the whole. Of the default model's thousands of trees a few hundred say
        the same at several times the speed, best by ``prune(tol=0, X=X, y=y).model.prune(k, X=X)``: weights solved
        first, then imitated (benchmarks/results/pruned.md).

        Parameters
        ----------
        k : int, optional
            Atoms and guests to keep in all members together, at most.
        X, y, sample_weight, groups, **validation
            As in ``remove``. Without ``y`` any rows like those of the fit will do; answers stay calibrated as they are.
        tol : float, optional
            Instead of ``k``: the relative rise of the loss that is accepted. 0.01 gives the smallest ensemble on the
            path whose loss is at most 1 % above the least. Needs ``y``.

        Returns
        -------
        Pruned
            ``model`` is the new ensemble, ``path`` has every size.
        """
        check_goal(k, tol)
        if y is None and tol is not None:
            raise ValueError(f"tol={tol!r} compares losses, which need targets: give y too, or a size k")
        given = Given(X, y, sample_weight, groups, **validation)
        with self._at_work():
            editor = self._as_one() if y is None else self
            footing = editor._echo(given) if y is None else editor._footing(given)
            shares = editor._shares(footing)
            stands = merged(shares)
            stand = chosen(shares, stands, k, tol)
            model = editor._edited(footing, shares, stand)
        # an atom without weight is gone, but a guest is kept, so that add can show that it got none
        model._guests = tuple(guest for guest in model._guests if guest.weight > 0)
        return Pruned(model, tuple(step_of(shares, one) for one in stands), size_of(shares, stand))

    def reweight(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """The same atoms and guests with the best weights for other rows; nothing is trained.

        All of them share one simplex, so that the certificate is for the ensemble itself. From then on an edit stands
        on whatever rows it is given, and calibrates answers by the same.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        estimator
            A new one, with ``gap_``: its mean loss on these rows is that close to the least of all weights.
        """
        other = self._as_one()
        with self._at_work():
            footing = other._footing(Given(X, y, sample_weight))
            return other._solved(footing, other._shares(footing))

    def explain(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **validation: Any,
    ) -> Explanation:
        """Why atoms weigh what they weigh: one row an atom, on the rows of its member.

        Weights are taken as they are. Those of a fit are not the best ones, and its gap says how far they may be from
        them; those of an edit are.

        Parameters
        ----------
        X, y, sample_weight, groups, **validation
            As in ``remove``.
        """
        with self._at_work():
            shares = self._shares(self._footing(Given(X, y, sample_weight, groups, **validation)))
            parts = [explain(share.names, share.risk, share.outputs, share.certified(), TOL) for share in shares]
        return Explanation.joined(parts, [1 / len(parts)] * len(parts))
