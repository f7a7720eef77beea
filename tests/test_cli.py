"""The commands: files in every format, figures, words, exit codes."""

import contextlib
import hashlib
import importlib
import inspect
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from typer.testing import CliRunner

import gce
import gce.cli.compare as compare_module
from gce.cli.app import COMMANDS, app
from gce.cli.figures import NOTHING
from gce.cli.peers import PEERS, Peer
from gce.training.families import default_bases

SMALL = ("max_atoms=3", "basis=neural", "basis__hidden=3", "basis__max_epochs=3")
TINY = [word for s in SMALL for word in ("--set", s)]
SUFFIXES = ["csv", "parquet", "arrow"]
WRITE = {"csv": pl.DataFrame.write_csv, "parquet": pl.DataFrame.write_parquet, "arrow": pl.DataFrame.write_ipc}
READ = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc}


def table(rows, seed):
    rng = np.random.default_rng(seed)
    x, kind, flag = rng.normal(size=rows), rng.choice(["red", "blue", "7"], rows), rng.random(rows) < 0.5
    score = x + (kind == "red") - flag
    frame = pl.DataFrame({"x": x, "kind": kind, "flag": flag, "n": rng.integers(0, 100, rows)})
    frame = frame.with_columns(
        pl.when(pl.Series(rng.random(rows) > 0.3)).then(n).alias(n) for n in ("x", "kind", "flag")
    )
    return frame.with_columns(label=pl.Series(np.where(score > 0.2, "up", "down")), size=pl.Series(score))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    train, test = table(80, 0), table(30, 1)
    # an unseen category, and a text column that looks like numbers
    test = test.with_columns(kind=pl.lit("7"))
    test[0, "kind"] = "green"
    for suffix, write in WRITE.items():
        write(train, path / f"train.{suffix}")
        write(test, path / f"test.{suffix}")
    write_csv = train.with_columns(day=pl.lit("2020-02-01")).write_csv
    write_csv(path / "dates.csv")
    return path


def call(*words, code=0, stdin=None):
    done = CliRunner().invoke(app, list(map(str, words)), input=stdin)
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


@pytest.fixture(scope="module")
def classifier(folder):
    path = folder / "classifier.safetensors"
    call("fit", folder / "train.csv", "-t", "label", "--drop", "size", "--out", path, "--quiet", *TINY)
    return path


@pytest.fixture(scope="module")
def regressor(folder):
    path = folder / "regressor.safetensors"
    call("fit", folder / "train.parquet", "-t", "size", "--drop", "label", "--out", path, "--quiet", *TINY)
    return path


def rows_of(path):
    return pl.read_csv(path, schema_overrides={"kind": pl.String}).drop("label", "size")


def test_fit_says_what_it_guesses_and_judges_on_the_test_rows(folder):
    words = ("fit", folder / "train.csv", "-t", "label", "--drop", "size", "--test", folder / "test.csv", *TINY)
    text = call(*words).stdout
    assert "classification: 'label' is text" in text
    assert "30 rows" in text
    assert re.search(r"error\s+\d+\.\d\d %", text)
    found = json.loads(call(*words, "--json").stdout)
    assert (found["task"], found["classes"], found["stopped"]) == ("classification", ["down", "up"], "done")
    assert (found["rounds"], found["members"], found["settings"]["max_atoms"]) == (3, 10, 3)
    model = gce.GCEClassifier(max_atoms=3, basis=gce.bases.Neural(hidden=3, max_epochs=3), random_state=0)
    train, test = folder / "train.csv", folder / "test.csv"
    model.fit(rows_of(train), pl.read_csv(train)["label"].to_numpy())
    y = pl.read_csv(test)["label"].to_numpy()
    assert found["metrics"]["error"] == pytest.approx(1 - model.score(rows_of(test), y))
    assert found["metrics"]["log_loss"] == pytest.approx(log_loss(y, model.predict_proba(rows_of(test))))
    assert found["metrics"]["roc_auc"] == pytest.approx(roc_auc_score(y, model.predict_proba(rows_of(test))[:, 1]))
    assert found["metrics"]["note"] is None
    assert f"ROC AUC {found['metrics']['roc_auc']:.4f}" in re.sub(r"\s+", " ", text)


