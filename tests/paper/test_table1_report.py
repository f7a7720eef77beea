"""The tables of Table 1: cells are chosen by validation, missing ones stay blank, ranks are those one would write."""

import json
import math

import pytest

from paper.ledger import Ledger
from paper.methods import METHODS
from paper.table1_cells import gather, mean_and_error, ranks
from paper.table1_report import FIGURES, write_report


def put(folder, name, split, method, entries, **more):
    """Fits ``(settings, validation, test)`` of a grid of so many."""
    ledger = Ledger(folder / f"{name}.jsonl")
    for x, validation, test in entries:
        key = {"set": name, "split": split, "method": method, "seed": 0, "settings": {"x": x}}
        result = {"validation": validation, "test": test, "seconds": 1.0, "metric": "error", "machine": "m"}
        ledger.once(key, lambda result=result: {**result, "of": len(entries), **more})


def put_search(folder, name, split, method, trials, test):
    key = {"set": name, "split": split, "method": method, "seed": 0, "budget": f"{trials} trials"}
    record = {"validation": 0.0, "test": test, "seconds": 3.0, "metric": "error", "machine": "m", "trials": trials}
    record |= {"fits": trials, "settings": {"depth": trials}, "validations": [], "stages": {}, "rounds": 9}
    Ledger(folder / f"{name}.jsonl").once(key, lambda: record)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "table1"
    Ledger(path / "machines.jsonl").once({"cpu": "a processor", "cores": 2, "jobs": 1}, lambda: {"name": "m"})
    return path


def test_the_least_validation_error_decides_and_the_first_of_equals(folder):
    put(folder, "iris", "paper", "nn", [(0, 4.0, 1.0), (1, 3.0, 9.0), (2, 3.0, 2.0), (3, None, 0.0)])
    cell = gather(folder)["iris", "paper", "nn"]
    assert (cell.test, cell.validation, cell.settings, cell.trials) == (9.0, 3.0, {"x": 1}, 4)


def test_the_longest_search_counts(folder):
    put_search(folder, "iris", "paper", "xgb", 20, 1.0)
    put_search(folder, "iris", "paper", "xgb", 63, 2.0)
    put_search(folder, "iris", "paper", "xgb", 8, 3.0)
    cell = gather(folder)["iris", "paper", "xgb"]
    assert (cell.test, cell.trials, cell.more) == (2.0, 63, {"rounds": 9})


def test_missing_and_unfinished_cells(folder):
    put(folder, "iris", "paper", "gce", [(0, None, 6.25)])
    put(folder, "iris", "paper", "nn", [(0, 1.0, 2.0)], of=14)
    put(folder, "wine", 0, "gce", [(0, None, 1.0)])
    text = write_report(folder, {name: METHODS[name] for name in ("gce_paper", "gce", "xgb", "nn", "ngce")})
    row = next(line for line in text.splitlines() if line.startswith("| iris"))
    assert [part.strip() for part in row.split("|")[1:-1]] == [
        "iris",
        "- (0)",
        "6.25 (0.00, +6.25)",
        "- (6.67)",
        "2.00 after 1 of 14 (3.33, -1.33)",
        "- (10)",
    ]
    assert "a processor" in text
    assert (folder.parent / "table1.md").read_text() == text


def test_an_empty_folder_is_reported_too(tmp_path):
    assert "On the paper's split" in write_report(tmp_path / "table1", METHODS)
    assert not (tmp_path / "table1.png").exists()


def test_targets_that_were_floored_stand_beside_the_papers_figure(folder):
    for name, test in (("ca_housing", 0.3), ("ca_housing_floored", 0.5)):
        put(folder, name, "paper", "gce", [(0, None, test)], metric="mae", note=f"note of {name}")
    lines = write_report(folder, METHODS).splitlines()
    rows = [line.split("|") for line in lines if line.startswith("| ca_housing")]
    assert rows[0][3].strip() == "0.500 (0.435, +0.065)"
    assert rows[1][3].strip() == "0.300"
    assert "ca_housing: note of ca_housing." in lines


def test_means_errors_and_ranks_are_those_done_by_hand(folder):
    tests = {"gce": [1.0, 2.0, 6.0], "xgb": [1.0, 3.0, 4.0], "rf": [5.0, 2.0, 2.0]}
    for method, values in tests.items():
        for split, value in enumerate(values):
            put(folder, "iris", split, method, [(0, 0.0, value)])
    put(folder, "iris", 3, "gce", [(0, 0.0, 50.0)])
    found = ranks(gather(folder), "iris", list(tests))
    # splits: 1.5 1.5 3, 1.5 3 1.5, 3 2 1; the fourth lacks two methods
    assert found == (pytest.approx([2.0, 6.5 / 3, 5.5 / 3]), 3)
    mean, error = mean_and_error(tests["gce"])
    assert (mean, error) == (3.0, pytest.approx(math.sqrt(7 / 3)))
    assert mean_and_error([4.0]) == (4.0, None)
    methods = {name: METHODS[name] for name in tests}
    text = write_report(folder, methods)
    assert "| 14.75 ± 11.80 | 2.67 ± 0.88 (3 splits) | 3.00 ± 1.00 (3 splits) |" in text
    assert "| **mean** | **2.00** | **2.17** | **1.83** |" in text
    content = json.loads((folder.parent / "table1.json").read_text())
    assert content["mean_ranks"] == [pytest.approx({"gce": 2.0, "xgb": 6.5 / 3, "rf": 5.5 / 3})]
    assert len(content["cells"]) == 10
    assert (folder.parent / "table1.png").stat().st_size > 5000


def test_the_papers_table_is_whole():
    assert len(FIGURES) == 12
    best = {name: min(figures) for name, figures in FIGURES.items()}
    # what the paper prints in bold
    wins = sum(figures[0] == best[name] for name, figures in FIGURES.items())
    assert wins == 8
