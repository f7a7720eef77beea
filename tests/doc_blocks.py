"""A page's blocks, taken out of its Markdown and run in the order in which they stand.

- ``python``: all of a page in one namespace; what is printed must be shown in the unnamed block after it.
- ``sh``: a command a line. ``console``: commands after ``$``, each with what it prints on standard output.
- ``<!-- setup ... -->``: Python that readers are spared, run in its place.
- ``<!-- not run: reason -->`` right before a block: it is left alone.

Unnamed blocks are formulas, or outputs of the block before. Numbers differ between machines and are masked, except
formats of files and numbers of rows, columns, members and classes. Numbers of rounds and atoms must agree within a
factor of two.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from gce.cli.app import app

ROOT = Path(__file__).parents[1]
PIECE = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)-->$"
    r"|^(?:<!-- not run:(?P<reason>.*?)-->\n)?```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$"
    r"(?P<output>\n\n```\n(?P<shown>.*?)^```$)?",
    re.S | re.M,
)
#: Seconds, gaps and last digits differ from machine to machine, and with them where lines break: words do not.
NUMBER = re.compile(
    r"\b[0-9a-f]{64}\b|(?<!format )(?<![\d.])[+-]?\d[\d.,:T-]*+(e[+-]?\d+)?(\+\w+)?( %)?"
    r"(?! (?:rows|columns|members|classes)\b)"
)
COUNT = re.compile(r"(\d[\d,]*) (rounds|atoms)\b")
LINES = re.compile(r"[━─│╭╮╰╯├┤┬┴┼]+")
#: How wide the terminal is in docs/cli.md.
COLUMNS = "92"


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    shown: str = ""
    reason: str | None = None


def blocks(markdown):
    """Everything of a page that is a block, in order."""
    for found in PIECE.finditer(markdown):
        if found["setup"] is not None:
            yield Block("setup", found["setup"])
            continue
        if found["kind"] == "" or found["reason"] is not None:
            yield Block(found["kind"], found["text"], reason=found["reason"])
        else:
            yield Block(found["kind"], found["text"], found["shown"] or "")


def masked(text):
    return NUMBER.sub("#", LINES.sub(" ", text)).split()


def check_counts(printed, shown):
    """Numbers of rounds and atoms: where a fit stops depends on rounding, but not by much."""
    for (found, noun), (expected, _) in zip(COUNT.findall(printed), COUNT.findall(shown), strict=True):
        ratio = int(found.replace(",", "")) / int(expected.replace(",", ""))
        assert 0.5 <= ratio <= 2, f"{found} {noun}, but the page shows {expected}"


class Page:
    """A page being run in the current folder; commands that were run before on this table are not repeated."""

    def __init__(self, done=None):
        self.names, self.done = {}, {} if done is None else done

    def run(self, block):
        """Run a block, and compare what it prints with what the page shows."""
        if block.reason is not None:
            assert block.reason.strip(), f"why is this not run?\n{block.text}"
        elif block.kind in ("python", "setup"):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(block.text, self.names)
            assert block.kind == "setup" or masked(printed.getvalue()) == masked(block.shown), printed.getvalue()
        elif block.kind == "sh":
            lines = block.text.replace("\\\n", " ").splitlines()
            printed = [self._command(line) for line in lines if shlex.split(line, comments=True)]
            assert not block.shown or masked("".join(printed)) == masked(block.shown), "".join(printed)
        elif block.kind == "console":
            for line, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.M):
                printed = self._command(line)
                assert masked(printed) == masked(shown), f"{line}\n{printed}"
                check_counts(printed, shown)
        else:
            assert block.kind == "", f"a {block.kind} block is neither run nor marked:\n{block.text}"
            assert not re.search(r"^(\$|>>>) ", block.text, re.M), f"a block of commands without a name:\n{block.text}"

    def _command(self, line):
        words = shlex.split(line, comments=True)
        if (key := tuple(words)) not in self.done:
            self.done[key] = _piped(words)
        return self.done[key]


def _piped(words):
    """What a line of commands writes to standard output; ``gce`` runs in this process, which has loaded it."""
    told = None
    while words:
        end = words.index("|") if "|" in words else len(words)
        command, words = words[:end], words[end + 1 :]
        if command[0] == "gce":
            done = CliRunner().invoke(app, command[1:], input=told, env={"COLUMNS": COLUMNS})
            assert done.exit_code == 0, (command, done.output, done.exception)
            told = done.stdout
        elif command[:2] == ["python", "examples/make_table.py"]:
            told = _made_by([sys.executable, str(ROOT / command[1]), *command[2:]], None)
        else:
            assert command[0] == "head", f"{shlex.join(command)} is neither run nor marked"
            told = _made_by(command, told)
    return told


def _made_by(command, told):
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=True, env=dict(os.environ))
    return done.stdout
