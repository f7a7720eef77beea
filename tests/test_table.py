import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gce.table import Standardizer, one_hot


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_weighted_rows_are_scaled_as_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(3, 5, (12, 4))
    times = rng.integers(1, 5, 12)
    weighted, repeated = (
        Standardizer.fit(X, times * 0.3, 4.0),
        Standardizer.fit(X.repeat(times, 0), np.ones(times.sum()), 4.0),
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-10, atol=1e-10)
    plain = Standardizer.fit(X, times * 1.0, np.inf).transform(X)
    np.testing.assert_allclose(times @ plain / times.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(times @ plain**2 / times.sum(), 1, rtol=1e-12)


def test_constant_columns_are_centred_and_far_values_drawn_in():
    X = np.c_[np.full(5, 0.1 + 1e6), [0.0, 1, 2, 3, 1e9]]
    table = Standardizer.fit(X, np.ones(5), 4.0)
    assert np.abs(table.transform(X)[:, 0]).max() < 1e-6
    z = table.transform(np.array([[0.0, 1e300], [0.0, -1e50], [0.0, 1e9]]))[:, 1]
    assert (np.abs(z) <= 4).all()
    np.testing.assert_allclose(z[:2], [4, -4])
    order = np.sort(np.random.default_rng(0).normal(size=50) * 1e9)
    assert (np.diff(table.transform(np.c_[order, order])[:, 1]) > 0).all()  # no two values become one


def test_one_hot():
    assert one_hot(np.array([0, 1, 1]), 2).tolist() == [[0], [1], [1]]
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
