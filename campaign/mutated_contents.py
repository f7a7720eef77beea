"""Contents of a model file that no fit leaves, under a checksum that is right: it can be computed by anybody."""

import torch

from gce.bases import TreeAtoms

NAN, INF = float("nan"), float("inf")


def put(*where, value):
    def edit(meta, tensors):
        holder = meta
        for key in where[:-1]:
            holder = holder[key]
        holder[where[-1]] = value

    return edit


def tensor(name, change):
    def edit(meta, tensors):
        tensors[name] = change(tensors[name].clone())

    return edit


def filled(value, *index):
    def change(t):
        # integers may be stored in any width
        t = t if t.is_floating_point() or (t.dtype == torch.uint8 and value in range(256)) else t.long()
        t[index or (0,) * t.ndim] = value
        return t

    return change


def other_precision(t):
    return t.float() if t.dtype == torch.float64 else t.double()


def without_tensor(name):
    return lambda meta, tensors: tensors.pop(name)


def without(*where):
    def edit(meta, tensors):
        holder = meta
        for key in where[:-1]:
            holder = holder[key]
        del holder[where[-1]]

    return edit


KFOLD = {"object": "KFold", "parameters": {}}
NEURAL = {"object": "Neural", "parameters": {}}
WRONG = {"object": "Neural", "parameters": {"hidden": -3}}
NET, STACK = ("families", "0", "course", "atoms", "0"), "families.0.course.atoms.0"
EVERY = [
    put("content", value="round"),
    put("opaque", value={"cv": ["x"]}),
    put("written", value={"time": "now", "versions": {"gce": 1}}),
    without("written"),
    without("written", "time"),
    put("written", "time", value=5),
    *(put("bases", value=value) for value in (5, None, [], "tree", {"x": 5}, {"x": None}, {"x": {}})),
    *(put("bases", value={"x": value}) for value in (KFOLD, WRONG, {"object": "os.system", "parameters": {}})),
    put("estimator", value="BaseEstimator"),
    put("estimator", value="gce.GCERegressor"),
    put("estimator", value=["GCERegressor"]),
    put("parameters", value=[]),
    put("parameters", "__class__", value="x"),
    put("parameters", "n_jobs", value="many"),
    put("parameters", "n_jobs", value=True),
    put("parameters", "n_jobs", value=0),
    put("parameters", "cv", value={"object": "os.system", "parameters": {}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"n_splits": -1}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"evil": 1}}),
    put("parameters", "cv", value={"object": "KFold", "parameters": {"n_splits": {"tuple": [2]}}}),
    put("parameters", "cv", value={"array": [[1, 2], [3]], "dtype": "float64"}),
    put("parameters", "cv", value={"array": [1], "dtype": "object"}),
    put("parameters", "cv", value={"float": "1e5"}),
    put("parameters", "cv", value={"dict": [[[1], 2]]}),
    put("parameters", "cv", value={"weird": 1}),
    put("parameters", "cv", value={"__reduce__": ["os.system", ["true"]]}),
    put("fitted", value=5),
    put("fitted", "predict", value={}),
    put("fitted", "__class__", value={"value": 1}),
    put("fitted", "n_features_in_", value={"value": 99}),
    put("fitted", "n_features_in_", value={"value": 3.0}),
    put("fitted", "_seed", value={"value": -1}),
    put("fitted", "loss_", value={"value": {"object": "KFold", "parameters": {}}}),
    put("fitted", "loss_", value={"value": {"object": "Power", "parameters": {"q": "x"}}}),
    put("fitted", "loss_", value={"value": {"object": "Power", "parameters": {"q": 0.5}}}),
    put("fitted", "loss_", value={"value": {"object": "__import__", "parameters": {}}}),
    put("fitted", "loss_", value={"value": "squared_error"}),
    put("fitted", "table_", value={}),
    put("fitted", "table_", value={"state": None}),
    put("fitted", "table_", value={"state": {"columns": 3, "clip": 4.0}}),
    *(put("fitted", "table_", "state", "clip", value=value) for value in (0, -1, "x")),
    *(put("fitted", "table_", "state", "columns", 1, "name", value=value) for value in (5, None, ["x"])),
    *(put("fitted", "table_", "state", "columns", 1, "kind", value=value) for value in ("category", "date", 3)),
    *(put("fitted", "table_", "state", "columns", 1, "levels", value=value) for value in ([[]], 3, "ab", ["a", "a"])),
    without("fitted", "table_", "state", "columns", 0),
    *(tensor("fitted.table_.mean", change) for change in (filled(NAN), lambda t: t[:-1])),
    *(tensor("fitted.table_.mean", change) for change in (torch.Tensor.float, torch.Tensor.long)),
    *(tensor("fitted.table_.scale", filled(value)) for value in (NAN, 0.0, -1.0, INF)),
    tensor("fitted.table_.numbers", filled(2)),
    without_tensor("fitted.table_.numbers"),
    *(without("fitted", name) for name in ("n_features_in_", "table_", "loss_", "offset_", "bound_", "_seed")),
    *(without_tensor(f"fitted.{name}.array") for name in ("offset_", "bound_")),
    *(tensor("fitted.offset_.array", change) for change in (filled(NAN), filled(INF), torch.Tensor.float)),
    *(tensor("fitted.offset_.array", change) for change in (lambda t: t[None], lambda t: t[:0], lambda t: t.repeat(2))),
    *(tensor("fitted.bound_.array", change) for change in (filled(NAN), filled(0.0), filled(-1.0))),
]
CLASSES = [
    put("estimator", value="GCERegressor"),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b", "b"]}),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b"]}),
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b", 3]}),
    put("fitted", "classes_", value={"dtype": "<U99999", "labels": [str(i) for i in range(10_000)]}),
    put("fitted", "classes_", value={"dtype": "datetime64[s]", "labels": ["a", "b", "c"]}),
    put("fitted", "classes_", value={"dtype": "object", "labels": [["a"], ["b"], ["c"]]}),
    put("fitted", "classes_", value={"dtype": "V8", "labels": [1, 2, 3]}),
    put("fitted", "classes_", value={"dtype": "int8", "labels": [1, 2, 300]}),
    put("fitted", "classes_", value={"dtype": "object", "labels": "abc"}),
    put("fitted", "_one_dimensional", value={"value": True}),
    without("fitted", "classes_"),
    without("fitted", "temperature_"),
    *(put("fitted", "temperature_", value={"value": value}) for value in (0, -1, "hot", True)),
]
NUMBERS = [
    put("fitted", "classes_", value={"dtype": "<U1", "labels": ["a", "b"]}),
    put("estimator", value="NGCEClassifier"),
    put("estimator", value="NNClassifier"),
    without("fitted", "residuals_"),
    put("fitted", "_one_dimensional", value={"value": True}),
    put("fitted", "_one_dimensional", value={"value": 1}),
    *(tensor("fitted.residuals_.array", change) for change in (filled(NAN), filled(1e9), lambda t: t[:, :1])),
]


