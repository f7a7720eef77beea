"""
Pruning for speed
=================

A default model has hundreds of atoms, and most of them say the same thing. Pruning keeps a few and finds the best
weights for them: predictions are nearly as good, and as many times faster.
"""

import time

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import gce

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = gce.GCEClassifier(basis="symmetric", cv=3, random_state=0).fit(X_train, y_train)

# %%
# Without targets the smaller model imitates the whole one, on any rows like those of the fit. The path shows what each
# size costs, so that one can choose.

path = model.pruning_path(X_train)
print(f"{path.sizes.max()} atoms, sizes to choose from: {path.sizes[:8]} ... {path.sizes[-5:]}")

# %%
# Every edit is a new model; the old one stays as it is.


def milliseconds(model):
    """The best of five predictions."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        model.predict_proba(X)
        times.append(time.perf_counter() - began)
    return 1000 * min(times)


models = {len(model.weights_): model} | {k: model.prune(k, X=X_train) for k in (64, 16, 4)}
for size, each in models.items():
    loss = log_loss(y_test, each.predict_proba(X_test))
    print(f"{size:4d} atoms: log-loss {loss:.4f} on new rows, {milliseconds(each):.2f} ms for {len(X)} rows")

# %%
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.loglog(path.sizes, path.losses.clip(1e-6), marker=".")
for size in list(models)[1:]:
    ax.axvline(size, color="0.8", zorder=0)
ax.set(xlabel="number of atoms", ylabel="mean squared distance from\nthe scores of the whole model")
plt.show()
