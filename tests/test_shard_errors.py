"""What a fit of shards refuses, in one sentence, and what it makes of weights and groups."""

import errno
import os
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gce
from gce._utils.workspace import workspace
from gce.bases import Tree
from gce.distributed import World
from gce.estimators import _shard_choice, _shard_files
from gce.estimators._shard_blocks import ShardReader
from gce.estimators._shard_choice import HELD, choose_rows

TREE = {"basis": Tree(max_leaf_nodes=4), "max_iter": 3, "random_state": 0}


def batches(n=400, parts=4, **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    frame["y"] = frame["a"] + 0.1 * rng.normal(size=n)
    whole = pa.Table.from_pandas(frame.assign(**columns), preserve_index=False)
    return [whole.take(part) for part in np.array_split(np.arange(n), parts)]


def shards(*, n=400, target="y", sample_weight=None, groups=None, **columns):
    return gce.Shards(batches(n, **columns), target=target, sample_weight=sample_weight, groups=groups)


@pytest.mark.parametrize(
    ("parameters", "given", "words"),
    [
        ({"cv": 5}, {}, "cv must be 'auto' or None for Shards"),
        ({"scoring": "r2"}, {}, "scoring='r2' cannot be used with Shards"),
        ({"warm_start": True}, {}, "warm_start=True cannot be used with Shards"),
        ({"device": "meta"}, {}, "device"),
        ({}, {"y": np.zeros(400)}, "y cannot be given beside Shards"),
        ({}, {"groups": np.zeros(400)}, "groups cannot be given beside Shards"),
    ],
)
def test_arguments_that_rows_in_files_cannot_have(parameters, given, words):
    with pytest.raises(ValueError, match=words):
        gce.GCERegressor(**TREE | parameters).fit(shards(), **given)


def test_tasks_that_need_rows_in_memory():
    words = np.where(np.arange(400) % 3, "low", "high")
    with pytest.raises(ValueError, match="loss='ordinal' takes rows in memory"):
        gce.GCEClassifier(loss="ordinal", **TREE).fit(shards(target="z", z=words))
    with pytest.raises(ValueError, match="has one target, got 2"):
        gce.GCEClassifier(**TREE).fit(shards(target=["z", "v"], z=words, v=words))
    with pytest.raises(TypeError, match="GCESurvival takes rows in memory"):
        gce.GCESurvival(**TREE).fit(shards())


def test_rows_that_cannot_be_learned_from():
    model = gce.GCERegressor(**TREE)
    with pytest.raises(ValueError, match="need a target"):
        model.fit(shards(target=None))
    with pytest.raises(ValueError, match=r"target 'z' has 1 missing value\(s\) in batch 2"):
        model.fit(shards(target="z", z=[None if i == 250 else float(i) for i in range(400)]))
    with pytest.raises(ValueError, match="target 'z' has NaN or infinity in batch 0"):
        model.fit(shards(target="z", z=[np.inf, *np.ones(399)]))
    with pytest.raises(ValueError, match="y has one class only"):
        gce.GCEClassifier(**TREE).fit(shards(target="z", z=["same"] * 400))
    with pytest.raises(ValueError, match="no training row of positive weight"):
        model.fit(shards(sample_weight="w", w=np.zeros(400)))
    with pytest.raises(ValueError, match="sample weights holds -1 in batch 0"):
        model.fit(shards(sample_weight="w", w=np.linspace(-1, 1, 400)))
    with pytest.raises(ValueError, match="'a' contains infinity"):
        model.fit(gce.Shards([pa.table({"a": [1.0, np.inf] * 100, "y": np.arange(200.0)})], target="y"))


def test_other_models_take_rows_in_memory():
    with pytest.raises(TypeError, match="NGCERegressor takes rows in memory here, not Shards"):
        gce.NGCERegressor().fit(shards(), None)
    model = gce.GCERegressor(**TREE).fit(shards())
    with pytest.raises(TypeError, match="predict them with predict_shards"):
        model.predict(shards())


def test_many_classes_are_numbers():
    with pytest.raises(ValueError, match="more than 10,000 classes"):
        gce.GCEClassifier(**TREE).fit(shards(n=10_100, target="z", z=np.arange(10_100)))


def test_a_full_disk_is_an_error_that_names_the_folder(tmp_path, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with workspace(tmp_path / "work") as files, pytest.raises(OSError, match=r"has no room for .* GiB"):
        files.array("codes", (1 << 20,), np.float64)
    with pytest.raises(OSError, match="give Shards a folder on a larger disk"):
        gce.GCERegressor(**TREE).fit(gce.Shards(batches(), target="y", folder=tmp_path / "work"))
    assert not list((tmp_path / "work").iterdir())


def test_a_working_folder_that_was_removed_is_an_error_that_says_so(tmp_path):
    with workspace(tmp_path) as files:
        files.folder.rmdir()
        with pytest.raises(FileNotFoundError, match=r"gce-.* was removed during the fit: give Shards a folder"):
            files.array("codes", (8,), np.float64)


@pytest.mark.skipif(os.name != "posix", reason="a file that is open cannot be removed")
def test_a_working_file_has_no_name_once_it_takes_space(tmp_path, monkeypatch):
    """A kill leaves nothing that fills the disk."""
    named, allocate = [], os.posix_fallocate

    def note(handle, *place):
        named.extend(files.folder.iterdir())
        allocate(handle, *place)

    monkeypatch.setattr(os, "posix_fallocate", note, raising=False)
    with workspace(tmp_path) as files:
        array = files.array("codes", (8,), np.float64)
        array[:] = 1.0
        assert array.sum() == 8.0
    assert not named


def test_working_files_are_removed(tmp_path):
    gce.GCERegressor(**TREE).fit(gce.Shards(batches(), target="y", folder=tmp_path / "work"))
    assert not list((tmp_path / "work").iterdir())


def test_rows_of_one_group_are_held_out_together():
    opened = shards(groups="g", g=[f"g{i % 60}" for i in range(400)]).open()
    reader = ShardReader(opened, World(), False)
    chosen = choose_rows(reader, 3, 0.1)
    held = {group for shard in reader.own for block in reader.blocks(shard)
            for group, role in zip(block.group.tolist(), chosen.roles.of(block).tolist(), strict=True)
            if role == HELD}  # fmt: skip
    assert 0 < len(held) < 30
    trained = set(chosen.group[~chosen.held_out].tolist())
    assert not held & trained
    gce.GCERegressor(**TREE).fit(shards(groups="g", g=[f"g{i % 60}" for i in range(400)]))


def test_rows_without_weight_are_no_rows_and_equal_weights_are_none():
    weight = (np.arange(400) % 3 > 0).astype(float)
    new = pd.DataFrame({"a": np.linspace(-2, 2, 50), "b": np.zeros(50)})
    with_weight = gce.GCERegressor(**TREE).fit(shards(sample_weight="w", w=weight))
    assert with_weight.n_samples_fit_ == int(weight.sum())
    half = gce.GCERegressor(**TREE).fit(shards(sample_weight="w", w=np.full(400, 0.5)))
    none = gce.GCERegressor(**TREE).fit(shards())
    np.testing.assert_array_equal(half.predict(new), none.predict(new))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 1.0, "yes": 4.0}])
