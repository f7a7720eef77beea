"""gce as a system of TabArena: run by ``make autogluon``, with the package of PyPI."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("tabarena", exc_type=ImportError)

from autogluon.core.metrics import get_metric
from sklearn.model_selection import GroupKFold
from tabarena.benchmark.experiment.experiment_constructor import import_class
from tabarena.benchmark.task.user_task import UserTask

import gce
from benchmarks.tabarena_gce import GCESystem, experiments, groups

pytestmark = pytest.mark.filterwarnings("default")
SMALL = {"basis": "tree", "max_atoms": 10}
METRICS = {"binary": "roc_auc", "multiclass": "log_loss", "regression": "root_mean_squared_error"}


def table(task, n=200):
    rng = np.random.default_rng(0)
    # TabArena's text has a type of its own
    town = pd.array(rng.choice(["Rom", "Bern", "Wien"], n), "string")
    X = pd.DataFrame({"a": rng.normal(size=n), "town": town, "house": np.arange(n) // 4})
    X.index = X.index + 1_000
    score = X.a + 2 * (X.town == "Rom")
    if task == "regression":
        return X, score
    cuts = [-np.inf, 1, np.inf] if task == "binary" else [-np.inf, 0, 2, np.inf]
    return X, pd.cut(score, cuts, labels=["low", "mid", "high"][: len(cuts) - 1])


def system(task, settings=SMALL, **given):
    budget = {"num_cpus": 1, "num_gpus": 0, "memory_limit": 8, "time_limit": 60}
    return GCESystem(
        problem_type=task, eval_metric=get_metric(METRICS[task], task), fit_kwargs=budget, settings=settings, **given
    )


@pytest.mark.parametrize("task", METRICS)
def test_the_runner_gets_what_gce_predicts(task):
    X, y = table(task)
    made = system(task)
    made.warmup_fn()
    answers = made.fit_custom(X[:150], y[:150], X[150:], split_seed=3)
    kind = gce.GCERegressor if task == "regression" else gce.GCEClassifier
    alone = kind(**SMALL, n_jobs=1, time_limit=60, random_state=3, verbose=False).fit(X[:150], y[:150])
    assert answers["predictions"].index.equals(X.index[150:])
    if task == "regression":
        # the runner shuffles the rows and restores their order
        np.testing.assert_array_equal(answers["predictions"], alone.predict(X[150:]))
        assert answers["probabilities"] is None
    else:
        assert answers["probabilities"].columns.tolist() == alone.classes_.tolist()
        np.testing.assert_array_equal(answers["probabilities"], alone.predict_proba(X[150:]))
        assert (answers["predictions"] == y[150:].astype(object)).mean() > 0.8


def test_warming_up_leaves_the_fit_as_it_is():
    X, y = table("regression")
    cold, warm = system("regression"), system("regression")
    warm.warmup_fn()
    assert warm._model is None
    np.testing.assert_array_equal(cold.fit(X, y).predict(X), warm.fit(X, y).predict(X))


def test_groups_stay_together(monkeypatch):
    X, y = table("regression")
    seen = {}
    monkeypatch.setattr(gce.GCERegressor, "fit", lambda self, X, y, groups: seen.update(groups=groups) or self)
    system("regression", validation_metadata={"group_on": "house"}).fit(X, y)
    assert seen["groups"].groupby(X.house).nunique().eq(1).all()
    assert seen["groups"].nunique() == X.house.nunique()
    system("regression").fit(X, y)
    assert seen["groups"] is None


def test_groups_of_several_columns_are_their_combinations():
    X = pd.DataFrame({"a": [1, 1, 2, 2, None, None], "b": list("xxxyzz")})
    found = groups(X, ["a", "b"]).tolist()
    assert [found.index(group) for group in found] == [0, 0, 2, 3, 4, 4]
    assert len(list(GroupKFold(2).split(X, groups=found))) == 2


def test_an_experiment_runs_from_the_task_to_the_score(tmp_path):
    X, y = table("regression")
    task = UserTask(task_name="towns", task_cache_path=tmp_path).create_task(
        dataset=X.assign(y=y),
        target_feature="y",
        problem_type="regression",
        splits={0: {0: (list(range(150)), list(range(150, 200)))}},
    )
    (experiment,) = experiments(60, **SMALL)
    assert experiment.name.startswith("GCE")
    assert import_class(experiment.to_yaml_dict()["system_cls"]) is GCESystem
    result = experiment.run(task, fold=0, task_name="towns", cache_task_key="towns")
    alone = gce.GCERegressor(**SMALL, n_jobs=1, time_limit=60, random_state=0, verbose=False).fit(X[:150], y[:150])
    assert result["metric"] == "rmse"
    # the seed is TabArena's
    assert result["metric_error"] == pytest.approx(np.sqrt(np.mean((alone.predict(X[150:]) - y[150:]) ** 2)), rel=0.2)
