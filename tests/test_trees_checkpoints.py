"""Fits of trees and of several families that are interrupted and go on."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import gce
from gce.bases import Forest, Neural, RegressorBasis, Tree
from gce.bases.neural.basis import TrainedBasis
from gce.training.family_weights import FamilyScreening
from test_checkpoints import MANY, ONE, THREE, X, assert_equal, by_single_rounds

TREE, FOREST, NET = Tree(max_leaf_nodes=4, min_samples_leaf=3), Forest(n_estimators=4), Neural(hidden=4, max_epochs=10)
SMALL = {"cv": 3, "max_atoms": 6, "random_state": 0}


def regressor(basis, **others):
    return gce.GCERegressor(**{**SMALL, "basis": basis, **others})


CASES = {
    "trees": (regressor(TREE, max_atoms=12, n_iter_no_change=2), ONE),
    "trees-outputs": (regressor(TREE), MANY),
    "vectors": (regressor(Tree(max_leaf_nodes=4, min_samples_leaf=3, outputs_per_tree="all")), MANY),
    "trees-pairwise": (regressor(TREE, algorithm="pairwise"), ONE),
    "sampled": (regressor(Tree(max_leaf_nodes=4, min_samples_leaf=3, max_features=0.5)), ONE),
    "forest": (regressor(FOREST, max_atoms=2), ONE),
    "mixed": (regressor([TREE, FOREST, NET], n_iter_no_change=2), ONE),
    "mixed-scored": (regressor([NET, TREE], scoring="neg_mean_absolute_error"), MANY),
    "mixed-classes": (gce.GCEClassifier(basis=[TREE, FOREST], **SMALL), THREE),
    "mixed-nothing-held-out": (regressor([TREE, NET], cv=None, validation_fraction=None), ONE),
    "named": (regressor({"../a": TREE, "a/..": NET, "": Tree(max_leaf_nodes=2)}), ONE),
}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoint"


@pytest.mark.parametrize("name", CASES)
def test_a_fit_by_single_rounds_is_the_fit(name, folder):
    model, y = CASES[name]
    whole = clone(model).fit(X, y)
    last = by_single_rounds(model, X, y, checkpoint=folder)
    assert_equal(last, whole)
    assert np.array_equal(last.bound_, whole.bound_)
    if name.startswith("mixed"):
        assert last.result_.family_weights == whole.result_.family_weights
    assert [path.parent for path in folder.parent.rglob("*.safetensors")] == [folder] * len(list(folder.iterdir()))


class HaltError(Exception):
    pass


@pytest.mark.parametrize("round_", range(1, 14, 3))
def test_a_fit_interrupted_in_any_family_is_the_fit(round_, folder):
    model, y = CASES["mixed"]
    whole, heard = clone(model).fit(X, y), []

    def interrupt(step):
        heard.append(step.t)
        if len(heard) == round_:
            raise HaltError

    with pytest.raises(HaltError):
        clone(model).set_params(callbacks=[interrupt]).fit(X, y, checkpoint=folder)
    rounds = len(list(folder.glob("*round-*")))
    assert rounds == round_ <= whole.n_iter_
    assert_equal(clone(model).fit(X, y, checkpoint=folder), whole)


def test_a_finished_fit_comes_back_at_once(folder, monkeypatch):
    model, y = CASES["mixed"]
    whole = clone(model).fit(X, y, checkpoint=folder)
    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    for basis in (TrainedBasis, Tree, Forest):
        monkeypatch.setattr(basis, "minimize", lambda *_, **__: pytest.fail("an atom is trained again"))
    assert_equal(clone(model).fit(X, y, checkpoint=folder), whole)
    assert files == {path: path.stat().st_mtime_ns for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["trees", "mixed"])
def test_limits_may_change(name, folder):
    model, y = CASES[name]
    model = clone(model).set_params(n_iter_no_change=None, tol=0.0, max_atoms=6)
    whole = clone(model).fit(X, y)
    clone(model).set_params(max_atoms=2).fit(X, y, checkpoint=folder)
    clone(model).set_params(max_iter=4).fit(X, y, checkpoint=folder)
    assert_equal(clone(model).fit(X, y, checkpoint=folder), whole)


def test_a_limit_beyond_the_habit_widens_the_hull_and_keeps_what_is_there(folder):
    """Atoms of both hulls stand in one fit, each in units of its own bound."""

    class Short(Tree):
        @property
        def fit_defaults(self):
            return super().fit_defaults._replace(calls=3)

    model = regressor(Short(max_leaf_nodes=4, min_samples_leaf=3), n_iter_no_change=None)
    for atoms in (3, 6, 4):
        fitted = clone(model).set_params(max_atoms=atoms).fit(X, ONE, checkpoint=folder)
    whole = clone(model).set_params(max_atoms=6).fit(X, ONE)
    np.testing.assert_allclose(fitted.predict(X), whole.predict(X), rtol=1e-9)
    # the older atoms are not drawn in as far as they could be
    assert (np.abs(fitted.predict(X) - fitted.offset_) <= fitted.bound_).all()
    fitted.set_params(basis=TREE).save(folder / "model")
    assert np.array_equal(gce.load(folder / "model").predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    "others",
    [
        {"basis": [TREE, NET]},
        {"basis": [FOREST, TREE, NET]},
        {"basis": [Tree(max_leaf_nodes=5, min_samples_leaf=3), FOREST, NET]},
        {"basis": TREE},
        {"random_state": 1},
    ],
)
def test_a_folder_of_another_fit_is_refused(others, folder):
    model, y = CASES["mixed"]
    clone(model).set_params(max_atoms=1).fit(X, y, checkpoint=folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"belongs to another fit \(of another (basis|random_state)"):
        clone(model).set_params(**others).fit(X, y, checkpoint=folder)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


class OwnTree(Tree):
    pass


def test_objects_of_ones_own_among_families_are_known_by_their_parameters(folder):
    regressor([OwnTree(max_leaf_nodes=3), NET], max_atoms=1).fit(X, ONE, checkpoint=folder)
    regressor([OwnTree(max_leaf_nodes=3), NET], max_atoms=1).fit(X, ONE, checkpoint=folder)
    for other in ([OwnTree(max_leaf_nodes=4), NET], {"owntree": OwnTree(max_leaf_nodes=3), "neural": NET}):
        with pytest.raises(ValueError, match="of another basis"):
            regressor(other, max_atoms=1).fit(X, ONE, checkpoint=folder)


def test_foreign_families_are_refused_by_name(folder):
    with pytest.raises(ValueError, match=r"a fitted Ridge is not gce's own and cannot go into a checkpoint"):
        regressor([RegressorBasis(Ridge()), TREE]).fit(X, ONE, checkpoint=folder)


def test_without_the_best_scores_a_fit_goes_on_to_rounding(folder):
    model, y = CASES["mixed"]
    whole = clone(model).fit(X, y, checkpoint=folder)
    kept = list(folder.glob("1-tree-best-*"))
    assert len(kept) == 1
    raw = kept[0].read_bytes()
    kept[0].write_bytes(raw[:-1])
    with pytest.raises(gce.ModelFileError, match=r"1-tree-best-.*; delete it to continue up to rounding"):
        clone(model).fit(X, y, checkpoint=folder)
    kept[0].unlink()
    with pytest.warns(UserWarning, match=r"1-tree-best-.* the fit continues from round .*, but only up to rounding"):
        on = clone(model).fit(X, y, checkpoint=folder)
    np.testing.assert_allclose(on.predict(X), whole.predict(X), rtol=1e-9)
    kept[0].write_bytes(raw)
    damaged = folder / "3-neural-round-000002.safetensors"
    damaged.write_bytes((folder / "1-tree-round-000002.safetensors").read_bytes())
    with pytest.raises(gce.ModelFileError, match=r"3-neural-round-000002.* is no part of this.*another fit"):
        clone(model).fit(X, y, checkpoint=folder)


class Tried(Neural):
    """Networks that must count after three rounds."""

    @property
    def fit_defaults(self):
        return super().fit_defaults._replace(screening_rounds=3)


@pytest.mark.parametrize(("min_weight", "rounds"), [(2.0, 3), (-1.0, 6)])
def test_a_family_that_lost_its_trial_is_not_gone_on_with(min_weight, rounds, folder, monkeypatch):
    monkeypatch.setattr(FamilyScreening, "min_weight", min_weight)
    model = regressor({"tree": TREE, "neural": Tried(hidden=4, max_epochs=10)}, n_iter_no_change=None, tol=0.0)
    whole = clone(model).fit(X, ONE)
    assert len(whole.result_.families[-1].rounds) == rounds
    assert_equal(by_single_rounds(model, X, ONE, checkpoint=folder), whole)
    assert_equal(clone(model).fit(X, ONE, checkpoint=folder), whole)
