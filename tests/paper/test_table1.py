"""The runner of Table 1: nothing is repeated after a kill, budgets are checked, the plan is the paper's."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from table1_stub import CATALOGUE, METHODS, StubForest, StubGrid, StubXGBoost

from paper import searches
from paper.budgets import SimplexProblem, Trials
from paper.ledger import Ledger
from paper.table1 import main
from paper.units import plan

ROOT = Path(__file__).parents[2]
BUDGET = ["--sets", "round", "--splits", "1", "--trials", "9", "--share", "0.003"]


@pytest.fixture(autouse=True)
def _needs_optuna():
    pytest.importorskip("optuna")


def run_here(folder, *options):
    where = ["--folder", str(folder), "--scratch", str(folder / "scratch"), "--jobs", "1"]
    return main([*where, *options], methods=METHODS, catalogue=CATALOGUE)


def results(folder):
    """Everything in the ledgers but the machine's name."""
    paths = sorted((folder / "table1").glob("*.jsonl"))
    ledgers = [Ledger(path) for path in paths if path.stem != "machines"]
    return {
        json.dumps(key, sort_keys=True): {name: part for name, part in result.items() if name != "machine"}
        for ledger in ledgers
        for key, result in ledger.items()
    }


def start(folder, jobs):
    command = [sys.executable, str(ROOT / "tests" / "paper" / "table1_stub.py"), *BUDGET, "--jobs", str(jobs)]
    command += ["--folder", str(folder), "--scratch", str(folder / "scratch")]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths, "STUB_LOG": str(folder / "log"), "STUB_SLEEP": "0.02"}
    # not a pipe: workers that outlive their run would hold it open
    with (folder / "errors").open("a") as errors:
        return subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )


def said(folder, word):
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.removeprefix(word + " ") for line in lines if line.startswith(word)]


def kill_main(process):
    """Its workers live on until they see that they are alone."""
    process.kill()


def kill_all(process):
    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUB_LOG", str(folder / "log"))
        assert run_here(folder, *BUDGET) == 0
    assert len(said(folder, "begin")) > 40
    return folder


@pytest.mark.parametrize(("jobs", "kill", "after"), [(2, kill_main, 20), (1, kill_all, 35)])
def test_a_killed_run_goes_on_where_it_was(tmp_path, whole, jobs, kill, after):
    folder = tmp_path / "killed"
    folder.mkdir()
    process = start(folder, jobs)
    try:
        while len(said(folder, "end")) < after:
            assert process.poll() is None, (folder / "errors").read_text()
            time.sleep(0.01)
    finally:
        kill(process)
        process.wait()
    # a kill after 35 fits of one process falls into a sampled search, one after 20 of two processes into grids
    assert jobs == 2 or list(folder.rglob("*.db"))
    assert start(folder, jobs).wait(timeout=120) == 0, (folder / "errors").read_text()

    assert results(folder) == results(whole)
    begun, ended = Counter(said(folder, "begin")), Counter(said(folder, "end"))
    assert len(ended) == sum(result.get("fits", 1) for result in results(folder).values())
    # what was under way may run again, nothing else does
    assert sum(begun.values()) - len(begun) <= jobs
    assert len(begun) > 40


def test_running_again_fits_nothing(tmp_path, whole, monkeypatch):
    folder = tmp_path / "again"
    shutil.copytree(whole, folder)
    monkeypatch.setenv("STUB_LOG", str(folder / "log"))
    files = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    assert any(path.stem == "machines" for path in files)
    run_here(folder, *BUDGET, "--jobs", "2")
    assert said(folder, "begin") == said(whole, "begin")
    assert {path: path.read_bytes() for path in folder.rglob("*.jsonl")} == files


def test_minutes_stop_a_run_cleanly(tmp_path, whole):
    assert run_here(tmp_path / "stopped", *BUDGET, "--minutes", "1e-9") == 0
    assert results(tmp_path / "stopped") == {}
    assert (tmp_path / "stopped" / "table1.md").exists()
    assert run_here(tmp_path / "stopped", *BUDGET) == 0
    assert results(tmp_path / "stopped") == results(whole) != {}


