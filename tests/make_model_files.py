"""Write the model files that every later version must read, once a format version.

Run as ``python tests/make_model_files.py``.

Each version's files stay as they are for good. A new version of the format adds its own beside them.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

import gce
from gce.basis import Forest, Tree
from gce.storage.container import VERSION

FOLDER = Path(__file__).with_name("files")
NET = {"hidden": 2, "max_epochs": 15}


def table(rows, seed):
    """A frame of numbers, categories and booleans, with gaps."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(size=rows), "age": rng.integers(1, 90, rows).astype(float)})
    frame["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, rows)]
    frame["open"] = rng.random(rows) < 0.5
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.15, columns=frame.columns))


def models():
    """A name, a model and what it is fitted to."""
    X = table(60, 0)
    number = X["size"].fillna(0) ** 2 + (X["colour"] == "red")
    label = np.array(["cat", "dog", "owl"])[(X["age"].fillna(40) > 45).astype(int) + (number > 1)]
    greedy = {"max_atoms": 3, "cv": 2, "random_state": 0}
    at_once = {"hidden": 2, "max_epochs": 10, "random_state": 0}
    separate = gce.Neural(**NET, shared=False, batch_size=20)
    yield "gce_regressor", gce.GCERegressor(basis=gce.Neural(**NET), **greedy), X, number
    yield "gce_float32", gce.GCERegressor(basis=separate, **greedy), X, np.column_stack([number, -number])
    yield "gce_classifier", gce.GCEClassifier(basis=gce.Neural(**NET), class_weight="balanced", **greedy), X, label
    yield "gce_classifier_two", gce.GCEClassifier(basis=gce.Neuron(max_epochs=15), **greedy), X, label == "owl"
    tree, forest = Tree(leaves=4, least=3), Forest(trees=3)
    yield "gce_trees", gce.GCERegressor(basis=tree, **{**greedy, "max_atoms": 8}), X, np.column_stack([number, -number])
    yield "gce_forest", gce.GCEClassifier(basis=forest, **greedy), X, label
    yield "gce_mixed", gce.GCEClassifier(basis=[tree, forest, gce.Neural(**NET)], **greedy), X, label == "owl"
    yield "ngce_regressor", gce.NGCERegressor(n_atoms=2, loss=gce.losses.Quantile(0.8), **at_once), X, number
    yield "nn_classifier", gce.NNClassifier(cv=2, **at_once), X, label


def main():
    FOLDER.mkdir(exist_ok=True)
    rows = table(8, 1)
    expected = {"rows": rows.astype(object).where(rows.notna(), None).to_dict("list"), "scores": {}}
    for name, model, X, y in models():
        model.fit(X, y).save(FOLDER / f"v{VERSION}_{name}.safetensors")
        answer = model.predict_proba if hasattr(model, "predict_proba") else model.predict
        expected["scores"][name] = answer(rows).tolist()
    (FOLDER / f"v{VERSION}.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
