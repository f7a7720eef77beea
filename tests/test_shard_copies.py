"""Files that change while they are read, and copies that differ: noticed by their rows, and named."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gce
from gce.estimators import _shard_data
from gce.estimators._shard_blocks import ShardReader, compare_files
from gce.preprocessing.open_shards import OpenShards, digest_rows
from test_shard_files import Again, table
from test_world_sums import processes

TREE = {"basis": "tree", "max_iter": 2, "random_state": 0}
PLAIN = {"use_dictionary": False, "compression": "none", "write_statistics": False}


def write(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=50, **PLAIN)
        return
    with ipc.new_file(path, rows.schema) as file:
        file.write_table(rows, max_chunksize=50)


def changed(rows):
    """The same rows but for one number."""
    x = rows["x"].to_numpy().copy()
    x[3] += 0.5
    return rows.set_column(0, "x", pa.array(x))


def replace(path, rows):
    write(path.with_name(f"new{path.suffix}"), rows)
    path.with_name(f"new{path.suffix}").replace(path)


def overwrite(path, rows):
    write(path, rows)


def forge(path, rows):
    """Write a file anew, and let the system believe that it was not."""
    before = path.stat()
    write(path, rows)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("how", [replace, overwrite, forge])
def test_a_file_that_changes_between_two_passes_is_named(tmp_path, monkeypatch, ending, how):
    """Of as many rows per group as before: nothing but their values tells it."""
    first = table(400)
    paths = [tmp_path / f"part-{i}{ending}" for i in range(2)]
    for path in paths:
        write(path, first)
        # as a file that was not written just now
        os.utime(path, ns=(10**18, 10**18))
    given, original = gce.Shards(paths, target="y", drop=["kind", "level", "day"]), _shard_data.learn_from_shards
    whole = gce.GCERegressor(**TREE).fit(given)

    def learn(*arguments):
        how(paths[1], changed(first))
        return original(*arguments)

    monkeypatch.setattr(_shard_data, "learn_from_shards", learn)
    words = "has other values than when it was first read" if how is forge else "was written again or replaced after"
    with pytest.raises(ValueError, match=f"part-1{re.escape(ending)} {words}"):
        gce.GCERegressor(**TREE).fit(given)
    monkeypatch.undo()
    write(paths[1], first)
    again = gce.GCERegressor(**TREE).fit(given)
    assert np.array_equal(again.predict(first.to_pandas()), whole.predict(first.to_pandas()))


def test_a_file_that_changes_before_its_last_row_group_is_read_is_named(tmp_path):
    path = tmp_path / "rows.parquet"
    write(path, table(200))
    os.utime(path, ns=(10**18, 10**18))
    opened = gce.Shards(path, target="y").open()
    opened.read(0)
    replace(path, changed(table(200)))
    with pytest.raises(ValueError, match=r"rows\.parquet was written again or replaced after it was opened"):
        opened.read(1)


def test_predictions_are_of_the_files_that_were_opened(tmp_path, monkeypatch):
    path, rows = tmp_path / "rows.parquet", table(200)
    write(path, rows)
    os.utime(path, ns=(10**18, 10**18))
    given = gce.Shards(path, drop=["kind", "level", "day", "y"])
    model = gce.GCERegressor(**TREE).fit(rows.to_pandas()[["x", "n", "flag", "w", "g"]], rows["y"].to_numpy())
    original = OpenShards.read

    def read(self, i, *columns):
        if i == 2:
            replace(path, changed(rows))
        return original(self, i, *columns)

    monkeypatch.setattr(OpenShards, "read", read)
    with pytest.raises(ValueError, match=r"rows\.parquet was written again or replaced"):
        model.predict_shards(given, tmp_path / "out")
    assert len(list((tmp_path / "out").glob("part-*.parquet"))) == 2


def test_batches_that_are_others_the_second_time_are_an_error(monkeypatch):
    rows, original = table(400).drop_columns(["kind", "level", "day"]), _shard_data.learn_from_shards
    batches = Again([rows[:200], rows[200:]])
    given = gce.Shards(batches, target="y")

    def learn(*arguments):
        batches.batches = [changed(rows[:200]), rows[200:]]
        return original(*arguments)

    monkeypatch.setattr(_shard_data, "learn_from_shards", learn)
    with pytest.raises(ValueError, match="batch 0 has other values than when it was first read"):
        gce.GCERegressor(**TREE).fit(given)


def compared(readers):
    with ThreadPoolExecutor(len(readers)) as threads:
        waiting = [threads.submit(reader.compare_copies) for reader in readers]
        return [each.exception(timeout=30) for each in waiting]


def first_pass(sources, size):
    """The readers of all processes after the first pass, each over its own source."""
    readers = [ShardReader(gce.Shards(source, target="y").open(), world, False)
               for source, world in zip(sources, processes(size), strict=True)]  # fmt: skip
    for reader in readers:
        for shard in reader.own:
            assert sum(len(block.number) for block in reader.blocks(shard))
    return readers


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_row_that_is_learned_from_is_compared_with_a_copy(tmp_path, size):
    rows = table(400)
    sources = [tmp_path / f"{rank}.d" for rank in range(size)]
    for source in sources:
        source.mkdir()
        write(source / "rows.parquet", rows)
    assert compared(first_pass(sources, size)) == [None] * size
    for rank in range(size):
        readers = first_pass(sources, size)
        for unit in (readers[rank].shards[shard][0] for shard in readers[rank].own):
            x = rows["x"].to_numpy().copy()
            x[50 * unit + 7] += 0.5
            write(sources[rank] / "rows.parquet", rows.set_column(0, "x", pa.array(x)))
            errors = compared(first_pass(sources, size))
            # each names its own copy
            (words,) = {str(error).split("rows.parquet")[1] for error in errors}
            assert re.match(r" has other values in process \d than in process \d: copy the file again", words)
            assert all(str(error).startswith(f"row group {unit} of ") for error in errors)
        write(sources[rank] / "rows.parquet", rows)


def compared_files(sources):
    """What each process says of the files of all before it reads rows."""
    files = [gce.Shards(source, target="y").open().fingerprint()["files"] for source in sources]
    with ThreadPoolExecutor(len(files)) as threads:
        waiting = [threads.submit(compare_files, *each) for each in zip(processes(len(files)), files, strict=True)]
        return [str(each.exception(timeout=30)) for each in waiting]


def test_the_file_whose_copies_differ_is_named_before_rows_are_read(tmp_path):
    sources, rows = [tmp_path / "a", tmp_path / "b", tmp_path / "a"], table(200)
    for folder in sources[:2]:
        folder.mkdir()
        for name in ("p0", "p1"):
            pq.write_table(rows, folder / f"{name}.parquet", use_dictionary=False, compression="none")
    assert compared_files(sources) == ["None"] * 3
    x = rows["x"].to_numpy().copy()
    x[3] = 50.0  # the largest, which the footer has
    larger = rows.set_column(0, "x", pa.array(x))
    pq.write_table(larger, tmp_path / "b" / "p1.parquet", use_dictionary=False, compression="none")
    advice = "in process 1 than in process 0: copy the file again, or let all processes read the same one"
    assert compared_files(sources) == [f"p1.parquet has other bytes at its end {advice}"] * 3
    pq.write_table(pa.concat_tables([rows, rows]), tmp_path / "b" / "p1.parquet")
    assert compared_files(sources) == [f"p1.parquet has another size {advice}"] * 3
    (tmp_path / "b" / "p1.parquet").rename(tmp_path / "b" / "p2.parquet")
    advice = "give all processes the same files in the same order"
    assert compared_files(sources) == [f"process 1 has p2.parquet where process 0 has p1.parquet: {advice}"] * 3
    (tmp_path / "b" / "p2.parquet").unlink()
    assert compared_files(sources) == [f"process 1 has no file where process 0 has p1.parquet: {advice}"] * 3


def test_one_file_for_all_processes_is_not_read_twice(tmp_path, monkeypatch):
    write(tmp_path / "rows.parquet", table(400))
    readers, read = first_pass([tmp_path / "rows.parquet"] * 3, 3), []
    monkeypatch.setattr(OpenShards, "read", lambda self, i, *columns: read.append(i))
    assert compared(readers) == [None] * 3
    assert not read


def test_batches_in_the_memory_of_processes_are_compared():
    rows = table(400)
    batches = [rows[i : i + 50] for i in range(0, 400, 50)]
    others = [*batches[:-1], changed(batches[-1])]
    assert compared(first_pass([batches, batches], 2)) == [None, None]
    assert all("batch 7 has other values in process 1" in str(e) for e in compared(first_pass([batches, others], 2)))


COLUMNS = {
    "float": st.one_of(st.none(), st.floats(allow_nan=False)),
    "int": st.one_of(st.none(), st.integers(-5, 5)),
    "bool": st.one_of(st.none(), st.booleans()),
    "text": st.one_of(st.none(), st.text("ab", max_size=3)),
}
TYPES = {"float": pa.float64(), "int": pa.int16(), "bool": pa.bool_(), "text": pa.string()}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(COLUMNS)))
    return kind, draw(st.lists(COLUMNS[kind], min_size=1, max_size=20))


@settings(deadline=None)
@given(columns(), st.data())
def test_a_hash_is_that_of_the_values_and_of_nothing_else(column, data):
    kind, values = column
    known = digest_rows(pa.table({"c": pa.array(values, TYPES[kind])}))
    # in chunks, each a slice of something longer
    cuts = sorted({0, len(values), *data.draw(st.lists(st.integers(0, len(values)), max_size=3))})
    longer = [pa.array([*values[:2], *values[a:b], *values[-1:]], TYPES[kind]) for a, b in pairwise(cuts)]
    chunks = [one.slice(min(2, len(values)), b - a) for one, a, b in zip(longer, cuts[:-1], cuts[1:], strict=True)]
    assert digest_rows(pa.table({"c": pa.chunked_array(chunks)})) == known
    if kind == "text":
        plain = pa.array(values, TYPES[kind])
        assert digest_rows(pa.table({"c": plain.cast(pa.large_string())})) == known
        assert digest_rows(pa.table({"c": plain.dictionary_encode()})) == known
    if kind == "float":
        beneath = np.array([9.9 if value is None else value for value in values])
        masked = pa.array(beneath, mask=np.array([value is None for value in values]), from_pandas=False)
        assert digest_rows(pa.table({"c": masked})) == known
    # any other column has another one
    other = data.draw(st.lists(COLUMNS[kind], min_size=1, max_size=20))
    same = pa.array(other, TYPES[kind]).equals(pa.array(values, TYPES[kind]))
    signed = kind == "float" and any(value == 0 for value in other)
    assert signed or (digest_rows(pa.table({"c": pa.array(other, TYPES[kind])})) == known) == same


def test_columns_of_all_types_have_a_hash():
    rows = table(40).append_column("nothing", pa.nulls(40)).append_column("cents", pd.Series([1.5] * 40).map(str))
    rows = rows.set_column(rows.num_columns - 1, "cents", rows["cents"].cast(pa.decimal128(5, 2)))
    assert digest_rows(rows) == digest_rows(pa.concat_tables([rows[:7], rows[7:]]))
    for i, name in enumerate(rows.column_names[:-1]):
        turned = rows.set_column(i, name, rows[name].combine_chunks().take(pa.array(range(39, -1, -1))))
        assert (digest_rows(turned) == digest_rows(rows)) == (name == "nothing"), name
