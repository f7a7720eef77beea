"""Fits that are interrupted and go on: the same model as if nothing had happened, or a sentence that says why not."""

import errno
import os
import shutil
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.base import clone

import gce
from gce._utils import memory
from gce.bases.neural.basis import TrainedBasis
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.io import container
from helpers import GPU

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
ONE = X[:, 0] * X[:, 1] + 0.1 * RNG.normal(size=N)
MANY = np.column_stack([ONE, 5 * X[:, 2] ** 2])
THREE = np.array(["a", "b", "c"])[(X[:, 0] > 0) + (X[:, 1] > 0.3).astype(int)]
SMALL = {"basis": gce.bases.Neural(hidden=5, max_epochs=20), "cv": 3, "max_atoms": 7, "random_state": 0}


def regressor(**others):
    return gce.GCERegressor(**{**SMALL, **others})


def stop(step):
    return True


def by_single_rounds(model, *rows, checkpoint, **given):
    """A fit that is stopped after every round and called again, each time by a new object."""
    calls = 0
    while True:
        now = clone(model).set_params(callbacks=[stop]).fit(*rows, checkpoint=checkpoint, **given)
        calls += 1
        if now.n_iter_ < calls:
            assert calls > 2
            return now


def assert_equal(one, other):
    """The same rounds, the same weights and the same answers, to the last bit."""
    timeless = [
        [{name: value for name, value in entry.items() if name != "seconds"} for entry in model.history_]
        for model in (one, other)
    ]
    assert timeless[0] == timeless[1]
    first, second = one.ensemble_.state_dict(), other.ensemble_.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert np.array_equal(*(np.stack(list(model.staged_predict(X))) for model in (one, other)))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


