"""Checkpoints of earlier formats: today's code returns the fit that is in the folder, and goes on with it."""

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import make_checkpoints
from gce.bases import Forest, Neural, SymmetricTree, Tree, Union
from gce.frank_wolfe import Boosting
from gce.io.container import VERSION, read
from gce.io.migration import upgrade
from gce.losses import REGRESSION, Huber
from helpers import one_weight_per_family
from make_checkpoints import FURTHER, ROUNDS, fit, learned

FILES = Path(__file__).with_name("files")
VERSIONS = range(1, VERSION + 1)
EXPECTED = {version: json.loads((FILES / f"v{version}_checkpoints.json").read_text()) for version in VERSIONS}
FOLDERS = [(version, name) for version in EXPECTED for name, _ in make_checkpoints.models(version)]


#: The last version whose trees drew rows and columns, or grew for losses with kinks, otherwise than later ones.
DRAWN = dict.fromkeys(("boosting", "trees", "union", "families", "two_classes_families", "classes_families_dict"), 5)
DRAWN |= {"families_of_union": 5, "soft_quantile": 6}


def copied(version, name, tmp_path):
    return Path(shutil.copytree(FILES / f"v{version}_checkpoint_{name}", tmp_path / "copy"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def check_learned(model, version, name, when, tolerance):
    found, expected = learned(model, EXPECTED[version]), EXPECTED[version][when][name]
    # rounding moves where the search for a temperature ends, which has a tolerance of 1e-6: 2e-12 on another processor
    allowed = {"risk": tolerance, "answers": max(tolerance, 1e-9) if hasattr(model, "predict_proba") else tolerance}
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=allowed[key], atol=allowed[key], err_msg=key)


def test_every_folder_is_tested():
    there = {path.name for path in FILES.glob("v*_checkpoint_*")}
    assert there == {f"v{version}_checkpoint_{name}" for version, name in FOLDERS}
    for version in EXPECTED:
        for path in FILES.glob(f"v{version}_checkpoint_*/*"):
            assert read(path)[0]["version"] == version


@pytest.fixture(autouse=True)
def constants_of_that_time(monkeypatch):
    one_weight_per_family(monkeypatch)
    monkeypatch.setitem(REGRESSION, "huber", Huber(1.0))


@pytest.mark.parametrize(("version", "name"), FOLDERS)
def test_the_fit_in_the_folder_comes_back(version, name, tmp_path):
    folder, model = copied(version, name, tmp_path), dict(make_checkpoints.models(version))[name]
    before = contents(folder)
    with warnings.catch_warnings():
        # a fit of so few rounds has not converged
        warnings.simplefilter("ignore")
        fit(model, EXPECTED[version], name, folder, ROUNDS)
    assert contents(folder) == before
    check_learned(model, version, name, "left", 1e-12)


def test_a_folder_of_another_width_is_refused(tmp_path, monkeypatch):
    """Before widths followed the targets, "huber" meant a width of 1: its rounds are not those of today's loss."""
    monkeypatch.setitem(REGRESSION, "huber", Huber())
    folder, model = copied(7, "huber", tmp_path), dict(make_checkpoints.models(7))["huber"]
    with pytest.raises(ValueError, match="offset_"):
        fit(model, EXPECTED[7], "huber", folder, ROUNDS)


@pytest.mark.parametrize(("version", "name"), FOLDERS)
def test_the_fit_in_the_folder_goes_on(version, name, tmp_path):
    folder, model = copied(version, name, tmp_path), dict(make_checkpoints.models(version))[name]
    before = contents(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(model, EXPECTED[version], name, folder, FURTHER)
    after = contents(folder)
    kept = [file for file in before if "round-" in file or file == "head.safetensors"]
    assert all(after[file] == before[file] for file in kept)
    if version <= DRAWN.get(name, 0):
        found, left = learned(model, EXPECTED[version]), EXPECTED[version]["left"][name]
        first = model.result_.families[0]
        kept = len(left["risk"]) if len(model.result_.families) == 1 else min(ROUNDS, len(first.rounds))
        np.testing.assert_allclose(found["risk"][:kept], left["risk"][:kept], rtol=1e-12)
        assert np.isfinite(found["answers"]).all()
    else:
        # later rounds are trained, which rounds differently on other processors
        check_learned(model, version, name, "further", 1e-6)
    new = [file for file in after if "round-" in file and file not in before]
    assert len(new) == len(EXPECTED[version]["further"][name]["risk"]) - len(EXPECTED[version]["left"][name]["risk"])


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("boosting", {"basis": Tree(max_leaf_nodes=4)}),
        ("boosting", {"algorithm": Boosting(learning_rate=0.2)}),
        ("union", {"basis": Union([Tree(), Neural(hidden=2, max_epochs=15)], choose="risk")}),
        ("families", {"basis": [Tree(), SymmetricTree(), Forest(), Neural()]}),
        ("classes_families_dict", {"basis": {"deep": Tree(), "flat": SymmetricTree()}}),
        ("families_of_union", {"basis": {"both": Union([Tree(), Neural()]), "forest": Forest()}}),
    ],
)
def test_a_fit_of_other_parameters_is_refused(name, others, tmp_path):
    folder, model = copied(2, name, tmp_path), dict(make_checkpoints.models(2))[name]
    with pytest.raises(ValueError, match=f"another fit \\(of another {next(iter(others))}\\)"):
        fit(model.set_params(**others), EXPECTED[2], name, folder, ROUNDS)


def test_objects_in_a_head_have_the_names_of_today():
    about = read(FILES / "v2_checkpoint_families_of_union" / "head.safetensors")[0]["about"]
    before = json.dumps(about)
    assert "gce.basis.union.Union" in before
    assert '"leaves"' in before
    after = json.dumps(upgrade(about))
    assert json.dumps(about) == before
    assert '"Union"' in after
    assert "gce." not in after
    for old, new in [("leaves", "max_leaf_nodes"), ("tries", "max_features"), ("shrinkage", "learning_rate")]:
        assert f'"{old}"' not in after
        assert f'"{new}"' in after
