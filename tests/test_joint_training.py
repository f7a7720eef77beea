"""Non-greedy ensembles and plain networks: slopes, simplex, selection, and Adam as torch knows it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_wine

import gce
from gce.bases.neural.descent import Descent, Schedule
from gce.bases.neural.mixture import COEFFICIENTS, Absolute
from gce.bases.neural.network import TwoLayer
from gce.bases.objectives import Mixture
from gce.losses import CrossEntropy, Logistic, Power, Squared
from gce.losses.risk import Risk
from helpers import GPU

KINDS = [gce.NGCERegressor, gce.NGCEClassifier, gce.NNRegressor, gce.NNClassifier]
SCHEDULE = Schedule(rate=1e-2, floor=1e-5, patience=100, last_epochs=5, max_epochs=50)


def small(kind, **changes):
    size = {"n_atoms": 6, "hidden": 3} if "NGCE" in kind.__name__ else {"hidden": 12}
    return kind(**{**size, "max_epochs": 30, "random_state": 0, **changes})


def data(kind, n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])
    return X, score if "Regressor" in kind.__name__ else np.digitize(score, [-0.5, 0.5])


def mixture(loss, coefficients, atoms=3, n=20, members=2, classes=1):
    rng = torch.Generator().manual_seed(0)
    y = torch.randn(n, classes, generator=rng, dtype=torch.float64)
    if isinstance(loss, Logistic):
        y = (y > 0).double()
    if isinstance(loss, CrossEntropy):
        y = torch.eye(classes, dtype=torch.float64)[y.argmax(1)]
    weight = torch.rand(members, n, generator=rng, dtype=torch.float64)
    weight[0, :4] = 0
    risk = Risk(loss, y, weight / weight.sum(1, keepdim=True), torch.full((classes,), 0.1, dtype=torch.float64))
    bound = torch.linspace(1.5, 2.5, classes, dtype=torch.float64)
    return Mixture(risk, bound, atoms, COEFFICIENTS[coefficients])


vectors = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@settings(deadline=None)
@given(vectors, st.sampled_from(sorted(COEFFICIENTS)))
def test_weights_are_on_the_simplex(v, kind):
    alpha = COEFFICIENTS[kind].weights(torch.tensor([v], dtype=torch.float64))
    assert (alpha >= 0).all()
    assert abs(float(alpha.sum()) - 1) < 1e-14 * len(v) + 1e-15


@settings(deadline=None)
@given(
    st.lists(st.floats(0.01, 10) | st.floats(-10, -0.01), min_size=1, max_size=8), st.sampled_from(sorted(COEFFICIENTS))
)
def test_slopes_of_the_weights_are_their_derivatives(v, kind):
    coefficients = COEFFICIENTS[kind]
    free = torch.tensor([v], dtype=torch.float64, requires_grad=True)
    slope = torch.linspace(-1, 2, len(v), dtype=torch.float64)[None]
    (coefficients.weights(free) * slope).sum().backward()
    torch.testing.assert_close(coefficients.pull(free.detach(), slope), free.grad, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", sorted(COEFFICIENTS))
@pytest.mark.parametrize("atoms", [1, 2, 100])
def test_weights_start_equal_where_they_can_move(kind, atoms):
    coefficients = COEFFICIENTS[kind]
    v = coefficients.start(atoms)[None]
    torch.testing.assert_close(coefficients.weights(v), torch.full((1, atoms), 1 / atoms, dtype=torch.float64))
    slope = torch.arange(atoms, dtype=torch.float64)[None]
    moved = coefficients.pull(v, slope) != 0
    # an atom whose slope is the mean of all stays; with one atom there is nowhere to go
    assert moved.sum() >= atoms - 1
    assert not Absolute().pull(torch.zeros(1, atoms, dtype=torch.float64), slope).any()


@pytest.mark.parametrize("coefficients", sorted(COEFFICIENTS))
@pytest.mark.parametrize(
    ("loss", "classes"), [(Squared(), 1), (Squared(), 3), (Power(1.5), 1), (Logistic(), 1), (CrossEntropy(), 3)]
)
def test_slopes_of_a_mixture_are_its_derivatives(loss, classes, coefficients):
    objective = mixture(loss, coefficients, classes=classes)
    rng = torch.Generator().manual_seed(1)
    unit = torch.rand(2, 3 * classes, 20, generator=rng, dtype=torch.float64) * 2 - 1
    theta = objective.theta + 0.3 * torch.randn(objective.theta.shape, generator=rng, dtype=torch.float64)
    free, own = unit.clone().requires_grad_(), theta.clone().requires_grad_()
    alpha = objective.coefficients.weights(own)
    pred = torch.einsum("ma,makn->mnk", alpha, free.view(2, 3, classes, 20)) * objective.bound
    value = objective.risk.value(pred) / objective.unit
    value.sum().backward()
    terms, slope, theta_slope = objective.batch(unit, theta, slice(0, 20))
    torch.testing.assert_close(terms[:, 0, 0], value.detach())
    torch.testing.assert_close(slope, free.grad)
    torch.testing.assert_close(theta_slope, own.grad)
    parts = [objective.batch(unit[..., rows], theta, rows) for rows in (slice(0, 7), slice(7, 20))]
    torch.testing.assert_close(sum(part[0] for part in parts), terms)
    torch.testing.assert_close(torch.cat([part[1] for part in parts], 2), slope)
    torch.testing.assert_close(sum(part[2] for part in parts), theta_slope)


@pytest.mark.parametrize("output", ["hardtanh", "tanh", "identity"])
@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_training_is_torchs_adam(output, decay):
    objective, architecture = mixture(Squared(), "absolute"), TwoLayer(4, "relu", output)
    rng = torch.Generator().manual_seed(3)
    X = torch.randn(20, 5, generator=rng, dtype=torch.float64)
    nets = [architecture.start(5, 1, rng, torch.float64) for _ in range(6)]
    start = [torch.stack(column) for column in zip(*nets, strict=True)]
    schedule = Schedule(rate=1e-2, floor=1e-5, patience=100, last_epochs=5, max_epochs=50, decay=decay)
    with torch.no_grad():
        descent = Descent(architecture, start, objective, X, schedule, 20)
        for _ in range(12):
            descent.epoch(None)
    now = architecture.split(descent._views(descent._flat)[:-1])

    W1, b1, W2, b2 = (p.clone().requires_grad_() for p in start)
    v = objective.theta.clone().requires_grad_()
    groups = [{"params": [W1, b1, W2, b2], "weight_decay": decay}, {"params": [v], "weight_decay": 0.0}]
    optimiser = torch.optim.Adam(groups, lr=1e-2)
    squash = {"hardtanh": lambda z: z.clamp(-1, 1), "tanh": torch.tanh, "identity": lambda z: z}[output]
    for _ in range(12):
        unit = squash(W2 @ (W1 @ X.T + b1).relu() + b2).view(2, 3, 1, 20)
        alpha = objective.coefficients.weights(v)
        pred = torch.einsum("ma,makn->mnk", alpha, unit) * objective.bound
        optimiser.zero_grad()
        (objective.risk.value(pred) / objective.unit).sum().backward()
        optimiser.step()
    for mine, theirs in zip(now, (W1, b1, W2, b2), strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(descent._views(descent._flat)[-1], v.detach(), rtol=1e-7, atol=1e-9)


class Recorded:
    """Coefficients that remember the weights of every step."""

    def __init__(self, inner):
        self.inner, self.seen = inner, []

    def start(self, atoms):
        return self.inner.start(atoms)

    def weights(self, v):
        alpha = self.inner.weights(v)
        self.seen.append(alpha.clone())
        return alpha

    def pull(self, v, slope):
        return self.inner.pull(v, slope)


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("kind", sorted(COEFFICIENTS))
def test_weights_sum_to_one_at_every_step_and_all_of_them_move(monkeypatch, kind, batch_size):
    recorded = Recorded(COEFFICIENTS[kind])
    monkeypatch.setitem(COEFFICIENTS, kind, recorded)
    X, y = data(gce.NGCERegressor)
    model = small(gce.NGCERegressor, coefficients=kind, batch_size=batch_size, validation_fraction=None).fit(X, y)
    assert len(recorded.seen) >= 30
    rounding = 1e-15 if batch_size is None else 1e-6
    for alpha in recorded.seen:
        assert (alpha >= 0).all()
        assert ((alpha.sum(1) - 1).abs() <= 10 * rounding).all()
    assert (model.ensemble_.weights - 1 / 6).abs().min() > 1e-4
    assert abs(float(model.ensemble_.weights.sum()) - 1) < 1e-15 * 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [None, 20])
def test_the_epoch_that_is_kept_is_the_best_on_held_out_rows(kind, batch_size):
    X, y = data(kind, 90)
    model = small(kind, batch_size=batch_size, n_iter_no_change=None, learning_rate=0.05)
    model.fit(X[:60], y[:60], X_val=X[60:], y_val=y[60:])
    seen = [entry["validation"] for entry in model.history_]
    assert model.n_iter_ == len(seen) == 30
    target = model.result_.target.encode(y[60:])
    cost = model.loss_.value(model.raw_predict(X[60:]), torch.from_numpy(target)).mean()
    assert float(cost) == pytest.approx(min(seen), rel=1e-6 if batch_size is None else 1e-4)


def test_a_watch_gives_up():
    X, y = data(gce.NNRegressor)
    y = np.random.default_rng(1).normal(size=len(y))
    model = small(gce.NNRegressor, hidden=100, learning_rate=0.05, max_epochs=500, n_iter_no_change=7).fit(X, y)
    best = int(np.argmin([entry["validation"] for entry in model.history_]))
    assert model.n_iter_ == best + 1 + 7


@pytest.mark.parametrize("kind", KINDS)
def test_members_are_the_average_of_one_split_fits(kind):
    X, y = data(kind)
    splits = [(np.arange(0, 40), np.arange(40, 60)), (np.arange(20, 60), np.arange(0, 20))]
    together = small(kind, cv=splits).fit(X, y).raw_predict(X)
    apart = [small(kind, cv=[split]).fit(X, y).raw_predict(X) for split in splits]
    torch.testing.assert_close(together, sum(apart) / 2, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", [gce.NGCERegressor, gce.NNRegressor])
@settings(max_examples=8, deadline=None)
@given(unit=st.floats(1e-3, 1e3), shift=st.floats(-50, 50))
def test_the_unit_of_the_targets_does_not_matter(kind, unit, shift):
    X, y = data(kind)
    plain, moved = (small(kind, weight_decay=1e-3).fit(X, target) for target in (y, unit * y + shift))
    np.testing.assert_allclose(moved.predict(X), unit * plain.predict(X) + shift, rtol=1e-4, atol=1e-4 * unit)


def test_a_hull_is_bounded_and_a_plain_network_is_not():
    X, y = data(gce.NGCERegressor)
    far = 1e6 * X
    hull = small(gce.NGCERegressor, clip=None).fit(X, y)
    assert (np.abs(hull.predict(far) - hull.offset_) <= hull.bound_ * (1 + 1e-12)).all()
    network = small(gce.NNRegressor, clip=None).fit(X, y)
    assert np.abs(network.predict(far)).max() > 1e3 * np.abs(y).max()
    assert network.ensemble_.weights.tolist() == [1.0]
    assert np.isinf(network.bound_).all()


def test_weight_decay_shortens_the_parameters():
    X, y = load_diabetes(return_X_y=True)

    def length(decay):
        model = small(gce.NNRegressor, weight_decay=decay, validation_fraction=None, max_epochs=60).fit(X, y)
        return sum(float(p.square().sum()) for p in model.ensemble_.parts[0].parameters_)

    assert length(0.0) > length(0.01) > length(0.1)


def test_both_learn():
    X, y = load_wine(return_X_y=True)
    for kind in (gce.NGCEClassifier, gce.NNClassifier):
        assert kind(max_epochs=100, random_state=0).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("kind", [gce.NGCERegressor, gce.NNRegressor])
def test_several_targets(kind):
    X, y = data(kind)
    both = np.stack([y, X[:, 3]], 1)
    model = small(kind, max_epochs=200, learning_rate=1e-2, validation_fraction=None).fit(X, both)
    assert model.predict(X).shape == both.shape
    assert (np.abs(model.predict(X) - both).mean(0) < np.abs(both - both.mean(0)).mean(0)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_one_model_whatever_the_scorer(kind):
    X, y = data(kind)
    scoring = "neg_mean_absolute_error" if "Regressor" in kind.__name__ else "accuracy"
    a, b = (small(kind, scoring=scoring, batch_size=16).fit(X, y).raw_predict(X) for _ in range(2))
    assert torch.equal(a, b)


def test_time_is_limited():
    X, y = data(gce.NGCERegressor)
    model = small(gce.NGCERegressor, max_epochs=100_000, n_iter_no_change=None, time_limit=0.0).fit(X, y)
    assert model.n_iter_ == 1


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        (gce.NGCERegressor, {"n_atoms": 0}, "n_atoms must be an integer of at least 1, got 0"),
        (gce.NGCERegressor, {"coefficients": "sparsemax"}, "coefficients must be 'absolute' or 'softmax'"),
        (gce.NGCERegressor, {"output": "identity"}, "output must be 'hardtanh' or 'tanh', got 'identity'"),
        (gce.NGCERegressor, {"basis": "tree"}, "basis must be 'neural' or 'neuron', got 'tree'"),
        (gce.NNRegressor, {"learning_rate": 0.0}, "learning_rate must be positive and finite, got 0.0"),
        (gce.NNRegressor, {"min_learning_rate": 0.5}, "0 < min_learning_rate < learning_rate"),
        (gce.NNRegressor, {"hidden": 0}, "hidden must be"),
        (gce.NNRegressor, {"activation": "gelu"}, "activation must be 'relu' or 'tanh', got 'gelu'"),
        (gce.NNRegressor, {"weight_decay": -1.0}, "weight_decay must be a number of at least 0, got -1.0"),
        (gce.NNRegressor, {"max_epochs": 0}, "max_epochs"),
        (gce.NNRegressor, {"n_iter_no_change": 0}, "n_iter_no_change"),
        (gce.NNRegressor, {"time_limit": -1.0}, "time_limit"),
    ],
)
def test_bad_parameters_are_named(kind, changes, words):
    X, y = data(kind)
    with pytest.raises(ValueError, match=words):
        kind(**changes).fit(X, y)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (gce.NNRegressor, {"validation_fraction": None}),
        (gce.NNRegressor, {}),
        (gce.NNRegressor, {"scoring": "neg_mean_absolute_error"}),
        (gce.NNClassifier, {"scoring": "accuracy", "offset": 0.0}),
        (gce.NNClassifier, {"scoring": "neg_log_loss"}),
    ],
)
def test_a_training_that_breaks_says_so(caplog, kind, changes):
    X, y = data(kind)
    if kind is gce.NNClassifier:
        y = np.where(y == 1, 0, 1)  # NaN reads as class 0, which is right for few
    model = small(kind, learning_rate=1e300, **changes).fit(X, y)
    assert "turned NaN" in caplog.text
    assert model.raw_predict(X).isfinite().all()


def test_single_neurons_can_be_trained_together():
    X, y = data(gce.NGCERegressor)
    model = small(gce.NGCERegressor, basis="neuron", n_atoms=20, max_epochs=100, validation_fraction=None).fit(X, y)
    assert len(model.ensemble_) == 20
    (atoms,) = model.ensemble_.parts
    rows = model.encode_rows(X)
    (u,) = atoms.parameters_
    by_hand = (model.ensemble_.weights[:, None] * torch.tanh(u[:, 0] @ rows.T)).sum(0) * model.bound_[0]
    np.testing.assert_allclose(model.predict(X), model.offset_[0] + by_hand.numpy(), rtol=1e-10, atol=1e-12)
    assert model.score(X, y) > 0.1


def test_a_plain_network_predicts_a_constant_exactly():
    X, _ = data(gce.NNRegressor)
    np.testing.assert_allclose(small(gce.NNRegressor).fit(X, np.full(len(X), 3.0)).predict(X), 3.0, rtol=1e-10)


@pytest.mark.parametrize("kind", [gce.NGCEClassifier, gce.NNClassifier, gce.GCEClassifier])
@pytest.mark.parametrize("y", [np.r_[np.repeat([0, 1], 20), 2], np.repeat(np.arange(10), 3), np.arange(12)])
def test_rare_classes_do_not_stop_a_hold_out(kind, y):
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    tiny = {"max_atoms": 2} if kind is gce.GCEClassifier else {"max_epochs": 3, "hidden": 3}
    model = kind(cv=None, random_state=0, **tiny).fit(X, y)
    assert model.classes_.tolist() == sorted(set(y))


@GPU
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch_size", [None, 20])
def test_a_gpu_trains_the_same_way(caplog, kind, batch_size):
    X, y = data(kind)
    caplog.set_level("INFO", logger="gce")
    on_gpu = small(kind, device="cuda", batch_size=batch_size).fit(X, y)
    assert "cannot be recorded" not in caplog.text
    again = small(kind, device="cuda", batch_size=batch_size).fit(X, y)
    assert torch.equal(on_gpu.raw_predict(X), again.raw_predict(X))
    if batch_size is None:  # mini-batches are drawn on the device, in another order
        on_cpu = small(kind).fit(X, y)
        torch.testing.assert_close(on_gpu.raw_predict(X).cpu(), on_cpu.raw_predict(X), rtol=1e-5, atol=1e-5)
