"""What the command line prints from files of strangers: nothing that a terminal obeys."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import gce
from gce._utils.text import escape_control
from gce.cli.app import app
from gce.cli.writing import write_table

#: A title, a clipboard, a colour, a C1 sequence, a bell, a text direction and a return.
EVIL = "\x1b]0;owned\x07\x1b]52;c;AAAA\x07\x1b[31m\x9b31m\x07\u202e\rend"
RNG = np.random.default_rng(0)
SMALL = {"basis": gce.bases.Tree(max_leaf_nodes=2, min_samples_leaf=2), "max_atoms": 2, "cv": 2, "random_state": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evil")
    words = np.where(RNG.random(40) < 0.5, f"level {EVIL}", "level")
    X = pl.DataFrame({f"column {EVIL}": RNG.normal(size=40), "words": words})
    labels = np.where(X[:, 0] > 0, f"class {EVIL}", "class")
    gce.GCEClassifier(**SMALL).fit(X, labels).save(folder / "m.safetensors")
    X.write_csv(folder / "rows.csv")
    return folder


def obeyed(text):
    return [letter for letter in text if letter != "\n" and not letter.isprintable()]


def call(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_inspect_shows_control_characters(files, options):
    done = call("inspect", files / "m.safetensors", *options)
    assert done.exit_code == 0
    assert "owned" in done.stdout
    assert not obeyed(done.stdout)
    if options:
        assert json.loads(done.stdout)["columns"][0]["name"] == f"column {EVIL}"


def test_errors_and_warnings_show_them(files):
    done = call("fit", files / "rows.csv", "-t", "none")
    assert done.exit_code == 1
    assert "owned" in done.stderr
    assert not obeyed(done.stderr)


def test_predictions_are_data_unless_a_terminal_shows_them(files, monkeypatch):
    done = call("predict", files / "m.safetensors", files / "rows.csv")
    assert EVIL.replace("\r", "") in done.stdout.replace("\r", "")
    written = []
    monkeypatch.setattr("gce.cli.writing.sys.stdout", type("Terminal", (), {"isatty": lambda self: True})())
    monkeypatch.setattr("gce.cli.writing.sys.stdout.write", written.append, raising=False)
    write_table(pl.DataFrame({"a": [EVIL]}), Path("-"))
    assert not obeyed("".join(written))


def test_logs_and_explanations_show_control_characters(caplog):
    tree = SMALL["basis"]
    X, y = RNG.normal(size=(40, 2)), np.arange(40) % 2
    with caplog.at_level("DEBUG", "gce"):
        families = {f"family {EVIL}": tree, "two\nlines": tree}
        model = gce.GCERegressor(**{**SMALL, "basis": families, "verbose": 2}).fit(X, X[:, 0] * y)
    assert "owned" in caplog.text
    assert not any(map(obeyed, caplog.messages))
    assert not any("\n" in message for message in caplog.messages)
    for by in ("families", "atoms"):
        assert not obeyed(str(model.explain(X, X[:, 0] * y, by=by)))


def test_words():
    assert escape_control("ä 漢 \n") == "ä 漢 \n"
    assert escape_control("\x1b[31m\x9b") == "\\x1b[31m\\x9b"
