"""The page of benchmarks/shard_fits.py."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np


def machine() -> str:
    """What this machine is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def add(path: Path, found: dict[str, Any]) -> None:
    """Add figures to a file, and make the page beside it."""
    known = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(known | found | {"machine": machine()}, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(json.loads(path.read_text())))


#: Links between machines: bytes per second, and seconds of a message.
LINKS = {"10 Gbit/s, 0.1 ms": (1.25e9, 1e-4), "1 Gbit/s, 10 ms": (1.25e8, 1e-2)}
CORES = 16


def seconds_per_row(found: dict[str, Any]) -> list[float]:
    """What a row costs in a round, of fits of one process."""
    entries = [entry for entry in found.values() if entry["processes"] == 1]
    return [entry["in_rounds"] / entry["rounds"] / entry["rows"] for entry in entries]


def predicted(found: dict[str, Any]) -> list[str]:
    """A billion rows of 100 columns, from what was measured of 30 columns."""
    row, last = max(seconds_per_row(found)), list(found.values())[-1]
    sums, size = last["calls"] / last["rounds"], last["bytes"] / last["rounds"] * 100 / 30
    lines = ["", "| | " + " | ".join(LINKS) + " |", "|---|" + "---:|" * len(LINKS)]
    for machines in (8, 64, 512):
        processes, cells = machines * CORES, []
        for speed, delay in LINKS.values():
            alone = row * 100 / 30 * 1e9 / processes
            together = 2 * size / speed + sums * delay * np.log2(machines)
            cells.append(f"{alone + together:.2f} s, {100 * together / (alone + together):.0f} % sums")
        lines.append(f"| {machines} machines | " + " | ".join(cells) + " |")
    return lines


def table(entries: dict[str, Any]) -> list[str]:
    lines = [
        "| | fit, s | a round, ms | of it sums, ms | sums | MB | memory, GB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, own in entries.items():
        rounds = own["rounds"]
        numbers = [
            f"{own['seconds']:.1f}",
            f"{1e3 * own['in_rounds'] / rounds:.0f}",
            f"{1e3 * own['in_sums'] / rounds:.1f}",
        ]
        numbers += [f"{own['calls'] / rounds:.0f}", f"{own['bytes'] / rounds / 1e6:.1f}", f"{own['memory'] / 1e9:.2f}"]
        lines.append("| " + " | ".join([name, *numbers]) + " |")
    return lines


def fits(entries: dict[str, Any]) -> list[str]:
    lines = ["| | fit, s | test RMSE | memory, GB |", "|---|---:|---:|---:|"]
    for name, own in entries.items():
        lines.append(f"| {name} | {own['seconds']:.0f} | {own['rmse']:.4f} | {own['memory'] / 1e9:.2f} |")
    return lines


def page(held: dict[str, Any]) -> str:
    """The page of all figures there are."""
    lines = ["# Rows in files, and several processes", "", f"`python benchmarks/shard_fits.py`, on {held['machine']}."]
    lines += [
        "Boosted trees of 63 leaves, 30 rounds, tables of made-up numbers; sums are those over processes, per round."
    ]
    if "processes" in held:
        each = [1e9 * own for own in seconds_per_row(held["processes"])]
        lines += ["", "## Processes of one thread each, 30 columns", "", *table(held["processes"])]
        lines += [
            "",
            f"A row costs one process {min(each):.0f} to {max(each):.0f} ns in a round: more where the codes of",
        ]
        lines += ["all rows do not fit into the processor's caches."]
        lines += [
            "",
            "### A billion rows of 100 columns",
            "",
            "A round, not measured but computed: the largest cost of a row",
        ]
        lines += [f"above, {CORES} processes per machine, messages and bytes as above, each sent twice over the link:"]
        lines += predicted(held["processes"])
    if "links" in held:
        lines += ["", "## Two hosts, a million rows", "", *table(held["links"])]
    if "memory" in held:
        files, whole = held["memory"]["files"], held["memory"]["in memory"]
        per = [1e6 * own["seconds"] / own["rows"] for own in (files, whole)]
        lines += ["", "## 8 GB in a process of 2 GB", ""]
        lines += [
            "10,000,000 x 100 numbers in Parquet, default families, 20 rounds each, two threads, RLIMIT_DATA of 2 GB:"
        ]
        lines += [f"{files['seconds']:.0f} s, at most {files['memory'] / 1e9:.2f} GB of anonymous memory."]
        lines += [
            f"{per[0]:.1f} s for a million rows; the same fit of {whole['rows']:,} rows in memory takes {per[1]:.1f} s"
        ]
        lines += [f"for a million ({per[0] / per[1]:.2f} times)."]
    if "sample" in held:
        lines += ["", "## A million rows of 30 columns, two threads", ""]
        lines += ["The default. From files, forests and networks are fitted to a sample of 262,144 rows.", ""]
        lines += fits(held["sample"])
    if "large" in held:
        lines += ["", "## Ten million rows of 30 columns, two threads", ""]
        lines += [
            "Both at their defaults. Two columns whose product is part of the target say nothing of it each by itself,"
        ]
        lines += [
            "which a hundred trees hardly find: of a million of these rows LightGBM learns 1.00, with 400 trees 0.35.",
            "",
        ]
        lines += fits(held["large"])
    if "kills" in held:
        lines += [
            "",
            "## Kills",
            "",
            f"`python benchmarks/shard_kills.py`: {held['kills']['count']} processes of one to four",
        ]
        lines += [
            "were killed (SIGKILL) at random moments; the fit that went on from their checkpoint, by another number of"
        ]
        lines += ["processes each time, ended with the predictions of a fit that was left alone, to the bit."]
    return "\n".join(lines) + "\n"
