"""The page of results."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version

from benchmarks.harness import processor
from campaign.outcomes import LISTED, Tally
from campaign.parts import part

VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "safetensors", "narwhals")


def page(tallies: dict[str, Tally], seed: int, machines: dict[str, str]) -> str:
    """Counts of all parts, and their faults, as Markdown; with the machine that each was run on."""
    lines = [
        "# The fault campaign",
        "",
        f"Written by `make campaign` (seed {seed}), two parts at a time{places(machines)}",
        "",
        "| part | cases | faults | seconds | what must hold |",
        "|---|---:|---:|---:|---|",
    ]
    for name, tally in tallies.items():
        row = (f"[{name}](#{name})", f"{tally.cases:,}", len(tally.faults), f"{tally.seconds:.0f}", part(name).PROMISE)
        lines.append("| " + " | ".join(map(str, row)) + " |")
    for name, tally in tallies.items():
        lines += ["", f"## {name}", "", *section(tally)]
    return "\n".join(lines) + "\n"


def section(tally: Tally) -> list[str]:
    """The counts of one part by kind, and its faults."""
    lines = ["| what held | cases |", "|---|---:|"]
    lines += [f"| {kind} | {count:,} |" for kind, count in sorted(tally.held.items())]
    if tally.faults:
        lines += ["", f"{len(tally.faults)} faults:", ""]
        lines += [f"- case {case}, {kind}: {words}" for case, kind, words in tally.faults[:LISTED]]
    return lines


def places(machines: dict[str, str]) -> str:
    """The machine of all parts, or a list of the machines and their parts where they differ."""
    found = sorted(set(machines.values()))
    if len(found) == 1:
        return f" on {found[0]}."
    lines = [f"- {', '.join(name for name in machines if machines[name] == place)}: {place}" for place in found]
    return "; its parts on several machines, or with several versions:\n\n" + "\n".join(lines)


def machine() -> str:
    """The machine and the versions that a campaign ran on."""
    packages = ", ".join(f"{name} {version(name)}" for name in VERSIONS)
    return f"{os.cpu_count()} cores ({processor()}), Python {platform.python_version()} on {sys.platform}, {packages}"
