"""What is done with a model that came from an altered file: all of it gives numbers, or says why not."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from campaign.inputs_oracle import unlawful
from gce.cli.app import app

#: Rows that are predicted by themselves, at most: each takes a millisecond.
MOST_ALONE = 8
#: What answers the same as an output of an ONNX file.
OUTPUTS = {"variable": "predict", "probabilities": "predict_proba", "survival": "predict_survival_function"}


class BrokenPromiseError(AssertionError):
    """What should hold does not."""


class Used:
    """A loaded model, with rows to use it on and the file that it came from."""

    def __init__(self, model: Any, X: Any, y: Any, path: Path) -> None:
        self.model, self.X, self.y, self.path = model, X, y, path


def check(holds: bool, words: str) -> None:
    """Raise a BrokenPromiseError where something does not hold."""
    if not holds:
        raise BrokenPromiseError(words)


def predict(used: Used) -> None:
    """Scores within the bound around the offset, of each row alone as beside others; predictions without NaN."""
    model = used.model
    scores = model.raw_predict(used.X).numpy()
    check_numbers("scores", scores, used.X.shape[0])
    check_alone(model, used.X, scores)
    own = scores.reshape(len(scores), -1)
    reach = model.bound_ * (1 + 1e-6) + 1e-6 * np.abs(model.offset_)
    check(bool((np.abs(own - model.offset_) <= reach).all()), "a score is outside the bound")
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(used.X))
        check(bool(((shares >= 0) & (shares <= 1)).all()), "a probability is outside [0, 1]")
        return
    check_numbers("predictions", model.predict(used.X), used.X.shape[0])


def check_numbers(what: str, values: Any, rows: int) -> None:
    """One entry for each row, and none of them NaN."""
    array = np.asarray(values, dtype=float)
    check(len(array) == rows, f"{what}: {len(array)} for {rows} rows")
    check(not np.isnan(array).any(), f"{what}: {int(np.isnan(array).sum())} of {array.size} are NaN")


def check_alone(model: Any, X: Any, scores: np.ndarray[Any, Any]) -> None:
    """The same bits in a table in reverse, and of rows by themselves.

    A row has the same bits whatever rows are beside it (:mod:`gce._utils.rowwise`), but a column past the last one is
    the first of the next row: in another order, by itself and elsewhere in memory that is another number.
    """
    backwards = np.arange(X.shape[0])[::-1]
    turned = model.raw_predict(X.iloc[backwards] if hasattr(X, "iloc") else X[backwards]).numpy()
    check(np.array_equal(turned[::-1], scores), "a score is another one in a table in reverse")
    for i in np.linspace(0, X.shape[0] - 1, min(X.shape[0], MOST_ALONE), dtype=int):
        alone = model.raw_predict(X[i : i + 1]).numpy()
        check(np.array_equal(alone[0], scores[i]), f"the score of row {i} is another one where the row is alone")


def intervals(used: Used) -> None:
    """Intervals of a regressor, curves of a survival model, stages where rounds are kept."""
    model, rows = used.model, used.X.shape[0]
    if hasattr(model, "predict_interval"):
        ends = np.asarray(model.predict_interval(used.X))
        check_numbers("intervals", ends, rows)
        check(bool((ends[..., 0] <= ends[..., 1]).all()), "an interval ends before it begins")
    for name, sign in (("predict_survival_function", -1), ("predict_cumulative_hazard_function", 1)):
        if hasattr(model, name):
            curves = np.asarray(getattr(model, name)(used.X))
            check_numbers(name, curves, rows)
            check(bool((sign * curves[:, 1:] >= sign * curves[:, :-1]).all()), f"{name}: a curve turns")
            check(bool(((curves >= 0) & ((curves <= 1) | (sign > 0))).all()), f"{name}: a curve leaves its range")
    if model.result_.has_stages and hasattr(model, "staged_predict"):
        for stage in model.staged_predict(used.X):
            check(len(stage) == rows, f"a stage has {len(stage)} predictions for {rows} rows")
            if not hasattr(model, "classes_"):
                check_numbers("a stage", stage, rows)


def shap_values(used: Used) -> None:
    """Shapley values of two rows, which sum to their scores."""
    few = used.X[:2]
    found, scores = used.model.shap_values(few), used.model.raw_predict(few).numpy()
    sums = (found.base_values + found.values.sum(1)).reshape(scores.shape)
    check_numbers("Shapley values", found.values, 2)
    size = np.abs(scores).max() + np.abs(found.values).max() + np.abs(found.base_values).max()
    check(np.allclose(sums, scores, rtol=0, atol=1e-6 * (1 + size)), "Shapley values do not sum to the score")
    if found.standard_errors is not None:
        check_numbers("standard errors", found.standard_errors, 2)


def inspect(used: Used) -> None:
    """``gce inspect``: one screen, or one sentence, without control characters."""
    for options in ([], ["--json"]):
        done = CliRunner().invoke(app, ["inspect", str(used.path), *options])
        check(done.exit_code in (0, 1), f"gce inspect ended with {done.exit_code}")
        check("--debug shows the traceback" not in done.stderr, f"gce inspect: {done.stderr[:300]}")
        text = done.stdout + done.stderr
        check(all(c.isprintable() or c == "\n" for c in text), "gce inspect wrote a control character")


def edit(used: Used) -> None:
    """Fewer atoms, and other weights: a model that predicts."""
    if used.y is None or not hasattr(used.model, "prune"):
        return
    predict(Used(used.model.prune(2, X=used.X, y=used.y), used.X, used.y, used.path))


def go_on(used: Used) -> None:
    """One more round, where the file keeps rounds: a model that predicts."""
    if used.y is None or not used.model.result_.has_stages or not hasattr(used.model, "warm_start"):
        return
    limits = {"max_iter": used.model.n_iter_ + 1, "max_atoms": None, "time_limit": 5, "n_jobs": 1}
    before = used.model.n_iter_
    used.model.set_params(warm_start=True, **limits).fit(used.X, used.y)
    check(used.model.n_iter_ >= before, "a model that was continued has fewer rounds")
    predict(used)


def save(used: Used) -> None:
    """A file of it that is read again, to the same scores."""
    import gce

    path = used.path.with_name("again.safetensors")
    used.model.save(path)
    same = np.array_equal(gce.load(path).raw_predict(used.X), used.model.raw_predict(used.X), equal_nan=True)
    check(same, "a model that was saved again predicts something else")


def export(used: Used) -> None:
    """An ONNX file that is valid, and for numbers answers what the model answers."""
    import onnx
    import onnxruntime

    file = io.BytesIO()
    used.model.to_onnx(file)
    onnx.checker.check_model(onnx.load_from_string(file.getvalue()), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file.getvalue(), options, providers=["CPUExecutionProvider"])
    inputs = session.get_inputs()
    if not isinstance(used.X, np.ndarray) or len(inputs) != 1 or inputs[0].type != "tensor(double)":
        return
    found = dict(
        zip((each.name for each in session.get_outputs()), session.run(None, {inputs[0].name: used.X}), strict=True)
    )
    for name, method in OUTPUTS.items():
        if name in found:
            wanted = np.asarray(getattr(used.model, method)(used.X))
            close = np.allclose(
                found[name].reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5 * (1 + np.abs(wanted).max())
            )
            check(close, f"{name} of the ONNX file answers something else")


USES: dict[str, Callable[[Used], None]] = {
    "intervals": intervals,
    "shap_values": shap_values,
    "inspect": inspect,
    "prune": edit,
    "warm_start": go_on,
    "save": save,
    "onnx": export,
}


def use(used: Used, rng: random.Random) -> str:
    """Predict, and use a model in one other way; a ValueError must be gce's own sentence, anything else is raised."""
    said = "used"
    for way in (predict, USES[rng.choice(list(USES))]):
        try:
            way(used)
        except ValueError as error:
            problem = unlawful(error, ())
            check(not problem, f"{way.__name__}: {problem}")
            said = "used, with a sentence"
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"{way.__name__}: {error}") from error
    return said
