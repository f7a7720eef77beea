"""Curves in other tools, and scikit-learn's own callbacks: what they read back is what ``history_`` says."""

import gc
import importlib
import subprocess
import sys
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV

import gce
from gce.training.callbacks import EarlyStopping
from gce.training.integrations import MLflow, OptunaPruning, TensorBoard

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] - X[:, 1] ** 2
NAMES = ("risk", "validation", "gap_lower", "step_size")


def model(*callbacks, **given):
    given = {"max_atoms": 4, "cv": 2, "basis": gce.bases.Neural(hidden=3, max_epochs=30), "random_state": 0, **given}
    return gce.GCERegressor(callbacks=callbacks, **given)


def curves(fitted):
    """The history as trackers know it: name to values, one a round."""
    return {name: [entry[name] for entry in fitted.history_] for name in NAMES}


def events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    return EventAccumulator(str(folder)).Reload()


def written(folder):
    read = events(folder)
    assert sorted(read.Tags()["scalars"]) == sorted(NAMES)
    steps = {name: [event.step for event in read.Scalars(name)] for name in NAMES}
    assert all(own == list(range(1, len(own) + 1)) for own in steps.values())
    return {name: [event.value for event in read.Scalars(name)] for name in NAMES}


def test_tensorboard_has_the_history(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    # the second of two members is done after two rounds
    monkeypatch.setattr(EarlyStopping, "_is_stale", lambda self, m, t: m == 1 and t == 2)
    fitted = model(TensorBoard(tmp_path)).fit(X, Y)
    assert [len(entry["running"]) for entry in fitted.history_] == [2, 2, 1, 1]
    for name, values in written(tmp_path).items():
        assert values == np.float32(curves(fitted)[name]).tolist()


def test_a_writer_given_is_left_open(tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        fitted = model(TensorBoard(writer)).fit(X, Y)
        writer.add_scalar("mine", 3.0, 1)
    assert events(tmp_path).Scalars("mine")[0].value == 3.0
    assert events(tmp_path).Scalars("risk")[-1].step == fitted.n_iter_


def test_a_tracked_model_is_cloned_and_pickled(tmp_path):
    pytest.importorskip("tensorboard")
    fitted = model(TensorBoard(tmp_path / "runs")).fit(X, Y)
    joblib.dump(fitted, tmp_path / "m.joblib")
    again = joblib.load(tmp_path / "m.joblib")
    assert np.array_equal(again.predict(X), fitted.predict(X))
    assert again.callbacks[0].writer == tmp_path / "runs"
    assert clone(fitted).callbacks[0] is fitted.callbacks[0]


def test_what_a_tracker_opened_is_closed_with_it(tmp_path):
    pytest.importorskip("tensorboard")
    before = threading.active_count()
    fitted = model(TensorBoard(tmp_path)).fit(X, Y)
    assert threading.active_count() > before
    del fitted
    gc.collect()
    assert threading.active_count() == before


def test_a_writer_that_was_given_is_its_folder_elsewhere(tmp_path):
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path / "runs")) as writer:
        fitted = model(TensorBoard(writer)).fit(X, Y)
        joblib.dump(fitted, tmp_path / "m.joblib")
    again = joblib.load(tmp_path / "m.joblib")
    assert again.callbacks[0].writer == str(tmp_path / "runs")
    assert again.fit(X, Y).n_iter_ == events(tmp_path / "runs").Scalars("risk")[-1].step


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    package = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    package.set_tracking_uri((tmp_path / "runs").as_uri())
    yield package
    package.set_tracking_uri(None)


def test_mlflow_has_the_history_of_the_active_run(mlflow):
    with mlflow.start_run() as run:
        fitted = model(MLflow()).fit(X, Y)
    client = mlflow.MlflowClient()
    for name, values in curves(fitted).items():
        points = client.get_metric_history(run.info.run_id, name)
        assert [point.step for point in points] == list(range(1, fitted.n_iter_ + 1))
        assert [point.value for point in points] == values


@pytest.mark.parametrize("as_id", [False, True])
def test_mlflow_logs_to_the_run_it_is_given(mlflow, as_id):
    with mlflow.start_run() as run:
        pass
    fitted = model(MLflow(run.info.run_id if as_id else run)).fit(X, Y)
    assert mlflow.active_run() is None
    assert mlflow.get_run(run.info.run_id).data.metrics["risk"] == fitted.history_[-1]["risk"]


