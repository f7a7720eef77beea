"""One piece of a benchmark in a process of its own: ``python worker.py module:function ARGUMENTS ANSWER``.

ARGUMENTS is a JSON object of keyword arguments; what the function returns is written to the file ANSWER as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    where, arguments, answer = sys.argv[1:]
    module, name = where.split(":")
    function = getattr(importlib.import_module(module), name)
    Path(answer).write_text(json.dumps(function(**json.loads(arguments))))


if __name__ == "__main__":
    main()
