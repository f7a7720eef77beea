"""Numbers at the edge of float64: columns, targets and weights measured in other units, or refused in a sentence."""

import logging
import math
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import Ridge

import gce
from gce import GCEClassifier, GCERegressor
from gce.frank_wolfe import LineSearch
from gce.frank_wolfe.simplex import Outputs, solve_simplex
from gce.losses import Loss, NonFiniteError, Poisson, Squared
from gce.losses.risk import Risk
from gce.preprocessing import Standardizer
from gce.preprocessing.sparse import SparseRows

DOCS = Path(__file__).parents[1] / "docs" / "losses.md"
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 3))
y = X[:, 0] + np.sin(2 * X[:, 1])
labels = (y > 0).astype(int)
ones = np.ones(80)
SHORT = {"max_iter": 6, "cv": 2, "random_state": 0, "verbose": False}


@pytest.mark.parametrize("scale", ["auto", "each", "robust", "common"])
@pytest.mark.parametrize("unit", [2.0**515, 2.0**-600, 2.0**1019, 2.0**-960], ids="{:.0e}".format)
@pytest.mark.parametrize("kind", ["dense", "gaps", "sparse"])
def test_columns_whose_squares_are_no_numbers_are_scaled_as_others(kind, unit, scale):
    """Powers of two: the same bits, in another unit."""
    rows = X.copy()
    if kind == "gaps":
        rows[::7, 1] = np.nan
    far = rows * unit
    made = SparseRows.from_matrix if kind == "sparse" else np.array
    plain, found = (Standardizer.fit(made(some), ones, 4.0, scale) for some in (rows, far))
    assert np.isfinite(found.scale).all()
    np.testing.assert_allclose(found.transform(far), plain.transform(rows), rtol=1e-12, atol=1e-15)


def test_a_few_extreme_values_do_not_hide_the_bulk():
    rows = X.copy()
    rows[0, 0], rows[1, 1], rows[:40, 2], rows[40:, 2] = 1e300, -1.7e308, 1.7e308, -1.7e308
    found = Standardizer.fit(rows, ones, 4.0, "auto")
    out = found.transform(rows)
    assert np.isfinite(out).all()
    assert (out.std(0) > 0.5).all()
    assert out[0, 0] == 4
    assert out[1, 1] == -4
    tiny = Standardizer.fit(X * 1e-320, ones, 4.0, "auto")
    np.testing.assert_array_equal(tiny.scale, 1.0)  # no factor could tell such numbers apart


@pytest.mark.parametrize("basis", ["tree", "neural"])
def test_a_model_of_extreme_columns_predicts_and_comes_back_from_its_file(basis, tmp_path):
    far = X * [1e155, 1e-200, 1]
    model = GCERegressor(basis=basis, **SHORT).fit(far, y)
    assert model.score(far, y) > 0.3
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").predict(far), model.predict(far))


def test_outliers_that_are_not_clipped_are_refused_by_column():
    far = X.copy()
    far[3, 1] = 1e300
    words = r"column 'x1' holds 1e\+300, .* times its spread from its centre, and clip=None"
    with pytest.raises(ValueError, match=words):
        GCERegressor(clip=None, **SHORT).fit(far, y)
    model = GCERegressor(basis="neural", clip=None, **SHORT).fit(X, y)
    assert np.isfinite(model.predict(far)).all()  # the hull's bound holds, however far a row lies
    far[3, 1], far[3, 2] = 1e308, -1e308  # sums of these are no numbers
    with pytest.raises(
        ValueError, match=r"column 'x1' holds 1e\+308, .* times its spread from its centre, and clip=None"
    ):
        model.predict(far)
    with pytest.raises(ValueError, match="and clip=None does not clip"):
        model.predict(csr_array(far))


# Targets.


