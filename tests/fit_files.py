"""The files of gce that a default fit enters, in the order of their first calls: how much there is to read.

Run as ``python tests/fit_files.py``. Compiled loops are entered once, and files that are only imported are not counted.
"""

import sys
import threading
from pathlib import Path

import numpy as np

import gce

SOURCE = Path(gce.__file__).parent


def files_of(work):
    """Functions called by ``work``, by file."""
    found = {}

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            found.setdefault(path.relative_to(SOURCE), {})[frame.f_code.co_qualname] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def main():
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = X[:, 0] + np.sign(X[:, 1])
    model = gce.GCERegressor(max_atoms=12, random_state=0)
    # imports and compilation are over before calls are counted
    model.fit(X, y)
    found, total = files_of(lambda: model.fit(X, y)), 0
    for path, functions in found.items():
        lines = len((SOURCE / path).read_text().splitlines())
        total += lines
        first = next(iter(functions))
        sys.stdout.write(f"{path}  {lines} lines, {len(functions)} functions, first {first}\n")
    sys.stdout.write(f"{len(found)} files, {total} lines\n")


if __name__ == "__main__":
    main()
