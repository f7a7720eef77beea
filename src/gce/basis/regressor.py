"""Any scikit-learn regressor as a class of models: fitted to the quadratic model of an objective, kept in its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from gce.basis.base import Atoms, Basis, Habit
from gce.objectives import Model, Objective
from gce.parameters import Rules, among, check_parameters, shown
from gce.rows import Inputs
from gce.streams import RoundStreams

Array = NDArray[np.float64]

#: A row bends at least by this share of what the one that bends most does: its target is finite, its slope as it was.
_LEAST_BEND = 1e-10
#: Rows are not repeated more often than that on average: their shares are then kept, not their number.
_MOST_REPEATS = 4


class RegressorBasis(Basis):
    """Models of a scikit-learn regressor.

    Each round a clone a member is fitted to ``-D / H`` with row weights ``H``, which is the same problem as lowering
    the quadratic ``sum D g + g^2 H / 2`` of the objective. It sees rows as networks do: numbers scaled, categories and
    gaps as flags, no NaN. Its random states, at any depth, are drawn from the member's stream.

    A regressor that takes several targets gets all outputs at once where rows weigh the same in all of them; otherwise
    there is a clone an output. Row weights are handed on in units of a row. A regressor whose ``fit`` takes no
    ``sample_weight`` gets rows repeated by their weights instead, a row of weight 1.3 once or, by a draw in each round,
    twice: whole numbers, and so equal weights, give each row exactly that often.

    Ensembles of such models are kept by joblib; model files, checkpoints and ONNX refuse them.

    Parameters
    ----------
    estimator : regressor
        Anything with scikit-learn's ``fit`` and ``predict``.
    bound_by : {"scale", "clip"}, default="scale"
        What makes a model one of the class where only its direction counts. "scale": its outputs are multiplied until
        the farthest on the rows that it learned from reaches the bound, and clipped beyond it on others. "clip": they
        stay as long as they are and are only clipped; a model of what is left to learn is then short, and the hull
        holds less. Where the length counts too (``algorithm="nonlinear"``), outputs are clipped.
    """

    parameter_rules: ClassVar[Rules] = {"bound_by": among("scale", "clip")}

    def __init__(self, estimator: Any, bound_by: Literal["scale", "clip"] = "scale") -> None:
        self.estimator = estimator
        self.bound_by = bound_by

    def _check(self) -> None:
        one = self.estimator
        if isinstance(one, type) or not all(hasattr(one, name) for name in ("fit", "predict", "get_params")):
            raise ValueError(
                f"RegressorBasis needs a scikit-learn regressor such as Ridge() as its estimator, got {shown(one)}"
            )
        if is_classifier(one):
            raise ValueError(f"RegressorBasis needs a regressor, whatever the task, got the classifier {one!r}")
        check_parameters(self)

    @property
    def habit(self) -> Habit:
        return Habit("boosting", calls=100)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams) -> RegressorAtoms:
        self._check()
        if not isinstance(X, Tensor):
            raise ValueError(
                "a RegressorBasis takes dense rows, got sparse ones: give X.toarray(), or use basis='neural'"
            )
        model, rows, n = objective.model, _written_out(X), objective.rows
        bound = objective.bound.cpu()
        models, factor, raw = [], [], []
        for m, generator in enumerate(rng.members):
            D, H = (t[m].double().cpu().numpy() for t in (model.slope, model.bend))
            # where nothing bends any more, all rows do alike
            H = np.where(H.sum(0) > 0, H, 1.0)
            # in units of a row: a row of weight 2 is two rows
            row = float(model.unit[m]) * H.sum(0)
            heads = self._fitted(rows[:n], D / row, H / row, generator)
            raw.append(_asked(heads, rows))
            models.append(heads)
            used = ((D != 0) | (H > 0)).any(1)
            farthest = float(np.abs(raw[-1][:n][used] / bound.numpy()).max())
            stretched = self.bound_by == "scale" and model.free and farthest > 0
            factor.append(1 / farthest if stretched else 1.0)
        atoms = RegressorAtoms(models, torch.tensor(factor, dtype=torch.float64), bound)
        outs = atoms.bounded(torch.from_numpy(np.stack(raw)))
        atoms.to(X.device)
        atoms.known = X, outs.to(X.device)
        atoms.length = best_step(model, atoms.known[1][:, :n]) if model.free else None
        # outputs on the rows of the fit are asked for in the round that made them, and in no other
        if (last := getattr(self, "_last", None)) is not None:
            last.known = None
        self._last = atoms
        return atoms

    def _fitted(self, X: Array, D: Array, H: Array, generator: torch.Generator) -> tuple[Any, ...]:
        """One fitted regressor for all outputs, or one each."""
        if D.shape[1] > 1 and (H[:, :1] == H).all() and get_tags(self.estimator).target_tags.multi_output:
            return (self._learned(X, D, H[:, 0], generator),)
        return tuple(self._learned(X, D[:, j], H[:, j], generator) for j in range(D.shape[1]))

    def _learned(self, X: Array, D: Array, H: Array, generator: torch.Generator) -> Any:
        """A clone fitted to the rows that have a slope or a weight."""
        one = clone(self.estimator)
        seeds = [name for name in sorted(one.get_params()) if name.split("__")[-1] == "random_state"]
        one.set_params(**{name: int(torch.randint(2**31 - 1, (), generator=generator)) for name in seeds})
        rows = np.flatnonzero((H > 0) | (D.reshape(len(D), -1) != 0).any(1))
        weight = np.maximum(H[rows], _LEAST_BEND * H.max())
        target = -D[rows] / (weight if D.ndim == 1 else weight[:, None])
        if has_fit_parameter(one, "sample_weight"):
            one.fit(X[rows], target, sample_weight=weight)
        else:
            some = _repeated(weight, float(torch.rand((), generator=generator, dtype=torch.float64)))
            one.fit(X[rows[some]], target[some])
        return one

    def __getstate__(self) -> dict[str, Any]:
        # rows belong to a fit
        return {name: value for name, value in super().__getstate__().items() if name != "_last"}


def _written_out(X: Inputs) -> Array:
    return X.double().cpu().numpy() if isinstance(X, Tensor) else X.toarray().astype(np.float64, copy=False)


def _asked(heads: Sequence[Any], rows: Array) -> Array:
    """What fitted regressors, one for all outputs or one each, say of rows: ``(n, k)``."""
    out = np.column_stack([np.asarray(head.predict(rows), dtype=np.float64).reshape(len(rows), -1) for head in heads])
    if not np.isfinite(out).all():
        raise ValueError(f"{heads[0]!r} predicts numbers that are not finite: give it more regularisation")
    return out


def _repeated(weight: Array, start: float) -> NDArray[np.intp]:
    """Rows repeated by their weights ``(n,)``, rounded up or down so that each comes as often as it should on average.

    Systematic resampling: rows at distances of 1 along the sums of weights, the first at ``start`` in [0, 1).
    """
    ends, n = np.cumsum(weight), len(weight)
    count = max(1, round(float(ends[-1]))) if ends[-1] <= _MOST_REPEATS * n else n
    places = np.searchsorted(ends * (count / ends[-1]), np.arange(count) + start, side="right")
    return np.minimum(places, n - 1)


def best_step(model: Model, outs: Tensor) -> Tensor:
    """How far along outputs ``(M, n, k)``, one a member, a quadratic is least: ``(M,)``, 0 where they lead upwards."""
    down = -(model.slope * outs).sum((1, 2))
    bend = (model.bend * outs.square()).sum((1, 2))
    return torch.where(bend > 0, down / bend, 0.0).clamp(min=0)


class RegressorAtoms(Atoms):
    """Fitted regressors, multiplied and clipped to the bound.

    Parameters
    ----------
    models : sequence of tuples
        Of each atom the regressors: one for all outputs, or one each.
    factor : Tensor of shape (A,)
        What outputs are multiplied by before they are clipped.
    bound : Tensor of shape (k,)
    """

    factor: Tensor
    bound: Tensor
    #: The rows of a fit, and the outputs there ``(A, N, k)``, while it runs.
    known: tuple[Inputs, Tensor] | None = None

    def __init__(self, models: Sequence[tuple[Any, ...]], factor: Tensor, bound: Tensor) -> None:
        super().__init__()
        self.models = list(models)
        self.register_buffer("factor", factor)
        self.register_buffer("bound", bound)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "known": None}

    @property
    def foreign(self) -> str:
        return f"a fitted {type(self.models[0][0]).__name__}"

    def __len__(self) -> int:
        return len(self.models)

    def bounded(self, raw: Tensor) -> Tensor:
        """What the regressors say, ``(A, n, k)``, as outputs of the atoms."""
        return (self.factor[:, None, None] * raw).clamp(-self.bound, self.bound)

    def _outputs(self, atom: int, rows: Array) -> Tensor:
        raw = torch.from_numpy(_asked(self.models[atom], rows)).to(self.bound.device)
        return (self.factor[atom] * raw).clamp(-self.bound, self.bound)

    def forward(self, X: Inputs) -> Tensor:
        if self.known is not None and self.known[0] is X:
            return self.known[1]
        rows = _written_out(X)
        if not len(rows):
            return self.bound.new_zeros(len(self), 0, len(self.bound))
        return torch.stack([self._outputs(atom, rows) for atom in range(len(self))])

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        total = self.bound.new_zeros(len(X), len(self.bound))
        # every call of a regressor costs: dense rows are asked for at once, sparse ones as many as are written out
        size = max(1, len(X)) if isinstance(X, Tensor) else self.rows_at_once(X)
        for part, block in zip(total.split(size), X.split(size), strict=True):
            rows = _written_out(block)
            for atom in range(len(self) if len(rows) else 0):
                part += weights[atom] * self._outputs(atom, rows)
        return total

    def select(self, index: Tensor) -> Self:
        return type(self)([self.models[i] for i in index.tolist()], self.factor[index], self.bound)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.models, factor * self.factor, factor * self.bound)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        models = [heads for part in parts for heads in part.models]
        return cls(models, torch.cat([part.factor for part in parts]), parts[0].bound)
