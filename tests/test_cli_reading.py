"""Tables at the door of the command line: what is read, what is guessed, and what is refused in which words."""

import gzip
import io
import math
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import gce
from gce.bases import Tree
from gce.cli import reading
from gce.cli.app import app
from gce.cli.failures import DataError, sentence
from gce.cli.figures import NOTHING, known
from gce.cli.peers import encode
from gce.cli.reading import Cells, read_table
from gce.cli.rendering import json_of, size, some
from gce.cli.rows import Columns, Rows, check_test, evaluation_rows, load, training_rows
from gce.cli.tasks import Task, check_kind, resolve_task, values

TABLE = pl.DataFrame(
    {"a": [1, 2, None], "b": ["x", None, "z y"], "c": [True, None, False], "d": [0.5, 1e-3, -2.0]},
)


def stream(frame):
    file = io.BytesIO()
    frame.write_ipc_stream(file)
    return file.getvalue()


WRITERS = {
    "t.csv": lambda frame, path: frame.write_csv(path),
    "t.csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
    "t.csv.zst": lambda frame, path: path.write_bytes(pa.compress(frame.write_csv().encode(), "zstd", asbytes=True)),
    "t.tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "semicolons.csv": lambda frame, path: frame.write_csv(path, separator=";"),
    "byte order mark.csv": lambda frame, path: path.write_bytes(b"\xef\xbb\xbf" + frame.write_csv().encode()),
    "windows.csv": lambda frame, path: path.write_bytes(frame.write_csv().replace("\n", "\r\n").encode()),
    "t.parquet": lambda frame, path: frame.write_parquet(path),
    "t.arrow": lambda frame, path: frame.write_ipc(path),
    "t.feather": lambda frame, path: frame.write_ipc(path, compression="lz4"),
    "stream.arrow": lambda frame, path: path.write_bytes(stream(frame)),
    "parquet without a suffix": lambda frame, path: frame.write_parquet(path),
    "arrow called.csv": lambda frame, path: frame.write_ipc(path),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_table_in_every_format(tmp_path, name):
    WRITERS[name](TABLE, tmp_path / name)
    assert read_table(str(tmp_path / name)).equals(TABLE, null_equal=True)


def csv(folder, text):
    path = folder / "t.csv"
    path.write_text(text)
    return str(path)


def test_blanks_around_cells_are_none_of_them(tmp_path):
    # the way the UCI repository writes adult
    frame = read_table(csv(tmp_path, "age, job, hours\n39, ?, 1.5\n 50, Sales, ?\n"), Cells(missing=["?"]))
    assert frame.to_dict(as_series=False) == {"age": [39, 50], "job": [None, "Sales"], "hours": [1.5, None]}


def test_cells_that_mean_missing_are_what_the_user_says(tmp_path):
    path = csv(tmp_path, "a,b\n1,x\nn/a,n/a\n")
    assert read_table(path)["a"].dtype == pl.String
    assert read_table(path, Cells(missing=["n/a"])).to_dict(as_series=False) == {"a": [1, None], "b": ["x", None]}


def test_decimal_commas_between_semicolons_are_numbers(tmp_path):
    frame = read_table(csv(tmp_path, "a;b;c\n1,5;x,y;1\n-2,25;;2\n"))
    assert frame.to_dict(as_series=False) == {"a": [1.5, -2.25], "b": ["x,y", None], "c": [1, 2]}


def test_text_stays_text_where_it_is_asked_for(tmp_path):
    assert read_table(csv(tmp_path, "zip,n\n01234,1\n"), text=["zip"]).rows() == [("01234", 1)]
    assert read_table(csv(tmp_path, "zip, n\n 01234, 1\n"), text=["zip"]).rows() == [("01234", 1)]


def test_dates_of_a_csv_are_text_unless_they_are_asked_for(tmp_path):
    path = csv(tmp_path, "day,at\n2020-01-31,2020-01-31T12:00:00+02:00\n,\n")
    assert read_table(path)["day"].to_list() == ["2020-01-31", None]
    frame = read_table(path, Cells(dates=["day", "at"]))
    assert frame.schema == {"day": pl.Datetime("us"), "at": pl.Datetime("us", "UTC")}
    assert frame["day"].to_list() == [datetime(2020, 1, 31), None]
    assert frame["at"].to_list() == [datetime(2020, 1, 31, 10, tzinfo=UTC), None]


@pytest.mark.parametrize(
    ("second", "words"),
    [("31.1.2020", "has '31.1.2020', which is no ISO 8601 date"), ("2020-01-31T10:00Z", "with an offset .* without")],
)
def test_a_csv_column_that_is_no_column_of_dates_is_refused(tmp_path, second, words):
    with pytest.raises(DataError, match=f"column 'day' of .* {words}"):
        read_table(csv(tmp_path, f"day\n2020-01-31\n{second}\n"), Cells(dates=["day"]))


def test_a_late_decimal_does_not_break_a_column(tmp_path):
    frame = read_table(csv(tmp_path, "a\n" + "1\n" * 5000 + "0.5\n"))
    assert frame["a"].sum() == 5000.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot be read as CSV: empty CSV"),
        (b"a,b\n1,2,3\n", "cannot be read as CSV: found more fields"),
        ("a\n\xe9\n".encode("latin1"), "is not text in UTF-8: name its encoding, such as --encoding latin-1"),
        (b"PAR1 and then nothing", "cannot be read as Parquet"),
        (b"ARROW1 and then nothing", "cannot be read as Arrow"),
    ],
)
def test_unreadable_files_are_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_table(str(path))
    assert str(error.value).startswith(f"{path} ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("a,a,b", "more than one column named 'a'"),
        ("a,b,a,b", "more than one column named 'a', 'b'"),
        ("a, a ,b", "more than one column named 'a'"),
        ('"a","b","a"', "more than one column named 'a'"),
        ("a,,", "more than one column named ''"),
    ],
)
def test_columns_of_one_name_are_refused(tmp_path, header, words):
    row = ",".join("1" for _ in header.split(","))
    for separator in (",", ";", "\t"):
        with pytest.raises(DataError, match=f"t.csv has {words}: give each column its own name"):
            read_table(csv(tmp_path, f"{header}\n{row}\n".replace(",", separator)))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"{header}\n{row}\n".encode()))
    with pytest.raises(DataError, match=words):
        read_table(str(tmp_path / "t.csv.gz"))


