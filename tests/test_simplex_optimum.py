"""Weights over a pool are optimal: as good as a conic solver's, and the certificate covers whatever is left."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from gce.frank_wolfe.simplex import Outputs, solve_simplex
from gce.frank_wolfe.simplex.qp import solve_simplex_qp
from gce.losses import CrossEntropy, Logistic, LogMixture, Power, Quantile, Squared
from gce.losses.risk import Risk

LOSSES = {
    "squared": Squared(),
    "logistic": Logistic(),
    "cross_entropy": CrossEntropy(),
    "log_mixture": LogMixture(),
    "absolute": Power(1.0),
    "quantile": Quantile(0.8),
}
NUMBERS = ("squared", "absolute", "quantile")
#: What the issue asks: the loss is within this of the conic solver's.
CLOSE = 1e-7
TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13, "tol_ktratio": 1e-9, "max_iter": 400}


class Pool:
    """Members' answers ``(P, n, k)``, targets ``(n, k)``, row weights ``(n,)`` and an offset ``(k,)``."""

    def __init__(self, loss, answers, y, weight=None, offset=0.0):
        self.loss, self.answers, self.y = loss, np.asarray(answers, dtype=float), np.asarray(y, dtype=float)
        weight = np.ones(len(self.y)) if weight is None else weight
        self.weight = weight / weight.sum()
        self.offset = np.full(self.y.shape[1], offset, dtype=float)

    def with_answers(self, answers):
        return Pool(self.loss, answers, self.y, self.weight, self.offset)

    @property
    def risk(self):
        parts = (self.y, self.weight[None], self.offset)
        return Risk(self.loss, *map(torch.from_numpy, parts))

    @property
    def outputs(self):
        return Outputs([torch.from_numpy(answer) for answer in np.ascontiguousarray(self.answers)])

    @property
    def average(self):
        return self.value(np.full(len(self.answers), 1 / len(self.answers)))

    def value(self, weights):
        return float(self.risk.value(self.outputs.combine(weights)[None])[0])

    def solve(self, **settings):
        return solve_simplex(self.risk, self.outputs, **settings)

    def conic(self):
        """Weights by cvxpy with Clarabel, put back on the simplex."""
        w = cp.Variable(len(self.answers), nonneg=True)
        # rows of weight 0 say nothing, rows to which no member gives a chance the same to all weights
        rows = self.weight > 0
        if isinstance(self.loss, LogMixture):
            rows &= self.answers.max((0, 2)) > 0
        f = [self.answers[:, rows, c].T @ w + self.offset[c] for c in range(self.y.shape[1])]
        task = cp.Problem(cp.Minimize(self.weight[rows] @ self._cost(f, self.y[rows])), [cp.sum(w) == 1])
        with warnings.catch_warnings():
            # digits are asked for that it may not reach: what it does reach is judged by the risk itself
            warnings.simplefilter("ignore", UserWarning)
            task.solve(solver=cp.CLARABEL, **TIGHT)
        weights = np.maximum(w.value, 0)
        return weights / weights.sum()

    def _cost(self, f, y):
        if isinstance(self.loss, Logistic):
            return cp.logistic(f[0]) - cp.multiply(y[:, 0], f[0])
        if isinstance(self.loss, CrossEntropy):
            scores = cp.vstack(f).T
            return cp.log_sum_exp(scores, axis=1) - cp.sum(cp.multiply(y, scores), axis=1)
        if isinstance(self.loss, LogMixture):
            return -cp.log(f[0])
        residual = [column - y[:, c] for c, column in enumerate(f)]
        if isinstance(self.loss, Squared):
            return sum(cp.square(r) for r in residual) / len(f)
        if isinstance(self.loss, Quantile):
            level = self.loss.quantile
            return sum(cp.maximum((1 - level) * r, -level * r) for r in residual) / len(f)
        return sum(cp.abs(r) for r in residual) / len(f)


