"""A model as an ONNX graph answers what the model answers: under onnxruntime, and in some cases another evaluator."""

import io
import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import gce
from gce.bases.base import Atoms, Zero
from gce.bases.neural.network import Networks, SingleNeuron, TwoLayer
from gce.frank_wolfe.ensemble import ConvexEnsemble
from gce.io.onnx.encoder import OUTPUTS
from gce.io.onnx.ensemble import raw_scores
from gce.io.onnx.graph import Graph, is_internal_name
from gce.losses import REGRESSION, Quantile, Quantiles, Squared
from helpers import in_domain
from mixed_tables import plain_rows

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) * [1, 10, 1e-3, 1e6] + [0, 1e4, 0, 0]
Y = X[:, 0] - np.sin(X[:, 1])
Y3 = np.column_stack([Y, 1e3 * X[:, 2], X[:, 0] ** 2])
TWO, THREE = np.where(Y > 0, "yes", "ñø"), np.digitize(Y, [-0.5, 0.5]) * 5 - 5
ROWS = np.concatenate([X, 1e3 * RNG.normal(size=(940, 4)) * X.std(0)])
TINY = {"basis": gce.bases.Neural(hidden=3, max_epochs=20), "max_atoms": 4, "cv": 2, "random_state": 0}
FLOATS = {**TINY, "basis": gce.bases.Neural(hidden=3, max_epochs=5, batch_size=20)}
APART = {**TINY, "basis": gce.bases.Neural(hidden=3, max_epochs=20, shared=False)}
TANH = {**TINY, "basis": gce.bases.Neural(hidden=3, max_epochs=20, activation="tanh", output="tanh")}
FOREST = {"basis": gce.bases.Forest(n_estimators=3), "cv": 2, "random_state": 0}
NEURON = {**TINY, "basis": "neuron"}
JOINT = {"hidden": 3, "max_epochs": 5, "random_state": 0}


def contents(model):
    file = io.BytesIO()
    model.to_onnx(file)
    return file.getvalue()


def session(model):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(contents(model), options, providers=["CPUExecutionProvider"])


def single(model):
    """Whether any atom is trained in single precision."""
    return any(p.dtype == torch.float32 for part in model.ensemble_.parts for p in part.buffers())


def assert_same(model, answers, rows):
    """Outputs of a graph are what the model says: to 1e-9 of the bound, 1e-5 where atoms are single."""
    close = 1e-5 if single(model) else 1e-9
    if hasattr(model, "classes_"):
        label, chances = answers
        assert label.dtype == {"O": object, "U": object, "b": bool, "f": float}.get(model.classes_.dtype.kind, np.int64)
        assert label.tolist() == model.predict(rows).tolist()
        np.testing.assert_allclose(chances, model.predict_proba(rows), rtol=0, atol=close)
        assert chances.dtype == np.float64
    else:
        (variable,) = answers
        wanted = model.predict(rows).reshape(len(rows), -1)
        unit = np.where(np.isinf(model.bound_), np.abs(wanted).max(0), model.bound_)
        np.testing.assert_allclose(variable / unit, wanted / unit, rtol=0, atol=close)
        assert variable.dtype == np.float64


