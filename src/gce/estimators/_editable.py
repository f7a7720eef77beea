"""Fitted ensembles whose atoms can be removed, added, pruned, reweighted and explained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from gce._utils.parallel import limited, torch_threads
from gce.estimators._base import Array, ConvexModel
from gce.estimators._edit_rows import edit_data, explained_rows, imitation_data
from gce.estimators._validation import FitInput
from gce.inspection import editing
from gce.inspection.editing.naming import check_new, is_zero
from gce.inspection.editing.pruning import check_goal
from gce.inspection.explanation import Explanation, PruningPath
from gce.losses import Loss, Ordinal
from gce.training.external_models import ExternalModel
from gce.training.predictions import PredictedValues, RawScores, ResponseMethod

if TYPE_CHECKING:
    from gce.theory import BoundReport


class EditableEnsemble(ConvexModel):
    """A fitted ensemble that can be edited; every edit returns a new model, and leaves this one as it is.

    Atoms are named by member and index: ``"2:7"`` was made for member 2 in round 7 (or is the seventh of those trained
    at once), ``"2:0"`` is the zero function around the offset, which can have any weight and cannot be removed.

    A model keeps no rows: they are given again. Each member finds its weights on its training rows, as fully corrective
    algorithms do (held-out rows are few, and measured worse: benchmarks/results/surgery.md); beside a forest, which
    interpolates those, on the rows that it held out. Predictions are calibrated by the rows it held out, as in a fit.
    An edited model has no rounds and no history.
    """

    device: Any

    @property
    def atom_names_(self) -> list[str]:
        """The names of atoms and external models, in the order of ``weights_``."""
        return editing.atom_names(self.result_)

    @property
    def weights_(self) -> Array:
        """Weights of atoms and external models, in the order of ``atom_names_``: an array of shape ``(P,)``.

        Of shape ``(P, k)`` where each of k outputs has its own weights.
        """
        result = self.result_
        weights = result.ensemble.weights.cpu().numpy().copy()
        return weights if weights.ndim == 2 else np.append(weights, [model.weight for model in result.external])

    @property
    def gap_(self) -> float:
        """After an edit: an upper bound on how far the mean loss is from the least possible."""
        gap = self.result_.gap
        if gap is None:
            raise AttributeError("gap_ is known after an edit, such as reweight(X, y)")
        return gap

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
        """Remove atoms or external models; the weights of all others are re-optimised.

        Parameters
        ----------
        names : str or list of str
            Of ``atom_names_``.
        X, y, sample_weight, groups
            The rows of the fit, as they were given to it.
        **validation
            ``X_val``, ``y_val``, ``sample_weight_val``, ``base_score`` and ``base_score_val``, where the fit had them.

        Returns
        -------
        estimator
            A new one, with ``gap_``: the mean loss of its members, each on its own rows, is that close to the least.
        """
        result = self.result_
        removed = editing.check_removable(result, names)
        with self._computing():
            data = edit_data(self, result, FitInput(X, y, sample_weight, groups, **validation))
            return self._with(editing.remove(result, removed, data))

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
        """Add a fitted model of any library to the atoms; all weights are re-optimised.

        Its predictions (of a classifier: logarithms of ``predict_proba``, or ``decision_function``) are clipped to
        ``offset_ +- bound_``, so that the bound holds as before. At weight 0 it is never called.

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
            A new one. ``save`` and ``to_onnx`` refuse external models, joblib keeps them.
        """
        result = self.result_
        check_new(name, self.atom_names_)
        for constraint in ("monotonic_cst", "interaction_cst"):
            if (given := getattr(self, constraint)) is not None:
                raise ValueError(f"{constraint}={given!r} would no longer hold with an external model: leave it out")
        numbers = result.target.classes is None or isinstance(result.loss, Ordinal)
        if numbers and type(result.loss).predict is not Loss.predict:
            raise ValueError(
                f"raw scores of loss={result.loss!r} are not on the scale of the predictions of {name!r}: combine both "
                "by a ConvexStackingRegressor"
            )
        weights = np.zeros(len(editing.simplices(result)))
        external = ExternalModel(name, model, self._response(), result.ensemble.offset, result.ensemble.bound, weights)
        extended = editing.add(result, external)
        with self._computing():
            data = edit_data(self, extended, FitInput(X, y, sample_weight, groups, **validation))
            return self._with(editing.reoptimize(extended, data))

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
    ) -> Self:
        """A smaller ensemble; ``pruning_path`` shows what each size costs.

        Atoms are removed one by one, the least useful first, and the remaining weights are re-optimised; of more than
        64 atoms several go at a time. Members shrink side by side; one that has no atom left is the offset. For one
        or two atoms per member, on large data, ``reweight(X, y).prune(k, X=X, y=y)`` measured better: there the atoms
        of all members share one simplex.

        Without ``y`` the smaller ensemble imitates this one: atoms of all members share one simplex, and the loss is
        the mean squared distance from the raw scores of the whole. Of the default model's thousands of trees a few
        hundred predict the same at several times the speed, best by ``prune(tol=0, X=X, y=y).prune(k, X=X)``: weights
        re-optimised first, then imitated (benchmarks/results/pruned.md).

        Parameters
        ----------
        k : int, optional
            Maximum number of atoms and external models in all members together.
        X, y, sample_weight, groups, **validation
            As in ``remove``. Without ``y`` any rows like those of the fit will do; the calibration stays as it is.
        tol : float, optional
            Instead of ``k``: the relative increase of the loss that is accepted. 0.01 gives the smallest ensemble on
            the path whose loss is at most 1 % above the least. Needs ``y``.

        Returns
        -------
        estimator
            A new one, with ``gap_``.
        """
        check_goal(k, tol)
        if y is None and tol is not None:
            raise ValueError(f"tol={tol!r} compares losses, which need targets: give y too, or a size k")
        with self._computing():
            result, data = self._pruning_data(FitInput(X, y, sample_weight, groups, **validation))
            return self._with(editing.prune(result, data, k, tol))

    def pruning_path(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **validation: Any,
    ) -> PruningPath:
        """The loss at each size that ``prune`` can choose, from all atoms in use down to one.

        Parameters
        ----------
        X, y, sample_weight, groups, **validation
            As in ``prune``.

        Returns
        -------
        PruningPath
        """
        with self._computing():
            result, data = self._pruning_data(FitInput(X, y, sample_weight, groups, **validation))
            return PruningPath(editing.pruning_steps(result, data))

    def reweight(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, base_score: ArrayLike | None = None
    ) -> Self:
        """The same atoms and external models with the best weights for other rows; nothing is trained.

        All of them share one simplex, so that the certificate is for the ensemble itself. From then on an edit uses
        whatever rows it is given, and calibrates predictions by the same.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
        base_score : array-like of shape (n,), optional
            Of these rows, where the fit had base scores.

        Returns
        -------
        estimator
            A new one, with ``gap_``: its mean loss on these rows is that close to the least of all weights.
        """
        result = editing.as_one_simplex(self.result_)
        with self._computing():
            data = edit_data(self, result, FitInput(X, y, sample_weight, base_score=base_score))
            return self._with(editing.reoptimize(result, data))

    # Explanations.

    def explain(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        by: Literal["families", "atoms"] = "families",
        **validation: Any,
    ) -> Explanation:
        """Why the families of this ensemble, or its atoms, have the weights they have.

        With the rows of the fit, a family is explained on those that members held out, on which the weights of families
        are found; where none were, on their training rows. An atom is explained on the rows of its member. On other
        rows, such as test rows, the whole model predicts each of them, and the explanation says what every family or
        atom is worth there; on a part of the training rows that is too good. Without rows there are weights, numbers of
        atoms and importances of columns. Beside families and atoms the offset alone, the zero function of the hull, is
        listed: the best weights may have it too.

        Weights need not be the best ones for the rows of an explanation: the gap says how far they may be from them,
        and ``best_loss`` is the loss of the best.

        Parameters
        ----------
        X, y, sample_weight : optional
            The rows of the fit, as they were given to it, or any other rows.
        groups, **validation
            As in ``remove``; only with the rows of the fit.
        by : {"families", "atoms"}, default="families"
            One row per family, such as ``"tree"`` or ``"neural"``, and per external model; or one per atom, of which
            there may be hundreds. After an edit of several families, kinds of atoms take their place. By families there
            is a second table, of columns and their ``feature_importances_``.

        Returns
        -------
        Explanation
        """
        if by not in ("families", "atoms"):
            raise ValueError(f"by must be 'families' or 'atoms', got {by!r}")
        given = FitInput(X, y, sample_weight, groups, **validation)
        if (X is None) != (y is None) or (X is None and any(value is not None for value in given)):
            absent = [name for name in ("X", "y") if getattr(given, name) is None]
            raise ValueError(f"{' and '.join(absent)} must be given too: rows need targets, and weights need rows")
        with self._computing():
            found = self._explain(given, by)
        result = self.result_
        if result.importances is None or by == "atoms":
            return found
        names = (column.name for column in result.table.columns)
        return replace(found, importances=dict(zip(names, result.importances.tolist(), strict=True)))

    def _explain(self, given: FitInput, by: str) -> Explanation:
        # needed by no fit
        from gce.inspection.editing.families import explain_families, list_families

        if given.X is not None:
            result, data = explained_rows(self, self.result_, given)
            return editing.explain_weights(result, data) if by == "atoms" else explain_families(result, data)
        if by == "atoms":
            editing.simplices(self.result_)
            names = self.atom_names_
            free = tuple(j for j, name in enumerate(names) if is_zero(name))
            return replace(Explanation.of_weights(names, self.weights_, "atom"), free=free)
        return list_families(self.result_)

    def bound_report(self, X: Any, y: Any, delta: float = 0.05, **given: Any) -> BoundReport:
        """What learning theory says about the risk on new rows, and why it is no certificate.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The rows the model was fitted on.
        y : array-like of shape (n,)
        delta : float, default=0.05
            Each bound holds with probability ``1 - delta``.
        **given
            ``X_held_out``, ``y_held_out``, ``draws``, ``oracle``, ``D``, ``random_state``: see
            :func:`gce.theory.bound_report`.

        Returns
        -------
        BoundReport
            An object that renders itself, as text and in notebooks.
        """
        # theory is not needed to fit or predict
        from gce.theory import bound_report

        return bound_report(self, X, y, delta, **given)

    def _pruning_data(self, given: FitInput) -> tuple[Any, Any]:
        if given.y is not None:
            return self.result_, edit_data(self, self.result_, given)
        result = editing.as_one_simplex(self.result_)
        return result, imitation_data(self, result, given)

    def _response(self) -> ResponseMethod:
        """Which predictions of external models are used."""
        result = self.result_
        return (
            PredictedValues(len(result.offset)) if result.target.classes is None else RawScores(result.target.classes)
        )

    @contextmanager
    def _computing(self) -> Iterator[None]:
        with torch.no_grad(), torch_threads(self.n_jobs), limited(self.n_jobs):
            yield
