"""Models of several classes of atoms: what every model can do, they can too, or say why not."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
import torch

import gce
from gce.bases import ForestAtoms
from gce.frank_wolfe.simplex import Outputs, solve_simplex
from gce.inspection.report.markup import percent
from gce.losses.risk import Risk
from gce.training import family_weights

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + np.sign(X[:, 1]) + 0.3 * RNG.normal(size=60)
LABELS = np.array(["ant", "bee", "cicada"])[(X[:, 0] > 0) + (X[:, 1] > 0.3).astype(int)]
SPLITS = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
SMALL = {"max_atoms": 10, "cv": SPLITS, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return gce.GCERegressor(**SMALL).fit(X, Y)


def held_out_loss(model, m):
    """The mean loss of a member on the rows that it held out."""
    rows = SPLITS[m][1]
    with torch.no_grad():
        pred = model.ensemble_.of_member(m)(torch.from_numpy(model.table_.transform(X[rows]))).numpy()[:, 0]
    return np.mean((pred - Y[rows]) ** 2)


def test_by_default_all_classes_are_fitted(model):
    assert [family.name for family in model.result_.families] == ["tree", "symmetric", "forest", "neural"]
    assert {entry["family"] for entry in model.history_} == {*(family.name for family in model.result_.families), "all"}
    assert (model.ensemble_.weights > 0).all()
    assert float(model.ensemble_.weights.sum()) == pytest.approx(1, abs=1e-12)
    assert sum(model.result_.family_weights) <= 1 + 1e-12


def test_shares_are_the_best_on_held_out_rows(model):
    # the loss is convex in shares, and these are better than any on a grid
    families = [family.ensemble(model.ensemble_.offset) for family in model.result_.families]
    offset = float(model.offset_[0])
    preds = []
    with torch.no_grad():
        for own in families:
            each = [own.of_member(m)(torch.from_numpy(model.table_.transform(X[SPLITS[m][1]]))) for m in range(2)]
            preds.append(torch.cat(each).numpy()[:, 0] - offset)
    preds, y = np.stack(preds, 1), np.concatenate([Y[test] for _, test in SPLITS]) - offset
    best = np.mean((preds @ list(model.result_.family_weights) - y) ** 2)
    grid = np.random.default_rng(0).dirichlet(np.ones(5), 3000)[:, :4]
    others = np.mean((preds @ np.vstack([grid, np.eye(4)]).T - y[:, None]) ** 2, 0)
    assert best <= others.min() * (1 + 1e-12)


def test_stages_end_in_the_prediction(model):
    stages = list(model.staged_predict(X))
    # the last stage is the ensemble of all, which is no round
    assert len(stages) == model.n_iter_ + 1
    np.testing.assert_allclose(stages[-1], model.predict(X), rtol=1e-12)
    classes = gce.GCEClassifier(**SMALL).fit(X, LABELS)
    *_, last = classes.staged_predict_proba(X)
    np.testing.assert_allclose(last, classes.predict_proba(X), rtol=1e-10)


def test_a_fit_goes_on_with_its_classes_only():
    settings = {**SMALL, "n_iter_no_change": None}
    whole = gce.GCERegressor(**{**settings, "max_atoms": 12}).fit(X, Y)
    part = gce.GCERegressor(**settings, warm_start=True).fit(X, Y)
    again = pickle.loads(pickle.dumps(part)).set_params(max_atoms=12).fit(X, Y)
    # scores of best rounds before the pause are summed anew
    np.testing.assert_allclose(again.predict(X), whole.predict(X), rtol=1e-9)
    assert len(again.history_) - 1 == again.n_iter_ == whole.n_iter_
    with pytest.raises(
        ValueError, match="warm_start continues tree, symmetric, forest, neural, but basis='neural' has neural"
    ):
        part.set_params(basis="neural").fit(X, Y)
    alone = gce.GCERegressor(basis="forest", warm_start=True, **SMALL).fit(X, Y)
    with pytest.raises(ValueError, match="warm_start continues one family, but basis='auto' has tree"):
        alone.set_params(basis="auto").fit(X, Y)


def test_where_signs_are_to_be_kept_all_families_serve():
    rising = gce.GCERegressor(monotonic_cst=[1, 0, 0], **SMALL).fit(X, Y)
    assert [family.name for family in rising.result_.families] == ["tree", "symmetric", "forest", "neural"]
    assert (rising.predict(X + np.array([0.5, 0, 0])) >= rising.predict(X) - 1e-12).all()
    alone = gce.GCERegressor(basis="neural", monotonic_cst=[1, 0, 0], **SMALL).fit(X, Y)
    assert alone.bound_report(X, Y, draws=1).total > 0


@pytest.mark.parametrize("algorithm", ["pairwise", "frank-wolfe"])
def test_theory_is_about_what_was_fitted(algorithm, tmp_path):
    alone = gce.GCERegressor(algorithm=algorithm, **SMALL).fit(X, Y)
    report = alone.bound_report(X, Y, draws=2, random_state=0)
    alone.save(tmp_path / "model")
    assert gce.load(tmp_path / "model").bound_report(X, Y, draws=2, random_state=0) == report
    alone.set_params(algorithm="auto")
    assert alone.bound_report(X, Y, draws=2, random_state=0) == report


def test_theory_is_about_one_class(model):
    with pytest.raises(ValueError, match=r"one class of atoms, and this model mixes tree, symmetric,"):
        model.bound_report(X, Y)
    with pytest.raises(ValueError, match="one class of atoms"):
        model.bound_report(X, Y, oracle="neural")


def test_outputs_with_weights_of_their_own_are_not_mixed():
    both = np.stack([Y, X[:, 0]], 1)
    with pytest.raises(ValueError, match="several families, which need weights that all outputs share"):
        gce.GCERegressor(basis=["tree", gce.bases.Neural(shared=False)], **SMALL).fit(X, both)
    assert gce.GCERegressor(**SMALL).fit(X, both).predict(X).shape == (60, 2)


def solved_again(model, m, names):
    """The least held-out loss of a member's atoms of these names, solved afresh."""
    rows, member = SPLITS[m][1], model.ensemble_.of_member(m)
    with torch.no_grad():
        outputs = member.outputs(torch.from_numpy(model.table_.transform(X[rows])))
    kept = [j for j, (_, t) in enumerate(member.origin.tolist()) if t > 0 and f"{m}:{t}" in names]
    weight = torch.full((1, len(rows)), 1 / len(rows), dtype=torch.float64)
    risk = Risk(model.loss_, torch.from_numpy(Y[rows, None]), weight, torch.from_numpy(model.offset_))
    return solve_simplex(risk, Outputs([torch.zeros(len(rows), 1, dtype=torch.float64), *outputs[kept]]), 1e-9).loss


