"""How model files are written and read: whole or not at all, by name, once."""

import os
import pickle
import threading
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import gce
from gce import losses
from gce.io import container
from test_model_files import ONE, X, assert_equal, greedy


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.safetensors"


def test_a_file_says_who_wrote_it_and_when(path):
    greedy(gce.GCERegressor).fit(X, ONE).save(str(path))
    meta, _ = container.read(path)
    assert meta["written"]["versions"].keys() == {"gce", "python", "numpy", "torch", "scikit-learn"}
    assert meta["written"]["versions"]["gce"] == gce.__version__
    assert meta["written"]["time"].endswith("+00:00")
    assert (meta["format"], meta["version"], meta["estimator"]) == ("gce", container.VERSION, "GCERegressor")


class OwnLoss(losses.Squared):
    pass


class OwnEstimator(gce.GCERegressor):
    pass


def test_foreign_members_are_refused_by_name(path):
    pool = gce.bases.Pool([lambda rows: np.zeros(len(rows)), lambda rows: np.tanh(rows[:, 0])])
    model = greedy(gce.GCERegressor, basis=pool, bound=5.0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"pool member 1 is not gce's own.*joblib\.dump"):
        model.save(path)
    with pytest.raises(ValueError, match=r"OwnLoss.*joblib\.dump"):
        greedy(gce.GCERegressor, loss=OwnLoss()).fit(X, ONE).save(path)
    with pytest.raises(ValueError, match=r"a OwnEstimator is not gce's own.*joblib\.dump"):
        greedy(OwnEstimator).fit(X, ONE).save(path)
    with pytest.raises(NotFittedError):
        gce.GCERegressor().save(path)
    assert not any(path.parent.iterdir())


def test_a_save_that_fails_leaves_the_old_file(path, monkeypatch):
    model = greedy(gce.GCERegressor).fit(X, ONE)
    model.save(path)
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(container, "JSON_VALUES", 3)
        with pytest.raises(ValueError, match="which is too much"):
            model.save(path)
        patch.undo()
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            model.save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_interrupted_warm_start_leaves_the_earlier_model_which_can_be_saved(path):
    def interrupt(step):
        if step.t == 3:
            raise KeyboardInterrupt

    model = greedy(gce.GCERegressor, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, ONE)
    with pytest.raises(NotFittedError):
        model.save(path)
    assert not path.exists()
    model.set_params(callbacks=None, max_atoms=2).fit(X, ONE)
    before = deepcopy(model)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(warm_start=True, max_atoms=4, callbacks=[interrupt]).fit(X, ONE)
    assert_equal(model.set_params(callbacks=None), before)
    model.save(path)
    assert_equal(gce.load(path), before)
    # nothing of the rounds that were interrupted is left in those that follow
    assert_equal(model.fit(X, ONE), before.set_params(warm_start=True, max_atoms=4).fit(X, ONE))
    pickle.loads(pickle.dumps(model)).save(path)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there, and pipes are no files")
def test_a_file_goes_where_a_link_leads_and_nowhere_but_into_a_file(path):
    model = greedy(gce.GCERegressor).fit(X, ONE)
    link, pipe = path.with_name("latest"), path.with_name("pipe")
    path.write_text("old")
    link.symlink_to(path)
    model.save(link)
    assert link.is_symlink()
    assert_equal(model, gce.load(path))
    os.mkfifo(pipe)
    with pytest.raises(ValueError, match="pipe' exists and is not a file"):
        model.save(pipe)
    with pytest.raises(ValueError, match="exists and is not a file"):
        model.save(path.parent)
    with pytest.raises(FileNotFoundError, match=r"the folder .*missing' of 'm\.safetensors' does not exist"):
        model.save(path.parent / "missing" / path.name)
    assert pipe.is_fifo()
    with pytest.raises(gce.ModelFileError, match="is not a file"):
        gce.load(pipe)
    assert sorted(path.parent.iterdir()) == sorted([link, path, pipe])


def test_a_file_is_read_once(path, monkeypatch):
    """Nothing can be put in its place after it was checked."""
    model = greedy(gce.GCERegressor).fit(X, ONE)
    model.save(path)
    whole = Path.open

    def swapped(self, *given):
        file = whole(self, *given)
        self.unlink()
        return file

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", swapped)
        back = gce.load(path)
    assert_equal(model, back)


def test_a_loaded_model_does_not_depend_on_its_file(path):
    model = greedy(gce.GCERegressor).fit(X, ONE)
    model.save(path)
    back = gce.load(path)
    path.write_bytes(b"\0" * path.stat().st_size)
    assert_equal(model, back)


def test_one_model_saved_by_many_threads_is_whole(path):
    model = greedy(gce.GCERegressor).fit(X, ONE)
    threads = [threading.Thread(target=model.save, args=(path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_equal(model, gce.load(path))
    assert list(path.parent.iterdir()) == [path]
