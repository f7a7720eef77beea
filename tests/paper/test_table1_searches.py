"""Searches of Table 1: budgets, the paper's ranges, and a stopped search that ends as if it had not been stopped."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table1_stub import load

from paper.budgets import SimplexProblem, Trials
from paper.ledger import Ledger
from paper.methods import forest, xgboost
from paper.searches import Grid, GridStage, Job, RandomStage, StoppedError

SIZES = [100, 25, 6, 25, 24, 6, 1000]


@pytest.mark.parametrize("share", [0, -0.1, 1.5, float("nan")])
def test_shares_are_positive_and_at_most_all(share):
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        SimplexProblem(share)


@pytest.mark.parametrize("trials", [0, -3])
def test_trials_are_positive(trials):
    with pytest.raises(ValueError, match="at least 1"):
        Trials(trials)


def test_a_share_is_one_of_every_stage():
    assert SimplexProblem(1.0).allot(SIZES) == SIZES
    assert SimplexProblem(0.05).allot(SIZES) == [5, 2, 1, 2, 2, 1, 50]
    assert SimplexProblem(0.07).allot([100]) == [7]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 200))
def test_trials_are_all_spent_and_every_stage_has_its_part(sizes, trials):
    parts = Trials(trials).allot(sizes)
    assert sum(parts) == min(trials, sum(sizes))
    assert all(0 <= part <= size for part, size in zip(parts, sizes, strict=True))
    if trials >= len(sizes):
        assert min(parts) >= 1


def test_twenty_trials_leave_some_to_choose_depth():
    parts = Trials(20).allot(SIZES)
    assert parts[0] >= 3
    assert parts[-1] == max(parts)


def bowl(settings):
    """A record that is the better the nearer the settings are to a depth of 5 and a rate of 0.05; many ties."""
    value = abs(settings["max_depth"] - 5) + round(20 * abs(settings["eta"] - 0.05)) + round(settings["gamma"] * 3)
    return {"validation": float(value), "test": 1.0 + value, "seconds": 1.0, "metric": "error", "machine": "m"}


class Patience:
    """Fits, but a limited number of times in a life."""

    def __init__(self, fits):
        self.left, self.fitted = fits, []

    def __call__(self, settings):
        self.fitted.append(tuple(sorted(settings.items())))
        return bowl(settings)

    def check(self):
        if self.left == 0:
            raise StoppedError
        self.left -= 1


def search_in(folder, patience, seed=3, trials=16):
    key = {"set": "round", "split": 0, "method": "xgb", "seed": seed}
    job = Job(key, patience, Ledger(folder / "l.jsonl"), folder / "scratch", patience.check, seed)
    xgboost.XGBoost().search(load("round"), Trials(trials)).run(job)
    return Ledger(folder / "l.jsonl").items()


@pytest.mark.parametrize("lives", [[0, 1, 5, 99], [7, 99], [1, 2, 3, 4, 99]])
def test_a_search_that_is_stopped_ends_as_one_that_is_not(tmp_path, lives):
    pytest.importorskip("optuna")
    fitted = []
    for fits in lives[:-1]:
        patience = Patience(fits)
        with pytest.raises(StoppedError):
            search_in(tmp_path / "often", patience)
        fitted += patience.fitted
        assert Ledger(tmp_path / "often" / "l.jsonl").items() == []
    last, whole = Patience(99), Patience(99)
    assert search_in(tmp_path / "often", last) == search_in(tmp_path / "once", whole)
    assert fitted + last.fitted == whole.fitted
    assert max(Counter(whole.fitted).values()) == 1


def test_the_first_of_equals_is_chosen_and_seeds_matter(tmp_path):
    pytest.importorskip("optuna")
    [(_, one)] = search_in(tmp_path / "a", Patience(99))
    [(_, two)] = search_in(tmp_path / "b", Patience(99), seed=4)
    assert one["validation"] == min(one["validations"])
    assert one["trials"] == 16
    assert one["validation"] == bowl(one["settings"])["validation"]
    assert one["test"] == bowl(one["settings"])["test"]
    assert one["validations"] != two["validations"]


def test_a_search_gets_better_stage_by_stage(tmp_path):
    pytest.importorskip("optuna")
    [(_, result)] = search_in(tmp_path, Patience(99), trials=60)
    first = result["stages"]["depth x child weight"]
    assert result["validation"] < min(result["validations"][:first])


def test_a_grid_cut_short_and_then_widened_repeats_nothing(tmp_path):
    fitted = []

    def fit(settings):
        fitted.append(settings["x"])
        return {"validation": 0.0}

    grid = [{"x": x} for x in range(9)]
    ledger = Ledger(tmp_path / "l.jsonl")
    for count in (4, 9):
        Grid(grid, count).run(Job({"set": "s"}, fit, ledger, tmp_path, lambda: None, seed=0))
    assert sorted(fitted) == list(range(9))
    assert sorted(fitted[:4]) == fitted[:4] != list(range(4))


@given(st.integers(0, 10), st.integers(1, 25), st.integers(1, 15), st.integers(0, 20))
def test_the_five_by_five_grid_stays_in_range(seed, count, depth, weight):
    best = {**xgboost.START, "max_depth": depth, "min_child_weight": float(weight)}
    points = xgboost.around(best)
    assert len({tuple(point.values()) for point in points}) == 25
    assert {"max_depth": depth, "min_child_weight": float(weight)} in points
    assert all(1 <= p["max_depth"] <= 15 and 0 <= p["min_child_weight"] <= 20 for p in points)
    some = GridStage("5 x 5", count, xgboost.around).propose(best, seed, 7)
    assert len(some) == count == len({tuple(p.values()) for p in some})
    assert all(p["eta"] == xgboost.START["eta"] for p in some)


@st.composite
def bests(draw):
    floats = {
        name: draw(st.floats(values[0], values[-1])) for name, values in xgboost.VALUES.items() if name != "max_depth"
    }
    return {**floats, "max_depth": draw(st.integers(1, 15))}


@given(bests(), st.integers(0, 1000))
def test_neighbours_stay_in_range_and_near(best, seed):
    near = xgboost.neighbour(best, np.random.default_rng(seed))
    assert near.keys() == best.keys() == xgboost.VALUES.keys()
    for name, values in xgboost.VALUES.items():
        assert values[0] <= near[name] <= values[-1]
        places = np.arange(len(values))
        moved = np.interp(near[name], values, places) - np.interp(best[name], values, places)
        # a depth is rounded to a whole number, half a place at most
        assert abs(moved) <= 1 + 1e-9 + 0.25 * (name == "max_depth")
    assert isinstance(near["max_depth"], int)


@given(st.integers(0, 10_000))
def test_random_trials_are_drawn_from_the_papers_ranges(number):
    [drawn] = RandomStage("random", 1, forest.draw).propose({}, 0, number)
    assert all(value in forest.RANGES[name] for name, value in drawn.items())
    [pair] = RandomStage("random", 1, xgboost.draw_depth).propose(xgboost.START, 0, number)
    assert pair["max_depth"] in xgboost.DEPTHS
    assert pair["min_child_weight"] in xgboost.CHILD_WEIGHTS


def test_every_value_of_a_range_is_drawn():
    drawn = RandomStage("random", 500, forest.draw).propose({}, 0, 0)
    for name, values in forest.RANGES.items():
        assert {trial[name] for trial in drawn} == set(values)


def test_all_that_a_search_proposes_is_in_optunas_space():
    pytest.importorskip("optuna")
    for few_rows in (True, False):
        for stage in xgboost.stages(few_rows, SimplexProblem(0.1)):
            for settings in stage.propose(xgboost.START, 1, 0):
                space = xgboost.space()
                assert settings.keys() == space.keys()
                assert all(space[name]._contains(value) for name, value in settings.items())
