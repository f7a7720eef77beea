"""Sums of integers in place of floats: they have no order, and are rounded once."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gce.distributed import World
from gce.distributed.exact_sums import ExactSums

EPS = 2.0**-52


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.sampled_from([200, 2**30 - 1, 2**45]))
def test_exact_sums_have_no_order(seed, rows):
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-1, 1, (200, 2)) * 10.0 ** rng.integers(-12, 1, (200, 2))
    numbers[0] = 1.0, -1.0
    cell = rng.integers(0, 5, 200)
    found = []
    for order in (np.arange(200), rng.permutation(200)):
        sums = ExactSums(5, 2, rows)
        for part in np.array_split(order, 3):
            sums.add(cell[part], numbers[part])
        found.append(sums.total(World()))
    np.testing.assert_array_equal(*found)
    bits = min(32, 62 - rows.bit_length())
    for c in range(5):
        for j in range(2):
            own = numbers[cell == c, j]
            bound = len(own) * 2.0 ** -(2 * bits + 1) + EPS * abs(math.fsum(own)) + EPS * 2.0**-bits * len(own)
            assert abs(found[0][c, j] - math.fsum(own)) <= bound
