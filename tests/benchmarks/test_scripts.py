"""Benchmarks that run for hours: whether they can begin, and whether what they replace inside the package is there."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import gce
from gce.training.families import default_bases

FOLDER = Path(__file__).parents[2] / "benchmarks"


def imported(name, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    # by its path: encodings is also a package of Python
    spec = spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_every_script_can_be_imported(name, monkeypatch):
    try:
        imported(name, monkeypatch)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] == "gce":
            raise
        pytest.skip(f"{error.name} is not installed")


def test_variants_of_the_ablation_have_parameters_that_exist(monkeypatch):
    for variant in imported("ablation", monkeypatch).VARIANTS.values():
        variant(default_bases(500, 10))


def test_limits_of_time_are_measured_where_the_benchmark_replaces_the_clock(monkeypatch):
    for name in imported("time_limits", monkeypatch).TIMED:
        assert hasattr(importlib.import_module(f"gce.{name}"), "time")


def test_tables_are_made_where_the_benchmark_of_encodings_replaces_them(monkeypatch):
    module, made = imported("encodings", monkeypatch), []

    def counted(*parts):
        made.append(parts)
        return module.of_variance_1(module.Table(*parts))

    monkeypatch.setattr(module._encoding, "Table", counted)
    X = np.column_stack([np.linspace(0, 1, 60), np.arange(60) % 3])
    gce.GCERegressor(basis="tree", max_atoms=2, cv=None, categorical_features=[1]).fit(X, X[:, 0])
    assert len(made) == 1
