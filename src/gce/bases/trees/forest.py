"""Forests of deep trees: one atom per forest, because a tree that interpolates its training rows takes all weight."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.clock import StepTimer
from gce._utils.codecs import Parts
from gce._utils.params import MOST, NONE, Rules, check_parameters, count
from gce._utils.params import within as between
from gce._utils.random import RoundStreams
from gce.bases.by_member import minimize_by_member
from gce.bases.context import FitContext, FitDefaults
from gce.bases.objectives import Joint, Objective
from gce.bases.proposal import Proposal
from gce.bases.trees import TreeArrays
from gce.bases.trees.atoms import TreeAtomsBase, sum_leaves, within
from gce.bases.trees.binned import ConstrainedBasis
from gce.bases.trees.grower_random import RandomTrees, WeightedTargets
from gce.distributed.world import World
from gce.losses import Loss, links
from gce.preprocessing.mixed import MixedRows, Widths
from gce.preprocessing.sparse import Inputs

if TYPE_CHECKING:
    from gce.bases.trees.grower_divided import DividedTrees
    from gce.bases.trees.grower_forest import DeviceForest
    from gce.bases.trees.grower_sampled import SampledTrees
    from gce.bases.trees.samples import RowSamples
    from gce.losses.risk import Risk

Link = Literal["identity", "logit", "log", "log_mean"]


#: The fraction of a forest's probabilities that comes from the class frequencies: no class has probability 0.
DOUBT = 0.01
#: Rows on which prediction is timed.
_ROWS_TRIED = 8192
#: Leaves are centred where the offset of the targets exceeds this many times their spread.
FAR = 64.0


class Forest(ConstrainedBasis):
    """Averages of extremely randomised trees, fitted to targets rather than gradients.

    A forest interpolates its training rows, so that its training risk is no guide: an ensemble with a forest optimises
    its weights on held-out rows. A forest is therefore one atom, fitted in one round.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    max_features : float or None, default=None
        Fraction of the columns that are tried at a node. None: all columns in regression, the square root of their
        number in classification.
    min_samples_leaf : float, default=1
        Minimum number of rows in a leaf.
    max_bins : int, default=256
        Maximum number of bins per column.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Forest
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> model = GCERegressor(basis=Forest(n_estimators=5), random_state=0).fit(X, X[:, 0])
    >>> bool(model.score(X, X[:, 0]) > 0.9)
    True
    """

    looks_by_member = True

    parameter_rules: ClassVar[Rules] = {"n_estimators": count(1, MOST), "max_features": between(0, 1, "(]") | NONE}

    def __init__(
        self,
        n_estimators: int = 50,
        max_features: float | None = None,
        min_samples_leaf: float = 1,
        max_bins: int = 256,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.max_bins = max_bins

    @property
    def fit_defaults(self) -> FitDefaults:
        return FitDefaults("nonlinear", "2/(t+1)", calls=1, screening_rounds=1)

    def minimize(self, objective: Objective, X: Inputs, *, rng: RoundStreams, context: FitContext) -> Proposal:
        check_parameters(self)
        if not isinstance(objective, Joint):
            raise ValueError("a Forest learns from targets: use algorithm='nonlinear', or 'auto'")
        if isinstance(X, MixedRows) and X.owner is not None:
            return minimize_by_member(self.minimize, objective, X, rng=rng, context=context)
        risk, device = objective.risk, objective.bound.device
        if not risk.loss.has_means:
            raise ValueError(f"a Forest predicts means, which the loss {risk.loss!r} does not: use another basis")
        link = link_of(risk.loss)
        centre = _centre(risk.y, risk.offset) if link == "identity" else torch.zeros_like(risk.offset)
        seeds = [torch.randint(2**62, (self.n_estimators,), generator=own).tolist() for own in rng.members]
        grower, precision = self._grower(risk, X, centre, context)
        offset, reach = (risk.offset - centre).cpu(), objective.bound.cpu()
        if link in ("logit", "log"):
            # the farthest a score can be from the offset
            farthest = offset.abs() + abs(math.log(DOUBT)) + offset.exp().sum().log().abs() + 1
            reach = torch.minimum(farthest, reach)

        def grow(first: int, last: int) -> TreeArrays:
            return grower.grown([own[first:last] for own in seeds], precision)

        def to_atoms(grown: TreeArrays) -> ForestAtoms:
            atoms = ForestAtoms(grown, offset, reach, len(grown) // len(seeds), link)
            return (atoms if self._groups is None else atoms.as_sum()).to(device)

        grown = self._grow_until(grow, lambda some: _seconds(to_atoms(some), X), context)
        atoms = to_atoms(grown)
        return Proposal(atoms, None if context.world.size == 1 else atoms.outputs_together(X, context.world))

    def prepare(self, X: Inputs, context: FitContext) -> None:
        # trees of samples of their own are grown from codes in files
        if context.samples is None:
            super().prepare(X, context)

    def _grower(
        self, risk: Risk, X: Inputs, centre: Tensor, context: FitContext
    ) -> tuple[RandomTrees | DividedTrees | DeviceForest | SampledTrees, torch.dtype]:
        """What grows trees from all rows of each member, or from samples of their own, and the precision of leaves."""
        if context.samples is not None:
            return self._grower_of_samples(context.samples, centre.numpy(), link_of(risk.loss))
        target, weight = risk.loss.means(risk.y, risk.weight)
        y, members, binned = (target - centre).cpu().numpy(), [], self.binned(X, context)
        for own, unit in zip(weight.cpu().numpy(), risk.unit.tolist(), strict=True):
            rows = np.flatnonzero(own).astype(np.uint32)
            members.append((rows, WeightedTargets.of(own[rows] / unit, y[rows])))
        tries = self._tries(len(binned.bins.widths), link_of(risk.loss))
        trees = RandomTrees(binned, tuple(members), tries, float(self.min_samples_leaf), self.constraints(binned))
        return _where(trees, centre.device, context.world), _precision(np.abs(y).max(0))

    def _grower_of_samples(
        self, samples: RowSamples, centre: NDArray[np.float64], link: Link
    ) -> tuple[SampledTrees, torch.dtype]:
        """The same for samples of all rows in files."""
        # most fits have all rows in memory
        from gce.bases.trees.grower_sampled import SampledTrees

        tries = self._tries(len(samples.stored.codes(self.max_bins)[0].widths), link)
        trees = SampledTrees(samples, self.max_bins, centre, tries, float(self.min_samples_leaf), self.constraints)
        return trees, _precision(samples.largest(centre))

    def _grow_until(
        self, grow: Callable[[int, int], TreeArrays], predicting: Callable[[TreeArrays], float], context: FitContext
    ) -> TreeArrays:
        """Each member's trees, one member after another: all of them, or as many for each as the deadline allows.

        ``grow`` makes a range of the trees of all members. ``predicting`` estimates the seconds that given trees take
        to predict all rows, which follows growing.
        """
        end = context.deadline
        if end == math.inf:
            return grow(0, self.n_estimators)
        grown: list[TreeArrays] = []
        pace, predicted = StepTimer(end), 0.0
        for t in range(self.n_estimators):
            grown.append(grow(t, t + 1))
            if t == 0 and pace.remaining > 0:
                predicted = predicting(grown[0])
            if pace.out_of_time(after=predicted * (t + 2)):
                break
        if len(grown) < self.n_estimators:
            context.note_cut_short()
        by_member = torch.arange(len(grown) * len(grown[0])).view(len(grown), -1).T.flatten()
        return TreeArrays.cat(grown).select(by_member.to(grown[0].size.device))

    def _tries(self, d: int, link: Link) -> int:
        if self.max_features is not None:
            return max(1, round(self.max_features * d))
        return d if link in ("identity", "log_mean") else max(1, round(math.sqrt(d)))


def _seconds(atoms: ForestAtoms, X: Inputs) -> float:
    """The seconds that atoms take to predict all rows, estimated on a few."""
    few = X[:: max(1, len(X) // _ROWS_TRIED)]
    began = time.monotonic()
    # waits for the device
    float(atoms(atoms.seen(few)).sum())
    return (time.monotonic() - began) * len(X) / len(few)


def _where(trees: RandomTrees, device: torch.device, world: World) -> RandomTrees | DividedTrees | DeviceForest:
    """What grows trees: all processes together, or the device of the fit where it can."""
    # most processes have no use for either
    if world.size > 1:
        from gce.bases.trees.grower_divided import DividedTrees

        return DividedTrees(trees, world)
    if device.type == "cpu":
        return trees
    from gce.bases.trees.grower_forest import DeviceForest, can_grow

    return DeviceForest(trees, device) if can_grow(trees, device) else trees


def link_of(loss: Loss) -> Link:
    """The link from means of targets to scores of a loss, by the names that files have."""
    names: dict[str, Link] = {"logit": "logit", "softmax": "log", "log": "log_mean"}
    return names.get(loss.link, "identity")


def _centre(y: Tensor, offset: Tensor) -> Tensor:
    """What leaves measure targets ``(n, k)`` from, ``(k,)``: 0, or the offset of targets that lie far from 0 for their
    spread, whose differences would be lost in float32 and in sums of squares.
    """
    return torch.where(offset.abs() > FAR * (y - offset).abs().amax(0), offset, 0.0)


def _precision(largest: NDArray[np.float64]) -> torch.dtype:
    """What means of targets are kept in, of which the largest are given, ``(k,)``: float32 where it holds such."""
    return torch.float32 if ((largest == 0) | ((largest > 1e-30) & (largest < 1e30))).all() else torch.float64


class ForestAtoms(TreeAtomsBase):
    """Frozen forests: an atom is the average of its trees, after a link and measured from the offset.

    Parameters
    ----------
    trees : TreeArrays
        Leaves hold means of targets, ``(nodes, k)``, or their differences from the ensemble's offset.
    offset : Tensor of shape (k,)
        The ensemble's, or 0 where leaves are measured from it.
    bound : Tensor of shape (k,)
    n_trees : int
        Trees of each atom.
    link : {"identity", "logit", "log", "log_mean"}
        From means to scores: "log" of probabilities is centred, "log_mean" of other means is not. Means are first mixed
        with those of the offset, so that none is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.bases import Forest, ForestAtoms
    >>> X = np.linspace(-1, 1, 100).reshape(-1, 1)
    >>> model = GCERegressor(basis=Forest(n_estimators=5), cv=2, random_state=0).fit(X, X[:, 0])
    >>> [(part.n_trees, part.link) for part in model.ensemble_.parts if isinstance(part, ForestAtoms)]
    [(5, 'identity')]
    """

    interpolates = True
    offset: Tensor

    def __init__(self, trees: TreeArrays, offset: Tensor, bound: Tensor, n_trees: int, link: Link) -> None:
        super().__init__(trees, bound)
        self.n_trees, self.link = n_trees, link
        self.register_buffer("offset", offset)

    @property
    def unstorable_name(self) -> str | None:
        return None if type(self) is ForestAtoms else super().unstorable_name

    def stored(self) -> Parts:
        parts = Parts({"trees": self.n_trees, "link": self.link}, {"offset": self.offset, "bound": self.bound})
        parts.add("grove", self.trees.stored())
        return parts

    @classmethod
    def restored(cls, parts: Parts, widths: Widths, bound: Tensor) -> ForestAtoms:
        k, n_trees, link = len(bound), parts.integer("trees", 1), parts.choice("link", get_args(Link))
        own, offset = parts.finite("bound", k), parts.finite("offset", k)
        stored = parts.within("grove")
        value = stored.tensors.get("value")
        precise = link in ("identity", "log_mean") and value is not None and value.dtype == torch.float64
        trees = TreeArrays.restored(stored, widths, k, torch.float64 if precise else torch.float32)
        if len(trees) % n_trees:
            raise ValueError(f"{len(trees)} trees cannot be divided into forests of {n_trees}")
        if not within(own, bound):
            raise ValueError("the forests can exceed the bound of the ensemble")
        atoms = cls(trees, offset, own, n_trees, link)
        most = math.inf if link == "log_mean" else 1.0
        sound = bool(((trees.value >= 0) & (trees.value <= most)).all()) and bool((atoms.prior > 0).all())
        if link != "identity" and not sound:
            raise ValueError("the means of the forests are not probabilities or positive")
        return atoms

    @property
    def form(self) -> tuple[object, ...]:
        return (
            type(self),
            self.splits_columns,
            self.n_trees,
            self.link,
            self.get_buffer("value").dtype,
            *self.offset.tolist(),
            *self.bound.tolist(),
        )

    def __len__(self) -> int:
        return len(self.get_buffer("size")) // self.n_trees

    @property
    def prior(self) -> Tensor:
        """The part of every probability or mean that comes from the offset, ``(k,)``."""
        if self.link == "log_mean":
            return DOUBT * self.offset.exp()
        return DOUBT * (torch.sigmoid(self.offset) if self.link == "logit" else torch.softmax(self.offset, 0))

    def forward(self, X: Inputs) -> Tensor:
        return self._outputs(self._means(X))

    def outputs_together(self, X: Inputs, world: World) -> Tensor:
        """Outputs on rows that every process has, and each drops some of through the trees.

        Parameters
        ----------
        X : Tensor, SparseRows or MixedRows of shape (N, d)
        world : World
            The processes, all of which make this call.

        Returns
        -------
        Tensor of shape (A, N, k)
            Equal to those of one process to the bit.
        """
        own = self._means(self.seen(X[world.share(len(X))]))
        parts = [
            np.frombuffer(part).reshape(len(self), -1, own.shape[2]) for part in world.gather(own.numpy().tobytes())
        ]
        # logarithms of all rows at once: which bits they have depends on where in a tensor a row is
        return self._outputs(torch.from_numpy(np.concatenate(parts, 1)))

    def _means(self, X: Inputs) -> Tensor:
        """Means of targets, ``(A, n, k)``."""
        trees = self.trees
        each = torch.full((len(trees), trees.outputs), 1 / self.n_trees, dtype=torch.float64, device=self.offset.device)
        return sum_leaves(trees, X, each, torch.arange(len(trees)) // self.n_trees, len(self))

    def _outputs(self, mean: Tensor) -> Tensor:
        return (self.scores(mean) - self.offset).clamp(-self.bound, self.bound)

    def scores(self, mean: Tensor) -> Tensor:
        """Scores ``(..., k)`` of means of targets, before they are measured from the offset and clipped.

        Parameters
        ----------
        mean : Tensor of shape (..., k)
        """
        if self.link == "identity":
            return mean
        p = (1 - DOUBT) * mean + self.prior
        if self.link == "log_mean":
            return links.log(p)
        # beside a class of next to no weight the sum may round to 1, or beyond
        return links.log_odds(p.clamp(max=1 - 2**-53)) if self.link == "logit" else links.centred_log(p)

    def as_sum(self) -> ForestAtoms:
        """Forests whose scores are averages of those of their trees.

        A link of averages, or a bound on them, is no sum any more of functions of the columns of one path each: scores
        of leaves are, whose averages keep to a bound that all leaves keep to.
        """
        trees = self.trees
        # what is rounded to the trees' precision stays within the bound
        near = (1 - 2**-20) * self.bound
        scores = self._outputs(trees.value.double()).clamp(-near, near).masked_fill((trees.left > 0)[:, None], 0)
        own = replace(trees, value=scores.to(trees.value.dtype))
        return ForestAtoms(own, torch.zeros_like(self.offset), self.bound, self.n_trees, "identity")

    def mix(self, X: Inputs, weights: Tensor) -> Tensor:
        total = torch.zeros(len(X), len(self.bound), dtype=torch.float64, device=X.device)
        # atom by atom: sums of several would be ordered by the number of rows
        for weight, out in zip(weights, self(X), strict=True):
            total += weight * out
        return total

    def tree_weights(self, weights: Tensor) -> Tensor:
        return weights.expand(len(self), len(self.bound)).repeat_interleave(self.n_trees, 0) / self.n_trees

    def among(self, columns: NDArray[np.intp], inputs: NDArray[np.intp], widths: Widths) -> Self:
        return type(self)(self.trees.among(columns), self.offset, self.bound, self.n_trees, self.link)

    def select(self, index: Tensor) -> Self:
        own = (index[:, None] * self.n_trees + torch.arange(self.n_trees, device=index.device)).flatten()
        return type(self)(self.trees.select(own), self.offset, self.bound, self.n_trees, self.link)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        first = parts[0]
        return cls(TreeArrays.cat([part.trees for part in parts]), first.offset, first.bound, first.n_trees, first.link)
