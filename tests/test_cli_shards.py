"""The commands on patterns and folders of files: the same answers as from one table, and what cannot be."""

import json
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import gce
import gce.cli.shards as shards_module
from gce.cli.app import app
from gce.cli.shards import resolve_shard_task
from gce.cli.tasks import Task
from gce.distributed import World

TINY = ["--set", "max_atoms=3", "--set", "basis=tree", "--cv", "1"]


def call(*words, code=0):
    done = CliRunner().invoke(app, list(map(str, words)))
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


def table(rows, seed):
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=rows), rng.choice(["red", "blue", "7"], rows)
    score = x + (kind == "red")
    return pl.DataFrame(
        {
            "x": x,
            "kind": kind,
            "id": np.arange(rows),
            "w": rng.random(rows) + 0.5,
            "g": rng.integers(0, 9, rows),
            "label": np.where(score > 0.3, "up", "down"),
            "size": score,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    (path / "data").mkdir()
    train = table(90, 0)
    train.write_parquet(path / "train.parquet")
    table(30, 1).write_csv(path / "test.csv")
    train[:50].write_parquet(path / "data" / "0.parquet", row_group_size=20)
    train[50:].write_parquet(path / "data" / "1.parquet", row_group_size=20)
    return path


@pytest.fixture
def in_memory(monkeypatch):
    """Fits of shards read all rows and fit them as a table; what was given is noted."""
    seen = {}
    for kind in (gce.GCERegressor, gce.GCEClassifier):

        def fit(self, X, y=None, sample_weight=None, *, original=kind.fit, **more):
            if not isinstance(X, gce.Shards):
                return original(self, X, y, sample_weight, **more)
            seen.update(shards=X, more=dict(more), params=self.get_params())
            opened = X.open()
            rows = pa.concat_tables([opened.read(i) for i in range(len(opened.units))])
            weight = None if opened.weight is None else rows[opened.weight].to_numpy()
            if opened.group is not None:
                more["groups"] = rows[opened.group].to_numpy()
            y = np.asarray(rows[opened.targets[0]].to_pylist())
            return original(self, pl.from_arrow(rows.select(opened.columns)), y, weight, **more)

        monkeypatch.setattr(kind, "fit", fit)
    return seen


def result_of(*words):
    found = json.loads(call(*words, "--json").stdout)
    # of one run only
    for name in ("seconds", "train", "files"):
        found.pop(name)
    return found


@pytest.mark.parametrize("target", ["label", "size"])
def test_a_pattern_or_a_folder_is_fitted_as_the_table(folder, in_memory, tmp_path, target):
    other = {"label": "size", "size": "label"}[target]
    words = ["-t", target, "--drop", other, "--drop", "id", "--weights", "w", "--groups", "g", "--seed", "5", *TINY]
    words += ["--test", folder / "test.csv"]
    wanted = result_of("fit", folder / "train.parquet", *words)
    for source in (folder / "data", folder / "data" / "*.parquet"):
        assert result_of("fit", source, *words) == wanted
        shards = in_memory["shards"]
        assert (shards.source, shards.target, shards.sample_weight, shards.groups) == (str(source), target, "w", "g")
        assert in_memory["params"]["random_state"] == 5


def test_files_and_words_of_a_fit(folder, in_memory, tmp_path):
    out, page = tmp_path / "m.safetensors", tmp_path / "r.html"
    words = ["fit", folder / "data", "-t", "label", "--drop", "size", *TINY]
    files = ["--test", folder / "test.csv", "--out", out, "--report", page, "--checkpoint", tmp_path / "c"]
    text = call(*words, *files).stdout
    assert f"{folder / 'data'}: 90 rows, 5 columns, target 'label'" in text
    assert "classification: 'label' is text" in text
    assert in_memory["more"] == {"checkpoint": tmp_path / "c"}
    assert gce.load(out).classes_.tolist() == ["down", "up"]
    assert "<svg" in page.read_text()
    # without test rows: those that were held out
    assert "held out for early stopping" in call(*words).stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--report", "{}/r.html"],
            "--report needs rows in memory, and those of {}/data stay in files: add --test FILE",
        ),
        (["--missing", "?"], "--missing needs rows in memory"),
        (["--dates", "x"], "--dates needs rows in memory, and those of {}/data stay in files: write the column"),
        (["--drop-missing-target"], "--drop-missing-target needs rows in memory"),
        (["--weights", "ww"], "sample_weight='ww' is not a column of {}/data/0.parquet: similar names are 'w'"),
        (["--task", "regression"], "regression needs numbers, but 'label' is of type"),
    ],
)
def test_what_files_cannot_have_is_refused(folder, words, said):
    done = call("fit", folder / "data", "-t", "label", *(word.format(folder) for word in words), code=1)
    assert said.format(folder, folder) in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("fitted", "labels", "said"),
    [
        (["no", "yes"], [0, 1], "has the labels '0', '1' in 'label', and the fit had 'no', 'yes': none is the same"),
        (["no", "yes"], [False, True], "has the labels 'false', 'true' in 'label', and the fit had 'no', 'yes'"),
        ([0, 1], [3, 4], "has the labels 3, 4 in 'label', and the fit had 0, 1: none is the same"),
        ([0.0, 1.0], ["no", "yes"], "has 'no' in the target 'label', which was numbers in the fit"),
        ([False, True], ["no", "yes"], "has the labels 'no', 'yes' in 'label', and the fit had False, True"),
        (["no", "yes"], ["no", "Yes"], "labels in 'label' that the fit did not have, 'Yes': its 20 rows with them"),
        (["no", "yes"], ["no", "yes"], None),
        ([0.0, 1.0], [0, 1], None),
        (pl.Series(["no", "yes"], dtype=pl.Categorical), ["no", "yes"], None),
        (pl.Series(["no", "yes"], dtype=pl.Categorical), ["No", "Yes"], "has the labels 'No', 'Yes' in 'label'"),
    ],
)
def test_test_labels_of_another_kind_are_shown_before_the_fit_of_files(tmp_path, monkeypatch, fitted, labels, said):
    def fit(self, *given, **more):
        raise ValueError("reached")

    monkeypatch.setattr(gce.GCEClassifier, "fit", fit)
    parts, x = tmp_path / "data", np.arange(20.0) / 3
    parts.mkdir()
    # each label is in one of the files
    for i in range(2):
        rows = pl.DataFrame({"x": x, "label": pl.Series(fitted).gather([i] * len(x))})
        rows.write_parquet(parts / f"{i}.parquet")
    pl.DataFrame({"x": [*x, *x], "label": np.repeat(labels, len(x))}).write_csv(tmp_path / "test.csv")
    stderr = call("fit", parts, "-t", "label", "--test", tmp_path / "test.csv", code=1).stderr
    refused = said is not None and "did not have" not in said
    assert ("reached" in stderr) != refused
    assert ("test.csv" in stderr) == (said is not None)
    assert said is None or said in stderr


