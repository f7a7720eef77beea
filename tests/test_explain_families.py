"""Explanations of a fitted ensemble by families: each figure by another way of getting it."""

import re
from dataclasses import replace

import cvxpy as cp
import matplotlib as mpl
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import gce
from gce.inspection.atom_families import atom_families
from gce.training import family_weights, round_weights

mpl.use("Agg")
import matplotlib.pyplot as plt

RNG = np.random.default_rng(0)
N = 90
X = RNG.normal(size=(N, 3))
Y = 2 * X[:, 0] + np.abs(X[:, 1]) + (X[:, 2] > 0) + 0.2 * RNG.normal(size=N)
BASES = {"nets": gce.bases.Neural(hidden=4, max_epochs=30), "trees": gce.bases.SymmetricTree(), "forest": "forest"}


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        # no family is left out
        patch.setattr(family_weights, "FEWER_FAMILIES", -1.0)
        return gce.GCERegressor(basis=BASES, max_atoms=15, cv=3, random_state=3).fit(X, Y)


def folds(model):
    """Of each row the member that holds it out."""
    from gce.estimators._edit_rows import edit_data
    from gce.estimators._validation import FitInput

    data = edit_data(model, model.result_, FitInput(X, Y, None, None))
    return data.problem.held_out > 0, data.problem


def outputs_of_families(model):
    """Each family's own prediction of each row, by the member that held it out, and the targets."""
    held, problem = folds(model)
    families = {}
    with torch.no_grad():
        for record in model.result_.families:
            alone, pred = record.ensemble(model.ensemble_.offset), torch.zeros_like(problem.y)
            for m in range(3):
                pred[held[m]] = alone.of_member(m)(problem.X[held[m]]) - model.ensemble_.offset
            families[record.name] = pred[:, 0].numpy()
    return families, (problem.y[:, 0] - model.ensemble_.offset).numpy()


def least(outputs, y):
    w = cp.Variable(len(outputs), nonneg=True)
    residual = np.column_stack(outputs) @ w - y
    program = cp.Problem(cp.Minimize(cp.sum_squares(residual) / len(y)), [cp.sum(w) == 1])
    return program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)


def test_every_figure_is_that_of_the_families_themselves(model):
    found = model.explain(X, Y)
    families, y = outputs_of_families(model)
    weights = dict(zip((r.name for r in model.result_.families), model.result_.family_weights, strict=True))
    rest = 1 - sum(weights.values())
    pool = {**families, "offset": np.zeros(N)}
    assert found.names == tuple(pool)
    whole = sum(weights[name] * own for name, own in families.items())
    assert found.loss == pytest.approx(np.mean((whole - y) ** 2), rel=1e-9)
    assert (found.weights > 0.01).sum() >= 2
    for j, name in enumerate(found.names):
        assert found.weights[j] == pytest.approx(weights.get(name, rest), abs=1e-12)
        assert found.own_loss[j] == pytest.approx(np.mean((pool[name] - y) ** 2), rel=1e-9)
        without = least([own for other, own in pool.items() if other != name], y)
        assert found.loss_without[j] == pytest.approx(without, rel=1e-5)
        slope = np.mean(2 * (whole - y) * (pool[name] - whole))
        assert found.alignment[j] == pytest.approx(slope, abs=1e-9)
    # the weights of families are the solution of this very problem
    assert found.gap <= 1e-9


def test_atoms_are_counted_by_family(model):
    found = model.explain(X, Y)
    families = atom_families(model.result_)
    assert families.names == tuple(BASES)
    assert found.n_atoms.sum() == (families.index >= 0).sum() == (model.ensemble_.origin[:, 1] > 0).sum()
    kinds = {"nets": "Networks", "trees": "TreeAtoms", "forest": "ForestAtoms"}
    first = 0
    for part in model.ensemble_.parts:
        own = {families.names[i] for i in families.index[first : first + len(part)] if i >= 0}
        assert {kinds[name] for name in own} <= {type(part).__name__}
        first += len(part)
    for name, record in zip(BASES, model.result_.families, strict=True):
        born = families.born[families.members_of(name)]
        assert ((born > 0) & (born <= len(record.history))).all()


def test_one_row_per_atom_on_request(model):
    found = model.explain(X, Y, by="atoms")
    assert set(found.names) >= {name for name in model.atom_names_ if not name.endswith(":0")}
    assert "atoms in use" in str(found)
    assert found.n_atoms is None
    with pytest.raises(ValueError, match=r"by must be 'families' or 'atoms', got 'columns'"):
        model.explain(X, Y, by="columns")


