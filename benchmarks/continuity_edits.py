"""The cases of continuity.py in which fitted models are used: edited, stacked, written, explained and read again."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import scipy.sparse as sp
import torch
from continuity_cases import ALL, CLASSES, DENSE, FEW, LOSSES, ONE, WAYS, Cases, fit, greedy, member, stack
from sklearn.model_selection import cross_val_predict

import gce

if TYPE_CHECKING:
    from continuity import Rows

FILES = Path(gce.__file__).resolve().parents[2] / "tests" / "files"

PATH = {name: name for name in ("loss", "gap", "names", "weights")}
EXPLAINED = {name: name for name in ("names", "weights", "own_loss", "loss_without", "alignment", "loss", "gap")}


def edits() -> Cases:
    """What can be done to a fitted ensemble."""
    starts = {"families": (ALL, greedy), "networks": (FEW, WAYS["GCE"]), "at once": (FEW, WAYS["NGCE"])}
    done: dict[str, Callable[[Any, Rows], Any]] = {
        "remove": lambda m, r: m.remove([name for name in m.atom_names_ if not name.endswith(":0")][:2], r.X, r.y),
        "add": lambda m, r: m.add("guest", WAYS["NN"](r), r.X, r.y),
        "prune": lambda m, r: m.prune(4, X=r.X, y=r.y),
        "prune by tol": lambda m, r: m.prune(tol=0.05, X=r.X, y=r.y),
        "prune, path": lambda m, r: path_of(m.pruning_path(r.X, r.y)),
        "imitate": lambda m, r: m.prune(4, X=r.X),
        "reweight": lambda m, r: m.reweight(r.X_new, r.y_new),
        "reweight, prune": lambda m, r: m.reweight(r.X, r.y).prune(5, X=r.X, y=r.y),
        "explain": lambda m, r: explained(m.explain(r.X, r.y, by="atoms")),
        "save": saved,
        "save an edit": lambda m, r: saved(m.prune(4, X=r.X, y=r.y), r),
        "pickle": lambda m, r: pickle.loads(pickle.dumps(m)),
        "ONNX": graph,
    }
    return {
        f"edit {name}, {start}": (sets, lambda r, edit=edit, first=first: edit(first(r), r))
        for name, edit in done.items()
        for start, (sets, first) in starts.items()
    }


def stacks() -> Cases:
    """Stacks of models, and what can be done to them."""
    done: dict[str, Callable[[Any, Rows], Any]] = {
        "remove": lambda m, r: m.remove(heaviest(m)),
        "add": lambda m, r: m.add("one more", member(r, "auto"), r.X, r.y),
        "prune": lambda m, r: m.prune(2),
        "prune by tol": lambda m, r: m.prune(tol=0.05),
        "prune, path": lambda m, r: path_of(m.pruning_path()),
        "reweight": lambda m, r: m.reweight(r.X_new, r.y_new),
        "without_unused": lambda m, r: m.without_unused(),
        "without_cache, remove": lambda m, r: m.without_cache().remove(heaviest(m), r.X_new, r.y_new),
        "explain": lambda m, r: explained(m.explain()),
        "pickle": lambda m, r: pickle.loads(pickle.dumps(m)),
    }
    return {
        "stack": (ALL, stack),
        "stack, default folds": (FEW, partial(stack, cv=None)),
        "stack, fold_share": (DENSE, partial(stack, fold_weight=0.5)),
        "stack, prefit": (DENSE, partial(stack, fitted=True)),
        "stack, weights": ("frame", partial(stack, given=lambda r: {"sample_weight": np.arange(len(r.y)) % 3})),
        "stack, groups": (FEW, partial(stack, given=lambda r: {"groups": np.arange(len(r.y)) % 20})),
        "stack, probabilities": (CLASSES, partial(stack, mix="probabilities")),
        "stack, Brier": (CLASSES, partial(stack, mix="probabilities", loss="brier")),
        **{f"stack, loss {loss}": ("diabetes several", partial(stack, loss=loss)) for loss in LOSSES},
        "selection": (ALL, partial(stack, kind="GreedySelection", max_iter=20)),
        "selection, bags": (DENSE, partial(stack, kind="GreedySelection", max_iter=10, n_bags=4, bag_fraction=0.6)),
        "selection, probabilities": (CLASSES, partial(stack, kind="GreedySelection", mix="probabilities")),
        **{f"stack edit {name}": (DENSE, lambda r, edit=edit: edit(stack(r), r)) for name, edit in done.items()},
    }


def explained(why: Any) -> dict[str, Any]:
    return {what: getattr(why, name) for what, name in EXPLAINED.items()}


def heaviest(stack: Any) -> str:
    """The member of the greatest weight."""
    return stack.member_names_[int(stack.weights_.argmax())]


def path_of(path: Any) -> dict[str, Any]:
    """Every size that a model could be pruned to."""
    steps = ((step, what, name) for step in path.steps for what, name in PATH.items())
    return {f"{step.size}.{what}": getattr(step, name) for step, what, name in steps}


def saved(model: Any, r: Rows) -> Any:
    """The model that comes back from a file."""
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.safetensors")
        return gce.load(Path(folder) / "model.safetensors")


def graph(model: Any, r: Rows) -> dict[str, Any]:
    """What the exported graph answers."""
    file, options, rows = io.BytesIO(), onnxruntime.SessionOptions(), r.X_new
    model.to_onnx(file)
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    if isinstance(rows, pd.DataFrame):
        text = {put.name for put in session.get_inputs() if "string" in put.type}
        feed = {name: rows[[name]].astype(object).fillna("" if name in text else np.nan) for name in rows}
        feed = {name: column.to_numpy(object if name in text else np.float64) for name, column in feed.items()}
    else:
        feed = {"X": rows.toarray() if sp.issparse(rows) else rows}
    return dict(zip((put.name for put in session.get_outputs()), session.run(None, feed), strict=True))


def contained(r: Rows, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """Rows in another container."""
    model = fit(replace(r, X=convert(r.X)), "GCE", cv=3, max_iter=5)
    return {"predict": model.predict(convert(r.X_new)), "weights": model.ensemble_.weights}


def commanded(r: Rows) -> dict[str, Any]:
    """The command line: a fit and its predictions."""
    with tempfile.TemporaryDirectory() as folder:
        train, new, model, answer = (Path(folder) / name for name in ("a.csv", "b.csv", "m.safetensors", "p.csv"))
        r.X.assign(target=r.y).to_csv(train, index=False)
        r.X_new.to_csv(new, index=False)
        learn = ["fit", train, "--target", "target", "--out", model, "--cv", "3", "--seed", "0", "--set", "max_iter=6"]
        for line in (learn, ["predict", model, new, "--interval", "0.8", "--out", answer]):
            subprocess.run([sys.executable, "-m", "gce", *map(str, line)], check=True, capture_output=True)
        return pd.read_csv(answer, float_precision="round_trip").to_dict("list")


def numbers_of(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The numbers in a dict of dicts."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= numbers_of(value, f"{prefix}{key}.")
        elif isinstance(value, int | float | np.ndarray):
            found[prefix + key] = value
    return found


def bounded(r: Rows, basis: Any) -> dict[str, Any]:
    """What theory says of a model."""
    given = {"X_held_out": r.X_new, "y_held_out": r.y_new, "draws": 4, "D": 1.0, "random_state": 0}
    return numbers_of(greedy(r, basis=basis).bound_report(r.X, r.y, **given).to_dict())


def theory(r: Rows) -> dict[str, Any]:
    """Functions of the theory, at some values."""
    known, at = gce.theory, {"lipschitz": 2.0, "bound": 1.5, "delta": 0.05, "p": 7.0, "D": 1.0}
    constants = (known.stated_constant, known.appendix_constant, known.one_sided_constant)
    capacities = (known.vc_lower_bound, known.network_parameters, known.relu_networks, known.tanh_networks)
    complexity = known.rademacher(
        gce.bases.Neural(max_epochs=20), torch.from_numpy(r.X), bound=1.0, draws=4, random_state=0
    )
    return {
        "constants": [constant(**at) for constant in constants],
        "capacities": [capacity(20, 10) for capacity in capacities],
        "rates": [known.hoeffding(50, 2.0, 0.1), known.mcdiarmid(9, 0.2, 0.1), known.fast_rate(99, tail=2.0, xi=0.5)],
        "rademacher": [complexity.mean, complexity.standard_error],
    }


def kept(path: Path) -> dict[str, Any]:
    """A model file of an earlier version, asked about the rows that are kept beside it."""
    rows = pd.DataFrame(json.loads((FILES / f"{path.name[:2]}.json").read_text())["rows"])
    model = gce.load(path)
    found = {"weights": model.ensemble_.weights, "predict": model.predict(rows), "rounds": model.n_iter_}
    return found | ({"predict_proba": model.predict_proba(rows)} if hasattr(model, "predict_proba") else {})


def the_rest() -> Cases:
    """Containers of rows, theory, the command line and files of earlier versions."""
    containers: dict[str, Callable[[Any], Any]] = {
        "float32": lambda X: X.astype(np.float32),
        "list": lambda X: X.tolist(),
        "tensor": torch.from_numpy,
        "Fortran": np.asfortranarray,
        "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
    }
    files = sorted(path for version in (1, 2) for path in FILES.glob(f"v{version}_*.safetensors"))
    return {
        **{f"rows as {name}": (ONE, lambda r, by=by: contained(r, by)) for name, by in containers.items()},
        **{f"bound_report {name}": (ONE, partial(bounded, basis=name)) for name in ("neural", "neuron")},
        "theory": ("diabetes", theory),
        "cross_val_predict": (ALL, lambda r: {"oof": cross_val_predict(member(r, "tree"), r.X, r.y, cv=3)}),
        "command line": ("frame", commanded),
        **{f"file {path.stem}": ("frame", lambda r, path=path: kept(path)) for path in files},
    }
