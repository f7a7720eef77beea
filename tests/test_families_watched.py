"""Several families as callbacks hear of them: rounds count on as in ``history_``, and curves tell families apart."""

import logging
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import gce
from gce.training.integrations import MLflow, OptunaPruning, TensorBoard

X = np.random.default_rng(0).normal(size=(60, 3))
Y = X[:, 0] - X[:, 1] ** 2
BASIS = {
    "tree": gce.bases.Tree(max_leaf_nodes=4),
    "wood/2": gce.bases.Forest(n_estimators=2),
    "neural": gce.bases.Neural(hidden=3, max_epochs=30),
}
NAMES = ("risk", "validation", "gap_lower", "step_size")


def model(*callbacks, **given):
    given = {"basis": BASIS, "cv": 2, "max_iter": 12, "n_iter_no_change": None, "random_state": 0, **given}
    return gce.GCERegressor(callbacks=callbacks, **given)


def rounds(fitted):
    """The history but for its last entry, which is no round."""
    assert fitted.history_[-1]["family"] == "all"
    return fitted.history_[:-1]


def test_a_step_is_an_entry_of_the_history():
    heard = []
    fitted = model(lambda step: heard.append(step)).fit(X, Y)
    assert [(step.t, step.family, step.seconds) for step in heard] == [
        (entry["t"], entry["family"], entry["seconds"]) for entry in rounds(fitted)
    ]
    assert [step.t for step in heard] == list(range(1, 26))
    assert [step.own_t for step in heard] == [*range(1, 13), 1, *range(1, 13)]


def test_a_fit_that_goes_on_counts_on():
    heard = []
    warm = model(lambda step: heard.append((step.family, step.t, step.own_t)), max_iter=2, warm_start=True).fit(X, Y)
    warm.set_params(max_iter=3).fit(X, Y)
    assert [t for _, t, _ in heard] == list(range(1, 8))
    assert heard[5:] == [("tree", 6, 3), ("neural", 7, 3)]


def test_a_single_family_has_no_name():
    heard = []
    model(lambda step: heard.append((step.family, step.t == step.own_t)), basis="tree", max_iter=2).fit(X, Y)
    assert heard == [(None, True)] * 2


def test_a_true_answer_in_a_later_family_ends_the_fit():
    fitted = model(lambda step: step.family == "wood/2").fit(X, Y)
    assert [entry["family"] for entry in rounds(fitted)] == ["tree"] * 12 + ["wood/2"]


def expected(fitted):
    """Points by the curve: the whole fit's, and each family's own."""
    points = {}
    for entry in rounds(fitted):
        for name in NAMES:
            for curve in (name, f"{entry['family'].replace('/', '_')}/{name}"):
                points.setdefault(curve, []).append((entry["t"], entry[name]))
    return points


def test_tensorboard_tells_families_apart(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    fitted = model(TensorBoard(tmp_path)).fit(X, Y)
    read = EventAccumulator(str(tmp_path)).Reload()
    found = {name: [(e.step, e.value) for e in read.Scalars(name)] for name in read.Tags()["scalars"]}
    assert found == {name: [(t, np.float32(v)) for t, v in own] for name, own in expected(fitted).items()}


def test_mlflow_tells_families_apart(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    try:
        with mlflow.start_run() as run:
            fitted = model(MLflow()).fit(X, Y)
        client = mlflow.MlflowClient()
        for name, points in expected(fitted).items():
            assert [(p.step, p.value) for p in client.get_metric_history(run.info.run_id, name)] == points
    finally:
        mlflow.set_tracking_uri(None)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_optuna_is_told_of_every_round(direction):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction=direction, pruner=optuna.pruners.NopPruner())
    trial = study.ask()
    fitted = model(OptunaPruning(trial)).fit(X, Y)
    sign = 1 if direction == "minimize" else -1
    told = [sign * value for value in study.trials[0].intermediate_values.values()]
    assert list(study.trials[0].intermediate_values) == list(range(1, 26))
    # a family that has just begun is not held against what the fit already has
    best, values = {}, []
    for entry in rounds(fitted):
        values.append(min(entry["validation"], *[v for name, v in best.items() if name != entry["family"]], np.inf))
        best[entry["family"]] = min(entry["validation"], best.get(entry["family"], np.inf))
    assert told == values
    assert told[:12] == [entry["validation"] for entry in fitted.history_[:12]]


def test_scikit_learn_reads_the_family_from_the_model():
    pytest.importorskip("sklearn.callback")
    heard = []

    class Listener:
        def setup(self, estimator, context):
            self.most = context.max_subtasks

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if context.task_name == "round" and fitted_estimator is not None:
                last = fitted_estimator.history_[-1]
                heard.append((context.task_id + 1, last["t"], last["family"]))

    fitted = model().set_callbacks(listener := Listener()).fit(X, Y)
    assert heard == [(entry["t"], entry["t"], entry["family"]) for entry in rounds(fitted)]
    assert listener.most == 26


def test_a_line_a_family_and_one_every_ten_rounds(caplog):
    with caplog.at_level(logging.DEBUG, logger="gce"):
        fitted = model(verbose=False).fit(X, Y)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "gce"]
    told = [line for level, line in lines if level == "INFO"]
    starts = ["tree round 10 (10 in all)  validation ", "tree: 12 rounds in ", "wood/2: 1 round in "]
    starts += ["neural round 10 (23 in all)  validation ", "neural: 12 rounds in "]
    told, left_out = told[: len(starts)], told[len(starts) :]
    assert [line[: len(start)] for line, start in zip(told, starts, strict=True)] == starts
    assert left_out == [f"{name} is left out: {reason}" for name, reason in fitted.result_.left_out]
    best = min(entry["validation"] for entry in rounds(fitted) if entry["family"] == "neural")
    assert told[-1].endswith(f"best validation {best:.4g}")
    assert len([level for level, _ in lines if level == "DEBUG"]) == 25 - 2
    assert {level for level, _ in lines} == {"INFO", "DEBUG"}


def test_a_bar_in_a_notebook(monkeypatch, capfd):
    shown = []

    class Handle:
        def update(self, what, raw=False):
            shown.append(what["text/plain"] if raw else what._repr_mimebundle_([], [])["text/plain"])

    def display(what, display_id):
        assert display_id
        Handle().update(what)
        return Handle()

    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr("rich._console", None)  # what was made before knows of no notebook
    model().fit(X, Y)
    firsts = [re.search("(tree|wood/2|neural) ./3", line)[1] for line in shown if "first round" in line]
    assert firsts == ["tree", "wood/2", "neural"]
    assert shown[-1] == ""
    assert capfd.readouterr().err == ""