CASES = {
    "default": (gce.GCERegressor(**TINY), Y),
    "outputs": (gce.GCERegressor(**TINY), Y3),
    "apart": (gce.GCERegressor(**APART), Y3),
    "tanh": (gce.GCERegressor(**TANH), Y3),
    "neuron": (gce.GCERegressor(**NEURON), Y),
    "neuron outputs": (gce.GCERegressor(**NEURON), Y3),
    "single": (gce.GCERegressor(**FLOATS), Y3),
    "no clip": (gce.GCERegressor(**TINY, clip=None), Y),
    "common": (gce.GCERegressor(**TINY, scale="common", clip=1.5), Y),
    "robust": (gce.GCERegressor(**TINY, scale="robust"), Y),
    "monotone": (gce.GCERegressor(**TINY, monotonic_cst=[1, 0, -1, 0]), Y),
    "bounds": (gce.GCERegressor(**TINY, bound=[9.0, 3e3, 50.0], offset=0.5), Y3),
    "quantile": (gce.GCERegressor(**TINY, loss=Quantile(0.9)), Y),
    "quantiles": (gce.GCERegressor(**TINY, loss=Quantiles([0.1, 0.5, 0.9])), Y),
    "counts by a forest": (gce.GCERegressor(**FOREST, loss="poisson"), in_domain("poisson", Y)),
    **{name: (gce.GCERegressor(**TINY, loss=name), in_domain(name, Y)) for name in REGRESSION},
    "two classes": (gce.GCEClassifier(**TINY), TWO),
    "three classes": (gce.GCEClassifier(**TINY), THREE),
    "classes apart": (gce.GCEClassifier(**APART), THREE),
    "single classes": (gce.GCEClassifier(**FLOATS), THREE),
    "neuron classes": (gce.GCEClassifier(**NEURON), TWO),
    "temperature": (gce.GCEClassifier(**TINY, temperature=3.0), THREE),
    "cold": (gce.GCEClassifier(**TINY, temperature=0.25), TWO),
    "booleans": (gce.GCEClassifier(**TINY), Y > 0),
    "floats": (gce.GCEClassifier(**TINY), np.where(Y > 0, 1.0, 2.0).astype(np.float32)),
    "bytes": (gce.GCEClassifier(**TINY), np.digitize(Y, [-0.5, 0.5]).astype(np.uint8)),
    "objects": (gce.GCEClassifier(**TINY), TWO.astype(object)),
    "joint": (gce.NGCERegressor(**JOINT, n_atoms=4), Y3),
    "joint neurons": (gce.NGCERegressor(**JOINT, n_atoms=4, basis="neuron", batch_size=20), Y3),
    "joint classes": (gce.NGCEClassifier(**JOINT, n_atoms=4, cv=2), THREE),
    "joint tanh": (gce.NGCEClassifier(**JOINT, n_atoms=4, output="tanh", batch_size=20), TWO),
    "plain": (gce.NNRegressor(**JOINT), Y),
    "plain members": (gce.NNRegressor(**JOINT, cv=3, activation="tanh"), Y3),
    "plain single": (gce.NNRegressor(**JOINT, batch_size=20), Y3),
    "plain classes": (gce.NNClassifier(**JOINT, cv=2), THREE),
    "plain single classes": (gce.NNClassifier(**JOINT, batch_size=20), TWO),
}


@pytest.mark.parametrize("name", CASES)
def test_the_graph_answers_as_the_model(name):
    model, y = CASES[name]
    run = session(model.fit(X, y)).run
    for rows in (ROWS[:1], ROWS[30:37], ROWS):
        assert_same(model, run(None, {"X": rows}), rows)
    assert all(len(answer) == 0 for answer in run(None, {"X": ROWS[:0]}))


@pytest.mark.parametrize("name", ["apart", "single", "neuron outputs", "plain members", "classes apart", "cold"])
def test_another_evaluator_agrees(name):
    from onnx.reference import ReferenceEvaluator

    model, y = CASES[name]
    model.fit(X, y)
    answers = ReferenceEvaluator(onnx.load_from_string(contents(model))).run(None, {"X": X[:7]})
    assert_same(model, answers, X[:7])


@pytest.mark.parametrize("name", ["default", "tanh", "neuron", "plain", "three classes"])
def test_nothing_stands_where_old_runtimes_would_join_it(name):
    # onnxruntime 1.16 joins these neighbours to operators that it does not have in float64
    model, y = CASES[name]
    graph = onnx.load_from_string(contents(model.fit(X, y))).graph
    made_by = {node.output[0]: node.op_type for node in graph.node}
    neighbours = {(made_by.get(given), node.op_type) for node in graph.node for given in node.input}
    assert not neighbours & {("Transpose", "MatMul"), ("Gemm", "Relu"), ("Gemm", "Tanh"), ("Gemm", "Sigmoid")}


@pytest.mark.parametrize("clip", [4.0, None])
def test_huge_values_and_gaps(clip):
    model = gce.GCEClassifier(**TINY, clip=clip).fit(X, TWO)
    rows = np.concatenate([X[:4] * 10.0**power for power in (-300, 15, 100, 290)])
    rows[::3, 1] = rows[5] = np.nan
    assert_same(model, session(model).run(None, {"X": rows}), rows)


def fitted(ensemble, y=Y):
    """A model with another ensemble."""
    model = gce.GCERegressor(**{**TINY, "max_atoms": 1}).fit(X, y)
    model._result = replace(model.result_, ensemble=ensemble)
    return model


