"""What only a real process shows: Ctrl-C, a reader that goes away, and packages that are not there."""

import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import gce
from gce.cli import interrupting

#: A fit that would take hours.
ENDLESS = ["max_atoms=100000", "max_iter=100000", "n_iter_no_change=None", "tol=0", "verbose=True"]
TINY = ["basis=neural", "basis__hidden=3", "basis__max_epochs=3"]
#: A round that takes many seconds.
SLOW = ["basis=neural", "basis__hidden=3000", "basis__max_epochs=3000"]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 4))
    path = tmp_path_factory.mktemp("cli") / "train.csv"
    pl.DataFrame(x, schema=list("abcd")).with_columns(y=pl.Series(x[:, 0] + rng.normal(size=3000))).write_csv(path)
    return path


def begin(*words, **more):
    # a bar is drawn as on a terminal: it tells that the fit has begun
    environment = {**os.environ, "FORCE_COLOR": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "gce", *map(str, words)], stderr=subprocess.PIPE, env=environment, **more
    )


def heard(process, words):
    """Read standard error until some words are in it."""
    text = b""
    while words not in text:
        part = process.stderr.read1(4096)
        assert part, text.decode()
        text += part


def sets(settings):
    return [word for setting in settings for word in ("--set", setting)]


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_one_interruption_keeps_the_best_so_far(train, tmp_path):
    out = tmp_path / "m.safetensors"
    with begin("fit", train, "-t", "y", "--out", out, *sets(ENDLESS + TINY), stdout=subprocess.PIPE) as process:
        heard(process, b"first round")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert b"keeping the best model so far" in stderr
    assert b"interrupted after" in stdout
    model = gce.load(out)
    assert model.n_iter_ < 100_000
    assert np.isfinite(model.predict(pl.read_csv(train).drop("y"))).all()


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_a_second_interruption_aborts_at_once(train, tmp_path):
    out = tmp_path / "m.safetensors"
    with begin("fit", train, "-t", "y", "--out", out, *sets(ENDLESS + SLOW), stdout=subprocess.DEVNULL) as process:
        heard(process, b"first round")
        process.send_signal(signal.SIGINT)
        heard(process, b"Ctrl-C again aborts")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
    # killed by the signal, which a shell reports as 130
    assert process.returncode == -signal.SIGINT
    assert not out.exists()


@pytest.mark.skipif(os.name == "nt", reason="pipes are another matter there")
def test_rows_through_a_pipe_and_a_reader_that_goes_away(train, tmp_path):
    model, many, frame = tmp_path / "m.safetensors", tmp_path / "many", pl.read_csv(train)
    fitted = gce.GCERegressor(max_atoms=1, cv=2, basis=gce.bases.Neural(hidden=3, max_epochs=3), random_state=0)
    fitted.fit(frame.drop("y"), frame["y"].to_numpy()).save(model)
    pl.concat([frame] * 40).write_ipc_stream(many)
    with many.open("rb") as stdin, begin("predict", model, "-", stdin=stdin, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"prediction\n"
        assert float(process.stdout.readline()) == fitted.predict(frame.drop("y"))[0]
        process.stdout.close()
        stderr = process.stderr.read()
    assert process.returncode == 141
    assert stderr == b""


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "typer":
            raise ModuleNotFoundError(name, name=name)

import gce
from gce.cli import interrupting
assert not {"typer", "polars"} & set(sys.modules)
sys.meta_path.insert(0, Absent())
from gce.cli import main
main()
"""


def test_without_its_packages_the_command_says_what_to_install():
    done = subprocess.run([sys.executable, "-c", ABSENT], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'the command line needs typer: pip install "greedy-convex-ensemble[cli]"\n'


def test_an_interruption_in_the_middle_of_a_line_is_told_too(monkeypatch, capfd):
    def busy(words):
        raise RuntimeError("reentrant call inside a buffered writer")

    monkeypatch.setattr(interrupting, "say", busy)
    before = signal.getsignal(signal.SIGINT)
    with interrupting.Interruption() as interruption:
        interruption._on_signal(signal.SIGINT, None)
    assert interruption.requested
    assert "keeping the best model so far" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before
