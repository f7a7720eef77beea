import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gce.bases import Proposal
from gce.bases.base import Atoms
from gce.frank_wolfe.active_set import ActiveSet
from gce.frank_wolfe.step import Direction


class Table(Atoms):
    """Atoms that are their outputs."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = outputs

    def __len__(self):
        return len(self.outputs)

    def forward(self, X):
        return self.outputs


def one(index):
    return torch.tensor([[index]])


def three_atoms():
    """Zero, (2, 0) and (0, 4) on two rows."""
    active = ActiveSet(torch.zeros(2, 1, dtype=torch.float64), 2, 1, 1)
    for column in ([2.0, 0.0], [0.0, 4.0]):
        active.admit(Proposal(Table(torch.tensor(column, dtype=torch.float64).reshape(1, 2, 1))), torch.tensor([True]))
    return active


def test_steps_by_hand():
    active = three_atoms()
    toward_first = Direction(one(1), one(-1))
    assert active.limit(toward_first).item() == 1
    active.apply(toward_first, torch.tensor([[0.5]], dtype=torch.float64))
    assert active.weights.flatten().tolist() == [0.5, 0.5, 0.0]
    assert active.pred.flatten().tolist() == [1.0, 0.0]
    swap = Direction(one(2), one(0))
    assert active.limit(swap).item() == 0.5
    active.apply(swap, torch.tensor([[0.25]], dtype=torch.float64))
    assert active.weights.flatten().tolist() == [0.25, 0.5, 0.25]
    assert active.pred.flatten().tolist() == [1.0, 1.0]
    away = Direction(one(-1), one(2))
    assert active.limit(away).item() == pytest.approx(1 / 3)
    active.apply(away, active.limit(away))
    assert active.weights[0, 2].item() == 0  # exactly
    torch.testing.assert_close(active.weights.flatten(), torch.tensor([1 / 3, 2 / 3, 0.0], dtype=torch.float64))


def test_full_pairwise_step_drops_exactly():
    active = three_atoms()
    for size in (0.1, 0.3):
        active.apply(Direction(one(1), one(-1)), torch.tensor([[size]], dtype=torch.float64))
    go = Direction(one(2), one(1))
    active.apply(go, active.limit(go))
    assert active.weights[0, 1].item() == 0


def test_no_way_away_from_the_only_atom():
    with pytest.raises(ValueError, match="weight 1"):
        three_atoms().limit(Direction(one(-1), one(0)))


def test_inner_products_by_hand():
    gradient = torch.tensor([3.0, -1.0], dtype=torch.float64).reshape(1, 2, 1)
    assert three_atoms().inner(gradient).flatten().tolist() == [0, 6, -4]
    assert three_atoms().inner(gradient, first=2).flatten().tolist() == [-4]


@given(seed=st.integers(0, 10**6), separate=st.booleans(), steps=st.integers(1, 12))
@settings(max_examples=40, deadline=None)
def test_cached_and_recomputed_outputs_agree(seed, separate, steps):
    rng = np.random.default_rng(seed)
    X = torch.zeros(7, 1, dtype=torch.float64)
    sets = [ActiveSet(X, 5, 3, 2, separate=separate, cache_bytes=size) for size in (2**30, 0)]
    blocks = 2 if separate else 1
    for _ in range(steps):
        out = torch.from_numpy(rng.uniform(-1, 1, (3, 7, 2)))
        toward = torch.from_numpy(rng.integers(0, len(sets[0].slots) + 1, (3, blocks)))
        for active in sets:
            active.admit(Proposal(Table(out)), torch.ones(3, dtype=torch.bool))
        both = torch.from_numpy(rng.random((3, blocks)) > 0.5)
        away = torch.where(both, sets[0].weights.argmax(1), -1)
        share = torch.from_numpy(rng.choice([0.0, 0.3, 1.0], (3, blocks)))
        for active in sets:
            go = Direction(toward, away)
            active.apply(go, share * active.limit(go))
    cached, recomputed = sets
    assert recomputed._cache is None
    assert cached._cache is not None
    torch.testing.assert_close(cached.weights, recomputed.weights, rtol=0, atol=0)
    torch.testing.assert_close(cached.pred, recomputed.pred, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(cached.pred, cached.combine(cached.weights), rtol=0, atol=0)
    gradient = torch.from_numpy(rng.normal(size=(3, 5, 2)))
    torch.testing.assert_close(cached.inner(gradient), recomputed.inner(gradient))
    assert (cached.weights.sum(1) - 1).abs().max() < 1e-12


def test_a_float32_cache_is_summed_in_float64():
    active = ActiveSet(torch.zeros(3, 1), 3, 1, 1)
    out = torch.tensor([0.1, 1e-8, 3.0]).reshape(1, 3, 1)
    active.admit(Proposal(Table(out)), torch.tensor([True]))
    active.apply(Direction(one(1), one(-1)), torch.tensor([[1 / 3]], dtype=torch.float64))
    torch.testing.assert_close(active.pred[0], out[0].double() / 3, rtol=1e-15, atol=0)


def test_members_can_retire():
    active = ActiveSet(torch.zeros(2, 1, dtype=torch.float64), 2, 3, 1)
    out = torch.arange(6, dtype=torch.float64).reshape(3, 2, 1)
    active.admit(Proposal(Table(out)), torch.ones(3, dtype=torch.bool))
    go = Direction(torch.ones(3, 1, dtype=torch.long), -torch.ones(3, 1, dtype=torch.long))
    active.apply(go, torch.full((3, 1), 0.5, dtype=torch.float64))
    active.retire(torch.tensor([True, False, True]))
    assert active.members.tolist() == [0, 2]
    torch.testing.assert_close(active.pred, out[[0, 2]] / 2)
    torch.testing.assert_close(active.combine(active.weights), out[[0, 2]] / 2)
    torch.testing.assert_close(active.slots[1].outputs(active.X), out[[0, 2]])
