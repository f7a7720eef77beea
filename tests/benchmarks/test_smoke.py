"""One small case of every benchmark script: it ends and writes its page; one that fails leaves results as they were."""

import importlib
import json
import re
import shlex
import shutil
import sys
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.datasets
import torch

import gce

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
SCRIPTS = {path.stem for path in FOLDER.glob("*.py") if "\ndef main()" in path.read_text(encoding="utf-8")}
#: Run by other scripts in processes of their own, whose tests are in test_shard_benchmarks.py and test_speed.py.
WORKERS = {"worker", "shard_worker", "shard_forest_worker", "tables_autogluon"}
ROUNDS = 4


@dataclass(frozen=True)
class Case:
    """A small case of a script.

    `words` is its command line, where FOLDER is one for files; `sizes` are constants of modules, by "name" or
    "module.name", or functions of the module; `writes` are the files of results that it makes. Packages that it `needs`
    beyond those of the tests may be missing: it must then say so, and so must one that needs a GPU. A script with
    `data` looks for a set in GCE_DATA_HOME.
    """

    words: str = ""
    sizes: dict = field(default_factory=dict)
    writes: tuple = ()
    needs: tuple = ()
    data: bool = False
    fits: bool = True
    gpu: bool = False


def inline(jobs, *_, **__):
    """Joblib's Parallel in this process, whatever is asked for."""
    return joblib.Parallel(1)


