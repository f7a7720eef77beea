"""What trees and forests are fitted to, and what holds of them whatever the data: by independent implementations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from gce import GCEClassifier, GCERegressor
from gce._utils.random import Streams
from gce.bases import FitContext, Forest, SymmetricTree, Tree, Zero
from gce.bases.objectives import Joint, Linear, Quadratic
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import Constraints, Sampling, Shape, TreeData
from gce.frank_wolfe.ensemble import ConvexEnsemble, tighten_bound
from gce.losses.risk import Risk
from helpers import LOSSES, outputs_of, targets

#: Losses whose curvature is their second derivative: of the Huber losses it is that of a parabola above.
SMOOTH = sorted(set(LOSSES) - {"absolute", "quantile", "quantiles", "huber", "pseudo_huber", "power1.5"})
FREE = {"cv": None, "validation_fraction": None, "random_state": 0, "n_iter_no_change": None}


def problem(loss, seed=0, n=9, members=2):
    rng = np.random.default_rng(seed)
    k = outputs_of(LOSSES[loss])
    weight = torch.from_numpy(rng.integers(0, 3, (members, n)).astype(float))
    weight[:, 0] = 1.0
    offset = torch.from_numpy(rng.normal(size=k) / 3)
    risk = Risk(LOSSES[loss], targets(LOSSES[loss], n, rng), weight / weight.sum(1, keepdim=True), offset)
    X, pred = torch.from_numpy(rng.normal(size=(n + 2, 3))), torch.from_numpy(rng.uniform(-1, 1, (members, n, k)))
    return X, risk, pred, torch.full((k,), 1.5, dtype=torch.float64)


def streams(members):
    return Streams(0, tuple(range(members))).at(1, torch.arange(members), torch.zeros(members, dtype=torch.long))


def differences(value, n, k, h):
    """First and second derivatives of ``value(g)`` in each entry of ``g (n, k)`` alone, around 0: ``(2, M, n, k)``."""
    first, second = [], []
    for i in range(n):
        for j in range(k):
            g = torch.zeros(n, k, dtype=torch.float64)
            g[i, j] = h
            up, here, down = value(g), value(0 * g), value(-g)
            first.append((up - down) / (2 * h))
            second.append((up - 2 * here + down) / h**2)
    return (torch.stack(one, 1).unflatten(1, (n, k)) for one in (first, second))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_model_has_the_slopes_and_bends_of_its_objective(loss):
    _, risk, pred, bound = problem(loss)
    (n, k), a = risk.y.shape, 0.3
    quadratic = Quadratic(risk, pred, risk.gradient(pred), bound).model
    joint = Joint(risk, pred, bound, start=a).model
    for model, value in (
        (quadratic, lambda g: risk.value(pred + g)),
        (joint, lambda g: risk.value((1 - a) * pred + a * g)),
    ):
        slope, _ = differences(value, n, k, 1e-6)
        torch.testing.assert_close(model.gradient, slope, rtol=1e-5, atol=1e-8)
        _, bend = differences(value, n, k, 1e-3)
        if loss in SMOOTH:
            torch.testing.assert_close(model.hessian, bend, rtol=2e-3, atol=1e-5)
    assert torch.equal(quadratic.unit, risk.unit)
    assert quadratic.free
    assert not joint.free


@pytest.mark.parametrize("loss", sorted(set(LOSSES) - {*SMOOTH, "huber", "pseudo_huber"}))
def test_kinks_bend_like_rows_weigh(loss):
    _, risk, pred, bound = problem(loss)
    model = Quadratic(risk, pred, risk.gradient(pred), bound).model
    assert torch.equal(model.hessian, risk.weight[..., None].expand_as(pred))


def test_the_linear_model_is_least_squares_on_the_slopes():
    """Among functions of one weighted length ``-D / weight`` points best downhill."""
    _, risk, pred, bound = problem("logistic")
    D = risk.gradient(pred)
    model = Linear(D, bound, risk=risk).model
    rows = risk.weight[0] > 0
    best = (-model.gradient / model.hessian)[0, rows, 0]
    weight = risk.weight[0, rows]

    def steep(g):
        return (D[0, rows, 0] * g).sum() / (weight * g**2).sum().sqrt()

    generator = torch.Generator().manual_seed(0)
    others = torch.randn(200, len(best), generator=generator, dtype=torch.float64)
    assert all(steep(best) <= steep(g) for g in others)
    assert all(steep(best) <= steep(best + 1e-3 * g) for g in others)


@given(st.integers(0, 10**6), st.floats(0.05, 0.95))
@settings(max_examples=25, deadline=None)
def test_the_conclusions_own_case(seed, a):
    """Nonlinear greedy, squared error, fixed step: regression on ``(y - (1-a) f) / a``."""
    _, risk, pred, bound = problem("squared", seed)
    model = Joint(risk, pred, bound, start=a).model
    wanted = (risk.y - risk.offset - (1 - a) * pred) / a
    for m, weight in enumerate(risk.weight):
        rows = weight > 0
        torch.testing.assert_close((-model.gradient / model.hessian)[m, rows], wanted[m, rows])


def grown_by_brute_force(X, D, H, leaves, depth, least, l2):
    """Best-first growth of a regression tree, on the rows themselves: what each of them gets."""
    partition = [(np.arange(len(X)), 0)]
    while len(partition) < leaves:
        best = (0.0, None, None, None)
        for place, (rows, level) in enumerate(partition):
            for j in range(X.shape[1]) if level < depth else ():
                for cut in np.unique(X[rows, j])[:-1]:
                    sides = [rows[X[rows, j] <= cut], rows[X[rows, j] > cut]]
                    if min(H[side].sum() for side in sides) < least * H.mean() * (1 - 1e-9):
                        continue
                    terms = [D[side].sum() ** 2 / (H[side].sum() + l2 * H.mean()) for side in (*sides, rows)]
                    gain = terms[0] + terms[1] - terms[2]
                    if gain > best[0] * (1 + 1e-9):
                        best = (gain, place, *sides)
        if best[1] is None:
            break
        level = partition[best[1]][1] + 1
        partition[best[1] : best[1] + 1] = [(side, level) for side in best[2:]]
    out = np.zeros(len(X))
    for rows, _ in partition:
        out[rows] = -D[rows].sum() / (H[rows].sum() + l2 * H.mean())
    return out


@given(st.integers(0, 10**6), st.integers(2, 6), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 1.0]))
@settings(max_examples=60, deadline=None)
def test_best_first_growth_equals_brute_force(seed, leaves, depth, least, l2):
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.integers(0, 4, (12, 3)).astype(float))
    D = torch.from_numpy(rng.normal(size=(1, 12, 1)))
    objective, bound = Linear(D, torch.tensor([50.0], dtype=torch.float64)), 50.0
    proposal = Tree(leaves, depth, least, l2).minimize(objective, X, rng=streams(1), context=FitContext())
    wanted = grown_by_brute_force(X.numpy(), D[0, :, 0].numpy(), np.full(12, 1 / 12), leaves, depth, least, l2)
    out = proposal.atoms(X)[0, :, 0].numpy()
    np.testing.assert_allclose(float(proposal.step_length[0]) * out, wanted, rtol=1e-9, atol=1e-12)
    assert np.abs(out).max() == pytest.approx(bound)


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_boosting_equals_plain_gradient_boosting(seed, leaves, least):
    """A loop that knows no hull, on brute-force trees."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (15, 2)) + rng.normal(size=(15, 2)) / 100
    y = X[:, 0] + rng.normal(size=15)
    model = GCERegressor(basis=Tree(leaves, min_samples_leaf=least), max_atoms=5, **FREE).fit(X, y)
    plain = np.full(15, y.mean())
    for _ in range(5):
        residual = y - plain
        plain += 0.1 * grown_by_brute_force(X, -residual, np.ones(15), leaves, 64, least, 1.0)
    np.testing.assert_allclose(model.predict(X), plain, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-290, 1e-100, 1e100, 1e290])
