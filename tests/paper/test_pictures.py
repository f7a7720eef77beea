"""Figure 1 on made-up rows: the curves, the verdicts, and runs that resume."""

import numpy as np
import pytest

from gce import GCERegressor
from gce.bases import Neuron
from paper.figure1 import __main__ as command
from paper.figure1 import claims
from paper.figure1.curves import ALGORITHM_NAMES, curves
from paper.figure1.panels import Panel, Sample, absent, drawn, panels
from paper.figure1.report import complete, key_of, page, write
from paper.ledger import Ledger
from paper.rounded import markdown, number, rounded, spread


def sample(seed=0, n=30):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 12, 3))
    y = 3 + np.tanh(X @ [1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=n + 12)
    return Sample(X[:n], y[:n], X[n:], y[n:], available=2 * n)


def panel(centre="mean", there=True, main=True):
    basis = Neuron(learning_rate=0.2, max_epochs=15)
    return Panel("made up", sample, lambda: there, basis, "single neurons", centre, 30, main)


@pytest.mark.parametrize("algorithm", ALGORITHM_NAMES)
def test_training_error_never_rises(algorithm):
    found = curves(panel(), sample(), algorithm, modules=6, seeds=3)
    train = np.asarray(found["train"])
    assert train.shape == np.asarray(found["test"]).shape == (3, 6)
    assert np.all(np.diff(train, axis=1) <= 1e-5 * train[:, :1])
    assert len({tuple(row) for row in train.tolist()}) == 3  # the seeds differ


def test_test_rows_leave_no_trace_in_training():
    data = sample()
    other = Sample(data.X, data.y, data.X_test + 1, data.y_test - 5, available=60)
    one, two = (curves(panel(), rows, "pairwise", modules=4, seeds=2) for rows in (data, other))
    assert one["train"] == two["train"]
    assert one["test"] != two["test"]


def test_the_first_module_is_the_estimators():
    """Seeds differ, but an oracle at its plateau finds the same neuron, and the exact search the same step."""
    data, basis = sample(), Neuron(learning_rate=0.2, max_epochs=2000)
    X = (data.X - data.X.mean(0)) / data.X.std(0)
    strong = Panel("made up", sample, lambda: True, basis, "", "mean", 30)
    found = curves(strong, Sample(X, data.y, data.X_test, data.y_test, available=30), "pairwise", modules=1, seeds=3)
    told = {"cv": None, "validation_fraction": None, "n_iter_no_change": None, "tol": 0.0, "max_atoms": 1}
    model = GCERegressor(basis=basis, scale="each", clip=None, random_state=0, **told).fit(X, data.y)
    error = np.mean((model.predict(X) - data.y) ** 2)
    assert min(row[0] for row in found["train"]) == pytest.approx(error, rel=0.02)


def test_the_centre_is_used():
    """Targets lie around 3, where odd functions around 0 cannot follow."""
    around_zero, around_mean = (
        curves(panel(centre), sample(), "pairwise", modules=5, seeds=1)["train"][0][-1] for centre in ("zero", "mean")
    )
    assert around_mean < 0.5 < around_zero


def test_a_second_run_repeats_nothing(tmp_path, monkeypatch):
    plan, calls = [panel("zero"), panel("mean", main=False)], []

    def counted(*arguments):
        calls.append(arguments)
        return curves(*arguments)

    monkeypatch.setattr(command, "curves", counted)
    path = tmp_path / "figure1.jsonl"
    command.run(plan, Ledger(path), modules=3, seeds=2)
    assert len(calls) == 8
    lines = path.read_text().splitlines(keepends=True)
    command.run(plan, Ledger(path), modules=3, seeds=2)
    assert len(calls) == 8
    path.write_text("".join(lines[:5]) + lines[5][:40])  # killed while the sixth was written
    command.run(plan, Ledger(path), modules=3, seeds=2)
    assert len(calls) == 8 + 3
    drawn_ = complete(plan, Ledger(path), 3, 2)
    write(drawn_, ["elsewhere"], tmp_path)
    text = (tmp_path / "figure1.md").read_text()
    assert all(one.title in text for one in plan)
    assert "elsewhere" in text
    for name in ("figure1.png", "figure1_more.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_absent_data_are_named_and_not_run(tmp_path):
    plan = [panel(there=False)]
    command.run(plan, Ledger(tmp_path / "ledger.jsonl"), modules=2, seeds=1)
    assert not (tmp_path / "ledger.jsonl").exists()
    assert absent(plan) == ["made up"]


def test_settings_are_part_of_the_key():
    stronger = Panel("made up", sample, lambda: True, Neuron(max_epochs=16), "single neurons", "mean", 30)
    assert key_of(panel(), "away", 3, 2) != key_of(stronger, "away", 3, 2)


def test_the_plan_is_the_papers(monkeypatch):
    monkeypatch.setattr("gce.datasets.present", lambda name: name == "msd")
    assert {one.data for one in panels() if one.main} == {"msd"}
    monkeypatch.setattr("gce.datasets.present", lambda name: False)
    plan = panels()
    assert {one.data for one in plan if one.main} == {"protein", "ca_housing"}
    titles = [one.title for one in plan]
    assert len(set(titles)) == len(titles)
    assert any("nets of 10 units" in title for title in titles)


def test_rows_are_drawn_once_each():
    rows = np.arange(50.0)
    some = drawn(20, rows[:, None], rows, rows[:3, None], rows[:3])
    assert len(set(some.y)) == 20
    assert np.array_equal(some.X[:, 0], some.y)
    assert some.available == 50


def errors(**means):
    noise = np.array([-0.1, 0.0, 0.1])
    return {name.replace("_", "-"): value + noise * (1 if i else 1.5) for i, (name, value) in enumerate(means.items())}


PAPER = errors(nonlinear=9.0, frank_wolfe=6.0, away=5.0, pairwise=3.0)
CONTRARY = errors(nonlinear=2.0, frank_wolfe=6.0, away=5.0, pairwise=7.0)
TIED = {**PAPER, "away": PAPER["pairwise"] + np.array([0.3, -0.3, 0.01])}


def test_claims_are_shown_refuted_and_left_open():
    assert [claims.verdict(claim, PAPER) for claim in claims.CLAIMS] == ["shown", "shown"]
    assert [claims.verdict(claim, CONTRARY) for claim in claims.CLAIMS] == ["refuted", "refuted"]
    assert claims.verdict("pairwise best", TIED) == "undecided"
    assert claims.ordering(CONTRARY) == ["nonlinear", "away", "frank-wolfe", "pairwise"]


def test_one_better_algorithm_is_enough_to_refute():
    one = {**PAPER, "away": PAPER["pairwise"] - 1}
    assert claims.verdict("pairwise best", one) == "refuted"
    assert claims.verdict("nonlinear greedy slowest", one) == "shown"


def test_a_single_seed_makes_nothing_clear():
    single = {name: values[:1] for name, values in PAPER.items()}
    assert claims.verdict("pairwise best", single) == "undecided"


def test_few_seeds_ask_for_more_than_two_standard_errors():
    # differences of mean 1 and standard error 0.4: t = 2.5, which 5 seeds do not call clear and 30 do
    apart = np.array([-1.0, 1.0])
    for seeds, verdict in ((5, "undecided"), (30, "shown")):
        noise = np.resize(apart, seeds)
        noise = (noise - noise.mean()) / noise.std(ddof=1) * 0.4 * np.sqrt(seeds)
        errors = {name: np.zeros(seeds) for name in PAPER}
        errors["pairwise"] = noise - 1
        assert claims.verdict("pairwise best", errors) == verdict


def test_verdicts_of_several_counts_in_a_word():
    curves_ = {name: np.stack([CONTRARY[name], PAPER[name]], axis=1) for name in PAPER}
    found = claims.verdicts("pairwise best", curves_, [1, 2])
    assert found == ["refuted", "shown"]
    assert claims.in_all(found) == "mixed"
    assert claims.in_all(["undecided", "shown"]) == "in part"
    assert claims.in_all(["refuted", "undecided"]) == "not shown"
    assert claims.in_all(["refuted"] * 3) == "refuted"


def test_when_one_curve_stays_below_another():
    rows = {"a": np.array([[3.0, 1.0, 2.0, 1.0]]), "b": np.array([[2.0, 2.0, 2.0, 2.0]])}
    assert claims.ahead_from("a", "b", rows) == 4
    assert claims.ahead_from("b", "a", rows) is None
    assert claims.ahead_from("a", "c", {**rows, "c": np.full((1, 4), 9.0)}) == 1


def test_a_page_says_what_made_up_curves_show(tmp_path):
    one = panel()
    ledger = Ledger(tmp_path / "figure1.jsonl")
    facts = {"used": [1], "rows": 30, "available": 30, "test_rows": 5, "columns": 3, "mean_squared_deviation": 1.0}
    for name in ALGORITHM_NAMES:
        value = np.repeat(PAPER[name][:, None], 10, axis=1).tolist()
        result = {"train": value, "test": value, **facts, "seconds": 1.0}
        ledger.once(key_of(one, name, 10, 3), lambda result=result: result)
    text = page(complete([one], ledger, 10, 3), [])
    assert "*pairwise best*, at 10 modules: 1 shown of 1 (main panels: 1 shown of 1)" in text
    assert "pairwise < away-step < Frank-Wolfe < nonlinear greedy" in text


def test_bad_arguments_are_refused(capsys):
    for wrong in (["--modules", "0"], ["--only", "nowhere"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
    assert "nowhere" in capsys.readouterr().err


def test_numbers_are_rounded_all_the_way_down():
    assert rounded({"a": [1.23456789, np.float64(12345678.9)], "b": (np.int64(3), None, "x")}) == {
        "a": [1.23457, 12345700.0],
        "b": [3, None, "x"],
    }
    assert spread([1.0, 2.0, 3.0]) == "2.000 ± 1.0"
    assert spread([3000.0, 3800.0]) == "3400 ± 570"
    assert [number(value, 2) for value in (0.0, 0.0123, -123.0, 9.99, 2e-7, 3e8)] == [
        "0", "0.012", "-120", "10", "2.0e-07", "3.0e+08",
    ]  # fmt: skip
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---:|\n| 1 | 2 |"
