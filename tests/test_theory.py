import doctest
import importlib
import inspect
import math
import pkgutil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import gce.theory
from gce.bases import Basis, Neural, Neuron, Pool
from gce.losses import CrossEntropy, Logistic, Power, PseudoHuber, Quantile, Squared
from gce.theory import bounds, capacity, rates, shattering

MODULES = sorted(f"gce.theory.{module.name}" for module in pkgutil.iter_modules(gce.theory.__path__))
CONSTANTS = (bounds.one_sided_constant, bounds.stated_constant, bounds.appendix_constant)


PUBLIC = [getattr(gce.theory, name) for name in gce.theory.__all__]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_the_docstrings(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.failed == 0
    assert done.attempted > 0 or all(public.__module__ != name for public in PUBLIC)


SHOWN = [*filter(inspect.isfunction, PUBLIC), shattering.circle]
SHOWN += [shattering.ThresholdUnits, shattering.ThresholdedCombination]


@pytest.mark.parametrize("public", SHOWN, ids=lambda public: public.__name__)
def test_what_is_public_has_an_example(public):
    found = doctest.DocTestFinder(recurse=False).find(public)
    assert found
    assert found[0].examples


# Capacity.


def test_proposition_1_and_its_conditions():
    assert capacity.vc_lower_bound(20, 256) == 20 * 256 / 8 * 6
    for d, k, words in [(3, 1, "d > 3"), (12, 17, "k <= 2"), (12, 0, "k must be"), (4.5, 1, "d must be")]:
        with pytest.raises(ValueError, match=words):
            capacity.vc_lower_bound(d, k)


def patterns(points, thresholds):
    """How many of the sign patterns I(u'x_i >= r_i) some u produces: each is a linear program."""
    reached = 0
    for labels in shattering.labelings(0, 1 << len(points), len(points)):
        sign = np.where(labels == 1, -1.0, 1.0)
        slack = np.where(labels == 1, 0.0, 1e-3)  # "below" is strict; far above the solver's tolerance
        program = linprog(
            np.zeros(points.shape[1]), sign[:, None] * points, sign * thresholds - slack, bounds=(None, None)
        )
        reached += program.success
    return reached


@pytest.mark.parametrize("d", [1, 2, 3])
def test_pseudodimension_of_neurons_is_d(d):
    # tanh is increasing: outputs compared with t are products compared with atanh(t)
    assert patterns(np.eye(d), np.zeros(d)) == 2**d
    rng = np.random.default_rng(d)
    for _ in range(5):
        assert patterns(rng.normal(size=(d + 1, d)), rng.normal(size=d + 1)) < 2 ** (d + 1)
    assert capacity.single_neurons(d) == d


@pytest.mark.parametrize("d", [1, 2])
def test_pseudodimension_of_threshold_units_is_d_plus_1(d):
    with_one = np.hstack([np.vstack([np.zeros(d), np.eye(d)]), np.ones((d + 1, 1))])
    assert patterns(with_one, np.zeros(d + 1)) == 2 ** (d + 1)
    rng = np.random.default_rng(d)
    for _ in range(5):
        more = np.hstack([rng.normal(size=(d + 2, d)), np.ones((d + 2, 1))])
        assert patterns(more, np.zeros(d + 2)) < 2 ** (d + 2)
    assert capacity.threshold_units(d) == d + 1


@pytest.mark.parametrize(("d", "hidden"), [(1, 1), (13, 10), (100, 50), (3, 200)])
def test_relu_bound_is_where_the_sign_patterns_no_longer_suffice(d, hidden):
    W = hidden * (d + 2) + 1

    def log_patterns(m):  # natural logarithms of the two counts of the docstring
        return hidden * (d + 1) * np.log(math.e * m / (d + 1)) + np.log(2) + W * np.log(4 * math.e * m / W)

    p = capacity.relu_networks(d, hidden)
    assert p > W
    assert log_patterns(p) >= p * np.log(2) > log_patterns(p) - np.log(2)
    assert all(log_patterns(m) < m * np.log(2) for m in (p + 1, 2 * p, 10 * p))


def test_pseudodimension_of_what_is_offered():
    assert capacity.pseudodimension(Neuron(), d=4, rows=10) == 4
    assert capacity.pseudodimension(Neural(), d=4, rows=100) == capacity.relu_networks(4, 10)
    assert capacity.pseudodimension(Neural(), d=4, rows=100_000) == capacity.relu_networks(4, 50)
    tanh = Neural(hidden=3, activation="tanh")
    assert capacity.pseudodimension(tanh, d=4, rows=10) == capacity.tanh_networks(4, 3)
    assert capacity.tanh_networks(4, 3) == int((20 * 4) ** 2 + 11 * 20 * 4 * math.log2(18 * 20 * 4**2))
    assert capacity.pseudodimension(Pool(outputs=np.zeros((7, 5))), d=4, rows=5) == 3
    assert capacity.pseudodimension(Pool(functions=[len] * 6), d=4, rows=5) == 2
    with pytest.raises(ValueError, match="Neural, Neuron and Pool"):
        capacity.pseudodimension(Basis(), d=4, rows=10)


# Shattering.


@pytest.mark.parametrize("k", range(1, 13))
def test_proposition_2_shatters(k):
    assert shattering.shatters(shattering.LinearShattering(k))
    assert shattering.shatters(shattering.ConvexShattering(k, d=4))


@pytest.mark.parametrize("k", [1, 2, 12])
def test_convex_weights_are_on_the_simplex_and_need_no_slack(k):
    construction = shattering.ConvexShattering(k)
    every = shattering.labelings(0, 1 << k, k)
    classify = construction.classifier(every)
    assert (classify.weights >= 0).all()
    np.testing.assert_allclose(classify.weights.sum(-1), 1, rtol=0, atol=(k + 1) * np.finfo(float).eps)
    scores = classify.score(construction.points)
    assert (scores[every == 1] >= 1 / (k + 1)).all()
    assert (scores[every == 0] == 0).all()


def test_the_papers_threshold_fails_in_floating_point():
    def silent_somewhere(k):
        points = shattering.circle(k)
        return not np.array_equal(shattering.ThresholdUnits(points, np.ones(k))(points), np.eye(k))

    assert any(map(silent_somewhere, range(3, 13)))


@pytest.mark.parametrize("k", [1, 2, 3, 7, 1000])
def test_a_unit_fires_at_its_own_point_alone(k):
    construction = shattering.LinearShattering(k)
    assert np.array_equal(construction.units(construction.points), np.eye(k))


def test_the_verifier_can_say_no():
    class Broken(shattering.LinearShattering):
        @property
        def units(self):
            return shattering.ThresholdUnits(self.points, np.full(self.k, 1.5))

    assert not shattering.shatters(Broken(4))
    with pytest.raises(ValueError, match="d must be"):
        shattering.shatters(shattering.LinearShattering(3, d=1))


# Bounds.


@pytest.mark.parametrize("loss", [Squared(), Power(1.0), Power(1.5), Power(3.0), Logistic()], ids=repr)
@given(bound=st.floats(0.1, 5), offset=st.floats(-3, 3), seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_constants_dominate_the_loss(loss, bound, offset, seed):
    rng = np.random.default_rng(seed)
    f, g, y = (torch.from_numpy(rng.uniform(-bound, bound, (200, 1)) + offset) for _ in range(3))
    y = (y > offset).double() if isinstance(loss, Logistic) else y
    change = (loss.value(f, y) - loss.value(g, y)).abs()
    assert (change <= bounds.lipschitz(loss, bound) * (f - g).abs()[:, 0] * (1 + 1e-9) + 1e-12).all()
    low, high = bounds.loss_range(loss, bound, offset)
    assert (loss.value(f, y) >= low - 1e-12).all()
    assert (loss.value(f, y) <= high * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", [Squared(), Power(1.0), Power(3.0)], ids=repr)
def test_constants_are_attained(loss):
    edge, near, other = (torch.tensor([[v]], dtype=torch.float64) for v in (2.0, 2.0 - 1e-6, -2.0))
    slope = (loss.value(edge, other) - loss.value(near, other)) / 1e-6
    assert bounds.lipschitz(loss, 2.0) == pytest.approx(slope.item(), rel=1e-5)
    assert bounds.lipschitz(loss, 2.0) == bounds.lq_lipschitz(bounds.exponent(loss), 2.0)
    assert bounds.loss_range(loss, 2.0)[1] == pytest.approx(loss.value(edge, other).item())


@pytest.mark.parametrize("loss", [Quantile(), PseudoHuber(1.0), CrossEntropy()], ids=repr)
def test_other_losses_are_refused(loss):
    with pytest.raises(ValueError, match=r"squared error.*logistic"):
        bounds.lipschitz(loss, 1.0)


NUMBERS = {
    "lipschitz": st.floats(0.1, 10),
    "bound": st.floats(0.1, 10),
    "delta": st.floats(0.001, 0.9),
    "p": st.integers(1, 10_000),
    "D": st.floats(0.01, 20),
}


@given(numbers=st.fixed_dictionaries(NUMBERS), n=st.integers(1, 10**6))
@settings(max_examples=50, deadline=None)
def test_constants_grow_with_what_they_should(numbers, n):
    one_sided, stated, appendix = (c(**numbers) for c in CONSTANTS)
    assert 0 < one_sided < stated < appendix
    for constant in CONSTANTS:
        here = constant(**numbers)
        for name in ("lipschitz", "bound", "p", "D"):
            assert constant(**numbers | {name: numbers[name] * 2}) > here
        assert constant(**numbers | {"delta": numbers["delta"] / 2}) > here
        assert bounds.excess_risk(here, 4 * n) == pytest.approx(bounds.excess_risk(here, n) / 2)


@given(numbers=st.fixed_dictionaries(NUMBERS), n=st.integers(1, 10**6))
@settings(max_examples=50, deadline=None)
def test_the_appendix_added_up_step_by_step(numbers, n):
    c, B, D, p = (numbers[name] for name in ("lipschitz", "bound", "D", "p"))
    step_one = bounds.mcdiarmid(n, 4 * c * B / n, numbers["delta"])
    step_three = 2 * c * (D * B * math.sqrt(p / n)) + 4 * c * B / math.sqrt(n)
    total = step_one + 2 * step_three
    assert bounds.excess_risk(bounds.appendix_constant(**numbers), n) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("p", [1, 2, 5, 30, 1000])
def test_the_admissible_constant_covers_the_whole_entropy(p):
    k = np.arange(1, 60)
    entropy = 1 + np.log(p + 1) + p * np.log(2 * np.e / (0.5 ** (k + 1)) ** 2)
    chained = 6 * (0.5**k * np.sqrt(entropy)).sum()
    assert chained <= bounds.admissible_constant() * math.sqrt(p) * (1 + 1e-12)
    assert chained > 0.8 * bounds.admissible_constant() * math.sqrt(p)


@given(p=st.integers(1, 1000), n=st.integers(10, 10**6))
@settings(max_examples=50, deadline=None)
def test_theorem_1_is_faster_than_the_root(p, n):
    stated, covering = rates.stated_xi(p), rates.covering_xi(p)
    assert 0 < stated < covering < 1
    slow, fast = (rates.fast_rate(n, tail=1.0, xi=xi) for xi in (covering, stated))
    assert 1 / n < fast < slow < n**-0.5
    assert slow == pytest.approx((1 / n) ** ((p + 1) / (2 * p + 1)))
    assert fast == pytest.approx((1 / n) ** ((p + 2) / (2 * p + 2)))
    whole = rates.theorem1_excess_risk(n, tail=1.0, xi=stated, bound=3.0, c1=2.0)
    assert whole == pytest.approx(fast * 4 * 2 * 9 * (p + 2) / p)


def test_hoeffding_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    n, delta, mean = 40, 0.2, 0.3
    sample = rng.random((20_000, n)) < mean  # of all losses in [0, 1] a coin is the worst
    missed = (mean > sample.mean(1) + bounds.hoeffding(n, 1.0, delta)).mean()
    assert 0 < missed <= delta


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bounds.hoeffding(10, 1.0, 0.0), "delta must be strictly"),
        (lambda: bounds.hoeffding(0, 1.0, 0.1), "n must be"),
        (lambda: bounds.excess_risk(1.0, 0), "n must be"),
        (lambda: bounds.lq_lipschitz(0.5, 1.0), "q >= 1"),
        (lambda: bounds.lq_lipschitz(2, -1.0), "bound must be"),
        (lambda: bounds.stated_constant(lipschitz=1, bound=1, delta=2, p=1, D=1), "delta must be strictly"),
        (lambda: bounds.appendix_constant(lipschitz=1, bound=1, delta=0.1, p=-1, D=1), "p must be"),
        (lambda: bounds.one_sided_constant(lipschitz=1, bound=1, delta=0.1, p=1, D=math.nan), "D must be"),
        (lambda: rates.fast_rate(10, tail=1.0, xi=1.0), "xi must be strictly"),
        (lambda: rates.theorem1_excess_risk(10, tail=1.0, xi=0.0, bound=1.0, c1=1.0), "xi must be strictly"),
        (lambda: bounds.excess_risk(1.0, math.nan), "n must be an integer"),
        (lambda: bounds.excess_risk(1.0, math.inf), "n must be an integer"),
        (lambda: capacity.finite_class(2.5), "size must be an integer"),
    ],
)
def test_bad_numbers_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_unknown_constant_has_no_default():
    for constant in CONSTANTS:
        with pytest.raises(TypeError, match="'D'"):
            constant(lipschitz=1, bound=1, delta=0.1, p=1)
