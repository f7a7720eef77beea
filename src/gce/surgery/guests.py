"""Guests: fitted models of any library among the atoms of an ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce.responses import Response

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Guest:
    """A model that answers for raw rows, as the user gives them.

    Parameters
    ----------
    name : str
    model : fitted model
    response : Response
        How it is asked.
    offset, bound : Tensor of shape (k,)
        Its answers count from the offset and are clipped to the bound: the ensemble keeps its guarantee.
    weights : array of shape (M,)
        In each share of the ensemble.
    """

    name: str
    model: Any
    response: Response
    offset: Tensor
    bound: Tensor
    weights: Array

    @property
    def weight(self) -> float:
        """In the whole ensemble."""
        return float(self.weights.mean())

    @property
    def foreign(self) -> str:
        """What to call it where only gce's own atoms may be."""
        return f"guest {self.name!r}"

    def __call__(self, X: Any) -> Tensor:
        """Answers ``(n, k)`` in float64."""
        answer = torch.from_numpy(self.response.ask(self.name, self.model, X)).to(self.offset.device)
        return torch.clamp(answer - self.offset, -self.bound, self.bound).contiguous()
