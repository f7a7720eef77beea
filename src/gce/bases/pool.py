"""A finite pool of given models: the oracle is exact, so the duality gap is a certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gce._utils.params import NONE, Rule, Rules, check_parameters, short_repr
from gce._utils.random import RoundStreams
from gce.bases.base import Atoms, Basis
from gce.bases.context import FitContext
from gce.bases.objectives import Objective
from gce.bases.proposal import Proposal
from gce.preprocessing.sparse import Inputs

Function = Callable[[np.ndarray], ArrayLike]


def _are_functions(given: Any) -> bool:
    return isinstance(given, Sequence) and len(given) > 0 and all(map(callable, given))


class Pool(Basis):
    """Given functions, or given output matrices.

    Parameters
    ----------
    functions : sequence of callables, optional
        Each maps standardised rows ``(n, d)`` (a float64 array) to outputs ``(n,)`` or ``(n, k)``, measured from the
        ensemble's offset and within its bound.
    outputs : array of shape (P, n, k) or (P, n), optional
        Outputs of ``P`` models on the very rows of the fit; such a pool cannot predict for other rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Pool
    >>> X = np.linspace(-1, 1, 40).reshape(-1, 1)
    >>> pool = Pool(functions=[lambda X: np.tanh(X[:, 0]), lambda X: -np.tanh(X[:, 0])])
    >>> model = GCERegressor(basis=pool, bound=1.0, cv=None, max_iter=20, random_state=0).fit(X, X[:, 0] / 2)
    >>> bool(model.score(X, X[:, 0] / 2) > 0.9)
    True
    """

    exact: ClassVar[bool] = True
    parameter_rules: ClassVar[Rules] = {"functions": Rule(_are_functions, "a list of one callable or more") | NONE}

    def __init__(self, functions: Sequence[Function] | None = None, outputs: ArrayLike | None = None) -> None:
        self.functions = functions
        self.outputs = outputs

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        every = context.cached((X, self), "outputs", lambda: self._evaluate(X, len(objective.bound)))
        beyond = (every.abs() > objective.bound * (1 + 1e-12)).flatten(1).any(1).nonzero().flatten()
        if len(beyond):
            raise ValueError(
                f"pool member {int(beyond[0])} has outputs up to {float(every[beyond[0]].abs().max()):.6g}, beyond the "
                f"bound {objective.bound.tolist()}; scale the member or raise the bound"
            )
        keys = objective.score(every[:, : objective.rows]).argmin(1)
        return Proposal(PoolAtoms(every, X, self.functions, keys))

    def _evaluate(self, X: Inputs, k: int) -> Tensor:
        """Outputs of the whole pool on ``X``, ``(P, N, k)``."""
        if (self.functions is None) == (self.outputs is None):
            raise ValueError("Pool needs either functions or outputs, and not both")
        if self.functions is not None:
            check_parameters(self)
            found = [evaluate(f, X) for f in self.functions]
            for j, out in enumerate(found):
                if out.shape != (len(X), k):
                    raise ValueError(
                        f"pool function {j} returned shape {tuple(out.shape)} for {len(X)} rows of X: it must return "
                        f"shape {(len(X), k)}, one column for each of {k} raw scores (targets or classes)"
                    )
            return torch.stack(found)
        every = torch.as_tensor(_matrices(self.outputs), device=X.device)
        shape = tuple(every.shape)
        every = every[..., None] if every.ndim == 2 else every
        if every.ndim != 3 or every.shape[1:] != (len(X), k):
            short = f" or (P, {len(X)})" if k == 1 else ""
            raise ValueError(
                f"Pool outputs must have shape (P, {len(X)}, {k}){short}, one row of X each and one column for each of "
                f"{k} raw scores (targets or classes), got {shape}"
            )
        return every


def _matrices(outputs: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(outputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"Pool: outputs must be an array of numbers, got {short_repr(outputs)}") from error


def evaluate(function: Function, X: Inputs) -> Tensor:
    """One function's outputs as a float64 tensor ``(n, k)``."""
    if not isinstance(X, Tensor):
        raise ValueError(
            "the functions of a Pool take dense rows, got sparse ones: give X.toarray(), or use gce.bases.Neural"
        )
    out = torch.as_tensor(np.asarray(function(X.detach().cpu().numpy()), dtype=np.float64), device=X.device)
    return out[:, None] if out.ndim == 1 else out


class PoolAtoms(Atoms):
    """Members of a pool, identified by their index in it."""

    keys: Tensor

    def __init__(
        self, every: Tensor | None, X: Inputs | None, functions: Sequence[Function] | None, keys: Tensor
    ) -> None:
        super().__init__()
        self.functions, self.keys = functions, keys
        self._every, self._X = every, X

    @property
    def unstorable_name(self) -> str:
        return f"pool member {int(self.keys[0])}"

    def __len__(self) -> int:
        return len(self.keys)

    def forward(self, X: Inputs) -> Tensor:
        if self._every is not None and X is self._X:
            return self._every[self.keys]
        if self.functions is None:
            raise ValueError(
                "a Pool of output matrices knows only the rows it was given; build it from functions to predict"
            )
        known = {int(key): evaluate(self.functions[key], X) for key in self.keys.unique()}
        return torch.stack([known[int(key)] for key in self.keys])

    def select(self, index: Tensor) -> Self:
        return type(self)(self._every, self._X, self.functions, self.keys[index])

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        # side by side they leave the fit: its cached outputs stay behind
        return cls(None, None, parts[0].functions, torch.cat([part.keys for part in parts]))
