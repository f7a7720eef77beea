"""What is done with a model that came from an altered file: all of it gives numbers, or says why not."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

from gce.cli.app import app


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
    """Scores within the bound around the offset, and predictions without NaN."""
    model = used.model
    scores = model.raw_predict(used.X).numpy()
    check(len(scores) == used.X.shape[0], "a prediction is missing")
    check(not np.isnan(scores).any(), "a score is NaN")
    own = scores.reshape(len(scores), -1)
    reach = model.bound_ * (1 + 1e-6) + 1e-6 * np.abs(model.offset_)
    check(bool((np.abs(own - model.offset_) <= reach).all()), "a score is outside the bound")
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(used.X))
        check(bool(((shares >= 0) & (shares <= 1)).all()), "a probability is outside [0, 1]")
        return
    predictions = np.asarray(model.predict(used.X))
    check(not np.isnan(predictions.astype(float)).any(), "a prediction is NaN")


def intervals(used: Used) -> None:
    """Intervals of a regressor, curves of a survival model, stages where rounds are kept."""
    for name in ("predict_interval", "predict_survival_function", "predict_cumulative_hazard_function"):
        if hasattr(used.model, name):
            getattr(used.model, name)(used.X)
    if used.model.result_.has_stages and hasattr(used.model, "staged_predict"):
        for _ in used.model.staged_predict(used.X):
            pass


def shap_values(used: Used) -> None:
    """Shapley values of two rows."""
    used.model.shap_values(used.X[:2])


def inspect(used: Used) -> None:
    """``gce inspect``: one screen, or one sentence, without control characters."""
    for options in ([], ["--json"]):
        done = CliRunner().invoke(app, ["inspect", str(used.path), *options])
        check(done.exit_code in (0, 1), f"gce inspect ended with {done.exit_code}")
        check("--debug shows the traceback" not in done.stderr, f"gce inspect: {done.stderr[:300]}")
        text = done.stdout + done.stderr
        check(all(c.isprintable() or c == "\n" for c in text), "gce inspect wrote a control character")


def edit(used: Used) -> None:
    """Fewer atoms, and other weights."""
    if used.y is None or not hasattr(used.model, "prune"):
        return
    used.model.prune(2, X=used.X, y=used.y)


def go_on(used: Used) -> None:
    """One more round, where the file keeps rounds."""
    if used.y is None or not used.model.result_.has_stages or not hasattr(used.model, "warm_start"):
        return
    limits = {"max_iter": used.model.n_iter_ + 1, "max_atoms": None, "time_limit": 5, "n_jobs": 1}
    used.model.set_params(warm_start=True, **limits).fit(used.X, used.y)


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
    given = {inputs[0].name: used.X}
    proba = hasattr(used.model, "predict_proba")
    wanted = np.asarray(used.model.predict_proba(used.X) if proba else used.model.predict(used.X))
    found = np.asarray(session.run(None, given)[-1]).reshape(wanted.shape)
    close = np.allclose(found, wanted, rtol=1e-4, atol=1e-5 * (1 + np.abs(wanted).max()))
    check(close, "the ONNX file answers something else")


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
    """Predict, and use a model in one other way; a ValueError is a sentence for users, anything else is raised."""
    said = "used"
    for way in (predict, USES[rng.choice(list(USES))]):
        try:
            way(used)
        except ValueError as error:
            check(bool(str(error)), f"{way.__name__}: an error without words")
            said = "used, with a sentence"
        except BrokenPromiseError as error:
            raise BrokenPromiseError(f"{way.__name__}: {error}") from error
    return said
