import json
import re
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from sklearn.exceptions import NotFittedError

from gce import GCEClassifier, GCERegressor
from gce.bases import Neural, Neuron, Pool
from gce.losses import Power, PseudoHuber
from gce.theory import bound_report, rademacher, suprema
from gce.theory.fitted import basis_of
from gce.theory.shattering import labelings

# Rademacher complexity.


def small_pool(seed=0, size=6, n=10, bound=2.0):
    outputs = np.random.default_rng(seed).uniform(-bound, bound, (size, n))
    X = torch.zeros(n, 1, dtype=torch.float64)
    every = 2.0 * labelings(0, 1 << n, n) - 1
    best = np.maximum(0, (every @ outputs.T / n).max(1))  # by brute force over the pool and the zero function
    return Pool(outputs=outputs), X, every, best


def test_a_pool_gives_every_supremum():
    pool, X, every, best = small_pool()
    np.testing.assert_allclose(suprema(pool, X, every, bound=2.0), best, rtol=0, atol=1e-14)


def test_blocks_of_draws_make_no_difference(monkeypatch):
    pool, X, every, best = small_pool()
    monkeypatch.setattr("gce.theory.complexity._BATCH_SIGNS", 70)
    np.testing.assert_allclose(suprema(pool, X, every[:50], bound=2.0), best[:50], rtol=0, atol=1e-14)


def test_the_interval_of_a_pool_holds_brute_force():
    pool, X, _, best = small_pool()
    estimates = [rademacher(pool, X, bound=2.0, draws=20, random_state=seed) for seed in range(40)]
    assert all(e.low <= best.mean() <= e.high and e.low < e.mean < e.high for e in estimates)
    assert all(e.exact and e.kind == "exact supremum" for e in estimates)
    spread = np.std([e.mean for e in estimates], ddof=1)
    assert np.mean([e.standard_error for e in estimates]) == pytest.approx(spread, rel=0.3)
    # the interval's width is McDiarmid's, not Hoeffding's over the draws alone
    assert estimates[0].high - estimates[0].mean == pytest.approx(2.0 * np.sqrt(2 * np.log(40) / 200))


def test_the_hulls_supremum_is_the_classs():
    pool, _, every, best = small_pool()
    atoms = np.vstack([np.zeros(10), pool.outputs])
    for signs, sup in zip(every[::97], best[::97], strict=True):
        program = linprog(-(atoms @ signs) / 10, A_eq=np.ones((1, len(atoms))), b_eq=[1])
        assert -program.fun == pytest.approx(sup, abs=1e-9)


def test_trained_atoms_are_a_lower_estimate():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 1))
    signs = rng.choice([-1.0, 1.0], (30, 12))
    slopes = np.concatenate([-np.logspace(-3, 3, 4000), np.logspace(-3, 3, 4000)])
    best = np.maximum(0, (1.5 * np.tanh(slopes[:, None] * X[:, 0]) @ signs.T / 12).max(0))
    found = suprema(Neuron(), torch.from_numpy(X), signs, bound=1.5)
    assert (found <= best + 1e-3).all()
    assert 0.6 * best.mean() < found.mean() < best.mean()
    estimate = rademacher("neuron", X, bound=1.5, draws=30, random_state=0)
    assert not estimate.exact
    assert "lower estimate" in str(estimate)
    assert estimate.low < estimate.mean < estimate.high == 1.5


def test_draws_repeat_and_differ():
    X = np.random.default_rng(0).normal(size=(15, 2))
    once, again, other = (rademacher(Neuron(max_epochs=5), X, bound=1.0, draws=4, random_state=s) for s in (3, 3, 4))
    assert once == again != other


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bound": [1.0, 2.0]}, "one output"),
        ({"bound": 0.0}, "bound must be"),
        ({"draws": 0}, "draws must be"),
        ({"confidence": 1.0}, "confidence must be strictly"),
        ({"X": np.zeros(3)}, "2D array"),
        ({"X": np.zeros((0, 1))}, "0 sample"),
        ({"X": np.full((10, 1), np.nan)}, "X contains NaN"),
        ({"X": torch.full((10, 1), torch.inf)}, "X contains infinity"),
        ({"basis": Pool(outputs=np.zeros((2, 10, 2)))}, "one output"),
        ({"basis": Pool(functions=[lambda X: np.zeros((len(X), 3))])}, "one output"),
        ({"basis": "oak"}, "unknown basis"),
        ({"basis": "forest"}, "a Forest learns from targets"),
    ],
)
def test_what_has_no_complexity_here_is_refused(change, words):
    asked = {"basis": Pool(outputs=np.zeros((2, 10))), "X": np.zeros((10, 1)), "bound": 1.0} | change
    with pytest.raises(ValueError, match=words):
        rademacher(asked.pop("basis"), asked.pop("X"), **asked)


