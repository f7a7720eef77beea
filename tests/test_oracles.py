"""The three ways to train an atom are one: compiled loops, tensor operations, and plain automatic differentiation."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce import GCERegressor
from gce.bases import FitContext, Neural
from gce.bases.neural import compiled, kernels
from gce.bases.neural.descent import Descent, Plateau, Schedule, batches, descend, row_orders
from gce.bases.neural.network import SingleNeuron, TwoLayer
from gce.bases.objectives import Joint, Linear
from gce.losses import Logistic
from gce.losses.risk import Risk
from helpers import GPU, by_tensor_operations, oracle_problem

SCHEDULE = Schedule(rate=1e-2, floor=1e-4, patience=3, last_epochs=4, max_epochs=30)


def by_autograd(architecture, start, objective, X, schedule, batch_size, rng):
    """What an epoch means, in the plainest words there are."""
    leaves = [p.clone().requires_grad_() for p in start]
    optimizers = [torch.optim.Adam(leaves, lr=schedule.rate)]
    plateau = Plateau(1, schedule, X.device)
    best = [p.detach().clone() for p in leaves]

    def loss(rows):
        W1, b1, W2, b2 = leaves
        act = torch.relu if architecture.activation == "relu" else torch.tanh
        z = W2 @ act(W1 @ X[rows].T + b1) + b2
        unit = z.tanh() if architecture.output == "tanh" else z.clamp(-1, 1)
        return (objective.unit_gradient[:, :, rows].reshape(unit.shape) * unit).sum()

    def note(value):
        if plateau.update(value.detach().double().reshape(1)):
            best[:] = [p.detach().clone() for p in leaves]

    for order in row_orders(len(X), batch_size, schedule.max_epochs, rng):
        total = 0.0
        every = torch.arange(len(X)) if order is None else order
        for rows in (every[part] for part in batches(len(X), batch_size)):
            optimizers[0].zero_grad()
            value = loss(rows)
            total = total + value.detach()
            if order is None:
                note(total)
            (value * len(X) / len(rows)).backward()
            optimizers[0].param_groups[0]["lr"] = float(plateau.rate[0])
            optimizers[0].step()
        if order is not None:
            note(total)
        if plateau.rate[0] == 0:
            break
    return best


@pytest.mark.parametrize("batch_size", [10_000, 70])
@pytest.mark.parametrize("form", [("relu", "hardtanh"), ("tanh", "tanh"), ("relu", "tanh")])
@pytest.mark.parametrize(("n", "d", "h", "k"), [(130, 3, 5, 2), (257, 9, 4, 1), (97, 4, 7, 5)])
def test_three_trainers_agree(n, d, h, k, form, batch_size):
    architecture = TwoLayer(h, *form)
    X, objective, start = oracle_problem(architecture, n, d, k, members=2)
    arguments = (architecture, start, objective, X, SCHEDULE, batch_size)
    with torch.no_grad():
        fast, _ = compiled.descend(*arguments, torch.Generator().manual_seed(5))
        slow, _ = descend(*arguments, torch.Generator().manual_seed(5))
    for a, b in zip(fast, slow, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-8)
    for m in range(2):
        own = objective.select(torch.tensor([m]))
        plain = by_autograd(
            architecture, [p[m : m + 1] for p in start], own, X, SCHEDULE, batch_size, torch.Generator().manual_seed(5)
        )
        for a, b in zip(fast, plain, strict=True):
            torch.testing.assert_close(a[m : m + 1], b, rtol=1e-6, atol=1e-7)


@given(
    st.lists(st.floats(-1, 1) | st.sampled_from([math.nan, -0.5]), min_size=1, max_size=40),
    st.integers(0, 4),
    st.integers(1, 5),
)
@settings(max_examples=200, deadline=None)
def test_both_plateaus_follow_one_rule(values, patience, last_epochs):
    schedule = Schedule(1e-2, 1e-4, patience, last_epochs, max_epochs=100, progress=1e-2)
    plateau = Plateau(1, schedule, torch.device("cpu"))
    state = np.array([schedule.rate, np.inf, 0, np.inf, 0, 0])
    rule = np.array([schedule.floor, schedule.patience, schedule.last_epochs, schedule.progress])
    for value in values:
        if state[0] == 0:
            break
        improved = kernels.advance(state, value, rule)
        assert improved == bool(plateau.update(torch.tensor([value], dtype=torch.float64)))
        assert state[0] == plateau.rate[0]
        assert bool(state[4]) == bool(plateau.failed[0])


def test_plateau_follows_the_paper():
    plateau = Plateau(
        1, Schedule(rate=1e-3, floor=1e-5, patience=10, last_epochs=10, max_epochs=1000), torch.device("cpu")
    )
    rates = []
    for _ in range(100):
        plateau.update(torch.tensor([-0.5], dtype=torch.float64))
        rates.append(float(plateau.rate[0]))
    assert rates[:11] == [1e-3] * 11  # one epoch that improves, ten that do not
    assert [rates.count(r) for r in (1e-4, 1e-5)] == [11, 10]
    assert rates[-1] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch_size", [100_000, 2_500])
def test_threads_that_share_a_batch_change_no_bit(batch_size, dtype, monkeypatch):
    architecture = TwoLayer(9, "relu", "hardtanh")
    X, objective, start = oracle_problem(architecture, 6_000, 7, 5, members=2, dtype=dtype)
    schedule = Schedule(1e-2, 1e-4, 3, 4, max_epochs=3)
    results = []
    before = torch.get_num_threads()
    for threads, worth in ((1, 1 << 60), (2, 0), (3, 0)):
        monkeypatch.setattr(compiled, "_WORTH_SHARING", worth)
        torch.set_num_threads(threads)
        try:
            rng = torch.Generator().manual_seed(5)
            results.append(compiled.descend(architecture, start, objective, X, schedule, batch_size, rng)[0])
        finally:
            torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_rows_without_slope_are_absent():
    architecture = TwoLayer(5, "relu", "hardtanh")
    X, objective, start = oracle_problem(architecture, 200, 3, 2, members=1)
    padded = torch.cat([objective.gradient, torch.zeros(1, 77, 2, dtype=torch.float64)], 1)
    more = torch.cat([X, 1e6 * torch.ones(77, 3, dtype=torch.float64)])
    rng = torch.Generator()
    one, _ = compiled.descend(architecture, start, objective, X, SCHEDULE, 10_000, rng)
    two, _ = compiled.descend(architecture, start, Linear(padded, objective.bound), more, SCHEDULE, 10_000, rng)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("basis", [Neural(hidden=4, max_epochs=6), Neural(hidden=4, max_epochs=6, batch_size=20)])
def test_a_compiled_network_that_turns_nan_is_refused(basis, caplog):
    X, objective, _ = oracle_problem(TwoLayer(4, "relu", "hardtanh"), 50, 3, 1, members=2)
    X[30] = math.nan
    objective.gradient[0, 30] = 0  # the first member does not see the row
    objective = Linear(objective.gradient, objective.bound)
    streams = oracle_streams(2)
    atoms = basis.minimize(objective, X, rng=streams, context=FitContext()).atoms
    good = torch.arange(len(X)) != 30
    out = atoms(X[good])
    assert (out[1] == 0).all()
    assert (objective.gradient[0, good] * out[0]).sum() < 0
    assert "turned NaN" in caplog.text


def oracle_streams(members):
    return SimpleNamespace(rows=torch.Generator(), members=[torch.Generator().manual_seed(m) for m in range(members)])


def joint_objective(n, device="cpu"):
    y = torch.from_numpy(np.random.default_rng(0).integers(0, 2, (n, 1)).astype(float))
    weight, zero = torch.full((2, n), 1 / n, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    risk = Risk(Logistic(), *(tensor.to(device) for tensor in (y, weight, zero)))
    return Joint(risk, torch.zeros(2, n, 1, dtype=torch.float64, device=device), risk.offset + 3, 0.5)


@pytest.mark.parametrize("architecture", [TwoLayer(5, "relu", "hardtanh"), SingleNeuron()])
@pytest.mark.parametrize("kind", ["linear", "joint"])
def test_a_descent_loaded_anew_is_a_new_descent(kind, architecture):
    X, objective, start = oracle_problem(architecture, 60, 3, 1, members=2)
    if kind == "joint":
        objective = joint_objective(60)
    fresh = Descent(architecture, start, objective, X, SCHEDULE, 20)
    used = Descent(architecture, [p + 1 for p in start], objective.copy(), X + 1, SCHEDULE, 20)
    order = torch.randperm(60)
    used.epoch(order)
    used.load(start, objective, X)
    for _ in range(5):
        fresh.epoch(order)
        used.epoch(order)
    assert all(torch.equal(a, b) for a, b in zip(fresh.result()[0], used.result()[0], strict=True))


@GPU
@pytest.mark.parametrize("batch_size", [10_000, 70])
@pytest.mark.parametrize("kind", ["linear", "joint"])
def test_a_recorded_epoch_is_a_launched_epoch(kind, batch_size):
    from gce.bases.neural.captured import Recorder

    architecture, device = TwoLayer(5, "relu", "hardtanh"), torch.device("cuda")
    X, objective, start = oracle_problem(architecture, 130, 3, 1, members=2)
    objective = Linear(objective.gradient.to(device), objective.bound.to(device))
    objective = joint_objective(130, device) if kind == "joint" else objective
    X, start = X.to(device), [p.to(device) for p in start]
    recorder = Recorder()

    def trained():
        rng = torch.Generator().manual_seed(1)
        return recorder.descend(architecture, start, objective, X, SCHEDULE, batch_size, rng)[0]

    with torch.no_grad():
        first, graph = trained(), recorder._recording._graph
        again = trained()
        assert graph is not None
        assert recorder._recording._graph is graph  # recorded once
        recorder._recording._graph = None
        launched = trained()
    for a, b, c in zip(first, again, launched, strict=True):
        assert torch.equal(a, b)
        torch.testing.assert_close(a, c)


class Waiting(Logistic):
    """A loss that waits for the device: nothing that a graph could record."""

    def gradient(self, pred, y):
        return super().gradient(pred, y) * float(torch.ones((), device=pred.device).item())


@GPU
def test_what_cannot_be_recorded_is_launched():
    from gce.bases.neural.captured import Recorder

    architecture, device = TwoLayer(5, "relu", "hardtanh"), torch.device("cuda")
    X, _, start = oracle_problem(architecture, 130, 3, 1, members=2)
    plain = joint_objective(130, device)
    waiting = Joint(Risk(Waiting(), plain.risk.y, plain.risk.weight, plain.risk.offset), plain.pred, plain.bound, 0.5)
    X, start = X.to(device), [p.to(device) for p in start]
    before = torch.cuda.current_stream()
    results = []
    for objective in (waiting, plain):
        recorder = Recorder()
        rng = torch.Generator().manual_seed(1)
        with torch.no_grad():
            results.append(recorder.descend(architecture, start, objective, X, SCHEDULE, 70, rng)[0])
        assert (recorder._recording._graph is None) == (objective is waiting)
        assert torch.cuda.current_stream() == before
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)


@GPU
def test_one_seed_one_model_on_a_gpu():
    X = np.random.default_rng(0).normal(size=(5_000, 3))
    settings = {"basis": "neural", "max_atoms": 4, "random_state": 0, "device": "cuda", "cv": 2}
    one, two = (GCERegressor(**settings).fit(X, X[:, 0] * X[:, 1]).predict(X) for _ in range(2))
    assert np.array_equal(one, two)


def test_tensor_operations_train_the_same(monkeypatch):
    X = np.random.default_rng(0).normal(size=(150, 3))
    model = GCERegressor(basis="neural", max_atoms=3, random_state=0, cv=2)
    looped = model.fit(X, X[:, 0] * X[:, 1]).predict(X)
    by_tensor_operations(monkeypatch)
    np.testing.assert_allclose(model.fit(X, X[:, 0] * X[:, 1]).predict(X), looped, rtol=1e-6, atol=1e-8)


def test_a_retry_keeps_the_precision():
    _, objective, _ = oracle_problem(TwoLayer(4, "relu", "hardtanh"), 50, 3, 1, members=2, dtype=torch.float32)
    assert objective.select(torch.tensor([1])).unit_gradient.dtype == torch.float32
    joint = joint_objective(20).cast(torch.float32).select(torch.tensor([1]))
    assert joint.theta.dtype == torch.float32


@pytest.mark.parametrize("shared", [True, False])
def test_restarts_take_the_best_of_their_tries(shared):
    X, objective, _ = oracle_problem(TwoLayer(4, "relu", "hardtanh"), 120, 3, 2, members=2)
    objective = Linear(objective.gradient, objective.bound, separate=not shared)

    def reached(basis):
        out = basis.minimize(objective, X, rng=oracle_streams(2), context=FitContext()).atoms(X)
        return (objective.gradient * out).sum(1)

    once, thrice = (reached(Neural(hidden=4, shared=shared, restarts=r, max_epochs=15)) for r in (1, 3))
    if shared:
        once, thrice = once.sum(1), thrice.sum(1)
    # the first try is the same one, so that two more cannot make it worse
    assert (thrice <= once + 1e-12).all()
    assert (thrice < once - 1e-3).any()
