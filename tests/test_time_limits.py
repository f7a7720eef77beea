"""A limit of time: what is left for rounds, who is begun, and what is said; every clock is a made-up one."""

import gc
import math
import warnings
import weakref
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from gce import GCEClassifier, GCERegressor, GCESurvival, NGCERegressor, NNRegressor, Shards
from gce._utils.clock import StepTimer
from gce._utils.random import RoundStreams
from gce.bases import FitContext, Forest, Neural, Pool, SymmetricTree, Tree
from gce.bases.neural import compiled, descent
from gce.bases.objectives import Linear
from gce.bases.trees import TreeArrays, binned
from gce.frank_wolfe import Boosting
from gce.preprocessing.scaling import weighted_quantiles
from gce.training import residual_scale, round_weights, time_shares
from gce.training.callbacks import FamilyTimeLimit, TimeLimit
from gce.training.family_fit import Method
from gce.training.time_shares import TimeShares
from helpers import assert_same_model


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def perf_counter(self):
        return self.now


@pytest.fixture
def hand(monkeypatch):
    """A clock moved by hand, for all that looks at limits."""
    made = Clock()
    for module in ("gce._utils.clock", "gce.training.callbacks", "gce.training.time_shares", "gce.bases.trees.forest"):
        monkeypatch.setattr(f"{module}.time", made)
    return made


def step(t, seconds=0.0):
    return SimpleNamespace(t=t, seconds=seconds)