@pytest.mark.parametrize("symmetric", [False, True])
def test_leaves_are_means_however_small_or_large_gradients_are(symmetric, scale):
    rng = np.random.default_rng(0)
    codes, y = rng.integers(4, size=(1, 200, 4)).astype(np.uint8), rng.normal(size=200)
    data = TreeData(
        codes, np.full(4, 4), -scale * y[None, :, None], np.full((1, 200, 1), 1.0), np.full(1, 0.02), np.zeros(1)
    )
    sampling = Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, 4)
    grown = GrownTrees(data, Shape(6, 3, symmetric), sampling, Constraints(), Scratch())
    leaf, value = grown.leaf[0, 0], grown.nodes()[3]
    assert len(np.unique(leaf)) > 3
    for own in np.unique(leaf):
        # a leaf of a symmetric tree with too few rows is clipped to the range of the others
        if np.sum(leaf == own) >= 4:
            assert value[own] == pytest.approx(scale * y[leaf == own].mean(), rel=1e-9, abs=1e-12 * scale)


def awkward(draw_seed, n, constant, equal):
    rng = np.random.default_rng(draw_seed)
    X = np.where(constant, 3.0, np.round(rng.normal(size=(n, 3)), 1))
    X[:, 1] *= 10.0 ** rng.integers(-12, 12)
    return X, np.full(n, 2.0) if equal else 10.0 ** rng.integers(-6, 6) * rng.standard_cauchy(n)


