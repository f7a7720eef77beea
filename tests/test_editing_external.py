"""Models from outside that are added to an ensemble."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from test_editing import LABELS, NET, NEW, Y_NEW, Counting, X, Y, fitted, n_atoms, named_weights


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def classifier():
    return fitted(gce.GCEClassifier, LABELS)


def test_an_external_model_that_is_removed_and_added_again_gives_the_loss_back(model):
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, Y)
    with_tree = model.add("tree", tree, X, Y)
    assert named_weights(with_tree)["tree"] > 0
    assert with_tree.weights_.sum() == pytest.approx(1, abs=1e-12)
    without = with_tree.remove("tree", X, Y)
    assert "tree" not in without.atom_names_
    again = without.add("tree", tree, X, Y)

    def loss(one):
        return one.explain(X, Y, by="atoms").loss

    assert abs(loss(again) - loss(with_tree)) <= again.gap_ + with_tree.gap_
    assert loss(with_tree) < loss(without)


def test_an_external_model_is_used_through_scores_and_kept_within_the_bound(classifier):
    external = LogisticRegression(C=1e6).fit(X, LABELS)
    edited = classifier.add("logistic", external, X, LABELS)
    weight = named_weights(edited)["logistic"]
    assert weight > 0
    far = 1e4 * NEW
    raw = np.log(np.maximum(external.predict_proba(far), np.finfo(float).eps)) - classifier.offset_
    assert (np.abs(raw) > classifier.bound_).any()
    with torch.no_grad():
        atoms = edited.ensemble_(torch.from_numpy(edited.table_.transform(far))).numpy()
    expected = atoms + weight * np.clip(raw, -classifier.bound_, classifier.bound_)
    np.testing.assert_allclose(edited.decision_function(far), expected, atol=1e-9)
    assert (np.abs(edited.decision_function(far) - edited.offset_) <= edited.bound_ + 1e-9).all()
    tree = edited.add("tree", DecisionTreeClassifier(max_depth=2).fit(X, LABELS), X, LABELS)
    assert tree.predict(NEW).shape == (40,)


def test_an_external_model_of_no_weight_is_never_called(model):
    external = Counting(lambda rows: -3 * rows[:, 0] * rows[:, 1] - 3 * np.abs(rows[:, 2]))
    edited = model.add("opposite", external, X, Y)
    assert named_weights(edited)["opposite"] == 0
    calls = external.calls
    edited.predict(NEW)
    edited.predict_interval(NEW)
    assert external.calls == calls == 1


def test_an_external_model_is_there_in_reweighting_pruning_and_explaining(model):
    edited = model.add("ridge", Ridge().fit(X, Y), X, Y)
    again = edited.reweight(NEW, NEW[:, 0] + NEW[:, 1])
    assert named_weights(again)["ridge"] >= 0
    assert again.weights_.sum() == pytest.approx(1, abs=1e-12)
    explained = edited.explain(X, Y, by="atoms")
    assert list(explained.names).count("ridge") == 3  # once a member
    assert explained.weights.sum() == pytest.approx(1, abs=1e-12)
    alone = named_weights(again.prune(1, X=NEW, y=NEW[:, 0]))
    assert (alone[~alone.index.str.endswith(":0")] > 0).sum() == 1


def test_external_models_that_are_left_out_are_gone(model, tmp_path):
    one = model.add("ridge", Ridge().fit(X, Y), X, Y).add("opposite", Counting(lambda rows: -10 * rows[:, 0]), X, Y)
    small = one.prune(1, X=X, y=Y)
    assert n_atoms(small) == 1
    atoms = model.add("opposite", Counting(lambda rows: -99 * Y[: len(rows)]), X, Y).prune(2, X=X, y=Y)
    atoms.save(tmp_path / "m.safetensors")  # which refuses external models


def test_external_models_are_refused_where_scores_are_not_what_they_predict():
    class Exponential(gce.losses.Squared):
        def predict(self, pred):
            return pred.exp()

    one = gce.GCERegressor(max_atoms=2, cv=2, loss=Exponential(), **NET).fit(X, Y)
    with pytest.raises(ValueError, match=r"scores of loss=Exponential\(\) are not on the scale of .* 'ridge'"):
        one.add("ridge", Ridge().fit(X, Y), X, Y)


@settings(max_examples=15, deadline=None)
@given(factor=st.floats(-1e9, 1e9))
def test_whatever_an_external_model_predicts_scores_keep_to_the_bound(model, factor):
    edited = model.add("wild", Counting(lambda rows: factor * rows[:, 0]), X, Y)
    assert (np.abs(edited.predict(NEW) - edited.offset_) <= edited.bound_ * (1 + 1e-12)).all()


def test_external_models_are_refused_by_name_where_only_atoms_can_go(model, tmp_path):
    edited = model.add("ridge", Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"external model 'ridge' is not gce's own .* joblib\.dump"):
        edited.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"external model 'ridge' is not part of gce .* ONNX"):
        edited.to_onnx(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="external model 'ridge' is not of it"):
        edited.bound_report(X, Y)
    edited.report(tmp_path / "m.html", NEW, Y_NEW)
    assert "External model ridge" in (tmp_path / "m.html").read_text()
    copied = pickle.loads(pickle.dumps(edited))
    np.testing.assert_array_equal(copied.predict(NEW), edited.predict(NEW))
