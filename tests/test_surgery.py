"""Edited ensembles: weights are the best for what is left, the certificate holds, and nothing else changes."""

import pickle
import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gce
from gce.risk import Risk
from gce.surgery.paths import chosen, merged, size_of
from gce.surgery.share import Share
from gce.weighting import Outputs, solve

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.1 * RNG.normal(size=N)
LABELS = np.array(["ant", "bee", "cicada"])[(X[:, 0] > 0) + (X[:, 1] > 0.3).astype(int)]
NEW = RNG.normal(size=(40, 3)) * 2
Y_NEW = NEW[:, 0] * NEW[:, 1]
#: Splits that a test can look at: two halves, and a third that holds out both ends.
SPLITS = [
    (np.arange(30), np.arange(30, 60)),
    (np.arange(30, 60), np.arange(30)),
    (np.arange(10, 50), np.r_[:10, 50:60]),
]
NET = {"basis": gce.Neural(hidden=3, max_epochs=15), "random_state": 0}


def fitted(kind=gce.GCERegressor, y=Y, **others):
    return kind(**{"max_atoms": 5, "cv": SPLITS, **NET, **others}).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def classifier():
    return fitted(gce.GCEClassifier, LABELS)


@pytest.fixture(scope="module")
def at_once():
    return gce.NGCERegressor(n_atoms=6, hidden=3, max_epochs=15, cv=2, random_state=0).fit(X, Y)