def rows(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, X[:, 0] + np.sin(3 * X[:, 1])


def test_another_step_like_the_last_must_end_in_time(hand):
    pace = StepTimer(110.0)
    hand.now += 4
    assert not pace.out_of_time()
    hand.now += 2
    assert not pace.out_of_time(after=1.9)
    hand.now += 2.5
    assert pace.out_of_time()


def test_what_comes_after_the_last_round_is_kept_from_the_rounds(hand):
    limit = TimeLimit(10.0)
    limit.reserve = 2.0
    hand.now += 4
    assert (limit.remaining, limit.remaining_for_rounds) == (6.0, 4.0)
    turn = limit.family_limit(2)
    assert turn.end == hand.now + 2.0


def test_a_turn_ends_before_a_round_that_would_end_too_late(hand):
    turn = FamilyTimeLimit(hand.now + 10)
    for t in (1, 2, 3):
        hand.now += 3
        assert turn(step(t, 3.0)) == (t == 3)
    assert turn.stopped


def test_what_is_done_once_before_the_first_round_is_no_pace(hand):
    turn = FamilyTimeLimit(hand.now + 10)
    hand.now += 8
    assert not turn(step(1, seconds=0.5))
    hand.now += 1.6
    assert turn(step(2, seconds=2.1))


def family(name):
    return SimpleNamespace(name=name, max_iter=10, max_calls=100)


def unfinished(rounds=0):
    return SimpleNamespace(rounds=rounds, continues=lambda max_iter, max_calls: True)


def planned(costs, limit):
    """Shares of families that take so many seconds at least."""
    found = TimeShares(tuple(map(family, costs)), {name: unfinished() for name in costs}, limit, FitContext())
    found._costs.update(costs)
    found._skip_slow_families(limit)
    return found


def test_a_family_that_cannot_end_in_its_share_is_not_begun(hand):
    limit = TimeLimit(12.0)
    found = planned({"tree": 1.0, "symmetric": 2.0, "forest": 9.0, "neural": 4.5}, limit)
    # of four shares of 3 s the forest's is too short, of three of 4 s the networks' is
    (turn,) = found.begin("tree")
    assert turn.end == hand.now + 6.0
    found._fits["tree"].rounds = 5
    hand.now += 6
    assert found.begin("symmetric")[0].end == hand.now + 6.0
    assert found.begin("forest") is None
    assert found.begin("neural") is None
    assert limit.skipped == ["forest", "neural"]


def test_what_one_family_leaves_goes_to_the_others(hand):
    found = planned({"tree": 0.0, "symmetric": 0.0}, TimeLimit(10.0))
    assert found.begin("tree")[0].end == hand.now + 5
    found._fits["tree"].rounds = 1
    hand.now += 1
    assert found.begin("symmetric")[0].end == hand.now + 9


def test_a_family_is_not_begun_where_the_one_before_it_took_too_long(hand):
    limit = TimeLimit(10.0)
    found = planned({"tree": 1.0, "symmetric": 3.0}, limit)
    found.begin("tree")
    found._fits["tree"].rounds = 1
    hand.now += 8
    assert found.begin("symmetric") is None
    assert limit.skipped == ["symmetric"]


def test_the_first_family_is_begun_however_late_it_is(hand):
    limit = TimeLimit(1.0)
    hand.now += 50
    found = planned({"tree": 9.0, "symmetric": 9.0}, limit)
    assert found.begin("tree")[0].remaining < 0


@pytest.mark.parametrize(
    ("cut", "skipped", "said"),
    [
        ([], [], ""),
        (["neural"], [], "time_limit=2.5 ended the fit early: neural was cut short;"),
        (["tree", "symmetric"], ["forest"], ": tree and symmetric were cut short and forest was not started;"),
        (["tree"], ["a", "b", "c"], ": tree was cut short and a, b and c were not started;"),
    ],
)
def test_words(hand, cut, skipped, said):
    limit = TimeLimit(2.5)
    limit.cut_short, limit.skipped = cut, skipped
    assert said in limit.message
    assert bool(said) == bool(limit.message)


@pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
def test_a_limit_of_nothing_gives_a_model_and_one_warning(kind):
    X, y = rows(300)
    y = y > 0 if kind is GCEClassifier else y
    with pytest.warns(ConvergenceWarning) as told:
        model = kind(time_limit=1e-9, random_state=0).fit(X, y)
    assert len(told) == 1
    words = "tree was cut short and symmetric, forest and neural were not started"
    assert words in str(told[0].message)
    assert told[0].filename == __file__
    assert len(model.predict(X)) == 300
    assert {entry["family"] for entry in model.history_} == {"tree", "all"}


def test_a_fit_that_ends_by_itself_does_not_warn():
    X, y = rows(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GCERegressor(time_limit=1e6, max_iter=3, cv=2, random_state=0).fit(X, y)


@pytest.fixture
def all_stages(monkeypatch):
    """All that is done with many rows only is done with few: families are measured, and rounds are weighted."""
    monkeypatch.setattr(time_shares, "_ENOUGH", 100)
    monkeypatch.setattr(round_weights, "_ENOUGH", 100)


SMALL = {"tree": Tree(max_leaf_nodes=4), "symmetric": SymmetricTree(), "forest": Forest(n_estimators=3)}
ALL = {**SMALL, "neural": Neural(hidden=3, max_epochs=20)}


def noisy(n=500, seed=0):
    """Columns of numbers and one of categories, and a target whose noise depends on one of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    X.loc[::9, "c"] = np.nan
    X["place"] = rng.choice(["here", "there", "nowhere"], n)
    y = X["a"] * (X["place"] == "here") + np.sin(3 * X["b"]) + (0.1 + (X["b"] > 0)) * rng.normal(size=n)
    return X, y.to_numpy()


def fitted_twice(model, *data):
    """Fits without a limit and with one that nothing reaches."""
    return [clone(model).set_params(time_limit=limit).fit(*data) for limit in (None, 1e6)]


@pytest.mark.usefixtures("all_stages")
@pytest.mark.parametrize("basis", ["auto", ALL, SMALL["tree"], SMALL["forest"], ALL["neural"]], ids=str)
def test_a_limit_that_does_not_bind_gives_the_model_of_no_limit(basis):
    X, y = noisy()
    one, other = fitted_twice(GCERegressor(basis=basis, max_iter=40, cv=3, random_state=0), X, y)
    assert_same_model(one, other, X)
    assert (one.result_.round_weights is None) == (other.result_.round_weights is None)
    if basis is ALL:
        assert one.result_.round_weights is not None
        assert one.result_.calibration.scale is not None


@pytest.mark.usefixtures("all_stages")
def test_nor_does_it_change_a_model_of_classes():
    X, y = noisy()
    for labels in (y > 0, np.digitize(y, [-1, 0, 1])):
        one, other = fitted_twice(GCEClassifier(basis=ALL, max_iter=20, cv=3, random_state=0), X, labels)
        assert_same_model(one, other, X)


@pytest.mark.usefixtures("all_stages")
def test_nor_one_of_rows_in_files(tmp_path):
    X, y = noisy()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    shards = Shards(str(tmp_path / "rows.parquet"), target="y")
    one, other = fitted_twice(GCERegressor(basis=ALL, max_iter=20, random_state=0), shards)
    assert_same_model(one, other, X)


@pytest.mark.usefixtures("all_stages")
def test_nor_one_of_times_until_an_event():
    X, y = noisy()
    times = np.rec.fromarrays([y > -1, np.exp(y)], names="event,time")
    one, other = fitted_twice(GCESurvival(basis="tree", max_atoms=20, cv=3, random_state=0), X, times)
    assert_same_model(one, other, X)


@pytest.mark.parametrize("kind", [NGCERegressor, NNRegressor])
def test_nor_one_that_is_trained_all_at_once(kind, monkeypatch):
    X, y = noisy()
    # a processor that is thought to need far longer for the scale of residuals
    monkeypatch.setattr(residual_scale, "_SECONDS", 1e6)
    one, other = fitted_twice(kind(hidden=3, max_epochs=5, cv=3, random_state=0), X, y)
    assert_same_model(one, other, X)


def time_ends(monkeypatch, name):
    """Time is over when a fit comes to a function, whose last argument is its deadline."""
    module = {"weigh_rounds": round_weights, "fit_scale": residual_scale}[name]
    true = getattr(module, name)
    monkeypatch.setattr(module, name, lambda *given: true(*given[:-1], -math.inf))


@pytest.mark.usefixtures("all_stages")
@pytest.mark.parametrize(
    ("late", "said"),
    [
        ("weigh_rounds", "families were weighted as a whole, not by round"),
        ("fit_scale", "prediction intervals have the same width for all rows"),
    ],
)
def test_what_is_left_out_at_the_end_for_lack_of_time_is_said(monkeypatch, late, said):
    X, y = noisy()
    model = GCERegressor(basis=ALL, max_iter=40, cv=3, random_state=0, time_limit=1e6)
    usual = clone(model).fit(X, y).result_
    time_ends(monkeypatch, late)
    with pytest.warns(ConvergenceWarning, match=f"time_limit=1e\\+06 changed the fit: {said}; a larger"):
        result = model.fit(X, y).result_
    assert usual.round_weights is not None
    assert usual.calibration.scale is not None
    assert (result.round_weights is None) == (late == "weigh_rounds")
    assert (result.calibration.scale is None) == (late == "fit_scale")
    assert not result.cut_short


def test_a_limit_that_takes_the_folds_says_so():
    X, y = rows(2100)
    with pytest.warns(ConvergenceWarning, match="rows were held out once, in place of folds"):
        model = GCERegressor(basis=Tree(max_leaf_nodes=2), max_iter=1, random_state=0, time_limit=0.5).fit(X, y)
    assert model.result_.members == 1


def test_longer_steps_are_said_and_taken_only_where_rounds_are_few(hand):
    basis = SimpleNamespace()
    for pace, longer in ((0.01, False), (1.0, True)):
        limit = TimeLimit(10.0)
        method = Method(Boosting(0.2), basis, None, None)
        one = SimpleNamespace(name="tree", max_iter=10, max_calls=100, method=method, automatic=True)
        found = TimeShares((one,), {"tree": unfinished()}, limit, FitContext())
        found._paces["tree"] = pace
        found.begin("tree")
        assert (found.method("tree") is method) != longer
        assert limit.shortcuts == ["tree took longer steps"] * longer


def test_families_are_rehearsed_on_few_rows_and_left_as_they_were(monkeypatch):
    X, y = rows(300)
    monkeypatch.setattr(time_shares, "_ENOUGH", 100)
    seen = []
    true = time_shares._shortest_round
    monkeypatch.setattr(time_shares, "_shortest_round", lambda own: seen.append(len(own.problem.y)) or true(own))
    given = {
        "basis": [Tree(max_leaf_nodes=4), SymmetricTree(), Forest(n_estimators=3), Neural(hidden=3)],
        "max_iter": 3,
        "cv": 2,
    }
    plain = GCERegressor(random_state=0, **given).fit(X, y)
    assert not seen
    timed = GCERegressor(random_state=0, time_limit=1e6, **given).fit(X, y)
    assert seen == [100] * 4
    assert np.array_equal(plain.predict(X), timed.predict(X))


def test_sparse_rows_are_rehearsed_too(monkeypatch):
    X, y = rows(300)
    monkeypatch.setattr(time_shares, "_ENOUGH", 100)
    monkeypatch.setattr("gce.preprocessing.sparse.DENSE_TRAINING_LIMIT", 0)
    seen = []
    true = time_shares._shortest_round
    monkeypatch.setattr(time_shares, "_shortest_round", lambda own: seen.append(own.problem.X.shape) or true(own))
    basis = Neural(hidden=2, max_epochs=2)
    GCERegressor(basis=basis, max_iter=2, cv=2, time_limit=1e6, random_state=0).fit(csr_array(X), y)
    assert seen == [(100, 4)]


def test_rows_are_coded_once_for_all_classes_of_as_many_codes(monkeypatch):
    X, y = rows(200)
    made = []
    true = binned.BinnedRows.of

    def noted(X, max_bins):
        rows = true(X, max_bins)
        made.append((max_bins, weakref.ref(rows)))
        return rows

    monkeypatch.setattr(binned.BinnedRows, "of", noted)
    basis = [Tree(max_leaf_nodes=4), SymmetricTree(), Forest(n_estimators=2)]
    GCERegressor(basis=basis, max_iter=2, cv=2, random_state=0).fit(X, y)
    # the last are those of the scale of residuals
    assert [max_bins for max_bins, _ in made] == [256, 128, 32]
    gc.collect()
    assert not any(rows() for _, rows in made)


def test_quantiles_of_even_weights_are_those_of_sorted_rows():
    X = np.random.default_rng(0).normal(size=(501, 3)).round(1)
    X[::7, 1] = np.nan
    even, levels = np.full(501, 0.3), (0.25, 0.5, 0.75)
    uneven = even.copy()
    # too little to move anything, and no longer even
    uneven[0] *= 1 + 1e-15
    assert np.array_equal(weighted_quantiles(X, even, levels), weighted_quantiles(X, uneven, levels))


def test_a_forest_has_as_many_trees_as_there_is_time_to_grow_and_ask(hand):
    forest = Forest(n_estimators=10)
    context = FitContext(hand.now + 10)

    def grow(first, last):
        """A leaf for each of two members, whose values name the member and the tree."""
        hand.now += 1
        whole = np.zeros(1, np.int32)
        return TreeArrays.of([(whole, np.zeros(1), whole, np.array([[10.0 * m + first]])) for m in range(2)])

    # a second to grow a tree and one to ask it about all rows: after five of both the time is over
    grown = forest._grow_until(grow, lambda trees: 1.0, context)
    assert grown.value.flatten().tolist() == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert context.cut_short


def test_networks_end_their_training_with_the_time(hand, monkeypatch):
    n = 64
    X, basis = torch.zeros(n, 3), Neural(hidden=2, batch_size=16, max_epochs=7)
    objective = Linear(torch.ones(1, n, 1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
    rng = RoundStreams((0,), ((0,),))
    epochs = []
    true = descent.row_orders

    def orders(*given):
        for order in true(*given):
            hand.now += 2
            epochs.append(1)
            yield order

    for module in (compiled, descent):
        monkeypatch.setattr(module, "row_orders", orders)
    basis.minimize(objective, X, rng=rng, context=FitContext())
    assert len(epochs) == 7
    epochs.clear()
    context = FitContext(hand.now + 5)
    basis.minimize(objective, X, rng=rng, context=context)
    assert context.cut_short
    # the third would end after six seconds
    assert len(epochs) == 2


def rows_of(seed, rows=400):
    X = np.random.default_rng(seed).normal(size=(rows, 5))
    return X, X[:, 0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("basis", ["tree", ["tree", "symmetric"]], ids=["one family", "two"])
def test_a_warm_start_without_time_looks_at_its_own_rows(basis):
    """Scores that an earlier call left are of its rows: neither weights nor intervals may come from them."""
    X, y = rows_of(0)
    Z, z = rows_of(1)
    model = GCERegressor(basis=basis, warm_start=True, cv=2, max_atoms=40, random_state=0).fit(X, y)
    model.set_params(time_limit=0.0, max_atoms=41).fit(Z, z)
    low, high = model.predict_interval(Z).T
    assert model.score(Z, z) > 0.9
    assert (high - low).max() < np.ptp(z) / 2


def test_a_network_that_was_cut_short_is_said():
    X, y = rows_of(0, 8000)
    one = {"basis": Neural(hidden=4, max_epochs=200), "cv": None, "max_atoms": 1, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="neural was cut short"):
        GCERegressor(time_limit=0.0, **one).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("basis", [Forest(n_estimators=4), Neural(hidden=2, max_epochs=20)], ids=["forest", "neural"])
def test_a_round_that_was_cut_short_is_made_again_from_a_checkpoint(basis, tmp_path):
    X, y = rows_of(0, 8000 if isinstance(basis, Neural) else 400)
    one = {"basis": basis, "cv": None, "max_atoms": 1, "random_state": 0}
    whole = GCERegressor(**one).fit(X, y).predict(X)
    short = GCERegressor(time_limit=0.0, **one).fit(X, y, checkpoint=tmp_path)
    assert not np.array_equal(short.predict(X), whole)
    assert np.array_equal(GCERegressor(**one).fit(X, y, checkpoint=tmp_path).predict(X), whole)


def test_models_that_know_all_rows_alone_are_not_rehearsed():
    X, y = rows_of(0, 11_000)
    outputs = np.stack([y, -y, X[:, 1]])[:, :, None]
    model = GCERegressor(basis=Pool(outputs=outputs), cv=None, validation_fraction=None, max_iter=5, time_limit=600.0)
    weights = model.fit(X, y).ensemble_.weights
    assert torch.equal(weights, model.set_params(time_limit=None).fit(X, y).ensemble_.weights)
