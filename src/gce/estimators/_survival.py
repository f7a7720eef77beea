"""The task of survival analysis: how raw scores become risks and survival functions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gce._utils.devices import as_numpy
from gce._utils.params import short_repr
from gce.estimators._base import Array, ConvexModel
from gce.losses import links
from gce.preprocessing.targets import as_floats
from gce.training.survival import SurvivalTarget


class Survival(ConvexModel):
    """Predicts when events happen, from times of which some are censored."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags

    def learn_target(
        self, y: NDArray[Any], weight: Array, order: list[Any] | None = None
    ) -> tuple[SurvivalTarget, Array, None]:
        """What is predicted, and events and times ``(n, 2)`` of weights ``(n,)`` encoded."""
        return SurvivalTarget.learn(y, self.loss, weight)

    @property
    def _target(self) -> SurvivalTarget:
        return cast(SurvivalTarget, self.result_.target)

    @property
    def event_times_(self) -> Array:
        """The times of events in the fit, increasing; of more than a thousand, evenly spread ones."""
        return self._target.times

    @property
    def baseline_(self) -> Array:
        """The cumulative baseline hazard at ``event_times_``, by Breslow's estimate on held-out rows."""
        return self.result_.calibration.baseline

    def predict(self, X: Any) -> Array:
        """Predict risks: the higher, the earlier the event.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Returns
        -------
        array of shape (n,)
            With proportional hazards, in proportion to the hazard; else the cumulative hazard until the time of an
            event, on average over the events of the fit. Both on the scale of those of all rows together.
        """
        return self.predict_from_raw(self.raw_predict(X))

    def predict_from_raw(self, pred: Tensor) -> Array:
        """Risks from raw scores ``(n, k)``."""
        return self.result_.target.predicted(self.loss_, pred)

    def predict_cumulative_hazard_function(self, X: Any, times: ArrayLike | None = None) -> Array:
        """Predict the cumulative hazard, the expected number of events until a time if they could be repeated.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        times : array-like of shape (t,), optional
            Default: ``event_times_``. Between two of these the hazard is constant; after the last the function is not
            known, and stays as it is there.

        Returns
        -------
        array of shape (n, t)
        """
        pred = self.raw_predict(X)
        return self._target.cumulative_hazard(pred, self.baseline_, self._check_times(times))

    def predict_survival_function(self, X: Any, times: ArrayLike | None = None) -> Array:
        """Predict the probabilities that there is no event until a time.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        times : array-like of shape (t,), optional
            As in ``predict_cumulative_hazard_function``.

        Returns
        -------
        array of shape (n, t)
            A plain array; where scikit-survival's functions are needed, each row is the ``y`` of a
            ``sksurv.functions.StepFunction`` whose ``x`` are the times.
        """
        return self.survival_from_raw(self.raw_predict(X), self._check_times(times))

    def survival_from_raw(self, pred: Tensor, times: Array) -> Array:
        """Probabilities ``(n, t)`` of no event until times ``(t,)``, from raw scores ``(n, k)``."""
        hazard = self._target.cumulative_hazard(pred, self.baseline_, times)
        return links.exp(torch.from_numpy(-hazard)).numpy()

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Harrell's concordance of the predicted risks.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)
        y : structured array of shape (n,), or array-like or frame of shape (n, 2)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        # fits do not need it
        from gce.training.metrics import concordance_index

        return concordance_index(y, self.predict(X), sample_weight)

    def _check_times(self, times: ArrayLike | None) -> Array:
        if times is None:
            return self.event_times_
        given = as_floats(as_numpy(times, "times"), "times")
        given = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
        if given.ndim != 1:
            raise ValueError(f"times must be of shape (t,), got {short_repr(times)}")
        if np.isnan(given).any() or (given < 0).any():
            raise ValueError(f"times must not be negative, got {given[~(given >= 0)][0]:g}")
        return given
