"""Tables with categories and missing values from end to end: rows, predictions, files and ONNX."""

import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import gce
from gce._utils import native
from gce._utils.native import LEVELS
from gce.bases import Forest, Neural, SignTree, SymmetricTree, Tree, TreeAtoms, Union
from gce.bases.trees import TreeArrays, predictor
from gce.io.container import deserialize
from gce.preprocessing import Frame, Schema, Table, read_frame
from gce.preprocessing.columns import MAX_CATEGORIES
from gce.preprocessing.encoder import Encoder
from gce.preprocessing.mixed import MixedRows, Widths
from gce.training import round_weights
from mixed_tables import draw_columns, leaves_of, mixed_rows, mixed_trees

KINDS = [True, False, True, False]
FAST = {"max_atoms": 6, "cv": 2, "random_state": 0}
BASES = {
    "tree": (Tree(max_leaf_nodes=12, min_samples_leaf=2), {}),
    "symmetric": (SymmetricTree(max_depth=3), {}),
    "forest": (Forest(n_estimators=3), {}),
    "sign": (SignTree(min_samples_leaf=3), {"algorithm": "frank-wolfe"}),
    "union": (Union([Tree(max_leaf_nodes=4), Neural(hidden=2, max_epochs=5)]), {}),
}


def frame(n, seed=0, levels=20):
    """Customers, and a target that depends on their groups, their gaps and a number."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, levels, n), rng.normal(size=n)
    gaps, open_ = rng.random(n) < 0.2, rng.random(n) < 0.5
    y = np.sin(7.0 * group) + x * open_ + 2.0 * gaps + 0.1 * rng.normal(size=n)
    shown = pd.DataFrame({"x": np.where(gaps, np.nan, x), "z": rng.normal(size=n)})
    shown["group"] = [f"g{g}" for g in group]
    shown["open"] = pd.array(open_, dtype="boolean")
    return shown, y


def unlike(rows):
    """Rows with what the fit had none of: a category, and gaps in columns that had none."""
    rows = rows.copy()
    rows.loc[rows.index[:9], "group"] = "new"
    rows.loc[rows.index[5:15], "z"] = np.nan
    rows.loc[rows.index[12:22], "group"] = None
    rows.loc[rows.index[20:30], "open"] = pd.NA
    return rows


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from(["auto", "each"]), clip=st.sampled_from([np.inf, 4.0]))
def test_inputs_are_those_of_the_table(seed, scale, clip):
    rng = np.random.default_rng(seed)
    rows, _ = frame(40, seed, levels=int(rng.integers(1, 12)))
    sheet = read_frame(rows)
    schema = Schema.fit(sheet, np.ones(40), None)
    X = schema.encode(sheet)
    table = Table(schema, Encoder.fit(X, np.ones(40), schema.numbers, scale, clip))
    late = schema.encode(read_frame(unlike(rows)))
    for some in (X, late):
        mixed = table.rows(some, torch.device("cpu"))
        assert isinstance(mixed, MixedRows)
        assert mixed.shape == mixed.inputs.shape == (40, table.width)
        assert mixed.inputs.numpy().tobytes() == table.transform(some).tobytes()
        index = torch.from_numpy(rng.permutation(40)[:7])
        assert torch.equal(mixed[index].inputs, mixed.inputs[index])
        assert torch.equal(torch.cat([block.inputs for block in mixed.split(11)]), mixed.inputs)
        assert np.array_equal(np.isnan(mixed.columns.numpy()), np.isnan(some))


def test_a_table_of_numbers_without_gaps_has_inputs_only():
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = gce.GCERegressor(basis=Tree(), **FAST).fit(X, X[:, 0])
    assert isinstance(model.encode_rows(X), torch.Tensor)
    X[3, 1] = np.nan
    assert isinstance(model.encode_rows(X), torch.Tensor)
    assert isinstance(gce.GCERegressor(basis=Tree(), **FAST).fit(X, X[:, 0]).encode_rows(X), MixedRows)


def test_trees_alone_compute_no_indicators(monkeypatch):
    rows, y = frame(120)
    made = []
    monkeypatch.setattr(Encoder, "inputs_of", lambda *given_: made.append(given_) or 1 / 0)
    model = gce.GCERegressor(basis=[Tree(), SymmetricTree(), Forest(n_estimators=2)], **FAST).fit(rows, y)
    assert np.isfinite(model.predict(unlike(rows))).all()
    assert not made


@pytest.mark.parametrize("name", BASES)
def test_predictions_come_back_from_files(name, tmp_path):
    rows, y = frame(150)
    basis, more = BASES[name]
    model = gce.GCERegressor(basis=basis, **FAST, **more).fit(rows, y)
    late = unlike(frame(60, 1)[0])
    expected = model.predict(late)
    assert np.ptp(expected) > 0.1
    each = [model.predict(late[i : i + 1]) for i in range(0, 60, 3)]
    assert np.array_equal(np.concatenate(each), expected[::3])
    for resumable in (False, True):
        path = tmp_path / f"m{resumable}.safetensors"
        with warnings.catch_warnings():
            # a Union is opaque to files
            warnings.simplefilter("ignore")
            model.save(path, resumable=resumable)
        assert np.array_equal(gce.load(path).predict(late), expected)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(late), expected)


def test_families_of_trees_and_networks_are_weighed_and_edited(monkeypatch):
    """Rounds of all families are weighed together, and every model sees the rows as it was trained on them."""
    monkeypatch.setattr(round_weights, "_ENOUGH", 0)
    rows, y = frame(150)
    bases = [Tree(max_leaf_nodes=6), Forest(n_estimators=2), Neural(hidden=3, max_epochs=20)]
    model = gce.GCERegressor(basis=bases, **FAST).fit(rows, y)
    late = unlike(frame(60, 1)[0])
    kinds = {type(part).__name__ for part in model.ensemble_.parts}
    assert "Networks" in kinds
    assert kinds & {"TreeAtoms", "ForestAtoms"}
    X = model.encode_rows(late)
    whole = sum(w * out for w, out in zip(model.ensemble_.weights, model.ensemble_.outputs(X), strict=True))
    np.testing.assert_allclose(model.predict(late), (model.ensemble_.offset + whole)[:, 0], rtol=1e-9)
    few = model.prune(5, X=rows, y=y)
    assert np.isfinite(few.predict(late)).all()
    assert few.score(rows, y) > 0.5 * model.score(rows, y)


@pytest.mark.parametrize("name", ["tree", "symmetric", "forest", "sign"])
def test_graphs_predict_the_same(name):
    runtime = pytest.importorskip("onnxruntime")
    rows, y = frame(150)
    basis, more = BASES[name]
    classes = np.array(["a", "b", "c"])[(y > 0.5).astype(int) + (y > 1.5)]
    late = unlike(frame(60, 1)[0])
    feed = {
        column: (
            late[column].fillna("").to_numpy(object) if column == "group" else late[column].astype(float).to_numpy()
        )
        for column in late
    }
    feed = {column: values[:, None] for column, values in feed.items()}
    models = [gce.GCERegressor(basis=basis, **FAST, **more).fit(rows, y)]
    if name != "sign":
        models.append(gce.GCEClassifier(basis=basis, **FAST).fit(rows, classes))
    for model in models:
        contents = io.BytesIO()
        model.to_onnx(contents)
        found = runtime.InferenceSession(contents.getvalue()).run(None, feed)[-1]
        expected = model.predict_proba(late) if hasattr(model, "predict_proba") else model.predict(late)[:, None]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.fixture(params=LEVELS)
def instruction_set(request):
    """Kernels of one instruction set in place of the best."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "library", lambda: native._load(request.param))
        for name in ("_prepare", "_sum", "_widest", "_free", "_restore"):
            patch.setattr(predictor, name, getattr(predictor, name).__wrapped__)
        yield request.param


