"""Any scikit-learn regressor as a basis: fitted to the quadratic model of an objective, clipped to the bound."""

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

from gce._utils.params import Rules, among, check_parameters, short_repr
from gce._utils.random import RoundStreams
from gce.bases.base import Atoms, Basis
from gce.bases.context import FitContext, FitDefaults
from gce.bases.objectives import Model, Objective
from gce.bases.proposal import Proposal
from gce.preprocessing.sparse import Inputs

Array = NDArray[np.float64]

#: Hessians are at least this fraction of the largest, so that targets are finite; gradients are unchanged.
_LEAST_HESSIAN = 1e-10
#: Rows are repeated at most this often on average; beyond, only their proportions are kept.
_MOST_REPEATS = 4


class RegressorBasis(Basis):
    """Models of a scikit-learn regressor.

    In each round one clone per member is fitted to ``-D / H`` with sample weights ``H``, which minimises the quadratic
    model ``sum D g + g^2 H / 2`` of the objective. Its input is that of networks: scaled numbers, indicators for
    categories and missing values, no NaN. Its random states, at any depth, are drawn from the member's stream.

    A multi-output regressor is fitted to all outputs at once where they share their sample weights; otherwise there is
    one clone per output. Sample weights are in units of one row. For a regressor whose ``fit`` takes no
    ``sample_weight``, rows are repeated by their weights: a row of weight 1.3 once or, at random in each round, twice;
    integer weights are repeated exactly that often.

    Ensembles of such models are saved with joblib; model files, checkpoints and ONNX do not support them.

    Parameters
    ----------
    estimator : regressor
        Anything with scikit-learn's ``fit`` and ``predict``.
    bound_by : {"scale", "clip"}, default="scale"
        How outputs are kept in the bound where only the direction counts. "scale": they are multiplied so that the
        largest on the training rows reaches the bound, and clipped on other rows. "clip": they are only clipped; a
        model of small residuals then stays small, and the hull is smaller. Where the length counts too
        (``algorithm="nonlinear"``), outputs are clipped.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from gce import GCERegressor
    >>> from gce.bases import RegressorBasis
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> model = GCERegressor(basis=RegressorBasis(Ridge()), max_iter=50, random_state=0).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.9)
    True
    """

    parameter_rules: ClassVar[Rules] = {"bound_by": among("scale", "clip")}

    def __init__(self, estimator: Any, bound_by: Literal["scale", "clip"] = "scale") -> None:
        self.estimator = estimator
        self.bound_by = bound_by

    def _check(self) -> None:
        one = self.estimator
        if isinstance(one, type) or not all(hasattr(one, name) for name in ("fit", "predict", "get_params")):
            raise ValueError(
                f"RegressorBasis needs a scikit-learn regressor such as Ridge() as its estimator, got {short_repr(one)}"
            )
        if is_classifier(one):
            raise ValueError(f"RegressorBasis needs a regressor, whatever the task, got the classifier {one!r}")
        check_parameters(self)

    @property
    def fit_defaults(self) -> FitDefaults:
        return FitDefaults("boosting", calls=100)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        self._check()
        if not isinstance(X, Tensor):
            raise ValueError(
                "a RegressorBasis takes dense rows, got sparse ones: give X.toarray(), or use basis='neural'"
            )
        model, rows, n = objective.model, _written_out(X), objective.rows
        bound = objective.bound.cpu()
        models, factor, raw = [], [], []
        for m, generator in enumerate(rng.members):
            D, H = (t[m].double().cpu().numpy() for t in (model.gradient, model.hessian))
            # where all Hessians are 0, all rows count the same
            H = np.where(H.sum(0) > 0, H, 1.0)
            # in units of a row: a row of weight 2 is two rows
            row = float(model.unit[m]) * H.sum(0)
            heads = self._fitted(rows[:n], D / row, H / row, generator)
            raw.append(_predict(heads, rows))
            models.append(heads)
            used = ((D != 0) | (H > 0)).any(1)
            farthest = float(np.abs(raw[-1][:n][used] / bound.numpy()).max())
            stretched = self.bound_by == "scale" and model.free and farthest > 0
            factor.append(1 / farthest if stretched else 1.0)
        atoms = RegressorAtoms(models, torch.tensor(factor, dtype=torch.float64), bound)
        outputs = atoms.bounded(torch.from_numpy(np.stack(raw))).to(X.device)
        return Proposal(atoms.to(X.device), outputs, best_step(model, outputs[:, :n]) if model.free else None)

    def _fitted(self, X: Array, D: Array, H: Array, generator: torch.Generator) -> tuple[Any, ...]:
        """One fitted regressor for all outputs, or one each."""
        if D.shape[1] > 1 and (H[:, :1] == H).all() and get_tags(self.estimator).target_tags.multi_output:
            return (self._learned(X, D, H[:, 0], generator),)
        return tuple(self._learned(X, D[:, j], H[:, j], generator) for j in range(D.shape[1]))

    def _learned(self, X: Array, D: Array, H: Array, generator: torch.Generator) -> Any:
        """A clone fitted to the rows that have a gradient or a weight."""
        one = clone(self.estimator)
        seeds = [name for name in sorted(one.get_params()) if name.split("__")[-1] == "random_state"]
        one.set_params(**{name: int(torch.randint(2**31 - 1, (), generator=generator)) for name in seeds})
        rows = np.flatnonzero((H > 0) | (D.reshape(len(D), -1) != 0).any(1))
        weight = np.maximum(H[rows], _LEAST_HESSIAN * H.max())
        target = -D[rows] / (weight if D.ndim == 1 else weight[:, None])
        if has_fit_parameter(one, "sample_weight"):
            one.fit(X[rows], target, sample_weight=weight)
        else:
            some = _repeated(weight, float(torch.rand((), generator=generator, dtype=torch.float64)))
            one.fit(X[rows[some]], target[some])
        return one


