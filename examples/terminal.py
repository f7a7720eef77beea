"""Refresh the outputs in docs/cli.md and the picture of the command line by running the commands.

    python examples/terminal.py

Every line of a console block of docs/cli.md that begins with "$ " is run, and the text after it is replaced. Progress
bars are not shown. Times are printed, so do not use the machine meanwhile.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parents[1]
PAGE, PICTURE = HERE / "docs" / "cli.md", HERE / "docs" / "images" / "cli.svg"
WIDTH = 92
DRAWN = ("gce fit", "gce inspect", "gce predict m.safetensors test.csv --proba")


def output(command: str, folder: str) -> str:
    # the output of a terminal of that width
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    # the gce of this interpreter
    line = re.sub(r"(^|\| )gce ", rf"\1{sys.executable} -m gce ", command)
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.decode()}")
    return done.stdout.decode().rstrip()


def refreshed(page: str, outputs: dict[str, str]) -> str:
    """The page with the new output of each command."""

    def block(found: re.Match[str]) -> str:
        lines = [line[2:] for line in found[1].splitlines() if line.startswith("$ ")]
        shown = (f"$ {line}\n" + "\n".join(row.rstrip() for row in outputs[line].splitlines()) for line in lines)
        return "```console\n" + "\n".join(shown) + "\n```\n"

    return re.sub(r"```console\n(\$ .*?)```\n", block, page, flags=re.S)


def drawn(outputs: dict[str, str]) -> str:
    """An SVG picture of some commands."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for command, text in outputs.items():
        if command.startswith(DRAWN):
            console.print(Text(f"$ {command}", style="bold cyan"))
            console.print(Text.from_ansi(text + "\n"))
    # no web font: the picture must not fetch anything
    return re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="gce"), flags=re.S)


def main() -> None:
    page = PAGE.read_text()
    commands = [line[2:] for block in re.findall(r"```console\n(\$ .*?)```", page, re.S) for line in block.splitlines()
                if line.startswith("$ ")]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, str(Path(__file__).with_name("make_table.py")), folder], check=True)
        outputs = {command: output(command, folder) for command in commands}
    plain = {command: Text.from_ansi(text).plain for command, text in outputs.items()}
    PAGE.write_text(refreshed(page, plain))
    PICTURE.write_text(drawn(outputs))


if __name__ == "__main__":
    main()
