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


def processes(found: dict[str, Any]) -> str:
    each = [1e9 * own for own in seconds_per_row(found)]
    measured, computed = "\n".join(table(found)), "\n".join(predicted(found))
    return f"""
## Processes of one thread each, 30 columns

{measured}

A row costs one process {min(each):.0f} to {max(each):.0f} ns in a round: more where the codes of all rows do not fit
into the processor's caches.

### A billion rows of 100 columns

A round, not measured but computed: the largest cost of a row above, {CORES} processes per machine, messages and bytes
as above, each sent twice over the link:
{computed}
"""


def links(found: dict[str, Any]) -> str:
    return "\n".join(["", "## Two hosts, a million rows", "", *table(found), ""])


def memory(found: dict[str, Any]) -> str:
    files, whole = found["files"], found["in memory"]
    ours, theirs = (1e6 * own["seconds"] / own["rows"] for own in (files, whole))
    return f"""
## 8 GB in a process of 2 GB

10,000,000 x 100 numbers in Parquet, default families, 20 rounds each, two threads, RLIMIT_DATA of 2 GB:
{files["seconds"]:.0f} s, at most {files["memory"] / 1e9:.2f} GB of anonymous memory. {ours:.1f} s for a million rows;
the same fit of {whole["rows"]:,} rows in memory, with forests and networks of all rows, takes {theirs:.1f} s for a
million ({ours / theirs:.2f} times).
"""


def sample(found: dict[str, Any]) -> str:
    figures = "\n".join(fits(found))
    return f"""
## A million rows of 30 columns, two threads

The default. From files, forests and networks are fitted to a sample of 262,144 rows.

{figures}
"""


def large(found: dict[str, Any]) -> str:
    figures = "\n".join(fits(found))
    return f"""
## Ten million rows of 30 columns, two threads

Both at their defaults. Two columns whose product is part of the target say nothing of it each by itself, which a
hundred trees hardly find: of a million of these rows LightGBM learns 1.00, with 400 trees 0.35.

{figures}
"""


def kills(found: dict[str, Any]) -> str:
    return f"""
## Kills

`python benchmarks/shard_kills.py`: {found["count"]} times a process of one to four was killed (SIGKILL) at a random
moment. The fit that went on from the checkpoint, by another number of processes each time, ended with the predictions
of a fit that was left alone, to the bit.
"""


SECTIONS = {
    "processes": processes,
    "links": links,
    "memory": memory,
    "sample": sample,
    "large": large,
    "kills": kills,
}


def page(held: dict[str, Any]) -> str:
    """The page of all figures there are."""
    head = f"""# Rows in files, and several processes

`python benchmarks/shard_fits.py`, on {held["machine"]}. Boosted trees of 63 leaves, 30 rounds, tables of made-up
numbers; sums are those over processes, per round.
"""
    return head + "".join(section(held[name]) for name, section in SECTIONS.items() if name in held)