def random_pool(name, members, rows, seed, spread=1.0):
    """Members of varying quality that share some of their mistakes."""
    rng = np.random.default_rng(seed)
    own = spread * np.exp(rng.normal(0, 0.5, members))[:, None, None]
    k = {"cross_entropy": 3}.get(name, 1)
    shared = rng.normal(size=(4, rows, k))[rng.integers(0, 4, members)]
    noise = 0.5 * rng.normal(size=(rows, k)) + 0.5 * shared + own * rng.normal(size=(members, rows, k))
    if name in NUMBERS:
        y = rng.normal(size=(rows, 1))
        return Pool(LOSSES[name], y + noise, y, offset=rng.normal())
    if name == "log_mixture":
        return Pool(LOSSES[name], 1 / (1 + np.exp(-1 - noise)), np.ones((rows, 1)))
    codes = rng.integers(0, max(k, 2), rows)
    y = np.eye(k)[codes] if k > 1 else codes[:, None].astype(float)
    return Pool(LOSSES[name], 2 * (y - y.mean()) + noise, y, offset=0.1)


def never_worse(pool, tol=1e-8):
    """The solver's weights beside the conic ones, both judged by the risk itself: above by no more than the gap."""
    found, best = pool.solve(tol=tol), pool.value(pool.conic())
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.loss == pytest.approx(pool.value(found.weights), rel=1e-12, abs=1e-15 * pool.average)
    assert found.loss - best <= found.gap
    return found, best


def check(pool, tol=1e-8):
    """The same, where the conic solver can be exact too: to the digits asked for, in both directions."""
    found, best = never_worse(pool, tol)
    assert found.converged
    assert found.gap <= tol * abs(found.loss)
    assert abs(found.loss - best) <= CLOSE * abs(best)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("members", "rows", "seed"), [(5, 40, 0), (5, 200, 1), (40, 60, 2), (300, 100, 3)])
def test_random_pools(name, members, rows, seed):
    check(random_pool(name, members, rows, seed))


@pytest.mark.parametrize("name", LOSSES)
def test_the_certificate_covers_what_is_left_after_any_round(name):
    pool = random_pool(name, 25, 60, 4)
    best = pool.value(pool.conic())
    left = []
    for rounds in range(4):
        found = pool.solve(tol=1e-12, max_iter=rounds)
        assert found.loss - best <= found.gap
        left.append(found.loss - best)
    assert left[0] > 1e-3 * best  # there was something to cover


def repeated(pool, rng):
    return np.concatenate([pool.answers, pool.answers, pool.answers[:3]])


def nearly_repeated(pool, rng):
    return np.concatenate([pool.answers, pool.answers + 1e-9 * rng.normal(size=pool.answers.shape)])


def all_the_same(pool, rng):
    return np.repeat(pool.answers[:1], 6, 0)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("degenerate", [repeated, nearly_repeated, all_the_same])
def test_models_that_are_one_another(name, degenerate):
    pool = random_pool(name, 12, 50, 7)
    check(pool.with_answers(degenerate(pool, np.random.default_rng(0))))


def test_models_that_differ_by_rounding_may_seem_to_bend_the_wrong_way():
    hessian = np.array([[1.0, 1 + 2.0**-51], [1 + 2.0**-51, 1.0]])  # along the move from one to the other: below 0
    moves = solve_simplex_qp(hessian, np.array([0.0, 1e-3]), np.array([0.5, 0.5]))
    assert moves.tolist() == [0.5, -0.5]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("spread", [1, 8])
def test_weighted_rows(name, spread):
    pool, rng = random_pool(name, 12, 50, 8), np.random.default_rng(0)
    weight = 10 ** rng.uniform(-spread, 0, 50)
    weight[::9] = 0
    check(Pool(pool.loss, pool.answers, pool.y, weight, pool.offset))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_target_changes_nothing(name, unit):
    pool = random_pool(name, 12, 50, 9)
    best = pool.value(pool.conic())
    power = unit**2 if name == "squared" else unit
    found = Pool(pool.loss, unit * pool.answers, unit * pool.y, pool.weight, unit * pool.offset).solve(tol=1e-8)
    assert found.converged
    assert abs(found.loss / power - best) <= CLOSE * best
    assert found.loss / power - best <= found.gap / power


@pytest.mark.parametrize("name", ["logistic", "cross_entropy"])
@pytest.mark.parametrize("unit", [1e-6, 30, 1e3])
def test_scores_may_be_timid_or_certain(name, unit):
    pool = random_pool(name, 12, 50, 9)
    wrong = np.where(np.arange(50) < 5, -unit, unit)  # rows that all get wrong stay costly, however certain they are
    found, best = never_worse(pool.with_answers(wrong[:, None] * pool.answers))
    assert found.converged
    assert found.loss <= best * (1 + CLOSE)