@pytest.mark.parametrize("basis", ["tree", "symmetric", "forest", "neural"])
@pytest.mark.parametrize("power", [166, 320, -166, -320])
def test_the_unit_of_targets_does_not_matter(basis, power, tmp_path):
    unit = 2.0**power
    plain = GCERegressor(basis=basis, **SHORT).fit(X, y)
    model = GCERegressor(basis=basis, **SHORT).fit(X, y * unit)
    # leaves of forests are kept in float32 where that holds them
    np.testing.assert_allclose(model.predict(X) / unit, plain.predict(X), rtol=1e-6, atol=1e-6)
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").predict(X), model.predict(X))


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_forests_learn_targets_far_from_0(far):
    plain = GCERegressor(basis="forest", **SHORT).fit(X, y).score(X, y)
    assert plain > 0.9
    assert GCERegressor(basis="forest", **SHORT).fit(X, y + far).score(X, y + far) == pytest.approx(plain, abs=1e-3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (y * 1e155, r"y holds -?\d\.\d+e\+155, and sums of squares of such numbers are beyond float64: divide y"),
        (np.full(80, 1e300), r"y holds 1e\+300"),
        (y * 1e-155, r"y has a range of only \d\.\d+e-155, .*: multiply y"),
        ([10**400] * 80, "y holds a number of 401 digits"),
        (np.arange(80).astype("datetime64[D]"), "y holds dates or times: convert them to numbers"),
        (np.arange(80).astype("timedelta64[s]"), "y holds dates or times"),
        (list(np.arange(80).astype("datetime64[D]").astype(object)), "y holds dates or times"),
        (np.ma.masked_array(y, y > 1), "y is a masked array with masked values"),
    ],
    ids=["large", "constant", "close", "integer", "dates", "times", "objects", "masked"],
)
def test_targets_that_no_model_can_have(given, words):
    with pytest.raises(ValueError, match=words):
        GCERegressor(**SHORT).fit(X, given)
    if not isinstance(given, np.ndarray) or given.dtype.kind != "f" or np.abs(given).max() > 1:
        with pytest.raises(ValueError, match=words):
            GCERegressor(max_iter=2).fit(X, y, X_val=X, y_val=given)


# Weights.


@pytest.mark.parametrize("basis", ["tree", "forest", "neural"])
def test_equal_weights_below_one_are_no_weights(basis):
    plain = GCERegressor(basis=basis, **SHORT).fit(X, y).predict(X)
    for weight in (0.1, 0.7, 1e-200, 5e-324):
        found = GCERegressor(basis=basis, **SHORT).fit(X, y, sample_weight=np.full(80, weight)).predict(X)
        np.testing.assert_array_equal(found, plain)


def test_sums_of_weights_that_round_do_not_close_a_leaf():
    """A row may seem to be a little less than a row, and is allowed a leaf all the same."""
    weight = np.full(80, 0.1)
    weight[0] *= 1 + 1e-12
    found = GCERegressor(basis="forest", **SHORT).fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(found, GCERegressor(basis="forest", **SHORT).fit(X, y).predict(X), rtol=1e-5)


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("basis", ["tree", "forest", "neural"])
def test_extreme_weights_are_measured_in_another_unit(basis, unit):
    weight = rng.uniform(0.5, 1, 80) * unit
    model = GCEClassifier(basis=basis, **SHORT).fit(X, labels, sample_weight=weight)
    assert np.isfinite(model.predict_proba(X)).all()
    numbers = GCERegressor(basis=basis, **SHORT).fit(X, y, sample_weight=weight)
    assert np.isfinite(numbers.predict(X)).all()


@pytest.mark.parametrize("basis", ["tree", "forest", "neural"])
def test_a_class_beside_which_the_other_has_next_to_no_weight(basis):
    weight = np.where(np.arange(20) == 0, 1e15, 1.0)
    found = GCEClassifier(basis=basis, **SHORT | {"cv": None}).fit(X[:20], np.arange(20) % 2 == 0, weight)
    assert np.isfinite(found.predict_proba(X)).all()


@pytest.mark.parametrize("rows", [2, 3, 4, 80])
def test_weights_that_cannot_stand_beside_each_other_are_refused(rows):
    weight = np.geomspace(1e-300, 1e300, rows)
    with pytest.raises(
        ValueError, match=r"sample weights range from 1e-300 to 1e\+300, .* give weights within a factor of 1e\+100"
    ):
        GCERegressor(**SHORT).fit(X[:rows], y[:rows], sample_weight=weight)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({0: 1e300}, r"class weights range from 1 to 1e\+300"),
        ({0: 1e-320}, "class weights range from 1e-320 to 1"),
        ({0: 10**400}, "class weights must be positive numbers, got class_weight={0: 1000"),
        ({0: "a"}, "class weights must be positive numbers, got class_weight={0: 'a'}, which has 'a' for 0"),
        ({0: None}, "which has None for 0"),
        ({0: np.array([1, 2])}, "class weights must be positive numbers"),
        ({0: np.nan}, "which has nan for 0"),
        ({(0, 1): 1}, r"class_weight names \[\(0, 1\)\]"),
    ],
    ids=str,
)
def test_class_weights_that_are_none(given, words):
    with pytest.raises(ValueError, match=words):
        GCEClassifier(class_weight=given, **SHORT).fit(X, labels)