@pytest.fixture
def optuna():
    package = pytest.importorskip("optuna")
    package.logging.set_verbosity(package.logging.ERROR)
    return package


def prune_after(optuna, rounds):
    class Pruner(optuna.pruners.BasePruner):
        def prune(self, study, trial):
            return trial.last_step >= rounds

    return Pruner()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_optuna_is_told_the_validation_value(optuna, direction):
    study = optuna.create_study(direction=direction, pruner=prune_after(optuna, np.inf))
    seen = []

    def objective(trial):
        seen.append(model(OptunaPruning(trial)).fit(X, Y))
        return 0.0

    study.optimize(objective, n_trials=1)
    sign = 1 if direction == "minimize" else -1
    values = [sign * value for value in curves(seen[0])["validation"]]
    assert study.trials[0].intermediate_values == dict(enumerate(values, start=1))


def test_a_pruned_trial_leaves_the_fit(optuna):
    import torch

    study = optuna.create_study(pruner=prune_after(optuna, 2))
    kept, threads = [], torch.get_num_threads()

    def objective(trial):
        kept.append(model(OptunaPruning(trial), n_jobs=1))
        kept[-1].fit(X, Y)
        raise AssertionError("the fit went on")

    study.optimize(objective, n_trials=2)
    assert [trial.state.name for trial in study.trials] == ["PRUNED"] * 2
    assert list(study.trials[0].intermediate_values) == [1, 2]
    assert torch.get_num_threads() == threads
    # the model is none the worse: without the trial it fits as a new one does
    again = kept[0].set_params(callbacks=None).fit(X, Y)
    assert np.array_equal(again.predict(X), model().fit(X, Y).predict(X))


def test_pruning_needs_rows_held_out(optuna):
    trial = optuna.create_study().ask()
    with pytest.raises(ValueError, match="needs held-out rows"):
        model(OptunaPruning(trial), cv=None, validation_fraction=None).fit(X, Y)


def test_validation_values_that_are_no_numbers():
    with pytest.raises(ValueError, match=r"values of round 1 are \[nan, nan\].*scoring must return numbers"):
        model(scoring=lambda *_: np.nan).fit(X, Y)
    # an infinite one is worse than others, and a round all the same
    worst = model(scoring=lambda *_: -np.inf, n_iter_no_change=2).fit(X, Y)
    assert worst.result_.families[0].best_round == (1, 1)
    assert gce.inspection.TrainingDisplay.from_estimator(worst).curves.best.tolist() == [[1, 1]]


def test_a_fixed_trial_is_never_pruned(optuna):
    assert model(OptunaPruning(optuna.trial.FixedTrial({}))).fit(X, Y).n_iter_ == 4


@pytest.mark.parametrize(
    ("module", "tracker"),
    [("torch.utils.tensorboard", TensorBoard("runs")), ("mlflow", MLflow()), ("optuna", OptunaPruning(None))],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, module, tracker):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ModuleNotFoundError, match=r'is not installed: pip install "greedy-convex-ensemble\['):
        model(tracker).fit(X, Y)


def test_a_model_of_autogluon_without_autogluon_says_how_to_install_it(monkeypatch):
    for name in [name for name in sys.modules if "autogluon" in name.split(".")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "autogluon", None)
    words = r'^autogluon(\.core)? is not installed: pip install "greedy-convex-ensemble\[autogluon\]"$'
    with pytest.raises(ModuleNotFoundError, match=words):
        importlib.import_module("gce.integrations.autogluon")


# scikit-learn's own callbacks.


class Recorder:
    """Every call, in order; asks for what a callback may ask for."""

    def __init__(self, stop_after=np.inf, fail_after=np.inf):
        self.calls, self.stop_after, self.fail_after = [], stop_after, fail_after

    def setup(self, estimator, context):
        self.calls.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):
        self.calls.append(("teardown", context.max_subtasks))

    def on_fit_task_begin(self, estimator, context):
        self.calls.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self.calls.append(("end", context.task_name, X, metadata, fitted_estimator))
        if context.task_name == "round" and context.task_id + 1 >= self.fail_after:
            raise RuntimeError("enough")
        return context.task_name == "round" and context.task_id + 1 >= self.stop_after

    def names(self):
        return [call[:2] for call in self.calls]


@pytest.fixture
def callback():
    return pytest.importorskip("sklearn.callback")


