"""What is written can be read, replaces a file whole or not at all, and is written by one process at a time."""

import dataclasses
import errno
import os
import stat
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

import gce
from gce.cli.app import app
from gce.io import container, families

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=40)
SMALL = {"basis": gce.bases.Tree(max_leaf_nodes=3, min_samples_leaf=2), "max_atoms": 3, "cv": 2, "random_state": 0}
POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions and locks of POSIX")


def fitted(**others):
    return gce.GCERegressor(**{**SMALL, **others}).fit(X, y)


def break_jobs(model):
    model.n_jobs = 1.0


def break_offset(model):
    ensemble = deepcopy(model.ensemble_)
    ensemble.offset[0] = np.inf
    model._result = dataclasses.replace(model.result_, ensemble=ensemble)


def break_scale(model):
    model.table_.encoder.scaling.scale[0] = np.inf


def break_residuals(model):
    calibration = dataclasses.replace(model.result_.calibration, residuals=model.residuals_[::-1].copy())
    model._result = dataclasses.replace(model.result_, calibration=calibration)


@pytest.mark.parametrize(
    ("breaks", "name"),
    [(break_jobs, "n_jobs"), (break_offset, "offset_"), (break_scale, "table_"), (break_residuals, "residuals_")],
)
def test_what_could_not_be_loaded_is_not_saved(breaks, name, tmp_path):
    path, model = tmp_path / "m.safetensors", fitted()
    model.save(path)
    before = path.read_bytes()
    breaks(model)
    with pytest.raises(ValueError, match=rf"gce.load would refuse it \('{name}'.*nothing was written to"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]


@pytest.mark.parametrize("value", [[3], np.array(3)], ids=["list", "array"])
def test_an_object_with_a_parameter_that_no_file_holds_comes_back_at_the_default(value, tmp_path):
    model = fitted(basis=gce.bases.Neural(hidden=3, max_epochs=2))
    model.basis.hidden = value
    with pytest.warns(UserWarning, match="basis cannot go into a model file"):
        model.save(tmp_path / "m.safetensors")
    again = gce.load(tmp_path / "m.safetensors")
    assert again.basis == "auto"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_families_share_what_a_file_may_grow_to(tmp_path, monkeypatch):
    path, copies = tmp_path / "m.safetensors", 60
    # one leaf moves a round: such weights are written by their moves
    fitted(
        basis=[gce.bases.Tree(max_leaf_nodes=2), gce.bases.SymmetricTree(max_depth=1)],
        max_atoms=40,
        n_iter_no_change=None,
    ).save(path, resumable=True)
    meta, tensors = container.read(path)
    stored = meta["families"]
    assert "blocks" in stored["0"]["course"]["path"]
    stored["families"] = [f"family {i}" for i in range(copies)]
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("families.1.")}
    for i in range(1, copies):
        stored[str(i)] = stored["0"]
        tensors |= {
            name.replace("families.0.", f"families.{i}.", 1): tensor
            for name, tensor in list(tensors.items())
            if name.startswith("families.0.")
        }
    tensors["families.shares"] = torch.full((copies,), 1 / copies, dtype=torch.float64)
    meta.pop("sha256", None)
    container.write(path, {k: v for k, v in meta.items() if k not in ("format", "version")}, tensors)
    # room for some families, each of which is small
    monkeypatch.setattr(families, "MOST_READ", 20_000)
    with pytest.raises(gce.ModelFileError, match="weights are more than gce stores as changes"):
        gce.load(path)


def test_families_without_room_are_written_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(families, "MOST_WRITTEN", 2_000)
    model = fitted(
        basis=[gce.bases.Tree(max_leaf_nodes=2), gce.bases.SymmetricTree(max_depth=1)],
        max_atoms=40,
        n_iter_no_change=None,
    )
    model.save(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(gce.load(tmp_path / "m.safetensors").predict(X), model.predict(X))


def test_a_history_of_other_members_is_refused(tmp_path):
    path = tmp_path / "m.safetensors"
    gce.NGCERegressor(n_atoms=2, hidden=2, max_epochs=2, cv=2, random_state=0).fit(X, y).save(path)
    meta, tensors = container.read(path)
    for name in ("risk", "validation"):
        tensors[f"history.columns.{name}"] = tensors[f"history.columns.{name}"][:, :1].clone()
    container.write(path, {k: v for k, v in meta.items() if k not in ("format", "version", "sha256")}, tensors)
    with pytest.raises(gce.ModelFileError, match=r"columns.risk.*must be"):
        gce.load(path)


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions(mode, tmp_path):
    model, path, page = fitted(), tmp_path / "m.safetensors", tmp_path / "page.html"
    for file in (path, page):
        file.touch()
        file.chmod(mode)
    model.save(path)
    model.report(page, X, y)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, page)] == [mode, mode]
    gce.load(path)


