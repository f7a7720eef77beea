"""``python -m paper.ablations``: run what is missing, write the page.

One line a fit in ablations.jsonl: kill it and run it again, nothing is repeated.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gce import datasets
from paper.ablations import ABLATIONS, Ablation
from paper.ablations.base import LARGER, MANY, Found, Scope
from paper.ablations.hulls import compare
from paper.ablations.models import fit
from paper.ledger import Ledger, Record
from paper.machine import machine
from paper.rounded import rounded

logger = logging.getLogger("paper.ablations")
RESULTS = Path(__file__).parents[1] / "results"


def work(key: Record, data: Any) -> Record:
    """One fit: the split's number is also its seed."""
    settings, seed = key["settings"], key["split"]
    result = compare(data, settings, seed) if key["model"] == "hulls" else fit(key["model"], data, settings, seed)
    return rounded(result)


def known_machine(ledger: Ledger) -> int:
    """Put this machine and its versions on record, once: the number that its results carry."""
    known = [key["machine"] for key, _ in ledger.items() if "machine" in key]
    facts = machine()
    if facts not in known:
        known.append(facts)
        ledger.once({"machine": facts}, lambda: {"number": len(known)})
    return known.index(facts) + 1


def run(ablations: Mapping[str, Ablation], scope: Scope, ledger: Ledger) -> None:
    """Fill the ledger, set by set: a set is loaded once a split."""
    wanted = [key for ablation in ablations.values() for key in ablation.fits(scope) if key not in ledger]
    places = list(dict.fromkeys((key["set"], key["split"]) for key in wanted))
    here = known_machine(ledger)
    for name, split in sorted(places, key=lambda place: place[1]):
        data = scope.load(name, split=split)
        for key in wanted:
            if (key["set"], key["split"]) == (name, split) and key not in ledger:
                result = ledger.once(key, lambda key=key, data=data: {**work(key, data), "machine": here})
                logger.info("%s %d, %s %s: %.1f s", name, split, key["model"], key["settings"], result["seconds"])


def page(ablations: Mapping[str, Ablation], scope: Scope, ledger: Ledger, absent: Sequence[str]) -> str:
    """All sections."""
    found = Found(ledger)
    parts = [_INTRODUCTION.format(seeds=scope.seeds, larger=" and ".join(LARGER))]
    if absent:
        parts.append(f"Not at hand here, and so not run: {', '.join(absent)}.")
    for ablation in ablations.values():
        parts += [f"## {ablation.title}", f"The paper: {ablation.claim}", ablation.section(found, scope)]
    fits = [result for key, result in ledger.items() if "machine" not in key]
    machines = ", ".join(sorted({key["machine"]["cpu"] for key, _ in ledger.items() if "machine" in key}))
    seconds = sum(result["seconds"] for result in fits)
    parts.append(f"{len(fits)} fits, {seconds / 60:.0f} minutes of wall clock in all, one at a time ({machines}).")
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """# Ablations: what the paper says in words

Random splits of the paper's sizes (64 % training, 16 % validation, 20 % test), {seeds} of each small set and one of
{larger} where they are cheap enough; a split's number is also the seed. Written by `python -m paper.ablations`;
sentences about results are computed from them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m paper.ablations", description="The paper's ablations.")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(ABLATIONS), help=f"of {', '.join(ABLATIONS)}")
    parser.add_argument("--seeds", type=int, default=5, help="random splits of a small set")
    parser.add_argument("--report-only", action="store_true", help="write the page, run nothing")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    ledger = Ledger(given.out / "ablations.jsonl")
    absent = [name for name in (*MANY, *LARGER) if not datasets.present(name)]
    many, larger = ([name for name in names if name not in absent] for names in (MANY, LARGER))
    scope = Scope(given.seeds, many, larger, datasets.load, given.out)
    if not given.report_only:
        run({name: ABLATIONS[name] for name in given.only or ABLATIONS}, scope, ledger)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "ablations.md").write_text(page(ABLATIONS, scope, ledger, absent))
    logger.info("wrote %s", given.out / "ablations.md")


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    logger.setLevel(logging.INFO)
    main()