def test_a_name_that_polars_would_give_is_a_name(tmp_path):
    frame = read_table(csv(tmp_path, "a,a_duplicated_0\n1,2\n"))
    assert frame.to_dict(as_series=False) == {"a": [1], "a_duplicated_0": [2]}


WORDS = pl.DataFrame({"größe": [1.5, None, 2.0], "café": ["Zürich", "Genève", None]})
MARKED = ["utf-8-sig", "utf-16", "utf-32"]
UNMARKED = ["latin-1", "cp1252", "utf-16-le", "utf-16-be", "mac-roman"]


@pytest.mark.parametrize("encoding", [*MARKED, *UNMARKED])
def test_a_csv_of_any_encoding_is_the_table_it_was(tmp_path, encoding):
    path, text = tmp_path / "t.csv", WORDS.write_csv(separator=";")
    path.write_bytes(text.encode(encoding))
    assert read_table(str(path), Cells(encoding=encoding)).equals(WORDS, null_equal=True)
    if encoding in MARKED:
        assert read_table(str(path)).equals(WORDS, null_equal=True)
    else:
        with pytest.raises(DataError, match=r"t\.csv is no(?:t| text) .*name its encoding, such as --encoding"):
            read_table(str(path))
    path.write_bytes(gzip.compress(text.encode(encoding)))
    assert read_table(str(path), Cells(encoding=encoding)).equals(WORDS, null_equal=True)


@pytest.mark.parametrize("other", ["latin-1", "utf-8", "utf-16-be"])
@pytest.mark.parametrize("encoding", MARKED)
def test_a_byte_order_mark_is_more_certain_than_an_encoding(tmp_path, encoding, other):
    path, content = tmp_path / "t.csv", WORDS.write_csv().encode(encoding)
    for written in (content, gzip.compress(content)):
        path.write_bytes(written)
        assert read_table(str(path), Cells(encoding=other)).equals(WORDS, null_equal=True)


