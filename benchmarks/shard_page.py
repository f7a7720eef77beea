"""The page of benchmarks/shard_fits.py."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shard_cost_page


def machine() -> str:
    """What this machine is."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def add(path: Path, found: dict[str, Any]) -> None:
    """Add figures to a file, and make the page beside it."""
    known = json.loads(path.read_text()) if path.exists() else {}
    about = {"machine": machine(), "cores": os.cpu_count()}
    path.write_text(json.dumps(known | found | about, indent=1) + "\n")
    path.with_suffix(".md").write_text(page(json.loads(path.read_text())))


def fits(entries: dict[str, Any]) -> list[str]:
    lines = ["| | fit, s | test RMSE | test R^2 | memory, GB |", "|---|---:|---:|---:|---:|"]
    for name, own in entries.items():
        r2 = f"{own['r2']:.4f}" if "r2" in own else ""
        lines.append(f"| {name} | {own['seconds']:.0f} | {own['rmse']:.4f} | {r2} | {own['memory'] / 1e9:.2f} |")
    return lines


def memory(held: dict[str, Any]) -> str:
    files, whole = held["memory"]["files"], held["memory"]["in memory"]
    ours, theirs = (1e6 * own["seconds"] / own["rows"] for own in (files, whole))
    return f"""
## 8 GB in a process of 2 GB

10,000,000 x 100 numbers in Parquet, default families, 20 rounds each, two threads, RLIMIT_DATA of 2 GB:
{files["seconds"]:.0f} s, at most {files["memory"] / 1e9:.2f} GB of anonymous memory. {ours:.1f} s for a million rows;
the same fit of {whole["rows"]:,} rows in memory, where forests and each network learn from all rows, takes
{theirs:.1f} s for a million ({ours / theirs:.2f} times).
"""


def sample(held: dict[str, Any]) -> str:
    figures = "\n".join(fits(held["sample"]))
    return f"""
## A million rows of 30 columns, two threads

The default. From files, forests are grown from a sample of 262,144 rows, and as many are drawn for each network.

{figures}
"""


def large(held: dict[str, Any]) -> str:
    figures, rows = "\n".join(fits(held["large"])), held["large"]["GCE"]["rows"]
    return f"""
## {rows:,} rows of 30 columns, two threads

GCE's default from files, LightGBM's from memory, and LightGBM with more trees. The target (`additive` in shard_rows.py)
has curves, steps, levels of integer columns and products of columns that also count by themselves: every column that
takes part changes the mean of the target by itself, so that trees that are grown greedily find it. The noise lets no
model have more than R^2 of 0.8. The other sections have the target `products`, in which two columns say nothing each by
itself.

{figures}
"""


def kills(held: dict[str, Any]) -> str:
    return f"""
## Kills

`python benchmarks/shard_kills.py`: {held["kills"]["count"]} times a process of one to four was killed (SIGKILL) at a
random moment. The fit that went on from the checkpoint, by another number of processes each time, ended with the
predictions of a fit that was left alone, to the bit.
"""


#: Sections, after the parts whose figures they need.
SECTIONS: list[tuple[set[str], Callable[[dict[str, Any]], str]]] = [
    ({"processes"}, shard_cost_page.processes),
    ({"sums"}, shard_cost_page.sums),
    ({"links"}, shard_cost_page.links),
    ({"processes", "sums", "links"}, shard_cost_page.cluster),
    ({"memory"}, memory),
    ({"sample"}, sample),
    ({"large"}, large),
    ({"kills"}, kills),
]


def page(held: dict[str, Any]) -> str:
    """The page of all figures there are."""
    head = f"""# Rows in files, and several processes

`python benchmarks/shard_fits.py`, on {held["machine"]}. Boosted trees of 63 leaves, 30 rounds, tables of made-up
numbers; sums are those over processes, per round.
"""
    return head + "".join(section(held) for needed, section in SECTIONS if needed <= held.keys())
