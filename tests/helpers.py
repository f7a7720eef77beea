"""Small problems that the tests share."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from gce._utils.random import Streams
from gce.bases import Pool
from gce.bases.neural import compiled, evaluation
from gce.bases.objectives import Linear
from gce.bases.trees import TreeArrays
from gce.frank_wolfe.active_set import ActiveSet
from gce.io.models import digest
from gce.losses import (
    REGRESSION,
    CrossEntropy,
    Gamma,
    Hazards,
    Huber,
    Logistic,
    MultiLabel,
    Ordinal,
    Poisson,
    Power,
    PseudoHuber,
    Quantile,
    Quantiles,
    Squared,
    Tweedie,
    links,
)
from gce.losses.deviances import LogLinkLoss
from gce.losses.risk import Risk
from gce.training import family_weights, round_weights

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
LOSSES = {
    "squared": Squared(),
    "absolute": Power(1.0),
    "power1.5": Power(1.5),
    "power3": Power(3.0),
    "pseudo_huber": PseudoHuber(0.7),
    "huber": Huber(0.7),
    "quantile": Quantile(0.8),
    "quantiles": Quantiles((0.1, 0.6, 0.9)),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "tweedie": Tweedie(1.3),
    "logistic": Logistic(),
    "cross_entropy": CrossEntropy(),
    "multi_label": MultiLabel(),
    "ordinal": Ordinal(),
    "cox": Hazards(),
    "hazards": Hazards((0.5, 1.0, 2.0), degree=1),
}


def by_tensor_operations(monkeypatch):
    """Train, evaluate and sum networks by tensor operations, as a GPU does."""
    monkeypatch.setattr(compiled, "serves", lambda *given: False)
    monkeypatch.setattr(evaluation, "serve", lambda X: False)
    monkeypatch.setattr(ActiveSet, "_compiled", False)
    monkeypatch.setattr(links, "_is_plain", lambda t: False)


def assert_same_model(one, other, X):
    """The same rounds, weights, calibration and predictions of two fits, to the last bit; seconds may differ."""
    timeless = [[{**entry, "seconds": 0.0} for entry in model.history_] for model in (one, other)]
    assert timeless[0] == timeless[1]
    assert digest(one) == digest(other) is not None
    scores = [model.raw_predict(X) for model in (one, other)]
    assert torch.equal(*scores)
    if hasattr(one, "predict_interval"):
        np.testing.assert_array_equal(one.predict_interval(X), other.predict_interval(X))


def outputs_of(loss):
    if isinstance(loss, Hazards):
        return loss.degree + 1
    return 3 if isinstance(loss, CrossEntropy | Quantiles | MultiLabel | Ordinal) else 1


def in_domain(loss, y):
    """Numbers like ``y`` that a loss, or the one of that name, is defined for."""
    loss = REGRESSION[loss] if isinstance(loss, str) else loss
    return abs(y) + 0.1 if loss.link == "log" else y


def targets(loss, n, rng):
    if isinstance(loss, Quantiles):
        return torch.from_numpy(rng.normal(size=(n, 1))).expand(n, 3).contiguous()
    if isinstance(loss, Hazards):
        signed = rng.gamma(1.0, size=n) * np.where(rng.random(n) < 0.6, 1, -1)
        signed[0] = abs(signed[0])
        return torch.from_numpy(np.column_stack([signed, *np.zeros((loss.degree, n))]))
    if isinstance(loss, MultiLabel):
        return torch.from_numpy(rng.integers(0, 2, (n, 3)).astype(float))
    if isinstance(loss, Ordinal):
        return torch.from_numpy((rng.integers(0, 4, (n, 1)) > np.arange(3)).astype(float))
    if isinstance(loss, LogLinkLoss):
        positive = rng.gamma(1.0, size=(n, 1)) * (1 if isinstance(loss, Gamma) else rng.random((n, 1)) > 0.3)
        return torch.from_numpy(positive)
    if isinstance(loss, Logistic):
        return torch.from_numpy(rng.integers(0, 2, (n, 1)).astype(float))
    if isinstance(loss, CrossEntropy):
        return torch.eye(3, dtype=torch.float64)[torch.from_numpy(rng.integers(0, 3, n))]
    return torch.from_numpy(rng.normal(size=(n, 1)))


class PoolProblem:
    """A random pool with random row weights: everything the loop needs."""

    def __init__(self, seed, loss=None, members=2, n=12, size=8, bound=2.0):
        rng = np.random.default_rng(seed)
        self.loss = loss or Squared()
        k = outputs_of(self.loss)
        self.X = torch.from_numpy(rng.normal(size=(n + 3, 2)))  # the last three rows are only evaluated
        self.outputs = rng.uniform(-bound, bound, (size, n + 3, k))
        weight = torch.from_numpy(rng.uniform(0, 1, (members, n)) * (rng.random((members, n)) > 0.2) + 1e-3)
        y = targets(self.loss, n, rng)
        self.bound = torch.full((k,), bound, dtype=torch.float64)
        self.risk = Risk(self.loss, y, weight / weight.sum(1, keepdim=True), torch.zeros(k, dtype=torch.float64))
        self.active = ActiveSet(self.X, n, members, k)
        self.basis = Pool(outputs=self.outputs)
        self.streams = Streams(seed, tuple(range(members)))

    def iterate(self, algorithm, line_search):
        return algorithm.iterate(self.risk, self.active, self.basis, line_search, self.bound, self.streams)


def oracle_problem(architecture, n, d, k, members, dtype=torch.float64):
    """Rows, a linear objective and one start a member, all random; the first rows are not seen by the second member."""
    rng = np.random.default_rng(n)
    X = torch.from_numpy(rng.normal(size=(n, d)))
    gradient = torch.from_numpy(rng.normal(size=(members, n, k)))
    gradient[1:, : n // 5] = 0
    objective = Linear(gradient, torch.ones(k, dtype=torch.float64)).cast(dtype)
    streams = [torch.Generator().manual_seed(m) for m in range(members)]
    start = [architecture.start(d, k, stream, dtype) for stream in streams]
    return X, objective, [torch.stack(column) for column in zip(*start, strict=True)]


def random_trees(rng, inputs, outputs, trees, dtype=torch.float64, most=90):
    """Trees of all shapes, from a root alone to more leaves than a mask has bits, with values in [-1, 1]."""

    def tree():
        leaves = int(rng.integers(1, 4) if rng.random() < 0.5 else rng.integers(4, most))
        left, ends = np.zeros(2 * leaves - 1, np.int32), [0]
        for nodes in range(1, 2 * leaves - 1, 2):
            # some trees are chains
            node = ends.pop(-1 if leaves % 3 == 0 else int(rng.integers(len(ends))))
            left[node], ends = nodes, [*ends, nodes, nodes + 1]
        size = len(left)
        # a coarse grid, so that rows fall right onto thresholds
        threshold = rng.integers(-6, 7, size) / 2
        value = rng.uniform(-1, 1, (size, outputs))
        return rng.integers(0, inputs, size).astype(np.int32), threshold, left, value

    return TreeArrays.of([tree() for _ in range(trees)], dtype)


def one_weight_per_family(monkeypatch):
    """Families are weighted as they were before rounds had weights of their own, and none is left out."""
    monkeypatch.setattr(round_weights, "_ENOUGH", 2**62)
    monkeypatch.setattr(family_weights, "FEWER_FAMILIES", -1.0)


def codes_by_column(binned):
    """The codes of binned rows column by column, ``(d, N)``."""
    every = binned.codes.transpose(0, 2, 1).reshape(4 * len(binned.codes), len(binned.X))
    return every[: len(binned.bins.widths)]


#: scipy's word for a generator, since 1.15 and before.
SEEDED_BY = "rng" if "rng" in inspect.signature(sp.random_array).parameters else "random_state"


def random_sparse(rng, shape, density, format):
    """A sparse array of normal numbers."""
    return sp.random_array(shape, density=density, format=format, data_sampler=rng.normal, **{SEEDED_BY: rng})
