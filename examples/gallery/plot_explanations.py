"""
Explanations
============

Which columns matter, what each adds to one prediction, and how predictions change with one of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

import gce
from gce.inspection import partial_dependence

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = gce.GCERegressor(random_state=0).fit(X_train, y_train)

# %%
# Three answers to "which columns matter?": what atoms gained on the training rows (``feature_importances_``, which costs
# nothing), how much predictions move (Shapley values), and what is lost on new rows if a column is shuffled.

found = model.shap_values(X_test)
shuffled = permutation_importance(model, X_test, y_test, n_repeats=5, random_state=0).importances_mean
answers = {
    "gain on training rows": model.feature_importances_,
    "mean size of Shapley values": np.abs(found.values).mean(0),
    "R² lost by shuffling": shuffled,
}
order = np.argsort(model.feature_importances_)

fig, axes = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, (title, values) in zip(axes, answers.items(), strict=True):
    ax.barh(X.columns[order], np.asarray(values)[order], height=0.65)
    ax.axvline(0, color="0.4", linewidth=0.8)
    ax.set_title(title, fontsize=10)
plt.show()

# %%
# Shapley values add up: the base value and the values of all columns are the prediction. For trees they are exact.

patient = int(np.argmax(model.predict(X_test)))
total = found.base_values[patient] + found.values[patient].sum()
print(
    f"base {found.base_values[patient]:.1f}, with all columns {total:.1f}, predicted {model.predict(X_test)[patient]:.1f}"
)
for column in np.argsort(-np.abs(found.values[patient]))[:4]:
    print(f"{X.columns[column]:>4} = {X_test.iloc[patient, column]:<7.5g} adds {found.values[patient, column]:+.1f}")

# %%
# Partial dependence: predictions if all patients had another body mass index, for each patient (thin) and in the mean.

curve = partial_dependence(model, X_test, "bmi", kind="both", grid_resolution=40)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(curve.grid_values[0], curve.individual[0].T, color="0.85", linewidth=0.6)
ax.plot(curve.grid_values[0], curve.average[0], linewidth=2.5)
ax.set(xlabel="body mass index", ylabel="predicted progression of the disease")
plt.show()
