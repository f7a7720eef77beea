"""Fits of rows in files: those of rows in memory, the same for any number of processes, and after any kill."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import gce
from gce.bases import SymmetricTree, Tree
from gce.distributed import World
from gce.estimators._shard_blocks import ShardReader
from gce.estimators._shard_choice import choose_rows
from gce.estimators._shard_data import _words

HERE = Path(__file__).parent
#: Few rounds of each family.
FEW = {"max_iter": 6, "n_iter_no_change": None}


def numbers(n=1500, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]), y


def mixed(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    frame, y = numbers(n, seed=seed)
    frame.loc[rng.random(n) < 0.1, "x0"] = np.nan
    frame["town"] = rng.choice(["Bern", "Basel", "Genf", None], n)
    frame["who"] = rng.integers(0, n // 4, n).astype(str)
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), unit="D")
    taste = np.random.default_rng(9).normal(size=n // 4)
    return frame, y + (frame["town"] == "Bern") + taste[frame["who"].astype(int)]


def written(folder, frame, y, files=3, group=130, **columns):
    """Parquet files of the rows, with several row groups each."""
    folder.mkdir(exist_ok=True)
    whole = pa.Table.from_pandas(frame.assign(y=y, **columns), preserve_index=False)
    for i, part in enumerate(np.array_split(np.arange(len(frame)), files)):
        pq.write_table(whole.take(part), folder / f"part-{i}.parquet", row_group_size=group)
    return str(folder / "*.parquet")


def held_out(shards, n, seed=0, classes=False):
    """Mask of the rows that a fit of shards holds out."""
    reader = ShardReader(shards.open(), World(), classes)
    chosen = choose_rows(reader, seed, 0.1)
    assert len(chosen.held_out) == n
    return chosen.held_out


@pytest.mark.parametrize("rows", [numbers, mixed], ids=["numbers", "mixed"])
@pytest.mark.parametrize("classes", [None, 2, 3])
def test_a_fit_of_files_is_that_of_the_same_rows_in_memory(tmp_path, rows, classes):
    frame, y = rows()
    y = y if classes is None else np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    held = held_out(shards, len(frame), classes=classes is not None)
    kind = gce.GCERegressor if classes is None else gce.GCEClassifier
    basis = {"tree": Tree(max_leaf_nodes=8), "symmetric": SymmetricTree(max_depth=3)}
    settings = {**FEW, "basis": basis, "random_state": 0}
    ours = kind(**settings).fit(shards)
    theirs = kind(**settings, cv=[(np.flatnonzero(~held), np.flatnonzero(held))]).fit(frame, y)
    for own, other in zip(ours.result_.families, theirs.result_.families, strict=True):
        for one, two in zip(own.rounds, other.rounds, strict=True):
            assert torch.equal(one.weights, two.weights)
            for name, part in one.atoms.trees.tensors().items():
                assert torch.equal(part, two.atoms.trees.tensors()[name]), name
    # weights of families are found on predictions that are added up otherwise
    np.testing.assert_allclose(ours.raw_predict(frame).numpy(), theirs.raw_predict(frame).numpy(), rtol=0, atol=1e-12)
    assert ours.n_samples_fit_ == len(frame)
    assert ours.history_[0]["validation"] == theirs.history_[0]["validation"]


def described(tmp_path, name, *, classes=False, parameters=None, files, rows, checkpoint=None, **more):
    """The folder of what comes of a fit, with its settings."""
    out = tmp_path / name
    out.mkdir(exist_ok=True)
    about = {"classes": classes, "parameters": parameters or {}, "files": files, "out": str(out), "rows": str(rows)}
    about |= {"checkpoint": checkpoint, **more}
    (out / "settings.json").write_text(json.dumps(about))
    return out


def start(size, *folders):
    """Start the processes of fits, one fit after another."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    command = [sys.executable, str(HERE / "sharded.py"), *(str(out / "settings.json") for out in folders)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return [subprocess.Popen(command, env=common | {"RANK": str(rank)}, **pipes) for rank in range(size)]


def ended(processes):
    """What the processes printed, once all have ended well."""
    said = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


def test_what_may_differ_among_processes():
    first, second = (gce.GCERegressor(callbacks=[lambda step: False], n_jobs=n, verbose=n == 1) for n in (1, 2))
    assert _words(first) == _words(second.set_params(callbacks=None))
    assert _words(first) != _words(second.set_params(max_iter=7))


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_killed_fits_end_in_the_same_model(tmp_path):
    """A process is killed, and the fit goes on with another number of them."""
    frame, y = mixed(800)
    frame = frame.drop(columns=["who", "day", "town"])
    files = written(tmp_path / "data", frame, y)
    rows = tmp_path / "rows.parquet"
    frame[:100].to_parquet(rows)
    parameters = {"basis": ["tree", "symmetric"], "max_iter": 40, "n_iter_no_change": None}
    known = gce.GCERegressor(random_state=0, **parameters).fit(gce.Shards(files, target="y"))
    checkpoint = tmp_path / "checkpoint"
    given = {"parameters": parameters, "files": files, "rows": rows, "checkpoint": str(checkpoint)}
    for size, rank, rounds in ((2, 1, 5), (3, 0, 30)):
        processes = start(size, described(tmp_path, f"killed-{size}", **given))
        while len(list(checkpoint.glob("*round-*.safetensors"))) < rounds:
            assert all(process.poll() is None for process in processes), processes[0].communicate()[0]
            time.sleep(0.002)
        processes[rank].send_signal(signal.SIGKILL)
        said = [process.communicate(timeout=90)[0] for process in processes]
        others = [process for i, process in enumerate(processes) if i != rank]
        assert all(process.returncode not in (0, -signal.SIGKILL) for process in others), said
        assert all("one of them ended or hangs" in text for i, text in enumerate(said) if i != rank), said
    out = described(tmp_path, "last", **given)
    ended(start(2, out))
    expected = known.raw_predict(frame[:100]).numpy()
    for rank in range(2):
        np.testing.assert_array_equal(np.load(out / f"scores-{rank}.npy"), expected)


