"""The house rules: imports go one way, files stay short, and the core needs five packages."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "gce"
ORDER = [
    "datasets", "extras", "parameters", "clock", "compiling", "kernels", "passes", "rowwise", "native", "memory",
    "rows", "links", "losses", "risk", "line_search", "weighting", "coefficients", "objectives", "streams", "parts",
    "trees", "basis", "ensemble", "active_set", "algorithms", "callbacks", "progress", "trackers", "hooks", "fitting",
    "nongreedy", "table", "members", "scoring", "calibration", "settings", "families", "mixing", "turns", "responses",
    "reading", "theory", "storage", "export", "plotting", "explaining", "report", "writing", "base", "surgery",
    "greedy", "jointly", "tasks", "estimators", "stacking", "loading", "cli", "__main__",
]  # fmt: skip
FILES = sorted(SOURCE.rglob("*.py"))
PAPER = sorted((SOURCE.parents[1] / "paper").rglob("*.py"))


def room(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gce":
            names = [node.module.split(".")[1]] if "." in node.module else [alias.name for alias in node.names]
            yield from names


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    if room(path) == "__init__":
        return
    here = ORDER.index(room(path))
    assert all(ORDER.index(name) <= here for name in imported(path))


@pytest.mark.parametrize("path", FILES + PAPER, ids=lambda p: str(p.relative_to(SOURCE.parents[1])))
def test_files_and_functions_are_short(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False)
            length = node.end_lineno - node.lineno + 1 - (doc.count("\n") + 1 if doc else 0)
            assert length <= 60, node.name


PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"rich", "matplotlib", "pandas", "cvxpy", "hypothesis", "numba"}:
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