def test_rows_may_come_in_any_form():
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).normal(size=(15, 2)).round(2)
    frozen = rows.copy()
    frozen.flags.writeable = False
    forms = [rows, rows.tolist(), torch.from_numpy(rows), pandas.DataFrame(rows), np.asfortranarray(rows), frozen]
    found = {rademacher(Neuron(max_epochs=5), X, bound=1.0, draws=4, random_state=3) for X in forms}
    assert len(found) == 1


def test_signs_must_fit_the_rows():
    with pytest.raises(ValueError, match="one sign per row"):
        suprema(Neuron(), torch.zeros(3, 1, dtype=torch.float64), np.ones((2, 4)), bound=1.0)


# Reports.


def regression(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, np.clip(0.6 * np.tanh(2 * X[:, 0]) + 0.2 * rng.normal(size=n), -1, 1)


def classes(n, seed=0):
    X, y = regression(n, seed)
    return X, np.where(y > 0.1, "up", "down")


def fitted(kind=GCERegressor, data=regression, n=60, basis=None, **parameters):
    model = kind(basis=basis or Neuron(max_epochs=20), max_atoms=4, random_state=0, verbose=False, **parameters)
    return model.fit(*data(n))


def test_targets_of_a_data_frame_are_only_read():
    pandas = pytest.importorskip("pandas")
    X, y = regression(60)
    frozen = y.copy()
    frozen.flags.writeable = False
    model = fitted(bound=1.5)
    reports = [str(bound_report(model, X, form, draws=2, random_state=0)) for form in (y, pandas.Series(y), frozen)]
    assert len(set(reports)) == 1


def test_the_training_column_adds_up_to_the_inequality():
    X, y = regression(60)
    model = fitted(bound=1.5)
    report = bound_report(model, X, y, 0.1, draws=8, random_state=0)
    n, m, B = 60, 8, 1.5
    rad = rademacher(Neuron(max_epochs=20), model.table_.transform(X), bound=B, draws=m, random_state=0)
    log = np.log(3 / 0.1)
    risk = np.mean((model.predict(X) - y) ** 2)
    confidence = 3 * (2 * B) ** 2 * np.sqrt(log / (2 * n))
    draws = 2 * 4 * B * B * np.sqrt(2 * log / (m * n))
    expected = [risk, 2 * 4 * B * rad.mean, draws, confidence]
    found = [report.risk, report.complexity, report.draws, report.confidence]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert report.total == pytest.approx(sum(expected))
    assert report.paper is None
    assert report.held_out is None


def test_the_logistic_columns():
    X, y = classes(60)
    X_held_out, y_held_out = classes(40, seed=1)
    model = fitted(GCEClassifier, classes, bound=2.0, temperature=1.0)  # theory speaks of raw scores
    report = bound_report(model, X, y, X_held_out=X_held_out, y_held_out=y_held_out, draws=4, D=1.0, random_state=0)
    reach = abs(model.offset_[0]) + 2
    cost = -np.log(model.predict_proba(X_held_out)[np.arange(40), np.searchsorted(model.classes_, y_held_out)])
    assert report.held_out.risk == pytest.approx(cost.mean())
    assert report.held_out.confidence == pytest.approx(reach * np.sqrt(np.log(20) / 80))
    assert report.width == pytest.approx(reach)
    assert report.lipschitz == 1
    assert cost.max() <= report.largest_loss
    stated = 2 * reach * (np.sqrt(2 * np.log(20)) + np.sqrt(2) + 2) / np.sqrt(60)
    assert report.paper.stated == pytest.approx(stated)  # two columns, two weights: p = 2
    assert report.paper.one_sided < report.paper.stated < report.paper.appendix
    words = " ".join(str(report).split())
    assert "is assumed within" not in words
    # the paper compares with the Bayes function where the loss is phi(f - y) only
    assert "Corollary 3 for D = 1 and pseudodimension 2: for the minimiser f of R_n over the hull" in words
    assert f"R(f) is above R(h*) by at most {report.paper.stated:.4g} as stated" in words
    assert "f*" not in words
    assert report.to_dict()["paper"]["statement"] == "Corollary 3"


def coins(n, seed, columns=10):
    """Targets that no column tells of: every function in [-1, 1] has the risk E|f - y| = 1 exactly."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)), rng.choice([-1.0, 1.0], n)


@pytest.mark.parametrize("seed", range(5))
def test_the_inequality_holds_for_a_pool_fixed_beforehand(seed):
    # offset, bound and pool are given; only the scaling comes from the rows, and the functions are tested as they are.
    # Signs against coins: losses are 0 and 2, their whole range, and the largest gap is half the complexity term
    n, size = 4000, 200
    directions = np.random.default_rng(5).normal(size=(size, 10))
    functions = [lambda X, u=u: np.sign(X @ u) for u in directions]
    X, y = coins(n, seed)
    model = GCERegressor(
        basis=Pool(functions), loss=Power(1.0), bound=1.0, offset=0.0, max_atoms=3, cv=None, random_state=0,
        verbose=False,
    ).fit(X, y)  # fmt: skip
    report = bound_report(model, X, y, draws=20, random_state=seed)
    assert report.rademacher.exact
    assert report.rademacher.mean < np.sqrt(2 * np.log(size + 1) / n)  # Massart's lemma
    rows = model.table_.transform(X)
    gap = 1 - min(np.mean(np.abs(g(rows) - y)) for g in functions)
    assert report.total - report.risk < report.width / 5  # so that it could fail
    assert report.complexity / 4 < gap < report.total - report.risk
    assert report.risk < 1 < report.total
    assert "exact for each draw" in str(report)
    assert "lower estimate" not in str(report)


def test_a_report_says_what_it_is_not():
    X, y = regression(60)
    words = " ".join(str(bound_report(fitted(), X, y, draws=2, random_state=0)).split())
    for phrase in (
        "not a certificate: B, the offset and the scaling of the columns were chosen from these rows",
        "complexity is a lower estimate",
        "averaging 10 members",
        "Early stopping",
        "All targets, future ones included",
        "pass them as X_held_out and y_held_out",
    ):
        assert phrase in words
    given = " ".join(str(bound_report(fitted(bound=2.0, offset=0.0, cv=None), X, y, draws=2)).split())
    assert "not a certificate: the scaling of the columns was chosen" in given
    assert "members" not in given


def test_a_report_warns_of_what_breaks_it():
    X, y = regression(60)
    with pytest.warns(UserWarning, match="the hull cannot reach them"):
        model = fitted(bound=0.3)
    beyond = int((np.abs(y - model.offset_[0]) > 0.3).sum())
    report = bound_report(model, X, y, draws=2, X_held_out=X[:7], y_held_out=y[:7])
    words = " ".join(str(report).split())
    assert f"WARNING: {beyond} of 60 training targets are farther away" in words
    assert "7 of 7 held-out rows are also among the training rows" in words
    assert report.total > report.largest_loss
    assert "is vacuous" in words
    assert "is vacuous" not in str(bound_report(fitted(n=3000, bound=2.0), *regression(3000), draws=2))


def test_a_report_renders():
    X, y = regression(60)
    model = fitted(loss=Power(1.5))
    report = bound_report(model, X, y, X_held_out=X[:5] + 9, y_held_out=y[:5], draws=2, D=2.0, random_state=1)
    text, html = str(report), report._repr_html_()
    assert "|f - y|^1.5" in text
    assert max(map(len, text.splitlines())) <= 88
    assert f"{report.total:.4g}" in text
    assert f"<td>{report.held_out.total:.4g}</td>" in html
    assert "Theorem 2 for D = 2 and pseudodimension 2: R(f) - R(f*) is above R_n(f) - R_n(f*)" in " ".join(text.split())
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["total"] == report.total
    assert plain["held_out"]["total"] == report.held_out.total
    assert plain["rademacher"]["kind"] == "lower estimate"
    assert plain["notes"] == list(report.notes)


def test_the_class_is_the_one_that_was_fitted():
    X, y = regression(60)
    model = fitted(basis=Neural(hidden=3, max_epochs=2))
    longer = bound_report(model, X, y, draws=4, random_state=0, oracle=Neural(max_epochs=300, patience=50))
    assert longer.complexity > 1.5 * bound_report(model, X, y, draws=4, random_state=0).complexity
    assert basis_of(model, Neural()).hidden == 3
    model = fitted(basis=Neural(max_epochs=2))
    assert basis_of(model).hidden == 10
    assert model.basis.hidden is None
    assert basis_of(fitted()).get_params() == Neuron(max_epochs=20).get_params()


@pytest.mark.parametrize("loss", ["quantile", PseudoHuber(1.0)], ids=["quantile", "pseudo_huber"])
def test_other_losses_are_refused(loss):
    X, y = regression(60)
    with pytest.raises(ValueError, match=r"not possible.*squared error.*logistic"):
        bound_report(fitted(loss=loss), X, y)


def test_several_outputs_are_refused():
    X, y = regression(60)
    two = np.stack([y, -y], 1)
    model = GCERegressor(basis="neuron", max_atoms=2, random_state=0, verbose=False).fit(X, two)
    with pytest.raises(ValueError, match="one output only"):
        bound_report(model, X, two)
    three = np.digitize(y, [-0.2, 0.2])
    model = GCEClassifier(basis="neuron", max_atoms=2, random_state=0, verbose=False).fit(X, three)
    with pytest.raises(ValueError, match=r"not possible.*CrossEntropy"):
        bound_report(model, X, three)


class WithoutBasis(GCERegressor):
    def get_params(self, deep=True):
        return {name: value for name, value in super().get_params(deep).items() if name != "basis"}


def test_a_model_without_a_basis_takes_an_oracle():
    X, y = regression(60)
    model = fitted(basis=Neural(hidden=3, max_epochs=2))
    expected = bound_report(model, X, y, draws=3, random_state=0)
    model.__class__, model._result = WithoutBasis, replace(model.result_, bases={})
    with pytest.raises(ValueError, match="pass oracle="):
        bound_report(model, X, y)
    again = bound_report(model, X, y, draws=3, random_state=0, oracle=Neural(max_epochs=2))
    assert again.total == pytest.approx(expected.total)


def test_an_unbounded_model_is_refused():
    X, y = regression(60)
    model = fitted()
    ensemble = deepcopy(model.ensemble_)
    ensemble.bound[0] = np.inf
    model._result = replace(model.result_, ensemble=ensemble)
    with pytest.raises(ValueError, match="bounded hull only"):
        bound_report(model, X, y)


def test_bad_input_is_refused():
    X, y = regression(60)
    model = fitted()
    for arguments, words in [
        ({"delta": 0.0}, "delta must be strictly"),
        ({"draws": 0}, "draws must be"),
        ({"X_held_out": X}, "together"),
        ({"y": np.stack([y, y], 1)}, "2 columns"),
        ({"y": y[:-1]}, "inconsistent"),
    ]:
        with pytest.raises(ValueError, match=words):
            bound_report(model, **({"X": X, "y": y} | arguments))
    with pytest.raises(NotFittedError):
        bound_report(GCERegressor(), X, y)


def test_the_held_out_bound_holds_as_often_as_it_says():
    # a sign that is wrong two times in five: losses are 0 and 2, the ends of their range, and the risk is 0.8
    def flipped(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.choice([-1.0, 1.0], (n, 1))
        return X, np.where(rng.random(n) < 0.4, -X[:, 0], X[:, 0])

    model = GCERegressor(
        basis=Pool([lambda X: np.sign(X[:, 0])]), loss=Power(1.0), bound=1.0, offset=0.0, max_atoms=2, cv=None,
        random_state=0, verbose=False,
    ).fit(*flipped(200, 1))  # fmt: skip
    delta, m = 0.01, 40
    X, y = flipped(20_000 * m, 7)
    cost = np.abs(model.predict(X) - y)
    report = bound_report(model, *flipped(200, 1), delta, draws=1, X_held_out=X[:m], y_held_out=y[:m])
    means = cost.reshape(-1, m).mean(1)
    assert report.held_out.risk == pytest.approx(means[0])
    missed, by_half = ((means + part * report.held_out.confidence < 0.8).mean() for part in (1, 0.5))
    assert 0 < missed <= delta < by_half


def test_the_example_of_the_docs_prints_what_is_shown(capsys):
    page = (Path(__file__).parents[1] / "docs" / "theory.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```\n", page, re.S)
    assert len(blocks) == page.count("```python")
    for program, shown in blocks:
        exec(program, {})
        # numbers differ in their last digits from machine to machine, and with them where lines break
        printed, expected = (re.sub(r"\d[\d.]*", "#", text).split() for text in (capsys.readouterr().out, shown))
        assert printed == expected