def test_without_test_rows_figures_are_those_of_held_out_rows(folder):
    words = ("fit", folder / "train.csv", *TINY)
    assert "rows held out for early stopping" in call(*words, "-t", "label").stdout
    number = json.loads(call(*words, "-t", "size", "--json").stdout)
    assert (number["task"], number["metrics"]["file"]) == ("regression", None)
    assert 0 < number["metrics"]["mae"] <= number["metrics"]["rmse"] < 10
    assert 0 < json.loads(call(*words, "-t", "label", "--json").stdout)["metrics"]["log_loss"] < 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_in_and_out_gives_the_same_answers(folder, classifier, suffix):
    out = folder / f"p.{suffix}"
    call("predict", classifier, folder / f"test.{suffix}", "--proba", "--out", out)
    model = gce.load(classifier)
    found, rows = READ[suffix](out), rows_of(folder / "test.csv")
    assert found.columns == ["prediction", "probability_down", "probability_up"]
    assert np.array_equal(found["prediction"].to_numpy(), model.predict(rows))
    assert np.array_equal(found.drop("prediction").to_numpy(), model.predict_proba(rows))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_standard_input_is_a_table_of_any_format(folder, regressor, suffix):
    content = (folder / f"test.{suffix}").read_bytes()
    found = pl.read_csv(call("predict", regressor, "-", "--interval", "0.8", stdin=content).stdout.encode())
    model, rows = gce.load(regressor), rows_of(folder / "test.csv")
    assert np.array_equal(found["prediction"].to_numpy(), model.predict(rows))
    assert np.array_equal(found.select("lower", "upper").to_numpy(), model.predict_interval(rows, 0.8))


def test_a_fit_from_standard_input(folder):
    content = (folder / "train.csv").read_bytes()
    found = json.loads(call("fit", "-", "-t", "label", "--json", *TINY, stdin=content).stdout)
    assert found["train"] == {"file": "standard input", "rows": 80, "columns": 5}


def test_weights_groups_folds_and_categories_reach_the_fit(folder, monkeypatch):
    seen = {}

    def spy(self, X, y, sample_weight=None, **more):
        seen.update(X=X.columns, weight=sample_weight, more=more, params=self.get_params())
        raise ValueError("enough")

    monkeypatch.setattr(gce.GCERegressor, "fit", spy)
    options = ["--weights", "n", "--groups", "kind", "--cv", "1", "--categorical", "x", "--time-limit", "9"]
    # gaps in the groups are refused: they are filled in first
    path = folder / "filled.parquet"
    pl.read_parquet(folder / "train.parquet").with_columns(pl.col("kind").fill_null("?")).write_parquet(path)
    call("fit", path, "-t", "size", "--seed", "5", *options, code=1)
    assert seen["X"] == ["x", "flag", "label"]
    assert seen["weight"].tolist() == pl.read_parquet(path)["n"].to_list()
    assert set(seen["more"]["groups"]) == {"red", "blue", "7", "?"}
    wanted = {"cv": None, "categorical_features": ["x"], "time_limit": 9.0, "random_state": 5}
    assert wanted.items() <= seen["params"].items()