class Inline:
    """A pool of processes that is this process."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def map(self, call, *columns):
        return map(call, *columns)

    def submit(self, call, *given):
        future = Future()
        future.set_result(call(*given))
        return future


def measured(size, settings, hosts=None):
    """What one process of a fit reports, in this process."""
    return {**importlib.import_module("shard_worker").fit({**settings, "threads": 1}), "memory": 1e9}


def few_rows(folder, rows, columns, **more):
    return importlib.import_module("shard_rows").write_rows(folder, min(rows, 600), columns, **more)


def first(count):
    """A function that keeps the first items of a constant."""
    return lambda value: dict(list(value.items())[:count]) if isinstance(value, dict) else value[:count]


def few_flags():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 8, 400)
    X = np.column_stack([rng.normal(size=400), level[:, None] == np.arange(8)])
    return torch.from_numpy(X), X[:, 0] + level


def small_task(tasks):
    from dataclasses import replace

    return {"made-up": replace(tasks["made-up"], train=80, test=20)}


CASES = {
    "ablation": Case("--sets diabetes --only default", {"ROWS": 80}, ("ablation.md", "ablation.jsonl")),
    "accuracy": Case("--models GCE --sets california --seeds 0", {}, ("accuracy.md", "accuracy/gce.jsonl"), data=True),
    "adult": Case("--states 1 --only 'GCE default'", {}, ("adult.md", "adult.jsonl"), data=True),
    "atoms": Case(
        "--seeds 1 --plain",
        {
            "Parallel": inline,
            "SMALL": ("diabetes",),
            "LARGE": ("california",),
            "MOST_ROWS": 100,
            "EQUAL_ROUNDS": {"default": {"max_epochs": 2}},
            "LARGE_DATA": first(1),
        },
        ("atoms.md", "atoms.json"),
        data=True,
    ),
    "autogluon_memory": Case("200 3 0 1 0", needs=("autogluon",)),
    "bundles": Case("", {"TABLES": lambda tables: {"few": few_flags}, "REPEATS": 1}, ("bundles.md",), fits=False),
    "category_statistics": Case(
        "--seeds 10 --settings default none --tables one",
        {"ProcessPoolExecutor": Inline},
        ("category_statistics.md", "category_statistics.jsonl"),
        data=True,
    ),
    "constraints": Case(
        "--seeds 1",
        {"MODELS": ("gce", "gce before", "HGB", "gce, unconstrained"), "TASKS": lambda tasks: small_task(tasks)},
        ("constraints.md", "constraints.jsonl"),
    ),
    "continuity": Case("store FOLDER/all.npz --cases diabetes.*tree", {}),
    "counts": Case("--seeds 0 --models GCE", {"ROWS": 120}, ("counts.md", "counts.jsonl"), data=True),
    "encodings": Case(
        "--seeds 1",
        {
            "ProcessPoolExecutor": Inline,
            "as_completed": iter,
            "CLASSES": ("iris",),
            "REGRESSION": ("kin8nm",),
            "VARIANTS": first(2),
            "_SMALL": 1,
        },
        ("encodings.md", "encodings.jsonl"),
        data=True,
    ),
    "family_settings": Case(
        "--seeds 10 --settings default trees-0.1 --sets california",
        {"ProcessPoolExecutor": Inline},
        ("family_settings.md", "family_settings.jsonl"),
        data=True,
    ),
    "gpu_fits": Case("--rows 300 --device cpu"),
    "gpu_forest": Case("--rows 300", gpu=True, fits=False),
    "gpu_trees": Case("--rows 400 --rounds 1 --compared-rows 200 --fit-rows 200 --device cpu"),
    "intervals": Case("--sets california --seeds 0 --methods gce", {}, ("intervals.md", "intervals.jsonl"), data=True),
    "native_categories": Case(
        "FOLDER/data/tables --rows 60 --seeds 10",
        {"TABLES": ("one",), "FAMILIES": ("tree", "forest"), "RULES": first(1)},
        ("native_categories.md", "native_categories.jsonl"),
        data=True,
    ),
    "onnx_speed": Case("--sets california", {"BATCHES": (1, 3)}, ("onnx_speed.md", "onnx_speed.json"), data=True),
    "pruned": Case("--seeds 1", {"SIZES": (4, 2), "TIMES": 1}, ("pruned.md", "pruned.json"), data=True),
    "quantiles": Case(
        "--seeds 0 --models GCE --sets boston",
        {"RANDOM_ROWS": 50},
        ("quantiles.md", "quantiles.jsonl"),
        data=True,
    ),
    "redesign": Case(
        f"{ROOT}/src {ROOT}/src --turns 1",
        {"PROGRAMS": {"nothing": "import time; t = time.perf_counter()"}},
        ("redesign.md",),
        fits=False,
    ),
    "shap_speed": Case("--rows 12 --background 3", {"theirs": lambda *_: []}, ("shap.md",), data=True),
    "shard_encodings": Case("FOLDER --one 30", {"ROWS": 600, "TEST": 100, "FILE": 300, "GROUP": 100}),
    "shard_fits": Case(
        "sample --folder FOLDER", {"measured": measured, "write_rows": few_rows}, ("shard_fits.md", "shard_fits.json")
    ),
    "shard_forests": Case(
        "made-up --folder FOLDER",
        {"MADE_UP": (300, 60, 60), "PARTS": (2, 3), "TREES": 2, "SEEDS": (0,)},
        ("shard_forests.md", "shard_forests.json"),
    ),
    "shard_kills": Case(
        "--kills 0 --seed 11",
        {"ROWS": 10_000, "PARAMETERS": {"max_iter": 1, "n_iter_no_change": None}},
        ("shard_fits.json",),
    ),
    "shard_networks": Case(
        "samples --folder FOLDER",
        {"ROWS": 2000, "DRAWN": 500, "TEST_ROWS": 100, "SEEDS": (10,)},
        ("shard_networks.md", "shard_networks.json"),
    ),
    "small_models": Case("", {"SETS": ("california",)}, ("small_models.md",), needs=("catboost",), data=True),
    "small_sets": Case(
        "--only 'GCE default' --sets diabetes --splits 2",
        {},
        ("small_sets.md", "small_sets/GCE_default--diabetes.json"),
    ),
    "sparse_text": Case(
        "now",
        {"CORPORA": {"own": ("gce", "numpy", "scipy", "joblib")}, "TRAIN": 40, "TEST": 40},
        ("sparse_text.md", "sparse_text.jsonl"),
    ),
    "speed": Case("--quick --only oracle trees scaling", {}, ("speed_quick.md", "speed_quick.json")),
    "stack_accuracy": Case("answers --answers FOLDER --sets adult --rows 60 --seeds 0", {}, data=True),
    "stack_certainty": Case(
        "--answers FOLDER/data/answers", {"SMALL": first(1), "SPLITS": 1}, ("stack_certainty.md",), fits=False
    ),
    "stack_speed": Case(
        "--only selection --members 4 --rows 100 --classes 3 --rounds 2 --repeats 1",
        {},
        ("stack_speed.md", "stack_speed.json"),
        fits=False,
    ),
    "streams": Case("--seeds 1 --batches 3", {"learners": "ours", "ROWS": 30}, ("streams.md",), data=True),
    "surgery": Case("--seeds 1", {"SETS": first(1), "ROWS": 90, "SIZES": (3,)}, ("surgery.md", "surgery.jsonl")),
    "survival": Case("--seeds 1", {}, ("survival.md", "survival.json"), needs=("sksurv",)),
    "survival_choices": Case("--seeds 1", {}, ("survival_choices.md",), needs=("sksurv",)),
    "tabarena_gce": Case("--folder FOLDER", needs=("tabarena",)),
    "tables": Case("--models GCE --tables one --seeds 0", {}, ("tables.md", "tables/gce.jsonl"), data=True),
    "text_columns": Case("loans 5 text", {}, ("text_columns.md", "text_columns.jsonl"), data=True),
    "time_limits": Case(
        "sets --limits 2", {"SETS": ("california",)}, ("time_limits.md", "time_limits.json"), data=True
    ),
    "tree_oracles": Case(
        "",
        {"SETS": ("boston", "satimage"), "SEEDS": (0,), "TREES": (3,), "BOTH": 2, "ROWS": 60},
        ("tree_oracles.md",),
        data=True,
    ),
    "vector_leaves": Case("", {"SETS": ("iris",), "SEEDS": (10,)}, ("vector_leaves.md",)),
    "wide": Case("bins", {"ROWS": 40, "TEST_ROWS": 20, "COLUMNS": 8}),
    "working_memory": Case("", {"PROBLEMS": ((500, 1, 1),)}),
}


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A data folder with a few rows of every set and table."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 8))
    number, codes = X[:, 0] + X[:, 1] ** 2, (X[:, 2] > 0).astype(int) + (X[:, 3] > 1)
    for name in ("boston", "energy", "concrete", "kin8nm", "elevators", "bike_hour", "california", "protein"):
        np.savez(folder / f"{name}.npz", X=X, y=np.abs(number) + 1)
    for name in ("satimage", "magic", "letter", "electricity6", "covertype"):
        np.savez(folder / f"{name}.npz", X=X, y=codes)
    wide = np.column_stack([np.tile(rng.normal(size=90), 1), rng.integers(0, 3, (90, 13))]).astype(float)
    words = np.array(["red", "green", "blue"])
    of_categories = {"X": wide, "cat_cols": np.array([1, 3]), "cat_1": words, "cat_3": words}
    np.savez(folder / "adult.npz", y=(wide[:, 0] > 0).astype(int), **of_categories)
    np.savez(folder / "diamonds.npz", y=np.abs(number) + 1, **of_categories)
    (folder / "answers").mkdir()
    for name, labels in (("adult", 2), ("digits", 10)):
        held_out, test = rng.dirichlet(np.ones(labels), (2, 5, 40))[:, :2].swapaxes(0, 1)
        y = np.arange(40) % labels
        np.savez(folder / "answers" / f"{name}-0.npz", held_out=held_out, test=test, y_train=y, y_test=y)
    tables = folder / "tables"
    tables.mkdir()
    about = {"task": "regression", "split": "random", "key": None, "rows": 90, "dates": []}
    targets = {"one": "y", "loans": "interest_rate", "doctor_contacts": "mdu"}
    (tables / "tables.json").write_text(
        json.dumps({name: {**about, "target": target} for name, target in targets.items()})
    )
    for name, target in targets.items():
        titles = [f"chief of {words[i % 3]} things {i % 4}" for i in range(90)]
        frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
        frame = frame.assign(town=words[rng.integers(0, 3, 90)], emp_title=titles)
        frame.assign(**{target: np.round(np.abs(number))}).to_parquet(tables / f"{name}.parquet")
    return folder


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Modules of benchmarks of this test alone, whose results are in a folder of its own, on one thread."""
    names = {path.stem for path in FOLDER.glob("*.py")} - set(sys.stdlib_module_names)
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("GCE_BENCHMARK_RESULTS", str(tmp_path / "results"))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    (tmp_path / "results").mkdir()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    # scripts change constants of gce for a setting, in processes that end with it
    constants = {name: dict(vars(module)) for name, module in sys.modules.items() if name.split(".")[0] == "gce"}
    yield tmp_path
    torch.set_num_threads(threads)
    for name, own in constants.items():
        vars(sys.modules[name]).update(own)
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def loaded(name, monkeypatch):
    """A script as a module of its path: encodings is also a package of Python."""
    harness = importlib.import_module("harness")
    monkeypatch.setattr(harness, "call", called)
    spec = spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    if name not in sys.stdlib_module_names:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def called(function, *, threads=1, variables=None, **arguments):
    """`harness.call` in this process."""
    module, name = function.split(":")
    with pytest.MonkeyPatch.context() as patched:
        for key, value in (variables or {}).items():
            patched.setenv(key, value)
        try:
            answer = getattr(importlib.import_module(module), name)(**json.loads(json.dumps(arguments)))
        except Exception as error:
            return {"left_out": f"failed, {type(error).__name__}", "failed": True}
    return json.loads(json.dumps(answer))


