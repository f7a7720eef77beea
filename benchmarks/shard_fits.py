"""Fits of rows in files: samples, processes, links, memory and ten million rows.

    python benchmarks/shard_fits.py sample | processes | links | memory | large   [--folder FOLDER]

Figures are added to benchmarks/results/shard_fits.json, and the page shard_fits.md is made of what is there. ``links``
needs the right to make network namespaces; ``memory`` 20 GB of disk; ``large`` LightGBM.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import shard_page
from harness import logger
from shard_rows import write_rows

RESULTS = Path(__file__).parent / "results"
WORKER = Path(__file__).parent / "shard_worker.py"
#: Rounds of each measured fit: boosted trees of 63 leaves.
TREES = {"basis": "tree-63", "max_iter": 30, "n_iter_no_change": None}
#: Links between two hosts: bits per second, and milliseconds there.
LINKS = {"10 Gbit/s, 0.1 ms": ("10gbit", "0.1ms"), "1 Gbit/s, 10 ms": ("1gbit", "10ms")}


def fitted(size: int, settings: dict[str, Any], hosts: tuple[str, ...] | None = None) -> dict[str, Any]:
    """What process 0 of a fit of some processes reports."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_text(json.dumps({**settings, "out": str(Path(folder) / "found.json")}))
        started = []
        for rank, about in enumerate(environment(size, settings["threads"], hosts is not None)):
            if settings.get("limit"):
                # allocators reserve memory that nobody uses, which the limit counts
                about |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
            inside = [] if hosts is None else ["ip", "netns", "exec", hosts[rank]]
            started.append(subprocess.Popen([*inside, sys.executable, str(WORKER), str(path)], env=about))
        failed = [process.wait() for process in started]
        if any(failed):
            raise RuntimeError(f"processes ended with {failed}")
        return json.loads((Path(folder) / "found.json").read_text())


def environment(size: int, threads: int, linked: bool = False) -> list[dict[str, str]]:
    """The environment of each process of a group, as ``torchrun`` sets it."""
    about = {"WORLD_SIZE": str(size), "MASTER_PORT": str(free_port())}
    about |= {"MASTER_ADDR": "10.77.0.1" if linked else "127.0.0.1"}
    about |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    links = [{"GLOO_SOCKET_IFNAME": f"gce{rank}"} if linked else {} for rank in range(size)]
    return [{**os.environ, **about, "RANK": str(rank), **link} for rank, link in enumerate(links)]


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def processes(folder: Path) -> dict[str, Any]:
    """One, two and four processes of one thread each on a million rows; fewer on a quarter of them and on four."""
    found = {}
    for rows, sizes in ((250_000, (1, 2)), (1_000_000, (1, 2, 4)), (4_000_000, (1, 2))):
        files = write_rows(folder, rows, 30)
        for size in sizes:
            settings = {"files": files, "threads": 1, "parameters": TREES}
            found[f"{rows:,} rows, {size} process{'es' * (size > 1)}"] = fitted(size, settings) | {
                "rows": rows,
                "processes": size,
            }
            logger.info(
                "%d rows, %d processes: %s", rows, size, found[f"{rows:,} rows, {size} process{'es' * (size > 1)}"]
            )
    return {"processes": found}


def links(folder: Path) -> dict[str, Any]:
    """Two processes on hosts of their own: network namespaces with a link that is made slow."""
    found = {}
    files = write_rows(folder, 1_000_000, 30)
    for name, (rate, delay) in LINKS.items():
        with Hosts(rate, delay) as hosts:
            settings = {"files": files, "threads": 1, "parameters": TREES}
            found[name] = fitted(2, settings, hosts.names) | {"rows": 1_000_000, "processes": 2}
            logger.info("%s: %s", name, found[name])
    return {"links": found}


class Hosts:
    """Two network namespaces with a link between them."""

    names = ("gce-host-0", "gce-host-1")

    def __init__(self, rate: str, delay: str) -> None:
        self._rate, self._delay = rate, delay

    def __enter__(self) -> Hosts:
        self._remove()
        first, second = self.names
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "gce0", "netns", first, "type", "veth", "peer", "name", "gce1", "netns", second)
        for rank, name in enumerate(self.names):
            inside = ("ip", "netns", "exec", name)
            run(*inside, "ip", "address", "add", f"10.77.0.{rank + 1}/24", "dev", f"gce{rank}")
            for device in ("lo", f"gce{rank}"):
                run(*inside, "ip", "link", "set", device, "up")
            shaped = ("rate", self._rate, "delay", self._delay, "limit", "100000")
            run(*inside, "tc", "qdisc", "add", "dev", f"gce{rank}", "root", "netem", *shaped)
        return self

    def __exit__(self, *error: object) -> None:
        self._remove()

    def _remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], stderr=subprocess.DEVNULL, check=False)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def memory(folder: Path) -> dict[str, Any]:
    """8 GB of numbers in a process of 2 GB, and a part of them in memory."""
    parameters = {**TREES, "basis": "auto", "max_iter": 20}
    large = write_rows(folder, 10_000_000, 100)
    limited = fitted(1, {"files": large, "threads": 2, "parameters": parameters, "limit": 2_000_000_000})
    small = write_rows(folder, 500_000, 100)
    in_memory = fitted(1, {"files": small, "threads": 2, "parameters": parameters, "in_memory": True})
    return {"memory": {"files": limited | {"rows": 10_000_000}, "in memory": in_memory | {"rows": 500_000}}}


def large(folder: Path) -> dict[str, Any]:
    """Ten million rows of 30 columns: GCE's default from files, and LightGBM's from memory."""
    files = write_rows(folder, 10_000_000, 30)
    test = write_rows(folder, 500_000, 30, seed=1)
    common = {"files": files, "test": test, "threads": 2}
    return {
        "large": {
            "GCE": fitted(1, {**common, "parameters": {}}),
            "LightGBM": fitted(1, {**common, "parameters": {}, "peer": "lightgbm"}),
        }
    }


def sample(folder: Path) -> dict[str, Any]:
    """A million rows: forests and networks of a sample, and of all rows in memory."""
    files, test = write_rows(folder, 1_000_000, 30), write_rows(folder, 500_000, 30, seed=1)
    common = {"files": files, "test": test, "threads": 2, "parameters": {}}
    return {"sample": {"from files": fitted(1, common), "in memory": fitted(1, {**common, "in_memory": True})}}


PARTS = {"sample": sample, "processes": processes, "links": links, "memory": memory, "large": large}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=list(PARTS), metavar="PART")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gce-shards")
    given = parser.parse_args()
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logger.setLevel(logging.INFO)
    for part in given.parts:
        shard_page.add(RESULTS / "shard_fits.json", PARTS[part](given.folder))


if __name__ == "__main__":
    main()