@pytest.mark.filterwarnings("always::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_is_told(folder):
    done = call("fit", folder / "train.csv", "-t", "label", "--time-limit", "0", "--json")
    found = json.loads(done.stdout)
    assert "tree was cut short" in " ".join(done.stderr.split())
    # a round of the first class; the ensemble of all is none
    assert (found["stopped"], found["rounds"]) == ("time limit", 1)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fit", "nowhere.csv", "-t", "y"], 1, "nowhere.csv: No such file or directory"),
        (["fit", "{}/train.csv", "-t", "lable"], 1, "did you mean 'label'?"),
        (["fit", "{}/train.csv", "-t", "flag"], 1, "the target 'flag' is missing in"),
        (["fit", "{}/dates.csv", "-t", "label", "--dates", "kind"], 1, "which is no ISO 8601 date"),
        (["fit", "{}/train.csv", "-t", "label", "--out", "{}"], 1, ": Is a directory"),
        (["fit", "{}/train.csv", "-t", "label", "--categorical", "knid"], 1, "'knid'"),
        (["fit", "{}/train.csv"], 2, "--target"),
        (["fit", "{}/train.csv", "-t", "label", "--set", "max_atom=3"], 2, "did you mean 'max_atoms'?"),
        (["fit", "{}/train.csv", "-t", "label", "--set", "max_atoms"], 2, "not of the form name=value"),
        (["fit", "{}/train.csv", "-t", "label", "--set", "loss__x=1"], 2, "has no parameters of its own"),
        (
            ["fit", "{}/train.csv", "-t", "label", "--set", "max_atoms=none"],
            1,
            "max_atoms must be 'auto' or an integer",
        ),
        (["fit", "{}/train.csv", "-t", "label", "--device", "cuda:99"], 1, "device='cuda:99' is not available"),
        (["fit", "{}/train.csv", "-t", "label", "--task", "cluster"], 2, "--task"),
        (["predict", "{}/train.csv", "{}/test.csv"], 1, "train.csv"),
        (["inspect", "{}/train.csv"], 1, "train.csv"),
        (["predict", "m", "r", "--out", "p.txt"], 2, "must end in one of"),
        (["predict", "m", "r", "--interval", "2"], 2, "between 0 and 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(folder, words, code, said):
    done = call(*(word.format(folder) for word in words), code=code)
    assert "fitted" not in done.stdout
    assert "Traceback" not in done.stderr
    # a usage error is framed, and broken into lines
    flat = re.sub(r"[\s│]+", " ", done.stderr)
    assert said in flat
    assert code == 2 or len(done.stderr.splitlines()) == 1


def test_answers_that_a_model_does_not_have_are_refused(folder, classifier, regressor):
    assert "use --proba instead" in call("predict", classifier, folder / "test.csv", "--interval", "0.9", code=1).stderr
    assert "use --interval 0.9 instead" in call("predict", regressor, folder / "test.csv", "--proba", code=1).stderr


def test_debug_shows_the_traceback(folder):
    day = ["--dates", "day", "--categorical", "day"]
    done = CliRunner().invoke(app, ["fit", str(folder / "dates.csv"), "-t", "label", *day, "--debug"])
    assert isinstance(done.exception, ValueError)


def test_rows_that_lack_a_column_are_refused(folder, classifier):
    path = folder / "lacking.csv"
    pl.read_csv(folder / "test.csv").drop("flag", "n").write_csv(path)
    assert "lacks the columns 'flag', 'n'" in call("predict", classifier, path, code=1).stderr


def test_the_version_and_the_help():
    assert call("--version").stdout == f"gce {gce.__version__}\n"
    for command in ("fit", "predict", "inspect", "report", "export", "compare"):
        assert command in call("--help").stdout
        assert "Usage" in call(command, "--help").stdout


def test_the_help_names_the_families_of_a_default_fit():
    about = " ".join(call("--help").stdout.split())
    families = default_bases(2000, 10)
    assert set(families) == {"tree", "symmetric", "forest", "neural"}
    for words in ("boosted trees", "forests", "neural networks"):
        assert words in about


def test_inspect_shows_what_is_in_a_file(folder, classifier, regressor):
    found = json.loads(call("inspect", classifier, "--json").stdout)
    content = classifier.read_bytes()
    assert (found["file"]["bytes"], found["file"]["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
    assert (found["estimator"], found["classes"]) == ("GCEClassifier", ["down", "up"])
    model = gce.load(classifier)
    assert (found["atoms"], found["history"]["rounds"]) == (len(model.ensemble_), 3)
    assert [(c["name"], c["kind"]) for c in found["columns"]] == [
        ("x", "number"), ("kind", "category"), ("flag", "boolean"), ("n", "number")
    ]  # fmt: skip
    assert found["columns"][1]["categories"] == ["7", "blue", "red"]
    text = call("inspect", regressor).stdout
    for words in ("GCERegressor", "max_atoms=3", "±", "at best", "blue", "10 members"):
        assert words in text


def test_files_of_ordered_classes(tmp_path):
    """Columns of probabilities have the names of their classes, and the order is shown."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    grades = pd.Categorical.from_codes(np.digitize(X[:, 0], [-0.5, 0.5]), ["low", "mid", "high"], ordered=True)
    rows = pd.DataFrame(X, columns=["a", "b"])
    model = gce.GCEClassifier(basis="tree", loss="ordinal", max_atoms=5, random_state=0).fit(rows, grades)
    model.save(tmp_path / "m.safetensors")
    rows.assign(grade=grades).to_csv(tmp_path / "t.csv", index=False)
    found = json.loads(call("inspect", tmp_path / "m.safetensors", "--json").stdout)
    assert (found["classes"], found["ordered_classes"]) == (["high", "low", "mid"], ["low", "mid", "high"])
    assert re.search(r"in order +low, mid, high", call("inspect", tmp_path / "m.safetensors").stdout)
    table = pl.read_csv(call("predict", tmp_path / "m.safetensors", tmp_path / "t.csv", "--proba").stdout.encode())
    assert table.columns == ["prediction", "probability_high", "probability_low", "probability_mid"]
    numbers = gce.GCEClassifier(basis="tree", loss="ordinal", max_atoms=5, random_state=0).fit(rows, grades.codes)
    for code, name in enumerate(["low", "mid", "high"]):
        assert np.array_equal(table[f"probability_{name}"], numbers.predict_proba(rows)[:, code])


def test_inspect_shows_an_edited_model(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    model = gce.NGCERegressor(n_atoms=4, hidden=2, max_epochs=5, random_state=0).fit(rows, rows[:, 0])
    model.remove("0:2", rows, rows[:, 0]).save(tmp_path / "m.safetensors")
    found = json.loads(call("inspect", tmp_path / "m.safetensors", "--json").stdout)
    assert found["history"] is None
    assert 0 <= found["gap"] < 1e-5
    assert "weights re-optimised to a duality gap of" in call("inspect", tmp_path / "m.safetensors").stdout


def test_report_and_export_write_their_files(folder, classifier, regressor):
    page, graph = folder / "pages" / "r.html", folder / "graphs" / "m.onnx"
    call("report", classifier, folder / "test.parquet", "-t", "label", "--out", page)
    assert "<svg" in page.read_text()
    call("export", regressor, graph)
    assert graph.stat().st_size > 1000
    done = call("fit", folder / "train.csv", "-t", "label", "--drop", "size", "--report", page, *TINY)
    assert "on the training rows and is optimistic" in done.stderr
    assert "r.html" in done.stdout


@pytest.mark.parametrize("name", ["m.pmml", "m", "m.onnx.gz"])
def test_export_refuses_to_write_onnx_under_another_name(folder, regressor, name):
    done = call("export", regressor, folder / name, code=2)
    assert "must end in .onnx" in " ".join(done.stderr.replace("│", " ").split())
    assert not (folder / name).exists()


def test_an_altered_file_is_refused(folder, classifier):
    content = bytearray(classifier.read_bytes())
    content[-1] ^= 1
    path = folder / "altered.safetensors"
    path.write_bytes(content)
    for words in (["inspect", path], ["predict", path, folder / "test.csv"]):
        done = call(*words, code=1)
        assert len(done.stderr.splitlines()) == 1
        assert "altered" in done.stderr


# Peers.


class Stubborn:
    def fit(self, X, y):
        raise RuntimeError("cannot\nbe fitted")


QUICK = [peer for peer in PEERS if peer.name == "HistGradientBoosting"]


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_peers_are_compared_and_a_failing_one_is_a_row(folder, monkeypatch, tmp_path):
    peers = [Peer("Stubborn", "sklearn", lambda *about: Stubborn()), *QUICK, Peer("Nowhere", "no_such_package", None)]
    monkeypatch.setattr(compare_module, "PEERS", peers)
    done = call(
        "compare", folder / "train.csv", "-t", "label", "--drop", "size", "--out", tmp_path, "--time-limit", "0"
    )
    assert re.search(r"Stubborn\W+failed", done.stdout)
    assert "\nStubborn failed: RuntimeError: cannot\n" in done.stdout
    assert "not installed: no_such_package" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"compare.md", "compare.json", "compare.png"}
    found = json.loads((tmp_path / "compare.json").read_text())
    ours, stubborn, boosting = found["models"]
    assert ours["model"] == "GCE"
    assert stubborn["failed"] == "RuntimeError: cannot"
    assert (found["train"]["rows"], found["test"]["rows"]) == (64, 16)
    least = min(ours["error"], boosting["error"])
    table = (tmp_path / "compare.md").read_text()
    assert f"**{100 * least:.2f} %**" in table
    best = [x[key] == min(ours[key], boosting[key]) for x in (ours, boosting) for key in ("error", "log_loss")]
    best += [x["roc_auc"] == max(ours["roc_auc"], boosting["roc_auc"]) for x in (ours, boosting)]
    assert table.count("**") == 2 * sum(best)


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_a_figure_that_the_rows_do_not_define_is_an_empty_cell_with_a_reason(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(compare_module, "PEERS", QUICK)
    pl.read_csv(folder / "test.csv").filter(pl.col("label") == "up").write_csv(tmp_path / "up.csv")
    words = ("-t", "label", "--drop", "size", "--test", tmp_path / "up.csv")
    compared = ("compare", folder / "train.csv", *words, "--time-limit", "0", "--out", tmp_path / "out")
    why = "ROC AUC is not defined: all rows are of class 'up'"
    for text in (call("fit", folder / "train.csv", *words, *TINY).stdout, call(*compared).stdout):
        assert re.search(f"ROC AUC.*{NOTHING}", text, re.DOTALL)
        assert text.count(why) == 1
    assert why in (tmp_path / "out" / "compare.md").read_text()
    found = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert found["note"] == why
    assert [model["roc_auc"] for model in found["models"]] == [None, None]


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupted_comparison_shows_those_that_are_done(folder, monkeypatch):
    def interrupt(*about):
        raise KeyboardInterrupt

    monkeypatch.setattr(compare_module, "PEERS", [Peer("Long", "sklearn", interrupt), *QUICK])
    words = ("compare", folder / "train.csv", "-t", "label", "--time-limit", "0", "--json")
    found = json.loads(call(*words, code=130).stdout)
    assert found["interrupted"]
    assert [model["model"] for model in found["models"]] == ["GCE"]


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
def test_comparisons_are_on_the_rows_that_are_given(folder, monkeypatch):
    from sklearn.ensemble import HistGradientBoostingRegressor

    monkeypatch.setattr(compare_module, "PEERS", QUICK)
    words = ("compare", folder / "train.csv", "-t", "size", "--drop", "label", "--test", folder / "test.csv")
    found = json.loads(call(*words, "--time-limit", "0", "--json").stdout)
    rows, judged = (
        pl.read_csv(folder / name, schema_overrides={"kind": pl.String}) for name in ("train.csv", "test.csv")
    )
    levels = pl.Enum(sorted(rows["kind"].drop_nulls().unique()))
    coded = [
        f.with_columns(pl.col("kind").cast(levels, strict=False).to_physical(), pl.col("flag").cast(pl.Int8))
        .drop("label", "size").cast(pl.Float64).to_numpy()
        for f in (rows, judged)
    ]  # fmt: skip
    model = HistGradientBoostingRegressor(categorical_features=[1], random_state=0).fit(coded[0], rows["size"])
    away = np.abs(model.predict(coded[1]) - judged["size"].to_numpy())
    assert found["models"][1]["mae"] == pytest.approx(away.mean())


@pytest.mark.filterwarnings("default::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("target", ["label", "size"])
def test_every_peer_takes_text_gaps_and_unseen_categories(folder, target):
    words = (
        "compare",
        folder / "train.csv",
        "-t",
        target,
        "--test",
        folder / "test.csv",
        "--time-limit",
        "0",
        "--json",
    )
    found = json.loads(call(*words).stdout)
    assert [model["failed"] for model in found["models"]] == [None] * len(found["models"])
    assert len(found["models"]) + len(found["not_installed"]) == 1 + len(PEERS)


def test_a_loss_of_numbers_makes_counts_a_regression(folder, tmp_path):
    file = tmp_path / "counts.csv"
    pl.read_csv(folder / "train.csv").select("size", y=pl.int_range(pl.len()) % 3).write_csv(file)
    assert "classification: 'y' takes 3 integer values only" in call("fit", file, "-t", "y", *TINY).stdout
    words = ("fit", file, "-t", "y", "--set", "loss=poisson", *TINY)
    assert "regression: loss=poisson is for numbers" in call(*words).stdout
    found = json.loads(call(*words, "--json").stdout)
    assert (found["task"], found["settings"]["loss"]) == ("regression", "poisson")
    assert "unknown loss 'poisson'" in call(*words, "--task", "classification", code=1).stderr
    text = ("fit", folder / "train.csv", "-t", "label", "--set", "loss=poisson", *TINY)
    assert "regression needs numbers, but 'label' is text" in call(*text, code=1).stderr


@pytest.mark.filterwarnings("default:groups are few or unbalanced")
def test_unbalanced_groups_are_told_on_standard_error(folder, tmp_path):
    frame = pl.read_parquet(folder / "train.parquet")
    path = tmp_path / "grouped.parquet"
    frame.with_columns(pl.Series("who", ["a"] * (len(frame) - 4) + ["b"] * 4)).write_parquet(path)
    words = call("fit", path, "-t", "size", "--groups", "who", *TINY).stderr
    assert f"the largest of 2 groups has {len(frame) - 4} of {len(frame)} rows" in " ".join(words.split())
    frame.with_columns(pl.lit("a").alias("who")).write_parquet(path)
    words = call("fit", path, "-t", "size", "--groups", "who", *TINY, code=1).stderr
    assert "--groups 'who' has one group only in" in words


def test_columns_that_are_kept_are_no_features_and_stand_beside_predictions(tmp_path):
    train, out = tmp_path / "train.csv", tmp_path / "m.safetensors"
    frame = (
        table(60, 3)
        .select("x", "label")
        .with_columns(id=pl.Series([f"{i:03d}" for i in range(60)]), nr=pl.Series(range(60)))
    )
    frame.write_csv(train)
    call("fit", train, "-t", "label", "--keep", "id", "--keep", "nr", "--out", out, *TINY)
    assert gce.load(out).feature_names_in_.tolist() == ["x"]
    for suffix, write in WRITE.items():
        rows, to = tmp_path / f"rows.{suffix}", tmp_path / f"p.{suffix}"
        write(frame, rows)
        call("predict", out, rows, "--keep", "id", "--keep", "nr", "--keep", "x", "--proba", "--out", to)
        found = READ[suffix](to, **({"schema_overrides": {"id": pl.String}} if suffix == "csv" else {}))
        assert found.columns == ["id", "nr", "x", "prediction", "probability_down", "probability_up"]
        assert found["id"].to_list() == frame["id"].to_list()
        assert found["nr"].to_list() == frame["nr"].to_list()
        assert found["x"].to_list() == pytest.approx(frame["x"].to_list(), nan_ok=True) or suffix == "csv"
        plain = pl.read_csv(call("predict", out, rows, "--proba").stdout.encode())
        assert found["prediction"].to_list() == plain["prediction"].to_list()
    wrong = call("predict", out, train, "--keep", "ID", code=1).stderr
    assert "--keep 'ID' is not a column of" in wrong
    assert "did you mean 'id'?" in wrong
    frame.rename({"id": "prediction"}).write_csv(train)
    assert (
        "--keep 'prediction' has the name of a column of predictions"
        in call("predict", out, train, "--keep", "prediction", code=1).stderr
    )


def test_a_model_without_names_predicts_all_columns_but_those_that_are_kept(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = gce.GCERegressor(basis="tree", max_iter=2, random_state=0).fit(X, X[:, 0])
    model.save(tmp_path / "m.safetensors")
    pl.DataFrame({"id": range(40), "a": X[:, 0], "b": X[:, 1]}).write_csv(tmp_path / "rows.csv")
    done = call("predict", tmp_path / "m.safetensors", tmp_path / "rows.csv", "--keep", "id")
    found = pl.read_csv(done.stdout.encode())
    assert found["id"].to_list() == list(range(40))
    assert np.array_equal(found["prediction"].to_numpy(), model.predict(X))


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_test_labels_of_another_kind_are_shown_before_the_fit(folder, tmp_path, command, monkeypatch):
    monkeypatch.setattr(gce.GCEClassifier, "fit", lambda *given, **more: pytest.fail("fitted"))
    other = pl.read_csv(folder / "test.csv").with_columns(label=(pl.col("label") == "up").cast(int))
    other.write_csv(tmp_path / "test.csv")
    words = [command, folder / "train.csv", "-t", "label", "--test", tmp_path / "test.csv"]
    said = call(*words, code=1).stderr
    # text in the fit is text in the test
    assert "test.csv has the labels '0', '1' in 'label', and the fit had 'down', 'up': none is the same" in said


def test_report_labels_of_another_kind_are_shown(folder, classifier, regressor, tmp_path):
    other = pl.read_csv(folder / "test.csv").with_columns(label=(pl.col("label") == "up").cast(int), size=pl.lit("big"))
    other.write_csv(tmp_path / "test.csv")
    for model, target, words in (
        (classifier, "label", "has the labels '0', '1' in 'label', and the fit had 'down', 'up'"),
        (regressor, "size", "has 'big' in the target 'size', which was numbers in the fit"),
    ):
        options = ["report", model, tmp_path / "test.csv", "-t", target, "-o", tmp_path / "r.html"]
        assert words in call(*options, code=1).stderr


def test_every_command_reads_other_encodings(tmp_path):
    frame = table(60, 5).select(größe="x", farbe="kind", label="label")
    rows, out = tmp_path / "rows.csv", tmp_path / "m.safetensors"
    rows.write_bytes(frame.write_csv().encode("latin-1"))
    latin = ["--encoding", "latin-1"]
    assert "is not text in UTF-8: name its encoding" in call("fit", rows, "-t", "label", code=1).stderr
    call("fit", rows, "-t", "label", "--test", rows, "--out", out, *latin, *TINY)
    assert gce.load(out).feature_names_in_.tolist() == ["größe", "farbe"]
    plain = tmp_path / "utf8.csv"
    frame.write_csv(plain)
    assert call("predict", out, rows, *latin).stdout == call("predict", out, plain).stdout
    call("report", out, rows, "-t", "label", "-o", tmp_path / "r.html", *latin)
    assert "is not text in UTF-8" in call("compare", rows, "-t", "label", code=1).stderr
    assert "is not an encoding" in call("compare", rows, "-t", "label", "--encoding", "x", code=1).stderr


def test_help_loads_no_library_of_a_fit():
    """Help needs names and texts: what takes seconds of processor time is loaded when a command is run."""
    heavy = ("torch", "sklearn", "scipy", "numpy", "polars", "pandas", "narwhals", "joblib", "matplotlib")
    code = (
        "import sys\n"
        "from gce.cli import main\n"
        "sys.argv = ['gce', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(repr(sorted(name for name in {heavy} if name in sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]"
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_all_commands_is_that_of_each(name):
    function = getattr(importlib.import_module(f"gce.cli.{name}"), name)
    paragraph = inspect.getdoc(function).split("\n\n")[0]
    assert " ".join(paragraph.split()) == COMMANDS[name]


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A table with letters that ASCII lacks, and a model of it."""
    folder = tmp_path_factory.mktemp("foreign")
    numbers = np.random.default_rng(0).normal(size=80).round(3)
    rows = [f"{v},{'grün' if v > 0.3 else 'rot'},{'ja' if v > 0 else 'nö'}" for v in numbers]
    (folder / "t.csv").write_text("\n".join(["größe,farbe,wahl", *rows]) + "\n", encoding="utf-8")
    call = ["fit", "t.csv", "-t", "wahl", "-o", "m.safetensors", "--set", "max_atoms=2", "--set", "cv=2"]
    assert command(folder, *call).exit_code == 0
    return folder


def command(folder, *call, encoding="utf-8", columns=None):
    """A call of gce with streams of an encoding, and bytes as its output."""
    with contextlib.chdir(folder):
        done = CliRunner(charset=encoding).invoke(app, list(call), env={"COLUMNS": columns})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.mark.parametrize(
    "call",
    [
        ("inspect", "m.safetensors"),
        ("inspect", "m.safetensors", "--json"),
        ("predict", "m.safetensors", "t.csv"),
        ("report", "m.safetensors", "t.csv", "-t", "wahl", "-o", "r.html"),
        ("fit", "t.csv", "-t", "wahl", "--set", "max_atoms=2", "--set", "cv=2"),
        ("fit", "t.csv", "-t", "wahl", "--set", "max_atoms=2", "--set", "cv=2", "--json"),
        ("fit", "--help"),
    ],
    ids=" ".join,
)
def test_terminals_of_ascii_and_of_twenty_columns(foreign, call):
    plain = command(foreign, *call, encoding="ascii")
    assert plain.exit_code == 0, plain.stderr
    wide = command(foreign, *call)
    if "--json" in call:
        first, second = json.loads(plain.stdout_bytes.decode("ascii")), json.loads(wide.stdout_bytes)
        assert first.keys() == second.keys()
        assert first["classes"] == second["classes"] == ["ja", "nö"]
    elif call[0] == "predict":
        # tables for programs are UTF-8, as files are
        assert plain.stdout_bytes == wide.stdout_bytes
    else:
        plain.stdout_bytes.decode("ascii")
    narrow = command(foreign, *call, columns="20")
    assert narrow.exit_code == 0, narrow.stderr
    if call[0] != "fit" or "--json" in call:
        # nothing is cut off
        assert "…" not in narrow.stdout_bytes.decode()


@pytest.mark.parametrize("columns", ["20", "40", "60"])
@pytest.mark.parametrize("call", [(), ("--help",), *((name, "--help") for name in COMMANDS)], ids=" ".join)
def test_helps_are_whole_in_ascii_and_in_narrow_terminals(tmp_path, call, columns):
    plain = command(tmp_path, *call, encoding="ascii", columns=columns)
    assert plain.exit_code == (0 if call else 2)
    shown = (plain.stdout_bytes + plain.stderr_bytes).decode("ascii")
    narrow = command(tmp_path, *call, columns=columns)
    wide = command(tmp_path, *call, columns="200")
    names = set(re.findall(r"(?<!\S)--[a-z-]+", wide.output)) | (set() if any(call[:-1]) else set(COMMANDS))
    assert "--help" in names
    for text in (shown, narrow.output):
        assert names <= set(re.findall(r"[a-z-]+", text))
        assert "…" not in text


def test_usage_errors_are_told_in_ascii_and_in_narrow_terminals(tmp_path):
    done = command(tmp_path, "inspect", "m.safetensors", "--größe", encoding="ascii", columns="20")
    assert done.exit_code == 2
    assert r"--gr\xf6\xdfe" in done.stderr_bytes.decode("ascii")


def test_names_are_whole_in_ascii_and_in_twenty_columns(foreign):
    # in a process of its own, as a terminal would have it
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUTF8"}
    done = subprocess.run(
        [sys.executable, "-m", "gce", "inspect", "m.safetensors"],
        capture_output=True,
        cwd=foreign,
        env=environment | {"PYTHONIOENCODING": "ascii"},
    )
    shown = done.stdout.decode("ascii")
    assert r"gr\xf6\xdfe" in shown
    assert "ja, n\\xf6" in shown
    assert "+/-" in shown
    narrow = command(foreign, "inspect", "m.safetensors", columns="20").stdout_bytes.decode()
    assert all(word in narrow for word in ("größe", "GCEClassifier, classification", "m.safetensors"))
    wrong = command(foreign, "fit", "t.csv", "-t", "grösse", encoding="ascii", columns="20")
    assert wrong.exit_code == 1
    assert rb"did you mean 'gr\xf6\xdfe'?" in wrong.stderr_bytes


def test_ordinal_classes_are_shown_in_the_order_they_have(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=90)
    words = np.array(["low", "medium", "high"])[np.digitize(x, [-0.5, 0.5])]
    frame = pl.DataFrame({"x": x, "y": words})
    frame.with_columns(pl.col("y").cast(pl.Enum(["low", "medium", "high"]))).write_parquet(tmp_path / "enum.parquet")
    frame.write_csv(tmp_path / "text.csv")
    fit = ["-t", "y", "--set", "loss=ordinal", "--set", "basis=tree", "--set", "max_atoms=2", "--test"]
    for file, order in (("enum.parquet", ["low", "medium", "high"]), ("text.csv", ["high", "low", "medium"])):
        path, out = tmp_path / file, tmp_path / "m.safetensors"
        done = call("fit", path, *fit, path, "-o", out)
        assert f"classes in their order: {', '.join(order)}" in done.stdout
        model = gce.load(out)
        assert model.ordered_classes_.tolist() == order
        assert model.classes_.tolist() == ["high", "low", "medium"]
        assert json.loads(call("fit", path, *fit, path, "--json").stdout)["ordered_classes"] == order