def test_bytes_that_are_not_utf_8_are_found_wherever_they_are(tmp_path):
    path = tmp_path / "t.csv"
    for content in (b"caf\xe9,b\n1,2\n", b"a,b\n1,caf\xe9\n", b"a,b\n" + b"1,x\n" * 50_000 + b"1,caf\xe9\n"):
        path.write_bytes(content)
        with pytest.raises(
            DataError, match=r"t\.csv is not text in UTF-8: name its encoding, such as --encoding latin-1"
        ):
            read_table(str(path))
        assert read_table(str(path), Cells(encoding="latin-1")).height == content.count(b"\n") - 1
    # a character that ends beyond what is looked at first
    path.write_bytes(b"a\n" + b"x" * 65_533 + "é\n".encode())
    assert read_table(str(path))["a"][0].endswith("é")


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("latin-99", "--encoding 'latin-99' is not an encoding of text: use utf-8, utf-16, latin-1"),
        ("base64", "--encoding 'base64' is not an encoding of text"),
        ("ascii", "is not text in the encoding 'ascii' ('ascii' codec can't decode byte 0xc3 in position 1"),
    ],
)
def test_an_encoding_that_does_not_fit_is_refused(tmp_path, encoding, words):
    with pytest.raises(DataError) as error:
        read_table(csv(tmp_path, "aé\n1\n"), Cells(encoding=encoding))
    assert words in str(error.value)


def test_an_index_of_pandas_is_no_column(tmp_path, capsys):
    """Sorted by the target and shuffled, it would tell the target."""
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0], "y": [1.0, 0.0, 2.0]}, index=[2, 0, 1])
    frame.to_parquet(tmp_path / "plain.parquet")
    assert read_table(str(tmp_path / "plain.parquet")).columns == ["a", "y"]
    pl.DataFrame({"a": [3.0], "y": [1.0], "__index_level_0__": [2]}).write_ipc(tmp_path / "plain.arrow")
    assert read_table(str(tmp_path / "plain.arrow")).columns == ["a", "y"]
    assert not capsys.readouterr().err
    frame.rename_axis("who").to_parquet(tmp_path / "named.parquet")
    assert read_table(str(tmp_path / "named.parquet")).columns == ["a", "y"]
    assert "'who' is the index of a pandas frame and was dropped" in capsys.readouterr().err
    kept = read_table(str(tmp_path / "named.parquet"), keep=["who"])
    assert kept.columns == ["a", "y", "who"]
    rows, _ = load(
        str(tmp_path / "named.parquet"), None, Columns("y", groups="who"), Cells(), drop_missing_target=False
    )
    assert rows.X.columns == ["a"]
    assert rows.groups.tolist() == [2, 0, 1]
    frame.reset_index(drop=True).to_parquet(tmp_path / "range.parquet")
    assert read_table(str(tmp_path / "range.parquet")).columns == ["a", "y"]


def test_a_file_that_makes_its_reader_panic_is_refused(tmp_path, monkeypatch):
    def panic(source):
        raise pl.exceptions.PanicException("assertion failed: offset + length <= self.length")

    monkeypatch.setitem(reading._READERS, "Parquet", panic)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet: assertion failed"):
        read_table(str(tmp_path / "t.parquet"))


def test_errors_of_polars_without_a_file_get_its_name(tmp_path, monkeypatch):
    def damaged(source):
        raise OSError("Invalid argument (os error 22)")

    monkeypatch.setitem(reading._READERS, "Parquet", damaged)
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"t\.parquet cannot be read as Parquet: Invalid argument"):
        read_table(str(tmp_path / "t.parquet"))


@pytest.mark.parametrize("command", ["predict", "report"])
def test_what_a_model_says_of_rows_has_their_file(tmp_path, command):
    path, model = tmp_path / "words.csv", tmp_path / "m.safetensors"
    pl.DataFrame({"n": ["many", "few"], "y": [0.0, 1.0]}).write_csv(path)
    rows = pl.DataFrame({"n": np.arange(40.0)})
    gce.GCERegressor(basis=Tree(max_leaf_nodes=3), max_iter=2, random_state=0).fit(rows, rows["n"]).save(model)
    options = ["-t", "y", "-o", str(tmp_path / "r.html")] if command == "report" else []
    done = CliRunner().invoke(app, [command, str(model), str(path), *options])
    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: {path}: column 'n' held numbers when the model was fitted and holds 'many'")
    assert done.stderr.count("\n") == 1


