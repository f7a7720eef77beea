"""Edited ensembles: weights are the best for what is left, the certificate holds, and nothing else changes."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression, Ridge

import gce
from gce.frank_wolfe.simplex import Outputs, solve_simplex
from gce.inspection.editing.pruning import choose, prune_together, size_of
from gce.inspection.editing.simplex_problem import SimplexProblem
from gce.losses.risk import Risk

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
NET = {"basis": gce.bases.Neural(hidden=3, max_epochs=15), "random_state": 0}


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
    """A model that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def predict(self, rows):
        self.calls += 1
        return self.function(np.asarray(rows))


def first_atom(model):
    return next(name for name in model.atom_names_ if not name.endswith(":0"))


def named_weights(model):
    """The weights of atoms and external models by name."""
    return pd.Series(model.weights_, model.atom_names_)


def targets(model, y):
    return torch.from_numpy(np.array(model.result_.target.encode(y)))


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
        assert type(weights) is np.ndarray
        assert len(weights) == len(set(one.atom_names_)) == len(one.ensemble_)
        np.testing.assert_array_equal(weights, one.ensemble_.weights.numpy())
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
        fresh = solve_simplex(*own_problem(one, m, y, left), 1e-9)
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
    weights = named_weights(edited)
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
    assert named_weights(edited)["2:0"] == pytest.approx(1 / 3)


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
    fresh = solve_simplex(risk, Outputs([torch.zeros(40, 1, dtype=torch.float64), *outputs]), 1e-9)
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
    path, pruned = model.pruning_path(X, Y), model.prune(4, X=X, y=Y)
    sizes, losses = [step.size for step in path.steps], [step.loss for step in path.steps]
    assert sizes == sorted(set(sizes), reverse=True)
    assert sizes[-1] == 1
    assert all(later >= earlier * (1 - 1e-6) for earlier, later in pairwise(losses))
    for step in path.steps[:: max(1, len(sizes) // 4)]:
        fresh = [solve_simplex(*own_problem(model, m, Y, step.names), 1e-9) for m in range(3)]
        best = np.mean([found.loss for found in fresh])
        assert -1e-9 <= step.loss - best <= 1e-6 * best
        assert all(step.weights > 0)
    weights = named_weights(pruned)
    weights = weights[~weights.index.str.endswith(":0")]
    chosen = next(step for step in path.steps if step.size <= 4)
    assert len(weights) == chosen.size
    assert dict(zip(chosen.names, chosen.weights, strict=True)) == pytest.approx(weights.to_dict())
    assert mean_loss(pruned, Y) == pytest.approx(chosen.loss, rel=1e-9)
    assert pruned.gap_ == chosen.gap


def n_atoms(model):
    """How many atoms and external models are kept, the zero functions left out."""
    return len([name for name in model.atom_names_ if not name.endswith(":0")])


def test_a_tolerance_chooses_the_smallest_ensemble_within_it(at_once):
    path = at_once.pruning_path(X, Y)
    tight, loose = (at_once.prune(tol=tol, X=X, y=Y) for tol in (0.0, 0.1))
    for pruned, tol in ((tight, 0.0), (loose, 0.1)):
        assert n_atoms(pruned) == min(step.size for step in path.steps if step.loss <= (1 + tol) * path.steps[0].loss)
    assert f"with {path.steps[0].size} members" in str(path)
    assert n_atoms(loose) < n_atoms(tight)


def test_atoms_that_help_by_less_than_the_gap_may_go_together():
    y = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)[:, None]
    side = torch.tensor([1e-3, 1e-3, -1e-3, -1e-3], dtype=torch.float64)[:, None]
    weight = torch.full((1, 4), 0.25, dtype=torch.float64)
    outputs = Outputs([torch.zeros_like(y), 1e-8 * y + side, 1e-8 * y - side, -y])
    risk = Risk(gce.losses.Squared(), y, weight, torch.zeros(1, dtype=torch.float64))
    shares = [SimplexProblem(("0:0", "0:1", "0:2", "0:3"), outputs, risk, np.array([0, 0.5, 0.5, 0]), (0,))]
    stands = prune_together(shares)
    assert [size_of(shares, stand) for stand in stands] == [2, 0]
    assert choose(shares, stands, 1, None) is stands[-1]


# External models.


# What stays.


def test_no_edit_changes_the_model(model, classifier, at_once):
    for one, y in ((model, Y), (classifier, LABELS), (at_once, Y)):
        before, answers = pickle.dumps(one), one.raw_predict(NEW).numpy()
        one.remove(first_atom(one), X, y[:, None] if y is Y else y)
        one.prune(2, X=X, y=y)
        one.reweight(NEW, np.resize(y, 40))
        one.explain(X, y)
        one.explain(X, y, by="atoms")
        external = (Ridge() if y is Y else LogisticRegression()).fit(X, y)
        one.add("external", external, X, y).add("another", external, X, y)
        np.testing.assert_array_equal(one.raw_predict(NEW).numpy(), answers)
        assert pickle.dumps(one) == before


def test_an_edit_of_an_edit_leaves_the_first_one_alone(model):
    first = model.remove("0:1", X, Y)
    before = pickle.dumps(first)
    second = first.remove(first_atom(first), X, Y)
    assert mean_loss(second, Y) >= mean_loss(first, Y) - first.gap_
    assert pickle.dumps(first) == before


def edits(one, y):
    yield one.remove(first_atom(one), X, y)
    yield one.prune(2, X=X, y=y)
    yield one.reweight(NEW, np.resize(y, 40))
    yield one.reweight(NEW, np.resize(y, 40)).prune(1, X=NEW, y=np.resize(y, 40))


@pytest.mark.parametrize("name", ["model", "classifier", "at_once"])
def test_edited_models_go_through_files_graphs_pickles_and_reports(name, request, tmp_path):
    one = request.getfixturevalue(name)
    y = LABELS if name == "classifier" else Y
    for i, edited in enumerate(edits(one, y)):
        path = tmp_path / f"{i}.safetensors"
        edited.save(path)
        back = gce.load(path)
        np.testing.assert_array_equal(back.raw_predict(NEW).numpy(), edited.raw_predict(NEW).numpy())
        np.testing.assert_array_equal(back.predict(NEW), edited.predict(NEW))
        assert (back.gap_, back.atom_names_) == (edited.gap_, edited.atom_names_)
        assert back.result_.one_simplex == edited.result_.one_simplex
        copied = pickle.loads(pickle.dumps(edited))
        np.testing.assert_array_equal(copied.raw_predict(NEW).numpy(), edited.raw_predict(NEW).numpy())
        edited.to_onnx(tmp_path / f"{i}.onnx")
        edited.report(tmp_path / f"{i}.html", NEW, np.resize(y, 40))
        page = (tmp_path / f"{i}.html").read_text()
        assert "weights re-optimised" in page
        assert 'id="training"' not in page
        gce.inspection.WeightsDisplay.from_estimator(edited)


def test_a_loaded_model_can_be_edited(at_once, tmp_path):
    at_once.remove("0:1", X, Y).save(tmp_path / "m.safetensors")
    back = gce.load(tmp_path / "m.safetensors")
    first, second = (one.remove("1:2", X, Y) for one in (at_once.remove("0:1", X, Y), back))
    np.testing.assert_array_equal(first.predict(NEW), second.predict(NEW))


def test_an_edited_model_says_that_it_has_no_rounds(model):
    edited = model.remove("0:1", X, Y)
    assert not hasattr(edited, "history_")
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        next(edited.staged_predict(NEW))
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        gce.inspection.TrainingDisplay.from_estimator(edited)
    with pytest.raises(ValueError, match="an edited model has no rounds"):
        edited.set_params(warm_start=True).fit(X, Y)
    fresh = edited.set_params(warm_start=False).fit(X, Y)
    assert not hasattr(fresh, "gap_")
    assert not fresh.result_.one_simplex
    assert not fresh.result_.external
    np.testing.assert_array_equal(fresh.predict(NEW), model.predict(NEW))


# Rows.


def test_frames_sparse_rows_and_weights_are_edited_like_arrays(model):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(d=pd.Categorical(np.where(X[:, 0] > 0, "x", "y")))
    small = {"max_atoms": 3, "cv": 2, **NET}
    weight = np.r_[0.0, np.linspace(0.5, 2, N - 1)]
    one = gce.GCERegressor(**small).fit(frame, Y, weight)
    external = Ridge().fit(X, Y)
    edited = one.add("ridge", OnColumns(external), frame, Y, weight)
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
    assert named_weights(edited)["first"] > 0
    np.testing.assert_allclose(edited.residuals_[:, 0], np.sort(y[40:] - edited.predict(X[40:])), atol=1e-12)
    with pytest.raises(ValueError, match=r"the rows of the fit, but not as it had them: .*X_val, y_val"):
        one.remove(first_atom(one), X[:40], y[:40])


def test_weights_are_found_on_all_rows_where_none_are_held_out():
    one = gce.GCERegressor(max_atoms=3, cv=None, validation_fraction=None, **NET).fit(X, Y)
    edited = one.remove("0:1", X, Y)
    assert len(edited.residuals_) == 0
    for by in ("atoms", "families"):
        loss = edited.explain(X, Y, by=by).loss
        assert loss == pytest.approx(np.mean((edited.predict(X) - Y) ** 2), rel=1e-9)


def test_a_pool_and_several_targets_are_edited(tmp_path):
    both = np.column_stack([Y, -Y])
    bound = 4 / 3 * np.abs(both - both.mean(0)).max(0)
    functions = [lambda rows, j=j: np.column_stack([np.tanh(rows[:, j]), -np.tanh(rows[:, j])]) for j in range(3)]
    one = gce.GCERegressor(basis=gce.bases.Pool(functions), bound=bound, cv=2, random_state=0).fit(X, both)
    edited = one.remove("0:1", X, both[:, ::1])
    assert edited.predict(NEW).shape == (40, 2)
    with pytest.raises(ValueError, match="pool member"):
        edited.save(tmp_path / "m.safetensors")


# What is refused.
