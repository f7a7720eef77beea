"""Categories and statistics of the target of rows in files: those of all rows, exactly, whoever reads them."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gce
from gce.distributed import World
from gce.estimators import _shard_categories, _shard_choice, _shard_data, _shard_statistics
from gce.estimators._encoding import learn_statistics, summed_targets
from gce.estimators._shard_blocks import ShardReader
from gce.estimators._shard_choice import TRAINED, choose_rows
from gce.preprocessing import Schema, read_frame
from gce.preprocessing.target_statistics import positions
from gce.preprocessing.target_summaries import INNER_FOLDS, LevelSums, cells_of
from gce.training.targets import class_codes

SAMPLE = 300
TREE = {"basis": "tree", "max_iter": 3, "n_iter_no_change": None, "random_state": 0}
EPS = 2.0**-52


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, SAMPLE)


def people(n=6000, levels=1500, seed=0):
    """Rows whose target depends on a category of many levels, some of them missing."""
    rng = np.random.default_rng(seed)
    who = np.minimum(rng.geometric(3 / levels, n), levels) - 1
    taste = np.random.default_rng(9).normal(size=levels)
    frame = pd.DataFrame({"who": [f"p{i:05}" for i in who], "x": rng.normal(size=n), "shop": rng.integers(0, 700, n)})
    frame.loc[rng.random(n) < 0.03, "who"] = None
    return frame, 2.0 * taste[who] + frame["x"].to_numpy() + 0.3 * rng.normal(size=n)


def shards_of(frame, y, parts=7, **more):
    """The rows in batches: columns that are no features are named by ``more``."""
    whole = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    whole = whole.append_column("y", pa.array(y))
    cuts = np.linspace(0, len(y), parts + 1).astype(int)
    batches = [whole.slice(a, b - a) for a, b in pairwise(cuts.tolist())]
    return gce.Shards(batches, target="y", **more)


def facts(column):
    return (column.categories, [type(c) for c in column.categories], column.n_distinct, column.other_share,
            column.n_frequent)  # fmt: skip


def typed(frame):
    """The same rows with columns of all kinds that categories have."""
    rng = np.random.default_rng(1)
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    n = whole.num_rows
    words = pa.array(rng.choice(["a", "b", "c", None], n, p=[0.6, 0.35, 0.001, 0.049]))
    more = {
        "large": whole["who"].cast(pa.large_string()),
        "coded": whole["who"].combine_chunks().dictionary_encode(),
        "words": words,
        "coded numbers": pa.array(rng.integers(0, 900, n)).dictionary_encode(),
        "coded flags": pa.array(rng.random(n) < 0.3).dictionary_encode(),
        "float": pa.array(np.where(rng.random(n) < 0.1, np.nan, rng.choice([-0.0, 0.5], n) * rng.integers(0, 400, n))),
        "flag": pa.array(rng.random(n) < 0.5),
        "nothing": pa.array([None] * n, pa.string()),
    }
    for name, column in more.items():
        whole = whole.append_column(name, column)
    return whole


@pytest.mark.parametrize("weighted", [False, True])
def test_categories_are_those_of_all_rows_in_memory(weighted):
    frame, y = people()
    rng = np.random.default_rng(2)
    weight = rng.exponential(size=len(y)) if weighted else np.ones(len(y))
    whole, named = typed(frame), ["shop", "float", "flag"]
    shards = shards_of(whole.append_column("w", pa.array(weight)), y, sample_weight="w" if weighted else None)
    whole = whole if weighted else whole.append_column("w", pa.array(weight))
    chosen = choose_rows(ShardReader(shards.open(), World(), False), 0, 0.1, named)
    assert len(chosen.y) < 1000
    sample, every = read_frame(chosen.features), read_frame(whole)
    ours = Schema.fit(sample, chosen.weight, named, chosen.categories)
    theirs = Schema.fit(every, weight, named)
    assert sum(len(column.categories) for column in ours.columns) > 2000
    for one, two in zip(ours.columns, theirs.columns, strict=True):
        assert (one.name, one.kind, *facts(one)) == (two.name, two.kind, *facts(two))
    np.testing.assert_array_equal(ours.encode_columns(every), theirs.encode_columns(every))


def test_numbers_beyond_2_to_53_are_no_categories():
    frame, y = people(900)
    frame["shop"] = frame["shop"].astype(np.int64)
    frame.loc[700, "shop"] = 2**53 + 2
    with pytest.raises(ValueError, match=r"column 'shop' holds numbers beyond 2\^53"):
        gce.GCERegressor(**TREE, categorical_features=["shop"]).fit(shards_of(frame, y))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_shard_keeps_its_heaviest_values(monkeypatch, weighted):
    """By brute force: of each batch the values of the largest weights, of equal ones the first."""
    frame, y = people(2000, 300)
    weight = np.random.default_rng(3).integers(1, 4, len(y))
    monkeypatch.setattr(_shard_categories, "MOST_VALUES", 7 * 40)
    monkeypatch.setattr(_shard_categories, "_MANY", 50)
    monkeypatch.setattr(_shard_categories, "MOST_CATEGORIES", 60)
    weight, more = (0.1 * weight, {"sample_weight": "w"}) if weighted else (np.ones(len(y)), {})
    shards = shards_of(frame[["who"]].assign(**({"w": weight} if weighted else {})), y, **more)
    counted = choose_rows(ShardReader(shards.open(), World(), False), 0, 0.1).categories[0]
    total = {}
    cuts = np.linspace(0, len(y), 8).astype(int)
    for a, b in pairwise(cuts.tolist()):
        own = {}
        for value, part in zip(frame["who"][a:b], weight[a:b], strict=True):
            if value is not None and value == value:
                own[value] = own.get(value, 0.0) + part
        for value in sorted(own, key=lambda v: (-own[v], v))[:40]:
            total[value] = total.get(value, 0.0) + own[value]
    kept = sorted(total, key=lambda v: (-total[v], v))[:60]
    assert counted.share == pytest.approx({value: total[value] / weight.sum() for value in kept}, rel=1e-13)
    assert counted.n_distinct == len(total)
    known = weight[frame["who"].notna()].sum()
    assert counted.others == pytest.approx((known - sum(total[v] for v in kept)) / weight.sum(), abs=1e-12)
    assert counted.rows == pytest.approx(max(weight.sum(), weight.sum() ** 2 / np.square(weight).sum()))


class Spied:
    """What a fit of shards gives to the statistics of the target, and what it gets."""

    def __init__(self, monkeypatch, shards, kind=gce.GCERegressor, **parameters):
        spied = self

        class Pass(_shard_statistics._Pass):
            def __init__(self, *given):
                super().__init__(*given)
                spied.reader, spied.chosen, spied.encoded, spied.sizes, spied.folds, spied.rule = given
                spied.passed = self

            def run(self):
                spied.levels = super().run()
                return spied.levels

        def learn(*given):
            self.statistics, self.own, self.of_rows = _shard_statistics.learn_from_shards(*given)
            return self.statistics, self.own, self.of_rows

        with monkeypatch.context() as patch:
            patch.setattr(_shard_statistics, "_Pass", Pass)
            patch.setattr(_shard_data, "learn_from_shards", learn)
            self.model = kind(**TREE | parameters).fit(shards)

    def all_rows(self):
        """Every row of positive weight: number, role, encoded columns, fold, summaries and weights."""
        blocks = [block for shard in self.reader.own for block in self.reader.blocks(shard)]
        role = np.concatenate([self.chosen.roles.of(block) for block in blocks])
        X = np.concatenate([self.encoded.schema.encode_columns(read_frame(block.features)) for block in blocks])
        number = np.concatenate([block.number for block in blocks])
        group = None if blocks[0].group is None else np.concatenate([block.group for block in blocks])
        y = self.encoded.target.encode(np.concatenate([block.y for block in blocks]))
        weight = np.concatenate([block.weight for block in blocks])
        factors = self.chosen.class_factors(self.encoded.target)
        weight = weight * (factors if isinstance(factors, float) else factors[class_codes(y)])
        V = self.rule.of(summed_targets(y, self.encoded.target))
        return number, role, X, self.folds.of(X, number, group), V, weight


def tables(kind):
    frame, y = people()
    rng = np.random.default_rng(4)
    more, parameters = {}, {}
    if kind == "weights":
        frame["w"], more = rng.exponential(size=len(y)) * 10.0 ** rng.integers(-6, 3, len(y)), {"sample_weight": "w"}
    if kind == "groups":
        frame["g"], more = rng.integers(0, 900, len(y)).astype(str), {"groups": "g"}
    if kind == "far":
        y = 1e6 + y
    if kind == "heavy":
        y = y + np.where(rng.random(len(y)) < 1e-3, 1e9, 0.0)
    if kind == "alone":
        frame = frame[["who"]]
    if kind == "classes":
        y, parameters = np.digitize(y, [-1, 1.5]), {"class_weight": "balanced"}
    estimator = gce.GCEClassifier if kind == "classes" else gce.GCERegressor
    return shards_of(frame, y, **more), estimator, parameters


@pytest.mark.parametrize("kind", ["plain", "weights", "groups", "far", "heavy", "alone", "classes"])
def test_sums_are_those_of_all_training_rows(monkeypatch, kind):
    """By brute force, to rounding: a product and a sum of integers are rounded once each, and so is the mean."""
    shards, estimator, parameters = tables(kind)
    spied = Spied(monkeypatch, shards, estimator, **parameters)
    _, role, X, fold, V, weight = spied.all_rows()
    trained = role != _shard_choice.HELD
    assert (role == TRAINED).sum() > 4000
    assert set(fold.tolist()) == set(range(INNER_FOLDS))
    assert spied.folds.by_number == (kind == "alone")
    X, fold, V, weight = X[trained], fold[trained], V[trained], weight[trained]
    weight = weight * max(1.0, math.fsum(weight) / math.fsum(weight**2))
    k = spied.rule.numbers
    centre = np.concatenate([spied.passed._centre, np.zeros(V.shape[1] - k)])
    scale = np.concatenate([spied.passed._scale, np.ones(V.shape[1] - k)])
    assert list(spied.sizes) == [0]
    ((j, size),), (ours,) = spied.sizes.items(), spied.levels
    index = positions(X[:, j], size)
    cell = cells_of(index, fold)
    theirs = LevelSums.of_rows(index, fold, size + 2, V, weight)
    count = np.bincount(cell, minlength=(size + 2) * INNER_FOLDS).reshape(-1, INNER_FOLDS)
    largest, total = weight.max(), math.fsum(weight)
    rounded = count * 2.0**-65 * 2 * largest
    assert (np.abs(ours.rows - theirs.rows) <= rounded + 8 * EPS * (1 + count) * theirs.rows).all()
    away = np.abs(V - centre)
    mean = np.array([math.fsum(weight * v) for v in (V - centre).T]) / total
    # of each cell the sum of distances, which a relative error of each product and sum is one of
    reach = np.stack([np.bincount(cell, weight * v, count.size) for v in away.T], 1).reshape(*count.shape, -1)
    reach = reach + theirs.rows[:, :, None] * (np.abs(mean) + 2 * scale * 2.0**-65)
    # in memory sums are added one by one, of distances from the prior
    error = 8 * EPS * (1 + count[:, :, None]) * reach + 2 * rounded[:, :, None] * scale
    drift = 4 * EPS * (away * weight[:, None]).sum(0) / total * np.sqrt(len(weight))
    exact = 4 * EPS * np.abs(theirs.prior)
    assert (np.abs(ours.sums - theirs.sums) <= error + theirs.rows[:, :, None] * (drift + exact)).all()
    np.testing.assert_allclose(ours.prior, theirs.prior, rtol=0, atol=(drift + exact + 2.0**-60 * scale).max())
    levels = count.sum(1)[:, None]
    squared = np.stack([np.bincount(index, weight * v * v, size + 2) for v in away.T], 1)
    squared += theirs.rows.sum(1)[:, None] * mean**2
    moved = 4 * (drift + exact) * (reach.sum(1) + theirs.rows.sum(1)[:, None] * (drift + exact))
    # each of three terms is at most a square of the scale, with the error of fixed point
    error = 16 * EPS * (1 + levels) * squared + 4 * rounded.sum(1)[:, None] * scale**2
    assert (np.abs(ours.squares - theirs.squares) <= error + moved).all()
    np.testing.assert_allclose(ours.spread, theirs.spread, rtol=1e-9)
    unit = theirs._unit
    for one, two in ((ours.of_new_rows(), theirs.of_new_rows()), (ours.of_folds(), theirs.of_folds())):
        # equal but for numbers half-way between two multiples of the unit
        steps = np.abs(one[:, :-1] - two[:, :-1]) / unit
        assert (steps <= 1 + 1e-6).all()
        assert (steps > 1e-6).mean() < 1e-3
        np.testing.assert_allclose(one[:, -1], two[:, -1], atol=2.0**-9)


def test_rows_have_the_statistics_of_the_other_inner_folds(monkeypatch):
    """Training rows, in memory or not; rows that are held out have those of new rows."""
    shards, _, _ = tables("plain")
    spied = Spied(monkeypatch, shards)
    number, role, X, fold, _, _ = spied.all_rows()
    chosen = np.isin(number, spied.chosen.number)
    assert np.array_equal(number[chosen], spied.chosen.number)
    assert np.array_equal(chosen, role != TRAINED)
    (size,), (levels,) = spied.sizes.values(), spied.levels
    cell = cells_of(positions(X[:, 0], size), fold)
    inner, new = levels.of_folds()[cell], levels.of_new_rows()[positions(X[:, 0], size)]
    expected = np.where((role != _shard_choice.HELD)[:, None], inner, new)
    np.testing.assert_array_equal(spied.own, expected[chosen])
    assert (inner != new).any(1).mean() > 0.5
    at = 0
    for block in spied.chosen.training_blocks(spied.reader):
        part = np.flatnonzero(role != _shard_choice.HELD)[at : at + len(block.number)]
        encoded = spied.model.table_.encode(read_frame(block.features))
        np.testing.assert_array_equal(spied.of_rows.of_training_rows(encoded, block), inner[part])
        at += len(block.number)


def test_a_rows_own_target_is_in_none_of_its_statistics(monkeypatch):
    """Another target of a row changes the sums of its own inner fold, and no others."""
    frame, y = people()
    before = Spied(monkeypatch, shards_of(frame, y))
    number, role, X, fold, _, _ = before.all_rows()
    (size,) = before.sizes.values()
    known = before.passed._sums[0]._parts
    inside = (np.abs(y) < 0.9 * np.abs(y).max()) & (X[:, 0] >= 0)
    for i in np.flatnonzero((role == TRAINED) & inside)[[0, 700, 2100]].tolist():
        other = y.copy()
        other[number[i]] = -y[number[i]]
        after = Spied(monkeypatch, shards_of(frame, other)).passed._sums[0]._parts
        changed = np.flatnonzero((known != after).any((1, 2)))
        assert changed.tolist() == [int(cells_of(positions(X[i : i + 1, 0], size), fold[i : i + 1])[0])]


def test_rows_of_a_group_share_an_inner_fold_and_a_column_of_groups_says_nothing(monkeypatch):
    frame, y = people()
    frame["who"] = frame["who"].fillna("nobody")
    spied = Spied(monkeypatch, shards_of(frame.assign(g=frame["who"]), y, groups="g"))
    _, _, X, fold, _, _ = spied.all_rows()
    for level in np.unique(X[X[:, 0] >= 0, 0]):
        assert len(set(fold[X[:, 0] == level].tolist())) == 1
    trained = ~spied.chosen.held_out
    # of a group whose rows are all in its own fold nothing is known
    assert (np.ptp(spied.own[trained], axis=0) == 0).all()


def test_a_category_that_is_not_in_the_sample_has_a_code_and_statistics(monkeypatch):
    frame, y = people()
    first = Spied(monkeypatch, shards_of(frame, y))
    number, role, *_ = first.all_rows()
    rows = number[role == TRAINED][:60]
    frame.loc[rows, "who"] = "unsampled"
    y[rows] += 50 - y[rows]
    spied = Spied(monkeypatch, shards_of(frame, y))
    assert not np.isin(rows, spied.chosen.number).any()
    column = spied.model.table_.columns[0]
    code = column.categories.index("unsampled")
    mean = spied.model.table_.statistics.values[0][0, code, 0]
    prior = spied.model.table_.statistics.values[0][0, -1, 0]
    assert mean > prior + 40
    assert spied.model.predict(frame.loc[rows[:1]])[0] > y.mean() + 10


def test_a_frequent_category_that_is_not_in_the_sample_has_a_bin(monkeypatch):
    """Its rows are predicted as trees have learned them, though the rows in memory have none of them."""
    frame, y = people()
    frame = frame[["x"]].assign(kind=np.random.default_rng(0).choice(["a", "b"], len(y)))
    first = ShardReader(shards_of(frame, y).open(), World(), False)
    chosen = choose_rows(first, 0, 0.1)
    rows = np.setdiff1d(np.arange(len(y)), chosen.number)[:80]
    frame.loc[rows, "kind"] = "z"
    y[rows] = 30.0
    model = gce.GCERegressor(**TREE | {"max_iter": 60}).fit(shards_of(frame, y))
    assert model.table_.columns[1].frequent == ("a", "b", "z")
    new = pd.DataFrame({"x": np.linspace(-1, 1, 20)})
    assert model.predict(new.assign(kind="z")).min() > 15
    assert model.predict(new.assign(kind="a")).max() < 10


class _OfTheSample:
    """Statistics of the rows in memory alone: others are new rows to them."""

    def __init__(self, number, own, statistics):
        self._number, self._own, self._statistics = number, own, statistics

    def of_training_rows(self, X, block):
        at = np.minimum(np.searchsorted(self._number, block.number), len(self._number) - 1)
        known = self._number[at] == block.number
        return np.where(known[:, None], self._own[at], self._statistics.transform(X))


def test_statistics_of_all_rows_predict_better_than_those_of_a_sample(monkeypatch):
    """20,000 categories, of which a sample of a few hundred rows has a few: a large effect is found or not."""
    rng = np.random.default_rng(0)
    n, levels = 61_000, 20_000
    who, x = rng.integers(0, levels, n), rng.normal(size=n)
    y = 2.0 * rng.normal(size=levels)[who] + x + 0.3 * rng.normal(size=n)
    frame = pd.DataFrame({"who": [f"p{i:05}" for i in who], "x": x})
    train, test = slice(0, 60_000), slice(60_000, None)

    def rmse():
        model = gce.GCERegressor(**TREE | {"max_iter": 40}).fit(shards_of(frame[train], y[train]))
        return float(np.sqrt(np.mean((model.predict(frame[test]) - y[test]) ** 2)))

    def of_the_sample(reader, chosen, encoded, members, sources):
        rows = encoded.rows
        found, own = learn_statistics(sources, members, rows.X, rows.target, encoded.target, rows.groups)
        return found, own, None if own is None else _OfTheSample(chosen.number, own, found)

    ours = rmse()
    monkeypatch.setattr(_shard_data, "learn_from_shards", of_the_sample)
    monkeypatch.setattr(_shard_choice, "category_columns", lambda opened, categorical: {})
    assert ours < 0.75 * rmse()
