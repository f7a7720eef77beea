"""Starts the processes of a fit that benchmarks/shard_fits.py measures, here or on hosts with slow links."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from slow_link import Hosts

WORKER = Path(__file__).parent / "shard_worker.py"
#: Seconds after which a measurement is given up.
LIMIT = 3600


def measured(size: int, settings: dict[str, Any], hosts: Hosts | None = None) -> dict[str, Any]:
    """What process 0 of some processes reports; each runs on a host of its own where there are hosts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "settings.json"
        path.write_text(json.dumps({**settings, "out": str(Path(folder) / "found.json")}))
        started: list[subprocess.Popen[bytes]] = []
        try:
            for rank, about in enumerate(environment(size, settings["threads"], hosts)):
                if settings.get("limit"):
                    # allocators reserve memory that nobody uses, which the limit counts
                    about |= {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
                inside = [] if hosts is None else hosts.inside(rank)
                started.append(subprocess.Popen([*inside, sys.executable, str(WORKER), str(path)], env=about))
            failed = [process.wait(timeout=LIMIT) for process in started]
        finally:
            for process in started:
                process.kill()
        if any(failed):
            raise RuntimeError(f"processes ended with {failed}")
        return json.loads((Path(folder) / "found.json").read_text())


def environment(size: int, threads: int, hosts: Hosts | None = None) -> list[dict[str, str]]:
    """The environment of each process of a group, as ``torchrun`` sets it."""
    about = {"WORLD_SIZE": str(size), "MASTER_PORT": str(free_port())}
    about |= {"MASTER_ADDR": "127.0.0.1" if hosts is None else hosts.address(0)}
    about |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    links: list[dict[str, str]] = [{} for _ in range(size)]
    if hosts is not None:
        # gloo would look up the name of this machine, which the hosts share, and torch warn that they have none
        about |= {"TORCH_CPP_LOG_LEVEL": "ERROR"}
        links = [{"GLOO_SOCKET_IFNAME": hosts.device(rank)} for rank in range(size)]
    return [{**os.environ, **about, "RANK": str(rank), **link} for rank, link in enumerate(links)]


def free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])
