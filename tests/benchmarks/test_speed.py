"""The speed benchmark: its sections can begin, and what it says was measured is what was measured."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

# speed.py imports every section
pytest.importorskip("threadpoolctl")

import first_use
import harness
import large_rows
import models
import numpy as np
import oracle
import serving
import speed
import torch
import tree_kernels
from data_sets import made_up

from gce._utils.random import RoundStreams
from gce.bases import FitContext
from gce.bases.objectives import Linear
from gce.bases.trees.grower import GrownTrees, Scratch
from gce.bases.trees.tree_data import Constraints, Sampling

FIGURES = dict.fromkeys(serving.FIGURES, 2.0)


def test_every_section_is_in_the_script_s_own_words():
    assert all(f"- {name}: " in speed.__doc__ for name in speed.SECTIONS)


@pytest.mark.parametrize(("name", "nodes"), [("best-first, 63 leaves", 125), ("symmetric, depth 6", 127)])
def test_trees_that_are_timed_are_as_large_as_they_may_be(name, nodes):
    data = tree_kernels.tree_data(tree_kernels.QUICK_ROWS)
    assert data.codes.shape == (5, tree_kernels.QUICK_ROWS, 4)
    sampling = Sampling(np.zeros(1, np.uint64), np.empty(0, np.uint64), 1.0, tree_kernels.COLUMNS)
    grown = GrownTrees(data, tree_kernels.SHAPES[name], sampling, Constraints(), Scratch())
    assert grown.size.item() == nodes


def test_instruction_sets_are_asked_for_in_the_process_that_is_timed():
    result = harness.call("tree_kernels:tree_times", threads=1, variables={"GCE_CPU": "none"}, level="none", n=100)
    assert result == {"left_out": "the processor does not have it", "possible": False}


def test_ratios_are_ours_by_theirs_and_other_libraries_load_no_torch():
    theirs = {**FIGURES, "load_seconds": 4.0, "beyond_torch_seconds": None}
    assert serving._ratios(FIGURES, theirs) == ["1.00"] * 7 + ["0.50", "0.50"]
    assert serving._ratios(FIGURES, {"left_out": "missing"}) == [""] * 9


def test_medians_are_of_each_figure_and_a_failure_is_told():
    results = [{"seconds": second, "torch": None} for second in (3.0, 1.0, 2.0)]
    assert serving._medians(results) == {"seconds": 2.0, "torch": None}
    assert serving._medians([*results, {"left_out": "failed"}]) == {"left_out": "failed"}


def test_a_first_row_is_predicted_from_a_file_of_each_library(tmp_path):
    X, y = made_up(60, True)
    np.save(tmp_path / "row.npy", X[:1])
    for name in serving.SERVED.values():
        module = models.MODELS[name].module
        pytest.importorskip(module)
        path = str(tmp_path / f"model.{serving.SUFFIX[module]}")
        short = {"max_atoms": 2, "cv": None, "basis": "tree"} if module == "gce" else models.MODELS[name].short
        serving._save(models.make(name, True, **short).fit(X, y), module, path)
        told = first_use.first_row(module, path, str(tmp_path / "row.npy"), True)
        assert told["file_bytes"] == Path(path).stat().st_size
        assert (told["beyond_torch_seconds"] is None) == (module != "gce")


class Recorder:
    """A model that predicts 0 and keeps the rows it saw."""

    def fit(self, X, y):
        self.fitted = X

    def predict(self, X):
        self.judged = X
        return np.zeros(len(X))


def test_rows_that_judge_a_limited_fit_are_fresh(monkeypatch):
    model = Recorder()
    monkeypatch.setattr(large_rows, "make", lambda *_, **__: model)
    told = large_rows.limited("GCE default", 200, 50, 0.5)
    X, y = made_up(250, True)
    np.testing.assert_array_equal(np.concatenate([model.fitted, model.judged]), X)
    assert len(model.judged) == 50
    assert told["rmse"] == pytest.approx(np.sqrt(np.mean(y[200:] ** 2)))


def test_the_oracle_is_timed_beside_plain_autograd_that_trains_the_same_networks():
    shape = asdict(oracle.Shape("small", 40, 3, 1, None, members=2))
    found = oracle.epoch_times(shape, "cpu", quick=True)
    assert found.keys() == oracle.BASES.keys()
    X, gradient = torch.randn(40, 3, dtype=torch.float64), torch.randn(2, 40, 1, dtype=torch.float64)
    objective = Linear(gradient, torch.ones(1, dtype=torch.float64))
    with torch.no_grad():
        outputs = [
            kind(hidden=4, max_epochs=5, patience=10**9)
            .minimize(objective, X, rng=RoundStreams((0,), ((0, 0), (0, 1)), (0, 1)), context=FitContext())
            .atoms(X)
            for kind in oracle.BASES.values()
        ]
    torch.testing.assert_close(*outputs, rtol=1e-8, atol=1e-10)


def test_a_section_with_empty_cells_is_lacking_unless_the_processor_makes_them_so():
    cells = [{"seconds": 1.0}, {"left_out": "no data"}, {"left_out": "no such instructions", "possible": False}]
    assert speed.lacking({"cells": cells}) == ["no data"]


def test_sections_of_another_machine_are_replaced_together_or_not_at_all(tmp_path):
    path = tmp_path / "speed.json"
    path.write_text(json.dumps({"machine": "one", "sections": {"oracle": 1, "trees": 2}}))
    assert speed.earlier(path, "one", ["oracle"]) == {"oracle": 1, "trees": 2}
    assert speed.earlier(path, "two", ["oracle", "trees"]) == {}
    with pytest.raises(SystemExit, match="its sections trees would be lost"):
        speed.earlier(path, "two", ["oracle"])
