"""Bins against numpy's sorting and searching."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gce.bases.trees.binned import BinnedRows
from gce.bases.trees.binning import distinct
from helpers import codes_by_column

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, np.nextafter(1.0, 2.0), 5e-324, -1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)


@settings(max_examples=100, deadline=None)
@given(arrays(np.float64, st.integers(1, 60), elements=NUMBERS), st.sampled_from([1, 20]))
def test_distinct_values_are_those_of_numpy(column, times):
    """Few values are sorted by comparisons, many byte by byte."""
    assert np.array_equal(distinct(np.tile(column, times)), np.unique(column))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(1, 700), st.integers(0, 9), st.sampled_from([2, 3, 8, 100, 256]), st.booleans()
)
def test_codes_count_the_edges_below_a_value(seed, n, d, bins, single):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(d) < 0.5, rng.normal(size=(n, d)), rng.integers(-2, 3, (n, d)))
    X = torch.from_numpy(X.astype(np.float32) if single else X)
    binned = BinnedRows.of(X, bins)
    assert binned.codes.shape == (-(-d // 4), n, 4)
    assert codes_by_column(binned).shape == (d, n)
    for c, edges in enumerate(binned.bins.edges):
        own = X[:, c].double().numpy()
        values = np.unique(own)
        assert len(edges) == min(bins, len(values)) - 1
        assert np.array_equal(binned.codes[c // 4, :, c % 4], np.searchsorted(edges, own))
        assert np.array_equal(codes_by_column(binned)[c], np.searchsorted(edges, own))
        # every edge parts two neighbours
        assert len(np.unique(np.searchsorted(values, edges, side="right"))) == len(edges)
    assert not binned.codes.transpose(0, 2, 1).reshape(-1, n)[d:].any()


@pytest.mark.parametrize("n", [1, 15, 16, 17, 4097])
def test_hashes_do_not_depend_on_how_many_rows_are_hashed_at_once(n, monkeypatch):
    X = torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    whole = BinnedRows.of(X, 8).names
    monkeypatch.setattr("gce.preprocessing.mixed.DENSE_BLOCK_SIZE", 20)
    assert np.array_equal(BinnedRows.of(X, 8).names, whole)