@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.tuples(*[st.booleans()] * 3),
    st.booleans(),
    st.sampled_from(["linear", "quadratic", "joint"]),
    st.sampled_from(
        [
            Tree(4, min_samples_leaf=1),
            Tree(3, min_samples_leaf=1, l2_regularization=0.0),
            Tree(max_features=0.4),
            Forest(3),
        ]
    ),
)
@settings(max_examples=60, deadline=None)
def test_atoms_keep_to_the_bound(seed, n, constant, equal, kind, basis):
    X, y = awkward(seed, n, constant, equal)
    y = torch.from_numpy(y)[:, None]
    offset, bound = y.mean(0), torch.where((y - y.mean(0)).abs().amax(0) > 0, (y - y.mean(0)).abs().amax(0), 1.0)
    weight = torch.full((2, n), 1 / n, dtype=torch.float64)
    risk, pred = Risk(LOSSES["squared"], y, weight, offset), torch.zeros(2, n, 1, dtype=torch.float64)
    if kind == "joint" or isinstance(basis, Forest):
        objective = Joint(risk, pred, bound, start=0.5)
    elif kind == "linear":
        objective = Linear(risk.gradient(pred), bound, risk=risk)
    else:
        objective = Quadratic(risk, pred, risk.gradient(pred), bound)
    rows = torch.from_numpy(X)
    atoms = basis.minimize(objective, rows, rng=streams(2), context=FitContext()).atoms
    far = torch.cat([rows, -1e30 * rows, rows + 1e6])
    for out in (atoms(rows), atoms(rows.clone()), atoms(far)):
        assert out.isfinite().all()
        assert (out.abs() <= bound).all()
    torch.testing.assert_close(atoms(rows), atoms(rows.clone()), rtol=0, atol=0)
    torch.testing.assert_close(atoms.mix(rows, torch.full((2, 1), 0.5, dtype=torch.float64)), atoms(rows).mean(0))


@pytest.mark.parametrize(
    "basis",
    [Tree(4, min_samples_leaf=3), Tree(4, min_samples_leaf=3, l2_regularization=0.0), Forest(3, min_samples_leaf=2)],
)
@pytest.mark.parametrize("kind", ["numbers", "two", "three"])
def test_weighted_rows_equal_repeated_rows(basis, kind):
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(50, 3)), rng.integers(1, 4, 50)
    rows = np.repeat(np.arange(50), weight)
    score = X[:, 0] + rng.normal(size=50)
    y = {"numbers": score, "two": score > 0, "three": np.digitize(score, [-0.5, 0.5])}[kind]
    estimator = GCERegressor if kind == "numbers" else GCEClassifier
    calls = 1 if isinstance(basis, Forest) else 6
    one, two = (estimator(basis=basis, max_atoms=calls, **FREE) for _ in range(2))
    one.fit(X, y, weight)
    two.fit(X[rows], y[rows])
    np.testing.assert_allclose(one.raw_predict(X), two.raw_predict(X), rtol=1e-6, atol=1e-8)


