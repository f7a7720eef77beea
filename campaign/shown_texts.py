"""Terminals, logs, plots and exported files."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from typer.testing import CliRunner

import gce
from campaign.model_uses import check
from gce.cli.app import app
from gce.cli.writing import write_table


def obeyed(text: str) -> list[str]:
    """Characters that a terminal obeys."""
    return [letter for letter in text if letter != "\n" and not letter.isprintable()]


def call(*words: object) -> Any:
    """Run ``gce`` in this process; what it says is harmless, and an error is a sentence."""
    done = CliRunner().invoke(app, list(map(str, words)))
    check(done.exception is None or isinstance(done.exception, SystemExit), f"{words[0]}: {done.exception!r}")
    check("--debug shows the traceback" not in done.stderr, f"{words[0]}: {done.stderr[:300]}")
    check(done.exit_code in (0, 1, 2), f"{words[0]} ended with {done.exit_code}")
    check(not obeyed(done.stderr), f"{words[0]} wrote {obeyed(done.stderr)[:3]} to standard error")
    return done


def file_of(named: Any, suffix: str) -> Path:
    """A file whose name holds as much of the word as a name can."""
    word = named.word.replace("/", "-").replace("\0", "").encode("utf-8", "replace")[:100].decode("utf-8", "ignore")
    return Path(named.folder / f"f{word}{suffix}")


def inspect(named: Any) -> str:
    path = file_of(named, ".safetensors")
    named.fitted().save(path)
    for options in ([], ["--json"]):
        done = call("inspect", path, *options)
        check(done.exit_code == 0, f"inspect: {done.stderr[:300]}")
        check(not obeyed(done.stdout), f"inspect wrote {obeyed(done.stdout)[:3]}")
    found = json.loads(done.stdout)["columns"]
    check([one["name"] for one in found] == list(named.X.columns), "names are lost in JSON")
    return "shown"


def _csv(named: Any) -> Path | None:
    path = file_of(named, ".csv")
    try:
        frame = pl.DataFrame({name: named.X[name].to_list() for name in named.X})
        frame.with_columns(pl.Series(named.target, named.y.tolist())).write_csv(path)
    except (UnicodeEncodeError, pl.exceptions.PolarsError):
        return None
    return path


def fit(named: Any) -> str:
    path = _csv(named)
    if path is None:
        return "has no form in a table"
    try:
        done = call("fit", path, "-t", named.target, "-o", path.with_suffix(".safetensors"), "--time-limit", "1")
    except ValueError as error:
        return f"has no form on a command line ({type(error).__name__})"
    check(not obeyed(done.stdout), f"fit wrote {obeyed(done.stdout)[:3]}")
    return "a sentence" if done.exit_code else "shown"


def predict_on_a_terminal(named: Any) -> str:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    import gce.cli.writing as writing

    try:
        frame = pl.DataFrame({named.word or "x": [named.word], "b": [1.0]})
    except UnicodeEncodeError:
        return "has no form in a table"
    shown, before = Terminal(), writing.sys.stdout
    writing.sys.stdout = shown
    try:
        write_table(frame, Path("-"))
    finally:
        writing.sys.stdout = before
    check(not obeyed(shown.getvalue()), f"predict wrote {obeyed(shown.getvalue())[:3]}")
    return "shown"


def errors(named: Any) -> str:
    """What is wrong is said with names in it."""
    path, model = _csv(named), file_of(named, ".safetensors")
    named.fitted().save(model)
    if path is None:
        return "has no form in a table"
    missing = path.with_name("other.csv")
    pl.DataFrame({"x": [1.0], "y": ["b"]}).write_csv(missing)
    for words in (("predict", model, missing), ("fit", path, "-t", "none"), ("inspect", path), ("predict", path, path)):
        check(call(*words).exit_code == 1, f"{words[0]}: taken")
    return "a sentence each"


def explain(named: Any) -> str:
    model = named.fitted()
    model.shap_values(named.X[:3])
    for by in ("families", "atoms"):
        words = str(model.explain(named.X, named.y, by=by))
        check(not obeyed(words), f"an explanation has {obeyed(words)[:3]}")
    return "shown"


def plots(named: Any) -> str:
    """Displays draw names, with "$" as it is."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from gce.inspection.plotting import TrainingDisplay, WeightsDisplay

    model = named.fitted()
    for draw in (
        lambda: TrainingDisplay.from_estimator(model),
        lambda: WeightsDisplay.from_estimator(model),
        lambda: model.explain(named.X, named.y).plot(),
        lambda: model.explain(named.X, named.y, by="atoms").plot(),
        lambda: model.pruning_path(named.X, named.y).plot(),
    ):
        try:
            draw()
            figure = plt.gcf()
            figure.set_size_inches(3, 2)
            figure.savefig(io.BytesIO(), dpi=30)
        finally:
            plt.close("all")
    return "drawn"


def onnx(named: Any) -> str:
    import onnx as library

    model, file = named.fitted(), io.BytesIO()
    try:
        model.to_onnx(file)
    except ValueError as error:
        check(bool(str(error)), "an error without words")
        return "refused"
    library.checker.check_model(library.load_from_string(file.getvalue()), full_check=True)
    return "valid"


@contextmanager
def _logged() -> Iterator[io.StringIO]:
    text, logger = io.StringIO(), logging.getLogger("gce")
    handler, level = logging.StreamHandler(text), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield text
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def logs(named: Any) -> str:
    """What a fit logs, and the tags of curves."""
    tags: list[str] = []

    class Writer:
        log_dir = "x"

        def add_scalar(self, name: str, value: float, step: int) -> None:
            tags.append(name)

        def flush(self) -> None:
            """Nothing is kept."""

    with _logged() as text:
        named.fitted(callbacks=[gce.training.TensorBoard(Writer())], verbose=2)
    check(not obeyed(text.getvalue()), f"a log has {obeyed(text.getvalue())[:3]}")
    check(not any(map(obeyed, tags)), f"a tag has {obeyed(''.join(tags))[:3]}")
    return "shown"


WAYS = [inspect, fit, predict_on_a_terminal, errors, explain, plots, onnx, logs]