@pytest.mark.parametrize("basis", ["tree", "symmetric", "forest", "neural", "auto"])
@pytest.mark.parametrize("labels", [[0, 1, 1], [0, 1, 2]], ids=["two", "three"])
@pytest.mark.parametrize("weight", [[1e-30, 1e30, 1.0], [1e-40, 1e40, 1e-40]], ids=str)
def test_a_class_of_next_to_no_weight_has_a_probability(weight, labels, basis, tmp_path):
    model = GCEClassifier(basis=basis, max_atoms=3, random_state=0).fit(X[:3], labels, sample_weight=weight)
    assert np.isfinite(model.offset_).all()
    assert np.isfinite(model.predict_proba(X[:3])).all()
    model.save(tmp_path / "m.safetensors")
    assert np.array_equal(gce.load(tmp_path / "m.safetensors").predict_proba(X[:3]), model.predict_proba(X[:3]))


@pytest.mark.parametrize("seed", [56, 70, 84])
def test_the_bound_holds_where_it_is_a_trillionth_of_the_farthest_target(seed):
    """Of the bound's factor, taken from 1, few digits would be left."""
    rng = np.random.default_rng(seed)
    rows, target = rng.normal(size=(40, 3)), rng.normal(size=40)
    target[0], weight = 1e12, np.exp(rng.normal(size=40) * 20)
    model = GCERegressor(basis=["neural", "tree"], cv=None, max_atoms=3, random_state=0)
    model.fit(rows, target, sample_weight=weight)
    reach = np.abs(model.predict(rows) - model.offset_)
    assert (reach <= model.bound_ * (1 + 1e-9) + 1e-14).all()


# A few rows.


@pytest.mark.parametrize("basis", ["neural", "forest", ["neural", "tree"]], ids=str)
def test_one_row_of_each_class_makes_nobody_certain(basis):
    found = GCEClassifier(basis=basis, random_state=0, verbose=False).fit(X[:2], [0, 1]).predict_proba(X)
    assert found.max() < 0.7
    several = GCEClassifier(basis=basis, random_state=0, verbose=False).fit(X[:4], list("abcd")).predict_proba(X)
    assert several.max() < 0.6


def test_a_class_that_was_seen_once_has_the_chance_of_laplace():
    model = GCEClassifier(basis="forest", random_state=0, verbose=False).fit(X[:2], [0, 1])
    assert model.predict_proba(X[:2]).max() == pytest.approx(2 / 3, abs=1e-3)
    assert GCEClassifier(basis="forest", temperature=1.0, random_state=0).fit(X[:2], [0, 1]).temperature_ == 1.0


def test_rows_of_one_class_do_not_ask_for_certainty():
    """Of three rows two are held out, both of one class."""
    found = GCEClassifier(basis="tree", random_state=0, verbose=False).fit(X[:3], [0, 0, 1]).predict_proba(X)
    assert found.max() <= 2 / 3 + 1e-9


# Losses that are infinite or NaN somewhere.

PRICE = np.exp(12 + 0.5 * X[:, 0] - 0.3 * X[:, 1] + 0.2 * rng.normal(size=80))


class Unstable(Loss):
    """The logarithm of the hyperbolic cosine as it is usually written, which overflows beyond residuals of 710."""

    def value(self, pred, y):
        return torch.log(torch.cosh(pred - y)).sum(-1)


class Centred(Unstable):
    """The same, from the mean."""

    def start(self, y, weight):
        return (weight[:, None] * y).sum(0) / weight.sum()


class Broken(Squared):
    """Squared error, of which one part is not a number where scores have left the start."""

    quadratic = False

    def __init__(self, part="gradient"):
        self.part = part

    def _broken(self, part, pred, y, found):
        return found / 0 * 0 if part == self.part and pred.shape != y.shape and pred.std() > 0 else found

    def value(self, pred, y):
        return self._broken("risk", pred, y, super().value(pred, y))

    def gradient(self, pred, y):
        return self._broken("gradient", pred, y, super().gradient(pred, y))

    def majorizer(self, pred, y):
        return self._broken("Hessian", pred, y, super().majorizer(pred, y))


def of_the_docs():
    """``LogCosh`` of docs/losses.md."""
    (block,) = re.findall(r"^class LogCosh\(Loss\):\n(?:    .*\n|\n)+", DOCS.read_text(), re.M)
    known = {"Loss": Loss, "torch": torch, "math": math}
    exec(block, known)
    return known["LogCosh"]()


