"""Classes in an order, and several labels per row, as targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_array
from torch import Tensor

from gce._utils.params import look_up, short_repr
from gce.losses import Loss, MultiLabel, Ordinal
from gce.preprocessing.targets import by_label
from gce.training.calibration import Calibration, HeldOutScores, best_temperature
from gce.training.targets import ClassTarget

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OrdinalTarget(ClassTarget):
    """Classes in an order: one output for each class but the last, 1 for rows above it.

    Codes and targets are in this order. What users see has columns of sorted labels instead, which scikit-learn's
    metrics assume (``label_order``).

    Parameters
    ----------
    classes : array of shape (classes,)
        The labels, in their order, also in files.
    class_weight : dict, "balanced" or None
        Factors of the sample weights.
    temperature : float or "auto"
        What probabilities divide scores by; "auto" is found on held-out rows.
    """

    @classmethod
    def learn(
        cls,
        y: Any,
        class_weight: Mapping[Any, float] | str | None,
        temperature: float | str,
        order: list[Any] | None = None,
    ) -> tuple[OrdinalTarget, Array, NDArray[np.intp]]:
        """The task of labels ``(n,)``, the labels encoded, and their codes.

        Classes are in the ``order`` of categories, those without rows left out; by default they are sorted.
        """
        classes = ClassTarget.learn(y, class_weight, temperature)[0].classes
        if order is not None:
            place = {category: at for at, category in enumerate(order)}
            classes = classes[np.argsort([place[label] for label in classes.tolist()])]
        found = cls(classes, class_weight, temperature)
        codes = found._codes_of(y)
        return found, found._above(codes), codes

    @property
    def label_order(self) -> NDArray[np.intp] | None:
        order = np.argsort(self.classes, kind="stable")
        return None if (order[:-1] < order[1:]).all() else order

    @property
    def outputs(self) -> int:
        return len(self.classes) - 1

    def _above(self, codes: NDArray[np.intp]) -> Array:
        return (codes[:, None] > np.arange(self.outputs)).astype(np.float64)

    def encode(self, y: Any) -> Array:
        return self._above(self._codes_of(y))

    def encode_more(self, y: Any) -> tuple[OrdinalTarget, Array, NDArray[np.intp]]:
        _, _, codes = super().encode_more(y)
        return self, self._above(codes), codes

    def codes(self, target: Array) -> NDArray[np.intp]:
        return target.sum(1).astype(np.intp)

    def summed(self, target: Array) -> tuple[Array, None]:
        # the mean class tells more than the frequencies of single ones
        return self.codes(target)[:, None].astype(np.float64), None

    def predicted(self, loss: Loss, pred: Tensor) -> NDArray[Any]:
        return self.classes[loss.predict(pred).cpu().numpy().argmax(1)]

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        # one score per class, the largest for the class that is predicted
        scores = by_label(loss.log_predict(pred).cpu().numpy(), self.label_order)
        return scores[:, 1] - scores[:, 0] if len(self.classes) == 2 else scores

    def pick_loss(self, given: str | Loss) -> Loss:
        return look_up("loss", given, {"ordinal": Ordinal()}, Ordinal)

    def check_monotonic(self) -> None:
        """The probability to be above each class can rise or fall with a column."""

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration:
        if self.temperature != "auto":
            return Calibration(float(self.temperature))
        classes = len(self.classes)
        # of a row of unknown class
        above = torch.arange(classes - 1, 0, -1, dtype=rows.y.dtype, device=rows.y.device) / classes
        return Calibration(best_temperature(loss, rows, above))

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        return Calibration(1.0 if self.temperature == "auto" else float(self.temperature))


@dataclass(frozen=True, eq=False)
class MultiLabelTarget:
    """Several labels, of which a row may have any number.

    Parameters
    ----------
    outputs : int
        How many labels there are.
    temperature : float or "auto"
        What probabilities divide scores by; "auto" is found on held-out rows.

    Attributes
    ----------
    classes, label_order : None
    one_dimensional : bool
        Always False: predictions are of shape ``(n, labels)``.
    """

    outputs: int
    temperature: float | str = "auto"

    classes: ClassVar[None] = None
    label_order: ClassVar[None] = None
    classifies: ClassVar[bool] = True
    has_intervals: ClassVar[bool] = False
    one_dimensional: ClassVar[bool] = False
    repeats: ClassVar[int] = 1

    @classmethod
    def learn(
        cls, y: Any, class_weight: Mapping[Any, float] | str | None, temperature: float | str
    ) -> tuple[MultiLabelTarget, Array, None]:
        """The task of labels ``(n, labels)`` of 0 and 1, and these as numbers."""
        if class_weight is not None:
            raise ValueError(
                f"class_weight={short_repr(class_weight)} is for classes, of which a row has one, but y has "
                f"{y.shape[1]} labels: leave it out, or give sample_weight"
            )
        found = cls(np.shape(y)[1], temperature)
        return found, found.encode(y), None

    def encode(self, y: Any) -> Array:
        words = np.asarray(y)
        if words.ndim != 2 or words.dtype.kind not in "biuf":
            raise ValueError(
                f"labels must be 0 or 1 in a column each, but y is of shape {words.shape} and has {words.flat[0]!r}"
            )
        target = check_array(y, dtype=np.float64, input_name="y")
        if target.shape[1] != self.outputs:
            raise ValueError(f"the model was fitted to {self.outputs} labels, but y now has {target.shape[1]}")
        wrong = (target != 0) & (target != 1)
        if wrong.any():
            raise ValueError(f"labels must be 0 or 1, but y has {target[wrong][0]:g}")
        return target

    def encode_more(self, y: Any) -> tuple[MultiLabelTarget, Array, None]:
        return self, self.encode(y), None

    def decode(self, target: Array) -> NDArray[Any]:
        return target.astype(np.intp)

    def summed(self, target: Array) -> tuple[Array, None]:
        return target, None

    def predicted(self, loss: Loss, pred: Tensor) -> NDArray[Any]:
        return (pred > 0).cpu().numpy().astype(np.intp)

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        return pred.cpu().numpy()

    def pick_loss(self, given: str | Loss) -> Loss:
        return look_up("loss", "log_loss" if given == "auto" else given, {"log_loss": MultiLabel()}, MultiLabel)

    def default_bound(self, loss: Loss, y: Tensor, offset: Tensor) -> Tensor:
        return torch.full_like(offset, 10.0)

    def output_scale(self, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        return torch.ones_like(offset)

    def warn_of_bound(self, loss: Loss, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Probabilities reach every label to some degree."""

    def row_factors(self, target: Array, weight: Array) -> float:
        return 1.0

    def check_monotonic(self) -> None:
        """The probability of each label can rise or fall with a column."""

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration:
        if self.temperature != "auto":
            return Calibration(float(self.temperature))
        half = torch.full_like(rows.y[0], 0.5)
        return Calibration(best_temperature(loss, rows, half))

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        return Calibration(1.0 if self.temperature == "auto" else float(self.temperature))

    def metrics(self, loss: Loss, rows: HeldOutScores) -> dict[str, float]:
        # an import of an estimator does not load it
        from gce.training.metrics import of_labels

        y, probability, weight = (part.cpu().numpy() for part in (rows.y, loss.predict(rows.pred), rows.weight))
        return of_labels(y, self.predicted(loss, rows.pred), probability, weight)

    def stored(self, calibration: Calibration) -> dict[str, Any]:
        return {"_labels": self.outputs, "temperature_": calibration.temperature}

    def again(self, class_weight: Mapping[Any, float] | str | None, temperature: float | str) -> MultiLabelTarget:
        """The same task with other parameters."""
        return replace(self, temperature=temperature)