def full(part, *given, **more):
    with part.open("wb") as file:
        file.write(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_old_page(tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("old")
    model = fitted()
    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left") as caught:
        model.report(page, X, y)
    assert caught.value.filename == str(page)
    assert page.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


def test_a_full_disk_leaves_the_old_predictions(tmp_path, monkeypatch):
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    gce.GCERegressor(**SMALL).fit(frame, y).save(tmp_path / "m.safetensors")
    frame.write_csv(tmp_path / "rows.csv")
    out = tmp_path / "out.csv"
    out.write_text("old")
    monkeypatch.setitem(sys.modules["gce.cli.writing"]._WRITERS, ".csv", lambda frame, path: full(path))
    words = ["predict", str(tmp_path / "m.safetensors"), str(tmp_path / "rows.csv"), "--out", str(out)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert f"{out}: No space left on device" in " ".join(done.stderr.split())
    assert out.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["m.safetensors", "out.csv", "rows.csv"]


def test_errors_of_a_format_name_the_file_and_leave_the_old_one(tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"
    out.write_text("old")

    def refuse(frame, path):
        raise pl.exceptions.ComputeError("underlying IO error: File too large")

    monkeypatch.setitem(sys.modules["gce.cli.writing"]._WRITERS, ".parquet", refuse)
    with pytest.raises(OSError, match=r"out\.parquet could not be written: underlying IO error: File too large"):
        sys.modules["gce.cli.writing"].write_table(pl.DataFrame({"a": [1.0]}), out)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("out.parquet", "old")]


SAVE = """
import os, sys
from pathlib import Path
from gce.io.atomic import atomic_replace

with atomic_replace(Path(sys.argv[1])) as part:
    part.write_bytes(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@POSIX
def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path):
    path = tmp_path / "m[1].safetensors"
    command, pipes = [sys.executable, "-c", SAVE, str(path)], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as killed, subprocess.Popen(command, text=True, **pipes) as other:
        assert killed.stdout.readline().strip() == b"writing"
        assert other.stdout.readline() == "writing\n"
        killed.kill()
        killed.wait()
        assert len(list(tmp_path.iterdir())) == 2
        fitted().save(path)
        assert len(list(tmp_path.iterdir())) == 2
        gce.load(path)
        other.communicate("")
    assert other.returncode == 0
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"half"


FIT = """
import sys
import numpy as np
import gce

def wait(step):
    print("fitting", flush=True)
    sys.stdin.read()

X = np.random.default_rng(0).normal(size=(40, 3))
model = gce.GCERegressor(basis=gce.bases.Tree(max_leaf_nodes=3), max_atoms=3, cv=2, random_state=0, callbacks=[wait])
model.fit(X, X[:, 0], checkpoint=sys.argv[1])
"""


@POSIX
def test_two_processes_do_not_write_to_one_checkpoint(tmp_path):
    folder, model = (
        tmp_path / "fit",
        gce.GCERegressor(basis=gce.bases.Tree(max_leaf_nodes=3), max_atoms=3, cv=2, random_state=0),
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", FIT, str(folder)], text=True, **pipes) as other:
        assert other.stdout.readline() == "fitting\n"
        with pytest.raises(ValueError, match="is in use by another fit"):
            model.fit(X, X[:, 0], checkpoint=folder)
        other.kill()
    # a process that was killed holds no lock
    model.fit(X, X[:, 0], checkpoint=folder)
    whole = gce.GCERegressor(basis=gce.bases.Tree(max_leaf_nodes=3), max_atoms=3, cv=2, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


def test_a_fit_that_failed_leaves_its_folder_to_the_next(tmp_path):
    model = gce.GCERegressor(**SMALL)

    def fail(step):
        raise RuntimeError("a callback that fails")

    whole = model.fit(X, y).predict(X)
    with pytest.raises(RuntimeError, match="a callback that fails"):
        model.set_params(callbacks=[fail]).fit(X, y, checkpoint=tmp_path / "fit")
    assert list((tmp_path / "fit").iterdir())
    np.testing.assert_array_equal(
        model.set_params(callbacks=None).fit(X, y, checkpoint=tmp_path / "fit").predict(X), whole
    )


def test_predictions_of_other_rows_are_refused(tmp_path):
    several = [gce.bases.Tree(max_leaf_nodes=3, min_samples_leaf=2), gce.bases.Neural(hidden=2, max_epochs=2)]
    model = gce.GCERegressor(basis=several, max_atoms=2, cv=2, random_state=0)
    model.fit(X, y, checkpoint=tmp_path)
    path = next(tmp_path.glob("*best-*.safetensors"))
    meta, tensors = container.read(path)
    kept = {k: v for k, v in meta.items() if k not in ("format", "version", "sha256")}
    container.write(path, kept, {"pred": tensors["pred"][:, :-1].clone()})
    with pytest.raises(gce.ModelFileError, match=r"the tensor 'pred' must be .* of shape \(2, 40, 1\)"):
        model.set_params(max_atoms=3).fit(X, y, checkpoint=tmp_path)
