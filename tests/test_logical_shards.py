"""Units in logical shards and logical shards in processes: all of them, in order, evenly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gce.preprocessing.open_shards import assign, logical_shards

ROWS = st.lists(st.integers(1, 1000), min_size=1, max_size=60)


@given(ROWS, st.integers(1, 70))
def test_logical_shards_divide_the_units_in_order(rows, most):
    groups = logical_shards(rows, most)
    assert [i for group in groups for i in group] == list(range(len(rows)))
    assert all(len(group) for group in groups)
    assert len(groups) <= most
    total = [sum(rows[i] for i in group) for group in groups]
    assert max(total) <= sum(rows) / most + max(rows)
    if len(rows) <= most:
        assert len(groups) == len(rows)


def test_equal_units_make_equal_shards():
    assert [len(group) for group in logical_shards([5] * 1024)] == [4] * 256


@given(ROWS, st.data())
def test_shards_are_assigned_in_order_and_evenly(rows, data):
    size = data.draw(st.integers(1, len(rows)))
    runs = assign(rows, size)
    assert len(runs) == size
    assert [i for run in runs for i in run] == list(range(len(rows)))
    assert all(len(run) for run in runs)
    most = max(sum(rows[i] for i in run) for run in runs)
    # the mean is a lower bound, and greedy runs exceed it by less than one shard
    assert most < sum(rows) / size + max(rows)
    assert most == least_maximum(tuple(rows), size)


def least_maximum(rows, size):
    """The largest sum of the best division, by dynamic programming."""
    best = [0.0] + [float("inf")] * len(rows)
    for _ in range(size):
        best = [float("inf")] + [min(max(best[k], sum(rows[k:j])) for k in range(j)) for j in range(1, len(rows) + 1)]
    return best[-1]


def test_more_processes_than_shards_is_an_error():
    with pytest.raises(
        ValueError, match=r"3 processes cannot divide 2 row groups or batches.*start fewer processes, or"
    ):
        assign([1, 1], 3)
