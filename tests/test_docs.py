"""The docs' Python runs as it is pasted, page by page, and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
#: Python, and what it prints where the page shows that.
BLOCK = re.compile(r"```python\n(.*?)```\n(?:\n```\n(.*?)```\n)?", re.S)
#: Seconds, gaps and last digits differ from machine to machine, and with them where lines break: words do not.
NUMBER = re.compile(r"[+-]?\d[\d.,]*(e[+-]?\d+)?( %)?")


def masked(text):
    return NUMBER.sub("#", text).split()


@pytest.mark.parametrize("page", ["stacking.md"])
def test_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, blocks = {}, BLOCK.findall((DOCS / page).read_text())
    assert len(blocks) > 5
    assert sum(bool(shown) for _, shown in blocks) > 1
    for program, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, names)
        assert masked(printed.getvalue()) == masked(shown)
