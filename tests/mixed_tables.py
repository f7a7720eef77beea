"""Rows with categories and missing values, and trees of their own, for tests."""

from itertools import combinations

import numpy as np
import torch

from gce.bases.trees import TreeArrays
from gce.io.onnx.encoder import EncodedRows
from gce.preprocessing import Column, Schema, Standardizer, Table
from gce.preprocessing.encoder import Encoder
from gce.preprocessing.mixed import MixedRows


def mixed_rows(columns, categorical):
    """Columns ``(n, d)`` that are not scaled, as rows."""
    kinds = ["category" if kind else "number" for kind in categorical]
    schema = Schema(tuple(Column(f"x{j}", kind, tuple(range(254))) for j, kind in enumerate(kinds)))
    encoder = Encoder.fit(columns, np.ones(len(columns)), schema.numbers, "each", np.inf)
    return MixedRows(torch.from_numpy(columns), encoder, np.array(categorical))


def draw_columns(rng, n, categorical, missing=0.2, levels=6):
    """Random columns with gaps: numbers on a grid, and codes of categories, of which -1 is that of all others."""
    columns = np.where(
        categorical, rng.integers(-1, levels - 1, (n, len(categorical))), rng.integers(-6, 7, (n, 1)) / 2
    )
    columns = columns + np.where(categorical, 0.0, rng.integers(0, 3, columns.shape))
    columns[rng.random(columns.shape) < missing] = np.nan
    return columns


def bin_of(code):
    """The bin of a category's code."""
    if np.isnan(code):
        return 1
    return int(code) + 2 if 0 <= code < 254 else 0


def goes_left(trees, node, value):
    """Whether a value passes a node to the left, by the definition of rules and sets."""
    threshold, rule = float(trees.threshold[node]), int(trees.rule[node])
    if rule == 2:
        words = [int(word) % 2**64 for word in trees.sets[int(threshold)]]
        return bool(words[bin_of(value) // 64] >> bin_of(value) % 64 & 1)
    return rule == 0 if np.isnan(value) else value <= threshold


def leaves_of(trees, columns):
    """The values of the leaves of rows ``(n, d)`` in each tree, ``(T, n, v)``, by walking."""
    out, first = np.zeros((len(trees), len(columns), trees.outputs)), 0
    for t, size in enumerate(trees.size.tolist()):
        for i, row in enumerate(columns):
            node = first
            while left := int(trees.left[node]):
                node = first + left + (not goes_left(trees, node, row[int(trees.feature[node])]))
            out[t, i] = trees.value[node]
        first += size
    return out


def mixed_trees(rng, shapes, categorical, outputs=1, dtype=torch.float64):
    """Trees of given numbers of leaves with random rules and sets; of negative numbers of levels, symmetric ones."""
    return TreeArrays.of([_mixed_tree(rng, shape, categorical, outputs) for shape in shapes], dtype)


def _mixed_tree(rng, shape, categorical, outputs):
    if shape < 0:
        nodes = 2 ** (1 - shape) - 1
        level = np.log2(np.arange(1, nodes + 1)).astype(int)
        left = np.where(level < -shape, 2 * np.arange(nodes) + 1, 0).astype(np.int32)
    else:
        level = np.arange(2 * shape - 1)
        left, ends = np.zeros(len(level), np.int32), [0]
        for count in range(1, len(level), 2):
            left[ends.pop(int(rng.integers(len(ends))))] = count
            ends += [count, count + 1]
    some = level.max() + 1
    feature = rng.integers(0, len(categorical), some).astype(np.int32)
    rule = np.where(np.array(categorical)[feature], 2, rng.integers(0, 2, some)).astype(np.uint8)
    sets = rng.integers(-(2**63), 2**63, (some, 4))
    threshold = np.where(rule == 2, np.arange(some), rng.integers(-6, 7, some) / 2)
    threshold[(rule < 2) & (rng.random(some) < 0.1)] = np.finfo(np.float64).max
    value = rng.uniform(-1, 1, (len(level), outputs))
    return feature[level], threshold[level], left, value, rule[level], sets


def every_split(column, categorical):
    """Masks of the rows that go left, of all splits of a column: subsets of categories, or cuts with missing values."""
    if categorical:
        present = sorted({bin_of(code) for code in column})
        bins = np.array([bin_of(code) for code in column])
        for size in range(1, len(present)):
            for chosen in combinations(present, size):
                yield np.isin(bins, chosen)
        return
    missing = np.isnan(column)
    for cut in np.unique(column[~missing]):
        below = ~missing & (column <= cut)
        yield below
        yield below | missing


def plain_rows(graph, width):
    """Rows of a graph that are not scaled."""
    identity = Standardizer(np.zeros(width), np.ones(width), np.inf)
    none = np.zeros(0)
    encoder = Encoder(np.arange(width), identity, none.astype(np.intp), none, none, none)
    return EncodedRows(graph, Table(Schema(tuple(Column(f"x{j}", "number") for j in range(width))), encoder))