def test_a_round_is_a_task(callback):
    recorder = Recorder()
    weight = np.linspace(1, 2, len(X))
    fitted = model().set_callbacks(recorder).fit(X, Y, weight)
    one = [("begin", "round"), ("end", "round")]
    # as in scikit-learn's own solvers, a round is begun that never comes
    inside = [("begin", "fit"), *one * 4, *one, ("end", "fit")]
    assert recorder.names() == [("setup", 5), *inside, ("teardown", 5)]
    ends = [call for call in recorder.calls if call[:2] == ("end", "round")]
    for t, (_, _, rows, metadata, after) in enumerate(ends[:-1], start=1):
        assert rows is X
        assert metadata["sample_weight"] is weight
        capped = model(max_atoms=t).fit(X, Y, weight)
        assert np.array_equal(after.predict(X), capped.predict(X))
        assert (after.n_iter_, len(after.history_)) == (t, t)
    assert ends[-1][2:] == (None, None, None)
    assert np.array_equal(ends[-2][4].predict(X), fitted.predict(X))
    assert not [name for name in vars(fitted) if "callback_fit_ctx" in name or "teardown" in name]


def test_a_callback_of_scikit_learn_stops_the_fit(callback):
    fitted = model().set_callbacks(Recorder(stop_after=2)).fit(X, Y)
    assert fitted.n_iter_ == 2
    assert np.array_equal(fitted.predict(X), model(max_atoms=2).fit(X, Y).predict(X))


def test_callbacks_are_torn_down_however_a_fit_ends(callback):
    recorder = Recorder(fail_after=2)
    with pytest.raises(RuntimeError, match="enough"):
        model().set_callbacks(recorder).fit(X, Y)
    assert recorder.names()[-2:] == [("end", "round"), ("teardown", 5)]


def test_a_lazy_algorithm_may_have_more_rounds_than_atoms(callback):
    recorder = Recorder()
    fitted = model(algorithm="blended", max_atoms=2, max_iter=12).set_callbacks(recorder).fit(X, Y)
    assert recorder.calls[0] == ("setup", 13)
    assert recorder.names().count(("end", "round")) == fitted.n_iter_ + 1


@pytest.mark.parametrize("kind", [gce.NGCERegressor, gce.NNRegressor])
def test_a_single_training_is_one_task(callback, kind):
    recorder = Recorder()
    fitted = kind(hidden=3, max_epochs=3, random_state=0).set_callbacks(recorder).fit(X, Y)
    assert recorder.names() == [("setup", 0), ("begin", "fit"), ("end", "fit"), ("teardown", 0)]
    assert np.array_equal(recorder.calls[2][4].predict(X), fitted.predict(X))


def test_scikit_learn_monitors_scores(callback):
    monitor = callback.ScoringMonitor(scoring="neg_log_loss")
    tiny = gce.bases.Neural(hidden=8, max_epochs=60)
    small = gce.GCEClassifier(max_atoms=3, cv=2, basis=tiny, temperature=1.0, random_state=0)
    clone(small).set_callbacks(monitor).fit(X, Y > 0)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "round"]
    capped = [clone(small).set_params(max_atoms=t).fit(X, Y > 0) for t in (1, 2, 3)]
    assert [row["task_id"] for row in rows] == [0, 1, 2]
    assert [row["neg_log_loss"] for row in rows] == [get_scorer("neg_log_loss")(own, X, Y > 0) for own in capped]


def test_scikit_learn_draws_a_bar_below_a_grid_search(callback, capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(model(), {"max_atoms": [1, 2]}, cv=2).set_callbacks(callback.ProgressBar())
    search.fit(X, Y)
    drawn = capsys.readouterr()
    assert "GCERegressor" in drawn.out + drawn.err
    assert search.best_estimator_.n_iter_ == search.best_params_["max_atoms"]


def test_an_older_scikit_learn_changes_nothing():
    program = """
import sys
import numpy as np
import sklearn.datasets, sklearn.pipeline, sklearn.model_selection
if "sklearn.callback" in sys.modules:
    del sklearn.callback
sys.modules["sklearn.callback"] = None
import gce
X = np.random.default_rng(0).normal(size=(30, 2))
model = gce.GCERegressor(max_atoms=2, random_state=0, basis=gce.bases.Neural(hidden=2, max_epochs=30)).fit(X, X[:, 0])
assert model.n_iter_ == 2 and not hasattr(model, "set_callbacks")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
