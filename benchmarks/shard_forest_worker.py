"""One process of a fit that benchmarks/shard_forests.py measures: ``python shard_forest_worker.py FILES OUT``."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import gce
from gce.bases import Forest
from gce.distributed import process_group, world


class Measured(Forest):
    """The default forest, with the seconds of its oracle call on the processor and on the clock."""

    seconds: dict[str, float]

    def minimize(self, *args: Any, **more: Any) -> Any:
        began = time.process_time(), time.perf_counter()
        found = super().minimize(*args, **more)
        # one process alone leaves it to the fit
        if found.outputs is None:
            found.atoms(found.atoms.seen(args[1]))
        type(self).seconds = {"processor": time.process_time() - began[0], "clock": time.perf_counter() - began[1]}
        return found


def main() -> None:
    kind = world._ProcessGroup
    sent, gather = [], kind.gather
    rows, all_to_all = [0], kind.all_to_all

    def counted(group: Any, own: bytes) -> list[bytes]:
        sent.append(len(own))
        return gather(group, own)

    def counted_rows(group: Any, parts: Any) -> Any:
        rows[0] += sum(len(part) for rank, part in enumerate(parts) if rank != group.rank)
        return all_to_all(group, parts)

    with process_group() as processes:
        files = gce.Shards(sys.argv[1], target="y")
        kind.gather, kind.all_to_all = counted, counted_rows  # type: ignore[method-assign]
        gce.GCERegressor(basis=Measured(n_estimators=20), random_state=0, n_jobs=1).fit(files)
        # trees, then predictions
        figures = {**Measured.seconds, "rows": rows[0], "trees": sent[-2] if sent else 0}
        figures["predictions"] = sent[-1] if sent else 0
        every = [json.loads(own) for own in processes.gather(json.dumps(figures).encode())]
        if processes.rank == 0:
            Path(sys.argv[2]).write_text(json.dumps(every))


if __name__ == "__main__":
    main()