@pytest.mark.parametrize("n", [1, 3, 90, 600])
@pytest.mark.parametrize("shapes", [[-3, 5, 1, -8, 200], [300, 7, 260], [30] * 60, [256, 255]])
def test_every_instruction_set_finds_what_a_walk_finds(instruction_set, shapes, n):
    """Trees that are walked and that are not, and more sets than one group of trees can have."""
    rng = np.random.default_rng(len(shapes) + n)
    trees = mixed_trees(rng, shapes, KINDS, dtype=torch.float32)
    columns = draw_columns(rng, n, KINDS, levels=250)
    columns[rng.random(columns.shape) < 0.02] = 300.0
    weights, into = rng.normal(size=(len(shapes), 1)), np.arange(len(shapes)) % 2
    found = trees.summed(torch.from_numpy(columns), torch.from_numpy(weights), torch.from_numpy(into), 2)
    some = np.sort(rng.permutation(n)[:40])
    expected, leaves = np.zeros((2, len(some), 1)), leaves_of(trees, columns[some])
    for t, sum_ in enumerate(into):
        expected[sum_] += weights[t] * leaves[t]
    assert np.array_equal(found[:, some], expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), outputs=st.integers(1, 2))
def test_any_trees_come_back(seed, outputs):
    rng = np.random.default_rng(seed)
    trees = mixed_trees(rng, [int(rng.integers(1, 12)) for _ in range(5)], KINDS, outputs)
    parts = [trees.select(torch.tensor([t])) for t in range(5)]
    again = TreeArrays.restored(trees.stored(), Widths(99, len(KINDS)), outputs, torch.float64)
    columns = torch.from_numpy(draw_columns(rng, 50, KINDS, levels=250))
    given_ = columns, torch.ones(5, outputs).double(), torch.arange(5), 5
    expected = trees.summed(*given_)
    for other in (TreeArrays.cat(parts), again, trees.select(torch.arange(5))):
        assert torch.equal(other.summed(*given_), expected)
        assert torch.equal(other.rule, trees.rule)
    backward = trees.select(torch.tensor([4, 2, 0, 3, 1]))
    order = torch.tensor([4, 2, 0, 3, 1])
    assert torch.equal(backward.summed(columns, given_[1], order, 5), expected)
    assert all(len(part.sets) <= int((part.rule == 2).sum()) for part in parts)


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("rule", lambda own: own + 3, "a rule that does not exist"),
        ("sets", lambda own: torch.cat([own] * 5, 1), "more than 256 categories"),
        ("sets", lambda own: own[:1], "a set of categories that does not exist"),
        ("feature", lambda own: own + 4, "a column that does not exist: there are 4"),
    ],
)
def test_trees_that_are_none_are_refused(name, change, fault):
    trees = mixed_trees(np.random.default_rng(3), [9, 9, 9], KINDS)
    parts = trees.stored()
    parts.tensors[name] = change(parts.tensors[name])
    with pytest.raises(ValueError, match=fault):
        TreeArrays.restored(parts, Widths(99, len(KINDS)), 1, torch.float64)


