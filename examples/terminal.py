"""The picture of the command line in the README: real commands, their real output, drawn by rich.

    python examples/terminal.py [docs/images/cli.svg]

Everything is made anew in a temporary folder; progress bars, which are gone when a command ends, are not in it.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 92
COMMANDS = [
    "gce fit train.csv --target leaves --test test.csv --out m.safetensors --report r.html",
    "gce predict m.safetensors test.csv --proba | head -4",
    "gce compare train.csv --target leaves --test test.csv",
]


def output(command: str, folder: str) -> str:
    # as on a terminal of that width
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    # the command of this interpreter, wherever it is installed
    line = command.replace("gce ", f"{sys.executable} -m gce ", 1)
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/cli.svg")
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(Path(__file__).with_name("make_table.py")), folder], check=True)
        for number, command in enumerate(COMMANDS):
            console.print(Text(("\n" if number else "") + f"$ {command}", style="bold cyan"))
            console.print(Text.from_ansi(output(command, folder)))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(console.export_svg(title="gce"))


if __name__ == "__main__":
    main()