class Counting:
    """A model that says how often it was asked."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def predict(self, rows):
        self.calls += 1
        return self.function(np.asarray(rows))


def first_atom(model):
    return next(name for name in model.atom_names_ if not name.endswith(":0"))


def targets(model, y):
    return torch.from_numpy(np.array(model._encode_y_val(y)))


def own_problem(model, m, y, names=None):
    """Member ``m``'s risk and its atoms' outputs on its training rows, the zero function first, by hand."""
    train = SPLITS[m][0]
    member = model.ensemble_.of_member(m)
    with torch.no_grad():
        outputs = member.outputs(torch.from_numpy(model.table_.transform(X[train])))
    kept = [j for j, (_, t) in enumerate(member.origin.tolist()) if t > 0 and (names is None or f"{m}:{t}" in names)]
    offset = torch.from_numpy(model.offset_)
    weight = torch.full((1, len(train)), 1 / len(train), dtype=torch.float64)
    risk = Risk(model.loss_, targets(model, y)[train], weight, offset)
    return risk, Outputs([torch.zeros(len(train), len(offset), dtype=torch.float64), *outputs[kept]])


def member_loss(model, m, y):
    """The loss of member ``m`` as it stands, on its training rows."""
    train = SPLITS[m][0]
    with torch.no_grad():
        pred = model.ensemble_.of_member(m)(torch.from_numpy(model.table_.transform(X[train])))
        return float(model.loss_.value(pred, targets(model, y)[train]).mean())


def mean_loss(model, y):
    return np.mean([member_loss(model, m, y) for m in range(3)])


# What is edited.


def test_atoms_have_names_and_weights(model, at_once):
    for one in (model, at_once):
        weights = one.weights_
        assert list(weights.index) == one.atom_names_
        assert len(set(one.atom_names_)) == len(one.ensemble_)
        np.testing.assert_array_equal(weights.to_numpy(), one.ensemble_.weights.numpy())
        assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert [f"{m}:{t}" for m, t in model.ensemble_.origin.tolist()] == model.atom_names_
    assert at_once.atom_names_ == [f"{m}:{j}" for m in range(2) for j in range(1, 7)]


@pytest.mark.parametrize("name", ["model", "classifier"])
def test_weights_without_an_atom_are_those_of_a_fresh_solve(name, request):
    one = request.getfixturevalue(name)
    y = Y if name == "model" else LABELS
    gone = [next(n for n in one.atom_names_ if n.startswith("1:") and n != "1:0")]
    left = [n for n in one.atom_names_ if n not in gone]
    edited = one.remove(gone, X, y)
    assert not set(gone) & set(edited.atom_names_)
    gaps = []
    for m in range(3):
        fresh = solve(*own_problem(one, m, y, left), 1e-9)
        loss = member_loss(edited, m, y)
        assert -fresh.gap - 1e-12 <= loss - fresh.loss <= 1e-6 * fresh.loss + fresh.gap
        gaps.append(loss - fresh.loss)
    assert np.mean(gaps) <= edited.gap_ + 1e-12 <= 1e-6 * mean_loss(edited, y) + 2e-12


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_removal_keeps_weights_on_the_simplex_and_scores_in_the_bound(model, data):
    atoms = [name for name in model.atom_names_ if not name.endswith(":0")]
    gone = data.draw(st.lists(st.sampled_from(atoms), min_size=1, max_size=len(atoms) - 1, unique=True))
    edited = model.remove(gone, X, Y)
    weights = edited.weights_
    assert set(weights.index) <= (set(model.atom_names_) | {"0:0", "1:0", "2:0"}) - set(gone)
    assert (weights >= 0).all()
    for m in range(3):
        assert weights[weights.index.str.startswith(f"{m}:")].sum() == pytest.approx(1 / 3, abs=1e-12)
    assert (np.abs(edited.predict(1e3 * NEW) - edited.offset_) <= edited.bound_).all()
    np.testing.assert_array_equal(edited.bound_, model.bound_)


def test_a_member_whose_atoms_are_all_removed_is_the_offset(model):
    gone = [name for name in model.atom_names_ if name.startswith("2:") and name != "2:0"]
    edited = model.remove(gone, X, Y)
    assert [name for name in edited.atom_names_ if name.startswith("2:")] == ["2:0"]
    assert edited.weights_["2:0"] == pytest.approx(1 / 3)


def test_reweighted_on_new_rows_is_the_best_of_all_atoms(model):
    edited = model.reweight(NEW, Y_NEW)
    with torch.no_grad():
        outputs = model.ensemble_.outputs(torch.from_numpy(model.table_.transform(NEW)))
    risk = Risk(
        model.loss_,
        targets(model, Y_NEW),
        torch.full((1, 40), 1 / 40, dtype=torch.float64),
        torch.from_numpy(model.offset_),
    )
    fresh = solve(risk, Outputs([torch.zeros(40, 1, dtype=torch.float64), *outputs]), 1e-9)
    loss = np.mean((edited.predict(NEW) - Y_NEW) ** 2)
    assert -fresh.gap - 1e-12 <= loss - fresh.loss <= edited.gap_ + fresh.gap + 1e-12
    assert loss < np.mean((model.predict(NEW) - Y_NEW) ** 2)
    assert edited.weights_.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(edited.residuals_[:, 0], np.sort(Y_NEW - edited.predict(NEW)), atol=1e-12)


def test_reweighting_counts_weighted_rows_as_repeated_ones(classifier):
    rows, y = np.vstack([NEW, NEW[:7]]), np.r_[np.resize(LABELS, 40), np.resize(LABELS, 7)]
    weight = np.r_[np.full(7, 2.0), np.ones(33), np.zeros(3)]
    repeated = classifier.reweight(rows, y)
    weighted = classifier.reweight(np.vstack([NEW, NEW[:3]]), np.r_[y[:40], y[:3]], weight)
    np.testing.assert_allclose(repeated.predict_proba(NEW), weighted.predict_proba(NEW), atol=1e-5)
    assert repeated.temperature_ == pytest.approx(weighted.temperature_, rel=1e-4)


def test_an_edited_model_is_calibrated_on_the_rows_its_members_held_out(model):
    edited = model.remove("0:1", X, Y)
    residuals = []
    for m, (_, test) in enumerate(SPLITS):
        with torch.no_grad():
            member = edited.ensemble_.of_member(m)(torch.from_numpy(model.table_.transform(X[test])))
        residuals.append(Y[test] - member.numpy()[:, 0])
    np.testing.assert_allclose(edited.residuals_[:, 0], np.sort(np.concatenate(residuals)), atol=1e-12)
    assert edited.predict_interval(NEW).shape == (40, 2)


# Smaller ones.


def test_a_path_has_the_best_weights_for_each_of_its_sizes(model):
    pruned = model.prune(4, X=X, y=Y)
    sizes, losses = [step.size for step in pruned.path], [step.loss for step in pruned.path]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    assert all(later >= earlier * (1 - 1e-6) for earlier, later in pairwise(losses))
    for step in pruned.path[:: max(1, len(sizes) // 4)]:
        fresh = [solve(*own_problem(model, m, Y, step.names), 1e-9) for m in range(3)]
        best = np.mean([found.loss for found in fresh])
        assert -1e-9 <= step.loss - best <= 1e-6 * best
        assert all(step.weights > 0)
    chosen = pruned.model.weights_
    chosen = chosen[~chosen.index.str.endswith(":0")]
    assert len(chosen) == pruned.size == pruned.chosen.size <= 4
    assert dict(zip(pruned.chosen.names, pruned.chosen.weights, strict=True)) == pytest.approx(chosen.to_dict())
    assert mean_loss(pruned.model, Y) == pytest.approx(pruned.chosen.loss, rel=1e-9)
    assert pruned.model.gap_ == pruned.chosen.gap


def test_a_tolerance_chooses_the_smallest_ensemble_within_it(at_once):
    tight, loose = (at_once.prune(tol=tol, X=X, y=Y) for tol in (0.0, 0.1))
    assert tight.path[0].loss == loose.path[0].loss
    for pruned, tol in ((tight, 0.0), (loose, 0.1)):
        within = [step.size for step in pruned.path if step.loss <= (1 + tol) * pruned.path[0].loss]
        assert pruned.size == min(within)
        assert f"{pruned.size} of" in str(pruned)
    assert loose.size < tight.size


def test_atoms_that_help_by_less_than_the_gap_may_go_together():
    y = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)[:, None]
    side = torch.tensor([1e-3, 1e-3, -1e-3, -1e-3], dtype=torch.float64)[:, None]
    weight = torch.full((1, 4), 0.25, dtype=torch.float64)
    outputs = Outputs([torch.zeros_like(y), 1e-8 * y + side, 1e-8 * y - side, -y])
    risk = Risk(gce.losses.Squared(), y, weight, torch.zeros(1, dtype=torch.float64))
    shares = [Share(("0:0", "0:1", "0:2", "0:3"), outputs, risk, np.array([0, 0.5, 0.5, 0]), (0,))]
    stands = merged(shares)
    assert [size_of(shares, stand) for stand in stands] == [2, 0]
    assert chosen(shares, stands, 1, None) is stands[-1]


# Guests.


def test_a_guest_that_is_removed_and_added_again_gives_the_loss_back(model):
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, Y)
    with_tree = model.add("tree", tree, X, Y)
    assert with_tree.weights_["tree"] > 0
    assert with_tree.weights_.sum() == pytest.approx(1, abs=1e-12)
    without = with_tree.remove("tree", X, Y)
    assert "tree" not in without.atom_names_
    again = without.add("tree", tree, X, Y)

    def loss(one):
        return one.explain(X, Y).loss

    assert abs(loss(again) - loss(with_tree)) <= again.gap_ + with_tree.gap_
    assert loss(with_tree) < loss(without)


def test_a_guest_is_asked_through_scores_and_kept_within_the_bound(classifier):
    guest = LogisticRegression(C=1e6).fit(X, LABELS)
    edited = classifier.add("logistic", guest, X, LABELS)
    weight = edited.weights_["logistic"]
    assert weight > 0
    far = 1e4 * NEW
    raw = np.log(np.maximum(guest.predict_proba(far), np.finfo(float).eps)) - classifier.offset_
    assert (np.abs(raw) > classifier.bound_).any()
    with torch.no_grad():
        atoms = edited.ensemble_(torch.from_numpy(edited.table_.transform(far))).numpy()
    expected = atoms + weight * np.clip(raw, -classifier.bound_, classifier.bound_)
    np.testing.assert_allclose(edited.decision_function(far), expected, atol=1e-9)
    assert (np.abs(edited.decision_function(far) - edited.offset_) <= edited.bound_ + 1e-9).all()
    tree = edited.add("tree", DecisionTreeClassifier(max_depth=2).fit(X, LABELS), X, LABELS)
    assert tree.predict(NEW).shape == (40,)


def test_a_guest_of_no_weight_is_never_asked(model):
    guest = Counting(lambda rows: -3 * rows[:, 0] * rows[:, 1] - 3 * np.abs(rows[:, 2]))
    edited = model.add("opposite", guest, X, Y)
    assert edited.weights_["opposite"] == 0
    calls = guest.calls
    edited.predict(NEW)
    edited.predict_interval(NEW)
    assert guest.calls == calls == 1


def test_a_guest_is_there_in_reweighting_pruning_and_explaining(model):
    edited = model.add("ridge", Ridge().fit(X, Y), X, Y)
    again = edited.reweight(NEW, NEW[:, 0] + NEW[:, 1])
    assert again.weights_["ridge"] >= 0
    assert again.weights_.sum() == pytest.approx(1, abs=1e-12)
    explained = edited.explain(X, Y)
    assert list(explained.names).count("ridge") == 3  # once a member
    assert explained.weights.sum() == pytest.approx(1, abs=1e-12)
    alone = again.prune(1, X=NEW, y=NEW[:, 0]).model
    assert (alone.weights_[~alone.weights_.index.str.endswith(":0")] > 0).sum() == 1


def test_guests_that_are_left_out_are_gone(model, tmp_path):
    one = model.add("ridge", Ridge().fit(X, Y), X, Y).add("opposite", Counting(lambda rows: -10 * rows[:, 0]), X, Y)
    small = one.prune(1, X=X, y=Y)
    assert len([name for name in small.model.atom_names_ if not name.endswith(":0")]) == small.size == 1
    atoms = model.add("opposite", Counting(lambda rows: -99 * Y[: len(rows)]), X, Y).prune(2, X=X, y=Y).model
    atoms.save(tmp_path / "m.safetensors")  # which refuses guests


def test_guests_are_refused_where_scores_are_not_what_they_predict():
    class Exponential(gce.losses.Squared):
        def predict(self, pred):
            return pred.exp()

    one = gce.GCERegressor(max_atoms=2, cv=2, loss=Exponential(), **NET).fit(X, Y)
    with pytest.raises(ValueError, match=r"scores of loss=Exponential\(\) are not yet numbers .* 'ridge' predicts"):
        one.add("ridge", Ridge().fit(X, Y), X, Y)


@settings(max_examples=15, deadline=None)
@given(factor=st.floats(-1e9, 1e9))
def test_whatever_a_guest_answers_scores_keep_to_the_bound(model, factor):
    edited = model.add("wild", Counting(lambda rows: factor * rows[:, 0]), X, Y)
    assert (np.abs(edited.predict(NEW) - edited.offset_) <= edited.bound_ * (1 + 1e-12)).all()


# What stays.


def test_no_edit_changes_the_model(model, classifier, at_once):
    for one, y in ((model, Y), (classifier, LABELS), (at_once, Y)):
        before, answers = pickle.dumps(one), one._scores(NEW).numpy()
        one.remove(first_atom(one), X, y[:, None] if y is Y else y)
        one.prune(2, X=X, y=y)
        one.reweight(NEW, np.resize(y, 40))
        one.explain(X, y)
        guest = (Ridge() if y is Y else LogisticRegression()).fit(X, y)
        one.add("guest", guest, X, y).add("another", guest, X, y)
        np.testing.assert_array_equal(one._scores(NEW).numpy(), answers)
        assert pickle.dumps(one) == before


def test_an_edit_of_an_edit_leaves_the_first_one_alone(model):
    first = model.remove("0:1", X, Y)
    before = pickle.dumps(first)
    second = first.remove(first_atom(first), X, Y)
    assert mean_loss(second, Y) >= mean_loss(first, Y) - first.gap_
    assert pickle.dumps(first) == before


def edits(one, y):
    yield one.remove(first_atom(one), X, y)
    yield one.prune(2, X=X, y=y).model
    yield one.reweight(NEW, np.resize(y, 40))
    yield one.reweight(NEW, np.resize(y, 40)).prune(1, X=NEW, y=np.resize(y, 40)).model


@pytest.mark.parametrize("name", ["model", "classifier", "at_once"])
def test_edited_models_go_through_files_graphs_pickles_and_reports(name, request, tmp_path):
    one = request.getfixturevalue(name)
    y = LABELS if name == "classifier" else Y
    for i, edited in enumerate(edits(one, y)):
        path = tmp_path / f"{i}.safetensors"
        edited.save(path)
        back = gce.load(path)
        np.testing.assert_array_equal(back._scores(NEW).numpy(), edited._scores(NEW).numpy())
        np.testing.assert_array_equal(back.predict(NEW), edited.predict(NEW))
        assert (back.gap_, back.atom_names_, back._joint) == (edited.gap_, edited.atom_names_, edited._joint)
        copied = pickle.loads(pickle.dumps(edited))
        np.testing.assert_array_equal(copied._scores(NEW).numpy(), edited._scores(NEW).numpy())
        edited.to_onnx(tmp_path / f"{i}.onnx")
        edited.report(tmp_path / f"{i}.html", NEW, np.resize(y, 40))
        page = (tmp_path / f"{i}.html").read_text()
        assert "weights were solved anew" in page
        assert 'id="training"' not in page
        gce.plotting.WeightsDisplay.from_estimator(edited)


def test_a_loaded_model_can_be_edited(at_once, tmp_path):
    at_once.remove("0:1", X, Y).save(tmp_path / "m.safetensors")
    back = gce.load(tmp_path / "m.safetensors")
    first, second = (one.remove("1:2", X, Y) for one in (at_once.remove("0:1", X, Y), back))
    np.testing.assert_array_equal(first.predict(NEW), second.predict(NEW))


def test_guests_are_refused_by_name_where_only_atoms_can_go(model, tmp_path):
    edited = model.add("ridge", Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match=r"guest 'ridge' is not gce's own .* joblib\.dump"):
        edited.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match=r"guest 'ridge' is not gce's own .* ONNX"):
        edited.to_onnx(tmp_path / "m.onnx")
    with pytest.raises(ValueError, match="guest 'ridge' is not of the class of atoms"):
        edited.bound_report(X, Y)
    edited.report(tmp_path / "m.html", NEW, Y_NEW)
    assert "Guest ridge" in (tmp_path / "m.html").read_text()
    copied = pickle.loads(pickle.dumps(edited))
    np.testing.assert_array_equal(copied.predict(NEW), edited.predict(NEW))


def test_an_edited_model_says_that_it_has_no_rounds(model):
    edited = model.remove("0:1", X, Y)
    assert not hasattr(edited, "history_")
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        next(edited.staged_predict(NEW))
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        gce.plotting.TrainingDisplay.from_estimator(edited)
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        edited.set_params(warm_start=True).fit(X, Y)
    fresh = edited.set_params(warm_start=False).fit(X, Y)
    assert not {"gap_", "_joint", "_guests"} & vars(fresh).keys()
    np.testing.assert_array_equal(fresh.predict(NEW), model.predict(NEW))


# Rows.


def test_frames_sparse_rows_and_weights_are_edited_like_arrays(model):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=pd.Categorical(np.where(X[:, 0] > 0, "x", "y")))
    small = {"max_atoms": 3, "cv": 2, **NET}
    weight = np.r_[0.0, np.linspace(0.5, 2, N - 1)]
    one = gce.GCERegressor(**small).fit(frame, Y, weight)
    guest = Ridge().fit(X, Y)
    edited = one.add("ridge", OnColumns(guest), frame, Y, weight)
    assert edited.predict(frame).shape == (N,)
    with pytest.raises(ValueError, match="was fitted to 59 rows of positive weight, but 60 are given"):
        one.remove(first_atom(one), frame, Y)
    dense, sparse = gce.GCERegressor(**small).fit(X, Y), gce.GCERegressor(**small).fit(csr_array(X), Y)
    name = first_atom(dense)
    first = dense.remove(name, X, Y).predict(X)
    np.testing.assert_allclose(sparse.remove(name, csr_array(X), Y).predict(csr_array(X)), first, atol=1e-6)


class OnColumns:
    """Predicts from the numbers of a frame."""

    def __init__(self, model):
        self.model = model

    def predict(self, frame):
        return self.model.predict(frame[["a", "b", "c"]].to_numpy())


def test_rows_given_for_validation_are_given_again():
    y = np.sin(X[:, 0])
    one = gce.GCERegressor(max_atoms=3, **NET).fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    edited = one.add("first", Counting(lambda rows: rows[:, 0]), X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    assert edited.weights_["first"] > 0
    np.testing.assert_allclose(edited.residuals_[:, 0], np.sort(y[40:] - edited.predict(X[40:])), atol=1e-12)
    with pytest.raises(ValueError, match="not the rows of the fit"):
        one.remove(first_atom(one), X[:40], y[:40])


def test_weights_are_found_on_all_rows_where_none_are_held_out():
    one = gce.GCERegressor(max_atoms=3, cv=None, validation_fraction=None, **NET).fit(X, Y)
    edited = one.remove("0:1", X, Y)
    assert len(edited.residuals_) == 0
    assert edited.explain(X, Y).loss == pytest.approx(np.mean((edited.predict(X) - Y) ** 2), rel=1e-9)


def test_a_pool_and_several_targets_are_edited(tmp_path):
    both = np.column_stack([Y, -Y])
    bound = 4 / 3 * np.abs(both - both.mean(0)).max(0)
    functions = [lambda rows, j=j: np.column_stack([np.tanh(rows[:, j]), -np.tanh(rows[:, j])]) for j in range(3)]
    one = gce.GCERegressor(basis=gce.Pool(functions), bound=bound, cv=2, random_state=0).fit(X, both)
    edited = one.remove("0:1", X, both[:, ::1])
    assert edited.predict(NEW).shape == (40, 2)
    with pytest.raises(ValueError, match="pool member"):
        edited.save(tmp_path / "m.safetensors")


# What is refused.


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda m: m.remove("0:77", X, Y), r"there is no '0:77' here: the nearest names are '0:"),
        (lambda m: m.remove([], X, Y), "there is nothing to remove"),
        (lambda m: m.remove(77, X, Y), "there is no 77 here"),
        (lambda m: m.remove("1:0", X, Y), "'1:0' is the zero function around the offset"),
        (
            lambda m: m.remove([n for n in m.atom_names_ if n[-2:] != ":0"], X, Y),
            "nothing would be left but the offset",
        ),
        (lambda m: m.remove("0:1", X[:-1], Y[:-1]), "was fitted to 60 rows of positive weight, but 59 are given"),
        (lambda m: m.remove("0:1", X[::-1], Y[::-1]), "these are not the rows of the fit in their order"),
        (lambda m: m.remove("0:1", NEW, Y), "inconsistent numbers of samples"),
        (lambda m: m.remove("0:1", X[:, :2], Y), "expecting 3 features"),
        (lambda m: m.add("0:1", Ridge(), X, Y), "there is a '0:1' already"),
        (lambda m: m.add("5:9", Ridge(), X, Y), "'5:9' is what an atom is called"),
        (lambda m: m.add(7, Ridge(), X, Y), "a name must be text, got 7"),
        (lambda m: m.add("tree", DecisionTreeClassifier(), X, Y), r"member 'tree' \(DecisionTreeClassifier\)"),
        (lambda m: m.prune(0, X=X, y=Y), "k must be an integer of at least 1, got 0"),
        (lambda m: m.prune(X=X, y=Y), "give either k, a size, or tol"),
        (lambda m: m.prune(3, tol=0.1, X=X, y=Y), "give either k, a size, or tol"),
        (lambda m: m.prune(tol=-1, X=X, y=Y), "tol must be a number of at least 0"),
        (lambda m: m.reweight(NEW, np.column_stack([Y_NEW, Y_NEW])), r"y has 2 target\(s\)"),
        (lambda m: m.reweight(NEW, Y_NEW, np.zeros(40)), "(?i)sample weights"),
        (lambda m: m.reweight(X, Y).explain(X, Y, groups=np.arange(N)), "leave out groups, X_val and y_val"),
        (lambda m: m.reweight(X, Y).explain(X, Y, X_val=X, y_val=Y), "leave out groups, X_val and y_val"),
    ],
)
def test_what_cannot_be_done_is_said(model, edit, words):
    with pytest.raises(ValueError, match=words):
        edit(model)


def test_simplices_of_their_own_and_monotone_models_are_refused():
    both = np.column_stack([Y, -Y])
    separate = gce.GCERegressor(max_atoms=2, cv=2, basis=gce.Neural(2, max_epochs=5, shared=False)).fit(X, both)
    assert separate.weights_.shape == (len(separate.ensemble_), 2)
    with pytest.raises(ValueError, match=re.escape("(shared=False)")):
        separate.reweight(X, both)
    rising = gce.GCERegressor(max_atoms=2, cv=2, monotonic_cst=[1, 0, 0], **NET).fit(X, Y)
    with pytest.raises(ValueError, match="would no longer hold with a guest"):
        rising.add("ridge", Ridge().fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="is not fitted yet"):
        gce.GCERegressor().remove("0:1", X, Y)


def test_other_classes_are_refused_and_fewer_are_enough_to_reweight(classifier):
    with pytest.raises(ValueError, match="goes on with the classes"):
        classifier.remove("0:1", X, np.where(LABELS == "ant", "bee", LABELS))
    two = classifier.reweight(X[LABELS != "bee"], LABELS[LABELS != "bee"])
    assert two.predict_proba(NEW).shape == (40, 3)
