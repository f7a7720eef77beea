"""
Stacking models you have
========================

The best convex combination of models from any library, with a proof that no other weights are better on the same
out-of-fold predictions.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gce import ConvexStackingClassifier, GCEClassifier

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
members = [
    ("forest", RandomForestClassifier(50, random_state=0)),
    ("logistic", make_pipeline(StandardScaler(), LogisticRegression())),
    ("neighbours", make_pipeline(StandardScaler(), KNeighborsClassifier(15))),
    ("bayes", GaussianNB()),
    ("gce", GCEClassifier(basis="neural", max_atoms=10, cv=2, random_state=0)),
]
stack = ConvexStackingClassifier(members, random_state=0).fit(X_train, y_train)

# %%
# A convex loss lies above its tangents, and a linear function on the simplex is least at a corner, a single member.
# So one pass over the members bounds what any other weights could gain: ``gap_`` is that bound.

print(f"out-of-fold loss {stack.risk_:.5f}; no convex combination is below {stack.risk_ - stack.gap_:.5f}")

# %%
# ``explain`` says why each weight is what it is. A member is worth what the others cannot replace, not what it scores
# alone; where the slope of the loss toward a member is positive its weight is exactly zero, and it is not evaluated.

explanation = stack.explain()
print(explanation)

# %%
explanation.plot()
plt.show()

# %%
# The certificate is about the rows on which weights were solved. New rows are another matter, and are measured:

for name, model in [*stack.named_estimators_.items(), ("stack", stack)]:
    print(f"{name:>10}: log-loss {log_loss(y_test, model.predict_proba(X_test)):.4f} on new rows")
