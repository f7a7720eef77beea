"""Run the campaign, or some of it: ``python -m campaign --help``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from campaign.outcomes import Tally, tallied
from campaign.page import machine, page
from campaign.parts import PARTS, part

logger = logging.getLogger("campaign")

HERE = Path(__file__).parent
#: One thread per process: parts run side by side.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
AT_ONCE = 2
#: Where a part was run whose results do not say so.
UNKNOWN = "a machine that was not written down"


def main() -> int:
    """Run what is asked for; 1 where a promise was broken."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    # the rounds of fits are nothing to read here
    logging.getLogger("gce").setLevel(logging.WARNING)
    asked = arguments()
    if asked.tally is not None:
        asked.tally.write_text(json.dumps(run(asked.parts[0], asked).to_json()))
        return 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        tallies = dict(zip(asked.parts, pool.map(lambda name: in_process(name, asked), asked.parts), strict=True))
    for name, tally in tallies.items():
        logger.info("%s: %d cases, %d faults, %.0f s", name, tally.cases, len(tally.faults), tally.seconds)
        for case, kind, words in tally.faults:
            logger.error("%s --seed %d --case %d: %s: %s", name, asked.seed, case, kind, words)
    if asked.case is None and asked.cases is None:
        write_results(tallies, asked.seed)
    return int(any(tally.faults for tally in tallies.values()))


def write_results(tallies: dict[str, Tally], seed: int) -> None:
    """Write the page; parts that were not run now are kept, with their machine, where their seed is the same."""
    path, here = HERE / "results.json", machine()
    before = json.loads(path.read_text()) if path.exists() else {}
    kept = before.get("parts", {}) if before.get("seed") == seed else {}
    known = kept | {name: {"machine": here, **tally.to_json()} for name, tally in tallies.items()}
    known = {name: known[name] for name in PARTS if name in known}
    path.write_text(json.dumps({"seed": seed, "parts": known}, indent=1) + "\n")
    machines = {name: part.get("machine", UNKNOWN) for name, part in known.items()}
    (HERE / "results.md").write_text(
        page({name: Tally.from_json(part) for name, part in known.items()}, seed, machines)
    )


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description="Run a fault campaign.")
    parser.add_argument("parts", nargs="*", metavar="PART", help="parts to run (default: all)")
    parser.add_argument("--cases", type=int, help="cases of each part; default: the number that the page reports")
    parser.add_argument("--seed", type=int, default=0, help="seed of all cases (default: 0)")
    parser.add_argument("--case", type=int, help="run one case only, by its number")
    parser.add_argument("--tally", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    unknown = sorted(set(asked.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown parts {unknown}: choose from {list(PARTS)}")
    asked.parts = asked.parts or list(PARTS)
    return asked


def in_process(name: str, asked: argparse.Namespace) -> Tally:
    """The tally of a part that runs in a process of its own; a process that died is a fault."""
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "tally.json"
        words = [name, "--seed", str(asked.seed), "--tally", str(tally)]
        for option in ("cases", "case"):
            value = getattr(asked, option)
            words += [] if value is None else [f"--{option}", str(value)]
        done = subprocess.run([sys.executable, "-m", "campaign", *words], env={**os.environ, **THREADS}, check=False)
        if done.returncode == 0:
            return Tally.from_json(json.loads(tally.read_text()))
    return Tally(faults=[(-1, "the part itself", f"its process ended with status {done.returncode}")])


def run(name: str, asked: argparse.Namespace) -> Tally:
    """The tally of a part, in this process."""
    module, began = part(name), time.perf_counter()
    cases = range(module.FULL if asked.cases is None else asked.cases) if asked.case is None else [asked.case]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        tally = tallied(module.outcomes(cases, asked.seed, Path(folder)))
    tally.seconds = time.perf_counter() - began
    return tally


if __name__ == "__main__":
    sys.exit(main())
