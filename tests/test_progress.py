"""The bar's remaining time: never more than the rounds or the clock allow, and worded as a limit."""

import io
import sys

import numpy as np
import pytest
import torch
from rich.console import Console

from gce import GCERegressor
from gce.bases import Neural
from gce.frank_wolfe.step import Step
from gce.training.callbacks import FamilyTurn, TimeLimit
from gce.training.progress import ProgressBar, RemainingEstimate, describe_step, format_duration


def step(t, seconds, calls=None):
    one = torch.full((2,), 0.12341)
    calls = torch.tensor([t, t] if calls is None else calls)
    return Step(t, [0, 1], one, one, False, one[:, None], one, None, calls, seconds, one)


def test_no_seconds_are_promised_before_a_pace_is_known():
    remaining = RemainingEstimate(100, 50)
    assert remaining.seconds(step(1, 20.0)) is None
    assert remaining.seconds(step(2, 21.0)) == pytest.approx(48 * 1.0)  # the first round, which compiles, is no measure


def test_the_slower_of_two_paces_counts():
    slowing, quickening = RemainingEstimate(100, np.inf), RemainingEstimate(100, np.inf)
    for t in range(1, 21):
        slower = slowing.seconds(step(t, float(t**2)))
        quicker = quickening.seconds(step(t, float(np.sqrt(t))))
    assert slower == pytest.approx(80 * (20**2 - 10**2) / 10)  # the last ten rounds
    assert quicker == pytest.approx(80 * (np.sqrt(20) - 1) / 19)  # all of them


def test_the_clock_is_a_limit_too():
    remaining = RemainingEstimate(10**6, np.inf, TimeLimit(5.0))
    assert 0 < remaining.seconds(step(1, 1.0)) <= 5
    assert 0 < remaining.seconds(step(2, 2.0)) <= 5
    assert RemainingEstimate(10, 10, TimeLimit(0.0)).seconds(step(1, 1.0)) == 0


@pytest.mark.parametrize(
    ("max_iter", "max_calls", "t", "calls", "left"),
    [
        (1000, 100, 7, [7, 7], 93),
        (50, 100, 7, [7, 7], 43),
        (1000, np.inf, 7, [7, 7], 993),
        (1000, 100, 60, [20, 30], 240),  # a blended fit: one call in three rounds
        (10, 10, 10, [10, 10], 0),
    ],
)
def test_rounds_left(max_iter, max_calls, t, calls, left):
    assert RemainingEstimate(max_iter, max_calls).rounds(step(t, 1.0, calls)) == left


def test_spans_are_rounded_up():
    assert [format_duration(s) for s in (0, 0.2, 59.5, 760, 11100)] == ["0:00", "0:01", "1:00", "12:40", "3:05:00"]


def test_a_line_of_the_log_names_the_round():
    now, means = step(3, 1.0), {"validation": 0.12341, "risk": 0.1, "gap_lower": 0.0123}
    assert describe_step(now, means) == "round 3  validation 0.1234  risk 0.1  gap >= 0.0123  members 2"
    placed = FamilyTurn("tree", 40, 5.0, 100, 100).renumber(now)
    assert describe_step(placed, means).startswith("tree round 3 (43 in all)  validation")
    assert (placed.t, placed.own_t, placed.seconds) == (43, 3, 6.0)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_bar_stays_on_one_line(monkeypatch, width):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with ProgressBar({"neural": 100}) as bar:
        bar.begin_family(FamilyTurn(None, 0, 0.0, 1000, 100))
        for t in range(1, 4):
            assert not bar(step(t, float(t)))
        console = Console(file=io.StringIO(), width=width)
        console.print(bar._bar.get_renderable())
    lines = console.file.getvalue().rstrip("\n").splitlines()
    assert len(lines) == 1
    assert "3/100" in lines[0]
    assert "at most 1:37 left" in lines[0]
    assert ("members 2" in lines[0]) == (width == 120)


def test_a_fit_draws_it(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    X = np.random.default_rng(0).normal(size=(30, 2))
    basis = Neural(hidden=3, max_epochs=3)
    GCERegressor(basis=basis, max_atoms=2, cv=2, verbose=True, random_state=0, time_limit=60).fit(X, X[:, 0])
    assert "first round" in sys.stderr.getvalue()
    assert "gap >=" in sys.stderr.getvalue()
