import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gce.bases import FitContext, Networks, Neural, Neuron
from gce.bases.neural.network import SingleNeuron, TwoLayer
from gce.bases.objectives import Joint, Linear
from gce.losses import CrossEntropy
from gce.losses.risk import Risk

ARCHITECTURES = [TwoLayer(5, a, o) for a in ("relu", "tanh") for o in ("hardtanh", "tanh")] + [SingleNeuron()]


def started(architecture, nets=3, d=4, outputs=2, seed=0):
    rng = torch.Generator().manual_seed(seed)
    each = [architecture.start(d, outputs, rng, torch.float64) for _ in range(nets)]
    return [torch.stack(column) for column in zip(*each, strict=True)]


def streams(members, seed=0):
    return SimpleNamespace(
        rows=torch.Generator().manual_seed(seed),
        members=[torch.Generator().manual_seed(seed + m) for m in range(members)],
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_slopes_by_hand_equal_automatic_differentiation(architecture):
    X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weight = torch.randn(3, 2, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    parameters = started(architecture)
    leaves = [p.clone().requires_grad_() for p in parameters]
    if isinstance(architecture, TwoLayer):
        W1, b1, W2, b2 = leaves
        act = torch.relu if architecture.activation == "relu" else torch.tanh
        squash = torch.tanh if architecture.output == "tanh" else (lambda z: z.clamp(-1, 1))
        unit = squash(W2 @ act(W1 @ X.T + b1) + b2)
    else:
        unit = torch.tanh(leaves[0] @ X.T)
    expected = torch.autograd.grad((unit * weight).sum(), leaves)
    joined, _ = architecture.join(parameters)
    mine, kept = architecture.forward(joined, architecture.extend(X))
    torch.testing.assert_close(mine, unit.detach())
    into = [torch.empty_like(p) for p in joined]
    architecture.backward(joined, kept, weight, architecture.extend(X), into)
    for a, b in zip(architecture.split(into), expected, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_outputs_never_leave_the_bound(dtype):
    bound = torch.tensor([443.1 / 3, 0.1], dtype=torch.float64)
    parameters = [50 * p.to(dtype) for p in started(TwoLayer(5, "relu", "hardtanh"))]
    X = torch.randn(1000, 4, dtype=dtype, generator=torch.Generator().manual_seed(0))
    out = Networks(TwoLayer(5, "relu", "hardtanh"), parameters, bound)(X)
    assert out.dtype == dtype
    assert (out.double().abs() <= bound).all()
    assert (out.double().abs().amax((0, 1)) >= bound * (1 - 1e-6)).all()


def test_select_and_cat_keep_every_atom():
    bound = torch.ones(2, dtype=torch.float64)
    X = torch.randn(9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for models, outputs in ((1, 2), (2, 1)):
        nets = Networks(TwoLayer(5, "relu", "tanh"), started(TwoLayer(5, "relu", "tanh"), 6, 4, outputs), bound, models)
        picked = nets.select(torch.tensor([2, 0]))
        torch.testing.assert_close(picked(X), nets(X)[[2, 0]])
        torch.testing.assert_close(Networks.cat([picked, nets])(X), torch.cat([picked(X), nets(X)]))


def test_linear_objective_lies_in_the_unit_interval_and_counts_batches_as_parts():
    rng = np.random.default_rng(0)
    bound = torch.tensor([3.0, 0.01], dtype=torch.float64)
    gradient = torch.from_numpy(rng.normal(size=(2, 10, 2)) * 1e-9)
    objective = Linear(gradient, bound)
    best = -torch.sign(gradient).transpose(1, 2)
    value, slope, _ = objective.batch(best, objective.theta, slice(None))
    torch.testing.assert_close(value.sum((1, 2)), -torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(slope * best, value)
    cuts = [slice(0, 4), slice(4, 8), slice(8, 10)]
    parts = [objective.batch(best[:, :, rows], objective.theta, rows)[0] for rows in cuts]
    torch.testing.assert_close(torch.cat(parts, 2), value)
    order = torch.arange(10).flip(0)
    torch.testing.assert_close(
        objective.permuted(order).batch(best[:, :, order], objective.theta, slice(None))[0], value[:, :, order]
    )
    outs = bound * torch.from_numpy(rng.uniform(-1, 1, (5, 10, 2)))
    torch.testing.assert_close(objective.score(outs), torch.einsum("mnk,ank->ma", gradient, outs))


def test_joint_objective_is_the_risk_of_the_mixture():
    rng = np.random.default_rng(0)
    y = torch.eye(3, dtype=torch.float64)[torch.from_numpy(rng.integers(0, 3, 8))]
    weight = torch.full((2, 8), 1 / 8, dtype=torch.float64)
    risk = Risk(CrossEntropy(), y, weight, torch.zeros(3, dtype=torch.float64))
    pred = torch.from_numpy(rng.normal(size=(2, 8, 3)))
    bound = torch.full((3,), 4.0, dtype=torch.float64)
    objective = Joint(risk, pred, bound, 0.3)
    unit = torch.from_numpy(rng.uniform(-1, 1, (2, 3, 8)))
    value, slope, theta_slope = objective.batch(unit, objective.theta, slice(None))
    scale = (risk.gradient(pred).abs() * bound).sum((1, 2))
    mixed = 0.7 * pred + 0.3 * 4 * unit.transpose(1, 2)
    torch.testing.assert_close(value[:, 0, 0] * scale, risk.value(mixed) - risk.value(pred))
    step = 1e-6
    for change, analytic in ((1, theta_slope[:, 0]),):
        up = objective.batch(unit, objective.theta + change * step, slice(None))[0]
        down = objective.batch(unit, objective.theta - change * step, slice(None))[0]
        torch.testing.assert_close((up - down)[:, 0, 0] / (2 * step), analytic, rtol=1e-6, atol=1e-9)
    e = torch.zeros_like(unit)
    e[:, 1, 5] = step
    up, down = (
        objective.batch(unit + e, objective.theta, slice(None))[0],
        objective.batch(unit - e, objective.theta, slice(None))[0],
    )
    torch.testing.assert_close((up - down)[:, 0, 0] / (2 * step), slope[:, 1, 5], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("basis", [Neural(hidden=8), Neural(hidden=8, shared=False), Neuron(), Neural(batch_size=8)])
def test_training_points_downhill(basis):
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(30, 3)))
    gradient = torch.stack([torch.stack([X[:, 0], -X[:, 1]], 1), torch.stack([X[:, 2], X[:, 0]], 1)]) / 30
    objective = Linear(gradient, torch.tensor([1.0, 5.0], dtype=torch.float64))
    atoms = basis.minimize(objective, X, rng=streams(2), context=FitContext()).atoms
    best = -(gradient.abs() * objective.bound).sum((1, 2))
    reached = (gradient * atoms(X).double()).sum((1, 2))
    assert (reached < 0.75 * best).all()


def test_a_network_that_turns_nan_is_tried_again_and_then_refused(caplog):
    calls = []

    class Hostile(Linear):
        def batch(self, unit, theta, rows):
            value, slope, theta_slope = super().batch(unit, theta, rows)
            calls.append(len(value))
            value[-1] = math.nan  # the last member fails whatever it does
            return value, slope, theta_slope

        def select(self, members):
            return Hostile(self.gradient[members], self.bound)

        def cast(self, dtype):
            return self

    X = torch.randn(10, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gradient = X[:, :1].expand(2, 10, 1) / 10
    objective = Hostile(gradient, torch.ones(1, dtype=torch.float64))
    atoms = Neural(hidden=4, max_epochs=5).minimize(objective, X, rng=streams(2), context=FitContext()).atoms
    out = atoms(X)
    assert (out[1] == 0).all()
    assert (gradient[0] * out[0]).sum() < 0
    assert calls.count(1) == 2  # each retry notices at once
    assert "turned NaN" in caplog.text
