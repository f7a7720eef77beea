"""How fast GCE is: beside its peers, in its oracle, as problems grow, when it predicts, and as a service.

    python benchmarks/speed.py [--device cpu|cuda] [--only SECTION ...] [--quick] [--folder FOLDER]

Sections (on a GPU only the oracle unless asked):

- peers: default fits and predictions beside six other models;
- oracle: an epoch of training networks;
- scaling: a fit's time as problems grow;
- predict: rows per second and the latency of one row;
- serving: a first fit, and fits, memory, predictions, model files and loading, with ratios to CatBoost and XGBoost;
- trees: one tree by the compiled growers, by each instruction set;
- limits: a million rows within a limit of a minute.

Writes speed.md and speed.json
(speed_cuda, and _quick after the name where sizes are shrunk to a smoke test) if no cell failed and none lacks its data
or its library; otherwise nothing is written, and the exit status is not 0. A section that is run again replaces its old
result; results of another machine or of other versions are replaced by all sections together. GCE_DATA_HOME may name a
folder of data sets, see data_sets.py.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness import RESULTS, Options, Section, call, logger, markdown, refuse_gaps, run_script
from large_rows import limits_section
from oracle import oracle_section
from peers import peers_section, predict_section
from scaling import scaling_section
from serving import serving_section
from tree_kernels import trees_section

#: A load average above this is worth a warning.
BUSY = 0.5
SECTIONS: dict[str, Callable[[Options], Section]] = {
    "peers": peers_section,
    "oracle": oracle_section,
    "scaling": scaling_section,
    "predict": predict_section,
    "serving": serving_section,
    "trees": trees_section,
    "limits": limits_section,
}


def report(result: dict[str, Any]) -> str:
    machine = result["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    gpu = f", {machine['gpu']}" if machine["gpu"] else ""
    lines = [
        "# Speed",
        "",
        f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['system']}{gpu}.",
        f"Versions: {versions}. Script: `benchmarks/speed.py`.",
        "",
    ]
    done = [result["sections"][name] for name in SECTIONS if name in result["sections"]]
    return "\n".join(lines + [markdown(section) for section in done])


def earlier(path: Path, machine: dict[str, Any], chosen: list[str]) -> dict[str, Any]:
    """Sections of an earlier run that stay: it ran here and on the same versions, or all of them are run again."""
    old = json.loads(path.read_text()) if path.exists() else {"machine": machine, "sections": {}}
    if old["machine"] == machine:
        return dict(old["sections"])
    lost = [name for name in old["sections"] if name not in chosen]
    if lost:
        raise SystemExit(
            f"{path.name} is of another machine or of other versions, and its sections {', '.join(lost)} would be "
            "lost: run them too, or give another --folder"
        )
    return {}


def lacking(section: dict[str, Any]) -> list[str]:
    """Why cells of a section are empty, unless the processor makes them so."""
    cells = section["cells"]
    return [str(cell["left_out"]) for cell in cells if "left_out" in cell and cell.get("possible", True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    stem = "speed" + ("_cuda" if arguments.device == "cuda" else "") + ("_quick" if arguments.quick else "")
    path = arguments.folder / f"{stem}.json"
    load = os.getloadavg()[0]
    if load > BUSY:
        logger.warning("load average %.1f: somebody else is working here, and threads that wait for theirs spin", load)
    machine = call("harness:machine")
    if "left_out" in machine:
        raise SystemExit(f"the machine cannot be described: {machine['left_out']}")
    chosen = arguments.only or (["oracle"] if arguments.device == "cuda" else list(SECTIONS))
    result = {"machine": machine, "sections": earlier(path, machine, chosen)}
    for name in chosen:
        began = time.perf_counter()
        section = asdict(SECTIONS[name](Options(arguments.device, arguments.quick)))
        section |= {"seconds": time.perf_counter() - began, "load_before": load}
        logger.info("%s took %.0f s", name, section["seconds"])
        sys.stdout.write(markdown(section) + "\n")
        sys.stdout.flush()
        result["sections"][name] = section
    refuse_gaps(reason for name in chosen for reason in lacking(result["sections"][name]))
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    path.with_suffix(".md").write_text(report(result))


if __name__ == "__main__":
    run_script(main)
