"""No rows have no predictions: arrays of length 0, of the shape and type that some rows have."""

import inspect
import io

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import torch
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.tree import DecisionTreeRegressor
from typer.testing import CliRunner

import gce
from gce.cli.app import app
from gce.inspection import partial_dependence

N = 80
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=N), "c": RNG.choice(list("xyz"), N), "day": pd.date_range("2024-01-01", periods=N)}
)
WORDS = FRAME[["a"]].assign(
    text=[" ".join(RNG.choice(["red", "blue", "green", "white", "brown", "black"], 4)) for _ in range(N)]
)
NUMBERS = FRAME[["a"]].assign(b=FRAME["a"] ** 2)
Y = FRAME["a"].to_numpy() + RNG.normal(size=N)
CLASSES = np.where(Y > 0, "p", "q")
TIMES = np.array(list(zip(RNG.random(N) < 0.7, np.abs(Y) + 0.1, strict=True)), [("event", bool), ("time", float)])
FAST = {"max_iter": 3, "random_state": 0, "cv": 2}
JOINT = {"max_epochs": 2, "hidden": 3, "random_state": 0}
SPARSE = sp.csr_matrix(NUMBERS)

MODELS = {
    "numbers": lambda: gce.GCERegressor(**FAST).fit(FRAME, Y),
    "classes": lambda: gce.GCEClassifier(**FAST).fit(FRAME, CLASSES),
    "text": lambda: gce.GCERegressor(**FAST).fit(WORDS, Y),
    "targets": lambda: gce.GCERegressor(**FAST).fit(FRAME, np.column_stack([Y, -Y])),
    "labels": lambda: gce.GCEClassifier(**FAST).fit(FRAME, np.column_stack([Y > 0, Y > 1]).astype(int)),
    "ordinal": lambda: gce.GCEClassifier(**FAST, loss="ordinal").fit(FRAME, np.digitize(Y, [-1, 1])),
    "quantiles": lambda: gce.GCERegressor(**FAST, loss=gce.losses.Quantiles([0.1, 0.9])).fit(FRAME, Y),
    "array": lambda: gce.GCERegressor(**FAST).fit(NUMBERS.to_numpy(), Y),
    "sparse": lambda: gce.GCERegressor(**FAST).fit(SPARSE, Y),
    "trees": lambda: gce.GCERegressor(**FAST, basis="tree").fit(FRAME, Y),
    "forest": lambda: gce.GCEClassifier(**FAST, basis="forest").fit(FRAME, CLASSES),
    "neurons": lambda: gce.GCEClassifier(**FAST, basis="neuron").fit(FRAME, CLASSES),
    "regressors": lambda: gce.GCERegressor(
        **FAST, basis=gce.bases.RegressorBasis(DecisionTreeRegressor(max_depth=2))
    ).fit(NUMBERS, Y),
    "external": lambda: gce.GCERegressor(**FAST).fit(NUMBERS, Y).add("ridge", Ridge().fit(NUMBERS, Y), NUMBERS, Y),
    "cox": lambda: gce.GCESurvival(**FAST).fit(FRAME, TIMES),
    "hazards": lambda: gce.GCESurvival(**FAST, loss="hazards").fit(FRAME, TIMES),
    "joint": lambda: gce.NGCERegressor(n_atoms=2, **JOINT).fit(FRAME, Y),
    "network": lambda: gce.NNClassifier(**JOINT).fit(FRAME, CLASSES),
    "stack": lambda: gce.ConvexStackingRegressor([("r", Ridge()), ("d", DummyRegressor())], cv=2).fit(NUMBERS, Y),
    "stack of targets": lambda: gce.ConvexStackingRegressor([("l", LinearRegression())], cv=2).fit(
        NUMBERS, np.column_stack([Y, -Y])
    ),
    "stack of classes": lambda: gce.ConvexStackingClassifier(
        [("l", LogisticRegression()), ("g", gce.GCEClassifier(**FAST))], cv=2
    ).fit(NUMBERS, CLASSES),
    "selection": lambda: gce.GreedySelectionRegressor([("r", Ridge()), ("d", DummyRegressor())], cv=2).fit(NUMBERS, Y),
    "selection of classes": lambda: gce.GreedySelectionClassifier(
        [("l", LogisticRegression()), ("d", DummyClassifier())], cv=2
    ).fit(NUMBERS, CLASSES),
}
ROWS = {"text": WORDS, "array": NUMBERS.to_numpy(), "sparse": SPARSE, "regressors": NUMBERS, "external": NUMBERS}
#: What takes more than rows, or no rows.
OTHERS = {"predict_shards", "predict_from_raw", "decision_from_raw"}