@pytest.mark.parametrize("basis", ["tree", "neural", ["tree", "symmetric"]])
@pytest.mark.parametrize("unit", [1.0, 1e-4])
def test_the_loss_of_the_docs_learns_prices(basis, unit):
    """It is the absolute error up to log(2), whatever the unit: what it learns is better than the median."""
    loss, target = of_the_docs(), unit * PRICE
    model = GCERegressor(loss=loss, basis=basis, max_atoms=15, cv=2, random_state=0).fit(X, target)
    assert all(np.isfinite(entry["risk"]) for entry in model.history_)
    error, alone = (np.abs(pred - target).mean() for pred in (model.predict(X), np.median(target)))
    assert error < 0.8 * alone
    pred, zero = torch.tensor([[-1e6], [-1.0], [0.0], [2.0], [1e6]], dtype=torch.float64), torch.zeros(5, 1)
    expected = [1e6 - math.log(2), math.log(math.cosh(1)), 0.0, math.log(math.cosh(2)), 1e6 - math.log(2)]
    np.testing.assert_allclose(loss.value(pred, zero.double()), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [GCERegressor, gce.NNRegressor, gce.NGCERegressor])
def test_a_loss_that_overflows_is_an_error_before_the_first_round(kind):
    words = (
        r"before the first round: the gradient of Unstable\(\) is nan at scores of up to [\d.e+]+, with targets of up"
    )
    with pytest.raises(NonFiniteError, match=words) as found:
        kind(loss=Unstable(), random_state=0).fit(X, PRICE)
    assert isinstance(found.value, ValueError)
    assert f"{PRICE.max():.6g}" in str(found.value)


FAMILIES = ["tree", "symmetric", "forest", "neural", "neuron"]


@pytest.mark.parametrize("basis", FAMILIES)
def test_a_gradient_that_overflows_is_an_error_with_the_round_and_the_family(basis):
    words = f"round 1 of the family '{basis}': the gradient of Centred() is nan at scores of up to {PRICE.mean():.6g}"
    with pytest.raises(NonFiniteError, match=re.escape(words)):
        GCERegressor(loss=Centred(), basis=basis, **SHORT).fit(X, PRICE)
    for kind in (gce.NNRegressor, gce.NGCERegressor):
        with pytest.raises(NonFiniteError, match=r"before the first epoch: the risk of Centred\(\) is inf"):
            kind(loss=Centred(), random_state=0).fit(X, PRICE)


@pytest.mark.parametrize(
    ("part", "basis", "algorithm"),
    [
        *(("Hessian", basis, "auto") for basis in ("tree", "symmetric")),
        # a forest ends with its first round, which looks at no other gradient
        ("risk", "forest", "auto"),
        *product(("gradient", "risk"), ("tree", "symmetric", "neural", "neuron"), ("auto", "pairwise", "nonlinear")),
    ],
)
def test_a_later_round_that_breaks_is_an_error(part, basis, algorithm):
    model = GCERegressor(loss=Broken(part), basis=basis, algorithm=algorithm, bound=50.0, **SHORT)
    with pytest.raises(
        NonFiniteError, match=rf"round \d of the family '{basis}': the (gradient|risk|Hessian|derivative)"
    ):
        model.fit(X, y)


@pytest.mark.parametrize("basis", ["tree", "symmetric"])
def test_a_kernel_that_overflows_is_an_error(basis):
    """The compiled rounds of boosting say so, too: means are exp(800)."""
    with pytest.raises(NonFiniteError, match=rf"round 1 of the family '{basis}': the .* at scores of up to 8\d\d"):
        GCERegressor(loss="poisson", basis=basis, offset=800.0, **SHORT).fit(X, np.abs(y) + 1)


def test_every_family_is_named():
    with pytest.raises(NonFiniteError, match="round 1 of the family 'b'"):
        GCERegressor(loss="poisson", basis={"b": "tree", "a": "forest"}, offset=800.0, **SHORT).fit(X, np.abs(y) + 1)


def test_a_step_size_that_is_not_a_number_is_an_error():
    class Lost(LineSearch):
        def __call__(self, line, t):
            return line.limit * (math.nan if t == 3 else 0.5)

    with pytest.raises(NonFiniteError, match="round 3 of the family 'neuron': the step size of Squared"):
        GCERegressor(basis="neuron", algorithm="frank-wolfe", line_search=Lost(), **SHORT).fit(X, y)