def test_the_table_frame_and_picture(model):
    found = model.explain(X, Y)
    title, _, head, *_ = str(found).splitlines()
    assert re.search(r"\d of \d families in use$", title)
    assert re.split(" {2,}", head.strip())[:2] == ["weight", "atoms"]
    frame = found.to_frame()
    assert frame.index.name == "family"
    assert frame["n_atoms"].to_dict() == dict(zip(found.names, found.n_atoms, strict=True))
    shown = found.plot()
    assert "families in use" in shown.ax_.get_title(loc="left")
    assert shown.axes_["without"].get_xlabel() == "loss without the family"
    plt.close("all")


def test_columns_have_a_table_of_their_own(model):
    found = model.explain(X, Y)
    assert list(found.importances.values()) == model.feature_importances_.tolist()
    text = str(found)
    columns = text[text.index("\nColumns\n") :]
    shown = re.findall(r"^(x\d) +([\d.]+)$", columns, re.MULTILINE)
    assert [name for name, _ in shown] == [f"x{j}" for j in np.argsort(-model.feature_importances_)]
    for name, share in shown:
        assert float(share) == pytest.approx(found.importances[name], abs=5e-5)
    assert found._repr_html_().count("<table>") == 2
    many = replace(found, importances={f"c{j}": 1 / 25 for j in range(25)})
    assert "5 more columns have 0.2000 together" in str(many)
    assert replace(found, importances=None).column_table() is None


