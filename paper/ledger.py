"""What has been run: one line of JSON a fit, on disk before the next fit begins.

Kill an experiment and start it again: fits that are in the ledger are read, not repeated, and the one that was under
way is run anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class Ledger:
    """Results by key, in a file of JSON lines that several processes may append to.

    Parameters
    ----------
    path : Path
        Made, with its folder, when the first result is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Record] = {}
        self._read()

    def _read(self) -> None:
        if not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            # a line that does not parse was cut off by a kill: its fit is run again
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            self._known[_name(entry["key"])] = entry["result"]

    def __contains__(self, key: Mapping[str, Any]) -> bool:
        return _name(key) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, key: Mapping[str, Any]) -> Record:
        return self._known[_name(key)]

    def items(self) -> list[tuple[Record, Record]]:
        """All keys and results, in the order they were written."""
        return [(json.loads(name), result) for name, result in self._known.items()]

    def once(self, key: Mapping[str, Any], work: Callable[[], Record]) -> Record:
        """The result that belongs to a key; ``work`` is called only if there is none yet."""
        name = _name(key)
        if name not in self._known:
            result = work()
            self._append({"key": json.loads(name), "result": result})
            self._known[name] = result
        return self._known[name]

    def _append(self, entry: Record) -> None:
        """Write one line in one go: O_APPEND keeps lines of several processes whole."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(entry) + "\n"
        if _cut_off(self.path):  # or another process is just writing: an empty line does no harm
            text = "\n" + text
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _name(key: Mapping[str, Any]) -> str:
    return json.dumps(dict(key), sort_keys=True)


def _cut_off(path: Path) -> bool:
    """Whether the file ends in the middle of a line."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
