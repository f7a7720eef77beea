"""Shapley values by their definition, for tests: sums over all coalitions."""

from dataclasses import replace
from itertools import combinations
from math import factorial

import numpy as np
import torch

from gce.bases.trees import TreeArrays
from gce.bases.trees.binning import IN_SET, MISSING_RIGHT


def coalitions(d):
    return [frozenset(own) for size in range(d + 1) for own in combinations(range(d), size)]


def shapley(value, d):
    """Shapley values ``(d, ...)`` of a game: a function of coalitions."""
    worth = {own: np.asarray(value(own)) for own in coalitions(d)}
    phi = np.zeros((d, *worth[frozenset()].shape))
    for j in range(d):
        for own in worth:
            if j not in own:
                weight = factorial(len(own)) * factorial(d - len(own) - 1) / factorial(d)
                phi[j] += weight * (worth[own | {j}] - worth[own])
    return phi


def interactions(value, d):
    """Interaction values ``(d, d, ...)``: half of each pair's index, and on the diagonal what is left of the value."""
    worth = {own: np.asarray(value(own)) for own in coalitions(d)}
    phi = np.zeros((d, d, *worth[frozenset()].shape))
    for i, j in combinations(range(d), 2):
        for own in worth:
            if not own & {i, j}:
                weight = factorial(len(own)) * factorial(d - len(own) - 2) / factorial(d - 1) / 2
                phi[i, j] += weight * (worth[own | {i, j}] - worth[own | {i}] - worth[own | {j}] + worth[own])
        phi[j, i] = phi[i, j]
    single = shapley(value, d)
    for i in range(d):
        phi[i, i] = single[i] - phi[i].sum(0)
    return phi


def goes_right(trees, node, value):
    rule, threshold = int(trees.rule[node]), float(trees.threshold[node])
    if rule == IN_SET:
        code = 1 if np.isnan(value) else int(value) + 2 if 0 <= value < 254 else 0
        return not int(trees.sets[int(threshold), code >> 6]) >> (code & 63) & 1
    return not value <= threshold if rule == MISSING_RIGHT else value > threshold


class OneTree:
    """A tree that is evaluated node by node."""

    def __init__(self, trees: TreeArrays, t: int) -> None:
        self.trees, self.root = trees, int(trees.first[t])

    def weight(self, node):
        left = int(self.trees.left[self.root + node])
        return self.weight(left) + self.weight(left + 1) if left else float(self.trees.cover[self.root + node])

    def expected(self, x, inside, players, node=0):
        """The value for a coalition: both ways, by weight, where the player is not inside."""
        left = int(self.trees.left[self.root + node])
        if not left:
            return self.trees.value[self.root + node].double().numpy()
        column = int(self.trees.feature[self.root + node])
        if players[column] in inside:
            right = goes_right(self.trees, self.root + node, x[column])
            return self.expected(x, inside, players, left + right)
        weights = np.array([self.weight(left), self.weight(left + 1)])
        weights = weights / weights.sum() if weights.sum() else np.array([0.5, 0.5])
        return sum(w * self.expected(x, inside, players, left + i) for i, w in enumerate(weights))

    def __call__(self, x):
        return self.expected(x, set(range(10**3)), np.arange(10**3))


def _split(rng, columns, categories, sets):
    """A column, a threshold or the number of a new set, and a rule."""
    column = int(rng.integers(columns))
    if column in categories:
        sets.append(rng.integers(0, 2**63, 4))
        return column, float(len(sets) - 1), IN_SET
    return column, float(np.round(rng.normal(), 1)), int(rng.integers(2))


def random_trees(rng, count, columns, outputs, *, categories=(), leaves=8, symmetric=False):
    """Trees that split numbers, missing values and categories, with weights of their leaves, some of them 0."""
    parts = []
    for _ in range(count):
        nodes, depth, sets, levels, waiting = [(0, 0.0, 0)], [0], [], {}, [0]
        left = [0]
        while waiting and (symmetric or len(nodes) < 2 * leaves - 1):
            node = waiting.pop(0 if symmetric else int(rng.integers(len(waiting))))
            if symmetric and depth[node] == 3:
                continue
            if not symmetric:
                levels.clear()
            if depth[node] not in levels:
                levels[depth[node]] = _split(rng, columns, categories, sets)
            nodes[node], left[node] = levels[depth[node]], len(nodes)
            waiting += [len(nodes), len(nodes) + 1]
            nodes += 2 * [(0, 0.0, 0)]
            left += [0, 0]
            depth += 2 * [depth[node] + 1]
        parts.append(_tree(rng, nodes, left, sets, outputs))
    return TreeArrays.cat(parts)


def _tree(rng, nodes, left, sets, outputs):
    feature, threshold, rule = map(np.array, zip(*nodes, strict=True))
    inner = np.array(left) > 0
    cover = np.where(inner | (rng.random(len(left)) < 0.1), 0, rng.integers(1, 20, len(left)))
    splits = feature.astype(np.int32), threshold.astype(float), np.array(left, np.int32)
    value = rng.normal(size=(len(left), outputs))
    one = TreeArrays.of([(*splits, value, rule.astype(np.uint8), np.array(sets, np.int64).reshape(-1, 4))])
    return replace(one, cover=torch.from_numpy(cover).float())
