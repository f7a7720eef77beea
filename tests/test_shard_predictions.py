"""Predictions of rows in files: those of the table in memory to the bit, gone on with, never mixed."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gce
from gce import Shards
from gce.estimators import _shard_predictions
from gce.io.models import digest

TINY = {"max_atoms": 3, "random_state": 0}


def table(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    return pa.table(
        {
            "x": pa.array([None if v > 1 else v for v in x]),
            "n": pa.array(rng.integers(0, 9, rows)),
            "kind": pa.array(rng.choice(["red", "blue", "green"], rows).tolist()),
            "y": x + rng.normal(size=rows),
            "z": rng.normal(size=rows),
        }
    )


TRAIN, NEW = table(80, 0), table(50, 1)
FEATURES = ["x", "n", "kind"]


@pytest.fixture(scope="module")
def regressor():
    return gce.GCERegressor(**TINY).fit(TRAIN.select(FEATURES), TRAIN["y"].to_numpy())


@pytest.fixture(scope="module")
def classifier():
    return gce.GCEClassifier(**TINY).fit(TRAIN.select(["x", "n"]), TRAIN["kind"].to_numpy())


@pytest.fixture
def shards(tmp_path):
    (tmp_path / "data").mkdir()
    # columns in another order, and more of them
    whole = NEW.select(["z", "kind", "x", "y", "n"])
    pq.write_table(whole[:30], tmp_path / "data" / "a.parquet", row_group_size=11)
    pq.write_table(whole[30:], tmp_path / "data" / "b.parquet", row_group_size=11)
    return Shards(tmp_path / "data")


def read(paths):
    return pa.concat_tables([pq.read_table(path) for path in paths])


def test_predictions_are_those_of_the_table(tmp_path, shards, regressor, monkeypatch):
    paths = regressor.predict_shards(shards, tmp_path / "out")
    assert [path.name for path in paths] == [f"part-{i:06d}.parquet" for i in range(5)]
    assert [pq.read_metadata(path).num_rows for path in paths] == [11, 11, 8, 11, 9]
    assert read(paths).column_names == ["prediction"]
    wanted = regressor.predict(NEW.select(FEATURES))
    assert np.array_equal(read(paths)["prediction"].to_numpy(), wanted)
    monkeypatch.setattr(_shard_predictions, "_BLOCK_ROWS", 4)
    assert np.array_equal(read(regressor.predict_shards(shards, tmp_path / "blocks"))["prediction"].to_numpy(), wanted)


def test_classes_and_probabilities(tmp_path, shards, classifier):
    rows = NEW.select(["x", "n"])
    labels = read(classifier.predict_shards(shards, tmp_path / "labels"))
    assert labels["prediction"].to_pylist() == classifier.predict(rows).tolist()
    found = read(classifier.predict_shards(shards, tmp_path / "proba", method="predict_proba"))
    assert found.column_names == ["proba_blue", "proba_green", "proba_red"]
    assert np.array_equal(np.column_stack([c.to_numpy() for c in found.columns]), classifier.predict_proba(rows))


def test_several_targets_and_columns_without_names(tmp_path):
    X, Y = TRAIN.select(["n", "z"]).to_pandas().to_numpy(), TRAIN.select(["y", "z"]).to_pandas().to_numpy()
    model = gce.NGCERegressor(n_atoms=2, max_epochs=3, random_state=0).fit(X, Y)
    found = read(model.predict_shards(Shards(TRAIN.select(["n", "z"]).to_batches(30)), tmp_path / "out"))
    assert found.column_names == ["prediction_0", "prediction_1"]
    assert np.array_equal(np.column_stack([c.to_numpy() for c in found.columns]), model.predict(X))
    with pytest.raises(ValueError, match="has 5 features, and the model was fitted on 2 without names"):
        model.predict_shards(Shards([TRAIN]), tmp_path / "more")


class Counting:
    """Predicts as a model does, counts the calls, and fails at one of them."""

    def __init__(self, monkeypatch, model, fail_at=None):
        self.calls = 0
        predict = type(model).predict

        def counted(own, X):
            self.calls += 1
            if self.calls == fail_at:
                raise KeyboardInterrupt
            return predict(own, X)

        monkeypatch.setattr(type(model), "predict", counted)


def test_a_call_that_ended_early_is_gone_on_with(tmp_path, shards, regressor, monkeypatch):
    whole = [path.read_bytes() for path in regressor.predict_shards(shards, tmp_path / "whole")]
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        Counting(patch, regressor, fail_at=3)
        with pytest.raises(KeyboardInterrupt):
            regressor.predict_shards(shards, out)
    # whole files only
    assert sorted(path.name for path in out.iterdir()) == [
        "_predictions.json",
        "part-000000.parquet",
        "part-000001.parquet",
    ]
    # what a killed process leaves
    partial = out / ".part-000002.parquet.7-abcd.tmp"
    partial.write_bytes(b"PAR1")
    with monkeypatch.context() as patch:
        counting = Counting(patch, regressor)
        assert [path.read_bytes() for path in regressor.predict_shards(shards, out)] == whole
        assert counting.calls == 3
        (out / "part-000001.parquet").unlink()
        assert [path.read_bytes() for path in regressor.predict_shards(shards, out)] == whole
        assert counting.calls == 4
        regressor.predict_shards(shards, out)
        assert counting.calls == 4
    assert not partial.exists()


@pytest.mark.parametrize("kind", ["regressor", "classifier"])
def test_a_loaded_model_goes_on(tmp_path, shards, request, kind):
    model = request.getfixturevalue(kind)
    model.predict_shards(shards, tmp_path / "out")
    for resumable in (False, True):
        model.save(tmp_path / "m.safetensors", resumable=resumable)
        loaded = gce.load(tmp_path / "m.safetensors")
        assert digest(loaded) == digest(model)
        loaded.predict_shards(shards, tmp_path / "out")


def test_a_model_with_other_parts_goes_to_an_empty_folder_only(tmp_path, shards, regressor, monkeypatch):
    monkeypatch.setattr(_shard_predictions, "digest", lambda model: None)
    regressor.predict_shards(shards, tmp_path / "out")
    with pytest.raises(ValueError, match="has predictions already, and a model with parts that are not gce's own"):
        regressor.predict_shards(shards, tmp_path / "out")


def test_batches_in_memory_are_never_taken_for_those_before(tmp_path, regressor):
    batches = [TRAIN.select(FEATURES)]
    regressor.predict_shards(gce.Shards(batches), tmp_path / "out")
    with pytest.raises(ValueError, match="batches in memory cannot be told from others"):
        regressor.predict_shards(gce.Shards(batches), tmp_path / "out")


def test_other_predictions_are_refused(tmp_path, shards, regressor, classifier):
    out = tmp_path / "out"
    regressor.predict_shards(shards, out)
    other = gce.GCERegressor(max_atoms=4, random_state=0).fit(TRAIN.select(FEATURES), TRAIN["y"].to_numpy())
    with pytest.raises(ValueError, match="has predictions of another model: give another folder"):
        other.predict_shards(shards, out)
    with pytest.raises(ValueError, match="has predictions of other rows"):
        regressor.predict_shards(Shards([NEW]), out)
    classifier.predict_shards(shards, tmp_path / "labels")
    with pytest.raises(ValueError, match="has predictions of another method"):
        classifier.predict_shards(shards, tmp_path / "labels", method="predict_proba")
    (out / "_predictions.json").write_text("[]")
    with pytest.raises(ValueError, match="another model"):
        regressor.predict_shards(shards, out)
    (out / "_predictions.json").write_text("{")
    with pytest.raises(ValueError, match="is not what predict_shards writes"):
        regressor.predict_shards(shards, out)
    (out / "_predictions.json").unlink()
    with pytest.raises(ValueError, match=r"has files part-\*\.parquet without a _predictions.json"):
        regressor.predict_shards(shards, out)


def test_rows_and_methods_that_the_model_does_not_have(tmp_path, shards, regressor):
    with pytest.raises(ValueError, match="batch 0 lacks 'kind', which the model was fitted on: it has 'x', 'n'"):
        regressor.predict_shards(Shards([NEW.select(["x", "n"])]), tmp_path / "out")
    with pytest.raises(ValueError, match="GCERegressor has no predict_proba: use method='predict'"):
        regressor.predict_shards(shards, tmp_path / "out", method="predict_proba")
    with pytest.raises(ValueError, match="method must be 'predict' or 'predict_proba', got 'score'"):
        regressor.predict_shards(shards, tmp_path / "out", method="score")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="not fitted"):
        gce.GCERegressor().predict_shards(shards, tmp_path / "out")


class Meeting:
    """The world of one of several processes that run one after another."""

    def __init__(self, rank, size):
        self.rank, self.size, self.waited = rank, size, 0

    def check_equal(self, about):
        json.dumps(about)

    def gather(self, own):
        return [own] if self.rank == 0 else [own, own]

    def wait(self):
        self.waited += 1


def test_there_may_be_more_processes_than_units(tmp_path, shards, regressor, monkeypatch):
    counts = []
    for rank in range(7):
        world = Meeting(rank, 7)
        monkeypatch.setattr(_shard_predictions, "find_world", lambda world=world: world)
        paths = regressor.predict_shards(shards, tmp_path / "out")
        counts.append(sum(path.exists() for path in paths))
        assert world.waited == 1
    assert counts == [1, 2, 3, 4, 5, 5, 5]


PROGRAM = """
import sys
import gce
model, data, out = sys.argv[1:]
with gce.distributed.process_group(60) as world:
    try:
        paths = gce.load(model).predict_shards(gce.Shards(data), out)
        sys.stdout.write(f"{world.rank} of {world.size}, {len(paths)} files")
    except ValueError as error:
        sys.stdout.write(str(error))