def test_weights_beside_a_forest_are_found_on_rows_held_out(monkeypatch):
    # no family is left out
    monkeypatch.setattr(family_weights, "FEWER_FAMILIES", -1.0)
    model = gce.GCERegressor(**{**SMALL, "random_state": 2}).fit(X, Y)
    forests = [part for part in model.ensemble_.parts if isinstance(part, ForestAtoms)]
    assert sum(map(len, forests)) < (model.ensemble_.origin[:, 1] > 0).sum()
    gone = next(name for name in model.atom_names_ if name.startswith("1:") and name != "1:0")
    edited = model.remove(gone, X, Y)
    for m in range(2):
        least = solved_again(model, m, set(model.atom_names_) - {gone})
        assert held_out_loss(edited, m) == pytest.approx(least, rel=1e-5)
    before = np.mean([held_out_loss(model, m) for m in range(2)])
    assert model.explain(X, Y, by="atoms").loss == pytest.approx(before)
    small = model.prune(3, X=X, y=Y)
    assert sum(not name.endswith(":0") for name in small.atom_names_) <= 3


def least_squares_on_the_simplex(model, rows, y):
    """The least mean squared error of the atoms' convex combinations on some rows, by another solver."""
    with torch.no_grad():
        outputs = model.ensemble_.outputs(torch.from_numpy(model.table_.transform(rows))).numpy()[:, :, 0]
    # the zero function is in the hull as well
    weights = cp.Variable(len(outputs) + 1, nonneg=True)
    residual = np.vstack([outputs, np.zeros(len(rows))]).T @ weights - (y - model.offset_[0])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(residual)), [cp.sum(weights) == 1])
    return problem.solve(solver=cp.CLARABEL) / len(rows)


