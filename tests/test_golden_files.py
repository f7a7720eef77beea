"""Golden files of the current format: one for each class, loss, atom and fitted attribute that a file may hold.

Whoever adds one adds a model to make_model_files.py and runs it. That each file predicts what it did is checked by
test_model_files.py and test_old_checkpoints.py.
"""

import inspect
import json
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import gce
import make_onnx_files
from gce import losses
from gce.bases.registry import KINDS
from gce.estimators.loading import ESTIMATORS
from gce.io import values
from gce.io.attributes import FITTED
from gce.io.container import VERSION, read
from gce.preprocessing.frames import Kind

FILES = Path(__file__).with_name("files")
LISTED = json.loads((FILES / f"v{VERSION}.json").read_text())
METAS = {name: read(FILES / f"v{VERSION}_{name}.safetensors")[0] for name in LISTED["scores"]}

#: Losses that a model file does not hold: `save` refuses them by name, and joblib keeps such models.
NOT_IN_FILES = {"LogMixture", "SoftPower", "SoftQuantile", "SoftQuantiles"}


def test_every_class_of_estimators_has_a_golden_file():
    assert {meta["estimator"] for meta in METAS.values()} == ESTIMATORS.keys()


def test_every_public_loss_has_a_golden_file_or_is_refused():
    public = {name for name in losses.__all__ if inspect.isclass(kind := getattr(losses, name)) and _is_whole(kind)}
    held = {meta["fitted"]["loss_"]["value"]["object"] for meta in METAS.values()}
    assert held == public - NOT_IN_FILES
    for name in NOT_IN_FILES:
        assert name not in values._OWN


def _is_whole(kind):
    return issubclass(kind, losses.Loss) and kind not in (losses.Loss, losses.ResidualLoss)


def test_every_fitted_attribute_and_part_of_a_file_has_a_golden_file():
    assert set().union(*(meta["fitted"] for meta in METAS.values())) == FITTED.keys()
    parts = {"families", "covers", "ensemble", "summary", "history", "scale", "bases"}
    assert parts <= set().union(*METAS.values())


def test_every_kind_of_atoms_has_a_golden_file():
    assert set().union(*(_kinds(meta) for meta in METAS.values())) == KINDS.keys()


def _kinds(value):
    """Names of kinds of atoms anywhere in metadata."""
    if not isinstance(value, dict):
        return set()
    own = value["kinds"] if isinstance(value.get("kinds"), list) else []
    return set(own).union(*map(_kinds, value.values()))


def test_every_kind_of_columns_has_a_golden_file():
    columns = [column for meta in METAS.values() for column in meta["fitted"]["table_"]["state"]["columns"]]
    assert {column["kind"] for column in columns} == set(get_args(Kind))
    assert {column["parts"]["kind"] for column in columns if "parts" in column} == {"calendar", "text"}
    assert any("statistics" in meta["fitted"]["table_"]["state"] for meta in METAS.values())


def test_a_reader_of_format_6_refuses_files_of_today_for_their_version(monkeypatch):
    """Before version 7 they were refused for an attribute, or read with intervals of constant width."""
    monkeypatch.setattr("gce.io.container.VERSION", 6)
    for name in ("gce_regressor", "gce_scaled", "survival_cox"):
        with pytest.raises(gce.ModelFileError, match=r"has format version 7, .* reads up to 6; upgrade gce"):
            gce.load(FILES / f"v7_{name}.safetensors")


@pytest.mark.parametrize("name", make_onnx_files.NAMES)
def test_golden_graphs_answer_as_their_models_did(name):
    runtime = pytest.importorskip("onnxruntime")
    rows = pd.DataFrame(json.loads((FILES / "v7.json").read_text())["rows"])
    session = runtime.InferenceSession(FILES / f"v7_{name}.onnx", providers=["CPUExecutionProvider"])
    feeds = {}
    for given in session.get_inputs():
        column, text = rows[given.name], given.type == "tensor(string)"
        values = column.astype(object).fillna("") if text else column.astype(float)
        feeds[given.name] = values.to_numpy(dtype=object if text else float)[:, None]
    expected = np.asarray(json.loads((FILES / "v7.json").read_text())["scores"][name])
    found = session.run(None, feeds)[-1]
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


def test_the_page_of_model_files_counts_the_golden_files():
    page = (FILES.parents[1] / "docs" / "model_files.md").read_text()
    rows = [line.strip("|").split("|") for line in page.splitlines() if re.match(r"\| \d", line)]
    shown = {int(row[0]): (int(row[3]), int(row[4])) for row in rows}
    counted = {}
    for version in range(1, VERSION + 1):
        models, folders = FILES.glob(f"v{version}_*.safetensors"), FILES.glob(f"v{version}_checkpoint_*")
        counted[version] = len(list(models)), len(list(folders))
    assert shown == counted
