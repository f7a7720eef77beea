"""``gce warmup``: what it leaves behind."""

import os
import subprocess
import sys

import pytest
import torch
from typer.testing import CliRunner

from gce._utils import cuda
from gce.cli import warmup
from gce.cli.app import app


def run(*given, **environment):
    done = CliRunner().invoke(app, ["warmup", *given], env=environment)
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_fits_of_all_families_run_twice():
    steps = run("--device", "cpu")
    assert [line.split("  ")[1] for line in steps] == ["imports", "first fits", "second fits", "byte code"]


def test_byte_code_is_kept_once_where_python_does_not_keep_it(tmp_path, monkeypatch):
    source = tmp_path / "some.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert [warmup._compile(str(source)) for _ in range(2)] == [True, False]
    # byte code knows the time of its source in seconds
    os.utime(source, (0, 0))
    assert warmup._compile(str(source)) is True
    command = [sys.executable, "-v", "-c", "import some"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    assert any("some.cpython" in line and "matches" in line for line in said.splitlines())


def test_byte_code_that_cannot_be_written_is_counted(tmp_path, monkeypatch):
    source = tmp_path / "some.py"
    source.write_text("x = 1\n")
    # no folder can be made where a file is
    (tmp_path / "__pycache__").write_text("")
    monkeypatch.setattr(sys, "modules", {"some": type("", (), {"__file__": str(source)}), "made": sys.modules["sys"]})
    assert warmup._compile_modules() == "0 of 1 modules had none; 1 more cannot be written"


def test_every_file_of_kernels_is_compiled_for_the_device(monkeypatch):
    asked = []
    monkeypatch.setattr(cuda, "_module", lambda file, index: asked.append((file, index)))
    assert cuda.prepare(torch.device("cuda", 3)) == len(asked) == len(list(cuda.SOURCES.glob("*.cu")))
    assert {index for _, index in asked} == {3}


@pytest.mark.parametrize(("reason", "words"), [("too old", "no kernels: too old"), (None, "2 files of kernels")])
def test_a_device_has_a_line(monkeypatch, reason, words):
    monkeypatch.setattr("gce._utils.devices.find_device", lambda name: torch.device("cuda", 0))
    monkeypatch.setattr(cuda, "missing", lambda device: reason)
    monkeypatch.setattr(cuda, "prepare", lambda device: 2)
    ((name, _, text),) = warmup._gpu("auto")
    assert name == "GPU"
    assert text.startswith(words)


def test_an_unknown_device_is_an_error_of_one_line():
    done = CliRunner().invoke(app, ["warmup", "--device", "tpu"])
    assert done.exit_code == 1
    assert "tpu" in done.stderr
    assert len(done.stderr.splitlines()) == 1
