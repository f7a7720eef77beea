"""Edited ensembles whose atoms are on a GPU."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import gce
from helpers import GPU

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + np.abs(X[:, 1])
EXTERNAL = Ridge().fit(X[:20], Y[:20])
EDITS = {
    "remove": lambda model: model.remove(model.atom_names_[-1], X, Y),
    "add": lambda model: model.add("ridge", EXTERNAL, X, Y),
    "prune": lambda model: model.prune(3, X=X, y=Y),
    "reweight": lambda model: model.reweight(X[:30], Y[:30]),
}


@GPU
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_models_on_a_gpu_are_edited_as_elsewhere(edit, tmp_path):
    basis = gce.bases.Neural(hidden=3, max_epochs=5)
    model = gce.GCERegressor(max_atoms=4, cv=2, basis=basis, device="cuda", random_state=0, verbose=False).fit(X, Y)
    model.save(tmp_path / "m.safetensors")
    here = gce.load(tmp_path / "m.safetensors").set_params(device="cpu")
    np.testing.assert_allclose(edit(model).predict(X), edit(here).predict(X), rtol=1e-5, atol=1e-5)