def test_a_suffix_speaks_where_content_does_not(tmp_path):
    (tmp_path / "t.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        read_table(str(tmp_path / "t.parquet"))


@pytest.mark.parametrize(
    ("y", "task", "reason"),
    [
        (["a", "b", "a"], "classification", "'y' is text"),
        ([True, False], "classification", "'y' is boolean"),
        ([0, 1] * 10, "classification", "'y' takes 2 integer values only"),
        ([0.0, 1.0] * 10, "classification", "'y' takes 2 integer values only"),
        (list(range(20)) * 5, "classification", "'y' takes 20 integer values only"),
        (list(range(20)) * 4, "regression", "'y' takes 20 integer values"),
        (list(range(21)) * 99, "regression", "'y' takes 21 integer values"),
        ([0.5, 1.5] * 50, "regression", "'y' has non-integer values"),
    ],
)
def test_the_task_is_guessed_with_its_reason(y, task, reason):
    assert resolve_task(Task.auto, pl.Series("y", y)) == (task, reason)


def test_a_task_that_is_asked_for_is_taken_or_refused():
    assert resolve_task(Task.regression, pl.Series("y", [0, 1] * 10))[0] == "regression"
    with pytest.raises(DataError, match="'y' is text, such as 'a': use --task classification"):
        resolve_task(Task.regression, pl.Series("y", ["a", "b"]))
    with pytest.raises(DataError, match="the target 'y' is of type Date"):
        resolve_task(Task.auto, pl.Series("y", ["2020-01-01"]).str.to_date())
    with pytest.raises(DataError, match="the target 'y' holds dates"):
        resolve_task(Task.auto, pl.Series("y", ["2020-01-01", None]))


def test_whole_numbers_too_large_to_be_classes_are_numbers():
    for y in (pl.Series("y", [1e19, 3e19] * 10), pl.Series("y", [10**19, 2] * 10, dtype=pl.UInt64)):
        assert resolve_task(Task.auto, y) == (Task.regression, "'y' holds numbers too large to be classes")
        assert values(y, Task.regression).dtype == float
        with pytest.raises(DataError, match="'y' holds integers too large to be classes: write them as text"):
            values(y, Task.classification)
    assert resolve_task(Task.auto, pl.Series("y", [10**18, 2] * 10))[0] is Task.classification


def test_classes_keep_their_type():
    assert values(pl.Series([1.0, 2.0]), Task.classification).tolist() == [1, 2]
    assert values(pl.Series(["a", "b"]), Task.classification).tolist() == ["a", "b"]
    assert values(pl.Series([True, False]), Task.classification).dtype == bool
    assert values(pl.Series([1, 2]), Task.regression).dtype == np.float64


FRAME = pl.DataFrame({"Age": [1, 2, 3], "job": ["a", "b", "c"], "w": [1.0, 2.0, 0.0], "y": [0.5, None, 1.5]})


def test_a_fit_and_a_test_need_rows():
    for read in (training_rows, evaluation_rows):
        names = () if read is training_rows else (["a"],)
        with pytest.raises(DataError, match=r"^t\.csv has no rows$"):
            read("t.csv", pl.DataFrame(schema={"a": pl.String, "y": pl.String}), Columns("y"), *names, False)


def test_columns_are_cut_out_and_rows_without_a_target_left_out():
    rows = training_rows("t.csv", FRAME, Columns("y", weights="w", groups="job"), drop_missing_target=True)
    assert rows.X.columns == ["Age"]
    assert (rows.y.to_list(), rows.weight.tolist(), rows.groups.tolist()) == ([0.5, 1.5], [1.0, 0.0], ["a", "c"])
    assert rows.take(np.array([1])).y.to_list() == [1.5]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (Columns("yy"), "--target 'yy' is not a column of t.csv: did you mean 'y'? It has 'Age', 'job', 'w', 'y'"),
        (Columns("q"), "--target 'q' is not a column of t.csv: it has 'Age'"),
        (Columns("y", drop=("age",)), "--drop 'age' is not a column of t.csv: did you mean 'Age'?"),
        (Columns("y"), "the target 'y' is missing in 1 of 3 rows of t.csv: fill it in, or drop these rows with"),
        (Columns("Age", weights="job"), "--weights 'job' must be a number in every row of t.csv"),
        (Columns("Age", groups="y"), "--groups 'y' is missing in 1 row of t.csv"),
        (Columns("Age", drop=("job", "w", "y")), "t.csv has no features besides 'Age', 'job', 'w', 'y'"),
    ],
)
def test_what_a_table_lacks_is_named(columns, words):
    with pytest.raises(DataError) as error:
        training_rows("t.csv", FRAME, columns, drop_missing_target=False)
    assert words in str(error.value)