@given(st.integers(0, 10**6), st.integers(2, 20), st.booleans(), st.sampled_from([0.05, 0.5, 1.0]))
@settings(max_examples=20, deadline=None)
def test_boosted_fits_stay_on_the_simplex_and_in_their_hull(seed, calls, classes, shrinkage):
    from gce.frank_wolfe.algorithms import Boosting

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 2))
    y = rng.normal(size=30) + 3 * X[:, 0]
    estimator, y = (GCEClassifier, np.arange(30) % 3) if classes else (GCERegressor, y)
    model = estimator(
        basis=Tree(4, min_samples_leaf=2), algorithm=Boosting(shrinkage), max_atoms=calls, cv=2, random_state=0
    )
    model.fit(X, y)
    ensemble = model.ensemble_
    assert (ensemble.weights >= 0).all()
    assert float(ensemble.weights.sum()) == pytest.approx(1, abs=1e-12)
    for m in range(2):
        assert float(ensemble.weights[ensemble.origin[:, 0] == m].sum()) == pytest.approx(0.5, abs=1e-12)
    for some in (X, 1e3 * X):
        rows = model.encode_rows(some)
        assert (ensemble.outputs(rows).abs() <= ensemble.bound).all()
        assert ((ensemble(rows) - ensemble.offset).abs() <= ensemble.bound * (1 + 1e-12)).all()
    # the hull is as small as can be: some member has spent all of the zero function
    spared = [
        float(ensemble.weights[: len(part)][ensemble.origin[: len(part), 0] == m].sum())
        for part in ensemble.parts
        if isinstance(part, Zero)
        for m in range(2)
    ]
    assert min(spared, default=0.0) < 1e-12


@given(st.integers(0, 10**6), st.lists(st.floats(0.01, 0.9), min_size=1, max_size=3))
@settings(max_examples=25, deadline=None)
def test_a_hull_drawn_in_holds_the_same_function(seed, spared):
    rng = np.random.default_rng(seed)
    members, X = len(spared), torch.from_numpy(rng.normal(size=(9, 3)))
    gradient = torch.from_numpy(rng.normal(size=(members, 9, 2)))
    bound = torch.tensor([2.0, 5.0], dtype=torch.float64)
    atoms = (
        Tree(3, min_samples_leaf=1)
        .minimize(Linear(gradient, bound), X, rng=streams(members), context=FitContext())
        .atoms
    )
    zero = torch.tensor(spared, dtype=torch.float64)
    weights = torch.cat([zero, 1 - zero]) / members
    origin = torch.tensor([[m, t] for t in (0, 1) for m in range(members)])
    wide = ConvexEnsemble([Zero(members, 2), atoms], weights, origin, torch.zeros(2, dtype=torch.float64), bound)
    tight = tighten_bound(wide)
    torch.testing.assert_close(tight(X), wide(X), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(tight.bound, (1 - zero.min()) * bound)
    assert (tight.weights > 0).all()
    assert float(tight.weights.sum()) == pytest.approx(1, abs=1e-12)
    assert (tight.origin[:, 1] == 0).sum() == (zero / members > zero.min() / members).sum()
    assert (tight.outputs(X).abs() <= tight.bound * (1 + 1e-15)).all()
    for m in range(members):
        torch.testing.assert_close(tight.of_member(m)(X), wide.of_member(m)(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("basis", ["auto", "tree", "forest"])
def test_few_sparse_rows_are_written_out(basis):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 4)) < 0.5, 0.0, rng.normal(size=(40, 4)))
    given = {"basis": basis, "max_atoms": 3, "cv": 2, "scale": "each", "random_state": 0}
    sparse, dense = GCERegressor(**given).fit(csr_array(X), X[:, 0]), GCERegressor(**given).fit(X, X[:, 0])
    np.testing.assert_allclose(sparse.predict(csr_array(X)), dense.predict(X), rtol=1e-6, atol=1e-9)


@given(
    st.integers(0, 10**6),
    st.sampled_from(["squared", "cross_entropy", "logistic"]),
    st.sampled_from(
        [
            Tree(max_leaf_nodes=6, min_samples_leaf=1, subsample=0.5, max_features=0.6),
            Tree(max_depth=2, min_samples_leaf=2),
            SymmetricTree(max_depth=3),
        ]
    ),
)
@settings(max_examples=40, deadline=None)
def test_what_a_round_knows_is_what_its_trees_say(seed, loss, basis):
    """Rows that were learned from have their leaves from the grower, others fall; evaluated anew, all fall alike."""
    X, risk, pred, bound = problem(loss, seed, n=25)
    proposal = basis.minimize(
        Quadratic(risk, pred, risk.gradient(pred), bound), X, rng=streams(2), context=FitContext()
    )
    assert torch.equal(proposal.outputs, proposal.atoms(X))
    assert proposal.outputs.abs().max() == bound.max()