@pytest.mark.filterwarnings("default:.*ISO 8601")
def test_dates_of_text_in_files_come_with_advice_for_files(tmp_path):
    days = np.datetime64("2024-01-01") + np.arange(80) // 2
    rows = pl.DataFrame({"day": days.astype(str), "x": np.arange(80.0) % 7 / 3, "y": np.arange(80) % 5 / 3})
    rows.write_parquet(tmp_path / "0.parquet")
    words = ["-t", "y", *TINY, "--quiet"]
    said = call("fit", tmp_path, *words).stderr
    assert "reads as ISO 8601 dates is treated as categories: 'day'" in said
    assert "write columns of Shards to their files with a type of dates" in said
    # the advice can be followed
    rows.with_columns(pl.col("day").str.to_date()).write_parquet(tmp_path / "0.parquet")
    assert "ISO 8601" not in call("fit", tmp_path, *words).stderr


def test_patterns_that_match_nothing_or_other_files(folder):
    assert "no file matches the pattern" in call("fit", folder / "none*.parquet", "-t", "y", code=1).stderr
    assert "does not end in one of .parquet" in call("fit", folder / "*.csv", "-t", "y", code=1).stderr


def opened(*columns):
    return gce.Shards([pa.table({"x": column, "y": column}) for column in columns], target="y").open()


@pytest.mark.parametrize(
    ("columns", "task", "reason"),
    [
        ([[0, 1] * 5, [2, 1] * 5], "classification", "'y' takes 3 integer values only"),
        ([[0.0, 1.0] * 5, [2.0, None] * 5], "classification", "'y' takes 3 integer values only"),
        ([[0, 1, 2]], "regression", "'y' takes 3 integer values"),
        ([[0.0] * 9, [1.5]], "regression", "'y' has non-integer values"),
        ([[*range(15)] * 9, [*range(10, 25)] * 9], "regression", "'y' takes more than 20 values"),
        ([[0, 2**62] * 9], "regression", "'y' holds numbers too large to be classes"),
        ([["a", "b"]], "classification", "'y' is text"),
        ([[True, False]], "classification", "'y' is boolean"),
        ([pa.array([1, 2]).dictionary_encode()], "classification", "'y' is a category"),
    ],
)
def test_the_task_is_inferred_from_all_files(columns, task, reason):
    assert resolve_shard_task(Task.auto, opened(*columns)) == (Task[task], reason)


