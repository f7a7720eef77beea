"""What a fit must not depend on, and what a member is."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification, make_friedman1, make_regression
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold

from gce import ConvexStackingRegressor, GCEClassifier, GCERegressor
from gce.bases import Neural, Tree
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.preprocessing.row_hashes import hash_row_set
from gce.preprocessing.splits import TrainingRows, from_splits, splits_for

SMALL = {"basis": Neural(hidden=4, max_epochs=15), "max_atoms": 6, "random_state": 0}
MINI = {"basis": Neural(hidden=4, max_epochs=5, batch_size=16), "max_atoms": 5, "random_state": 0}


def table(kind, n=60, seed=0):
    if kind is GCERegressor:
        return make_regression(n, 5, noise=10.0, random_state=seed)
    return make_classification(n, 6, n_informative=4, n_classes=3, random_state=seed)


def raw(model, X):
    return model.raw_predict(X)


kinds = pytest.mark.parametrize("kind", [GCERegressor, GCEClassifier])
algorithms = pytest.mark.parametrize("algorithm", ALGORITHMS)


@kinds
@algorithms
def test_weights_are_repetitions(kind, algorithm):
    X, y = table(kind)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    fold = np.arange(len(X)) % 3
    again = np.repeat(np.arange(len(X)), times)
    cv = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
    cv_again = [(np.flatnonzero(fold[again] != f), np.flatnonzero(fold[again] == f)) for f in range(3)]
    weighted = kind(algorithm=algorithm, cv=cv, **SMALL).fit(X, y, sample_weight=times)
    repeated = kind(algorithm=algorithm, cv=cv_again, **SMALL).fit(X[again], y[again])
    torch.testing.assert_close(raw(weighted, X), raw(repeated, X), rtol=1e-8, atol=1e-8)


@kinds
@pytest.mark.parametrize("cv", ["auto", None, 3])
def test_a_row_of_weight_zero_is_not_there(kind, cv):
    X, y = table(kind)
    weight = np.ones(len(X))
    weight[[3, 10, 59]] = 0
    some = weight > 0
    X[3] = 1e6  # may be anything
    weighted = kind(cv=cv, **SMALL).fit(X, y, sample_weight=weight)
    without = kind(cv=cv, **SMALL).fit(X[some], y[some])
    assert torch.equal(raw(weighted, X[some]), raw(without, X[some]))


def test_splits_as_indices_masks_and_repetitions():
    X, y = table(GCERegressor)
    weight = np.r_[np.zeros(5), np.ones(55)]
    learn, test = np.arange(40), np.arange(40, 60)
    expected = raw(GCERegressor(cv=[(learn, test)], **SMALL).fit(X, y, weight), X)
    masks = np.arange(60) < 40, np.arange(60) >= 40
    for split in (masks, (learn, np.arange(-20, 0)), (learn.tolist(), list(range(40, 60)))):
        assert torch.equal(raw(GCERegressor(cv=[split], **SMALL).fit(X, y, weight), X), expected)
    twice = from_splits(X, np.ones(60), [(np.r_[learn, learn[::2]], test)])
    np.testing.assert_allclose(twice.train[0] * 60, np.r_[np.tile([2.0, 1.0], 20), np.zeros(20)])
    assert (twice.held_out_total == 20).all()
    for bad in ((learn, [60]), (learn, [-61]), (learn, [0.5]), (learn, masks[1][:-1]), (learn, [[1]])):
        with pytest.raises(ValueError, match="cv must yield indices of 60 rows or masks of that length, got"):
            GCERegressor(cv=[bad], **SMALL).fit(X, y)


@kinds
@pytest.mark.parametrize("algorithm", [name for name, own in ALGORITHMS.items() if not own.append_only])
def test_five_members_are_five_fits(kind, algorithm):
    X, y = table(kind)
    splits = list(KFold(5, shuffle=True, random_state=1).split(X))
    together = kind(algorithm=algorithm, cv=splits, **SMALL).fit(X, y)
    alone = [kind(algorithm=algorithm, cv=[split], **SMALL).fit(X, y) for split in splits]
    mean = torch.stack([raw(model, X) for model in alone]).mean(0)
    torch.testing.assert_close(raw(together, X), mean, rtol=1e-9, atol=1e-9)
    for name in ("risk", "validation"):
        last = together.history_[-1]["members"][name]
        assert last == pytest.approx([model.history_[-1][name] for model in alone], rel=1e-9)


@kinds
def test_boosted_members_stand_at_the_round_that_is_best_for_all(kind):
    X, y = table(kind)
    model = kind(
        basis=Tree(max_leaf_nodes=3, min_samples_leaf=1), cv=3, max_atoms=30, n_iter_no_change=5, random_state=0
    ).fit(X, y)
    mean = [entry["validation"] for entry in model.history_]
    (best,) = set(model.result_.families[0].best_round)
    assert best == 1 + int(np.argmin(mean))
    assert int(model.ensemble_.origin[:, 1].max()) == best


@kinds
def test_a_member_of_a_mini_batch_fit_is_the_one_split_fit_over_the_same_rows(kind):
    X, y = table(kind, 80)
    # both members train on rows that together are all rows, so each batch is the same
    splits = [(np.arange(80), np.arange(0, 80, 4)), (np.arange(80), np.arange(1, 80, 4))]
    together = kind(cv=splits, **MINI).fit(X, y)
    alone = [kind(cv=[split], **MINI).fit(X, y) for split in splits]
    mean = torch.stack([raw(model, X) for model in alone]).mean(0)
    torch.testing.assert_close(raw(together, X), mean, rtol=1e-7, atol=1e-7)
    assert together.ensemble_.parts[-1].parameters_[0].dtype == torch.float32


@kinds
@algorithms
@pytest.mark.parametrize("limit", ["max_atoms", "max_iter"])
def test_warm_start_goes_on_where_it_stopped(kind, algorithm, limit):
    X, y = table(kind)
    settings = {**SMALL, "n_iter_no_change": None, "algorithm": algorithm, "cv": 3}
    whole = kind(**{**settings, "max_atoms": 9, limit: 9}).fit(X, y)
    parts = kind(**{**settings, "max_atoms": 9, limit: 5}, warm_start=True).fit(X, y)
    assert parts.n_iter_ < whole.n_iter_
    parts.set_params(**{limit: 9}).fit(X, y)
    if algorithm == "boosting" or (algorithm == "blended" and limit == "max_atoms"):
        # boosted scores move with the weights, and are summed up again to go on; blended members reach the cap in
        # different rounds: their atoms then stand in other slots, and sums round otherwise
        torch.testing.assert_close(raw(parts, X), raw(whole, X), rtol=1e-9, atol=1e-9)
        return
    assert torch.equal(raw(parts, X), raw(whole, X))
    strip = [{k: v for k, v in entry.items() if k != "seconds"} for entry in parts.history_]
    assert strip == [{k: v for k, v in entry.items() if k != "seconds"} for entry in whole.history_]


def test_fifty_and_twenty_five_rounds_are_seventy_five():
    X, y = table(GCERegressor)
    settings = {"basis": Neural(hidden=3, max_epochs=5), "random_state": 3, "cv": 2, "n_iter_no_change": None}
    whole = GCERegressor(max_atoms=75, **settings).fit(X, y)
    parts = GCERegressor(max_atoms=50, warm_start=True, **settings).fit(X, y)
    assert parts.n_iter_ == 50
    parts.set_params(max_atoms=75).fit(X, y)
    assert parts.n_iter_ == whole.n_iter_ == 75
    assert np.array_equal(parts.predict(X), whole.predict(X))


@kinds
def test_one_seed_is_one_model(kind):
    X, y = table(kind)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()
    a, b, c = (kind(**{**SMALL, "random_state": seed}).fit(X, y) for seed in (0, 0, 1))
    assert torch.equal(raw(a, X), raw(b, X))
    assert not torch.equal(raw(a, X), raw(c, X))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])


PROGRAM = """
import hashlib, sys, numpy as np
from gce import GCEClassifier
from gce.bases import Neural
rng = np.random.default_rng(0)
X = rng.normal(size=(700, 20)); y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
model = GCEClassifier(basis=Neural(hidden=10, max_epochs=20), max_atoms=4, random_state=0).fit(X, y)
sys.stdout.write(hashlib.sha256(model.decision_function(X).tobytes()).hexdigest())
"""


def test_one_seed_is_one_model_whatever_the_thread_count():
    digests = set()
    for threads in ("1", "2", "4"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    assert len(digests) == 1


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_a_set_of_rows_has_one_name(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    shuffled = X[rng.integers(0, n, 3 * n)]
    whole = np.concatenate([X, shuffled])
    assert hash_row_set(whole[rng.permutation(len(whole))]) == hash_row_set(X)
    assert hash_row_set(X + 1) != hash_row_set(X)
    assert hash_row_set(X[:-1]) != hash_row_set(X)


def grouped(sizes):
    """Training rows of groups of these sizes, in some order."""
    n = sum(sizes)
    groups = np.random.default_rng(n).permutation(np.repeat([f"g{i}" for i in range(len(sizes))], sizes))
    return TrainingRows(np.zeros((n, 1)), np.zeros((n, 1)), None, np.ones(n), np.arange(n), groups, n)


@settings(max_examples=80, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60) | st.integers(200, 2000), min_size=2, max_size=25),
    cv=st.sampled_from(["auto", None, 2, 3]),
    seed=st.integers(0, 99),
)
def test_folds_of_unbalanced_groups_cope(sizes, cv, seed):
    rows, n = grouped(sizes), sum(sizes)
    if isinstance(cv, int) and cv > len(sizes):
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        splits = splits_for(cv, 0.2, rows, seed)
    for learn, test in splits:
        assert not set(rows.groups[learn]) & set(rows.groups[test])
        assert len(learn) + len(test) == n
        assert len(test) > 0
        # two groups of nearly the same size leave a half, and none leaves less than its smaller part
        assert len(learn) >= n / 4
    held_out, largest = [len(test) for _, test in splits], max(sizes)
    if cv is None:
        assert held_out[0] <= max(1.5 * 0.2 * n, min(sizes))
    else:
        folds = min(5 if n >= 2000 else 10, len(sizes)) if cv == "auto" else cv
        # the bound of every greedy assignment
        assert max(held_out) <= max(1.5 * n / folds, n / folds + largest)
        assert sum(held_out) == n or (sum(held_out) < n / 4 and len(splits) == folds - 1)
    assert len(caught) == (largest > 0.75 * n)
    for one in caught:
        assert f"the largest of {len(sizes)} groups has {largest:,} of {n:,} rows" in str(one.message)
        assert f"{sum(held_out):,} rows are held out" in str(one.message)


@pytest.mark.parametrize("folds", [2, 5])
def test_folds_of_even_groups_are_drawn_at_random(folds):
    rows = grouped([40] * 20)
    expected = GroupKFold(folds, shuffle=True, random_state=3).split(rows.X, groups=rows.groups)
    for ours, theirs in zip(splits_for(folds, None, rows, 3), expected, strict=True):
        np.testing.assert_array_equal(np.sort(ours[1]), np.sort(theirs[1]))


@kinds
@pytest.mark.parametrize("cv", ["auto", 2, None])
def test_a_group_of_nearly_all_rows_is_not_held_out(kind, cv):
    X, y = make_friedman1(1200, noise=0.5, random_state=0)
    y = y if kind is GCERegressor else y > np.median(y)
    groups = np.where(np.random.default_rng(0).permutation(600) < 6, "small", "large")
    model = kind(basis="symmetric", max_atoms=60, cv=cv, random_state=0)
    plain = kind(basis="symmetric", max_atoms=60, cv=cv, random_state=0).fit(X[:600], y[:600])
    with pytest.warns(UserWarning, match=r"the largest of 2 groups has 594 of 600 rows \(99.0 %\)"):
        model.fit(X[:600], y[:600], groups=groups)
    assert model.ensemble_.members == 1
    score, expected = (r2(each.predict(X[600:]).astype(float), y[600:].astype(float)) for each in (model, plain))
    assert 1 - score < 1.3 * (1 - expected)


def r2(pred, y):
    return 1 - np.square(y - pred).sum() / np.square(y - y.mean()).sum()


def test_a_splitter_that_trains_a_member_on_few_rows_is_told():
    X, y = table(GCERegressor)
    groups = np.where(np.arange(60) < 8, "small", "large")
    with pytest.warns(
        UserWarning, match="The model has 2 members, trained on at least 8 rows, and 60 rows are held out"
    ):
        GCERegressor(cv=GroupKFold(2), **SMALL).fit(X, y, groups=groups)
    # a member that trains on a few of many even groups
    with pytest.warns(UserWarning, match="the largest of 12 groups has 5 of 60 rows .* at least 10 rows"):
        GCERegressor(cv=GroupShuffleSplit(2, train_size=2, test_size=3, random_state=0), **SMALL).fit(
            X, y, groups=np.arange(60) % 12
        )


def test_stacks_have_the_same_folds_of_groups():
    X, y = table(GCERegressor, 90)
    members = [("ridge", Ridge()), ("mean", DummyRegressor())]
    three = ConvexStackingRegressor(members, random_state=0).fit(X, y, groups=np.arange(90) % 3)
    assert len(three.result_.out_of_fold.splits) == 3
    with pytest.warns(UserWarning, match="the largest of 2 groups has 80 of 90 rows"):
        ConvexStackingRegressor(members, random_state=0).fit(X, y, groups=np.arange(90) < 80)
    with pytest.raises(ValueError, match="groups has one group only, 'a'"):
        ConvexStackingRegressor(members).fit(X, y, groups=["a"] * 90)
