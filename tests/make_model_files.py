"""Write the model files that every later version must read, once per version of the format.

Run as ``python tests/make_model_files.py``.

Each version's files stay as they are for good: only those that are missing are written. The files of version 2 were
written by the code of that time, from the same models under the names that parameters had then.
"""

import json
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix

import gce
from gce.bases import Forest, Neural, Neuron, SignTree, SymmetricTree, Tree, Union
from gce.frank_wolfe import Blended, Boosting
from gce.io.container import VERSION
from gce.losses import Power, PseudoHuber, Quantile, Quantiles, Tweedie

FOLDER = Path(__file__).with_name("files")
NET = {"hidden": 2, "max_epochs": 15}
GREEDY = {"max_atoms": 3, "cv": 2, "random_state": 0}
AT_ONCE = {"hidden": 2, "max_epochs": 10, "random_state": 0}


def table(rows, seed):
    """A frame of numbers, categories and booleans, with missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"size": rng.normal(size=rows), "age": rng.integers(1, 90, rows).astype(float)})
    frame["colour"] = np.array(["red", "green", "blue"])[rng.integers(0, 3, rows)]
    frame["open"] = rng.random(rows) < 0.5
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.15, columns=frame.columns))


def as_given(rows, name):
    """Rows of a frame, as a model of this name is given them."""
    if name.endswith("_array"):
        return rows.to_numpy(dtype=object)
    if name.endswith("_sparse"):
        return csr_matrix(rows[["size", "age"]].fillna(0).to_numpy())
    return of_all_kinds(rows) if name.endswith("_kinds") else rows


def of_all_kinds(rows):
    """A frame with dates, durations, text and many categories, made of a frame of numbers."""
    days, size = rows["age"].fillna(0).astype(int), rows["size"].fillna(0).astype(float)
    grades = ("senior", "junior", "chief", "deputy", "acting")
    jobs = (
        "nurse",
        "teacher",
        "welder",
        "driver",
        "engineer",
        "clerk",
        "chemist",
        "painter",
        "pilot",
        "cook",
        "surgeon",
    )
    places = ("school", "hospital", "airport", "kitchen", "factory", "library", "office", "garage", "theatre", "court")
    part = (1000 * size.abs()).astype(int)
    return pd.DataFrame(
        {
            "when": pd.Timestamp("2020-01-01", tz="Europe/Rome") + pd.to_timedelta(7 * days, unit="h"),
            "long": pd.to_timedelta(days, unit="min"),
            "job": [f"{grades[d % 5]} {jobs[d % 11]}, {places[p % 10]}" for d, p in zip(days, part, strict=True)],
            "film": [f"film{p % 61}" for p in part],
            "size": rows["size"].astype(float),
        }
    )


def targets(X):
    """A number and a label per row."""
    number = X["size"].fillna(0) ** 2 + (X["colour"] == "red")
    label = np.array(["cat", "dog", "owl"])[(X["age"].fillna(40) > 45).astype(int) + (number > 1)]
    return number, label


def models():
    """A name, a model and what it is fitted to."""
    X = table(60, 0)
    number, label = targets(X)
    separate = Neural(**NET, shared=False, batch_size=20)
    yield "gce_regressor", gce.GCERegressor(basis=Neural(**NET), **GREEDY), X, number
    yield "gce_float32", gce.GCERegressor(basis=separate, **GREEDY), X, np.column_stack([number, -number])
    yield "gce_classifier", gce.GCEClassifier(basis=Neural(**NET), class_weight="balanced", **GREEDY), X, label
    yield "gce_classifier_two", gce.GCEClassifier(basis=Neuron(max_epochs=15), **GREEDY), X, label == "owl"
    tree, forest = Tree(max_leaf_nodes=4, min_samples_leaf=3), Forest(n_estimators=3)
    yield "gce_trees", gce.GCERegressor(basis=tree, **{**GREEDY, "max_atoms": 8}), X, np.column_stack([number, -number])
    yield "gce_forest", gce.GCEClassifier(basis=forest, **GREEDY), X, label
    yield "gce_mixed", gce.GCEClassifier(basis=[tree, forest, Neural(**NET)], **GREEDY), X, label == "owl"
    yield "ngce_regressor", gce.NGCERegressor(n_atoms=2, loss=Quantile(0.8), **AT_ONCE), X, number
    yield "nn_classifier", gce.NNClassifier(cv=2, **AT_ONCE), X, label
    yield from families(X, number, label)
    yield from settings(X, number, label)
    yield from trained_at_once(X, number, label)


def of_version_6():
    """The same of what version 6 added."""
    X = table(400, 2)
    rows = of_all_kinds(X)
    number = rows["film"].str[4:].astype(int) % 7 + rows["job"].str.contains("chief") + rows["when"].dt.hour / 10
    tree, forest = Tree(max_leaf_nodes=4), Forest(n_estimators=2)
    several = gce.GCERegressor(basis=[tree, forest, Neural(**NET)], **GREEDY)
    yield "gce_kinds", several, X, number
    yield "gce_classifier_kinds", gce.GCEClassifier(basis=SymmetricTree(max_depth=2), **GREEDY), X, number > 4
    yield "nn_kinds", gce.NNRegressor(**AT_ONCE), X, number


def of_version_7():
    """The same of what version 7 added."""
    X = table(60, 0)
    number, label = targets(X)
    tree, net, forest = Tree(max_leaf_nodes=4, min_samples_leaf=3), Neural(**NET), Forest(n_estimators=2)
    mixed, short = [tree, forest, net], {**GREEDY, "max_iter": 3}
    count, two = np.floor(number), np.column_stack([number, -number])
    yield "gce_poisson", gce.GCERegressor(basis=mixed, loss="poisson", **short), X, count
    yield "gce_poisson_base", gce.GCERegressor(basis=[tree, net], loss="poisson", **short), X, count
    yield "gce_gamma", gce.GCERegressor(basis=tree, loss="gamma", **GREEDY), X, number + 0.1
    yield "gce_tweedie", gce.GCERegressor(basis=net, loss=Tweedie(1.3), **GREEDY), X, number
    yield "gce_clipped", gce.GCERegressor(basis=tree, loss="huber", **GREEDY), X, number
    yield "gce_quantiles", gce.GCERegressor(basis=[tree, net], loss=Quantiles([0.1, 0.5, 0.9]), **short), X, number
    yield "gce_ordinal", gce.GCEClassifier(basis=mixed, loss="ordinal", **short), X, label
    labels = np.column_stack([label == "owl", X["open"].eq(True), number > 1])
    yield "gce_labels", gce.GCEClassifier(basis=mixed, **short), X, labels
    follow = np.column_stack([np.arange(60) % 3 > 0, 1 + np.floor(4 * number)])
    yield "survival_cox", gce.GCESurvival(basis=mixed, **short), X, follow
    yield "survival_hazards", gce.GCESurvival(basis=tree, loss="hazards", **GREEDY), X, follow
    sets = [["size", "age"], ["colour", "open"]]
    yield "gce_interactions", gce.GCERegressor(basis=mixed, interaction_cst=sets, **short), X, number
    vector = Tree(max_leaf_nodes=4, outputs_per_tree="all")
    yield "gce_vector", gce.GCERegressor(basis=vector, **GREEDY), X, two
    yield "gce_vector_classes", gce.GCEClassifier(basis=vector, **GREEDY), X, label
    yield "gce_default", gce.GCERegressor(**short), X, number
    yield "gce_left_out", gce.GCERegressor(basis=[tree, net], time_limit=0.0, **short), X, number
    yield "ngce_poisson", gce.NGCERegressor(n_atoms=2, loss="poisson", **AT_ONCE), X, count
    wide = table(300, 3)
    noise = np.random.default_rng(0).normal(size=300) * np.where(wide["colour"] == "red", 8.0, 0.1)
    several = {"basis": [tree, net], "cv": 3, "max_iter": 20, "random_state": 0}
    yield "gce_scaled", gce.GCERegressor(**several), wide, noise
    yield "gce_metrics", gce.GCEClassifier(basis=mixed, class_weight="balanced", **short), X, label
    yield "gce_amounts_base", gce.GCERegressor(basis=tree, loss="huber", **GREEDY), X, two
    ranks = pd.Categorical(label, categories=sorted(set(label), reverse=True), ordered=True)
    yield "gce_ranks", gce.GCEClassifier(basis=tree, loss="ordinal", **GREEDY), X, ranks
    yield "gce_range", gce.GCERegressor(basis=tree, clip_predictions="range", **GREEDY), X, number
    yield "gce_of_groups", gce.GCERegressor(basis=tree, **GREEDY), X, number


def also_given(name, X):
    """What a model of this name is fitted with beside rows and targets."""
    if name.endswith("_of_groups"):
        return {"groups": np.arange(len(X)) % 7}
    return {"base_score": np.log(1.0 + np.arange(len(X)) % 3)} if name.endswith("_base") else {}


def families(X, number, label):
    """Every class of trees with all of its parameters, several classes in each form of ``basis``."""
    net = Neural(**NET)
    tree = Tree(
        max_leaf_nodes=4,
        max_depth=3,
        min_samples_leaf=3,
        l2_regularization=0.5,
        max_features=0.75,
        subsample=0.8,
        max_bins=16,
        learning_rate=0.3,
    )
    symmetric = SymmetricTree(max_depth=2, min_samples_leaf=2, learning_rate=0.2)
    forest = Forest(n_estimators=2, max_features=0.5, min_samples_leaf=5, max_bins=16)
    sign = SignTree(max_leaf_nodes=3, max_depth=2, min_samples_leaf=4)
    boosting = Boosting(learning_rate=0.3)
    short = {**GREEDY, "max_iter": 3}
    yield "gce_families", gce.GCERegressor(basis=[tree, symmetric, forest], **short), X, number
    named = {"deep": tree, "flat": symmetric, "net": net}
    yield "gce_families_dict", gce.GCEClassifier(basis=named, **short), X, label
    yield "gce_families_boosting", gce.GCEClassifier(basis=[tree, symmetric], algorithm=boosting, **short), X, label
    two = np.column_stack([number, -number])
    yield "gce_families_outputs", gce.GCERegressor(basis=["tree", net], **short), X, two
    fit_anywhere = {"basis": [tree, net], "cv": None, "validation_fraction": None, "max_iter": 3, "random_state": 0}
    yield "gce_families_in_sample", gce.GCERegressor(**fit_anywhere), X, number
    nets = [net, Neuron(max_epochs=15)]
    yield "gce_families_monotone", gce.GCERegressor(basis=nets, monotonic_cst={"size": 1}, **short), X, number
    yield "gce_boosting", gce.GCERegressor(basis=tree, algorithm=boosting, **short), X, number
    yield "gce_symmetric", gce.GCEClassifier(basis=symmetric, **short), X, label
    yield "gce_sign_tree", gce.GCERegressor(basis=sign, algorithm="frank-wolfe", **short), X, number
    yield "gce_union", gce.GCERegressor(basis=Union([tree, net], choose="risk"), **short), X, number
    yield "gce_sparse", gce.GCERegressor(basis=[tree, net], **short), X, number
    yield "gce_array", gce.GCEClassifier(basis=tree, categorical_features=[2, 3], **short), X, label


def settings(X, number, label):
    """Algorithms, losses, validation and limits other than the usual ones."""
    net, tree = Neural(**NET), Tree(max_leaf_nodes=3, min_samples_leaf=3)
    many = {"basis": tree, "cv": 2, "random_state": 0, "max_iter": 12}
    yield "gce_pairwise", gce.GCERegressor(algorithm="pairwise", **many), X, number
    yield "gce_away", gce.GCEClassifier(algorithm="away", **many), X, label == "owl"
    yield "gce_blended", gce.GCERegressor(algorithm=Blended(0.7), **many), X, number
    yield "gce_nonlinear", gce.GCERegressor(basis=net, algorithm="nonlinear", **GREEDY), X, number
    yield "gce_quantile", gce.GCERegressor(basis=[tree, net], loss=Quantile(0.3), **GREEDY), X, number
    yield "gce_power", gce.GCERegressor(basis=net, loss=Power(1.5), bound=2.0, offset=0.0, **GREEDY), X, number
    yield "gce_huber", gce.GCERegressor(basis=tree, loss=PseudoHuber(0.5), line_search="brent", **GREEDY), X, number
    monotone = {"age": 1, "size": -1}
    yield "gce_monotone", gce.GCERegressor(basis=net, monotonic_cst=monotone, **GREEDY), X, number
    yield "gce_monotone_two", gce.GCEClassifier(basis=net, monotonic_cst=monotone, **GREEDY), X, label == "owl"
    held_out = {"basis": net, "cv": None, "validation_fraction": 0.25, "scale": "each", "clip": None, "random_state": 0}
    yield "gce_held_out", gce.GCERegressor(max_atoms=3, **held_out), X, number
    yield "gce_in_sample", gce.GCERegressor(**{**held_out, "validation_fraction": None}, max_iter=3), X, number
    codes = np.array([7, -2, 30])[np.unique(label, return_inverse=True)[1]]
    weights = {7: 1.0, -2: 2.0, 30: 0.5}
    yield "gce_codes", gce.GCEClassifier(basis=net, temperature=1.5, class_weight=weights, **GREEDY), X, codes


def trained_at_once(X, number, label):
    """Networks and convex combinations of them whose weights are trained together."""
    two = np.column_stack([number, -number])
    softmax = {"n_atoms": 3, "coefficients": "softmax", **AT_ONCE}
    yield "ngce_softmax", gce.NGCEClassifier(cv=2, **softmax), X, label
    yield "ngce_softmax_two", gce.NGCERegressor(basis="neuron", **softmax), X, two
    yield "ngce_classifier_two", gce.NGCEClassifier(n_atoms=2, batch_size=20, **AT_ONCE), X, label == "owl"
    yield "ngce_monotone", gce.NGCERegressor(n_atoms=2, monotonic_cst={"age": 1}, **AT_ONCE), X, number
    yield "nn_regressor", gce.NNRegressor(**AT_ONCE), X, two


def edits(fitted):
    """A name and a model that was edited or fitted further, from fitted ones by their names."""
    X = table(60, 0)
    number, label = targets(X)
    other = table(40, 2)
    further = {"warm_start": True, "max_atoms": 5, "max_iter": 5}
    yield "gce_warm_start", deepcopy(fitted["gce_regressor"]).set_params(**further).fit(X, number)
    yield "gce_warm_start_families", deepcopy(fitted["gce_families"]).set_params(**further).fit(X, number)
    yield "gce_pruned", fitted["gce_regressor"].prune(3, X=X, y=number)
    yield "gce_pruned_alike", fitted["gce_families"].prune(3, X=X)
    yield "gce_pruned_families", fitted["gce_families_dict"].prune(4, X=X, y=label)
    yield "gce_reweighted", fitted["gce_regressor"].reweight(other, targets(other)[0])
    yield "gce_reweighted_families", fitted["gce_mixed"].reweight(other, targets(other)[1] == "owl")
    some = fitted["gce_classifier"]
    yield "gce_removed", some.remove(some.atom_names_[-1], X, label)
    some = fitted["gce_families"]
    own = [name for name in some.atom_names_ if not name.endswith(":0")]
    yield "gce_removed_families", some.remove([own[1], own[-1]], X, number)
    yield "gce_removed_two", fitted["gce_trees"].remove("0:1", X, np.column_stack([number, -number]))
    yield "ngce_pruned", fitted["ngce_softmax"].prune(2, X=X, y=label)


def edits_of_version_7(fitted):
    """The same of models that version 7 added."""
    X = table(60, 0)
    yield "survival_pruned", fitted["survival_cox"].prune(3, X=X)
    yield "gce_labels_pruned", fitted["gce_labels"].prune(3, X=X)
    yield "gce_scaled_pruned", fitted["gce_scaled"].prune(3, X=table(300, 3))


def answers(model, rows):
    """Predictions of a model: probabilities of a classifier."""
    return (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(rows)


def learned(model, rows):
    """What else a file must bring back: weights, rounds and what belongs to them, as lists of numbers."""
    said = {}
    if hasattr(model, "atom_names_"):
        said |= {"names": model.atom_names_, "weights": np.asarray(model.weights_).ravel().tolist()}
    if len(getattr(model, "residuals_", ())) and model.loss_.outputs_per_target == 1:
        said["interval"] = np.asarray(model.predict_interval(rows)).ravel().tolist()
    if hasattr(model, "event_times_"):
        said["survival"] = np.asarray(model.predict_survival_function(rows)).ravel().tolist()
    if getattr(model.result_, "importances", None) is not None:
        said["importances"] = model.feature_importances_.tolist()
        # of trees by the training weight in their leaves
        said["shapley"] = np.abs(model.shap_values(rows).values).sum(axis=0).ravel().tolist()
    if hasattr(model, "history_"):
        said["risk"] = [entry["risk"] for entry in model.history_]
        stages = getattr(model, "staged_predict_proba", getattr(model, "staged_predict", None))
        if stages is not None and model.result_.has_stages:
            said["staged"] = [float(np.abs(stage).sum()) for stage in stages(rows)]
    if hasattr(model, "gap_"):
        said["gap"] = model.gap_
    return said


def resumable(name):
    """Whether a file keeps rounds: since version 4 some do, and before all did."""
    few = {"gce_regressor", "gce_trees", "gce_forest", "gce_boosting", "gce_mixed", "gce_union", "gce_sparse"}
    return name in few or name.startswith(("gce_families", "gce_warm_start"))


def missing():
    """A name and a model for each file of this version that is not there yet."""
    fitted = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model, X, y in (*models(), *of_version_6(), *of_version_7()):
            path = FOLDER / f"v{VERSION}_{name}.safetensors"
            given = as_given(X, name)
            fitted[name] = gce.load(path) if path.exists() else model.fit(given, y, **also_given(name, X))
            yield name, fitted[name], path
        for name, model in (*edits(fitted), *edits_of_version_7(fitted)):
            yield name, model, FOLDER / f"v{VERSION}_{name}.safetensors"


def main():
    FOLDER.mkdir(exist_ok=True)
    listed = FOLDER / f"v{VERSION}.json"
    rows = table(8, 1)
    begun = {"rows": rows.astype(object).where(rows.notna(), None).to_dict("list"), "scores": {}}
    expected = {"learned": {}, **(json.loads(listed.read_text()) if listed.exists() else begun)}
    for name, model, path in missing():
        if not path.exists():
            model.save(path, resumable=resumable(name))
            expected["scores"][name] = answers(model, as_given(rows, name)).tolist()
        expected["learned"].setdefault(name, learned(gce.load(path), as_given(rows, name)))
    listed.write_text(json.dumps(expected, indent=None, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