def test_full_is_the_whole_protocol(tmp_path, monkeypatch):
    import optuna

    # 6,000 trials in memory: SQLite is for the tests that resume
    monkeypatch.setattr(searches, "_open_study", lambda path, name: optuna.create_study())
    assert run_here(tmp_path, "--full", "--splits", "1", "--trials", "20") == 0
    found = results(tmp_path)

    def outcome(name, split, method):
        return next(
            result for key, result in found.items() if f'"{name}"' in key and f'"{method}"' in key and f"{split}" in key
        )

    by_stage = {
        "depth x child weight": 100,
        "5 x 5": 25,
        "gamma": 6,
        "subsample x colsample_bytree": 25,
        "reg_lambda x reg_alpha": 24,
        "eta": 6,
        "neighbourhood": 1000,
    }
    small = outcome("round", '"split": "paper"', "xgb")
    assert small["stages"] == by_stage
    assert small["trials"] == len(small["validations"]) == 1186
    # 60 pairs of depth and child weight cannot make 100 fits
    assert small["fits"] < 1186 - 40
    assert outcome("round", '"split": "paper"', "rf")["trials"] == 4000
    large = outcome("big", '"split": "paper"', "xgb")
    assert large["trials"] == 200
    assert {large["stages"][name] for name in ("gamma", "subsample", "colsample_bytree", "reg_lambda")} == {4}
    assert outcome("big", '"split": "paper"', "rf")["trials"] == 200
    for method in ("xgb", "rf"):
        assert outcome("square", '"split": 0', method)["trials"] == 20
    grids = [key for key in found if '"grid"' in key]
    assert len(grids) == 14 * (len(CATALOGUE.names) + len(CATALOGUE.small))


def test_plain_runs_the_small_sets(tmp_path):
    assert run_here(tmp_path, "--methods", "grid") == 0
    cells = json.loads((tmp_path / "table1.json").read_text())["cells"]
    places = {(cell["set"], cell["split"]) for cell in cells}
    assert places == {(name, split) for name in CATALOGUE.small for split in ["paper", *range(10)]}


@pytest.mark.parametrize("option", ["--splits", "--trials", "--share", "--paper-trials", "--minutes", "--jobs"])
@pytest.mark.parametrize("amount", ["0", "-1"])
def test_a_budget_of_nothing_is_refused(tmp_path, capsys, option, amount):
    with pytest.raises(SystemExit, match="2"):
        run_here(tmp_path, f"{option}={amount}")
    assert f"{option} must be above 0, got {amount}" in capsys.readouterr().err
    assert not (tmp_path / "table1").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sets", "rond"], "unknown sets ['rond']; known are round, square, big"),
        (["--methods", "svm"], "unknown methods ['svm']; known are grid, xgb, rf"),
        (["--full", "--share", "0.5"], "give one"),
        (["--share", "1.5"], "at most 1, got 1.5"),
        (["--share", "0.5", "--paper-trials", "3"], "give one"),
    ],
)
def test_what_cannot_be_run_is_refused(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit, match="2"):
        run_here(tmp_path, *options)
    assert message in capsys.readouterr().err


class Failing(StubGrid):
    name = "failing"

    def fit(self, data, settings, *, seed, device):
        raise RuntimeError("no")


def test_a_method_that_fails_leaves_the_others_alone(tmp_path):
    where = ["--folder", str(tmp_path), "--scratch", str(tmp_path / "scratch"), "--jobs", "1", *BUDGET]
    methods = {"failing": Failing(), "grid": StubGrid()}
    assert main(where, methods=methods, catalogue=CATALOGUE) == 1
    assert len(results(tmp_path)) == 14 + 9


class Default(StubGrid):
    name = "gce"


def test_defaults_come_first_and_digits_after_other_small_sets():
    names = ("digits", "ca_housing", "iris")
    catalogue = type(CATALOGUE)(names, ("digits", "iris"), CATALOGUE.load, CATALOGUE.present)
    units = plan(catalogue, names, [StubXGBoost(), StubForest(), Default()], SimplexProblem(0.5), 2, Trials(3))
    assert len(units) == 3 * (3 + 3 + 2)
    assert {unit.method.name for unit in units[:8]} == {"gce"}
    order = [unit.data for unit in units[8:]]
    assert order == ["iris"] * 6 + ["digits"] * 6 + ["ca_housing_floored", "ca_housing"] * 2
    for unit in units:
        assert unit.budget == (SimplexProblem(0.5) if unit.split == "paper" else Trials(3))
        assert unit.seed == (0 if unit.split == "paper" else unit.split)
