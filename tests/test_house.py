"""The house rules: imports go one way and are few, files stay short, classes are shallow."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gce
import processors

SOURCE = Path(__file__).parents[1] / "src" / "gce"
#: Packages from the ground up: each may import those before it, and none after it.
ORDER = [
    "_utils", "distributed", "preprocessing", "losses", "bases", "frank_wolfe", "training", "io", "theory",
    "inspection", "datasets", "estimators", "cli", "integrations",
]  # fmt: skip
#: Modules at the top: the public names, and ``python -m gce``.
TOP = ["__init__", "__main__", "py"]
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = SOURCE.parents[1]
ELSEWHERE = sorted(
    path
    for folder in ("paper", "benchmarks", "campaign", "examples", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
#: Packages where a model's kind is never asked for: it is what its result says.
ONE_KIND = ("estimators", "training", "io", "inspection")
KINDS = ("ConvexStacking", "GCE", "GreedySelection", "NGCE", "NN")
ESTIMATORS = [kind + task for kind in KINDS for task in ("Classifier", "Regressor")]


def package(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported(path):
    """Packages of ours that a file imports, anywhere in it: inside functions and by name as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # as in import_module("gce.x.y")
            names = [node.value] if re.fullmatch(r"gce(\.\w+)+", node.value) else []
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "sys.modules":
            names = [ast.literal_eval(node.slice)]
        for name in names:
            if name == "gce" or name.startswith("gce."):
                yield name.split(".")[1] if "." in name else ""


def test_there_are_few_packages():
    found = {package(path) for path in FILES}
    assert found - set(TOP) <= set(ORDER)
    # beside those of the library: classes for other libraries, which are on top and which no reader of a fit meets
    assert ORDER[-1] == "integrations"
    assert len(ORDER[:-1]) <= 13


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    if package(path) in TOP:
        return
    here = ORDER.index(package(path))
    upward = [name for name in imported(path) if name not in ORDER[: here + 1]]
    assert not upward, f"imports {upward}"


def test_files_that_run_as_other_processors_exist():
    missing = [name for name in processors.FILES if not (ROOT / "tests" / f"test_{name}.py").exists()]
    assert not missing


def loaded(statement):
    """Modules of ours that a statement loads in a process of its own."""
    program = f"import sys\n{statement}\nsys.stdout.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if name == "gce" or name.startswith("gce.")]


def test_importing_gce_loads_few_modules():
    assert len(loaded("import gce")) <= 60


def test_importing_an_estimator_loads_no_more_modules_than_it_did():
    # the losses of counts and of several quantiles are two more than there were, that of times one
    assert len(loaded("from gce import GCERegressor")) <= 164


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_at_most_four_classes_of_ours(name):
    ours = [kind.__name__ for kind in getattr(gce, name).__mro__ if kind.__module__.split(".")[0] == "gce"]
    assert len(ours) <= 4, ours


MODEL_FILES = [str(path.relative_to(SOURCE)) for path in FILES if package(path) in ONE_KIND]


def calls(path, function):
    """Every call of a builtin function in a file."""
    for node in ast.walk(ast.parse((SOURCE / path).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield node


@pytest.mark.parametrize("path", MODEL_FILES)
def test_no_model_asks_which_attributes_it_has(path):
    asked = [ast.unparse(call) for call in calls(path, "hasattr") if ast.unparse(call.args[0]) == "self"]
    assert not asked


@pytest.mark.parametrize("path", MODEL_FILES)
def test_no_fit_or_result_is_asked_for_its_kind(path):
    kinds = re.compile(r"\b\w*(Fit|Fitted|FitResult|Result)\b")
    asked = [ast.unparse(call) for call in calls(path, "isinstance") if kinds.search(ast.unparse(call.args[1]))]
    subjects = re.compile(r"\b_?(fit|result)_?$")
    asked += [ast.unparse(call) for call in calls(path, "isinstance") if subjects.search(ast.unparse(call.args[0]))]
    assert not asked


@pytest.mark.parametrize("path", FILES + ELSEWHERE, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 900
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            assert length <= 60, node.name


PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"rich", "matplotlib", "pandas", "cvxpy", "hypothesis", "autogluon"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import numpy as np
import gce
X = np.random.default_rng(0).normal(size=(30, 2))
gce.GCERegressor(max_atoms=2, random_state=0).fit(X, X[:, 0]).predict(X)
"""


def test_a_fit_needs_no_optional_package():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