CASES = {
    **{name: (regressor(algorithm=name, n_iter_no_change=4), ONE) for name in ALGORITHMS},
    **{f"{name}-classes": (gce.GCEClassifier(algorithm=name, **SMALL), THREE) for name in ALGORITHMS},
    "float32": (regressor(basis=gce.bases.Neural(hidden=5, max_epochs=8, batch_size=16, inherit=0.9)), MANY),
    "separate": (regressor(basis=gce.bases.Neural(hidden=5, max_epochs=15, shared=False)), MANY),
    "neuron": (regressor(basis=gce.bases.Neuron(max_epochs=15)), MANY),
    "scoring": (regressor(scoring="neg_mean_absolute_error", n_iter_no_change=2), ONE),
    "to-the-end": (regressor(cv=None, validation_fraction=None), ONE),
    "blended-long": (regressor(algorithm="blended", max_iter=14, max_atoms=5, n_iter_no_change=None), ONE),
    "monotone": (regressor(monotonic_cst=[1, 0, -1]), ONE),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fit_by_single_rounds_is_the_fit(name, folder):
    model, y = CASES[name]
    whole = clone(model).fit(X, y)
    assert_equal(by_single_rounds(model, X, y, checkpoint=folder), whole)


@pytest.mark.parametrize("slots", [0, 9, 11])
@pytest.mark.parametrize("name", ["pairwise", "blended-long", "separate", "float32"])
def test_so_it_is_beyond_the_cache_budget(name, slots, folder, monkeypatch):
    """The cache is given up at once, or when it would have to grow; predictions then move with the weights."""
    number = 16 if name == "separate" else 8
    monkeypatch.setattr(memory, "CACHE_BYTES", 1 + slots * 3 * N * number)
    model, y = CASES[name]
    whole = clone(model).fit(X, y)
    assert_equal(by_single_rounds(model, X, y, checkpoint=folder), whole)
    kept = list(folder.glob("predictions-*"))
    # with fewer and fewer members there may be room again
    assert len(kept) == 1 if slots == 0 or (slots == 9 and name != "float32") else len(kept) < 2


def test_without_the_latest_predictions_a_fit_goes_on_to_rounding(folder, monkeypatch):
    monkeypatch.setattr(memory, "CACHE_BYTES", 1)
    whole = regressor().fit(X, ONE)
    for _ in range(3):
        regressor(callbacks=[stop]).fit(X, ONE, checkpoint=folder)
    (kept,) = folder.glob("predictions-*")
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(
        gce.ModelFileError, match=r"predictions-000003\.safetensors' .*; delete it to continue up to rounding"
    ):
        regressor().fit(X, ONE, checkpoint=folder)
    # what a damaged round's advice leads to: earlier rounds have no predictions any more
    (folder / "round-000003.safetensors").unlink()
    with pytest.warns(UserWarning, match="predictions-000002.* continues from round 2, but only up to") as seen:
        on = regressor().fit(X, ONE, checkpoint=folder)
    assert seen[0].filename == __file__
    assert on.n_iter_ == whole.n_iter_ > 3
    np.testing.assert_allclose(on.predict(X), whole.predict(X), rtol=1e-6)
    assert len(list(folder.glob("predictions-*"))) == 1


def test_rows_to_watch_and_row_weights(folder):
    model = regressor(cv="auto")
    given = {"X_val": X[40:], "y_val": ONE[40:], "sample_weight_val": np.arange(20.0)}
    rows = X[:40], ONE[:40], np.arange(40.0)
    assert_equal(by_single_rounds(model, *rows, checkpoint=folder, **given), clone(model).fit(*rows, **given))
    with pytest.raises(ValueError, match=r"another fit \(of another held-out rows"):
        clone(model).fit(*rows, checkpoint=folder, **{**given, "sample_weight_val": None})


def test_a_finished_fit_comes_back_at_once(folder, monkeypatch):
    whole = regressor().fit(X, ONE, checkpoint=folder)
    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    monkeypatch.setattr(TrainedBasis, "minimize", lambda *_, **__: pytest.fail("an atom is trained again"))
    again = regressor().fit(X, ONE, checkpoint=str(folder))
    assert_equal(whole, again)
    assert again.history_ == whole.history_
    assert files == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_limits_may_change(folder):
    settings = {"n_iter_no_change": None, "tol": 0.0}
    whole = regressor(**settings).fit(X, ONE)
    first = regressor(max_atoms=2, **settings).fit(X, ONE, checkpoint=folder)
    assert first.n_iter_ == 2
    regressor(max_iter=4, time_limit=1e6, verbose=False, n_jobs=1, **settings).fit(X, ONE, checkpoint=folder)
    last = regressor(**settings).fit(X, ONE, checkpoint=folder)
    assert_equal(last, whole)
    seconds = [entry["seconds"] for entry in last.history_]
    assert seconds == sorted(seconds)
    assert seconds[:2] == [entry["seconds"] for entry in first.history_]


def test_without_a_random_state_the_folder_has_the_seed(folder):
    first = regressor(random_state=None, callbacks=[stop]).fit(X, ONE, checkpoint=folder)
    whole = regressor(random_state=None).fit(X, ONE, checkpoint=folder)
    assert whole.n_iter_ > first.n_iter_ == 1
    assert_equal(whole, regressor(random_state=first.result_.seed).fit(X, ONE))


def test_the_folder_says_where_to_go_on_whatever_warm_start_is(folder):
    model = regressor(warm_start=True, max_atoms=3).fit(X, ONE)
    model.fit(X, ONE, checkpoint=folder)
    assert len(list(folder.glob("round-*"))) == 3
    model.set_params(max_atoms=7).fit(X, ONE, checkpoint=folder)
    assert_equal(model, regressor().fit(X, ONE))


@pytest.mark.parametrize(
    ("others", "rows", "named"),
    [
        ({"random_state": 1}, (X, ONE), "random_state"),
        ({"basis": gce.bases.Neural(hidden=4, max_epochs=20)}, (X, ONE), "basis"),
        ({"algorithm": "away", "line_search": "brent"}, (X, ONE), "algorithm, line_search"),
        ({"scoring": "r2"}, (X, ONE), "scoring"),
        ({"clip": None}, (X, ONE), "clip"),
        ({}, (X + np.eye(N, 3), ONE), "X"),
        ({}, (X, ONE + np.eye(N)[3]), "y"),
        ({}, (X, ONE, np.r_[2.0, np.ones(N - 1)]), "X"),
        ({"bound": 9.0}, (X, ONE), "bound"),
    ],
)
def test_a_folder_of_another_fit_is_refused(others, rows, named, folder):
    regressor(max_atoms=1).fit(X, ONE, checkpoint=folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=rf"belongs to another fit \(of another {named}.*give another folder") as seen:
        regressor(**others).fit(*rows, checkpoint=folder)
    assert "\n" not in str(seen.value)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def test_another_kind_of_model_is_another_fit(folder):
    regressor(max_atoms=1).fit(X, ONE, checkpoint=folder)
    with pytest.raises(ValueError, match="of another estimator"):
        gce.GCEClassifier(**SMALL).fit(X, THREE, checkpoint=folder)


class OwnLoss(gce.losses.PseudoHuber):
    pass


class OwnBasis(gce.bases.Neural):
    pass


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("loss", OwnLoss(1.0), OwnLoss(2.0)),
        ("basis", OwnBasis(hidden=2, max_epochs=2), OwnBasis(hidden=3, max_epochs=2)),
    ],
)
def test_objects_of_ones_own_are_known_by_their_parameters(name, one, other, folder):
    fixed = {"offset": 0.0, "bound": 9.0, "max_atoms": 1}
    regressor(**{**fixed, name: one}).fit(X, ONE, checkpoint=folder)
    regressor(**{**fixed, name: clone(one)}).fit(X, ONE, checkpoint=folder)
    with pytest.raises(ValueError, match=f"of another {name}"):
        regressor(**{**fixed, name: other}).fit(X, ONE, checkpoint=folder)