def test_processes_that_differ_are_told_apart(tmp_path):
    frame, y = numbers(200)
    files = written(tmp_path / "data", frame, y)
    frame.to_parquet(tmp_path / "rows.parquet")
    processes = start(2, described(tmp_path, "differ", parameters={"basis": "tree", "max_iter": 2}, files=files,
                                   rows=tmp_path / "rows.parquet", only={"1": {"max_iter": 3}}))  # fmt: skip
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert all(process.returncode for process in processes)
    assert all('differ in the parameter max_iter: "2" in process 0, "3" in' in text for text in said), said


def test_processes_whose_copies_of_the_files_differ_in_one_value_are_told_apart(tmp_path):
    """One value, which neither the sizes nor the footers of the files tell."""
    frame, y = numbers(6000)
    changed = frame.copy()
    changed.loc[3, "x1"] = np.median(frame["x1"])
    assert frame["x1"].min() < frame.loc[3, "x1"] < frame["x1"].max()
    plain = {"use_dictionary": False, "compression": "none"}
    files = []
    for name, one in (("first", frame), ("second", changed)):
        (tmp_path / name).mkdir()
        whole = pa.Table.from_pandas(one.assign(y=y), preserve_index=False)
        for i in range(2):
            path = tmp_path / name / f"part-{i}.parquet"
            pq.write_table(whole[3000 * i : 3000 * (i + 1)], path, row_group_size=1000, **plain)
        files.append(str(tmp_path / name / "*.parquet"))
    opened = [gce.Shards(each, target="y").open() for each in files]
    assert opened[0].fingerprint() == opened[1].fingerprint()
    frame.to_parquet(tmp_path / "rows.parquet")
    given = {"parameters": {"basis": "tree", "max_iter": 2}, "files": files, "rows": tmp_path / "rows.parquet"}
    processes = start(2, described(tmp_path, "differ", **given))
    said = [process.communicate(timeout=60)[0] for process in processes]
    assert all(process.returncode for process in processes)
    words = r"row group 0 of .*part-0\.parquet has other values in process 1 than in process 0"
    assert all(re.search(words, text) for text in said), said


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_a_process_that_hangs_is_a_time_out(tmp_path):
    frame, y = numbers(600)
    files = written(tmp_path / "data", frame, y)
    frame.to_parquet(tmp_path / "rows.parquet")
    checkpoint = tmp_path / "checkpoint"
    parameters = {"basis": "tree", "max_iter": 2000, "tol": 0.0, "n_iter_no_change": None, "max_atoms": 2000}
    first, second = start(2, described(tmp_path, "hang", parameters=parameters, files=files, timeout=10,
                                       rows=tmp_path / "rows.parquet", checkpoint=str(checkpoint)))  # fmt: skip
    try:
        while not list(checkpoint.glob("round-*.safetensors")):
            assert first.poll() is None, first.communicate()[0]
            time.sleep(0.01)
        second.send_signal(signal.SIGSTOP)
        said = first.communicate(timeout=60)[0]
        assert "process 0 of 2 waited for the others in vain" in said, said
    finally:
        second.kill()
        second.communicate()


def test_processes_may_have_different_numbers_of_threads(tmp_path):
    """Rows enough for torch to use several threads for a sum."""
    frame, y = numbers(40_000, d=3)
    files = written(tmp_path / "data", frame, y, group=4000)
    rows = tmp_path / "rows.parquet"
    frame[:100].to_parquet(rows)
    parameters = {"basis": ["tree", "neural"], "max_iter": 2}
    found = []
    for size, only in ((2, {"1": {"n_jobs": 2}}), (1, {"0": {"n_jobs": 2}})):
        out = described(tmp_path, f"of-{size}", parameters=parameters, files=files, rows=rows, only=only)
        ended(start(size, out))
        found += [np.load(out / f"scores-{rank}.npy") for rank in range(size)]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.filterwarnings("ignore:.*the hull cannot reach them")
def test_a_fit_at_its_bound_is_interrupted_anywhere(tmp_path):
    """The weight of the zero function is used up: what is left of it must not depend on where blocks begin."""
    frame, y = numbers(500)
    shards = gce.Shards(written(tmp_path / "data", frame, y), target="y")
    settings = {"basis": "symmetric", "bound": 1.0, "max_iter": 30, "n_iter_no_change": None, "random_state": 0}
    whole = gce.GCERegressor(**settings).fit(shards)
    for rounds in (5, 9, 23):
        folder = tmp_path / f"checkpoint-{rounds}"
        gce.GCERegressor(**settings | {"max_iter": rounds}).fit(shards, checkpoint=folder)
        again = gce.GCERegressor(**settings).fit(shards, checkpoint=folder)
        np.testing.assert_array_equal(again.raw_predict(frame).numpy(), whole.raw_predict(frame).numpy())
