"""
A first fit
===========

A regressor with its defaults, on ten measurements of 442 patients: fit, predict, and see what the model is made of.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import gce

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# There is nothing to choose. Columns are scaled, rounds stop by rows that each member of the ensemble holds out, and
# trees, forests and networks are weighed on those rows.

model = gce.GCERegressor(random_state=0).fit(X_train, y_train)
print(f"R² on {len(y_test)} new rows: {model.score(X_test, y_test):.3f}")

# %%
# The prediction is a convex combination: weights are not negative and sum to one, so that no prediction, for any row,
# leaves the interval ``offset_ ± bound_``. The families that take part, with their weights and what would be lost
# without each:

model.explain(X_train, y_train).to_frame()[["weight", "n_atoms", "own_loss", "loss_without"]].round(3)

# %%
# Each prediction comes with an interval, from the residuals of held-out rows.

prediction = model.predict(X_test)
low, high = model.predict_interval(X_test, coverage=0.9).T
inside = (low <= y_test) & (y_test <= high)

fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
ax.vlines(prediction, low, high, color="0.8", label="interval for 90 % of rows")
ax.scatter(prediction, y_test, s=16, label=f"test row ({inside.mean():.0%} are inside)")
ax.plot([50, 300], [50, 300], color="0.4", linewidth=1, linestyle="--", label="prediction = target")
ax.set(xlabel="prediction", ylabel="progression of the disease after a year")
ax.legend()
plt.show()