def random_networks(rng, dtype, models, k, d, atoms=5):
    architecture = [TwoLayer(3, "relu", "hardtanh"), TwoLayer(2, "tanh", "tanh"), SingleNeuron()][rng.integers(3)]
    start = [architecture.start(d, k // models, torch.Generator().manual_seed(i), dtype) for i in range(atoms * models)]
    bound = torch.from_numpy(rng.uniform(0.5, 20, k))
    return Networks(architecture, [torch.stack(column) for column in zip(*start, strict=True)], bound, models)


@pytest.mark.parametrize("seed", range(12))
def test_ensembles_of_several_kinds(seed):
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    parts = [Zero(2, k)]
    for dtype in (torch.float64, torch.float32):
        parts += [random_networks(rng, dtype, models, k, d) for models in {1, k}]
    weights = rng.random((sum(map(len, parts)), k if seed % 2 else 1)) * (rng.random((sum(map(len, parts)), 1)) > 0.3)
    weights = torch.from_numpy(weights / weights.sum(0))
    nothing = torch.zeros(len(weights), 2, dtype=torch.int64)
    offset, bound = torch.from_numpy(rng.normal(size=k)), parts[-1].bound
    ensemble = ConvexEnsemble(parts, weights[:, 0] if weights.shape[1] == 1 else weights, nothing, offset, bound)
    graph = Graph()
    graph.output("raw", raw_scores(graph, ensemble, plain_rows(graph, d)), np.float64, k)
    run = runtime.InferenceSession(graph.model("0", {})).run
    rows = rng.normal(size=(40, d))
    np.testing.assert_allclose(run(None, {"X": rows})[0], ensemble(torch.from_numpy(rows)), rtol=0, atol=2e-5)


def networks(model):
    """How many networks of an ensemble carry weight."""
    (own,) = (i for i, part in enumerate(model.ensemble_.parts) if isinstance(part, Networks))
    first = sum(map(len, model.ensemble_.parts[:own]))
    return int((model.ensemble_.weights[first:][: len(model.ensemble_.parts[own])] > 0).sum())


def networks_written(model):
    """How many networks' second layers a graph holds."""
    graph = onnx.load_from_string(contents(model)).graph
    (product,) = (node for node in graph.node if node.op_type == "MatMul")
    return next(constant.dims[0] for constant in graph.initializer if constant.name == product.input[1])


def test_networks_without_weight_stay_out():
    model = gce.GCERegressor(**{**APART, "max_atoms": 8}).fit(X, Y3)
    before = networks(model)
    assert networks_written(model) == before
    weights = model.ensemble_.weights
    weights *= torch.from_numpy(RNG.random(weights.shape) > 0.5)
    weights[-1] = 0
    assert 0 < networks_written(model) == networks(model) < before
    assert_same(model, session(model).run(None, {"X": X}), X)


def test_the_zero_function_is_the_offset():
    zero = ConvexEnsemble(
        [Zero(2, 3)], torch.tensor([0.5, 0.5]).double(), torch.zeros(2, 2), torch.arange(3).double(), torch.ones(3)
    )
    model = fitted(zero, Y3)
    for rows in (X[:1], X):
        assert session(model).run(None, {"X": rows})[0].tolist() == [[0, 1, 2]] * len(rows)


@pytest.mark.parametrize("y", [TWO, THREE])
def test_ties_go_to_the_first_class(y):
    model = gce.GCEClassifier(**TINY).fit(X, y)
    k = len(model.offset_)
    one = torch.ones(1).double()
    zero = ConvexEnsemble([Zero(1, k)], one, torch.zeros(1, 2), torch.zeros(k).double(), torch.ones(k))
    model._result = replace(model.result_, ensemble=zero)
    assert (
        session(model).run(None, {"X": X[:2]})[0].tolist() == model.predict(X[:2]).tolist() == [model.classes_[0]] * 2
    )


# Tables.


def frame(n, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "town": rng.choice(["Köln", "Rom", "New York", "東"], n, p=[0.5, 0.3, 0.1, 0.1]),
            "member": rng.random(n) > 0.5,
            "floor": pd.Categorical(rng.integers(3, 7, n)),
            "zip": rng.choice([-1.0, 10.5, 1e9], n),
            "vip": rng.choice([True, False, None], n),
            "name": [f"n{i // 2}" for i in range(n)],
            "same": "same",
            "debt": rng.choice([-1.0, -2.0, 3.0], n),
        }
    )
    for column in ("age", "town", "floor", "zip", "debt"):
        table.loc[rng.random(n) < 0.2, column] = np.nan
    return table


def feeds(table, text):
    """A frame as the graph's inputs: text as it is, everything else as float64; a gap is "" or NaN."""
    return {
        name: table[name].astype(object).fillna("").to_numpy(dtype=object)[:, None]
        if name in text
        else table[name].to_numpy(dtype=np.float64, na_value=np.nan)[:, None]
        for name in table
    }


# The file.


def test_the_graph_says_what_it_is():
    model = onnx.load_from_string(contents(gce.GCEClassifier(**TINY).fit(X, TWO)))
    onnx.checker.check_model(model, full_check=True)
    assert (model.producer_name, model.producer_version, model.ir_version) == ("gce", gce.__version__, 8)
    assert {opset.domain: opset.version for opset in model.opset_import} == {"": 17, "ai.onnx.ml": 3}
    about = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert about == {"estimator": "GCEClassifier", "features": ["x0", "x1", "x2", "x3"], "classes": ["yes", "ñø"]}
    shapes = {out.name: out.type.tensor_type.shape.dim for out in model.graph.output}
    named = {name: [one.dim_param or one.dim_value for one in shape] for name, shape in shapes.items()}
    assert named == {"label": ["rows"], "probabilities": ["rows", 2]}


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    model = gce.GCERegressor(**TINY).fit(X, Y)
    for path in (tmp_path / "a.onnx", str(tmp_path / "b.onnx")):
        model.to_onnx(path)
    model.save(tmp_path / "m.safetensors")
    whole = contents(gce.load(tmp_path / "m.safetensors"))
    assert [(tmp_path / name).read_bytes() for name in ("a.onnx", "b.onnx")] == [whole, whole]

    def fail(self, target):
        raise OSError("the disk is full")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="full"):
        gce.GCERegressor(**TINY).fit(X, -Y).to_onnx(tmp_path / "a.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx", "m.safetensors"]


