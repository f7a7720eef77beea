"""Splits of missing values and categories: against all splits that there are, and by a plain implementation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce._utils.random import Streams
from gce.bases import FitContext, Forest, SignTree, SymmetricTree, Tree
from gce.bases.objectives import Joint, Linear
from gce.bases.trees import grower
from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import CategoryRule, Constraints, Sampling, Shape, TreeData
from gce.losses import Squared
from gce.losses.risk import Risk
from mixed_tables import bin_of, draw_columns, every_split, leaves_of, mixed_rows

NO_RULE = CategoryRule(smoothing=0, least=0, l2=0, few=0, most=256)
seeds = st.integers(0, 10**6)


def grow(columns, categorical, D, H, shape, *, least=0.0, l2=0.0, signs=None):
    """The leaf of each row, and the nodes, of one tree; ``least`` and ``l2`` in rows."""
    binned = BinnedRows.of(mixed_rows(columns, categorical), 256)
    unit = np.full(1, 1 / len(D))
    data = TreeData(
        *(binned.codes, binned.bins.widths, D[None, :, None], H[None, :, None], least * unit, l2 * unit),
        *(binned.bins.kinds, unit),
    )
    sampling = Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, len(categorical))
    grown = GrownTrees(data, shape, sampling, Constraints(signs), Scratch())
    return grown.leaf[0, 0], binned.bins.as_splits(grown.nodes())


def lowered(left, D, H, l2=0.0):
    """What a split lowers the quadratic model by, in both leaves."""
    return sum(D[side].sum() ** 2 / (H[side].sum() + l2) for side in (left, ~left) if side.any())


@settings(max_examples=40, deadline=None)
@given(seed=seeds, categorical=st.booleans(), symmetric=st.booleans())
def test_the_first_split_is_the_best_of_all(seed, categorical, symmetric):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 40))
    columns = draw_columns(rng, n, [categorical], missing=rng.choice([0, 0.2]))
    # with l2 the best subset need not be one of the order of means
    D, H, l2 = rng.normal(size=n), rng.uniform(0.5, 2, n), 0.0 if categorical else float(rng.integers(0, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grower, "CATEGORIES", NO_RULE)
        leaf, _ = grow(columns, [categorical], D, H, Shape(2, 1, symmetric), l2=l2)
    extra = l2 * H.sum() / n
    best = max((lowered(left, D, H, extra) for left in every_split(columns[:, 0], categorical)), default=0.0)
    whole = lowered(np.ones(n, bool), D, H, extra)
    assert lowered(leaf == leaf[0], D, H, extra) == pytest.approx(max(best, whole), rel=1e-5)


def by_rule(columns, kinds, nodes, D, H, rule, least, l2):
    """The largest sum of gains that a column has over nodes that are split together, by the rule of categories."""
    n, best = len(D), 0.0
    unit, groups = H.sum() / n, [nodes == node for node in np.unique(nodes)]
    for column, categorical in zip(columns.T, kinds, strict=True):
        bins = np.array([bin_of(code) for code in column]) if categorical else None
        few, extra = False, l2 * unit
        if categorical:
            few = len(np.unique(bins)) <= rule.few
            used = [b for b in np.unique(bins) if few or H[bins == b].sum() >= rule.least * unit * (1 - 1e-9)]
            left_over = sum((D - H * D[own].sum() / (H[own].sum() + extra)) * own for own in groups)
            smoothing = 0 if few else rule.smoothing * unit
            used.sort(
                key=lambda b, left_over=left_over, smoothing=smoothing, bins=bins: (
                    left_over[bins == b].sum() / (H[bins == b].sum() + smoothing)
                )
            )
            sides = [used[:p] for p in range(1, len(used) + 1)] + [used[-p:] for p in range(1, len(used) + 1)]
            splits = [np.isin(bins, side) for side in sides if len(side) <= rule.most]
        else:
            splits = list(every_split(column, False))
        with_rule = extra + (0 if few or not categorical else rule.l2 * unit)
        for left in splits:
            gain = 0.0
            for own in groups:
                if min(H[left & own].sum(), H[~left & own].sum()) >= max(least * unit * (1 - 1e-9), 1e-12):
                    sides = lowered(left[own], D[own], H[own], with_rule)
                    gain += sides - D[own].sum() ** 2 / (H[own].sum() + extra)
            best = max(best, gain)
    return best


@settings(max_examples=40, deadline=None)
@given(seed=seeds, least=st.sampled_from([0, 1, 3]), few=st.sampled_from([0, 4]), most=st.sampled_from([1, 3, 32]))
def test_splits_follow_the_rule_of_categories(seed, least, few, most):
    """Of a node alone and of two nodes together, which a symmetric tree splits alike."""
    rng = np.random.default_rng(seed)
    n, kinds = int(rng.integers(20, 60)), [True, False, True]
    columns = draw_columns(rng, n, kinds, levels=9)
    D, H, rule = rng.normal(size=n), rng.uniform(0.5, 2, n), CategoryRule(2.0, 3.0, 1.0, few, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grower, "CATEGORIES", rule)
        one, splits = grow(columns, kinds, D, H, Shape(2, 1, symmetric=True), least=least, l2=1.0)
        two, deeper = grow(columns, kinds, D, H, Shape(4, 2, symmetric=True), least=least, l2=1.0)
        first, _ = grow(columns, kinds, D, H, Shape(2, 1, symmetric=False), least=least, l2=1.0)
    assert np.array_equal(one, first)
    for nodes, parts, tree in ((np.zeros(n), one, splits), (one, two, deeper)):
        best = by_rule(columns, kinds, nodes, D, H, rule, least, 1.0)
        if len(np.unique(parts)) == len(np.unique(nodes)):
            assert best == pytest.approx(0, abs=1e-6)
            continue
        unit, own_rule = H.sum() / n, tree[4][0 if tree is splits else 1]
        column = columns[:, tree[0][0 if tree is splits else 1]]
        many = own_rule == 2 and len({bin_of(code) for code in column}) > few
        gain = 0.0
        for node in np.unique(nodes):
            own = nodes == node
            goes_left = parts[own] == parts[own].min()
            if min(H[own][goes_left].sum(), H[own][~goes_left].sum()) >= max(least * unit * (1 - 1e-9), 1e-12):
                sides = lowered(goes_left, D[own], H[own], unit * (1 + many))
                gain += sides - D[own].sum() ** 2 / (H[own].sum() + unit)
        assert gain == pytest.approx(best, rel=1e-5, abs=1e-9)


def streams(members):
    return Streams(0, tuple(range(members))).at(1, torch.arange(members), torch.zeros(members, dtype=torch.long))


def proposals(X, n, rng, members=2, outputs=1):
    """What each basis proposes for random objectives on the first n rows."""
    bound = torch.ones(outputs, dtype=torch.float64)
    linear = Linear(torch.from_numpy(rng.normal(size=(members, n, outputs))), bound)
    weight = torch.from_numpy(rng.integers(1, 4, (members, n)).astype(float))
    y = torch.from_numpy(rng.normal(size=(n, outputs)))
    risk = Risk(Squared(), y, weight / weight.sum(1, keepdim=True), torch.zeros(outputs).double())
    joint = Joint(risk, torch.zeros(members, n, outputs).double(), bound, start=0.3)
    for basis, objective in (
        (Tree(max_leaf_nodes=20, min_samples_leaf=1), linear),
        (SymmetricTree(max_depth=4), linear),
        (SignTree(min_samples_leaf=2), linear),
        (Forest(n_estimators=3), joint),
    ):
        yield basis, basis.minimize(objective, X, rng=streams(members), context=FitContext())


@settings(max_examples=10, deadline=None)
@given(seed=seeds, many=st.booleans())
def test_training_sees_what_prediction_sees(seed, many):
    """Of rows that were trained on and of others, with categories and gaps that training rows may lack."""
    rng = np.random.default_rng(seed)
    n, kinds = (700 if many else 60), [True, False, False, True, True]
    columns = draw_columns(rng, n + 20, kinds, levels=12)
    columns[:n, 2] = np.nan_to_num(columns[:n, 2])
    columns[n:, 0] = rng.integers(-1, 30, 20)
    X = mixed_rows(columns, kinds)
    for basis, proposal in proposals(X, n, rng):
        atoms = proposal.atoms
        outputs = atoms(atoms.seen(X))
        if proposal.outputs is not None:
            assert torch.equal(outputs, proposal.outputs), basis
        trees, into = atoms.trees, torch.zeros(len(atoms.trees), dtype=torch.int64)
        weights = torch.ones(len(trees), trees.outputs, dtype=torch.float64)
        expected = leaves_of(trees, columns[-30:])
        found = trees.summed(X.columns[-30:], weights, into, 1)
        np.testing.assert_allclose(found[0], expected.sum(0), rtol=1e-12, atol=1e-12)
        assert torch.equal(trees._summed_by_tensors(X.columns[-30:], weights, into.tolist(), 1), found)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_the_order_of_rows_does_not_matter(seed):
    """The same trees, but for forests, whose random numbers are drawn alike too."""
    rng = np.random.default_rng(seed)
    n, kinds = 80, [True, False, True]
    columns, order = draw_columns(rng, n, kinds, levels=10), rng.permutation(n)
    D, H = rng.normal(size=n), rng.uniform(0.5, 2, n)
    for symmetric in (False, True):
        _, one = grow(columns, kinds, D, H, Shape(8, 3, symmetric))
        _, two = grow(columns[order], kinds, D[order], H[order], Shape(8, 3, symmetric))
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_weighted_rows_are_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    n, kinds = 40, [True, False, True]
    columns, D, H = draw_columns(rng, n, kinds, levels=10), rng.normal(size=n), rng.uniform(0.5, 2, n)
    times = rng.integers(1, 4, n)
    rows = np.repeat(np.arange(n), times)
    for symmetric in (False, True):
        shape = Shape(8, 3, symmetric)
        # rows are counted by their Hessians, and a rule in rows is one in Hessians of the same sum
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                grower, "CATEGORIES", CategoryRule(10 * n / len(rows), 10 * n / len(rows), 10 * n / len(rows))
            )
            _, one = grow(columns, kinds, times * D, times * H, shape)
        _, two = grow(columns[rows], kinds, D[rows], H[rows], shape)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, symmetric=st.booleans(), sign=st.sampled_from([-1, 1]))
def test_numbers_are_monotone_and_missing_values_are_free(seed, symmetric, sign):
    rng = np.random.default_rng(seed)
    n, kinds = 120, [False, True, False]
    columns = draw_columns(rng, n, kinds)
    D = sign * np.nan_to_num(columns[:, 0], nan=8.0) + 3 * rng.normal(size=n)
    signs = np.array([sign, 0, 0])
    leaf, splits = grow(columns, kinds, D, np.ones(n), Shape(16, 4, symmetric), signs=signs)
    value = splits[3][:, 0]
    where = np.repeat(columns[:15], 8, axis=0)
    where[:, 0] = np.tile(np.linspace(-4, 6, 8), 15)
    trees = [torch.from_numpy(part) for part in splits]
    outputs = leaves_of(grower_trees(trees), where)[0, :, 0].reshape(15, 8)
    assert (sign * np.diff(outputs, axis=1) >= -1e-12).all()
    assert np.isfinite(value[leaf]).all()


def grower_trees(parts):
    from gce.bases.trees import TreeArrays

    return TreeArrays(torch.tensor([len(parts[0])]), *parts)
