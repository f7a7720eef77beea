"""The blocks of README and docs run as they are pasted, page by page, and print what the page says."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from doc_blocks import ROOT, Block, Page, blocks, check_counts
from gce.io.container import VERSION

#: Those whose commands are the same; they run on the table of examples/make_table.py, one after the other.
TABLE_PAGES = ["docs/cli.md", "README.md"]
PAGES = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").glob("*.md"))]
PAGES += ["CONTRIBUTING.md", "benchmarks/README.md", "paper/README.md"]
#: What `.[bench]` installs, and the pages were made without.
BENCHMARKED = ("lightgbm", "catboost")
#: Modules that only later releases have than the oldest that are supported.
NEEDS = {"docs/callbacks.md": "sklearn.callback"}


def there_and_runs(page, runner):
    found = list(blocks((ROOT / page).read_text()))
    for block in found:
        runner.run(block)
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if page not in TABLE_PAGES])
def test_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    monkeypatch.chdir(tmp_path)
    # its database is made with what sqlalchemy warns of
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    there_and_runs(page, Page())


def test_stacking_is_all_run_and_shown():
    found = list(blocks((ROOT / "docs" / "stacking.md").read_text()))
    assert sum(block.kind == "python" for block in found) > 5
    assert sum(bool(block.shown) for block in found) > 1
    assert all(block.reason is None for block in found)


def test_the_command_line_and_the_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # with what is installed for development; a benchmark's peers may be there too
    monkeypatch.setattr("gce.cli.peers.find_spec", lambda name: None if name in BENCHMARKED else find_spec(name))
    subprocess.run([sys.executable, str(ROOT / "examples" / "make_table.py"), "."], check=True)
    commands = {}
    assert sum(block.kind == "console" for block in there_and_runs("docs/cli.md", Page(commands))) >= 7
    readme = Page(commands)
    assert {"python", "sh"} <= {block.kind for block in there_and_runs("README.md", readme) if block.reason is None}
    names = readme.names
    assert names["error"] < 0.25
    np.testing.assert_allclose(names["proba"].sum(1), 1, atol=1e-12)
    assert abs(float(names["model"].ensemble_.weights.sum()) - 1) < 1e-12
    assert {"m.safetensors", "m.onnx", "r.html"} <= {path.name for path in tmp_path.iterdir()}


def text(kind, *lines, before=""):
    return before + f"```{kind}\n" + "".join(f"{line}\n" for line in lines) + "```\n"


def test_what_is_marked_is_left_alone():
    page = text("python", "1 / 0", before="<!-- not run: divides -->\n") + "\n" + text("", "u = -B sign(G)")
    for block in blocks(page):
        Page().run(block)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (text("python", "1 / 0", before="<!-- not run: -->\n"), "why is this not run"),
        (text("sh", "make demo"), "neither run nor marked"),
        (text("julia", "1"), "neither run nor marked"),
        (text("", "$ gce --version"), "without a name"),
        (text("python", "print('one')"), "one"),
        (text("python", "print('one')") + "\n" + text("", "two"), "one"),
        (text("console", "$ gce --version", "pce 1.0"), "gce --version"),
        (text("python", "print('format 3, checksum OK')") + "\n" + text("", "format 2, checksum OK"), "format 3"),
        (text("python", "print('on 500 rows')") + "\n" + text("", "on 400 rows"), "500 rows"),
    ],
)
def test_what_neither_runs_nor_says_why_is_found(page, words):
    (block,) = blocks(page)
    with pytest.raises(AssertionError, match=words):
        Page().run(block)


def test_counts_far_off_are_found():
    check_counts("5 members, 188 rounds, 560 atoms in 1.9 s", "5 members, 150 rounds, 1,000 atoms in 0.7 s")
    with pytest.raises(AssertionError, match="560 atoms, but the page shows 46"):
        check_counts("188 rounds, 560 atoms", "188 rounds, 46 atoms")


def test_the_page_of_model_files_states_the_current_format():
    page = (ROOT / "docs" / "model_files.md").read_text()
    assert f"an integer ({VERSION})" in page
    assert f"format version {VERSION + 1}, but this version of gce reads up to {VERSION}" in page


def test_a_setup_is_run_and_a_page_has_one_namespace():
    page = "# T\n\n<!-- setup\nx = 3\n-->\n\n" + text("python", "y = x + 1") + "\n" + text("python", "print('is', y)")
    found = list(blocks(page + "\n" + text("", "is 4")))
    assert [block.kind for block in found] == ["setup", "python", "python"]
    assert found[-1] == Block("python", "print('is', y)\n", "is 4\n")
    runner = Page()
    for block in found:
        runner.run(block)