class Own(Atoms):
    """Atoms of a user's own."""

    def __len__(self):
        return 1


class Exponential(Squared):
    def predict(self, pred):
        return pred.exp()


class Renamed(Squared):
    """A loss of a user's own with the usual link."""


def refused(model, match):
    with pytest.raises(ValueError, match=match) as caught:
        contents(model)
    assert "joblib" in str(caught.value)


def test_what_is_not_ours_is_refused():
    functions = [lambda rows: 0 * rows[:, 0], lambda rows: np.tanh(rows[:, 0])]
    pool = gce.GCERegressor(basis=gce.bases.Pool(functions), bound=9.0, cv=2, max_iter=3).fit(X, Y)
    refused(pool, r"pool member 1\b")
    one = torch.ones(1).double()
    refused(fitted(ConvexEnsemble([Own()], one, torch.zeros(1, 2), one, one)), "Own")
    refused(gce.GCERegressor(**TINY, loss=Exponential()).fit(X, Y), "Exponential")
    model = gce.GCERegressor(**TINY, loss=Renamed()).fit(X, Y)
    assert_same(model, session(model).run(None, {"X": X}), X)


@pytest.mark.parametrize("name", ["label", "", "age", "/constant_0", "/LabelEncoder_0"])
def test_columns_need_names_of_their_own(name):
    train = pd.DataFrame({"age": X[:, 0], "town": ["a", "b", "c"] * 20, "other": X[:, 1]})
    model = gce.GCERegressor(**TINY).fit(train, Y)
    object.__setattr__(model.table_.columns[2], "name", name)
    with pytest.raises(ValueError, match=f"column name {name!r}"):
        contents(model)


def test_long_numbers_are_no_categories():
    train = pd.DataFrame({"id": pd.Categorical([2**60 + 1, 2**60 + 2, 3] * 20), "age": X[:, 0]})
    with pytest.raises(ValueError, match="column 'id'"):
        contents(gce.GCERegressor(**TINY).fit(train, Y))


def test_classes_that_no_type_holds_are_refused():
    model = gce.GCEClassifier(**TINY).fit(X, np.where(Y > 0, np.uint64(2**63 + 5), np.uint64(1)))
    with pytest.raises(ValueError, match=r"9223372036854775813.* encode y"):
        contents(model)


# NUL bytes, quotes, new lines, marks that combine: whatever text there is, but for halves of a character.
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(NAMES.filter(bool), min_size=2, max_size=6, unique=True),
    st.sets(NAMES.filter(bool), min_size=2, max_size=3),
)
def test_whatever_text_categories_and_classes_are(levels, classes):
    classes = np.array(sorted(classes), dtype=object)
    train = pd.DataFrame({levels[0]: pd.Series(np.resize(levels, 60), dtype=object), "age": X[:, 0]})
    if list(train).count("age") > 1 or levels[0] in OUTPUTS or is_internal_name(levels[0]):
        return
    model = gce.GCEClassifier(**{**TINY, "max_atoms": 1}).fit(train, np.resize(classes, 60))
    run = session(model).run
    new = train.assign(**{levels[0]: np.resize([*levels[1:], "never seen"], 60)})
    for rows in (train, new):
        assert_same(model, run(None, feeds(rows, {levels[0]})), rows)


def test_the_package_is_named_where_it_is_missing(monkeypatch):
    model = gce.GCERegressor(**TINY).fit(X, Y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "greedy-convex-ensemble\[onnx\]"'):
        contents(model)


def test_only_a_fitted_model_is_written():
    with pytest.raises(NotFittedError):
        contents(gce.GCERegressor())