def zeros_without_end(meta, tensors):
    """A stack that takes no bytes, and a round that asks for all of it."""
    meta["families"]["0"]["course"]["atoms"]["kinds"].append("zero")
    meta["families"]["0"]["course"]["atoms"]["1"] = {"count": 2**31}
    tensors["families.0.course.added"] = tensors["families.0.course.added"].clone()
    tensors["families.0.course.added"][-1] = torch.tensor([1, 2**31])


def weights(change):
    """All weights of a course, or those that its rounds moved."""

    def edit(meta, tensors):
        (name,) = {"families.0.course.path.weights", "families.0.course.path.moved"} & tensors.keys()
        tensors[name] = change(tensors[name].clone())

    return edit


def bases(*values):
    """Edits of what a file says of the classes of models of its families."""
    return [put("bases", value=value) for value in values]


def grove(name, *changes):
    """Edits of one tensor of a fit's trees."""
    return [tensor(f"{STACK}.grove.{name}", change) for change in changes]


FIT = [
    without("families"),
    *bases({"family": NEURAL}, {"networks": NEURAL}, {"neural": NEURAL, "other": NEURAL}),
    *(put("families", "families", value=value) for value in ([], ["a", "b"], [1], "neural")),
    *(tensor("families.shares", change) for change in (filled(-0.1), filled(0.5), filled(2.0), filled(NAN))),
    *(tensor("families.shares", change) for change in (lambda t: t[:0], lambda t: t.repeat(2), torch.Tensor.float)),
    without_tensor("families.shares"),
    put("families", "0", "together", value=1),
    zeros_without_end,
    put("families", "0", "course", "atoms", "kinds", value=["networks"] * 1001),
    *(put("families", "0", "members", value=value) for value in (10**9, 3, 1, 0, -1, "2")),
    *(put("families", "0", "course", "rounds", value=value) for value in (10**9, 1, 0, 2.0)),
    put("families", "0", "roomy", value=1),
    *(tensor("families.0.bound", change) for change in (filled(1e-9), filled(0.0), filled(NAN), lambda t: t[:0])),
    without("families", "0", "course", "path"),
    *(put("families", "0", "course", "first", value=value) for value in (2, 0)),
    put("families", "0", "course", "columns", value=["risk", "__class__"]),
    put("families", "0", "course", "columns", value=[]),
    put("families", "0", "course", "columns", value={"risk": 1}),
    put("families", "0", "course", "atoms", value={}),
    *(
        put("families", "0", "course", "atoms", "kinds", value=value)
        for value in ([], ["zero"], ["os.system"], ["Networks"], 3)
    ),
    *(
        weights(change)
        for change in (
            lambda t: t * 2,
            lambda t: -t,
            filled(NAN),
            filled(INF),
            lambda t: t[:-1],
            lambda t: t.roll(1, 0),
        )
    ),
    *(tensor("families.0.course.added", filled(value, 1, 1)) for value in (10**12, -1, 0)),
    *(tensor("families.0.course.added", filled(value, 1, 0)) for value in (5, -1, -2)),
    *(tensor("families.0.course.place", filled(value, 0, 0)) for value in (99, -1, 2**62)),
    *(tensor("families.0.course.running", filled(value, 0, 0)) for value in (0, 2, 255)),
    tensor("families.0.course.running", filled(0, 1)),
    tensor("families.0.course.finished", filled(7, 0, 0)),
    tensor("families.0.course.calls", filled(-5, 0, 0)),
    tensor("families.0.course.calls", lambda t: t.double()),
    *(tensor("families.0.course.promise", filled(value, 0, 0)) for value in (NAN, -1.0)),
    tensor("families.0.course.seconds", filled(NAN)),
    tensor("families.0.course.noted", filled(0)),
    tensor("families.0.course.columns.validation", lambda t: torch.full_like(t, NAN)),
    *(
        without_tensor(f"families.0.course.{name}")
        for name in ("running", "place", "added", "seconds", "noted", "columns.risk", "atoms.0.bound")
    ),
]
NETWORKS = [
    *(put(*NET, "architecture", value=value) for value in ("neuron", "TwoLayer", None)),
    *(put(*NET, "activation", value=value) for value in ("sigmoid", "__class__", 1)),
    put(*NET, "output", value="identity"),
    *(put(*NET, "hidden", value=value) for value in (10**9, 3, 0, 2.0)),
    *(put(*NET, "models", value=value) for value in (10**9, 0, "1")),
    put(*NET, "precision", value="float16"),
    put(*NET, "gain", value="big"),
    *(tensor(f"{STACK}.p0", change) for change in (filled(NAN), filled(INF), lambda t: t[:-1], other_precision)),
    tensor(f"{STACK}.p2", lambda t: t[:-1]),
    tensor(f"{STACK}.p3", lambda t: t.long()),
    *(tensor(f"{STACK}.bound", change) for change in (filled(1e9), filled(0.0), filled(NAN), lambda t: t[:0])),
    without_tensor(f"{STACK}.p1"),
]
MOVES = [
    *(put("families", "0", "course", "path", "blocks", value=value) for value in (0, 2, 2**31, "1")),
    *(
        tensor("families.0.course.path.counts", change)
        for change in (filled(-1), filled(3), filled(2**62), lambda t: t[:-1])
    ),
    *(
        tensor("families.0.course.path.places", change)
        for change in (filled(-1), filled(99), filled(2**62), lambda t: t[:-1])
    ),
    *(without_tensor(f"families.0.course.path.{name}") for name in ("counts", "places", "moved")),
]
TREES = [
    *grove("size", filled(0), filled(-1), filled(2**62), lambda t: t[:-1], lambda t: t[:0], lambda t: t.double()),
    *grove("splits", filled(0), lambda t: 255 - t, lambda t: t[:-1], lambda t: t.roll(1), lambda t: t.long()),
    *grove("feature", filled(3), filled(-1), filled(2**31 - 1), lambda t: t.double(), lambda t: t[:-1]),
    *grove("table", filled(NAN), filled(INF), lambda t: t.float(), lambda t: t[:1]),
    *grove("cut", filled(-1), filled(10**6), filled(2**62), lambda t: t.double(), lambda t: t[:-1]),
    # its own child, its parent's, another tree's, far away
    *grove("left", filled(0), filled(-1), filled(2), filled(10**6), filled(2**31 - 1), lambda t: t.roll(1)),
    *grove("value", filled(1.5), filled(-1.5), filled(NAN), lambda t: t.float(), lambda t: t[:-1], lambda t: t[:, 0]),
    *(without_tensor(f"{STACK}.grove.{name}") for name in ("size", "splits", "feature", "cut", "left", "value")),
    tensor(f"{STACK}.bound", filled(1e9)),
    put("families", "0", "course", "atoms", "kinds", value=["forests"]),
    put("families", "0", "roomy", value=False),
    tensor("fitted.bound_.array", lambda t: 2 * t),
]
FOREST = "families.1.course.atoms.0"
MIXED = [
    without("families"),
    *bases({"tree": NEURAL, "forest": NEURAL, "neural": NEURAL}, {"Tree": NEURAL}, {"tree": WRONG}),
    *(put("families", "families", value=value) for value in ([], ["tree"], ["tree"] * 2, ["a", "b", "c"], ["tree", 1])),
    put("families", "families", value=[str(i) for i in range(2000)]),
    *(put("families", "columns", value=value) for value in ([], ["risk", "__class__"], ["validation"], {"risk": 1})),
    *(put("families", "seconds", value=value) for value in (-1.0, "0", None)),
    *(tensor("families.shares", change) for change in (filled(-0.1), filled(2.0), filled(NAN), lambda t: t[:1])),
    tensor("families.columns.risk", lambda t: t[:1]),
    without("families", "1"),
    put("families", "1", "members", value=3),
    tensor("families.0.bound", filled(1e-3)),
    *(put("families", "1", "course", "atoms", "0", "trees", value=value) for value in (0, 5, 2**31, True)),
    *(
        put("families", "1", "course", "atoms", "0", "link", value=value)
        for value in ("logit", "identity", "exp", None)
    ),
    *(
        tensor(f"{FOREST}.grove.value", change)
        for change in (filled(-0.5), filled(1.5), filled(NAN), torch.Tensor.double)
    ),
    *(tensor(f"{FOREST}.grove.left", change) for change in (filled(0), filled(2), filled(10**6))),
    tensor(f"{FOREST}.grove.feature", filled(3)),
    *(tensor(f"{FOREST}.offset", change) for change in (filled(NAN), filled(1e4), lambda t: t[:2])),
    *(tensor(f"{FOREST}.bound", change) for change in (filled(1e9), filled(0.0), filled(-1.0))),
    *(
        without_tensor(name)
        for name in ("families.shares", "families.columns.risk", f"{FOREST}.offset", f"{FOREST}.grove.left")
    ),
]
ENSEMBLE = [
    without("ensemble"),
    put("ensemble", "atoms", "kinds", value=["networks", "networks"]),
    put("ensemble", "atoms", "0", "hidden", value=10**9),
    put("ensemble", "atoms", "0", "activation", value=None),
    *(tensor("ensemble.weights", change) for change in (lambda t: t * 2, filled(-1.0), filled(NAN), lambda t: t[:0])),
    *(tensor("ensemble.weights", change) for change in (lambda t: t[:, None, None], lambda t: t.float())),
    *(
        tensor("ensemble.origin", change)
        for change in (filled(-1), filled(2**62), lambda t: t[:, :1], lambda t: t.double())
    ),
    tensor("ensemble.atoms.0.p0", filled(NAN)),
    tensor("ensemble.atoms.0.p0", lambda t: t[..., :-1]),
    *(without_tensor(name) for name in ("ensemble.weights", "ensemble.origin", "ensemble.atoms.0.p1")),
]
HISTORY = [
    without("history"),
    *bases({"networks": NEURAL}, {"neural": NEURAL}),
    *(tensor("history.best", filled(value)) for value in (0, -1, 3, 2**62)),
    *(tensor("history.best", change) for change in (lambda t: t[:0], lambda t: t.repeat(2), torch.Tensor.double)),
    put("history", "columns", value=["__class__"]),
    put("history", "columns", value=["validation"]),
    tensor("history.columns.risk", lambda t: t[:, 0]),
    tensor("history.columns.risk", lambda t: t[:0]),
    tensor("history.seconds", filled(NAN)),
    without_tensor("history.seconds"),
]
SUMMARY = [
    without("summary"),
    without("ensemble"),
    *(put("summary", "families", value=value) for value in ([], ["a", "b", "c"], [1], "tree")),
    *(tensor("summary.shares", change) for change in (filled(-0.1), filled(2.0), filled(NAN), lambda t: t[:0])),
    *(tensor("summary.shares", change) for change in (lambda t: t.repeat(2), torch.Tensor.float)),
    *(put("summary", "histories", "members", value=value) for value in (10**9, 3, 1, 0, -1, "2")),
    *(put("summary", "histories", "0", "rounds", value=value) for value in (10**9, 1, 0, 2.0)),
    *(put("summary", "histories", "0", "columns", value=value) for value in (["risk", "__class__"], {"risk": 1})),
    *(tensor("summary.histories.0.best", filled(value)) for value in (0, -1, 99, 2**62)),
    *(tensor("summary.histories.0.best", change) for change in (lambda t: t[:0], lambda t: t.repeat(2))),
    *(tensor("summary.histories.0.running", filled(value, 0, 0)) for value in (2, 255)),
    *(tensor("summary.histories.0.noted", filled(0, place)) for place in (0, -1)),
    tensor("summary.histories.0.seconds", filled(NAN)),
    *(without_tensor(f"summary.histories.0.{name}") for name in ("best", "running", "noted", "seconds")),
    *(tensor("ensemble.weights", change) for change in (lambda t: t * 2, filled(-1.0), filled(NAN), lambda t: t[:0])),
    *(tensor("ensemble.origin", change) for change in (filled(-1), filled(2**62), lambda t: t[:, :1])),
]
EDITED = [
    without("fitted", "gap_"),
    without("fitted", "_joint"),
    put("fitted", "_joint", "value", value=1),
    *(put("fitted", "gap_", "value", value=value) for value in (-1.0, "0", True, None)),
    put("estimator", value="NNRegressor"),
]


def hostile(model):
    """What must be refused of a model's file."""
    kind = [*EVERY, *(CLASSES if hasattr(model, "classes_") else NUMBERS)]
    result = model.result_
    if result.families and result.unit == "round" and not result.has_stages:
        return kind + SUMMARY
    if len(result.families) > 1:
        return kind + MIXED
    if result.has_stages:
        trees = isinstance(result.families[0].atoms[0], TreeAtoms)
        return kind + FIT + (MOVES + TREES if trees else NETWORKS)
    return kind + ENSEMBLE + (EDITED if result.edited else HISTORY)
