"""
Quantiles that never cross
==========================

One model for several quantiles, which are in order for every row: not after a repair, but by construction.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

import gce
from gce.losses import Quantiles

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 600))
y = np.sin(x) + x / 4 + rng.gamma(2, 0.05 + 0.05 * x)
levels = [0.05, 0.25, 0.5, 0.75, 0.95]

# %%
# One model per quantile knows nothing of the others, so that a higher quantile may be predicted below a lower one.

X, grid = x[:, None], np.linspace(0, 10, 400)[:, None]
separate = np.column_stack(
    [
        GradientBoostingRegressor(loss="quantile", alpha=level, random_state=0).fit(X, y).predict(grid)
        for level in levels
    ]
)

# %%
# ``Quantiles`` learns all of them together and sorts the scores of each row. Exchanging two predictions that are in the
# wrong order lowers the sum of their pinball losses whatever the target is: sorting never costs anything.

model = gce.GCERegressor(loss=Quantiles(levels), random_state=0).fit(X, y)
together = model.predict(grid)

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", sharey=True)
for ax, title, curves in zip(axes, ["a model for each", "one model"], [separate, together], strict=True):
    crossed = (np.diff(curves, axis=1) < 0).any(1).mean()
    ax.scatter(x, y, s=4, color="0.75")
    for level, curve in zip(levels, curves.T, strict=True):
        ax.plot(grid, curve, linewidth=1.2, label=f"{level:g}")
    ax.set(title=f"{title}: out of order at {crossed:.0%} of points", xlabel="x")
axes[0].set_ylabel("y")
axes[1].legend(title="quantile", loc="upper left")
plt.show()