def short_fits(monkeypatch):
    """Fits end after a few rounds."""
    for kind in (gce.GCERegressor, gce.GCEClassifier, gce.GCESurvival):

        def fit(self, *given, whole=kind.fit, **more):
            self.set_params(max_iter=min(self.max_iter, ROUNDS))
            return whole(self, *given, **more)

        monkeypatch.setattr(kind, "fit", fit)


def run(name, case, folder, monkeypatch):
    """Run a script as its command line does."""
    module = loaded(name, monkeypatch)
    for key, value in case.sizes.items():
        where, own = (importlib.import_module(key.split(".")[0]), key.split(".")[1]) if "." in key else (module, key)
        old = getattr(where, own, None)
        if isinstance(value, str) and hasattr(module, value):
            value = getattr(module, value)
        elif callable(value) and isinstance(old, dict | tuple):
            value = value(old)
        assert hasattr(where, own), f"{key} is no constant of {name}"
        monkeypatch.setattr(where, own, value)
    monkeypatch.setattr(sys, "argv", [name, *shlex.split(case.words.replace("FOLDER", str(folder)))])
    monkeypatch.chdir(folder)
    try:
        importlib.import_module("harness").run_script(module.main)
    except SystemExit as end:
        if end.code:
            raise


def test_every_script_has_a_case_and_every_other_module_is_imported_by_one():
    assert CASES.keys() == SCRIPTS - WORKERS
    for name in sorted(SCRIPTS - WORKERS):
        assert "run_script(main)" in (FOLDER / f"{name}.py").read_text(encoding="utf-8"), name
    imported = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    for path in FOLDER.glob("*.py"):
        if path.stem not in SCRIPTS | {"pictures"}:
            assert re.search(rf'(from|import) {path.stem}\b|"{path.stem}:', imported), path.stem


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_small_case_ends_and_writes_its_results(name, home, alone, monkeypatch):
    case = CASES[name]
    monkeypatch.setenv("GCE_DATA_HOME", str(home))
    shutil.copytree(home, alone / "data")
    short_fits(monkeypatch)
    missing = [package for package in case.needs if find_spec(package) is None]
    if missing or (case.gpu and not torch.cuda.is_available()):
        with pytest.raises((ImportError, SystemExit), match="|".join(missing) or "there is no GPU"):
            run(name, case, alone, monkeypatch)
        assert not list((alone / "results").iterdir())
        return
    run(name, case, alone, monkeypatch)
    for file in case.writes:
        assert (alone / "results" / file).read_text(encoding="utf-8").strip(), file


