"""The cases of continuity.py in which models are fitted; those in which they are used are in continuity_edits.py.

All names and parameters of the library that continuity.py uses are in these two files. A case has a name, the sets it
is run on, and a function of a set's rows that gives a fitted model, or arrays by name. Objects of the library are made
when the case is run, so that a name that is gone stops no other case.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce

if TYPE_CHECKING:
    from continuity import Rows

Cases = dict[str, tuple[str, Callable[["Rows"], Any]]]

ALL, DENSE = "diabetes frame sparse several cancer iris", "diabetes frame several cancer iris"
FEW, ONE, CLASSES = "frame several iris", "diabetes cancer", "cancer iris"

# What is read from a model: the name it is stored by, and what the library calls it.
METHODS = {name: name for name in ("predict", "predict_proba", "predict_log_proba", "decision_function")}
METHODS |= {name: name for name in ("predict_interval", "staged_predict", "staged_predict_proba")}
ATTRIBUTES = {name: f"{name}_" for name in ("offset", "bound", "residuals", "temperature", "n_iter", "weights")}
ATTRIBUTES |= {name: f"{name}_" for name in ("gap", "risk", "classes", "atom_names", "n_samples_fit")}
FITTED = {"ensemble": "ensemble_", "history": "history_", "members": "members"}
ENSEMBLE = {name: name for name in ("weights", "origin", "offset", "bound")}
HISTORY = {name: name for name in ("risk", "validation", "gap", "gap_lower", "loss", "used")}
HISTORY |= {"size": "step_size", "atoms": "n_atoms"}

TREE: dict[str, Any] = {"max_leaf_nodes": 8, "max_depth": 4, "min_samples_leaf": 3, "l2_regularization": 0.5}
TREE |= {"max_features": 0.7, "subsample": 0.8, "max_bins": 32, "learning_rate": 0.2}
NET: dict[str, Any] = {"hidden": 5, "max_epochs": 25}
LOSSES = ("squared_error", "absolute_error", "pseudo_huber", "quantile")
ALGORITHMS = ("pairwise", "away", "frank-wolfe", "nonlinear", "blended", "boosting")
EXACT = ("pairwise", "away", "frank-wolfe", "blended")
SEARCHES = ("exact", "brent", "1/(t+1)", "2/(t+1)")
BASES = ("tree", "symmetric", "forest", "neural", "neuron")


def fit(r: Rows, kind: str, given: Callable[[Rows], Mapping[str, Any]] = lambda r: {}, **parameters: Any) -> Any:
    """A model of a kind, fitted, with what else is given to its fit."""
    return getattr(gce, kind + r.task)(**{"random_state": 0, "n_jobs": 1, **parameters}).fit(r.X, r.y, **given(r))


greedy = partial(fit, kind="GCE", cv=3, max_iter=15)
longer = partial(greedy, max_iter=40)
WAYS = {
    "GCE": partial(greedy, basis="neural"),
    "NGCE": partial(fit, kind="NGCE", n_atoms=6, hidden=5, max_epochs=40),
    "NN": partial(fit, kind="NN", hidden=20, max_epochs=40),
}


def member(r: Rows, basis: str) -> Any:
    return getattr(gce, "GCE" + r.task)(basis=basis, cv=3, max_iter=20, random_state=0, n_jobs=1)


def stack(r: Rows, kind: str = "ConvexStacking", fitted: bool = False, **parameters: Any) -> Any:
    """A stack of this library's models, and of scikit-learn's where these can read the rows."""
    models = {name: member(r, name) for name in ("tree", "neural", "forest")}
    if not isinstance(r.X, pd.DataFrame):
        numbers = Ridge(), DecisionTreeRegressor(max_depth=3, random_state=0), KNeighborsRegressor()
        classes = LogisticRegression(C=0.1), DecisionTreeClassifier(max_depth=3, random_state=0), KNeighborsClassifier()
        models |= zip(("linear", "stump", "near"), numbers if r.task == "Regressor" else classes, strict=True)
    if fitted:
        models = {name: model.fit(r.X_new, r.y_new) for name, model in models.items()}
    return fit(r, kind, **{"estimators": list(models.items()), "cv": 3, "prefit": fitted, **parameters})


def of_each_way() -> Cases:
    """Settings of greedy ensembles, of those trained at once and of plain networks alike."""
    settings: dict[str, tuple[str, dict[str, Any]]] = {
        **{f"loss {loss}": ("frame several", {"loss": loss}) for loss in LOSSES},
        "columns as they are": (FEW, {"scale": "each", "clip": None}),
        "offset 0": (FEW, {"offset": 0.0}),
        "two threads": ("iris", {"n_jobs": 2, "cv": 3}),
        "monotone": ("diabetes", {"monotonic_cst": [0, 0, 1, -1, 0, 0, 0, 0, 0, 0]}),
        "monotone by name": ("frame", {"monotonic_cst": {"age": 1, "size": -1}}),
        "all rows": (FEW, {"cv": None, "validation_fraction": None}),
        "one hold-out": (FEW, {"cv": None, "validation_fraction": 0.4}),
        "folds": (FEW, {"cv": 4}),
        "rows to watch": (FEW, {"cv": None, "given": lambda r: {"X_val": r.X_new, "y_val": r.y_new}}),
        "groups": (FEW, {"cv": 3, "given": lambda r: {"groups": np.arange(len(r.y)) % 20}}),
        "weights": (FEW, {"given": lambda r: {"sample_weight": np.arange(len(r.y)) % 4}}),
        "scoring of numbers": ("frame several", {"scoring": "neg_mean_absolute_error"}),
        "scoring of classes": (CLASSES, {"scoring": "balanced_accuracy"}),
        "class_weight": (CLASSES, {"class_weight": "balanced"}),
        "temperature": (CLASSES, {"temperature": 1.0}),
    }
    each = ((name, row, way) for name, row in settings.items() for way in WAYS)
    return {f"{way}, {name}": (sets, partial(WAYS[way], **given)) for name, (sets, given), way in each}


def learning() -> Cases:
    """Defaults, algorithms, line searches, losses and what only greedy ensembles have."""
    return {
        **{f"default {kind}": (ALL, partial(fit, kind=kind)) for kind in WAYS},
        "large GCE": ("large", partial(fit, kind="GCE", cv=None, max_iter=6)),
        **{f"large {way}": ("large", partial(WAYS[way], max_epochs=4)) for way in ("NGCE", "NN")},
        **{f"{way}, float32": (FEW, partial(WAYS[way], batch_size=32)) for way in ("NGCE", "NN")},
        "NGCE, softmax": (FEW, partial(WAYS["NGCE"], coefficients="softmax", activation="tanh", output="tanh")),
        "NGCE, neurons": (FEW, partial(WAYS["NGCE"], basis="neuron", weight_decay=1e-3)),
        **{f"algorithm {name}": (DENSE, partial(longer, algorithm=name)) for name in ALGORITHMS},
        **{f"algorithm {name}, trees": (DENSE, partial(longer, algorithm=name, basis="tree")) for name in ALGORITHMS},
        **{f"algorithm {n}, pool": (ONE, lambda r, by=n: longer(r, algorithm=by, basis=pool())) for n in EXACT},
        "algorithm Blended": (FEW, lambda r: greedy(r, algorithm=gce.frank_wolfe.Blended(laziness=0.2))),
        "algorithm Boosting": (
            FEW,
            lambda r: greedy(r, algorithm=gce.frank_wolfe.Boosting(learning_rate=0.3), basis="tree"),
        ),
        **{f"search {by.replace('/', ':')}": (FEW, partial(greedy, line_search=by)) for by in SEARCHES},
        "search Brent": (FEW, lambda r: greedy(r, line_search=gce.frank_wolfe.Brent(xatol=1e-4), basis="neural")),
        "search OpenLoop": (FEW, lambda r: greedy(r, line_search=gce.frank_wolfe.OpenLoop(numerator=1.5))),
        **{f"loss {loss}": ("diabetes several", partial(greedy, loss=loss)) for loss in LOSSES},
        "loss Power": ("diabetes several", lambda r: greedy(r, loss=gce.losses.Power(q=1.5))),
        "loss Quantile": ("diabetes several", lambda r: greedy(r, loss=gce.losses.Quantile(quantile=0.9))),
        "loss PseudoHuber": ("diabetes several", lambda r: greedy(r, loss=gce.losses.PseudoHuber(delta=20.0))),
        "loss of one's own": ("diabetes several", lambda r: greedy(r, loss=own_loss())),
        "loss log_loss": (CLASSES, partial(greedy, loss="log_loss")),
        **{f"scale {scale}": (FEW, partial(greedy, scale=scale)) for scale in ("robust", "common")},
        "bound": ("diabetes iris", partial(greedy, bound=300.0)),
        "tol": (FEW, partial(greedy, tol=0.05, max_iter=60)),
        "n_iter_no_change": (FEW, partial(greedy, n_iter_no_change=3, max_iter=60)),
        "max_atoms": (FEW, partial(greedy, max_atoms=4)),
        "time_limit, far away": (FEW, partial(greedy, time_limit=1e6)),
        "callbacks": (FEW, lambda r: greedy(r, callbacks=[lambda step: step.t >= 20])),
        "categorical_features": ("frame", partial(greedy, categorical_features=["age", "town"])),
        **{f"cv {cv}": (ALL, partial(greedy, cv=cv)) for cv in (None, "auto", 4)},
        "cv KFold": (FEW, lambda r: greedy(r, cv=KFold(3, shuffle=True, random_state=1))),
        "cv pairs": (FEW, lambda r: greedy(r, cv=[(np.r_[:90], np.r_[90:100]), (np.r_[20:100], np.r_[:20])])),
        "cv GroupKFold": (FEW, partial(greedy, cv=GroupKFold(3), given=lambda r: {"groups": np.arange(len(r.y)) % 9})),
        "warm start": (FEW, lambda r: greedy(r, warm_start=True, max_iter=6).set_params(max_iter=12).fit(r.X, r.y)),
        "warm start with other atoms": (FEW, rewarmed),
        "nested": (FEW, lambda r: greedy(r, basis=gce.bases.Neural(**NET)).set_params(basis__hidden=3).fit(r.X, r.y)),
        "known outputs": (ONE, lambda r: greedy(r, basis=known(), cv=None, validation_fraction=None)),
        "checkpoint": (FEW, checkpointed),
    }


def pool() -> Any:
    """Functions of columns, within the bounds of both sets."""
    return gce.bases.Pool([lambda X, j=j, s=s: s * np.tanh(X[:, j]) for j in range(10) for s in (-9.0, 9.0)])


def known() -> Any:
    """Atoms that are known by their outputs on the 160 rows of the fit alone."""
    return gce.bases.Pool(outputs=9 * np.sin(np.arange(1, 9)[:, None] * np.arange(160)))


def own_loss() -> Any:
    """A loss of which the library knows the value alone."""
    return type("LogCosh", (gce.losses.Loss,), {"value": lambda self, f, y: ((f - y) / 50).cosh().log().sum(-1)})()


def rewarmed(r: Rows) -> Any:
    """A fit that goes on with another class of atoms, and without limits."""
    model = greedy(r, basis=gce.bases.Neural(**NET), warm_start=True, max_iter=4)
    return model.set_params(basis=gce.bases.Neural(hidden=3, max_epochs=9), max_iter=9, n_iter_no_change=None).fit(
        r.X, r.y
    )


def checkpointed(r: Rows) -> Any:
    """A fit that is interrupted, and goes on in its folder."""
    with tempfile.TemporaryDirectory() as folder:
        greedy(r, max_iter=5, given=lambda r: {"checkpoint": folder})
        return greedy(r, max_iter=12, given=lambda r: {"checkpoint": folder})


def bases() -> Cases:
    """Classes of atoms, alone and together."""
    leaf = DecisionTreeRegressor(max_depth=3, random_state=0)
    made: dict[str, tuple[str, Callable[[], Any]]] = {
        "Tree": (ALL, lambda: gce.bases.Tree(**TREE)),
        "SymmetricTree": (
            ALL,
            lambda: gce.bases.SymmetricTree(
                max_depth=3, min_samples_leaf=2, l2_regularization=1.0, max_features=0.7, subsample=0.8, max_bins=16
            ),
        ),
        "SignTree": (ALL, lambda: gce.bases.SignTree(max_leaf_nodes=8, max_depth=4, min_samples_leaf=3)),
        "Forest": (ALL, lambda: gce.bases.Forest(n_estimators=5, max_features=0.5, min_samples_leaf=2, max_bins=32)),
        "Neural": (ALL, lambda: gce.bases.Neural(**NET, learning_rate=0.02, min_learning_rate=1e-4, patience=5)),
        "Neural, tanh": (FEW, lambda: gce.bases.Neural(**NET, activation="tanh", output="tanh", last_epochs=3)),
        "Neural, apart": (FEW, lambda: gce.bases.Neural(**NET, shared=False)),
        "Neural, float32": (ALL, lambda: gce.bases.Neural(**NET, batch_size=32)),
        "Neural, inherited": (FEW, lambda: gce.bases.Neural(**NET, inherit=0.5, gain=0.5, restarts=2)),
        "Neuron": (FEW, lambda: gce.bases.Neuron(max_epochs=30, restarts=2)),
        "RegressorBasis": (DENSE, lambda: gce.bases.RegressorBasis(leaf)),
        "RegressorBasis, clipped": (DENSE, lambda: gce.bases.RegressorBasis(Ridge(), bound_by="clip")),
        "RegressorBasis, unweighted": (FEW, lambda: gce.bases.RegressorBasis(KNeighborsRegressor())),
        "Pool": (ONE, pool),
        "Union": (DENSE, lambda: gce.bases.Union([gce.bases.Tree(**TREE), gce.bases.Neural(**NET)])),
        "Union by risk": (
            DENSE,
            lambda: gce.bases.Union([gce.bases.SignTree(), gce.bases.Neural(**NET)], choose="risk"),
        ),
        "list": (DENSE, lambda: [gce.bases.Tree(**TREE), gce.bases.Forest(n_estimators=5), gce.bases.Neural(**NET)]),
        "dict": (
            FEW,
            lambda: {"small": gce.bases.Tree(**TREE), "large": gce.bases.Tree(max_leaf_nodes=20, min_samples_leaf=1)},
        ),
    }
    made |= {name: (ALL, partial(str, name)) for name in BASES}
    return {f"basis {name}": (sets, lambda r, by=make: greedy(r, basis=by())) for name, (sets, make) in made.items()}
