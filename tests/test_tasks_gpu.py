"""Fits of every family, loss and algorithm on a GPU: finite, the same from a file, explained by sums that add up."""

import numpy as np
import pytest

import gce
from campaign.kill_fits import BASES, FITS, LOSSES, X
from gce.bases import Forest, SignTree, SymmetricTree, Tree
from helpers import GPU

#: Sums of leaves have the same bits everywhere, those of networks have single precision.
TREES = (Tree, SymmetricTree, SignTree, Forest)
NAMES = ["-".join(fit).replace(" ", "_") for fit in FITS]


def fitted(fit, **given):
    """A model of a family, a loss and an algorithm, and its targets."""
    family, loss, algorithm = fit
    kind, parameter, y = LOSSES[loss]
    model = kind(basis=BASES[family], loss=parameter, algorithm=algorithm, cv=3, max_atoms=8, random_state=0, **given)
    return model.fit(X, y), y


def of_trees_alone(family):
    bases = BASES[family] if isinstance(BASES[family], list) else [BASES[family]]
    return all(isinstance(basis, TREES) for basis in bases)


@GPU
@pytest.mark.filterwarnings("ignore:basis cannot go into a model file")
@pytest.mark.parametrize("fit", FITS, ids=NAMES)
def test_a_fit_on_a_gpu_can_be_used_anywhere(fit, tmp_path):
    model, y = fitted(fit, device="cuda")
    there = np.asarray(model.raw_predict(X).cpu())
    assert np.isfinite(there).all()
    model.save(tmp_path / "m.safetensors")
    here = gce.load(tmp_path / "m.safetensors").set_params(device="cpu")
    tolerance = 1e-12 if of_trees_alone(fit[0]) else 1e-5
    np.testing.assert_allclose(here.raw_predict(X), there, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(here.predict(X), model.predict(X), rtol=1e-4, atol=1e-4)
    assert np.isfinite(here.score(X, y)) == np.isfinite(model.score(X, y))


@GPU
@pytest.mark.parametrize("fit", FITS, ids=NAMES)
def test_what_a_fit_on_a_gpu_explains_adds_up(fit):
    model, _ = fitted(fit, device="cuda")
    importances = model.feature_importances_
    assert (importances >= 0).all()
    assert np.isclose(importances.sum(), 1)
    found = model.shap_values(X[:20], X[:10])
    raw = np.asarray(model.raw_predict(X[:20]).cpu())
    np.testing.assert_allclose((found.base_values + found.values.sum(1)).reshape(raw.shape), raw, rtol=1e-4, atol=1e-4)


@GPU
@pytest.mark.parametrize("family", ["trees", "networks", "forest"])
@pytest.mark.parametrize("constraint", [{"monotonic_cst": [1, 0, -1, 0]}, {"interaction_cst": [[0, 1], [2, 3]]}],
                         ids=["monotone", "interactions"])  # fmt: skip
def test_constraints_hold_on_a_gpu(family, constraint):
    model, _ = fitted((family, "squared error", "auto"), device="cuda", **constraint)
    grid = np.repeat(X[:10], 20, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 20), 10)
    raw = np.asarray(model.raw_predict(grid).cpu())[:, 0].reshape(10, 20)
    if "monotonic_cst" in constraint:
        assert np.diff(raw, axis=1).min() >= -1e-6
    else:
        other = grid.copy()
        other[:, 2] += 1.0
        effects = np.asarray(model.raw_predict(other).cpu())[:, 0].reshape(10, 20) - raw
        # what column 2 changes does not depend on column 0, which is in another group
        assert np.ptp(effects, axis=1).max() < 1e-4
