"""Loops are compiled wherever numba is: without a folder for its cache, on a full disk, beside damaged files."""

import logging
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import gce
from gce._utils import jit

numba = pytest.importorskip("numba")

TWO_LOOPS = """
from gce._utils.jit import jit

@jit(nogil=True)
def half(number):
    return number / 2

@jit(nogil=True)
def twice(number):
    return 2 * number
"""

#: A loop of each of two files of the package, small enough to be compiled at once.
PROGRAM = """
import sys

import numpy as np
from gce._utils.reductions import combination
from gce.bases.trees.grower import splitmix64

assert combination.py_func.__code__.co_filename.startswith(sys.argv[1])
result = np.zeros(3)
combination(np.ones((2, 3)), np.array([1.0, 2.0]), result)
assert (result == 3).all()
splitmix64(np.uint64(1))
for loop in (combination, splitmix64):
    assert len(loop.nopython_signatures) == 1
"""


@pytest.fixture
def process(tmp_path, monkeypatch, caplog):
    """What a process that calls two loops for the first time finds in numba's cache, and what it says."""
    (tmp_path / "two_loops.py").write_text(TWO_LOOPS)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def begin():
        monkeypatch.setattr(jit, "_logged", set())
        caplog.clear()
        spec = spec_from_file_location("two_loops", tmp_path / "two_loops.py")
        module = module_from_spec(spec)
        with caplog.at_level(logging.WARNING, "gce"):
            spec.loader.exec_module(module)
            assert (module.half(3.0), module.twice(3.0)) == (1.5, 6.0)
        loops = module.half, module.twice
        assert all(len(loop.nopython_signatures) == 1 for loop in loops)
        return sum(sum(loop.stats.cache_hits.values()) for loop in loops), caplog.messages[:]

    return begin


def nobody_can_make(place):
    """A folder that not even root can make: its parent is a file."""
    place.touch()
    return str(place / "below")


@pytest.mark.skipif(sys.platform == "win32", reason="a user's folders are not named by the environment alone")
def test_a_package_without_a_folder_for_its_cache_is_compiled(tmp_path):
    shutil.copytree(Path(gce.__file__).parent, tmp_path / "gce", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {path.parent for path in (tmp_path / "gce").rglob("*.py")}:
        (folder / "__pycache__").touch()
    nowhere = nobody_can_make(tmp_path / "file")
    folders = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "NUMBA_CACHE_DIR": nowhere, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | folders, check=False)
    assert done.returncode == 0, done.stderr
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("numba finds no writable folder for its cache")
    assert "NUMBA_CACHE_DIR" in sentence


def test_a_sound_cache_is_used_without_a_word(process):
    assert [process(), process()] == [(0, []), (2, [])]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("contents", [b"", b"nonsense"])
def test_a_damaged_cache_is_told_of_once_and_written_anew(process, tmp_path, kind, contents):
    process()
    files = list((tmp_path / "cache").rglob(f"*.{kind}"))
    assert len(files) == 2
    for file in files:
        file.write_bytes(contents)
    hits, (sentence,) = process()
    assert hits == 0
    assert sentence.startswith(f"numba's cache in {files[0].parent} cannot be read (")
    assert "NUMBA_CACHE_DIR" in sentence
    assert process() == (2, [])


@pytest.mark.skipif(sys.platform == "win32", reason="no limits to files")
def test_a_full_disk_under_the_cache(process, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        hits, (sentence,) = process()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert hits == 0
    assert "cannot be written (OSError" in sentence
    assert "NUMBA_CACHE_DIR" in sentence
    assert [process(), process()] == [(0, []), (2, [])]


def test_without_numba_a_loop_is_plain_and_divides_as_a_compiled_one(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "numba", None)
    with caplog.at_level(logging.WARNING, "gce"):
        loop = jit.jit(nogil=True)(lambda numbers: numbers[0] / numbers[1])
    assert "plain Python" in caplog.text
    assert loop(np.array([1.0, 0.0])) == np.inf