def test_weighted_fits_are_those_of_the_same_rows_in_memory(class_weight):
    rng = np.random.default_rng(1)
    y, weight = np.where(rng.random(400) < 0.2, "yes", "no"), rng.uniform(0.5, 2, 400)
    given = shards(target="z", z=y, sample_weight="w", w=weight)
    held = choose_rows(ShardReader(given.open(), World(), True), 0, 0.1).held_out
    ours = gce.GCEClassifier(**TREE, class_weight=class_weight).fit(given)
    frame = pa.concat_tables(batches()).to_pandas()
    cv = [(np.flatnonzero(~held), np.flatnonzero(held))]
    theirs = gce.GCEClassifier(**TREE, class_weight=class_weight, cv=cv).fit(frame, y, weight)
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(frame), rtol=1e-9)


def test_sampled_rows_have_every_class_and_every_gap(monkeypatch):
    """A class of one row, and a column with one missing value, in a sample of a few."""
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 20)
    rare = ["rare" if i == 333 else "no" if i % 2 else "yes" for i in range(400)]
    gap = [None if i == 222 else float(i) for i in range(400)]
    model = gce.GCEClassifier(**TREE).fit(shards(target="z", z=rare, c=gap))
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert "c is missing" in model.table_.get_feature_names_out()
    assert model.n_samples_fit_ == 400


