import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from gce.losses import Squared
from gce.losses.line_search import Brent, Exact, OpenLoop
from gce.losses.risk import Risk
from helpers import LOSSES, outputs_of, targets


def line_of(loss, seed, members=3, n=15, limit=None):
    rng = np.random.default_rng(seed)
    k = outputs_of(loss)
    weight = torch.from_numpy(rng.uniform(0.1, 1, (members, n)))
    risk = Risk(loss, targets(loss, n, rng), weight / weight.sum(1, keepdim=True), torch.zeros(k, dtype=torch.float64))
    pred, d = (torch.from_numpy(rng.normal(size=(members, n, k))) for _ in range(2))
    limit = torch.from_numpy(rng.uniform(0.01, 2, (members, 1))) if limit is None else limit
    return risk.along(pred, d, limit)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_exact_is_the_root_of_the_slope(loss, seed):
    line = line_of(loss, seed)
    size = Exact()(line, 1)
    assert (size >= 0).all()
    assert (size <= line.limit).all()
    for m in range(3):

        def slope(a, m=m):
            probe = torch.zeros_like(line.limit)
            probe[m] = a
            return float(line.slope(probe)[m])

        limit = float(line.limit[m])
        if slope(0.0) >= 0:
            assert size[m] == 0
        elif slope(limit) <= 0:
            assert size[m] == limit
        else:
            assert float(size[m]) == pytest.approx(brentq(slope, 0, limit, xtol=1e-15, rtol=1e-14), abs=1e-10)
    assert (line.value(size) <= line.value(torch.zeros_like(size)) * (1 + 1e-14) + 1e-15).all()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_brent_finds_the_same_risk(loss):
    for seed in range(3):
        line = line_of(loss, seed)
        exact, brent = line.value(Exact()(line, 1)), line.value(Brent()(line, 1))
        torch.testing.assert_close(brent, exact, rtol=1e-7, atol=1e-9)


def test_both_ends_can_be_reached():
    zero, one = torch.zeros(1, 4, 1, dtype=torch.float64), torch.ones(1, 4, 1, dtype=torch.float64)
    weight = torch.full((1, 4), 0.25, dtype=torch.float64)
    limit = torch.full((1, 1), 0.3, dtype=torch.float64)
    risk = Risk(Squared(), one[0], weight, torch.zeros(1, dtype=torch.float64))
    for search in (Exact(), Brent()):
        assert search(risk.along(zero, one, limit), 1).item() == 0.3
        assert search(risk.along(zero, -one, limit), 1).item() == 0.0
        assert search(risk.along(zero, one, torch.zeros_like(limit)), 1).item() == 0.0


def test_each_output_is_searched_on_its_own():
    rng = np.random.default_rng(0)
    y, d = (torch.from_numpy(rng.normal(size=(6, 2))) for _ in range(2))
    weight = torch.full((1, 6), 1 / 6, dtype=torch.float64)
    limit = torch.full((1, 2), 5.0, dtype=torch.float64)
    risk = Risk(Squared(), y, weight, torch.zeros(2, dtype=torch.float64))
    for search in (Exact(), Brent()):
        size = search(risk.along(torch.zeros(1, 6, 2, dtype=torch.float64), d[None], limit), 1)
        best = ((y * d).sum(0) / d.square().sum(0)).clamp(0, 5)
        torch.testing.assert_close(size[0], best, rtol=1e-6, atol=1e-8)


def test_open_loop_starts_at_one_half_or_one():
    line = line_of(Squared(), 0, limit=torch.tensor([[1.0], [1.0], [0.2]], dtype=torch.float64))
    assert OpenLoop(1.0)(line, 1).flatten().tolist() == [0.5, 0.5, 0.2]
    assert OpenLoop(2.0)(line, 1).flatten().tolist() == [1.0, 1.0, 0.2]
    assert OpenLoop(2.0)(line, 3).flatten().tolist() == [0.5, 0.5, 0.2]