def planted(self, *given, **more):
    raise RuntimeError("a planted fault")


def faults():
    """Scripts that write results, each with the faults that it may meet."""
    for name, case in sorted(CASES.items()):
        yield from ((name, fault) for fault in ("fits", "data") if case.writes and getattr(case, fault))


@pytest.mark.parametrize(("name", "fault"), list(faults()))
def test_a_script_that_fails_changes_nothing_that_is_committed(name, fault, home, alone, monkeypatch):
    case, results = CASES[name], alone / "results"
    if fault == "fits":
        monkeypatch.setenv("GCE_DATA_HOME", str(home))
        for kind in (gce.GCERegressor, gce.GCEClassifier, gce.GCESurvival):
            monkeypatch.setattr(kind, "fit", planted)
        monkeypatch.setattr(gce.bases.Neural, "minimize", planted)
    else:
        short_fits(monkeypatch)
        monkeypatch.delenv("GCE_DATA_HOME", raising=False)
        for fetch in ("fetch_california_housing", "fetch_covtype", "fetch_openml"):
            monkeypatch.setattr(sklearn.datasets, fetch, planted)
    for file in case.writes:
        (results / file).parent.mkdir(exist_ok=True)
        (results / file).write_text("" if file.endswith(".jsonl") else "committed")
    if (results / "speed_quick.json").exists():
        (results / "speed_quick.json").unlink()
    before = {file: (results / file).read_bytes() for file in case.writes if (results / file).exists()}
    with pytest.raises((Exception, SystemExit)):
        run(name, case, alone, monkeypatch)
    assert {file: (results / file).read_bytes() for file in before} == before
