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
        Standardizer.fit(X, times * 0.3, 4.0, "auto"),
        Standardizer.fit(X.repeat(times, 0), np.ones(times.sum()), 4.0, "auto"),
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-10, atol=1e-10)
    plain = Standardizer.fit(X, times * 1.0, np.inf, "each").transform(X)
    np.testing.assert_allclose(times @ plain / times.sum(), 0, atol=1e-12)
    np.testing.assert_allclose(times @ plain**2 / times.sum(), 1, rtol=1e-12)


def test_constant_columns_are_centred_and_far_values_drawn_in():
    X = np.c_[np.full(5, 0.1 + 1e6), [0.0, 1, 2, 3, 1e9]]
    table = Standardizer.fit(X, np.ones(5), 4.0, "each")
    assert np.abs(table.transform(X)[:, 0]).max() < 1e-6
    z = table.transform(np.array([[0.0, 1e300], [0.0, -1e50], [0.0, 1e9]]))[:, 1]
    assert (np.abs(z) <= 4).all()
    np.testing.assert_allclose(z[:2], [4, -4])
    order = np.sort(np.random.default_rng(0).normal(size=50) * 1e9)
    assert (np.diff(table.transform(np.c_[order, order])[:, 1]) > 0).all()  # no two values become one


def test_columns_in_one_unit_keep_their_relative_spread():
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 17, (200, 6)) * (rng.random((200, 6)) < [0.9, 0.9, 0.9, 0.9, 0.9, 0.02])
    ones = np.ones(200)
    auto, common, each = (Standardizer.fit(pixels, ones, np.inf, scale) for scale in ("auto", "common", "each"))
    assert (auto.scale == common.scale).all()
    assert len(set(auto.scale)) == 1
    assert np.isclose(np.mean(auto.transform(pixels) ** 2), 1)
    np.testing.assert_allclose((each.transform(pixels) ** 2).mean(0), 1)
    mixed = pixels * [1.0, 1e3, 1.0, 1e-3, 1e2, 1.0]
    assert (Standardizer.fit(mixed, ones, 4.0, "auto").scale == Standardizer.fit(mixed, ones, 4.0, "each").scale).all()


def test_one_hot():
    assert one_hot(np.array([0, 1, 1]), 2).tolist() == [[0], [1], [1]]
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
