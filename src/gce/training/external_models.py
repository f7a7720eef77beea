"""Fitted models of any library among the atoms of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.training.predictions import ResponseMethod

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExternalModel:
    """A model that predicts from raw rows, as the user gives them.

    Parameters
    ----------
    name : str
    model : fitted model
    response : ResponseMethod
        Which of its methods is called.
    offset, bound : Tensor of shape (k,)
        Its predictions are measured from the offset and clipped to the bound: the ensemble keeps its guarantee.
    weights : array of shape (M,)
        Its weight in each simplex of the ensemble.
    """

    name: str
    model: Any
    response: ResponseMethod
    offset: Tensor
    bound: Tensor
    weights: Array

    @property
    def weight(self) -> float:
        """The weight in the whole ensemble."""
        return float(self.weights.mean())

    @property
    def unstorable_name(self) -> str:
        """How to refer to it where only atoms of gce are possible."""
        return f"external model {self.name!r}"

    def __call__(self, X: Any) -> Tensor:
        """Predictions ``(n, k)`` in float64, measured from the offset."""
        answer = torch.from_numpy(self.response.predict(self.name, self.model, X)).to(self.offset.device)
        return torch.clamp(answer - self.offset, -self.bound, self.bound).contiguous()
