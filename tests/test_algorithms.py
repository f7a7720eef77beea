from functools import cache

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce import GCERegressor
from gce.bases import Neural, Pool
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.algorithms import ALGORITHMS, AwayStep, Blended, FrankWolfe, Pairwise
from gce.losses import Logistic, Squared
from gce.losses.line_search import LINE_SEARCHES, Brent, Exact
from helpers import LOSSES, PoolProblem

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS.keys())


def check_invariants(problem, step, before, line_search):
    active = problem.active
    assert (active.weights >= 0).all()
    assert (active.weights.sum(1) - 1).abs().max() <= 1e-12
    outputs = torch.stack([slot.outputs(active.X) for slot in active.slots], 1).double()
    weighted = (active.weights[..., None].transpose(2, 3) * outputs).sum(1)
    torch.testing.assert_close(active.pred, weighted, rtol=1e-12, atol=1e-12)  # training and validation rows alike
    assert (active.pred.abs() <= problem.bound * (1 + 1e-12)).all()
    torch.testing.assert_close(step.risk, problem.risk.value(active.train_pred), rtol=0, atol=0)
    assert (step.step_size >= 0).all()
    assert (step.step_size <= step.max_step).all()
    full = (
        (step.step_size == step.max_step) & (step.direction.away >= 0) & (step.direction.away != step.direction.toward)
    )
    left = active.weights.gather(1, step.direction.away.clamp(min=0)[:, None])[:, 0]
    assert (left[full] == 0).all()
    if isinstance(line_search, Exact | Brent):
        assert (step.risk <= before * (1 + 1e-12) + 1e-14).all()


@every_algorithm
@pytest.mark.parametrize("line_search", LINE_SEARCHES.values(), ids=LINE_SEARCHES.keys())
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@given(seed=st.integers(0, 10**6))
@settings(max_examples=2, deadline=None)
def test_invariants_on_pools(algorithm, line_search, loss, seed):
    problem = PoolProblem(seed, loss)
    before = problem.risk.value(problem.active.train_pred)
    for _, step in zip(range(8), problem.iterate(algorithm, line_search), strict=False):
        check_invariants(problem, step, before, line_search)
        before = step.risk


@every_algorithm
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("loss", ["squared", "logistic", "cross_entropy"])
def test_invariants_with_networks(algorithm, loss, shared):
    problem = PoolProblem(5, LOSSES[loss])
    problem.basis = Neural(hidden=3, max_epochs=15, shared=shared)
    problem.active = ActiveSet(problem.X, 12, 2, len(problem.bound), separate=not shared)
    before = problem.risk.value(problem.active.train_pred)
    for _, step in zip(range(8), problem.iterate(algorithm, Exact()), strict=False):
        check_invariants(problem, step, before, Exact())
        before = step.risk
    assert (before < 0.95 * problem.risk.value(torch.zeros_like(problem.active.train_pred))).all()


def optimum(problem, m):
    """Least risk over the hull of the pool and 0, by a conic solver."""
    out = problem.outputs[:, : problem.active.train_rows, 0].T
    y, weight = problem.risk.y[:, 0].numpy(), problem.risk.weight[m].numpy()
    w = cp.Variable(out.shape[1], nonneg=True)
    f = out @ w
    cost = cp.logistic(f) - cp.multiply(y, f) if isinstance(problem.loss, Logistic) else cp.square(f - y)
    task = cp.Problem(cp.Minimize(weight @ cost), [cp.sum(w) <= 1])
    task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
    return task.value


@cache
def optima(seed, loss):
    """Least risk of each member of a pool problem of 30 rows and 12 models."""
    problem = PoolProblem(seed, loss, n=30, size=12)
    return torch.tensor([optimum(problem, m) for m in range(2)], dtype=torch.float64)


@pytest.mark.parametrize("algorithm", [AwayStep(), Pairwise(), Blended()], ids=repr)
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_optimum_is_reached_and_proved(algorithm, loss, seed):
    problem, best = PoolProblem(seed, loss, n=30, size=12), optima(seed, loss)
    for step in problem.iterate(algorithm, Exact()):
        if step.t == 3000 or (step.suboptimality <= 1e-11 * step.risk).all():
            break
    assert (step.risk <= best * (1 + 1e-8)).all()
    assert step.t < 3000