def test_rows_held_out_that_overflow_are_an_error():
    far = np.where(np.arange(80) == 79, 1e9, y)
    words = r"round 1 of the family 'neuron': the risk of rows held out of Centred\(\) is inf at scores"
    with pytest.raises(NonFiniteError, match=words):
        GCERegressor(loss=Centred(), basis="neuron", **SHORT | {"cv": None}).fit(X[:70], y[:70], X_val=X, y_val=far)


class Curved(Squared):
    """Squared error with a Hessian of one's own, whose root is ``factor`` times the right one."""

    quadratic = False

    def __init__(self, factor=1.0):
        self.factor = factor

    def hessian_root(self, pred, y, d):
        return self.factor * super().hessian_root(pred, y, d)

    def smoothness(self, bound):
        return math.inf


STACKED = [("a", Ridge()), ("b", Ridge(1e3))]


@pytest.mark.parametrize("factor", [math.nan, math.inf])
@pytest.mark.parametrize(
    "model", [GCERegressor(max_atoms=4, random_state=0), gce.ConvexStackingRegressor(STACKED, random_state=0)], ids=type
)
def test_a_hessian_that_is_infinite_or_nan_is_an_error(model, factor):
    words = r"weights of \d+ models: the Hessian of Curved\(factor=(nan|inf)\) is (nan|inf) at scores of up to"
    with pytest.raises(NonFiniteError, match=words):
        clone(model).set_params(loss=Curved(factor)).fit(X, y)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_majorizer_of_a_quadratic_loss_that_is_infinite_or_nan_is_an_error(wrong):
    class Wrong(Squared):
        def majorizer(self, pred, y):
            return torch.full_like(pred, wrong)

    with pytest.raises(NonFiniteError, match=r"round 1 of the family 'tree': the Hessian of Wrong\(\) is"):
        GCERegressor(loss=Wrong(), basis="tree", **SHORT).fit(X, y)


