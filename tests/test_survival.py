"""Survival analysis: likelihoods and baselines against direct computations, files, and bad input."""

import io
import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from typer.testing import CliRunner

import gce
from gce import GCESurvival
from gce.bases import Forest, Pool
from gce.cli.app import app
from gce.inspection import concordance, concordance_index
from gce.losses import Hazards
from gce.preprocessing.survival import nelson_aalen, read_survival
from gce.training.survival import SurvivalTarget, breslow

LOSSES = ["cox", "hazards"]


def some(n=120, seed=0, ties=False):
    """Rows whose hazard is exp of the first column, and their events and times."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    time = rng.exponential(np.exp(-X[:, 0])) + 0.01
    time = np.ceil(4 * time) if ties else time
    event = rng.random(n) < 0.7
    event[0] = True
    return X, np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])


def small(**more):
    return GCESurvival(**{"basis": "tree", "max_atoms": 5, "cv": 3, "random_state": 0} | more)


def brute_force(y, risk, weight):
    good = pairs = 0.0
    for i, (first, t) in enumerate(y):
        for j, (second, s) in enumerate(y):
            if first and (t < s or (t == s and not second)) and i != j:
                pairs += weight[i] * weight[j]
                good += weight[i] * weight[j] * ((risk[i] > risk[j]) + (risk[i] == risk[j]) / 2)
    return good / pairs if pairs else 0.5


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), ties=st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_concordance_is_the_share_of_pairs(seed, n, ties):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 6, n).astype(float) if ties else rng.random(n) + 0.1
    y = np.column_stack([rng.random(n) < 0.6, time])
    risk = rng.integers(0, 4, n).astype(float)
    weight = rng.integers(0, 3, n).astype(float) + 0.5
    assert concordance_index(y, risk) == pytest.approx(brute_force(y, risk, np.ones(n)), abs=1e-12)
    assert concordance_index(y, risk, weight) == pytest.approx(brute_force(y, risk, weight), abs=1e-12)


def test_the_cumulative_hazard_of_all_rows_is_the_sum_of_events_by_rows_at_risk():
    _, y = some(ties=True)
    times, hazard = nelson_aalen(read_survival(y))
    for t, found in zip(times, hazard, strict=True):
        before = [s for s in times if s <= t]
        events = [(y["event"] & (y["time"] == s)).sum() / (y["time"] >= s).sum() for s in before]
        assert found == pytest.approx(sum(events), rel=1e-12)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_the_scale_of_time_counts_weighted_rows_as_repeated_ones(seed, n):
    rng = np.random.default_rng(seed)
    y = np.column_stack([rng.random(n) < 0.6, rng.integers(1, 30, n)]).astype(float)
    y[0, 0] = 1
    weight = rng.integers(1, 5, n).astype(float)
    repeated = np.repeat(y, weight.astype(int), axis=0)
    for loss in LOSSES:
        one, learned, _ = SurvivalTarget.learn(y, loss, weight)
        two, again, _ = SurvivalTarget.learn(repeated, loss, np.ones(len(repeated)))
        np.testing.assert_array_equal(one.times, two.times)
        np.testing.assert_array_equal(one.scale, two.scale)
        assert one.loss.ends == two.loss.ends
        np.testing.assert_array_equal(np.repeat(learned, weight.astype(int), axis=0), again)
    # by the definition, and in any unit
    for unit in (1.0, 0.3, 7.0):
        times, scale = nelson_aalen(y, unit * weight)
        for t, found in zip(times, scale, strict=True):
            jumps = (weight[(y[:, 0] > 0) & (y[:, 1] == s)].sum() / weight[y[:, 1] >= s].sum() for s in times if s <= t)
            assert found == pytest.approx(sum(jumps), rel=1e-12)


def test_intervals_of_hazards_end_at_quantiles_of_the_events():
    rng = np.random.default_rng(4)
    for n in (3, 40, 77, 400):
        y = np.column_stack([rng.random(n) < 0.7, rng.exponential(size=n) + 0.01])
        y[0, 0] = 1
        target, encoded, _ = SurvivalTarget.learn(y, "hazards", np.ones(n))
        events = encoded[y[:, 0] > 0, 0]
        intervals = min(10, max(2, len(events) // 10))
        ends = np.unique(np.quantile(events, np.arange(1, intervals + 1) / intervals, method="higher"))
        np.testing.assert_array_equal(target.loss.ends, ends)


def test_events_of_next_to_no_weight_do_not_stop_the_scale_from_increasing(tmp_path):
    X, y = some(60)
    weight = np.where(np.arange(60) % 2, 1e-80, 1.0)
    model = small().fit(X, y, sample_weight=weight)
    assert (np.diff(model.result_.target.scale) > 0).all()
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(gce.load(tmp_path / "model.safetensors").predict(X), model.predict(X))


def test_many_times_of_events_are_thinned_and_the_last_is_kept():
    y = np.column_stack([np.ones(3000), np.arange(1, 3001)])
    times, hazard = nelson_aalen(y)
    assert len(times) == len(hazard) == 1000
    assert times[-1] == 3000
    assert hazard[-1] == pytest.approx((1 / np.arange(1, 3001)).sum())


@pytest.mark.parametrize("ends", [(3.0,), (0.4, 1.0, 3.0)])
def test_breslow_divides_events_by_the_hazards_at_risk(ends):
    rng = np.random.default_rng(3)
    time = rng.integers(1, 12, 40) / 4
    signed = np.where(rng.random(40) < 0.6, time, -time)
    weight, hazards, loss = rng.random(40) + 0.1, rng.random((40, len(ends))) + 0.1, Hazards(ends)
    at = np.unique(time)
    for t, found in zip(at, breslow(signed, weight, hazards, loss, at), strict=True):
        total = 0.0
        for i in np.flatnonzero((signed > 0) & (time <= t)):
            j = np.searchsorted(ends[:-1], time[i])
            total += weight[i] / (weight * hazards[:, j])[time >= time[i]].sum()
        assert found == pytest.approx(total, rel=1e-12)


def test_the_likelihood_with_breslows_baseline_is_cox_partial_likelihood():
    """Profiled over the jumps of the baseline, the likelihood of two scores differs as the partial likelihood does."""
    rng = np.random.default_rng(1)
    time, event = rng.permutation(30) + 1.0, rng.random(30) < 0.7

    def partial(f):
        return sum(f[i] - np.log(np.exp(f[time >= time[i]]).sum()) for i in np.flatnonzero(event))

    def profiled(f):
        signed, at = np.where(event, time, -time), np.sort(time[event])
        steps = np.diff(breslow(signed, np.ones(30), np.exp(f)[:, None], Hazards((40.0,)), at), prepend=0)
        H = np.array([steps[at <= t].sum() for t in time])
        jump = dict(zip(at, steps, strict=True))
        return sum(f[i] + np.log(jump[time[i]]) for i in np.flatnonzero(event)) - (H * np.exp(f)).sum()

    f, g = rng.normal(size=(2, 30))
    assert profiled(f) - profiled(g) == pytest.approx(partial(f) - partial(g), rel=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_weights_of_a_pool_are_those_of_an_independent_solver(loss):
    X, y = some(80)
    shares = np.array([1.0]) if loss == "cox" else np.array([1.0, -0.5])
    functions = [lambda X, j=j: np.tanh(X[:, j : j + 1]) * shares for j in range(3)]
    model = GCESurvival(
        loss=loss, basis=Pool(functions=functions), validation_fraction=None, cv=None, tol=1e-10, bound=2.0,
        algorithm="pairwise", n_iter_no_change=None, max_iter=3000,
    ).fit(X, y)  # fmt: skip
    rows = model.encode_rows(X).numpy()
    outputs = torch.from_numpy(np.stack([one(rows) for one in functions]))
    target = torch.from_numpy(model.result_.target.encode(y))

    def risk(weights):
        pred = torch.from_numpy(model.offset_) + torch.einsum("a,ank->nk", torch.from_numpy(weights), outputs)
        return float(model.loss_.value(pred, target).mean())

    found = float(model.loss_.value(model.raw_predict(X), target).mean())
    # the offset alone is in the hull too
    inside = {"type": "ineq", "fun": lambda w: 1 - w.sum()}
    best = minimize(risk, np.full(3, 0.2), bounds=[(0, 1)] * 3, constraints=[inside], options={"ftol": 1e-14})
    assert found == pytest.approx(best.fun, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_survival_falls_from_one_and_the_risk_orders_it(loss):
    X, y = some(200)
    model = small(loss=loss, max_atoms=20).fit(X, y)
    survival = model.predict_survival_function(X)
    assert survival.shape == (200, len(model.event_times_))
    assert ((survival > 0) & (survival <= 1)).all()
    assert (np.diff(survival, axis=1) <= 0).all()
    np.testing.assert_allclose(model.predict_survival_function(X, times=[0.0]), 1)
    hazard = model.predict_cumulative_hazard_function(X)
    np.testing.assert_allclose(np.exp(-hazard), survival, rtol=1e-12)
    last = model.predict_survival_function(X, times=[model.event_times_[-1], 1e9])
    np.testing.assert_array_equal(last[:, 0], last[:, 1])
    assert model.score(X, y) == concordance_index(y, model.predict(X)) > 0.65
    if loss == "cox":
        order = np.argsort(model.predict(X))
        assert (np.diff(hazard[order, -1]) >= 0).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_expected_number_of_events_is_the_number_of_events(loss):
    """Breslow's baseline of held-out rows: the cumulative hazards of these rows sum to their events."""
    X, y = some(150)
    model = small(loss=loss, cv=None, validation_fraction=None, max_atoms=3).fit(X, y)
    expected = sum(
        model.predict_cumulative_hazard_function(X[i : i + 1], times=[y["time"][i]])[0, 0] for i in range(len(X))
    )
    # censored rows count the part of the step that they reached
    assert expected == pytest.approx(y["event"].sum(), rel=0.05)


