"""The sections of benchmarks/shard_page.py on processes, sums, links and what a billion rows would cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import fill
from typing import Any

import numpy as np
from shard_costs import Costs, Link, Round, errors, measured_trips, round_trips, seconds

#: Of the page's lines.
WIDTH = 120
#: Threads of a process on a machine of a cluster.
CORES = 16
#: Columns that were measured, and of the table that is computed.
MEASURED, WIDE = 30, 100
ROWS = 1_000_000_000
MACHINES = (8, 64, 512)


def costs_of(held: Mapping[str, Any]) -> Costs | None:
    """The model, where what it is made of was measured."""
    return Costs.fit(held["processes"].values(), held["cores"]) if "processes" in held else None


def rounds_table(entries: Mapping[str, Any], costs: Costs | None, cores: int) -> list[str]:
    """Measured rounds, beside what the model says of them."""
    head = ["", "fit, s", "a round, ms", "by the model, ms", "error", "in sums, ms", "sums", "MB", "memory, GB"]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name, own in entries.items():
        rounds, model = own["rounds"], ["", ""]
        if costs is not None:
            [error] = errors(costs, [own], cores)
            model = [f"{1e3 * costs.predicted(own, cores):.0f}", f"{100 * error:+.0f} %"]
        numbers = [f"{own['seconds']:.1f}", f"{1e3 * seconds(own):.0f}", *model]
        numbers += [f"{1e3 * own['in_sums'] / rounds:.1f}", f"{own['calls'] / rounds:.1f}"]
        numbers += [f"{own['bytes'] / rounds / 1e6:.1f}", f"{own['memory'] / 1e9:.2f}"]
        lines.append("| " + " | ".join([name, *numbers]) + " |")
    return lines


def error_line(costs: Costs, entries: Mapping[str, Any], cores: int) -> str:
    sizes = np.abs(errors(costs, entries.values(), cores))
    return f"median {100 * np.median(sizes):.0f} %, worst {100 * np.max(sizes):.0f} %"


def processes(held: Mapping[str, Any]) -> str:
    found, costs = held["processes"], costs_of(held)
    measured = "\n".join(rounds_table(found, costs, held["cores"]))
    text = f"""
## Processes of one thread each on one machine, {MEASURED} columns

{measured}
"""
    if costs is None:
        return text
    about = f"""The model (shard_costs.py) is fitted to these rounds, by least squares of relative errors. A process
needs {1e3 * costs.each:.1f} ms in every round, {1e9 * costs.row:.0f} ns for a row, {1e9 * costs.beyond:.0f} ns more for
each row beyond the {costs.cached:,.0f} that fit into the caches, and {1e3 * costs.message:.2f} ms for a message.
Processes that share a core wait for each other. Its error in the rounds that it was fitted to:
{error_line(costs, found, held["cores"])}."""
    return f"""{text}
{fill(about, WIDTH)}
"""


def sums(held: Mapping[str, Any]) -> str:
    found = held["sums"]
    sizes = sorted(next(iter(found.values()))["seconds"], key=int)
    head = [
        "",
        "round trip, ms",
        "MB/s",
        *(f"{int(size):,} bytes, ms" for size in sizes),
        "round trips",
        "by the model",
    ]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for name, own in found.items():
        numbers = [f"{1e3 * own['round_trip']:.2f}", f"{own['rate'] / 1e6:.0f}"]
        numbers += [f"{1e3 * own['seconds'][size]:.1f}" for size in sizes] + [
            f"{measured_trips(own):.1f}",
            f"{round_trips(own['processes'])}",
        ]
        lines.append("| " + " | ".join([name, *numbers]) + " |")
    table = "\n".join(lines)
    about = f"""Sums by themselves, the median of many. Hosts are network namespaces on this machine, whose packets a
process carries with a delay and a limited rate (slow_link.py); the round trip and the rate are those of plain TCP,
measured. gloo sends when the receiver has said that it waits, so that a message takes a round trip. Processes add up
in pairs: log2 p round trips for p processes, two more where p is no power of two.
The hosts share {held["cores"]} cores, for which they wait longer than for a fast link."""
    return f"""
## Sums over hosts with slow links

{fill(about, WIDTH)}

{table}
"""


def links(held: Mapping[str, Any]) -> str:
    found, costs, cores = held["links"], costs_of(held), held["cores"]
    text = "\n".join(rounds_table(found, costs, cores))
    error = (
        ""
        if costs is None
        else f"\nThe model's error here, where nothing was fitted: {error_line(costs, found, cores)}.\n"
    )
    busy = [own["carried"]["processor_seconds"] / own["seconds"] for own in found.values()]
    lost = sum(own["carried"]["lost"] for own in found.values())
    trips = {
        own["link"]: f"{1e3 * own['round_trip']:.2f} ms and {own['rate'] / 1e6:.0f} MB/s" for own in found.values()
    }
    checked = "; ".join(f"{link}: {own}" for link, own in trips.items())
    about = f"""Plain TCP between two hosts, the round trip and the bytes per second: {checked}. The process that
carries packets shares the {cores} cores with those that fit: {100 * min(busy):.0f} to {100 * max(busy):.0f} %
of a core, of which a part is the kernel's work for the receivers. {lost} packets were lost."""
    return f"""
## Fits on hosts with slow links, {MEASURED} columns

{fill(about, WIDTH)}

{text}
{error}"""


def cluster(held: Mapping[str, Any]) -> str:
    """A round of a billion rows, by the model."""
    costs = costs_of(held)
    assert costs is not None
    return f"""
## A billion rows of {WIDE} columns

A round, not measured but computed by the model: one process of {CORES} threads per machine, which are as fast as
{CORES} of one; messages as above, and {WIDE}/{MEASURED} of the bytes and of the costs of a row. Shares: rows, the
processors' work for messages, the round trips of messages, and their bytes on the link.

{_cluster_table(held, costs)}
"""


def _cluster_table(held: Mapping[str, Any], costs: Costs) -> str:
    last = list(held["processes"].values())[-1]
    messages, size = last["calls"] / last["rounds"], last["bytes"] / last["rounds"] * WIDE / MEASURED
    measured = {own["link"]: Link(own["round_trip"], own["rate"]) for own in held["links"].values()}
    lines = ["| | " + " | ".join(measured) + " |", "|---|" + "---:|" * len(measured)]
    for machines in MACHINES:
        work = Round(ROWS, machines, machines, machines * CORES, messages, size)
        cells = [_cell(costs.widened(WIDE / MEASURED), work, link) for link in measured.values()]
        lines.append(f"| {machines} machines | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(costs: Costs, work: Round, link: Link) -> str:
    latency, transfer = costs.on_link(work, link)
    rows, own = costs.own(replace(work, messages=0)), costs.own(work)
    whole = own + latency + transfer
    parts = {"rows": rows, "messages": own - rows, "latency": latency, "bytes": transfer}
    return f"{whole:.2f} s: " + ", ".join(f"{name} {100 * part / whole:.0f} %" for name, part in parts.items())
