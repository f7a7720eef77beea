"""Extremely randomised trees against a grower that adds up rows one by one, and what their integers promise."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce._utils.native import LEVELS, library
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower_random import LATE, WeightedTargets, scatter
from gce.bases.trees.grower_sign import grow_by_sign
from gce.bases.trees.integers import DIGITS, integer_weights
from gce.bases.trees.tree_data import UNCONSTRAINED, Constraints
from helpers import codes_by_column

KINDS = ["number", "two", "numbers", "classes"]
MASK = 2**64 - 1


def splitmix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class BruteForce:
    """Growth that looks at every row of every node, of codes ``(d, n)`` and the values of each column's codes.

    Columns may be monotone, by their signs, and share sets; a node's path is its columns, each with the side that was
    taken (0 where the column is not monotone) and the middle between the means of both.
    """

    def __init__(self, codes, weight, Y, tries, least, values, signs=None, sets=None):
        self.codes, self.weight, self.Y, self.tries, self.least, self.values = codes, weight, Y, tries, least, values
        self.signs, self.ordered = [0] * len(codes) if signs is None else signs, signs is not None
        self.sets = [set(range(len(codes)))] if sets is None else sets

    def grown(self, seed):
        """Nodes as (column, code, left child) or means."""
        nodes, waiting = [], [(seed, np.arange(self.codes.shape[1]), ())]
        for key, rows, path in waiting:  # grows meanwhile
            chosen, total = None, self.weight[rows].sum()
            if len(np.unique(self.Y[rows], axis=0)) > 1 and total >= 2 * self.least:
                late = self.ordered and total > LATE
                chosen = self._best(key, rows, path, late) or (late and self._best(key, rows, path, late=False))
            if not chosen:
                nodes.append(self._mean(rows))
                continue
            column, cut, *sides = chosen
            nodes.append((column, cut, len(waiting)))
            children = splitmix(key ^ 0x5851F42D4C957F2D), splitmix(key ^ 0x14057B7EF767814F)
            sign, middle = self.signs[column], sum(map(self._mean, sides)) / 2
            paths = [(*path, (column, side * sign, middle)) for side in (-1, 1)]
            waiting += zip(children, sides, paths, strict=True)
        return nodes

    def _mean(self, rows):
        return self.weight[rows] @ self.Y[rows] / self.weight[rows].sum()

    def _best(self, key, rows, path, late):
        best, chosen, known = -1.0, None, 0
        left = [own for own in self.sets if own.issuperset(column for column, *_ in path)]
        columns = [column for column in range(len(self.codes)) if any(column in own for own in left)]
        for number in (splitmix((key + i * 0x9E3779B97F4A7C15) & MASK) for i in range(len(columns))):
            if known == self.tries:
                break
            pick = (number >> 32) * len(columns) >> 32
            columns[pick], columns[-1] = columns[-1], columns[pick]
            column = columns.pop()
            here, own = self.codes[column][rows], self.values[column]
            low, high = int(here.min()), int(here.max())
            if low == high or (late and self.signs[column]):
                continue
            known += 1
            point = own[low] + (number & 0xFFFFFFFF) / 2**32 * (own[high] - own[low])
            cut = max(c for c in range(low, high) if c == low or own[c] <= point)
            sides = rows[here <= cut], rows[here > cut]
            weights = [self.weight[side].sum() for side in sides]
            total = sum((w * self._mean(side) ** 2).sum() for w, side in zip(weights, sides, strict=True))
            enough = min(weights) >= self.least * (1 - 1e-9)
            if enough and total > best * (1 + 1e-9) and self._keeps_order(column, sides, path):
                best, chosen = total, (column, cut, *sides)
        return chosen

    def _keeps_order(self, column, sides, path):
        low, high = map(self._mean, sides)
        # equal means may be rounded
        slack = 1e-12 * np.abs(self.Y).max(0)
        within = all((side * (own - middle) >= -slack).all() for _, side, middle in path for own in (low, high))
        return within and (self.signs[column] * (high - low) >= -slack).all()


def by_brute_force(codes, weight, Y, tries, least, seed, values):
    return BruteForce(codes, weight, Y, tries, least, values).grown(seed)


def rows_of(seed, kind, n=40, d=6, weighted=True):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(d) < 0.5, rng.integers(0, 4, (n, d)), rng.normal(size=(n, d)))
    weight = rng.uniform(0.1, 3, n) if weighted else np.full(n, 0.3)
    Y = {
        "number": lambda: rng.normal(size=(n, 1)),
        "two": lambda: rng.integers(0, 2, (n, 1)).astype(float),
        "numbers": lambda: rng.normal(size=(n, 3)) * [1e3, 1, 1e-3],
        "classes": lambda: np.eye(5)[rng.integers(0, 5, n)],
    }[kind]()
    return BinnedRows.of(torch.from_numpy(X), 16), weight, Y


def grown(binned, weight, Y, tries=3, least=1.0, seed=7, order=None, constraints=UNCONSTRAINED):
    order = np.arange(len(weight)) if order is None else order
    starts = np.append(0, np.cumsum(binned.bins.widths))
    targets = WeightedTargets.of(weight[order], Y[order])
    known = binned.codes, order.astype(np.uint32), targets, tries, least, seed, binned.bins.values, starts
    return scatter(*known, constraints=constraints)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.booleans(), st.integers(1, 6), st.sampled_from([0, 1, 2.5]))
def test_growth_equals_brute_force(seed, kind, weighted, tries, least):
    binned, weight, Y = rows_of(seed, kind, weighted=weighted)
    feature, cut, left, value = grown(binned, weight, Y, tries, least, seed)
    values = np.split(binned.bins.values, np.cumsum(binned.bins.widths)[:-1])
    wanted = by_brute_force(codes_by_column(binned), weight, Y, tries, least, seed, values)
    assert len(left) == len(wanted)
    for node, own in enumerate(wanted):
        if left[node]:
            assert (feature[node], cut[node], left[node]) == own
        else:
            assert (np.abs(value[node] - own) <= 1e-8 * np.abs(Y).max(0)).all()


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["number", "two", "numbers"]),
    st.integers(1, 6),
    st.lists(st.sampled_from([-1, 0, 1]), min_size=6, max_size=6) | st.none(),
    st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=4) | st.none(),
)
def test_constrained_growth_equals_brute_force(seed, kind, tries, signs, sets):
    binned, weight, Y = rows_of(seed, kind)
    # a column in no set is never split
    bits = [[sum(2**i for i, own in enumerate(sets or []) if column in own)] for column in range(6)]
    limits = Constraints(None if signs is None else np.array(signs), None if sets is None else np.array(bits))
    feature, cut, left, value = grown(binned, weight, Y, tries, 1.0, seed, constraints=limits)
    values = np.split(binned.bins.values, np.cumsum(binned.bins.widths)[:-1])
    wanted = BruteForce(codes_by_column(binned), weight, Y, tries, 1.0, values, signs, sets).grown(seed)
    assert len(left) == len(wanted)
    for node, own in enumerate(wanted):
        if left[node]:
            assert (feature[node], cut[node], left[node]) == own
        else:
            assert (np.abs(value[node] - own) <= 1e-8 * np.abs(Y).max(0)).all()


def test_wide_tables_where_codes_stay_in_place():
    """Of many columns few are looked at: rows are then indices, and the trees are the same."""
    binned, weight, Y = rows_of(3, "number", n=60, d=100)
    feature, cut, left, _ = grown(binned, weight, Y, tries=2)
    values = np.split(binned.bins.values, np.cumsum(binned.bins.widths)[:-1])
    wanted = by_brute_force(codes_by_column(binned), weight, Y, 2, 1.0, 7, values)
    inner = [own for own in wanted if isinstance(own, tuple)]
    assert list(zip(feature[left > 0], cut[left > 0], left[left > 0], strict=True)) == inner


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_rows_does_not_matter(kind, weighted):
    binned, weight, Y = rows_of(1, kind, n=3000, d=9, weighted=weighted)
    other = np.random.default_rng(0).permutation(3000)
    for one, two in zip(grown(binned, weight, Y), grown(binned, weight, Y, order=other), strict=True):
        assert np.array_equal(one, two)
    slopes = np.random.default_rng(1).normal(size=3000)
    trees = [
        grow_by_sign(binned.codes, order.astype(np.uint32), slopes, weight, 31, binned.bins.widths, 64, 1e-3)
        for order in (np.arange(3000), other)
    ]
    assert len(trees[0][0]) > 9
    assert all(np.array_equal(one, two) for one, two in zip(*trees, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_repeated_rows_are_weighted_ones(kind):
    binned, _, Y = rows_of(2, kind, n=300)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    repeated = np.repeat(np.arange(300), weight)
    one = grown(binned, weight / 1.7, Y)
    two = grown(binned, np.full(300, 1 / 1.7), Y, order=repeated)
    assert all(np.array_equal(a, b) for a, b in zip(one[:3], two[:3], strict=True))
    np.testing.assert_allclose(one[3], two[3], rtol=0, atol=1e-9 * np.abs(Y).max())


@pytest.mark.parametrize("size", [1e-300, 1e-5, 1.0, 1e300])
@pytest.mark.parametrize("weights", ["even", "steep"])
def test_means_are_accurate_whatever_the_scale_of_targets_and_weights(size, weights):
    rng = np.random.default_rng(0)
    binned, _, Y = rows_of(0, "number", n=500)
    weight = np.ones(500) if weights == "even" else 10.0 ** rng.uniform(-6, 0, 500)
    feature, cut, left, value = grown(binned, weight, size * Y, least=0.0)
    node = np.zeros(500, int)
    while left[node].any():
        beyond = codes_by_column(binned)[feature[node], np.arange(500)] > cut[node]
        node = np.where(left[node] > 0, left[node] + beyond, node)
    for leaf in np.unique(node):
        rows = node == leaf
        exact = weight[rows] @ Y[rows] / weight[rows].sum()
        # a weight of a millionth of the largest is rounded by a thousandth of itself, and its row is one of several
        slack = 1e-8 if weights == "even" or rows.sum() == 1 else 1e-3
        np.testing.assert_allclose(value[leaf] / size, exact, rtol=0, atol=slack * np.abs(Y).max())


def test_weights_that_are_multiples_of_one_are_exact():
    assert integer_weights(np.array([3.0, 1.0, 2.0]) / 7)[0].tolist() == [3, 1, 2]
    assert integer_weights(np.array([0.2, 0.0, 0.2]))[0].tolist() == [1, 0, 1]
    whole, unit = integer_weights(np.array([1.0, np.pi, 1e-20]))
    assert whole.max() <= 2**DIGITS
    assert whole[2] == 1
    np.testing.assert_allclose(whole[:2] * unit, [1, np.pi], rtol=1e-9)
    assert integer_weights(np.array([1e300, 1e-300]))[0].tolist()[1] == 1


def test_trees_are_the_same_on_every_instruction_set():
    best = LEVELS[library().gce_cpu_level()]
    said = [
        subprocess.run(
            [sys.executable, __file__], env={**os.environ, "GCE_CPU": level}, capture_output=True, text=True, check=True
        ).stdout
        for level in LEVELS[: LEVELS.index(best) + 1]
    ]
    assert said[0]
    assert set(said) == {said[0]}


def digests():
    """Digests of trees of all kinds."""
    from hashlib import sha256

    for kind in KINDS:
        for weighted in (False, True):
            binned, weight, Y = rows_of(5, kind, n=5000, d=11, weighted=weighted)
            parts = grown(binned, weight, Y)
            slopes = np.random.default_rng(2).normal(size=5000)
            rows = np.arange(5000, dtype=np.uint32)
            parts += grow_by_sign(binned.codes, rows, slopes, weight, 31, binned.bins.widths, 64, 1e-3)
            yield sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


if __name__ == "__main__":
    sys.stdout.write("\n".join(digests()))
