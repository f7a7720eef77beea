"""Write the checkpoint folders that every later version must go on with, once per version of the format.

Run as ``python tests/make_checkpoints.py``.

Each version's folders stay as they are for good: only those that are missing are written. The folders of versions 1
to 5 were written by the code of that time, those of 1 and 2 from the same models under the names that parameters had
then.
"""

import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

import gce
from gce.bases import Forest, Neural, Neuron, SignTree, SymmetricTree, Tree, Union
from gce.frank_wolfe import Boosting
from gce.io.container import VERSION
from gce.losses import Quantiles, SoftQuantile

FOLDER = Path(__file__).with_name("files")
#: Rounds of the fit in a folder, and of the fit that goes on from there.
ROUNDS, FURTHER = 3, 5
#: Models of versions 3 to 5, whose folders differ from those of 2 and 6 in little.
FEW = {"classes_neural", "boosting", "families"}


def data():
    """Rows and targets of small integers, 64 of them: their sums, and so the scaled table, are the same everywhere."""
    rng = np.random.default_rng(0)
    X = rng.integers(-4, 5, (64, 3))
    number = 4 * X[:, 0] + X[:, 1] ** 2 + 3 * X[:, 2]
    label = (number > -2).astype(int) + (number > 10)
    return {"X": X.tolist(), "number": number.tolist(), "label": label.tolist(), "rows": (X[:6] + 1).tolist()}


def target(given, name):
    """What the model of a name is fitted to."""
    number, label = np.array(given["number"], dtype=float), np.array(given["label"])
    if name.startswith("outputs"):
        return np.column_stack([number, -2 * number])
    if name.startswith("classes"):
        return label
    if name.startswith("labels"):
        return np.column_stack([label == 2, number > 5])
    if name.startswith("survival"):
        return np.column_stack([label < 2, number - number.min() + 1])
    return label == 2 if name.startswith("two_classes") else number


def networks():
    """A name and a model of networks, which checkpoints have held since version 1."""
    net = Neural(hidden=2, max_epochs=15)
    shared = {"cv": 2, "random_state": 0}
    yield "neural", gce.GCERegressor(basis=net, **shared)
    yield "neural_held_out", gce.GCERegressor(basis=net, cv=None, validation_fraction=0.25, random_state=0)
    yield "neural_in_sample", gce.GCERegressor(basis=net, cv=None, validation_fraction=None, random_state=0)
    yield "classes_neural", gce.GCEClassifier(basis=net, algorithm="pairwise", class_weight="balanced", **shared)
    yield "two_classes_neuron", gce.GCEClassifier(basis=Neuron(max_epochs=15), **shared)
    yield "outputs_separate", gce.GCERegressor(basis=Neural(hidden=2, max_epochs=15, shared=False), **shared)


def trees():
    """A name and a model of trees or several classes, which checkpoints have held since version 2."""
    net = Neural(hidden=2, max_epochs=15)
    tree = Tree(
        max_leaf_nodes=3,
        max_depth=3,
        min_samples_leaf=2,
        l2_regularization=0.5,
        max_features=0.75,
        subsample=0.8,
        max_bins=16,
        learning_rate=0.3,
    )
    symmetric = SymmetricTree(max_depth=2, min_samples_leaf=2, learning_rate=0.2)
    forest = Forest(n_estimators=2, max_features=0.5, min_samples_leaf=5, max_bins=16)
    sign = SignTree(max_leaf_nodes=3, max_depth=2, min_samples_leaf=4)
    shared = {"cv": 2, "random_state": 0}
    yield "boosting", gce.GCERegressor(basis=tree, algorithm=Boosting(learning_rate=0.3), **shared)
    yield "trees", gce.GCERegressor(basis=tree, **shared)
    yield "classes_symmetric", gce.GCEClassifier(basis=symmetric, algorithm="blended", **shared)
    yield "forest", gce.GCERegressor(basis=forest, **shared)
    yield "sign_tree", gce.GCERegressor(basis=sign, algorithm="pairwise", **shared)
    yield "union", gce.GCERegressor(basis=Union([tree, net], choose="risk"), **shared)
    yield "families", gce.GCERegressor(basis=[tree, symmetric, forest, net], **shared)
    yield "two_classes_families", gce.GCEClassifier(basis=[tree, net], algorithm=Boosting(0.3), **shared)
    yield "classes_families_dict", gce.GCEClassifier(basis={"deep": tree, "flat": symmetric}, **shared)
    yield "families_of_union", gce.GCERegressor(basis={"both": Union([tree, net]), "forest": forest}, **shared)
    yield "soft_quantile", gce.GCERegressor(basis=tree, loss=SoftQuantile(0.7, 0.5), **shared)
    yield "monotone", gce.GCERegressor(basis=net, monotonic_cst=[1, 0, 0], **shared)


def tasks():
    """A name and a model of other targets, which checkpoints of version 7 hold."""
    tree, net = Tree(max_leaf_nodes=3), Neural(hidden=2, max_epochs=15)
    shared = {"cv": 2, "random_state": 0}
    yield "survival", gce.GCESurvival(basis=[tree, net], **shared)
    yield "classes_ordinal", gce.GCEClassifier(basis=tree, loss="ordinal", **shared)
    yield "labels", gce.GCEClassifier(basis=[tree, net], **shared)
    yield "quantiles", gce.GCERegressor(basis=tree, loss=Quantiles([0.2, 0.8]), **shared)
    yield "huber", gce.GCERegressor(basis=[tree, net], loss="huber", **shared)
    yield "interactions", gce.GCERegressor(basis=[tree, net], interaction_cst=[[0, 1], [2]], **shared)


def models(version):
    """Names and models of a version's folders."""
    known = [*networks(), *(trees() if version > 1 else ()), *(tasks() if version > 6 else ())]
    yield from ((name, model) for name, model in known if name in FEW or version not in (3, 4, 5))


def fit(model, given, name, folder, rounds):
    """The model after so many rounds, from those in the folder on."""
    X = np.array(given["X"], dtype=float)
    return model.set_params(max_iter=rounds).fit(X, target(given, name), checkpoint=folder)


def learned(model, given):
    """Predictions of a model, probabilities of a classifier, and the risk after each round."""
    rows = np.array(given["rows"], dtype=float)
    answers = (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(rows)
    return {"answers": answers.tolist(), "risk": [entry["risk"] for entry in model.history_]}


def main():
    listed = FOLDER / f"v{VERSION}_checkpoints.json"
    expected = json.loads(listed.read_text()) if listed.exists() else {**data(), "left": {}, "further": {}}
    warnings.simplefilter("ignore")
    for name, model in models(VERSION):
        folder = FOLDER / f"v{VERSION}_checkpoint_{name}"
        if not folder.exists():
            expected["left"][name] = learned(fit(model, expected, name, folder, ROUNDS), expected)
            with tempfile.TemporaryDirectory() as other:
                shutil.copytree(folder, other, dirs_exist_ok=True)
                expected["further"][name] = learned(fit(model, expected, name, other, FURTHER), expected)
    listed.write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
