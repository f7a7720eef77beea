"""The benchmark of rows in files: the model of what a round costs, its page, its rows and its slow links."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import shard_costs as costs
import shard_fits
import shard_rows
import slow_link
from shard_page import page

PLANTED = {"each": 2e-3, "row": 5e-8, "beyond": 1e-7, "message": 6e-4, "cached": 7e5}
CORES = 2


def sums():
    """Sums over hosts that add up in pairs."""
    found = {}
    for size in (2, 4, 8, 16):
        took = {str(count): 0.02 * costs.round_trips(size) + count * 1e-8 for count in (1024, 131_072)}
        found[f"{size} hosts"] = {"seconds": took, "processes": size, "round_trip": 0.02, "rate": 1.25e8}
    return found


def fits(planted):
    """Rounds that take what the model says, with numbers of messages as they come."""
    rng, found = np.random.default_rng(0), {}
    for rows in (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000):
        for size in (1, 2, 4):
            calls, sent = (int(rng.integers(300, 1200)), int(rng.integers(1e8, 2e8))) if size > 1 else (0, 0)
            own = {"rows": rows, "processes": size, "rounds": 30, "calls": calls, "bytes": sent}
            own |= {"seconds": 9.0, "in_sums": 0.1, "memory": 1e9}
            found[f"{rows} rows, {size}"] = own | {"in_rounds": 30 * planted.predicted(own, CORES)}
    return found


def linked(planted):
    own = {"rows": 1_000_000, "processes": 4, "rounds": 30, "calls": 600, "bytes": 180_000_000, "seconds": 50.0}
    own |= {"link": "1 Gbit/s, 10 ms", "round_trip": 0.0204, "rate": 1.2e8, "in_sums": 20.0, "memory": 1e9}
    own |= {"carried": {"packets": 10, "bytes": 100, "lost": 0, "processor_seconds": 1.0}}
    return {"a link": own | {"in_rounds": 30 * planted.predicted(own, CORES)}}


def test_the_fit_of_the_model_finds_the_constants_that_made_the_rounds():
    planted = costs.Costs(**PLANTED)
    found = costs.Costs.fit(fits(planted).values(), CORES)
    for name, value in PLANTED.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-3), name
    assert costs.errors(found, linked(planted).values(), CORES) == pytest.approx([0.0], abs=1e-3)


def test_a_round_of_the_model_by_hand():
    planted = costs.Costs(**PLANTED)
    own = {"rows": 1_000_000, "processes": 4, "rounds": 10, "calls": 100, "bytes": 1e7, "round_trip": 0.02, "rate": 1e8}
    # two processes per core, two steps of pairs, ten messages and a million bytes per round
    alone = 2 * (2e-3 + 5e-8 * 250_000 + 1e-7 * 75_000 + 6e-4 * 20)
    assert planted.predicted(own, CORES) == pytest.approx(alone + 20 * 0.02 + 2e6 / 1e8)


def test_a_sum_takes_as_many_round_trips_as_the_cube_has_dimensions():
    assert [costs.round_trips(size) for size in (1, 2, 3, 4, 8, 12, 16)] == [0, 1, 3, 2, 3, 5, 4]


def test_the_page_shows_what_there_is():
    planted = costs.Costs(**PLANTED)
    held = {"machine": "a machine", "cores": CORES, "processes": fits(planted)}
    assert "| 250000 rows, 1 |" in page(held)
    held |= {"sums": sums(), "links": linked(planted)}
    text = page(held)
    for words in ("50 ns for a row, 100 ns more", "beyond the 700,000 that", "0.60 ms for a message"):
        assert words in text.replace("\n", " ")
    assert "nothing was fitted: median 0 %, worst 0 %" in text
    assert text.count("| 512 machines |") == 1


def test_a_part_that_was_killed_keeps_what_it_measured(tmp_path):
    run = shard_fits.Run(tmp_path, 10)
    assert run.kept("links", "a", lambda: {"seconds": 1}) == {"seconds": 1}
    assert run.kept("links", "a", lambda: {"seconds": 2}) == {"seconds": 1}
    assert run.kept("links", "b", lambda: {"seconds": 3}) == {"seconds": 3}


def test_every_part_has_the_figures_that_the_page_shows(monkeypatch, tmp_path):
    planted, asked = costs.Costs(**PLANTED), []

    def measured(size, settings):
        asked.append(settings)
        rows = int(settings["files"].split()[1])
        own = {"rows": rows, "processes": size, "rounds": 30, "calls": 300 * (size > 1), "bytes": 1e8 * (size > 1)}
        own |= {"seconds": 9.0, "in_sums": 0.1, "memory": 1e9, "rmse": 0.8, "r2": 0.78}
        return own | {"in_rounds": 30 * planted.predicted(own, CORES)}

    def linked(size, link, settings):
        own = sums()[f"{size} hosts"] | {"link": link, "carried": {"lost": 0, "processor_seconds": 1.0}}
        return own if "sums" in settings else measured(size, settings) | {**own, "seconds": 9.0}

    monkeypatch.setattr(shard_fits, "measured", measured)
    monkeypatch.setattr(shard_fits, "linked", linked)
    monkeypatch.setattr(shard_fits, "write_rows", lambda folder, rows, *_, **about: f"rows {rows} of {about}")
    run = shard_fits.Run(tmp_path, 200_000)
    held = {"machine": "a machine", "cores": CORES} | {name: part(run) for name, part in shard_fits.PARTS.items()}
    text = page(held)
    for title in ("Processes of", "Sums over", "Fits on", "A billion", "8 GB", "A million rows", "200,000 rows"):
        assert f"## {title}" in text
    assert [settings["lightgbm"] for settings in asked if "lightgbm" in settings] == [{}, {"n_estimators": 400}]
    # all of it is kept for a run that goes on
    count = len(asked)
    assert {name: part(run) for name, part in shard_fits.PARTS.items()}.items() <= held.items()
    assert len(asked) == count


def explained(column, y):
    """The share of the variance that is that of the means in 20 runs of a sorted column."""
    runs = np.array_split(y[np.argsort(column, kind="stable")], 20)
    return np.var([run.mean() for run in runs]) / np.var(y)


def test_every_column_of_the_additive_target_counts_by_itself():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 100_000))
    shares = {name: np.array([]) for name in ("additive", "products")}
    for name in shares:
        y = shard_rows.TARGETS[name](X, rng)
        shares[name] = np.array([explained(column, y) for column in X])
    # by chance: 20 means of 5,000 rows each
    chance = 20 / 100_000
    assert shares["additive"][:15].min() > 10 * chance
    assert shares["additive"][15:].max() < 4 * chance
    assert shares["products"][1:3].max() < 4 * chance


def test_the_noise_of_the_additive_target_leaves_four_fifths():
    X = np.random.default_rng(0).normal(size=(30, 200_000))
    y, again = (shard_rows.additive(X.copy(), np.random.default_rng(seed)) for seed in (1, 2))
    assert np.corrcoef(y, again)[0, 1] == pytest.approx(0.8, abs=0.01)


def can_make_hosts():
    if not (hasattr(os, "geteuid") and os.geteuid() == 0 and Path("/dev/net/tun").exists()):
        return False
    words = ["unshare", "--net", "true"]
    return (
        all(map(shutil.which, ("ip", "cc", "sysctl", words[0]))) and not subprocess.run(words, check=False).returncode
    )


@pytest.mark.skipif(not can_make_hosts(), reason="needs root, /dev/net/tun, ip and a C compiler")
def test_packets_arrive_no_sooner_than_the_link_lets_them_and_nothing_is_left():
    with slow_link.Hosts(2, slow_link.Line(bits=1e9, delay=2e-3), limit=60) as hosts:
        found = hosts.check()
        names = list(hosts.names)
        assert all(Path("/run/netns", name).exists() for name in names)
    assert found["round_trip"] >= 4e-3
    # all bytes of a transfer need their time, and the model of the line adds the delay once
    assert found["rate"] <= 1.02 * 1e9 / 8
    assert hosts.carried["bytes"] > slow_link.OPENING + slow_link.BULK
    assert not any(Path("/run/netns", name).exists() for name in names)