@pytest.mark.parametrize(
    "algorithm",
    [*(a for name, a in ALGORITHMS.items() if name != "nonlinear"), *(Blended(laziness=z) for z in (0, 0.01, 0.9, 3))],
    ids=repr,
)
@pytest.mark.parametrize("line_search", ["exact", "2/(t+1)"])
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("seed", range(2))
def test_no_round_claims_more_than_its_oracle_said(algorithm, line_search, loss, seed):
    problem, best = PoolProblem(seed, loss, n=30, size=12), optima(seed, loss)
    before = problem.risk.value(problem.active.train_pred)
    # the conic solver's accuracy
    slack = 1e-9 * best
    calls = torch.zeros(2, dtype=torch.long)
    for _, step in zip(range(40), problem.iterate(algorithm, LINE_SEARCHES[line_search]), strict=False):
        called = step.calls > calls
        assert step.certified
        assert torch.equal(step.gap.isnan(), ~called)
        assert (before - best <= step.gap + slack)[called].all()
        assert (step.risk - best <= step.suboptimality + slack).all()
        before, calls = step.risk, step.calls


@pytest.mark.parametrize("algorithm", ["frank-wolfe", "away", "pairwise", "blended", Blended(laziness=0.01)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_fit_that_stops_by_tol_is_as_close_to_the_optimum(algorithm, seed):
    rng = np.random.default_rng(seed)
    outputs, X, y = rng.uniform(-1, 1, (25, 40)), rng.normal(size=(40, 2)), rng.uniform(-1, 1, 40)
    model = GCERegressor(
        basis=Pool(outputs=outputs), algorithm=algorithm, offset=0.0, bound=1.0, cv=None, validation_fraction=None,
        n_iter_no_change=None, tol=0.01, max_iter=3000, random_state=0,
    ).fit(X, y)  # fmt: skip
    w = cp.Variable(25, nonneg=True)
    task = cp.Problem(cp.Minimize(cp.sum_squares(outputs.T @ w - y) / 40), [cp.sum(w) <= 1])
    best, last = task.solve(solver=cp.CLARABEL), model.history_[-1]
    assert last["t"] < 3000
    assert last["risk"] - best <= 0.01 * last["risk"] * (1 + 1e-6)
    assert last["risk"] - best <= last["suboptimality"] + 1e-7 * best


@pytest.mark.parametrize("seed", range(4))
def test_frank_wolfe_stays_in_its_envelope(seed):
    problem = PoolProblem(seed, n=30, size=12, members=1)
    best = optimum(problem, 0)
    points = np.concatenate([np.zeros((1, 30)), problem.outputs[:, :30, 0]])
    far = max((problem.risk.weight[0].numpy() * np.square(a - b)).sum() for a in points for b in points)
    for step in problem.iterate(FrankWolfe(), Exact()):
        # Jaggi (2013): 2 C / (t + 2) with curvature C = smoothness * diameter^2 of the weighted outputs
        assert step.risk.item() - best <= 2 * 2 * far / (step.t + 2)
        if step.t == 200:
            break


class Counting(Neural):
    """Networks that count how often they are trained and evaluated."""

    def __init__(self, hidden=10, max_epochs=40):
        super().__init__(hidden=hidden, max_epochs=max_epochs)
        self.trained, self.evaluated = 0, []

    def minimize(self, objective, X, *, rng, context, last=None):
        self.trained += 1
        proposal = super().minimize(objective, X, rng=rng, context=context, last=last)
        proposal.atoms.register_forward_hook(lambda module, args, out: self.evaluated.append(id(module)))
        return proposal


@pytest.mark.parametrize("algorithm", [a for name, a in ALGORITHMS.items() if name != "blended"], ids=repr)
def test_one_oracle_call_a_round_and_one_evaluation_an_atom(algorithm):
    problem = PoolProblem(0)
    problem.basis = Counting(hidden=3, max_epochs=5)
    for _, step in zip(range(6), problem.iterate(algorithm, Exact()), strict=False):
        assert problem.basis.trained == step.t
        assert step.calls.tolist() == [step.t] * 2
    assert len(problem.basis.evaluated) == len(set(problem.basis.evaluated)) == 6


def test_blended_saves_oracle_calls():
    problem = PoolProblem(0, n=40)
    problem.basis = Counting(hidden=3, max_epochs=10)
    steps = [step for _, step in zip(range(30), problem.iterate(Blended(), Exact()), strict=False)]
    assert steps[0].calls.tolist() == [1, 1]
    assert (steps[-1].calls < 30).all()
    assert len(problem.basis.evaluated) == len(set(problem.basis.evaluated)) == problem.basis.trained


def test_away_candidates_carry_weight():
    problem = PoolProblem(1)
    weights = problem.active.weights
    for _, step in zip(range(20), problem.iterate(Pairwise(), Exact()), strict=False):
        taken = step.direction.away.clamp(max=weights.shape[1] - 1)
        assert (weights.gather(1, taken[:, None])[:, 0] > 0).all()
        weights = problem.active.weights


def test_a_pool_member_is_admitted_once():
    problem = PoolProblem(2)
    for _ in zip(range(50), problem.iterate(Pairwise(), Exact()), strict=False):
        pass
    assert len(problem.active.slots) <= 1 + 2 * len(problem.outputs)
    for m in range(2):
        keys = [int(s.atoms.keys[s.position[m]]) for s in problem.active.slots[1:] if s.position[m] >= 0]
        assert len(keys) == len(set(keys))


def test_pool_functions_are_evaluated_once():
    seen = []

    def member(scale):
        def function(X):
            seen.append(scale)
            return scale * np.tanh(X[:, 0])

        return function

    problem = PoolProblem(0)
    problem.basis = Pool(functions=[member(s) for s in (-2.0, 0.5, 2.0)])
    for _ in zip(range(10), problem.iterate(AwayStep(), Exact()), strict=False):
        pass
    assert sorted(seen) == [-2.0, 0.5, 2.0]


def test_nonlinear_greedy_searches_a_pool_by_risk():
    problem = PoolProblem(3, members=1)
    step = next(problem.iterate(ALGORITHMS["nonlinear"], Exact()))
    risks = []
    for out in problem.outputs:
        d = torch.from_numpy(out[None, :12])
        line = problem.risk.along(torch.zeros_like(d), d, torch.ones(1, 1, dtype=torch.float64))
        risks.append(line.value(Exact()(line, 1)).item())
    assert step.risk.item() == pytest.approx(min(risks))
    assert not step.certified


def test_pool_refuses_what_it_cannot_hold():
    problem = PoolProblem(0)
    problem.basis = Pool(outputs=problem.outputs * 10)
    with pytest.raises(ValueError, match="beyond the bound"):
        next(problem.iterate(FrankWolfe(), Exact()))
    for pool, words in (
        (Pool(), "either functions or outputs"),
        (Pool(functions=[]), "functions must be a list of one callable or more"),
        (Pool(outputs=np.zeros((2, 3))), "one row of X each"),
    ):
        problem.basis = pool
        with pytest.raises(ValueError, match=words):
            next(problem.iterate(FrankWolfe(), Exact()))


@pytest.mark.parametrize(
    ("pool", "words"),
    [
        (Pool(outputs=np.zeros((2, 20))), r"Pool outputs must have shape \(P, 20, 3\), .*, got \(2, 20\)"),
        (Pool(outputs=np.zeros((2, 20, 2))), r"Pool outputs must have shape \(P, 20, 3\), .*, got \(2, 20, 2\)"),
        (
            Pool([lambda X: np.zeros((len(X), 3)), lambda X: X[:, 0]]),
            r"pool function 1 returned shape \(20, 1\) for 20 rows of X: it must return shape \(20, 3\)",
        ),
    ],
    ids=["no third axis", "two outputs", "functions"],
)
def test_pools_of_other_outputs_than_the_targets_are_refused(pool, words):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match=words):
        GCERegressor(basis=pool, cv=None, max_iter=3, random_state=0).fit(X, rng.normal(size=(20, 3)))


def test_boosting_over_given_models_keeps_to_their_hull():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * X[:, 1] ** 2
    pool = Pool([lambda X: np.tanh(X[:, 0]), lambda X: np.tanh(X[:, 1])])
    model = GCERegressor(basis=pool, algorithm="boosting", max_iter=20, cv=None, random_state=0).fit(X, y)
    plain = GCERegressor(basis=pool, cv=None, random_state=0).fit(X, y)
    assert model.bound_ == plain.bound_
    assert 0 <= model.ensemble_.weights.min() <= model.ensemble_.weights.sum() <= 1 + 1e-12
    risks = [entry["risk"] for entry in model.history_]
    assert risks == sorted(risks, reverse=True)
    # the gap is a certificate: in no round does it promise less than what exact steps reach
    least = min(entry["risk"] for entry in plain.history_)
    assert max(entry["risk"] - entry["gap"] for entry in model.history_) <= least