def _written_out(X: Inputs) -> Array:
    return X.double().cpu().numpy() if isinstance(X, Tensor) else X.toarray().astype(np.float64, copy=False)


def _predict(heads: Sequence[Any], rows: Array) -> Array:
    """Predictions ``(n, k)`` of fitted regressors, one for all outputs or one per output."""
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
    """The minimum ``(M,)`` of a quadratic along each member's outputs ``(M, n, k)``, 0 where they point uphill."""
    down = -(model.gradient * outs).sum((1, 2))
    hessian = (model.hessian * outs.square()).sum((1, 2))
    return torch.where(hessian > 0, down / hessian, 0.0).clamp(min=0)


class RegressorAtoms(Atoms):
    """Fitted regressors, multiplied and clipped to the bound.

    Parameters
    ----------
    models : sequence of tuples
        The regressors of each atom: one for all outputs, or one per output.
    factor : Tensor of shape (A,)
        Outputs are multiplied by it before they are clipped.
    bound : Tensor of shape (k,)
    """

    factor: Tensor
    bound: Tensor

    def __init__(self, models: Sequence[tuple[Any, ...]], factor: Tensor, bound: Tensor) -> None:
        super().__init__()
        self.models = list(models)
        self.register_buffer("factor", factor)
        self.register_buffer("bound", bound)

    @property
    def unstorable_name(self) -> str:
        return f"a fitted {type(self.models[0][0]).__name__}"

    def __len__(self) -> int:
        return len(self.models)

    def bounded(self, raw: Tensor) -> Tensor:
        """Predictions of the regressors, ``(A, n, k)``, as outputs of the atoms."""
        return (self.factor[:, None, None] * raw).clamp(-self.bound, self.bound)

    def _outputs(self, atom: int, rows: Array) -> Tensor:
        raw = torch.from_numpy(_predict(self.models[atom], rows)).to(self.bound.device)
        return (self.factor[atom] * raw).clamp(-self.bound, self.bound)

    def forward(self, X: Inputs) -> Tensor:
        rows = _written_out(X)
        if not len(rows):
            return self.bound.new_zeros(len(self), 0, len(self.bound))
        return torch.stack([self._outputs(atom, rows) for atom in range(len(self))])

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        total = self.bound.new_zeros(len(X), len(self.bound))
        # every call of predict has a cost: dense rows are predicted at once, sparse ones in blocks
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