def test_one_group_is_refused_in_words_of_the_command_line(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.with_columns(only=pl.lit("u")).write_csv(path)
    words = ["fit", str(path), "-t", "Age", "--task", "regression", "--groups", "only"]
    said = CliRunner().invoke(app, words).stderr
    assert "--groups 'only' has one group only in" in said
    assert "t.csv, 'u', so that no rows can be held out: leave out --groups, or name another column" in said
    assert "X_val" not in said


def test_a_test_table_may_have_more_columns_in_any_order_but_not_fewer():
    other = pl.DataFrame({"y": [1.0], "extra": [0], "job": ["z"], "Age": [9]})
    rows = evaluation_rows("e.csv", other, Columns("y", weights="w"), ["Age", "job"], drop_missing_target=False)
    assert rows.X.columns == ["Age", "job"]
    assert rows.weight is None
    with pytest.raises(
        DataError, match=r"e\.csv lacks the columns 'u', 'v' that the model was fitted on; it has 'y', 'ex"
    ):
        evaluation_rows("e.csv", other, Columns("y"), ["u", "Age", "v"], drop_missing_target=False)


def test_standard_input_is_read_once():
    with pytest.raises(DataError, match="read only once"):
        load("-", "-", Columns("y"), Cells(), drop_missing_target=False)


def test_a_word_among_numbers_is_pointed_at(capsys):
    frame = pl.DataFrame({"a": ["1.5"] * 19 + ["n/a"], "b": ["x"] * 20, "y": [1.0] * 20})
    training_rows("t.csv", frame, Columns("y"), drop_missing_target=False)
    said = capsys.readouterr().err
    assert "column 'a' is text, though 19 of its 20 values are numbers: use --missing 'n/a'" in said
    assert "'b'" not in said


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("id", [7 * i for i in range(30)], True),
        ("customer_id", [7 * i for i in range(30)], True),
        ("CustomerId", [7 * i for i in range(30)], True),
        ("anything", list(range(30)), True),
        ("anything", list(range(129, 99, -1)), True),
        ("humid", [7 * i for i in range(30)], False),
        ("id", [7 * (i // 2) for i in range(30)], False),
        ("anything", [7 * i for i in range(30)], False),
        ("anything", [0.5 * i for i in range(30)], False),
        ("anything", list(range(19)), False),
    ],
)
def test_a_number_of_the_rows_is_pointed_at(capsys, name, values, said):
    frame = pl.DataFrame({name: values, "b": "x", "y": 1.0})
    training_rows("t.csv", frame, Columns("y"), drop_missing_target=False)
    words = f"column {name!r} looks like an identifier (from {min(values)} to {max(values)}, each once) and is used as"
    assert (words in capsys.readouterr().err) == said
    for columns in (Columns("y", keep=(name,)), Columns("y", drop=(name,))):
        assert training_rows("t.csv", frame, columns, drop_missing_target=False).X.columns == ["b"]
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("known", "labels", "words"),
    [
        ([0, 1], ["no", "yes"], "e.csv has the labels 'no', 'yes' in 'y', and the fit had 0, 1: none is the same"),
        (["1.0", "x"], [1.0, 2.0], "e.csv has the labels 1, 2 in 'y', and the fit had '1.0', 'x'"),
        (["No", "Yes"], ["no", "yes"], "e.csv has the labels 'no', 'yes' in 'y', and the fit had 'No', 'Yes'"),
        (["a", "b"], ["b", "new"], None),
        ([0, 1], [0.0, 1.0], None),
        ([True, False], [0, 1], None),
    ],
)
def test_labels_that_are_written_in_another_way_are_shown(known, labels, words):
    y, other = (Rows(file, pl.DataFrame(), pl.Series("y", own)) for file, own in (("t.csv", known), ("e.csv", labels)))
    if words is None:
        check_test(Task.classification, y, other)
        return
    with pytest.raises(DataError) as error:
        check_test(Task.classification, y, other)
    assert words in str(error.value)


def test_labels_that_the_fit_did_not_have_are_counted_and_shown(capsys):
    train = Rows("t.csv", pl.DataFrame(), pl.Series("y", ["yes", "no"] * 9))
    test = Rows("e.csv", pl.DataFrame(), pl.Series("y", ["Yes"] * 5 + ["no"] * 4 + ["?"]))
    check_test(Task.classification, train, test)
    said = capsys.readouterr().err
    assert "e.csv has labels in 'y' that the fit did not have, '?', 'Yes': its 6 rows with them are counted as" in said
    assert "(the fit had 'no', 'yes')" in said
    check_test(Task.classification, train, train)
    assert not capsys.readouterr().err


def test_a_test_target_of_another_kind_is_refused():
    numbers, text = pl.Series("y", [1.5, 2.5]), pl.Series("y", ["n/a", "2.5"])
    with pytest.raises(DataError, match=r"e\.csv has 'n/a' in the target 'y', which was numbers in the fit"):
        check_test(Task.regression, Rows("t.csv", pl.DataFrame(), numbers), Rows("e.csv", pl.DataFrame(), text))
    with pytest.raises(DataError, match=r"e\.csv has 1\.5 in the target 'y', which was text in the fit"):
        check_kind("text", numbers, "e.csv")


def test_peers_are_given_the_codes_of_the_training_rows():
    train = pl.DataFrame({"t": ["b", "a", None], "n": [1, None, 3], "k": [7, 5, 7]})
    test = pl.DataFrame({"k": [5, 7, 6], "t": ["a", "new", "b"], "n": [1, 2, None]})
    data = encode(train, test, categorical=["k"])
    assert np.array_equal(data.X, [[1, 1, 1], [0, np.nan, 0], [np.nan, 3, 1]], equal_nan=True)
    assert np.array_equal(data.X_test, [[0, 1, 0], [np.nan, 2, 1], [1, np.nan, np.nan]], equal_nan=True)
    assert data.categories == {0: 2, 2: 2}


def test_small_words():
    assert [size(n) for n in (12, 12_345, 12_345_678)] == ["12 B", "12 kB", "12.3 MB"]
    assert some(list("abc"), most=2) == "'a', 'b' and 1 more"
    assert json_of({"a": [math.nan, 1.5], "b": math.inf}) == '{\n  "a": [\n    null,\n    1.5\n  ],\n  "b": null\n}\n'
    error, loss, area = known(Task.classification)
    assert [figure(0.1234) for figure in (error, loss, area)] == ["12.34 %", "0.1234", "0.1234"]
    assert area(math.nan) == NOTHING
    assert sentence(KeyError("x")) == "KeyError: 'x'"
    assert sentence(FileNotFoundError(2, "No such file", "f.csv")) == "f.csv: No such file"


def test_other_models_see_the_calendar_of_dates():
    days = pl.Series("day", [datetime(2024, 1, 30 + i) for i in range(2)])
    train, test = (pl.DataFrame({"day": column, "n": [1, 2]}) for column in (days, days.reverse()))
    found = encode(train, test, [])
    assert found.categories == {}
    assert found.X[:, :2].tolist() == [[1706572800.0, 1.0], [1706659200.0, 2.0]]
    assert found.X.shape == (2, 2 + 5)  # day, weekday, day of the year, and where it is in the week
    np.testing.assert_array_equal(found.X_test[:, 2:], found.X[::-1, 2:])
