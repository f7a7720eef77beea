"""What all convex models share: the fitted attributes, raw predictions, files and reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from gce._utils.devices import as_numpy
from gce._utils.parallel import limited
from gce._utils.params import (
    AUTO,
    FLAG,
    JOBS,
    NONE,
    SCORING,
    SEED,
    Rule,
    Rules,
    among,
    check_keywords,
    check_settable,
    instance,
    within,
)
from gce.estimators._objects import check_owners
from gce.estimators._validation import read_table
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.losses import Loss
from gce.preprocessing import Frame, Table
from gce.preprocessing.mixed import Rows
from gce.preprocessing.sparse import Matrix
from gce.training.result import FitResult
from gce.training.scores import encode_rows, raw_scores
from gce.training.sklearn_callbacks import CALLBACK_SUPPORT

if TYPE_CHECKING:
    from gce.inspection.shapley import ShapExplanation
    from gce.preprocessing.shards import Shards

Array = NDArray[np.float64]


class ConvexModel(*CALLBACK_SUPPORT, BaseEstimator):  # type: ignore[misc]
    """A convex combination of models around an offset, whatever is predicted and however it is learned."""

    #: Rules of parameters that all models have; columns and splits are checked where the rows are known.
    parameter_rules: ClassVar[Rules] = {
        "loss": instance("a name or a Loss object", str, Loss),
        # whose square, and that of residuals, is finite
        "offset": AUTO | within(-1e100, 1e100),
        "scale": among("auto", "each", "common", "robust"),
        "clip": Rule(within(0, np.inf, "(]").accepts, "positive") | NONE,
        "validation_fraction": within(0, 1, "()") | NONE,
        "scoring": SCORING,
        "device": instance("the name of a torch device", str, torch.device),
        "n_jobs": JOBS,
        "random_state": SEED,
    }

    _result: FitResult
    n_jobs: int | None
    monotonic_cst: Mapping[str, int] | ArrayLike | None
    #: Only trees can keep columns apart: models of networks have no such parameter.
    interaction_cst: str | Sequence[Collection[int | str]] | None = None
    #: Only greedy regressors clip what they predict.
    clip_predictions: str | None = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse unknown parameters before ``__init__`` does, with our names for those of other libraries."""
        check_keywords(cls, kwargs)
        return super().__new__(cls)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_result" in vars(self)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an object, such as ``basis__hidden``, where the object itself was given."""
        check_owners(self, params)
        check_settable(type(self), params)
        super().set_params(**params)
        return self

    # Fitted attributes.

    @property
    def result_(self) -> FitResult:
        """The result of the fit, which all other fitted attributes are part of."""
        # asked for several times in a prediction: the check of scikit-learn is slow
        if "_result" not in vars(self):
            check_is_fitted(self)
        return self._result

    @property
    def ensemble_(self) -> ConvexEnsemble:
        """The frozen atoms and their weights."""
        return self.result_.ensemble

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One dict per round or epoch, and a last one for the ensemble of several families; an edited model has none.

        Values are means over members, whose own are in ``members``. ``validation`` is what early stopping minimises,
        the mean loss (or the negative score) on the rows that members hold out. Rounds and weights are chosen on these
        rows, those of single families as well as those of their ensemble, so that all entries are comparable, and a
        little too good. ``result_.held_out`` has metrics of the predictions for these rows.
        """
        if self.result_.edited:
            raise AttributeError("an edited model has no history_: use the model that was edited")
        return self.result_.history

    @property
    def n_iter_(self) -> int:
        """How many rounds or epochs all families ran; ``history_`` of several has one entry more, for the ensemble."""
        if self.result_.edited:
            raise AttributeError("an edited model has no n_iter_: use the model that was edited")
        return self.result_.n_rounds

    @property
    def n_samples_fit_(self) -> int:
        """Rows of positive sample weight, those given as ``X_val`` left out."""
        return self.result_.n_samples

    @property
    def offset_(self) -> Array:
        """The centre of the hull, ``(k,)``."""
        return self.result_.offset

    @property
    def bound_(self) -> Array:
        """Half the width of the hull, ``(k,)``."""
        return self.result_.bound

    @property
    def loss_(self) -> Loss:
        """The loss."""
        return self.result_.loss

    @property
    def table_(self) -> Table:
        """How columns are encoded: names, kinds, categories, missing values, scaling."""
        return self.result_.table

    @property
    def feature_importances_(self) -> Array:
        """What each column lowered the risk by, as a share of 1, ``(d,)``: see docs/explanations.md."""
        importances = self.result_.importances
        if importances is None:
            raise AttributeError(
                "feature_importances_ are known of trees and networks of this version of gce: this model comes from an "
                "earlier version, or has atoms of other kinds or external models; fit again, or use "
                "sklearn.inspection.permutation_importance"
            )
        return importances.copy()

    # Predictions.

    def raw_predict(self, X: Any) -> Tensor:
        """Raw scores before the inverse link, ``(n, k)``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        Tensor of shape (n, k)
            Within ``offset_ +- bound_``.
        """
        pred = self.raw_predict_coded(self.code_rows(X))
        for model in self.result_.external:
            if model.weight > 0:
                pred += model.weight * model(as_numpy(X))
        return pred

    def raw_predict_coded(self, X: Matrix) -> Tensor:
        """Raw scores ``(n, k)`` of coded rows, without those of external models."""
        with torch.no_grad(), limited(self.n_jobs):
            return raw_scores(self.result_, X)

    def read_rows(self, X: Any) -> Frame:
        """Rows column by column, validated to be like those of the fit."""
        if "_result" not in vars(self):
            check_is_fitted(self)
        return read_table(self, X)

    def code_rows(self, X: Any) -> Matrix:
        """Rows with categories as codes, before columns are scaled."""
        return self.result_.table.encode(self.read_rows(X))

    def encode_rows(self, X: Any) -> Rows:
        """Rows ``(n, d')`` as atoms see them: columns scaled, categories and missing values as indicators or codes."""
        return encode_rows(self.result_, self.code_rows(X))

    def predict_shards(
        self, shards: Shards, folder: str | Path, *, method: Literal["predict", "predict_proba"] = "predict"
    ) -> list[Path]:
        """Predict rows in files, and write the predictions to files of a folder.

        Each row group or batch has one Parquet file, ``part-000000.parquet`` and so on, with its rows in order. Where
        files of an earlier call are there, which was killed or ended with an error, it is gone on with. Where a process
        group stands (:func:`gce.distributed.process_group`), each process predicts some of the row groups, and the
        folder must be the same for all.

        Parameters
        ----------
        shards : Shards
            Rows with the columns of the fit, in any order; others are ignored.
        folder : str or Path
            Created if it does not exist. That of another model, method or other rows is refused.
        method : {"predict", "predict_proba"}, default="predict"
            The columns of the files are ``prediction``, or ``prediction_0``, ``prediction_1`` for several targets; for
            probabilities ``proba_`` and the class.

        Returns
        -------
        list of Path
            The files of all row groups, in order.

        Raises
        ------
        ValueError
            The folder holds other predictions, or the rows lack a column of the fit.
        """
        # needs pyarrow, as nothing else here does
        from gce.estimators._shard_predictions import predict_shards

        return predict_shards(self, shards, Path(folder), method)

    # Explanations of predictions.

    def shap_values(
        self, X: Any, background: Any = None, *, n_permutations: int = 16, random_state: Any = 0
    ) -> ShapExplanation:
        """Shapley values: what each column adds to the raw score of each row.

        Parts of a column (its categories, missing values, calendar parts, components of text, statistics of the
        target) are known or unknown together: a column is one player. See docs/explanations.md.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        background : array-like or data frame of shape (b, d), optional
            Rows that stand for what is not known, a hundred or so; values are means over them ("interventional").
            Default: a node of a tree whose column is not known is passed both ways, by the weights of the training rows
            ("path-dependent"); networks then have the average of a column that is not known, the centre it is measured
            from.
        n_permutations : int, default=16
            Pairs of permutations, for each row of the background, where networks (or the forest of a classifier,
            against a background) look at more than 12 columns; with fewer columns all coalitions are evaluated.
        random_state : int, RandomState or None, default=0
            Draws the permutations.

        Returns
        -------
        ShapExplanation
            Values, base values and the rows, in the layout of ``shap.Explanation``, and the standard errors of the
            values where there are any.
        """
        # not needed to fit or predict
        from gce.estimators._explanations import shap_values

        return shap_values(self, X, background, n_permutations, random_state)

    def shap_interaction_values(self, X: Any) -> ShapExplanation:
        """Interaction values of pairs of columns, for ensembles of trees without a background.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        ShapExplanation
            Values of shape (n, d, d) or (n, d, d, k), whose sums over the second column are the Shapley values.
        """
        # not needed to fit or predict
        from gce.estimators._explanations import shap_interaction_values

        return shap_interaction_values(self, X)

    def _with(self, result: FitResult) -> Self:
        """The same estimator with another result."""
        other = copy(self)
        other._result = result
        return other

    # Files and pages.

    def save(self, path: str | Path, *, resumable: bool | None = None) -> None:
        """Write the fitted model to one file, which :func:`gce.load` reads; never pickle.

        Parameters
        ----------
        path : str or Path
            Usually ends in ``.safetensors``. An existing file is replaced only once the new one is complete.
        resumable : bool, optional
            Whether a greedy ensemble also keeps what only ``warm_start`` and ``staged_predict`` need: every atom of
            every round, and the weights after each. Such files are several times larger. Default: where the model has
            ``warm_start=True``.
        """
        # the table of classes is made of subclasses of this one
        from gce.estimators.loading import ESTIMATORS
        from gce.io.models import save

        (FLAG | NONE).check("resumable", resumable)
        save(self, path, ESTIMATORS, bool(vars(self).get("warm_start")) if resumable is None else resumable)

    def to_onnx(self, path: str | Path | IO[bytes]) -> None:
        """Write the model as one ONNX graph: encoder, ensemble and inverse link.

        Inputs and outputs are described in docs/onnx.md. Needs ``pip install "greedy-convex-ensemble[onnx]"``.

        Parameters
        ----------
        path : path or file
            A path is written completely or not at all; a binary file must be open for writing.
        """
        # half a second of imports that nothing else needs
        from gce.io.onnx import to_onnx

        to_onnx(type(self).__name__, self.result_, path)

    def report(self, path: str | Path, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> None:
        """Write an HTML page about this model and its predictions for given rows.

        Parameters
        ----------
        path : str or Path
            The file; its folder must exist.
        X : array-like or data frame of shape (n, d)
            Rows that the model has not seen.
        y : array-like of shape (n,) or (n, k)
        sample_weight : array-like of shape (n,), optional
            Samples with zero weight are ignored.
        """
        from gce.inspection.report import write

        write(self, path, X, y, sample_weight)
