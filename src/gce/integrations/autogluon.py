"""gce as a model of AutoGluon's ``TabularPredictor``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from gce._utils.optional import import_optional
from gce.estimators import GCEClassifier, GCERegressor, load

AbstractModel: Any = import_optional("autogluon.core.models", "autogluon").AbstractModel
TimeLimitExceeded: Any = import_optional("autogluon.core.utils.exceptions", "autogluon").TimeLimitExceeded

#: The file in a model's folder that holds the gce model.
FILE = "model.safetensors"
#: Bytes of a process that has loaded torch and AutoGluon, before it has rows.
_PROCESS = 700 * 2**20
#: Numbers in double precision at the peak of a fit: for every row and input, for every row, and for every row, output
#: and member. By benchmarks/autogluon_memory.py default fits need 0.53 to 0.95 of the estimate.
_PER_INPUT, _PER_ROW, _PER_OUTPUT = 6, 200, 30
#: Flags that a column of categories becomes at most.
_FLAGS = 254


class GCEModel(AbstractModel):
    """A greedy convex ensemble as a model of AutoGluon.

    Every parameter of :class:`gce.GCERegressor` and :class:`gce.GCEClassifier` is a hyperparameter of the same name.
    The rows that AutoGluon holds out are used for early stopping and for the weights of the families; without them, as
    in ``refit_full``, gce holds out rows itself by cross-validation. Numbers, categories, text and dates go to gce as
    AutoGluon's feature generators leave them.

    Parameters
    ----------
    **kwargs
        Those of ``autogluon.core.models.AbstractModel``: ``path``, ``name``, ``problem_type``, ``eval_metric``,
        ``hyperparameters``.

    Examples
    --------
    >>> from autogluon.tabular import TabularPredictor
    >>> from gce.integrations.autogluon import GCEModel
    >>> predictor = TabularPredictor("price").fit(train, hyperparameters={GCEModel: {}, "CAT": {}})
    """

    ag_key = "GCE"
    ag_name = "GCE"
    #: After LightGBM (90), RealMLP (75) and CatBoost (70): a default fit takes a little longer than CatBoost's.
    ag_priority = 65
    seed_name = "random_state"
    _supported_problem_types: ClassVar[list[str]] = ["binary", "multiclass", "regression"]
    _default_auxiliary_params_extra: ClassVar[dict[str, Any]] = {
        "valid_raw_types": ["bool", "int", "float", "category", "object", "datetime"],
        "ignored_type_group_special": ["image_path", "image_bytearray"],
    }
    default_resources_physical_cores_only = True

    def _get_valid_features(self, feature_metadata: Any = None) -> list[str]:
        # counts of n-grams are AutoGluon's view of text for models that cannot read it
        valid = super()._get_valid_features(feature_metadata=feature_metadata)
        if not feature_metadata.get_features(valid_raw_types=["object"], required_special_types=["text"]):
            return valid
        ngrams = set(feature_metadata.get_features(required_special_types=["text_ngram"]))
        return [feature for feature in valid if feature not in ngrams]

    def _fit(
        self,
        X: Any,
        y: Any,
        X_val: Any = None,
        y_val: Any = None,
        time_limit: float | None = None,
        num_cpus: int | None = None,
        num_gpus: float | None = None,
        sample_weight: Any = None,
        sample_weight_val: Any = None,
        **kwargs: Any,
    ) -> None:
        start = time.monotonic()
        X = self.preprocess(X, y=y, is_train=True)
        held_out: dict[str, Any] = {}
        if X_val is not None:
            held_out = {"X_val": self.preprocess(X_val), "y_val": y_val, "sample_weight_val": sample_weight_val}
        kind = GCERegressor if self.problem_type == "regression" else GCEClassifier
        settings = {"n_jobs": num_cpus, "device": "cuda" if num_gpus else "cpu", "verbose": False}
        model = kind(**{**settings, **self._get_model_params()})
        if time_limit is not None:
            left = time_limit - (time.monotonic() - start)
            if left <= 0:
                raise TimeLimitExceeded
            model.set_params(time_limit=left if model.time_limit is None else min(left, model.time_limit))
            # a refit on all rows has no limit of its own in AutoGluon
            self.params_trained["time_limit"] = model.time_limit
        self.model: Any = model.fit(X, y, sample_weight, **held_out)

    def _predict_proba(self, X: Any, **kwargs: Any) -> Any:
        X = self.preprocess(X, **kwargs)
        if self.problem_type == "regression":
            return self.model.predict(X)
        # AutoGluon's labels are 0 to k - 1; one that a fold lacks has no column in gce
        proba = np.zeros((len(X), self.num_classes))
        proba[:, self.model.classes_] = self.model.predict_proba(X)
        return self._convert_proba_to_unified_form(proba)

    def save(self, path: str | None = None, verbose: bool = True) -> str:
        """Save the model: AutoGluon's part as it saves every model, gce's in a file of its own.

        Parameters
        ----------
        path : str, optional
            The folder. Default: ``self.path``.
        verbose : bool, default=True
            Whether AutoGluon logs the path.

        Returns
        -------
        str
            The folder.
        """
        model: Any = self.model
        # AutoGluon pickles this object: the file's name stands in it for the model
        self.model = None if model is None else FILE
        try:
            path = super().save(path=path, verbose=verbose)
        finally:
            self.model = model
        if model is not None:
            model.save(Path(path) / FILE)
        return path

    @classmethod
    def load(cls, path: str, reset_paths: bool = True, verbose: bool = True) -> Self:
        """Load a model that was saved by ``save``.

        Parameters
        ----------
        path : str
            The folder.
        reset_paths : bool, default=True
            Whether the model's path becomes this one.
        verbose : bool, default=True
            Whether AutoGluon logs the path.

        Returns
        -------
        GCEModel
            On a GPU if it was fitted on one and there is one here.
        """
        model = super().load(path=path, reset_paths=reset_paths, verbose=verbose)
        if model.model is not None:
            model.model = load(Path(path) / model.model, device="auto" if model.fit_num_gpus else "cpu")
        return model

    @classmethod
    def _estimate_memory_usage_static(
        cls, *, X: Any, hyperparameters: Any = None, num_classes: int | None = 1, X_val: Any = None, **kwargs: Any
    ) -> int:
        """Bytes at the peak of a default fit: the process, the encoded rows, and what rounds hold for every row."""
        categories = X.select_dtypes(["category", "object"])
        inputs = X.shape[1] - categories.shape[1] + int(categories.nunique().clip(upper=_FLAGS).sum())
        outputs = num_classes if num_classes and num_classes > 2 else 1
        members = 1 if X_val is not None or len(X) > 200_000 else 10 if len(X) < 2_000 else 5
        numbers = _PER_INPUT * inputs + _PER_ROW + _PER_OUTPUT * outputs * members
        return int(_PROCESS + 8 * len(X) * numbers)

    def _more_tags(self) -> dict[str, Any]:
        # without X_val gce holds out rows itself, so that a refit needs nothing from the first fit
        return {"can_refit_full": True}