def test_a_task_that_is_given_needs_no_rows(monkeypatch):
    some = opened([0, 1] * 9)
    monkeypatch.setattr(type(some), "read", None)
    assert resolve_shard_task(Task.regression, some) == (Task.regression, "set by --task")


def test_a_target_of_dates_as_text_is_refused():
    with pytest.raises(Exception, match="the target 'y' holds dates"):
        resolve_shard_task(Task.auto, opened(["2020-01-01", "2021-02-03"]))


class Second(World):
    rank, size = 1, 2

    def gather(self, own):
        return [own, own]


def test_only_the_first_process_says_and_writes_anything(folder, in_memory, tmp_path, monkeypatch):
    given = []

    @contextmanager
    def group(timeout):
        given.append(timeout)
        yield Second()

    monkeypatch.setattr(shards_module, "process_group", group)
    words = ["-t", "label", "--drop", "size", "--test", folder / "none.csv", "--out", tmp_path / "m.safetensors"]
    done = call("fit", folder / "data", *words, *TINY, "--timeout", "77")
    assert done.output == ""
    assert given == [77]
    assert in_memory["params"]["verbose"] is False
    assert not (tmp_path / "m.safetensors").exists()
    # one table is no matter of several processes
    call("fit", folder / "train.parquet", "-t", "label", *TINY, "--quiet")
    assert len(given) == 1


# Predictions.


@pytest.fixture(scope="module")
def models(folder):
    for target in ("label", "size"):
        words = ["--drop", "size" if target == "label" else "label", "--out", folder / f"{target}.safetensors"]
        call("fit", folder / "train.parquet", "-t", target, *words, *TINY, "--quiet")
    return {target: folder / f"{target}.safetensors" for target in ("label", "size")}


def read(out):
    return pl.concat([pl.read_parquet(path) for path in sorted(out.glob("part-*.parquet"))])


def test_files_are_predicted_as_the_table(folder, models, tmp_path):
    rows = pl.read_parquet(folder / "train.parquet")
    for target, model in models.items():
        call("predict", model, folder / "data" / "*.parquet", "--out", tmp_path / target)
        # the same command again has nothing to do
        call("predict", model, folder / "data", "--out", tmp_path / target)
        wanted = gce.load(model).predict(rows)
        assert np.array_equal(read(tmp_path / target)["prediction"].to_numpy(), wanted)
    call("predict", models["label"], folder / "data", "--proba", "--out", tmp_path / "proba")
    assert read(tmp_path / "proba").columns == ["proba_down", "proba_up"]
    assert np.array_equal(read(tmp_path / "proba").to_numpy(), gce.load(models["label"]).predict_proba(rows))


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("size", [], "are several files: name a folder for them with --out, not '-'"),
        ("size", ["--out", "{}/p.csv"], "name a folder for them with --out"),
        ("size", ["--out", "{}/out", "--interval", "0.9"], "--interval needs rows in memory"),
        ("size", ["--out", "{}/out", "--missing", "?"], "--missing needs rows in memory"),
        ("size", ["--out", "{}/out", "--proba"], "is a regressor, which has no probabilities"),
    ],
)
def test_predictions_that_files_cannot_have_are_refused(folder, models, tmp_path, target, words, said):
    words = [word.format(tmp_path) for word in words]
    assert said in call("predict", models[target], folder / "data", *words, code=1).stderr
    assert not list(tmp_path.iterdir())


def test_torchrun_predicts_by_two_processes(folder, models, tmp_path):
    words = ["predict", models["size"], folder / "data", "--out", tmp_path / "out", "--timeout", "60"]
    # not the address of this machine's name, which may have none
    here = ["--standalone", "--local-addr=127.0.0.1"]
    launcher = [sys.executable, "-m", "torch.distributed.run", *here, "--nproc-per-node=2", "-m", "gce"]
    done = subprocess.run([*launcher, *map(str, words)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    wanted = gce.load(models["size"]).predict(pl.read_parquet(folder / "train.parquet"))
    assert np.array_equal(read(tmp_path / "out")["prediction"].to_numpy(), wanted)