def methods(model):
    names = [name for name in dir(type(model)) if name.startswith(("predict", "staged", "decision", "raw_predict"))]
    names += [name for name in ("shap_values", "shap_interaction_values") if hasattr(model, name)]
    return [name for name in names if name not in OTHERS and not name.endswith("_coded") and hasattr(model, name)]


def answer(model, method, X):
    given = getattr(model, method)(X)
    return list(given)[-1] if inspect.isgenerator(given) else given


@pytest.mark.parametrize("name", MODELS)
def test_no_rows_have_the_shape_and_type_of_some(name):
    model, tried = MODELS[name](), 0
    X = ROWS.get(name, NUMBERS if name.startswith(("stack", "selection")) else FRAME)
    for method in methods(model):
        try:
            some = answer(model, method, X[:5])
        except (ValueError, AttributeError):  # what this model does not have
            continue
        none = answer(model, method, X[:0])
        tried += 1
        if method.startswith("shap"):
            none, some = none.values, some.values
        assert tuple(none.shape) == (0, *some.shape[1:]), method
        assert np.asarray(none).dtype.kind == np.asarray(some).dtype.kind, method
    assert tried >= 1


def test_columns_of_no_rows_may_be_of_any_type():
    model = gce.GCERegressor(**FAST).fit(FRAME, Y)
    for dtype in (str, object, float):
        assert model.predict(pd.DataFrame({name: pd.Series([], dtype=dtype) for name in FRAME})).shape == (0,)
    assert model.predict(pl.DataFrame(schema=dict.fromkeys(FRAME, pl.String))).shape == (0,)
    plain = MODELS["array"]()
    for rows in (np.empty((0, 2), np.float32), np.empty((0, 2), object), np.empty((0, 2), int), torch.empty(0, 2)):
        assert plain.predict(rows).shape == (0,)
    with pytest.raises(ValueError, match="3 features, but GCERegressor is expecting 2"):
        plain.predict(np.empty((0, 3)))


def test_what_learns_or_measures_needs_rows(tmp_path):
    model = gce.GCERegressor(**FAST).fit(FRAME, Y)
    none, nothing = FRAME[:0], Y[:0]
    for fails in (
        lambda: gce.GCERegressor().fit(none, nothing),
        lambda: gce.GCERegressor(cv=None).fit(FRAME, Y, X_val=none, y_val=nothing),
        lambda: model.score(none, nothing),
        lambda: model.reweight(none, nothing),
        lambda: model.report(tmp_path / "r.html", none, nothing),
        lambda: partial_dependence(model, none, "a", custom_values={"a": [0.0, 1.0]}),
    ):
        with pytest.raises(ValueError, match=r"0 sample\(s\)|there are no rows in y"):
            fails()
    assert model.shap_values(none, FRAME[:5]).values.shape == (0, 3)
    with pytest.raises(ValueError, match="background has no rows"):
        model.shap_values(FRAME, none)


@pytest.mark.parametrize("name", ["numbers", "classes", "text", "ordinal", "quantiles", "array", "forest", "hazards"])
def test_no_rows_in_onnx(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    file, model = io.BytesIO(), MODELS[name]()
    model.to_onnx(file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    dtypes = {"tensor(double)": np.float64, "tensor(string)": object}
    feeds = {each.name: np.empty((0, each.shape[1]), dtypes[each.type]) for each in session.get_inputs()}
    assert all(len(part) == 0 for part in session.run(None, feeds))


@pytest.mark.parametrize("name", ["numbers", "classes"])
def test_a_csv_with_a_header_alone_is_predicted(name, tmp_path):
    path, out = tmp_path / "m.safetensors", tmp_path / "p.csv"
    MODELS[name]().save(path)
    (tmp_path / "rows.csv").write_text("day,c,a\n")
    more = ["--interval", "0.9"] if name == "numbers" else ["--proba"]
    header = "prediction,lower,upper\n" if name == "numbers" else "prediction,probability_p,probability_q\n"
    for where in ([], ["--out", str(out)]):
        done = CliRunner().invoke(app, ["predict", str(path), str(tmp_path / "rows.csv"), *more, *where])
        assert done.exit_code == 0, done.output
        assert (out.read_text() if where else done.stdout) == header
    shown = CliRunner().invoke(app, ["report", str(path), str(tmp_path / "rows.csv"), "-t", "a", "-o", str(out)])
    assert shown.exit_code == 1
    assert "rows.csv has no rows" in shown.stderr
