"""The figures of README are those of the committed results."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import accuracy_rows
import pictures
import tables_page
from accuracy_models import MODELS
from accuracy_ranks import critical_difference, ranks, set_ranks, wins
from accuracy_tables import ranked

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
LINES = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
RESULTS = ROOT / "benchmarks" / "results"
NUMBERS = {model: accuracy_rows.read(RESULTS / "accuracy", model) for model in MODELS}
TABLES = pictures._table_rows()


def of_numbers(title):
    """Models, losses (fits, models) and the table of each fit, of the nineteen tables."""
    held = ranked(NUMBERS)[title]
    return held.models, held.values, held.sets


def of_tables():
    """The same of the fourteen tables, without AutoGluon."""
    models = [model for model in tables_page.begun(TABLES) if model != pictures.AUTOGLUON]
    pairs = tables_page.common(TABLES, models, tables_page.MAIN)
    return models, tables_page.losses(TABLES, models, pairs, tables_page.MAIN), [name for name, _ in pairs]


def row(first, nth=0):
    """The cells of the table row that begins with these words, by the models of its head."""
    places = [i for i, line in enumerate(LINES) if line.startswith(f"| {first}")]
    at = places[nth]
    head = next(LINES[i] for i in range(at, 0, -1) if LINES[i].startswith("| |"))
    cells = [cell.strip(" *%") for cell in LINES[at].strip("|").split("|")[1:]]
    return dict(zip([cell.strip() for cell in head.strip("|").split("|")[1:]], cells, strict=True))


def assert_ranks(first, models, losses):
    shown = row(f"{first}, {len(losses)} fits")
    assert shown.keys() == set(models)
    for model, mean in zip(models, ranks(losses).mean(0), strict=True):
        # half a unit of the last digit, and whether an exact half is rounded up or down
        assert abs(float(shown[model]) - mean) <= 0.005 + 1e-9, model


def assert_wins(nth, models, losses):
    shown = row("fits that GCE wins", nth)
    for j, model in enumerate(models[1:], 1):
        assert abs(float(shown[model]) - 100 * wins(losses[:, 0], losses[:, j]).rate) <= 0.5 + 1e-9, model


def test_mean_ranks_and_wins():
    models, losses, _ = of_numbers("RMSE or error")
    assert_ranks("mean rank by RMSE or error", models, losses)
    assert_wins(0, models, losses)
    assert_ranks("mean rank by log-loss", *of_numbers("log-loss")[:2])
    models, losses, _ = of_tables()
    assert_ranks("mean rank by RMSE or log-loss", models, losses)
    assert_wins(1, models, losses)


def alike(found):
    """The models whose mean rank over tables is within the critical difference of GCE's, and that difference."""
    models, losses, sets = found
    mean = set_ranks(losses, sets).mean(0)
    difference = critical_difference(len(models), len(set(sets)))
    assert mean.argmin() == models.index("GCE")
    return {model for model, one in zip(models, mean, strict=True) if 0 < one - mean.min() < difference}, difference


def test_leads_that_are_not_significant_are_said_to_be_so():
    by_error, far = alike(of_numbers("RMSE or error"))
    by_chance, farther = alike(of_numbers("log-loss"))
    assert (by_error, by_chance) == ({"CatBoost"}, {"CatBoost", "LightGBM"})
    assert f"differ if they are {far:.2f} apart for RMSE or error, and {farther:.2f} for log-loss" in README
    assert "not distinguishable from CatBoost by either, nor from LightGBM by log-loss" in README
    on_tables, difference = alike(of_tables())
    assert on_tables == {"CatBoost"}
    assert f"critical difference is {difference:.2f}: again all models but CatBoost are distinguishable" in README
    assert "its lead over CatBoost is not significant at the 5 % level" in README


def test_seconds_beside_autogluon():
    pairs = tables_page.common(TABLES, ["GCE", pictures.AUTOGLUON], tables_page.MAIN)
    losses = tables_page.losses(TABLES, ["GCE", pictures.AUTOGLUON], pairs, tables_page.MAIN)
    won = wins(losses[:, 0], losses[:, 1]).won
    ours, theirs = (sum(TABLES[model][pair]["fit_seconds"] for pair in pairs) for model in ("GCE", pictures.AUTOGLUON))
    assert f"GCE wins {won} of {len(pairs)} on the first split" in README
    assert f"its fits took {ours:.0f} s together, AutoGluon's {theirs:,.0f} s" in README


def test_seconds_beside_catboost():
    tables, numbers = (np.array(list(pictures.relative_seconds(rows).values())) for rows in (TABLES, NUMBERS))
    mean, other = (np.exp(np.log(ratios).mean()) for ratios in (tables, numbers))
    words = (
        f"{mean:.2f} times as long as CatBoost's on {len(tables)} of these tables (geometric mean; at most "
        f"{tables.max():.1f} times), and {other:.2f} times on {len(numbers)} of the nineteen tables of numbers "
        f"(at most {numbers.max():.1f} times, where it takes a second)"
    )
    assert words in README
    slowest = max(pictures.relative_seconds(NUMBERS).items(), key=lambda pair: pair[1])[0]
    assert NUMBERS["GCE"][slowest, 0]["fit_seconds"] == pytest.approx(1, abs=0.1)


def test_seconds_on_a_gpu():
    first, again, *_ = (fit["wall"] for fit in json.loads((RESULTS / "gpu_fits.json").read_text()))
    assert re.search(rf"300,000 rows of 28 numbers take {again:.1f} s, the first time {first:.0f} s", README)