def test_a_row_has_the_same_bits_alone():
    X, y = some()
    for loss in LOSSES:
        model = small(loss=loss).fit(X, y)
        alone = np.vstack([model.predict_survival_function(row[None]) for row in X[:7]])
        np.testing.assert_array_equal(alone, model.predict_survival_function(X)[:7])


def test_targets_in_any_form_are_the_same():
    X, y = some()
    expected = small().fit(X, y).predict(X)
    columns = np.column_stack([y["event"], y["time"]])
    frame = pd.DataFrame({"died": y["event"], "days": y["time"]})
    for given_y in (columns, columns.tolist(), frame):
        np.testing.assert_array_equal(small().fit(X, given_y).predict(X), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("resumable", [False, True])
def test_files_keep_every_bit(loss, resumable, tmp_path):
    X, y = some()
    model = small(loss=loss).fit(X, y)
    model.save(tmp_path / "model.safetensors", resumable=resumable)
    read = gce.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    np.testing.assert_array_equal(read.predict_survival_function(X), model.predict_survival_function(X))
    assert read.score(X, y) == model.score(X, y)
    assert repr(read.loss_) == repr(model.loss_)


@pytest.mark.parametrize("loss", LOSSES)
def test_onnx_has_the_risk_and_the_survival_at_the_times_of_events(loss):
    X, y = some()
    model, file = small(loss=loss).fit(X, y), io.BytesIO()
    model.to_onnx(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    risk, survival = session.run(["variable", "survival"], {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(risk[:, 0], model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(survival, model.predict_survival_function(X), rtol=1e-12)
    assert json.loads(session.get_modelmeta().custom_metadata_map["times"]) == model.event_times_.tolist()


def test_a_checkpoint_and_a_warm_start_go_on(tmp_path):
    X, y = some()
    whole = small(max_atoms=6).fit(X, y)
    small(max_atoms=3).fit(X, y, checkpoint=tmp_path / "folder")
    resumed = small(max_atoms=6).fit(X, y, checkpoint=tmp_path / "folder")
    np.testing.assert_array_equal(resumed.predict_survival_function(X), whole.predict_survival_function(X))
    warm = small(max_atoms=3, warm_start=True).fit(X, y)
    assert warm.set_params(max_atoms=6).fit(X, y).n_iter_ == whole.n_iter_


def test_scorers_grids_and_clones():
    X, y = some()
    model = clone(small(scoring=concordance, n_iter_no_change=2)).fit(X, y)
    assert concordance(model, X, y) == model.score(X, y)
    assert all(0 >= entry["validation"] >= -1 for entry in model.history_)
    X, y = some(300)
    search = GridSearchCV(small(), {"loss": LOSSES}, scoring=concordance, cv=2).fit(X, read_survival(y))
    assert 0.6 < search.best_score_ < 1


def test_edits_keep_a_baseline():
    X, y = some()
    model = small(max_atoms=8).fit(X, y)
    for other in (model.prune(3, X=X, y=y), model.reweight(X, y), model.prune(3, X=X)):
        survival = other.predict_survival_function(X)
        assert survival.shape == (120, len(model.event_times_))
        assert other.score(X, y) > 0.6
    with pytest.raises(ValueError, match="not on the scale of the predictions"):
        model.add("other", model, X, y)


def test_rows_for_validation_have_events_and_times_too():
    X, y = some(200)
    model = small(cv="auto").fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    assert model.score(X[150:], y[150:]) > 0.6


def test_forests_predict_events_by_time_at_risk():
    X, y = some(150)
    model = small(basis=Forest(n_estimators=10, min_samples_leaf=5)).fit(X, y)
    assert model.score(X, y) > 0.7
    with pytest.raises(ValueError, match="a Forest predicts means"):
        small(loss="hazards", basis="forest").fit(X, y)


def test_a_monotone_hazard_rises_everywhere():
    X, y = some(150)
    model = small(monotonic_cst=[1, 0, 0], max_atoms=20).fit(X, y)
    grid = np.column_stack([np.linspace(-3, 3, 50), np.zeros(50), np.zeros(50)])
    assert (np.diff(model.predict(grid)) >= 0).all()
    with pytest.raises(ValueError, match="proportional"):
        small(loss="hazards", monotonic_cst=[1, 0, 0]).fit(X, y)


def test_one_time_of_events_is_enough():
    X, y = some(40)
    y["time"] = 2.0
    for loss in LOSSES:
        assert small(loss=loss).fit(X, y).predict_survival_function(X).shape == (40, 1)


BAD = {
    "flags": ([[2.0, 1.0], [0.0, 2.0]], "True or False .* but has 2"),
    "words": ([["yes", 1.0], ["no", 2.0]], "holds 'yes'"),
    "negative": ([[1.0, -3.0], [0.0, 2.0]], "positive and finite, but y has -3"),
    "zero": ([[1.0, 0.0], [0.0, 2.0]], "positive and finite, but y has 0"),
    "infinite": ([[1.0, np.inf], [0.0, 2.0]], "positive and finite, but y has inf"),
    "missing": ([[1.0, np.nan], [0.0, 2.0]], "missing values"),
    "no event": ([[0.0, 1.0], [0.0, 2.0]], "no event in rows of positive weight, only 2 censored times"),
    "one column": ([1.0, 2.0], "two columns"),
    "swapped": ([[5.0, 1.0], [2.0, 0.0]], "but has 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_targets_are_refused_in_one_sentence(name):
    y, words = BAD[name]
    with pytest.raises(ValueError, match=words):
        small().fit(np.zeros((2, 3)), np.array(y) if name != "words" else np.array(y, dtype=object))


def test_bad_times_and_losses_are_refused():
    X, y = some()
    with pytest.raises(ValueError, match="loss"):
        small(loss="weibull").fit(X, y)
    with pytest.raises(ValueError, match="times must not be negative, got -1"):
        small().fit(X, y).predict_survival_function(X, times=[-1.0])
    with pytest.raises(ValueError, match="needs at least 3 intervals"):
        Hazards((1.0, 2.0), degree=2).value(torch.zeros(1, 3), torch.zeros(1, 3))
    with pytest.raises(ValueError, match="risks must be finite"):
        concordance_index(y, np.full(len(y), np.nan))


def test_learned_times_go_there_and_back():
    _, y = some()
    target, encoded, _ = SurvivalTarget.learn(y, "hazards", np.ones(len(y)))
    back = target.decode(encoded)
    known = y["time"] <= target.times[-1]
    np.testing.assert_array_equal(back[:, 0], y["event"])
    np.testing.assert_allclose(back[known, 1], y["time"][known], rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_report_has_the_concordance_and_a_picture(loss, tmp_path):
    X, y = some()
    model = small(loss=loss).fit(X, y)
    model.report(tmp_path / "page.html", X, y)
    page = (tmp_path / "page.html").read_text()
    assert f'data-value="{model.score(X, y)!r}"' in page
    assert "times until an event" in page
    assert page.count('data-label="highest risks"') == 1


def test_the_command_line_knows_the_task(tmp_path):
    X, y = some()
    frame = pd.DataFrame(X, columns=list("abc"))
    small().fit(frame, y).save(tmp_path / "model.safetensors")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    run = CliRunner().invoke
    shown = run(app, ["inspect", str(tmp_path / "model.safetensors")])
    assert "GCESurvival, survival" in shown.output
    asked = ["predict", str(tmp_path / "model.safetensors"), str(tmp_path / "rows.csv")]
    assert run(app, asked).output.startswith("prediction\n")
    assert "predicts risks" in run(app, [*asked, "--interval", "0.9"]).output


@pytest.mark.parametrize("events", [0, 4])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_baseline_is_that_of_the_training_rows_where_few_events_are_held_out(events, loss):
    X, y = some()
    y["event"][90 + events :] = False
    y["event"][90 : 90 + events] = True
    model = small(loss=loss, cv=[(np.arange(90), np.arange(90, 120))]).fit(X, y)
    target = model.result_.target
    signed = target.encode(y[:90])[:, 0]
    hazards = model.loss_.hazards(model.raw_predict(X[:90])).numpy()
    np.testing.assert_allclose(model.baseline_, breslow(signed, np.ones(90), hazards, model.loss_, target.scale))
    last = model.predict_survival_function(X, model.event_times_[-1:])
    assert (last < 1).all()


def test_the_baseline_is_that_of_the_held_out_rows_where_they_have_events():
    X, y = some()
    y["event"][90:95] = True
    model = small(cv=[(np.arange(90), np.arange(90, 120))]).fit(X, y)
    target = model.result_.target
    hazards = model.loss_.hazards(model.raw_predict(X[90:])).numpy()
    expected = breslow(target.encode(y[90:])[:, 0], np.ones(30), hazards, model.loss_, target.scale)
    np.testing.assert_allclose(model.baseline_, expected)


def test_an_edit_keeps_the_baseline_where_few_events_are_held_out():
    X, y = some()
    model = small().fit(X, y)
    few = np.concatenate([np.flatnonzero(y["event"])[:4], np.flatnonzero(~y["event"])])
    np.testing.assert_array_equal(model.reweight(X[few], y[few]).baseline_, model.baseline_)
    assert (model.reweight(X, y).baseline_ != model.baseline_).any()


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_for_validation_may_all_be_censored_but_not_those_that_are_learned_from(loss):
    X, y = some()
    y["event"][90:] = False
    model = small(loss=loss, cv="auto").fit(X[:90], y[:90], X_val=X[90:], y_val=y[90:])
    target = model.result_.target
    hazards = model.loss_.hazards(model.raw_predict(X[:90])).numpy()
    expected = breslow(target.encode(y[:90])[:, 0], np.ones(90), hazards, model.loss_, target.scale)
    np.testing.assert_allclose(model.baseline_, expected)
    for learn in (small(loss=loss).fit, model.reweight):
        with pytest.raises(ValueError, match="y has no event in rows of positive weight, only 30 censored times"):
            learn(X[90:], y[90:])
