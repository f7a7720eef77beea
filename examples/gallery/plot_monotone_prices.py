"""
Monotone prices
===============

A larger flat is not cheaper, and an older one not dearer, all else equal. ``monotonic_cst`` makes that hold for every
possible row, also where the training rows say otherwise by chance.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gce

rng = np.random.default_rng(0)
n = 250
flats = pd.DataFrame({"area": rng.uniform(20, 140, n), "age": rng.uniform(0, 60, n), "floor": rng.integers(0, 9, n)})
rent = 400 + 14 * flats["area"] - 6 * flats["age"] + 25 * flats["floor"] + rng.normal(0, 250, n)

# %%
# 1 for rising, -1 for falling, by the name of the column. All families keep it: trees and forests by bounds on their
# leaves, networks by the signs of their weights.

free = gce.GCERegressor(random_state=0).fit(flats, rent)
monotone = gce.GCERegressor(monotonic_cst={"area": 1, "age": -1}, random_state=0).fit(flats, rent)

# %%
# The rent of one flat, if its area were another:

area = np.linspace(20, 140, 300)
one_flat = pd.DataFrame({"area": area, "age": 20.0, "floor": 3})

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.scatter(flats["area"], rent, s=8, color="0.8", label="flats of all ages")
for name, model in [("free", free), ("monotone", monotone)]:
    curve = model.predict(one_flat)
    falls = (np.diff(curve) < -1e-9).mean()
    ax.plot(area, curve, label=f"{name}: falls on {falls:.0%} of the way")
ax.set(xlabel="area of a flat of 20 years on the third floor, m²", ylabel="rent")
ax.legend()
plt.show()

# %%
# The constraint is a property of the model, not of the rows that were tried: any two flats that differ in their area
# alone are in order.

pairs = flats.sample(200, replace=True, random_state=1)
larger = pairs.assign(area=pairs["area"] + rng.uniform(0, 50, len(pairs)))
bool((monotone.predict(larger) >= monotone.predict(pairs) - 1e-9).all())
