"""
Frank-Wolfe's geometry in two dimensions
========================================

With two rows a model is a point in the plane: its two predictions. Atoms are corners, the ensemble is a point of their
hull, and the steps of the algorithms can be drawn. The library itself takes them here, from a pool of five atoms.
"""

import matplotlib.pyplot as plt
import numpy as np

import gce

corners = np.array([[1.0, 0.4], [-0.4, -1.0], [-0.9, -0.6], [-0.8, 0.6], [0.2, 0.9]])
target = np.array([0.36, -0.38])
rows = np.array([[0.0], [1.0]])


def atom(corner):
    """A function with the value ``corner[0]`` for the first row and ``corner[1]`` for the second."""
    return lambda X: np.where(X[:, 0] < 0, corner[0], corner[1])


# %%
# All start at the zero function. The squared error is least at the point of the hull that is nearest to the target, in
# the middle of an edge: Frank-Wolfe's steps toward its two ends zig-zag. Away steps and pairwise steps also take
# weight from an atom, and arrive.

settings = {"bound": 1.0, "offset": 0.0, "cv": None, "validation_fraction": None, "max_iter": 60, "tol": 1e-12}
models = {
    name: gce.GCERegressor(
        basis=gce.bases.Pool(functions=[atom(c) for c in corners]), algorithm=name, random_state=0, **settings
    ).fit(rows, target)
    for name in ("frank-wolfe", "away", "pairwise")
}

fig, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    path = np.array([[0.0, 0.0], *model.staged_predict(rows)])
    ax.fill(*corners.T, color="0.93")
    ax.scatter(*corners.T, color="0.4", s=20)
    ax.plot(*path.T, marker=".", linewidth=1)
    ax.plot(*target, "r*", markersize=9)
    ax.set(title=f"{name}: {model.n_iter_} rounds", xlabel="prediction of row 1", aspect="equal")
axes[0].set_ylabel("prediction of row 2")
plt.show()

# %%
# The duality gap of each round bounds how much the risk could still fall. A pool is searched exactly, so the bound is a
# proof. It falls slowly for Frank-Wolfe; the other two have dropped the atoms off the edge, and are done.

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, model in models.items():
    gaps = np.array([entry["gap"] for entry in model.history_])
    ax.semilogy(np.arange(1, len(gaps) + 1), np.maximum(gaps, 1e-17), marker=".", label=name)
ax.set(xlabel="round", ylabel="duality gap before the step")
ax.legend()
plt.show()
