"""Rows in files: every format gives the rows of the table in memory, and what does not fit together is an error."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import gce
from gce import Shards


def table(rows=10, seed=0):
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 99, rows).tolist()
    return pa.table(
        {
            "x": pa.array(rng.normal(size=rows)),
            "n": pa.array([None if v < 20 else v for v in whole], pa.int32()),
            "kind": pa.array(rng.choice(["red", "blue"], rows).tolist()),
            "level": pa.array(rng.choice(["low", "high"], rows).tolist()).dictionary_encode(),
            "flag": pa.array((rng.random(rows) < 0.5).tolist()),
            "day": pa.array(rng.integers(0, 10**6, rows), pa.timestamp("us")),
            "w": pa.array(rng.random(rows)),
            "g": pa.array(rng.integers(0, 3, rows)),
            "y": pa.array(rng.normal(size=rows)),
        }
    )


class Again:
    """Batches that begin anew each time, and are no list."""

    def __init__(self, batches):
        self.batches, self.passes = batches, 0

    def __iter__(self):
        self.passes += 1
        yield from self.batches


def parquet(folder, whole):
    pq.write_table(whole[:7], folder / "a.parquet", row_group_size=3)
    pq.write_table(whole[7:], folder / "b.pq", row_group_size=2)
    return folder


def arrow(folder, whole):
    feather.write_feather(whole[:7], folder / "a.feather", chunksize=3)
    with ipc.new_file(folder / "b.arrow", whole.schema) as file:
        file.write_table(whole[7:], max_chunksize=2)
    return [folder / "b.arrow", str(folder / "*.feather")]


SOURCES = {
    "parquet": parquet,
    "arrow": arrow,
    "list": lambda folder, whole: [*whole[:7].to_batches(3), whole[7:9], whole[9:]],
    "iterable": lambda folder, whole: Again([*whole[:7].to_batches(3), whole[:0], whole[7:9], whole[9:]]),
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    return SOURCES[request.param](tmp_path, table())


def read_all(opened):
    return pa.concat_tables([opened.read(i) for i in range(len(opened.units))])


def test_every_source_gives_the_rows_of_the_table_in_order(source):
    opened = Shards(source, target="y", sample_weight="w", groups="g").open()
    assert [unit.rows for unit in opened.units] == [3, 3, 1, 2, 1]
    assert opened.rows == 10
    assert opened.columns == ("x", "n", "kind", "level", "flag", "day")
    assert (opened.targets, opened.weight, opened.group) == (("y",), "w", "g")
    wanted = table().select([*opened.columns, "y", "w", "g"])
    assert read_all(opened).cast(wanted.schema).equals(wanted)
    assert read_all(opened).schema.equals(opened.schema)
    starts = np.cumsum([0, 3, 3, 1, 2])
    for i in (4, 0, 2, 2):
        assert opened.read(i)["x"].equals(wanted["x"][starts[i] : starts[i] + opened.units[i].rows])


def test_some_columns_are_read_alone(source):
    opened = Shards(source, target="y").open()
    assert opened.read(1, ["y", "kind"]).equals(table().select(["y", "kind"])[3:6])


def test_names_with_dots_are_names(tmp_path):
    pq.write_table(pa.table({"a": [1], "a.b": [2]}), tmp_path / "a.parquet")
    assert Shards(tmp_path).open().read(0, ["a"]).to_pydict() == {"a": [1]}
    assert Shards(tmp_path, target="a").open().read(0).to_pydict() == {"a.b": [2], "a": [1]}


def test_a_fit_of_the_rows_read_is_that_of_the_table(tmp_path):
    whole = table(60)
    pq.write_table(whole, tmp_path / "a.parquet", row_group_size=11)
    opened = Shards(tmp_path / "a.parquet", target="y").open()
    read = read_all(opened)
    models = [
        gce.GCERegressor(max_atoms=2, basis="tree", random_state=0).fit(
            rows.select(opened.columns), rows["y"].to_numpy()
        )
        for rows in (read, whole)
    ]
    assert np.array_equal(*(model.predict(whole.select(opened.columns)) for model in models))


def test_files_are_in_the_order_of_their_names(tmp_path):
    for name in ("b", "c", "a"):
        pq.write_table(pa.table({"x": [ord(name)]}), tmp_path / f"{name}.parquet")
    for source in (tmp_path, str(tmp_path / "*.parquet"), [tmp_path / "c.parquet", str(tmp_path / "[ab].parquet")]):
        assert read_all(Shards(source).open())["x"].to_pylist() == [97, 98, 99]


def test_columns_have_the_order_of_the_first_file(tmp_path):
    pq.write_table(pa.table({"b": [1], "y": [2], "a": [3]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"a": [4], "b": [5], "y": [6]}), tmp_path / "1.parquet")
    opened = Shards(tmp_path, target=["y"]).open()
    assert read_all(opened).to_pydict() == {"b": [1, 5], "a": [3, 4], "y": [2, 6]}
    assert list(read_all(opened).column_names) == ["b", "a", "y"]


def test_an_empty_row_group_is_no_unit(tmp_path):
    with pq.ParquetWriter(tmp_path / "a.parquet", pa.schema([("x", pa.int64())])) as file:
        for rows in ([1], [], [2, 3]):
            file.write_table(pa.table({"x": pa.array(rows, pa.int64())}))
    opened = Shards(tmp_path).open()
    assert [unit.rows for unit in opened.units] == [1, 2]
    assert read_all(opened)["x"].to_pylist() == [1, 2, 3]


def test_an_index_of_pandas_is_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.Index([5, 7], name="id"))
    frame.to_parquet(tmp_path / "named.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "unnamed.parquet")
    with pytest.warns(UserWarning, match="'id' is the index of a pandas frame"):
        assert Shards(tmp_path / "named.parquet").open().columns == ("x",)
    assert Shards(tmp_path / "named.parquet", groups="id").open().group == "id"
    assert Shards(tmp_path / "unnamed.parquet").open().columns == ("x",)


TEXT = pa.array(["p", None, "q"])
ENCODED = TEXT.dictionary_encode()
PROMOTIONS = {
    "widths of integers": (pa.array([1], pa.int8()), pa.array([300], pa.int32()), pa.int32()),
    "signed and unsigned": (pa.array([-1], pa.int8()), pa.array([2**31], pa.uint32()), pa.int64()),
    "unsigned": (pa.array([1], pa.uint16()), pa.array([2], pa.uint64()), pa.uint64()),
    "no integer holds both": (pa.array([-1]), pa.array([2**63], pa.uint64()), pa.float64()),
    "widths of floats": (pa.array([0.5], pa.float32()), pa.array([0.1]), pa.float64()),
    "integers and floats": (pa.array([2**53 + 1]), pa.array([0.1]), pa.float64()),
    "decimals": (pa.array([1]), pa.array([0.5]).cast(pa.decimal128(5, 2)), pa.float64()),
    "encoded text": (TEXT, ENCODED, pa.string()),
    "large text": (TEXT.cast(pa.large_string()), ENCODED, pa.large_string()),
    "dictionaries": (ENCODED, ENCODED.cast(pa.dictionary(pa.int8(), pa.string())), pa.string()),
    "categories": (
        pa.array([1, 2]).dictionary_encode(),
        pa.array([3, 1], pa.int8()).dictionary_encode(),
        pa.dictionary(pa.int32(), pa.int64()),
    ),
    "all missing": (pa.nulls(2), TEXT, pa.string()),
    "units of time": (pa.array([1], pa.timestamp("s")), pa.array([1], pa.timestamp("us")), pa.timestamp("us")),
    "durations": (pa.array([1], pa.duration("ms")), pa.array([1], pa.duration("s")), pa.duration("ms")),
}  # fmt: skip


@pytest.mark.parametrize("case", PROMOTIONS)
@pytest.mark.parametrize("swapped", [False, True])
def test_types_of_one_kind_are_promoted(tmp_path, case, swapped):
    *columns, dtype = PROMOTIONS[case]
    columns = columns[::-1] if swapped else columns
    for i, column in enumerate(columns):
        feather.write_feather(pa.table({"x": column}), tmp_path / f"{i}.arrow")
    opened = Shards(tmp_path).open()
    read = read_all(opened)
    assert read.schema.field("x").type == dtype
    wanted = [
        value for column in columns for value in decoded(column).cast(decoded_type(dtype), safe=False).to_pylist()
    ]
    assert read["x"].to_pylist() == wanted


def decoded_type(dtype):
    return dtype.value_type if pa.types.is_dictionary(dtype) else dtype


def decoded(column):
    return column.cast(decoded_type(column.type))


def test_groups_are_never_rounded():
    opened = Shards([pa.table({"x": [1], "g": [2**53 + 1]}), pa.table({"x": [1], "g": [0.5]})], groups="g").open()
    assert opened.read(1)["g"].to_pylist() == [0.5]
    with pytest.raises(ValueError, match=r"column 'g' of batch 0 is int64 and does not fit into double.*write it as"):
        opened.read(0)


def test_fingerprints_recognise_the_same_rows(tmp_path):
    def written(folder, whole, **more):
        (tmp_path / folder).mkdir()
        pq.write_table(whole, tmp_path / folder / "a.parquet", row_group_size=4, **more)
        return Shards(tmp_path / folder, target="y").open().fingerprint()

    first = written("one", table())
    assert json.loads(json.dumps(first)) == first
    assert str(tmp_path) not in json.dumps(first)
    assert written("two", table()) == first
    # the same sizes and columns: values differ
    assert written("three", table(seed=1)) != first
    assert Shards(tmp_path / "one", target="x").open().fingerprint() != first


# What is wrong, and the words that say so.

FINE = pa.table({"x": [1, 2], "y": [3.0, 4.0]})
TWO = {
    "a missing column": (FINE.drop(["x"]), r"1\.parquet is missing the column 'x' of .*0\.parquet: add it"),
    "a new column": (FINE.append_column("z", pa.array([1, 2])), r"0\.parquet is missing the column 'z' of .*1\.par"),
    "text in one": (
        pa.table({"x": ["a", "b"], "y": [3.0, 4.0]}),
        r"column 'x' is string in .*1\.parquet and int64 in .*0\.parquet: write it with one type",
    ),
    "booleans in one": (pa.table({"x": [True, False], "y": [3.0, 4.0]}), r"column 'x' is bool in .*1\.parquet"),
    "no rows": (FINE[:0], r"1\.parquet' has no rows: leave it out"),
    "a name twice": (
        pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]),
        r"1\.parquet has more than one column named 'x': give each",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TWO)
def test_a_file_that_differs_is_named(tmp_path, case):
    other, words = TWO[case]
    pq.write_table(FINE, tmp_path / "0.parquet")
    pq.write_table(other, tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=words):
        Shards(tmp_path).open()


COLUMNS = {
    "no such target": ({"target": "yy"}, r"target='yy' is not a column of batch 0: similar names are 'y'"),
    "no such weight": ({"sample_weight": "abc"}, r"sample_weight='abc' is not a column of batch 0: it has 'x', 'y'"),
    "no such group": ({"groups": "abc"}, "groups='abc' is not a column"),
    "nothing to drop": ({"drop": ["abc"]}, "drop='abc' is not a column"),
    "target and weight": (
        {"target": "y", "sample_weight": "y"},
        "column 'y' is both target and sample_weight: name it",
    ),
    "the target twice": ({"target": ["y", "y"]}, "column 'y' is both target and target"),
    "no features": ({"target": ["y", "x"]}, "batch 0 has no column besides 'y', 'x': add features"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_a_column_that_cannot_be_is_named(case):
    given, words = COLUMNS[case]
    with pytest.raises(ValueError, match=words):
        Shards([FINE], **given).open()


def test_types_that_no_fit_reads_are_named():
    lists = pa.table({"x": [[1], [2]], "y": ["a", "b"], "z": [1, 2]})
    with pytest.raises(ValueError, match=r"column 'x' of batch 0 is of type list<.*drop=\['x'\]"):
        Shards([lists]).open()
    assert Shards([lists], drop=["x"]).open().columns == ("y", "z")
    with pytest.raises(ValueError, match="sample_weight='y' is of type string in batch 0: it must be numbers"):
        Shards([lists], sample_weight="y", drop=["x"]).open()
    with pytest.raises(ValueError, match="target='x' is of type list"):
        Shards([lists], target="x").open()


def test_paths_that_match_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern '.*\*\.parquet'"):
        Shards(str(tmp_path / "*.parquet")).open()
    with pytest.raises(FileNotFoundError, match=r"the file '.*none\.parquet' does not exist"):
        Shards(tmp_path / "none.parquet").open()
    with pytest.raises(FileNotFoundError, match=r"the folder .* has no files that end in \.parquet"):
        Shards(tmp_path).open()


def test_files_that_are_not_what_their_ending_says(tmp_path):
    pq.write_table(FINE, tmp_path / "good.parquet")
    content = (tmp_path / "good.parquet").read_bytes()
    for name, kind, data in [
        ("a.parquet", "Parquet", b"x,y\n1,2\n"),
        ("b.parquet", "Parquet", content[:-9] + b"\x00" * 5 + content[-4:]),
        ("c.parquet", "Parquet", b""),
        ("d.arrow", "Arrow", content),
        ("e.feather", "Arrow", b""),
    ]:
        (tmp_path / name).write_bytes(data)
        with pytest.raises(
            ValueError, match=rf"{re.escape(name)}' cannot be read as {kind}, as its ending says"
        ) as found:
            Shards(tmp_path / name).open()
        assert "\n" not in str(found.value)
    (tmp_path / "f.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match=r"f\.csv' does not end in one of \.parquet, "):
        Shards(tmp_path / "f.csv").open()
    with pytest.raises(ValueError, match=r"good\.parquet' twice"):
        Shards([tmp_path / "good.parquet", str(tmp_path / "g*.parquet")]).open()


def test_sources_without_rows(tmp_path):
    for i in range(2):
        pq.write_table(FINE[:0], tmp_path / f"{i}.parquet")
    empty = {"all 2 files or batches have no rows": tmp_path, "source is empty": [], "batch 0 has no rows": [FINE[:0]]}
    for words, source in empty.items():
        with pytest.raises(ValueError, match=words):
            Shards(source).open()


def test_sources_of_another_type():
    with pytest.raises(TypeError, match="generator, which can be read only once: give a list"):
        Shards(batch for batch in FINE.to_batches()).open()
    with pytest.raises(TypeError, match="can be read only once"):
        Shards(pa.RecordBatchReader.from_batches(FINE.schema, FINE.to_batches())).open()
    with pytest.raises(TypeError, match=": its item 1 is of type dict"):
        Shards([FINE, {}]).open()
    with pytest.raises(TypeError, match="source is 7: give paths"):
        Shards(7).open()
    assert Shards(FINE).open().rows == 2


def test_batches_are_passed_over_once(tmp_path):
    again = Again(table().to_batches(2))
    opened = Shards(again, target="y").open()
    read_all(opened)
    assert again.passes == 2
    again.batches = again.batches[:2]
    with pytest.raises(ValueError, match="gave 2 batches, fewer than when it was opened"):
        opened.read(3)


def test_files_that_change_after_they_were_opened(tmp_path):
    pq.write_table(FINE, tmp_path / "a.parquet")
    opened = Shards(tmp_path).open()
    pq.write_table(pa.concat_tables([FINE, FINE]), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet has 4 rows and had 2 when it was opened"):
        opened.read(0)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(ValueError, match=r"a\.parquet can no longer be read"):
        opened.read(0)


def test_what_arrow_says_of_damaged_rows_is_one_line(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(FINE, path)
    opened = Shards(path).open()
    raw = path.read_bytes()
    # the header of the first page
    path.write_bytes(raw[:4] + b"\xff" * 8 + raw[12:])
    with pytest.raises(ValueError, match=r"a\.parquet can no longer be read \(Couldn't deserialize thrift") as found:
        opened.read(0)
    assert str(found.value).isprintable()


def test_what_arrow_says_of_damaged_metadata_has_no_control_characters(tmp_path, monkeypatch):
    def damaged(path):
        raise OSError("Couldn't deserialize thrift: don't know what type: \x0f\nDeserializing page header failed.\n")

    monkeypatch.setattr(pq, "read_metadata", damaged)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match=r"don't know what type: \\x0f\): write it again"):
        Shards(tmp_path / "a.parquet").open()


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pyarrow is not installed: pip install .*\[arrow\]"):
        Shards("data/*.parquet", target="y").open()