@pytest.mark.parametrize("name", LOSSES)
def test_a_perfect_member(name):
    pool = random_pool(name, 12, 50, 10)
    perfect = {"logistic": 80 * pool.y - 40, "cross_entropy": 40 * pool.y}.get(name, pool.y - pool.offset)
    pool = pool.with_answers(np.concatenate([pool.answers, perfect[None]]))
    found = pool.solve(tol=1e-8)
    assert found.loss <= 1e-14 * pool.average
    assert found.loss <= found.gap + pool.value(np.eye(13)[-1])
    assert found.gap <= 1e-14 * pool.average


@pytest.mark.parametrize("name", NUMBERS)
def test_a_nearly_perfect_member(name):
    pool = random_pool(name, 12, 50, 11)
    close = pool.y - pool.offset + 1e-6 * np.random.default_rng(0).normal(size=pool.y.shape)
    found, best = never_worse(pool.with_answers(np.concatenate([pool.answers, close[None]])))
    assert found.loss <= best * (1 + CLOSE)
    assert found.gap <= 1e-6 * found.loss


@pytest.mark.parametrize("share", [0.2, 0.6])
def test_models_that_give_the_true_class_no_chance(share):
    rng = np.random.default_rng(12)
    pool = random_pool("log_mixture", 12, 60, 12)
    check(pool.with_answers(np.where(rng.random(pool.answers.shape) < share, 0.0, pool.answers)))


def test_votes():
    votes = np.random.default_rng(13).random((30, 80, 1)) < 0.6
    check(Pool(LogMixture(), votes, np.ones((80, 1))))


def test_rows_that_nobody_gives_a_chance_do_not_decide():
    pool = random_pool("log_mixture", 12, 60, 14)
    answers = pool.answers.copy()
    answers[:, [3, 40]] = 0
    check(pool.with_answers(answers))


def test_tiny_probabilities():
    pool = random_pool("log_mixture", 12, 60, 15)
    check(pool.with_answers(pool.answers**20))
    check(pool.with_answers(1e-6 * pool.answers))


REGRESSORS = [
    *(Ridge(alpha) for alpha in (1e-3, 0.1, 1.0, 10.0)),
    *(KNeighborsRegressor(k) for k in (1, 5, 20)),
    *(DecisionTreeRegressor(max_depth=depth, random_state=0) for depth in (1, 2, 4, None)),
]
CLASSIFIERS = [
    *(LogisticRegression(C=c, max_iter=5000) for c in (1e-3, 0.1, 1.0)),
    GaussianNB(var_smoothing=1e-2),
    *(KNeighborsClassifier(k) for k in (1, 5, 20)),
    *(DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (2, 4, None)),
]


@pytest.mark.parametrize("name", NUMBERS)
def test_real_pool_of_numbers(name):
    X, y = (part[:200] for part in load_diabetes(return_X_y=True))
    answers = [cross_val_predict(model, X, y, cv=4)[:, None] for model in REGRESSORS]
    check(Pool(LOSSES[name], answers, y[:, None]))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("log_mixture", load_breast_cancer),
        ("log_mixture", load_iris),
        ("log_mixture", load_digits),
        ("logistic", load_breast_cancer),
        ("cross_entropy", load_iris),
        ("cross_entropy", load_digits),
    ],
)
def test_real_pool_of_classes(name, data):
    X, y = (part[:150] if data is load_digits else part[::2] for part in data(return_X_y=True))
    X = (X - X.mean(0)) / (X.std(0) + 1e-9)
    answers = np.array([cross_val_predict(model, X, y, cv=3, method="predict_proba") for model in CLASSIFIERS])
    if name == "log_mixture":
        check(Pool(LogMixture(), answers[:, np.arange(len(y)), y, None], np.ones((len(y), 1))))
        return
    scores = np.log(np.clip(answers, 1e-6, 1))
    if name == "logistic":
        check(Pool(Logistic(), scores[:, :, 1:] - scores[:, :, :1], y[:, None]))
    else:
        check(Pool(CrossEntropy(), scores, np.eye(answers.shape[2])[y]))