def test_groups_that_cannot_be_held_out_are_told():
    few = [f"g{i % 3}" for i in range(400)]
    with pytest.warns(UserWarning, match="no row is held out, so that there is no early stopping"):
        gce.GCERegressor(**TREE | {"random_state": 1}).fit(shards(groups="g", g=few))


@pytest.mark.filterwarnings("ignore:no row is held out")
def test_groups_that_are_too_large_to_be_held_out_are_refused(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 10)
    few = [f"g{i % 3}" for i in range(400)]
    reader = ShardReader(shards(groups="g", g=few).open(), World(), False)
    refused = 0
    for seed in range(60):
        try:
            choose_rows(reader, seed, 0.1)
        except ValueError as error:
            assert "rows are in groups that are held out, where 10 were to be" in str(error)  # noqa: PT017
            refused += 1
    assert 0 < refused < 30


def test_groups_that_leave_few_rows_to_train_on_are_refused():
    few = ["small" if i < 12 else "large" for i in range(400)]
    reader = ShardReader(shards(groups="g", g=few).open(), World(), False)
    seen = set()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "no row is held out")
        for seed in range(60):
            try:
                seen.add(int(choose_rows(reader, seed, 0.1).held_out.sum()))
            except ValueError as error:
                text = str(error)
                seen.add(text[: text.index(":")])
    large = "388 rows are in groups that are held out, where 40 were to be, of 400"
    assert {0, 12, large} <= seen <= {0, 12, large, "the shards have no training row of positive weight"}


def test_groups_may_be_categories_of_few_codes():
    codes = pa.array(np.arange(400) % 128, pa.int8())
    group = pa.DictionaryArray.from_arrays(codes, pa.array([f"g{i}" for i in range(128)]))
    whole = pa.concat_tables(batches()).append_column("g", group)
    gce.GCERegressor(**TREE).fit(gce.Shards([whole], target="y", groups="g"))


def test_balanced_classes_weigh_the_same_in_all_rows(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 40)
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 2000, p=[0.9, 0.099, 0.001])
    found = []
    original = _shard_files.CodeFiles.write

    def write(self, bases):
        problem = original(self, bases)
        found.append((problem.train[0, : problem.train_rows].numpy().copy(), problem.y[: problem.train_rows].numpy()))
        return problem

    monkeypatch.setattr(_shard_files.CodeFiles, "write", write)
    gce.GCEClassifier(**TREE, class_weight="balanced").fit(shards(n=2000, target="z", z=y))
    ((weight, codes),) = found
    shares = weight @ codes
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)


def test_a_rare_class_among_groups_is_wanted_where_it_can_be_trained_on(monkeypatch):
    for name in ("MOST_ROWS", "FEWEST_ROWS"):
        monkeypatch.setattr(_shard_choice, name, 60)
    rare = np.where(np.isin(np.arange(400), (3, 133, 267, 391)), "rare", np.where(np.arange(400) % 2, "no", "yes"))
    groups = [f"g{i // 4}" for i in range(400)]
    for seed in range(12):
        given = shards(target="z", z=rare, groups="g", g=groups)
        gce.GCEClassifier(**TREE | {"random_state": seed}).fit(given)


def test_an_arrow_file_whose_offsets_are_wrong_is_refused(tmp_path):
    path = tmp_path / "rows.arrow"
    table = pa.table({"words": ["first", "second", "third"], "y": [0.0, 1.0, 2.0]})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)
    offsets = np.array([0, 5, 11, 16], dtype=np.int32).tobytes()
    raw = path.read_bytes()
    assert raw.count(offsets) == 1
    path.write_bytes(raw.replace(offsets, np.array([0, 5, 2**30, 16], dtype=np.int32).tobytes()))
    with pytest.raises(ValueError, match=r"rows\.arrow can no longer be read"):
        gce.Shards(path, target="y").open().read(0)
