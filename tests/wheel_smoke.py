"""Run by `make wheel` in an environment that holds the wheel and its dependencies alone."""

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import gce

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
model = gce.GCEClassifier(max_atoms=5, random_state=0).fit(X, y)
assert "site-packages" in gce.__file__, gce.__file__
assert not any(find_spec(name) for name in ("rich", "matplotlib", "pandas"))
assert model.score(X, y) > 0.8
# compiled on machines with a GPU
assert (Path(gce.__file__).parent / "kernels" / "grow_trees.cu").exists()
with TemporaryDirectory() as folder:
    model.save(Path(folder) / "m.safetensors")
    again = gce.load(Path(folder) / "m.safetensors")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    # its style and its script come with the package
    model.report(Path(folder) / "r.html", X, y)
sys.stdout.write(f"gce {gce.__version__}: the wheel works on its own\n")