def test_a_loaded_model_explains_the_families_it_uses(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    loaded, found = gce.load(tmp_path / "m.safetensors").explain(X, Y), model.explain(X, Y)
    used = [name for name, weight in zip(found.names, found.weights, strict=True) if weight > 0]
    assert [name for name in loaded.names if name in used] == used
    assert loaded.loss == pytest.approx(found.loss, rel=1e-9)
    np.testing.assert_array_equal(loaded.n_atoms[loaded.used], found.n_atoms[found.used])


def test_edited_models_have_kinds_of_atoms_and_external_models(model):
    ridge = Ridge().fit(X[:10], Y[:10])
    edited = model.add("ridge", ridge, X, Y)
    found = edited.explain(X, Y)
    assert set(found.names) - {"offset"} <= {"networks", "trees", "forests", "ridge"}
    assert "ridge" in found.names
    # rows are predicted by the member that held them out
    held, problem = folds(edited)
    parts, y, mine = [edited.ensemble_.of_member(m) for m in range(3)], problem.y[:, 0], torch.zeros(N).double()
    from gce.estimators._edit_rows import edit_data
    from gce.estimators._validation import FitInput

    pred = edit_data(edited, edited.result_, FitInput(X, Y, None, None)).external["ridge"][:, 0]
    with torch.no_grad():
        for m in range(3):
            share = edited.result_.external[0].weights[m]
            mine[held[m]] = parts[m](problem.X[held[m]])[:, 0] + share * pred[held[m]]
    assert found.loss == pytest.approx(float(((mine - y) ** 2).mean()), rel=1e-9)
    again = edited.reweight(X, Y).explain(X, Y)
    assert again.loss == pytest.approx(np.mean((edited.reweight(X, Y).predict(X) - Y) ** 2), rel=1e-9)


def test_one_family_and_one_trained_at_once():
    single = gce.GCERegressor(basis="tree", max_atoms=3, cv=2, random_state=0).fit(X, Y).explain(X, Y)
    assert single.names == ("tree", "offset")
    # without the only family the offset is left
    assert single.loss_without[0] == pytest.approx(single.own_loss[1], rel=1e-12)
    assert "1 of 1 family in use" in str(single)
    at_once = gce.NGCERegressor(n_atoms=3, hidden=3, max_epochs=5, random_state=0).fit(X, Y)
    found = at_once.explain(X, Y)
    assert found.n_atoms.tolist() == [len(at_once.ensemble_), 0]
    assert found.weights.tolist() == [1.0, 0.0]


def test_weights_of_rounds_are_summed_by_family(monkeypatch):
    monkeypatch.setattr(round_weights, "_ENOUGH", 0)
    monkeypatch.setattr(round_weights, "_ERRORS", -1e9)
    model = gce.GCERegressor(basis=["neural", "symmetric"], max_atoms=10, cv=3, random_state=0).fit(X, Y)
    assert model.result_.round_weights is not None
    found = model.explain(X, Y)
    weights = dict(zip((family.name for family in model.result_.families), model.result_.family_weights, strict=True))
    for name, weight in zip(found.names, found.weights, strict=True):
        assert weight == pytest.approx(weights.get(name, 1 - sum(weights.values())), abs=1e-9)
    held, problem = folds(model)
    pred = torch.zeros_like(problem.y)
    with torch.no_grad():
        for m in range(3):
            pred[held[m]] = model.ensemble_.of_member(m)(problem.X[held[m]])
    assert found.loss == pytest.approx(float(((pred - problem.y) ** 2).mean()), rel=1e-9)


def pool_of(found, model, rows):
    """Each family's own prediction of rows by the whole model, and of the zero function, measured from the offset."""
    offset, codes = model.ensemble_.offset, torch.from_numpy(model.table_.transform(rows))
    with torch.no_grad():
        own = {r.name: (r.ensemble(offset)(codes) - offset)[:, 0].numpy() for r in model.result_.families if r.rounds}
    return [own.get(name, np.zeros(len(rows))) for name in found.names]


def legend_holds(found, pool, y):
    """Every sentence on slopes and on the best weights is true of figures that are computed again."""
    whole = found.weights @ np.array(pool)
    loss, best = np.mean((whole - y) ** 2), least(pool, y)
    words = " ".join(str(found).split())
    shown = np.abs(found.alignment) > 1e-6 * loss
    if "Where it is positive, the weight is 0." in words:
        assert (found.weights[shown & (found.alignment > 0)] == 0).all()
        assert (found.alignment[shown] > 0).all()
    for sign, sentence in ((1, "more weight would raise the loss"), (-1, "more weight would lower the loss")):
        toward = [own for own, slope in zip(pool, found.alignment, strict=True) if slope * sign > 1e-6 * loss]
        assert (sentence in words) <= bool(toward)
        for own in toward:
            moved = whole + 1e-6 * (own - whole)
            assert sign * (np.mean((moved - y) ** 2) - loss) > 0
    assert ("not optimal on these rows" in words) == (loss - best > 1e-6 * loss)
    assert found.loss == pytest.approx(loss, rel=1e-9)
    assert found.best_loss == pytest.approx(best, rel=1e-5)
    assert found.loss - found.gap <= best * (1 + 1e-7)
    for j in range(len(pool) if len(pool) > 1 else 0):
        others = [own for i, own in enumerate(pool) if i != j]
        assert found.loss_without[j] == pytest.approx(least(others, y), rel=1e-5)
    for name, slope, own in zip(found.names, found.alignment, pool, strict=True):
        assert slope == pytest.approx(np.mean(2 * (whole - y) * (own - whole)), abs=1e-9 * (1 + loss)), name


X_NEW = RNG.normal(size=(60, 3))
Y_NEW = 2 * X_NEW[:, 0] + np.abs(X_NEW[:, 1]) + (X_NEW[:, 2] > 0) + 0.2 * RNG.normal(size=60)


def test_the_legend_is_true_on_the_rows_of_the_fit_and_on_others(model):
    families, y = outputs_of_families(model)
    found = model.explain(X, Y)
    legend_holds(found, [families.get(name, np.zeros(N)) for name in found.names], y)
    assert "rows held out in the fit" in " ".join(str(found).split())
    new = model.explain(X_NEW, Y_NEW)
    legend_holds(new, pool_of(new, model, X_NEW), Y_NEW - model.offset_[0])
    assert new.loss == pytest.approx(np.mean((model.predict(X_NEW) - Y_NEW) ** 2), rel=1e-9)
    assert "On the 60 rows given: each is predicted by the whole model" in " ".join(str(new).split())
    np.testing.assert_allclose(new.weights, found.weights, rtol=1e-12)


def test_the_legend_is_true_of_families_that_were_left_out():
    with pytest.MonkeyPatch.context() as patch:
        # all but one family are left out, whatever that costs
        patch.setattr(family_weights, "FEWER_FAMILIES", 1e9)
        patch.setattr(family_weights, "evidence_rows", lambda weight: 1e-12)
        model = gce.GCERegressor(basis=BASES, max_atoms=15, cv=3, random_state=3).fit(X, Y)
    found = model.explain(X, Y)
    assert found.used[:-1].sum() == 1
    assert (found.alignment[~found.used] < 0).any()
    families, y = outputs_of_families(model)
    legend_holds(found, [families.get(name, np.zeros(N)) for name in found.names], y)
    assert (found.loss_without[~found.used] <= found.loss).all()


def test_the_legend_is_true_of_weights_of_rounds(monkeypatch):
    monkeypatch.setattr(round_weights, "_ENOUGH", 0)
    monkeypatch.setattr(round_weights, "_ERRORS", -1e9)
    model = gce.GCERegressor(basis=["neural", "symmetric"], max_atoms=10, cv=3, random_state=0).fit(X, Y)
    for rows, target in ((X, Y), (X_NEW, Y_NEW)):
        found = model.explain(rows, target)
        assert (found.alignment[found.used] > 1e-6 * found.loss).any()
        assert "the weight is 0" not in " ".join(str(found).split())
        words = " ".join(str(found).split())
        assert "The fit weighted single rounds instead of families" in words
        # each sign that is shown is explained, by the change of the loss that a little weight makes
        assert ("more weight would raise" in words) == (found.alignment > 1e-6 * found.loss).any()
        assert ("more weight would lower" in words) == (found.alignment < -1e-6 * found.loss).any()
        assert found.best_loss <= found.loss
        assert found.loss - found.gap <= found.best_loss
        assert (found.loss_without >= found.best_loss * (1 - 1e-5)).all()
    assert found.loss == pytest.approx(np.mean((model.predict(X_NEW) - Y_NEW) ** 2), rel=1e-9)


def test_classifiers_weights_and_base_scores_on_any_rows():
    labels, weight = np.where(np.median(Y) < Y, "yes", "no"), RNG.uniform(0.1, 3, 60)
    fitted = {"basis": ["neural", "symmetric"], "max_atoms": 6, "cv": 2, "random_state": 0}
    classifier = gce.GCEClassifier(**fitted, class_weight={"yes": 3}).fit(X, labels)
    truth = np.resize(["yes", "no", "no"], 60)
    found = classifier.explain(X_NEW, truth, weight)
    score, total = classifier.raw_predict(X_NEW).numpy()[:, 0], weight * np.where(truth == "yes", 3, 1)
    losses = np.logaddexp(0, np.where(truth == classifier.classes_[1], -score, score))
    assert found.loss == pytest.approx(np.average(losses, weights=total), rel=1e-9)
    # rows of one class are enough, and as many rows as the fit had need not be its rows
    assert classifier.explain(X_NEW[:5], ["no"] * 5).loss > 0
    other = classifier.explain(X + 0.1, labels)
    assert "On the 90 rows given" in " ".join(str(other).split())
    counts = RNG.poisson(np.exp(0.5 * X[:, 0]))
    poisson = gce.GCERegressor(**fitted, loss="poisson").fit(X, counts, base_score=np.full(N, 0.3))
    given = poisson.explain(X_NEW, np.resize(counts, 60), base_score=np.linspace(-1, 1, 60))
    assert np.isfinite(given.loss)
    with pytest.raises(ValueError, match="these are not the rows of the fit"):
        classifier.explain(X + 0.1, labels, np.ones(N), np.arange(N) % 5)


FITS = {
    "groups": (X, Y, {"groups": np.arange(N) % 8}),
    "X_val": (X[:60], Y[:60], {"X_val": X[60:], "y_val": Y[60:]}),
    "sparse": (sparse.csr_array(X * (X > 0)), Y, {"groups": np.arange(N) % 8}),
    "few values": (np.round(X), Y, {"groups": np.arange(N) % 8}),
}


@pytest.mark.parametrize("name", FITS)
def test_rows_of_the_fit_are_known_without_what_split_them(name, tmp_path):
    """The members cannot be told apart there, and losses of the whole model are those of training rows."""
    rows, y, given = FITS[name]
    model = gce.GCERegressor(basis="tree", max_atoms=3, random_state=0).fit(rows, y, **given)
    model.save(tmp_path / "m.safetensors")
    order = np.random.default_rng(1).permutation(len(y))
    for one in (model, gce.load(tmp_path / "m.safetensors")):
        assert "held out in the fit" in " ".join(str(one.explain(rows, y, **given)).split())
        for again, target in ((rows, y), (rows[order], y[order])):
            with pytest.raises(ValueError, match=r"these are the rows of the fit, but not as it had them: .* groups"):
                one.explain(again, target)
        # other targets of the same columns are new rows, and so is a part
        for again, target in ((rows, y[order]), (rows[:40], y[:40])):
            found = one.explain(again, target)
            expected = np.mean((one.predict(again) - target) ** 2)
            assert found.loss == pytest.approx(expected, rel=1e-9)
            words = " ".join(str(found).split())
            assert f"On the {len(target)} rows given: each is predicted by the whole model, whose loss is too" in words
            assert "not the rows of the fit" not in words


@pytest.mark.parametrize("basis", ["tree", ["tree", "neural"]])
def test_the_certificate_is_of_the_families_and_the_offset(basis):
    """On rows of noise nothing is as good as the offset alone."""
    noise = 3 * np.random.default_rng(2).normal(size=300)
    rows = np.random.default_rng(3).normal(size=(300, 3))
    model = gce.GCERegressor(basis=basis, max_atoms=6, cv=2, random_state=0).fit(X, Y)
    found = model.explain(rows, noise)
    pool = pool_of(found, model, rows)
    least_loss = least(pool, noise - model.offset_[0])
    assert not pool[-1].any()
    assert least_loss < found.loss - 0.1
    assert found.best_loss == pytest.approx(least_loss, rel=1e-5)
    assert found.loss - found.gap <= least_loss * (1 + 1e-7)
    title = str(found).splitlines()[0]
    these = "these families" if isinstance(basis, list) else "this family"
    assert f" of the best weights of {these} and the offset; " in title
    assert "not optimal on these rows" in " ".join(str(found).split())
    count = title.split("; ")[1]
    assert found.plot().ax_.get_title(loc="left").endswith(f"of the best weights; {count}")
    plt.close("all")
    atoms = model.explain(rows, noise, by="atoms")
    assert [atoms.names[j] for j in atoms.free] == [name for name in atoms.names if name.endswith(":0")]
    assert "of the best weights of these atoms and the offset" in str(atoms).splitlines()[0]
    of_members = model.explain(X, Y, by="atoms")
    assert [of_members.names[j] for j in of_members.free] == ["0:0", "1:0"]
    assert f"of {len(of_members.names) - 2} atoms in use" in str(of_members).splitlines()[0]
    assert str(model.explain(by="families")).startswith(count)


def test_families_left_out_have_the_reasons_of_the_fit(model):
    some = gce.GCERegressor(basis=["tree", "neural"], max_atoms=6, cv=2, time_limit=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        some.fit(X, Y)
    assert some.result_.left_out
    for found in (some.explain(X, Y), some.explain(X_NEW, 9 * Y_NEW), some.explain()):
        words = " ".join(str(found).split())
        for name, reason in some.result_.left_out:
            assert f"{name} is left out: {reason}." in words
        assert "predictions are faster" not in words
    # what would be better on other rows is no reason of the fit
    turned = model.explain(X_NEW, -Y_NEW)
    assert (turned.alignment[~turned.used] < 0).any()
    words = " ".join(str(turned).split())
    assert words.count("left out") == len(model.result_.left_out)
    assert all(f"{name} is left out: {reason}." in words for name, reason in model.result_.left_out)


def test_atoms_on_any_rows_share_one_simplex(model):
    found = model.explain(X_NEW, Y_NEW, by="atoms")
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.loss == pytest.approx(np.mean((model.predict(X_NEW) - Y_NEW) ** 2), rel=1e-9)
    with torch.no_grad():
        codes = torch.from_numpy(model.table_.transform(X_NEW))
        outputs = model.ensemble_.outputs(codes).numpy()[:, :, 0]
    own = dict(zip(model.atom_names_, outputs, strict=True))
    pred, y = model.predict(X_NEW) - model.offset_[0], Y_NEW - model.offset_[0]
    slopes = {name: np.mean(2 * (pred - y) * (output - pred)) for name, output in own.items()}
    for name, slope in zip(found.names, found.alignment, strict=True):
        if name in slopes:
            assert slope == pytest.approx(slopes[name], abs=1e-9)
    assert "On the 60 rows given" in str(found)


def test_without_rows_there_are_weights_and_columns(model):
    found, full = model.explain(), model.explain(X, Y)
    assert found.names == full.names
    np.testing.assert_allclose(found.weights, full.weights, rtol=1e-12)
    np.testing.assert_array_equal(found.n_atoms, full.n_atoms)
    assert found.importances == full.importances
    text = str(found)
    assert text.startswith(f"{found.used[:-1].sum()} of {len(BASES)} families in use\n")
    assert "nan" not in text + found._repr_html_()
    assert "need rows: explain(X, y)" in text
    assert list(found.to_frame().columns) == ["weight", "n_atoms"]
    shown = found.plot()
    assert list(shown.axes_) == ["weight"]
    shown.figure_.canvas.draw()
    plt.close("all")
    atoms = model.explain(by="atoms")
    np.testing.assert_array_equal(atoms.weights, model.weights_)
    assert atoms.names == tuple(model.atom_names_)
    for given in ((X,), (None, Y), (None, None, np.ones(N))):
        with pytest.raises(ValueError, match="must be given too"):
            model.explain(*given)