def test_a_row_without_weight_may_have_an_infinite_hessian():
    """Weights over a pool are those of the rows that have a weight."""

    class Counts(Poisson):
        def hessian_root(self, pred, y, d):
            return torch.where(y > 1e3, math.inf, super().hessian_root(pred, y, d))

    gen = np.random.default_rng(4)
    target = torch.from_numpy(gen.poisson(3.0, (30, 1)).astype(float))
    models = [torch.from_numpy(gen.normal(size=(30, 1))) for _ in range(3)]
    weight, zero = torch.full((1, 30), 1 / 30, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    alone = solve_simplex(Risk(Counts(), target, weight, zero), Outputs(models))
    far = torch.cat([target, torch.full((1, 1), 1e6, dtype=torch.float64)])
    longer = torch.cat([weight, torch.zeros(1, 1, dtype=torch.float64)], 1)
    found = solve_simplex(Risk(Counts(), far, longer, zero), Outputs([torch.cat([m, m[:1]]) for m in models]))
    assert found.converged
    assert 0 < found.weights.max() < 1
    np.testing.assert_allclose(found.weights, alone.weights, atol=1e-6)


class Steep(Squared):
    """Squared error, whose gradient is infinite for high targets: at once, or where scores have left the start."""

    def __init__(self, later=False):
        self.later = later

    def gradient(self, pred, y):
        found = super().gradient(pred, y)
        return found if self.later and float(pred.std()) == 0 else torch.where(y > 1, math.inf, found)


NETWORKS = pytest.mark.parametrize("kind", [gce.NNRegressor, gce.NGCERegressor])


@NETWORKS
def test_a_gradient_that_is_infinite_for_some_rows_is_an_error_before_the_first_epoch(kind):
    with pytest.raises(NonFiniteError, match=r"before the first epoch: the gradient of Steep\(\) is inf at scores"):
        kind(loss=Steep(), max_epochs=5, random_state=0).fit(X, y)


@NETWORKS
def test_networks_whose_training_breaks_are_those_of_the_best_epoch(kind, caplog):
    """As docs/losses.md says, and the log: the epochs before are kept."""
    with caplog.at_level(logging.WARNING, "gce"):
        model = kind(loss=Steep(later=True), max_epochs=5, random_state=0).fit(X, y)
    assert "training turned NaN or infinite and stopped at its best epoch so far" in caplog.text
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_only_targets_that_are_not_of_order_1_are_to_be_divided(unit):
    with pytest.raises(NonFiniteError) as found:
        GCERegressor(loss=Broken("gradient"), basis="tree", bound=50.0 * unit, **SHORT).fit(X, unit * y)
    assert ("divide y, so that it is of order 1" in str(found.value)) == (unit != 1.0)
    assert ("write the loss so that it is finite there" in str(found.value)) == (unit == 1.0)


def test_stacks_of_a_loss_that_overflows_are_an_error():
    stack = gce.ConvexStackingRegressor(STACKED, loss=Centred())
    with pytest.raises(
        NonFiniteError, match=r"weights of \d models: the risk of Centred\(\) is inf at scores of up to"
    ):
        stack.fit(X, PRICE)


def test_rows_of_other_members_may_overflow_along_a_step():
    """A row without weight has no part in the derivative: 0 times infinity is not NaN."""
    target = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    weight = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    risk = Risk(Poisson(), target, weight, torch.zeros(1, dtype=torch.float64))
    step = torch.tensor([[[-1.0], [800.0]]], dtype=torch.float64)
    line = risk.along(torch.zeros(1, 2, 1, dtype=torch.float64), step, torch.ones(1, 1, dtype=torch.float64))
    size = torch.ones(1, 1, dtype=torch.float64)
    assert float(line.slope(size)) == pytest.approx(1 - math.exp(-1))


SHAPES = {
    "kept outputs": (
        lambda pred, y: (pred - y) ** 2,
        r"value of the loss .* returned shape \(80, 1\) for scores of shape",
    ),
    "one number": (
        lambda pred, y: ((pred - y) ** 2).mean(),
        r"value of the loss .* returned shape \(\) for scores of shape",
    ),
    "no tensor": (
        lambda pred, y: 3.0,
        r"value of the loss .* returned an object of type float for scores of shape \(80, 1\)",
    ),
    "numpy": (
        lambda pred, y: ((pred.detach() - y) ** 2).sum(-1).numpy(),
        r"value of the loss .* returned an object of type ndarray for scores of shape",
    ),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_a_value_of_another_shape_is_told_so(kind):
    how, words = SHAPES[kind]

    class Own(Loss):
        def value(self, pred, y):
            return how(pred, y)

    with pytest.raises(ValueError, match=words + r".*one number for each row .*of shape \(80,\)"):
        GCERegressor(loss=Own(), basis="tree", **SHORT).fit(X, y)


def test_gradients_and_starts_of_another_shape_are_told_so():
    class Summed(Squared):
        def gradient(self, pred, y):
            return super().gradient(pred, y).sum(-1)

    class Scalar(Squared):
        def start(self, y, weight):
            return super().start(y, weight).sum()

    class Rows(Squared):
        def value(self, pred, y):
            return super().value(pred, y).sum(-1)

    words = {
        Summed(): r"gradient of the loss Summed\(\) returned shape \(2, 80\) for scores of shape \(2, 80, 1\)",
        Scalar(): r"start of the loss Scalar\(\) returned shape \(\) for targets of shape \(80, 1\)",
        Rows(): r"value of the loss Rows\(\) returned shape \(2,\) for scores of shape \(2, 80, 1\)",
    }
    for loss, said in words.items():
        with pytest.raises(ValueError, match=said):
            GCERegressor(loss=loss, basis="neuron", **SHORT).fit(X, y)


def test_shapes_that_are_looked_at_before_the_first_round_are_told_so():
    class Start(Loss):
        """The default ``start`` bisects its gradient."""

        def value(self, pred, y):
            return ((pred - y) ** 2).sum(-1)

        def gradient(self, pred, y):
            return 2 * (pred - y).sum(-1)

    with pytest.raises(ValueError, match=r"gradient of the loss Start\(\) returned shape \(80,\) for scores of shape"):
        GCERegressor(loss=Start(), basis="neuron", **SHORT).fit(X, y)


@pytest.mark.parametrize("basis", ["tree", "neuron", "stack"])
def test_roots_of_a_hessian_of_another_shape_are_told_so(basis):
    class Root(Loss):
        has_hessian = True

        def value(self, pred, y):
            return ((pred - y) ** 2).sum(-1)

        def smoothness(self, bound):
            return 2.0

        def hessian_root(self, pred, y, d):
            return 2**0.5 * d.sum(-1)

    model = GCERegressor(loss=Root(), basis=["tree", basis], **SHORT)
    if basis == "stack":
        model = gce.ConvexStackingRegressor(STACKED, loss=Root())
    if basis == "tree":
        model.set_params(basis="tree")
    with pytest.raises(ValueError, match=r"hessian_root of the loss Root\(.*\) returned shape .* for directions of"):
        model.fit(X, y)