def test_equal_numbers_are_the_same_fit(folder):
    first = regressor(clip=4, max_atoms=2).fit(X, ONE, checkpoint=folder)
    assert_equal(regressor(clip=4.0, max_atoms=2).fit(X, ONE, checkpoint=folder), first)


def test_a_disk_that_is_full_costs_the_round_that_was_written(folder, monkeypatch):
    synced = []

    def full(handle):
        synced.append(handle)
        if len(synced) > 5:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            regressor().fit(X, ONE, checkpoint=folder)
    # two calls a file: the file's and the folder's
    assert sorted(path.name for path in folder.iterdir()) == [
        "head.safetensors",
        "round-000001.safetensors",
        "round-000002.safetensors",
    ]
    assert_equal(regressor().fit(X, ONE, checkpoint=folder), regressor().fit(X, ONE))


def test_what_a_write_left_unfinished_is_swept(folder):
    regressor(max_atoms=2).fit(X, ONE, checkpoint=folder)
    for name in (".head.safetensors.1-ab.tmp", ".round-000003.safetensors.1-ab.tmp"):
        (folder / name).write_bytes(b"half")
    for name in ("notes.txt", "round-000001 (copy).safetensors"):
        (folder / name).write_text("mine")
    assert_equal(regressor().fit(X, ONE, checkpoint=folder), regressor().fit(X, ONE))
    assert not list(folder.glob("*.tmp"))
    assert (folder / "notes.txt").exists()


def test_damage_is_named(folder, tmp_path):
    regressor(max_atoms=4).fit(X, ONE, checkpoint=folder)
    regressor(max_atoms=4, random_state=1).fit(X, ONE, checkpoint=tmp_path / "other")
    third = folder / "round-000003.safetensors"
    raw = third.read_bytes()

    def refusal():
        with pytest.raises(gce.ModelFileError) as seen:
            regressor().fit(X, ONE, checkpoint=folder)
        assert "\n" not in str(seen.value)
        return str(seen.value)

    third.write_bytes(raw[:-1])
    assert "round-000003.safetensors' is not a safetensors file, or is truncated" in refusal()
    third.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert "round-000003.safetensors' was modified or" in refusal()
    third.write_bytes(raw)
    meta, tensors = container.read(third)
    for members in (5, [], [0, 9], [[0]]):
        container.write(third, {**meta, "standing": {**meta["standing"], "members": members}}, tensors)
        assert "round-000003.safetensors' is no part of this checkpoint" in refusal()
    third.write_bytes((folder / "round-000002.safetensors").read_bytes())
    assert "round-000003.safetensors' is no part of this checkpoint (the tensor 'weights' must be" in refusal()
    third.write_bytes((tmp_path / "other" / third.name).read_bytes())
    assert "round-000003.safetensors' is no part of this checkpoint (it belongs to another fit)" in refusal()
    third.unlink()
    assert "round-000003.safetensors' is missing; delete it and all later rounds" in refusal()
    # the advice holds
    (folder / "round-000004.safetensors").unlink()
    assert_equal(regressor().fit(X, ONE, checkpoint=folder), regressor().fit(X, ONE))
    head = folder / "head.safetensors"
    head.write_bytes(raw)
    assert "head.safetensors' is no part of this checkpoint" in refusal()
    meta, tensors = container.read(tmp_path / "other" / head.name)
    container.write(head, {**meta, "version": 9}, tensors)
    assert f"format version 9, but this version of gce reads up to {container.VERSION}; upgrade gce" in refusal()


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="holds other files and no checkpoint: give a new or an empty folder"):
        regressor().fit(X, ONE, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_foreign_members_are_refused_by_name(folder):
    pool = gce.bases.Pool([lambda rows: np.zeros(len(rows)), lambda rows: np.tanh(rows[:, 0])])
    with pytest.raises(ValueError, match=r"pool member 1 is not gce's own and cannot go into a checkpoint.*joblib"):
        regressor(basis=pool, bound=5.0).fit(X, X[:, 0], checkpoint=folder)
    assert not any(folder.iterdir())


def test_a_round_costs_what_it_brings(folder):
    regressor(max_atoms=30, n_iter_no_change=None, tol=0.0).fit(X, ONE, checkpoint=folder)
    sizes = [path.stat().st_size for path in sorted(folder.glob("round-*"))]
    assert len(sizes) == 30
    # three members' weights of one more atom, and more digits and padding of the header
    assert all(later - earlier <= 3 * 8 + 64 for earlier, later in pairwise(sizes))


@GPU
def test_a_fit_goes_on_elsewhere(folder):
    regressor(device="cuda", callbacks=[stop]).fit(X, ONE, checkpoint=folder)
    here, there = (regressor(device=device) for device in ("cpu", "cuda"))
    shutil.copytree(folder, folder.with_name("copy"))
    here.fit(X, ONE, checkpoint=folder)
    there.fit(X, ONE, checkpoint=folder.with_name("copy"))
    np.testing.assert_allclose(here.history_[0]["risk"], there.history_[0]["risk"])
