"""
Your own atom and loss
======================

A loss is a convex function of scores and targets. A class of atoms is whatever can be searched for the one that is best
aligned with the negative gradient. Here: waves, and a loss for which predicting too little costs nine times as much.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

import gce
from gce.bases import Atoms, Basis, Proposal
from gce.losses import Loss


class Expectile(Loss):
    """A squared error with another weight on either side; its gradient is found by automatic differentiation."""

    def __init__(self, level=0.9):
        self.level = level

    def value(self, pred, y):
        return (torch.where(pred < y, self.level, 1 - self.level) * (pred - y) ** 2).sum(-1)


# %%
# Atoms map rows ``(n, d)`` to outputs ``(A, n, k)``, all ``A`` of them at once. Rows come standardised.


class Waves(Atoms):
    """``height * cos(frequency * x + phase)`` of the first column."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def forward(self, X):
        height, frequency, phase = self.numbers.T[:, :, None]
        return (height * torch.cos(frequency * X[:, 0] + phase))[..., None]

    def select(self, index):
        return Waves(self.numbers[index])

    @classmethod
    def cat(cls, parts):
        return cls(torch.cat([part.numbers for part in parts]))


# %%
# A basis answers one question: which atom makes ``<gradient, atom>`` least? Here by trying a grid.


class WaveBasis(Basis):
    """Waves of some frequencies and all phases, as high as the bound allows."""

    def __init__(self, max_frequency=6.0):
        self.max_frequency = max_frequency

    def minimize(self, objective, X, *, rng, context):
        frequency = torch.linspace(0, self.max_frequency, 61, dtype=X.dtype)
        phase = torch.linspace(0, 2 * torch.pi, 25, dtype=X.dtype)[:-1]
        grid = torch.cartesian_prod(objective.bound, frequency, phase)
        products = objective.gradient[..., 0] @ Waves(grid)(X[: objective.rows])[..., 0].T
        return Proposal(Waves(grid[products.argmin(1)]))


# %%
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 300))[:, None]
y = np.sin(2 * x[:, 0]) + 0.3 * x[:, 0] + rng.normal(0, 0.4, 300)
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(x, y, s=6, color="0.75")
for level in (0.1, 0.5, 0.9):
    model = gce.GCERegressor(loss=Expectile(level), basis=WaveBasis(), algorithm="pairwise", cv=3, random_state=0)
    ax.plot(x, model.fit(x, y).predict(x), label=f"level {level}: {(y < model.predict(x)).mean():.0%} of rows below")
ax.set(xlabel="x", ylabel="y")
ax.legend()
plt.show()