def test_a_forest_that_held_out_nothing_has_no_rows_for_weights():
    given = {"max_atoms": 2, "cv": None, "validation_fraction": None, "random_state": 0}
    model = gce.GCERegressor(basis=["forest", "tree"], **given).fit(X[:40], Y[:40])
    for by in ("families", "atoms"):
        with pytest.raises(ValueError, match="a forest interpolates its training rows"):
            model.explain(X[:40], Y[:40], by=by)
    edited = model.reweight(X[40:], Y[40:])
    least = least_squares_on_the_simplex(model, X[40:], Y[40:])
    loss = np.mean((edited.predict(X[40:]) - Y[40:]) ** 2)
    assert loss == pytest.approx(least, rel=1e-5)
    assert loss < 0.99 * np.mean((model.predict(X[40:]) - Y[40:]) ** 2)
    # the gap is a certificate: at least how far the loss is above the least, and small
    assert loss - least - 1e-9 <= edited.gap_ <= 1e-3 * loss
    trees = gce.GCERegressor(basis="tree", **given).fit(X, Y)
    assert trees.explain(X, Y, by="atoms").loss == pytest.approx(np.mean((trees.predict(X) - Y) ** 2))


@pytest.mark.parametrize("rows", [1, 2])
def test_hardly_any_rows(rows):
    model = gce.GCERegressor(max_atoms=2, random_state=0).fit(X[:rows], Y[:rows])
    assert np.isfinite(model.predict(X)).all()


def test_a_class_of_one_row_is_learned():
    labels = np.append("dragonfly", LABELS[1:20])
    model = gce.GCEClassifier(max_atoms=2, random_state=0).fit(X[:20], labels)
    assert model.predict_proba(X).shape == (60, len(set(labels)))


def test_pages_and_pictures_show_all_classes(model, tmp_path):
    import matplotlib as mpl

    mpl.use("Agg")
    model.report(tmp_path / "r.html", X, Y)
    page = (tmp_path / "r.html").read_text()
    assert f"{len(model.ensemble_)} atoms" in page
    for family, weight in zip(model.result_.families, model.result_.family_weights, strict=True):
        assert f"over {len(family.history)} rounds" in page or len(family.history) == 1
        assert f"<h3>{family.name}: {percent(weight) + ' of the weight' if weight else 'unused'}</h3>" in page
    risk = gce.inspection.TrainingDisplay.from_estimator(model).risk_
    # the last entry of the history is that of all families together
    drawn = np.concatenate([line.get_ydata() for line in risk])
    np.testing.assert_array_equal(drawn, [entry["risk"] for entry in model.history_[:-1]])
    bars = [bar.get_height() for bars in gce.inspection.WeightsDisplay.from_estimator(model).bars_ for bar in bars]
    np.testing.assert_allclose(np.sort(bars), np.sort(model.ensemble_.weights.numpy()), rtol=1e-12)
    errors = gce.inspection.StagedErrorDisplay.from_estimator(model, X, Y).errors
    assert len(errors) == model.n_iter_ + 1
    assert errors[-1] == pytest.approx(np.sqrt(np.mean((model.predict(X) - Y) ** 2)))
    assert errors[-1] < 0.9 * errors[0]
