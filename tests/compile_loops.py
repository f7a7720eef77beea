"""Compiles the loops that most tests use: run by ``make test`` beside what needs one core, so that no test waits.

Two processes of pytest that began with an empty cache would each compile all of them.
"""

import numpy as np

import gce
from gce.bases import Neural, SignTree

X = np.random.default_rng(0).normal(size=(60, 3))
SMALL = {"max_atoms": 2, "cv": 2, "random_state": 0}


def main():
    y = X[:, 0] + np.abs(X[:, 1])
    for targets in (y, np.stack([y, X[:, 2]], 1)):
        gce.GCERegressor(**SMALL).fit(X, targets).predict(X)
    gce.GCERegressor(basis=SignTree(), **SMALL).fit(X, y).predict(X)
    for net in (Neural(max_epochs=2, batch_size=16), Neural(max_epochs=2, activation="tanh", output="tanh")):
        gce.GCERegressor(basis=net, **SMALL).fit(X, y).predict(X)
    for labels in (y > 1, np.digitize(y, [0.5, 1.5])):
        gce.GCEClassifier(**SMALL).fit(X, labels).predict_log_proba(X)
        gce.GCEClassifier(basis="tree", **SMALL).fit(X, labels).predict_proba(X)


if __name__ == "__main__":
    main()
