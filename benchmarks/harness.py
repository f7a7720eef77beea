"""What the speed benchmark's sections share: fresh processes, clocks, peak memory, the machine's name, tables."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

logger = logging.getLogger("benchmarks")

CORES = os.cpu_count() or 1
#: Pages, figures and ledgers; elsewhere if the environment says so.
RESULTS = Path(os.environ.get("GCE_BENCHMARK_RESULTS") or Path(__file__).with_name("results")).absolute()
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
PACKAGES = ("gce", "numpy", "scipy", "sklearn", "torch", "triton", "xgboost", "lightgbm", "catboost")


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    device: str
    quick: bool


@dataclass(frozen=True)
class Table:
    """A Markdown table; ``rows`` are texts."""

    title: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """A part of the report: what was measured in words, the tables, and the bare numbers."""

    title: str
    text: str
    tables: list[Table]
    cells: list[dict[str, Any]] = field(default_factory=list)


def run_script(main: Callable[[], None]) -> None:
    """Run a script, whose pages and figures in ``RESULTS`` are replaced only if it succeeds.

    A ledger (``.jsonl``, a line for each fit) keeps the lines of fits that ended: the next call does not repeat them.
    """
    before = {path: path.read_bytes() for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".jsonl"}
    try:
        main()
    except BaseException as error:  # also Ctrl-C, and SystemExit
        if not isinstance(error, SystemExit) or error.code:
            for path, content in before.items():
                if not path.exists() or path.read_bytes() != content:
                    path.write_bytes(content)
        raise


def refuse_gaps(reasons: Iterable[str]) -> None:
    """SystemExit with the reasons why cells are empty, if there are any."""
    said = list(dict.fromkeys(reasons))
    if said:
        raise SystemExit(f"some cells are empty, and pages stay as they were: {'; '.join(said)}")


def whole(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of :func:`call`; SystemExit if there is none."""
    refuse_gaps([str(answer["left_out"])] if "left_out" in answer else [])
    return answer


def call(
    function: str, *, threads: int = CORES, variables: dict[str, str] | None = None, **arguments: Any
) -> dict[str, Any]:
    """Run ``module:name`` of this folder in a fresh process with so many threads and these environment variables.

    Returns
    -------
    dict
        The function's answer; ``{"left_out": reason, "failed": True}`` where it broke off, so that the other cells
        still run. Its output goes to the log, the reason holds no paths of this machine.
    """
    words = ", ".join(str(value) for value in arguments.values())
    logger.info("%s (%s), %d thread(s)", function, words, threads)
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), **(variables or {})}
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        worker = Path(__file__).with_name("worker.py")
        command = [sys.executable, str(worker), function, json.dumps(arguments), str(answer)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return dict(json.loads(answer.read_text()))
    logger.warning("%s (%s) failed:\n%s", function, words, done.stderr)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    return {"left_out": f"failed, exit status {done.returncode}, {last.split(':')[0]}", "failed": True}


def reset_peak() -> None:
    """Let the high-water mark of memory start from here, where the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mib() -> float:
    """The high-water mark of this process' memory."""
    # ru_maxrss would do, but a fresh process inherits its parent's through vfork
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def repeated(work: Callable[[], Any], seconds: float, least: int = 3, most: int = 1000) -> list[float]:
    """Seconds of each of several calls, the first (unmeasured) one apart: as many as fit into ``seconds``."""
    work()
    took: list[float] = []
    while len(took) < least or (len(took) < most and sum(took) < seconds):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return took


def best_and_median(work: Callable[[], Any], seconds: float) -> tuple[float, float]:
    took = repeated(work, seconds)
    return min(took), statistics.median(took)


def machine() -> dict[str, Any]:
    """The processor, the GPU and the versions of everything that is timed; a worker, because it imports them all."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        if find_spec(name):
            versions[name] = str(importlib.import_module(name).__version__)
    torch = importlib.import_module("torch")
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {"cpu": processor(), "cores": CORES, "system": platform.system(), "gpu": gpu, "versions": versions}


def processor() -> str:
    """The CPU's own name, where the system tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def number(value: float | None) -> str:
    """Three digits, and no more than a reader can use."""
    if value is None:
        return ""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 1 or value == 0 else f"{value:#.2g}"


def left_out(result: dict[str, Any], columns: int) -> list[str]:
    """A row that says why there is nothing in it."""
    reason = str(result["left_out"]).replace("|", "/").replace("<", "&lt;")
    return [f"left out: {reason}"] + [""] * (columns - 1)


def markdown(section: dict[str, Any]) -> str:
    lines = [f"## {section['title']}", "", section["text"], ""]
    for table in section["tables"]:
        head = [table["title"], *table["head"]]
        lines += ["| " + " | ".join(head) + " |", "|---|" + "---:|" * len(table["head"])]
        lines += ["| " + " | ".join(row) + " |" for row in table["rows"]] + [""]
    return "\n".join(lines)