def test_missing_values_without_evidence_go_where_most_rows_go():
    """Of 30 rows 20 are at most 0: a gap in a column that had none is like them."""
    X = pd.DataFrame({"x": np.repeat([-1.0, 1.0], [20, 10]), "c": ["a", "b"] * 15})
    model = gce.GCERegressor(
        basis=Tree(max_leaf_nodes=2, min_samples_leaf=1), **{**FAST, "cv": None, "max_atoms": 1}
    ).fit(X, np.sign(X["x"]))
    late = pd.DataFrame({"x": [-5.0, np.nan, 5.0], "c": ["a", "a", "a"]})
    low, gap, high = model.predict(late)
    assert low == gap < high


def test_categories_without_evidence_are_not_singled_out():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, 600)
    X = pd.DataFrame({"c": [f"k{k}" for k in kind], "x": rng.normal(size=600)})
    model = gce.GCERegressor(basis=Tree(max_leaf_nodes=2), **{**FAST, "cv": None, "max_atoms": 1}).fit(
        X, 1.0 * (kind == 2)
    )
    late = pd.DataFrame({"c": ["k2", "k0", "new", None], "x": np.zeros(4)})
    chosen, other, new, missing = model.predict(late)
    assert chosen > other == new == missing


def test_a_column_of_a_million_categories():
    """Their names are counted once; but for a frequent one, all share one code."""
    n = 1_000_000
    names = np.array([f"id{i}" for i in range(n)] + ["frequent"] * (n // 4), dtype=object)
    sheet = Frame(("id",), ("category",), (names,))
    schema = Schema.fit(sheet, np.ones(len(names)), None)
    (column,) = schema.columns
    assert (column.categories, column.n_distinct, column.other_share) == (("frequent",), n + 1, 0.8)
    assert column.warning is None
    codes = schema.encode(sheet)
    assert (codes[:n] == -1).all()
    assert (codes[n:] == 0).all()


def test_no_more_categories_than_a_byte_tells_apart():
    names = np.repeat(np.arange(400), 12).astype(str)
    X = pd.DataFrame({"c": names, "x": np.arange(4800.0)})
    y = np.random.default_rng(0).normal(size=4800)
    model = gce.GCERegressor(basis=Tree(max_leaf_nodes=9), **FAST).fit(X, y)
    assert len(model.table_.columns[0].frequent) == MAX_CATEGORIES == 254
    kept = np.array([name in model.table_.columns[0].frequent for name in names])
    # the target does not differ by category: statistics of rare ones are those of all
    assert len(np.unique(model.predict(X.assign(x=0.0))[~kept])) == 1


@pytest.mark.parametrize("name", ["tree", "symmetric", "forest"])
def test_an_interrupted_fit_is_resumed_to_the_bit(name, tmp_path):
    rows, y = frame(150)
    basis, _ = BASES[name]
    model = gce.GCERegressor(basis=basis, **FAST)
    whole = clone(model).fit(rows, y, checkpoint=tmp_path / "whole")
    clone(model).set_params(max_iter=2).fit(rows, y, checkpoint=tmp_path / "parts")
    resumed = clone(model).fit(rows, y, checkpoint=tmp_path / "parts")
    late = unlike(frame(60, 1)[0])
    assert np.array_equal(resumed.predict(late), whole.predict(late))


def test_trees_refuse_rows_that_they_were_not_given_their_view_of():
    rows, y = frame(80)
    model = gce.GCERegressor(basis=Tree(), **FAST).fit(rows, y)
    (atoms,) = (part for part in model.ensemble_.parts if isinstance(part, TreeAtoms))
    with pytest.raises(AttributeError):
        atoms(model.encode_rows(rows))


def test_older_atoms_and_new_ones_are_kept_apart():
    """An ensemble that was fitted to indicators and is continued has trees of both kinds."""
    rows, y = frame(80)
    model = gce.GCERegressor(basis=Tree(), **FAST).fit(rows, y)
    (atoms,) = (part for part in model.ensemble_.parts if isinstance(part, TreeAtoms))
    plain = TreeArrays(**{name: own for name, own in atoms.trees.tensors().items() if name not in ("rule", "sets")})
    older = TreeAtoms(plain, atoms.bound)
    assert older.form != atoms.form
    X = mixed_rows(draw_columns(np.random.default_rng(0), 10, KINDS), KINDS)
    assert torch.equal(older.seen(X), X.inputs)
    assert atoms.seen(X) is X.columns


def test_files_say_which_columns_trees_look_at(tmp_path):
    rows, y = frame(80)
    path = tmp_path / "m.safetensors"
    gce.GCERegressor(basis=Tree(), **FAST).fit(rows, y).save(path)
    meta, tensors = deserialize(path, path.read_bytes())
    assert meta["version"] == 7
    assert any(name.endswith("grove.rule") for name in tensors)
    gce.GCERegressor(basis=Tree(), **FAST).fit(rows[["z"]], y).save(path)
    _, tensors = deserialize(path, path.read_bytes())
    assert not any(name.endswith("grove.rule") for name in tensors)