"""


def run_two(*words):
    """What two processes of a group say."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    both = [
        subprocess.Popen(
            command, env={**common, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    return [out for out, _ in said]


def test_two_processes_predict_together(tmp_path, shards, regressor, classifier):
    regressor.save(tmp_path / "m.safetensors")
    classifier.save(tmp_path / "c.safetensors")
    assert run_two(tmp_path / "m.safetensors", shards.source, tmp_path / "out") == [
        "0 of 2, 5 files",
        "1 of 2, 5 files",
    ]
    paths = sorted((tmp_path / "out").glob("*.parquet"))
    assert np.array_equal(read(paths)["prediction"].to_numpy(), regressor.predict(NEW.select(FEATURES)))
    # both learn of what one finds
    refused = run_two(tmp_path / "c.safetensors", shards.source, tmp_path / "out")
    assert all("has predictions of another model" in words for words in refused)


def test_what_a_model_says_of_rows_has_their_file(regressor, tmp_path):
    path = tmp_path / "words.parquet"
    rows = NEW.select(FEATURES)
    pq.write_table(rows.set_column(1, "n", pa.array(["many"] * len(rows))), path)
    with pytest.raises(ValueError, match=r"row group 0 of .*words\.parquet: column 'n' held numbers"):
        regressor.predict_shards(Shards(path), tmp_path / "out")
