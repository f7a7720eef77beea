"""
The paper's Figure 1 in a minute
================================

Four greedy algorithms add single neurons to a convex hull, one in each round, with exact line search. The paper
compares their training errors; here on the diabetes data, with fewer neurons and one seed. The whole figure, with five
seeds and what it shows and does not show, is in ``paper/results/figure1.md``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import gce

X, y = load_diabetes(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# Rows that are given as ``X_val`` are only watched here: ``n_iter_no_change=None`` turns early stopping off. The hull
# lies around the mean target, and is as wide as the default makes it: 4/3 of the farthest target's distance.

NEURONS = 50
models = {
    algorithm: gce.GCERegressor(
        basis=gce.bases.Neuron(learning_rate=0.2, patience=20, max_epochs=300),
        algorithm=algorithm,
        max_iter=NEURONS,
        max_atoms=NEURONS,
        n_iter_no_change=None,
        random_state=0,
    ).fit(X_train, y_train, X_val=X_test, y_val=y_test)
    for algorithm in ("nonlinear", "frank-wolfe", "away", "pairwise")
}

# %%
# Pairwise steps, which move weight from the worst neuron to the best, have the least training error in the end, and
# training the weight with the neuron (nonlinear) the largest. Frank-Wolfe and away-step are equal here: no away step
# was better. On new rows the order is another one: a smaller training error is no aim in itself, and fits stop early
# by default.

styles = {"nonlinear": "-", "frank-wolfe": "-", "away": "--", "pairwise": "-"}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, what, title in zip(axes, ["risk", "validation"], ["training rows", "test rows"], strict=True):
    for algorithm, model in models.items():
        ax.plot([e["t"] for e in model.history_], [e[what] for e in model.history_], styles[algorithm], label=algorithm)
    ax.set(title=title, xlabel="neurons added", ylabel="mean squared error")
axes[0].legend()
plt.show()
