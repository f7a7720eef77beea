"""Fits of rows in files: samples, processes, sums, links, memory and ten million rows.

    python benchmarks/shard_fits.py PART... [--folder FOLDER] [--results FOLDER] [--large-rows ROWS]

Parts: sample, processes, sums, links, memory, large. Figures are added to shard_fits.json, and the page shard_fits.md
is made of what is there, in benchmarks/results unless told otherwise. A part that is killed goes on after its last
measurement when it is started again. ``sums`` and ``links`` need root, /dev/net/tun and a C compiler (slow_link.py);
``memory`` 20 GB of disk; ``large`` LightGBM.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import shard_page
from harness import RESULTS, logger, run_script
from shard_group import measured
from shard_rows import write_rows
from slow_link import Hosts, Line

#: Rounds of each measured fit: boosted trees of 63 leaves.
TREES = {"basis": "tree-63", "max_iter": 30, "n_iter_no_change": None}
#: Links between two hosts.
LINKS = {"10 Gbit/s, 0.1 ms": Line(1e10, 1e-4), "1 Gbit/s, 10 ms": Line(1e9, 1e-2)}
#: Bytes of sums that are measured by themselves, and how often.
SUMS, TIMES = (1024, 131_072, 1_048_576), 40
#: Trees of the second LightGBM of ``large``.
MORE_TREES = 400


@dataclass(frozen=True)
class Run:
    """Where a run has its rows, and what it has measured of a part that is not at its end.

    Parameters
    ----------
    folder : Path
        For files of rows, and for the figures of parts that were killed.
    rows : int
        Of the part ``large``.
    """

    folder: Path
    rows: int

    def path(self, part: str) -> Path:
        return self.folder / f"{part}.partial.json"

    def kept(self, part: str, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A figure of a part: what an earlier run measured, or what is measured now."""
        path = self.path(part)
        known = json.loads(path.read_text()) if path.exists() else {}
        if name not in known:
            known[name] = measure()
            logger.info("%s, %s: %s", part, name, known[name])
            path.write_text(json.dumps(known))
        return known[name]


def linked(size: int, link: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What processes on hosts of their own report, with the link that they had."""
    with Hosts(size, LINKS[link]) as hosts:
        checked = hosts.check()
        found = measured(size, settings, hosts)
    return found | {"processes": size, "link": link, **checked, "carried": hosts.carried}


def processes(run: Run) -> dict[str, Any]:
    """One, two and four processes of one thread each on a quarter of a million rows to four."""
    found = {}
    for rows in (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000):
        settings = {"files": write_rows(run.folder, rows, 30), "threads": 1, "parameters": TREES}
        for size in (1, 2, 4):
            name = f"{rows:,} rows, {size} process{'es' * (size > 1)}"
            entry = run.kept("processes", name, partial(measured, size, settings))
            found[name] = entry | {"rows": rows, "processes": size}
    return found


def links(run: Run) -> dict[str, Any]:
    """Fits of processes on hosts of their own with slow links between them."""
    found = {}
    for link in LINKS:
        for rows, size in ((250_000, 2), (1_000_000, 2), (1_000_000, 4)):
            settings = {"files": write_rows(run.folder, rows, 30), "threads": 1, "parameters": TREES}
            name = f"{link}, {rows:,} rows, {size} hosts"
            found[name] = run.kept("links", name, partial(linked, size, link, settings)) | {"rows": rows}
    return found


def sums(run: Run) -> dict[str, Any]:
    """Sums over processes on hosts of their own, without a fit."""
    found, settings = {}, {"threads": 1, "sums": SUMS, "times": TIMES}
    for link in LINKS:
        for size in (2, 4, 8, 16):
            name = f"{link}, {size} hosts"
            found[name] = run.kept("sums", name, partial(linked, size, link, settings))
    return found


def memory(run: Run) -> dict[str, Any]:
    """8 GB of numbers in a process of 2 GB, and a part of them in memory."""
    parameters = {**TREES, "basis": "auto", "max_iter": 20}
    large = write_rows(run.folder, 10_000_000, 100)
    small = write_rows(run.folder, 500_000, 100)
    common = {"threads": 2, "parameters": parameters}
    limited = run.kept("memory", "files", partial(measured, 1, {**common, "files": large, "limit": 2_000_000_000}))
    whole = run.kept("memory", "in memory", partial(measured, 1, {**common, "files": small, "in_memory": True}))
    return {"files": limited | {"rows": 10_000_000}, "in memory": whole | {"rows": 500_000}}


def large(run: Run) -> dict[str, Any]:
    """Ten million rows of 30 columns: GCE's default from files, and LightGBM from memory."""
    files = write_rows(run.folder, run.rows, 30, target="additive")
    test = write_rows(run.folder, 500_000, 30, seed=1, target="additive")
    common = {"files": files, "test": test, "threads": 2, "parameters": {}}
    peers = {"LightGBM": {}, f"LightGBM, {MORE_TREES} trees": {"n_estimators": MORE_TREES}}
    models = {"GCE": common, **{name: {**common, "lightgbm": own} for name, own in peers.items()}}
    found = {}
    for name, settings in models.items():
        entry = run.kept("large", f"{name}, {run.rows:,} rows", partial(measured, 1, settings))
        found[name] = entry | {"rows": run.rows}
    return found


def sample(run: Run) -> dict[str, Any]:
    """A million rows: forests and networks of a sample, and of all rows in memory."""
    files, test = write_rows(run.folder, 1_000_000, 30), write_rows(run.folder, 500_000, 30, seed=1)
    common = {"files": files, "test": test, "threads": 2, "parameters": {}}
    return {
        "from files": run.kept("sample", "from files", partial(measured, 1, common)),
        "in memory": run.kept("sample", "in memory", partial(measured, 1, {**common, "in_memory": True})),
    }


PARTS = {
    "sample": sample,
    "processes": processes,
    "sums": sums,
    "links": links,
    "memory": memory,
    "large": large,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=list(PARTS), metavar="PART")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gce-shards")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--large-rows", type=int, default=10_000_000, help="rows of the part large")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    # so that processes and hosts are removed on the way out
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    given.folder.mkdir(parents=True, exist_ok=True)
    given.results.mkdir(parents=True, exist_ok=True)
    run = Run(given.folder, given.large_rows)
    for part in given.parts:
        shard_page.add(given.results / "shard_fits.json", {part: PARTS[part](run)})
        run.path(part).unlink(missing_ok=True)


if __name__ == "__main__":
    run_script(main)
