"""A short form of the campaign of odd inputs, and what its oracle notices."""

import signal
import warnings

import numpy as np
import pytest

from campaign import inputs
from campaign.inputs_oracle import OWN, FaultError, Refused, check_predictions, check_probabilities, watched
from campaign.inputs_uses import check_onnx, check_saved, check_score
from campaign.inputs_words import mentioned, named
from campaign.outcomes import tallied
from gce import GCERegressor


def test_odd_inputs_end_in_a_finite_prediction_or_in_words(tmp_path):
    tally = tallied(inputs.outcomes(range(120), 0, tmp_path))
    assert tally.faults == []
    assert tally.cases == 120
    finite = sum(count for kind, count in tally.held.items() if "finite" in kind)
    assert finite >= tally.cases / 5


def raised(error):
    def call():
        raise error

    return call


def test_a_prediction_that_is_not_a_number_is_noticed():
    with pytest.raises(FaultError, match="1 of 2 values are not finite"):
        check_predictions("predict", np.array([0.0, np.nan]), 2)
    with pytest.raises(FaultError, match="shape"):
        check_predictions("predict", np.zeros(3), 2)
    with pytest.raises(FaultError, match="sums"):
        check_probabilities("predict_proba", np.array([[0.5, 0.6]]), 1, True)


def test_many_warnings_and_those_of_numpy_are_noticed():
    def flood():
        for i in range(4):
            warnings.warn(f"this is warning {i} of a flood", UserWarning, stacklevel=1)

    with pytest.raises(FaultError, match="4 warnings"):
        watched("fit", flood)
    with pytest.raises(FaultError, match="RuntimeWarning"):
        watched("fit", lambda: np.exp(np.float64(1e4)))


@pytest.mark.parametrize(
    "error", [IndexError("list index out of range"), KeyError(0), ZeroDivisionError(), AssertionError()]
)
def test_an_internal_exception_is_noticed(error):
    with pytest.raises(FaultError, match=type(error).__name__):
        watched("fit", raised(error))


def test_an_exception_of_a_library_below_is_noticed():
    with pytest.raises(FaultError, match="raised outside of validation"):
        watched("fit", lambda: np.zeros((2, 2)) @ np.zeros((3, 3)))
    with pytest.raises(FaultError, match="names no path, package or size"):
        watched("fit", raised(OSError("it did not work out")))


def test_a_folder_with_the_name_of_the_package_is_not_the_package():
    code = compile("raise ValueError('three words suffice')", "/home/gce/gce/tests/own.py", "exec")
    with pytest.raises(FaultError, match="raised outside of validation"):
        watched("fit", lambda: exec(code))


def test_an_error_must_name_the_value_or_the_parameter():
    with pytest.raises(Refused, match="max_iter must be an integer of at least 1, got 0"):
        watched("fit", lambda: GCERegressor(max_iter=0).fit([[0.0], [1.0]], [0.0, 1.0]), ("max_iter", "0"))
    with pytest.raises(FaultError, match="names none of"):
        watched("fit", lambda: GCERegressor(max_iter=0).fit([[0.0], [1.0]], [0.0, 1.0]), ("tol", "None"))


def test_a_name_is_a_whole_word_and_its_value_is_shown():
    assert not named("maximum of every row", ("X", "y", "row s"))
    assert named("X has 0 rows", ("X",))
    mentions = mentioned({"max_iter": -3})
    assert named("max_iter must be an integer of at least 1, got -3", mentions)
    assert not named("max_iter must be an integer of at least 1", mentions)
    assert not named("tol must be at least 0, got -3", mentions)
    assert named("names must be short", mentioned({"names": "a" * 100}))


def test_types_and_words_of_other_libraries_are_judged():
    with pytest.raises(FaultError, match="UFunc"):
        watched("fit", lambda: np.add("a", np.timedelta64(1)))
    code = compile("raise ValueError('X is \x1b[2J and no more')", f"{OWN}words.py", "exec")
    with pytest.raises(FaultError, match="not a sentence"):
        watched("fit", lambda: exec(code))
    code = compile("raise ValueError('unhashable type: dict')", "/lib/sklearn/utils.py", "exec")
    with pytest.raises(FaultError, match="internal words"):
        watched("fit", lambda: exec(code))


def test_a_score_or_a_graph_that_is_none_is_noticed(tmp_path):
    with pytest.raises(FaultError, match="score is nan"):
        check_score(float("nan"), 2)
    check_score(float("nan"), 1)
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(FaultError, match="to_onnx"):
        check_onnx(tmp_path / "model.onnx")


def test_a_model_that_predicts_otherwise_after_a_round_trip_is_noticed(tmp_path):
    X = np.arange(12.0)[:, None]
    model = GCERegressor(max_atoms=2, cv=2).fit(X, X[:, 0])
    model.save(tmp_path / "model.safetensors")
    check_saved(tmp_path / "model.safetensors", X, model.predict(X))
    with pytest.raises(FaultError, match="differ after save and load"):
        check_saved(tmp_path / "model.safetensors", X, model.predict(X) + 1)


def test_a_slow_case_is_noticed(monkeypatch, tmp_path):
    class Slow:
        kind, words = "slow", "a case that takes too long"

        def calls(self, folder):
            while True:
                pass

    monkeypatch.setattr(inputs, "SECONDS", 1)
    monkeypatch.setattr("campaign.inputs_cases.case_of", lambda seed, number: Slow())
    before = inputs.set_alarm()
    try:
        outcome = inputs.outcome_of(0, 0, tmp_path)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert "no end in the time allowed" in outcome.fault
