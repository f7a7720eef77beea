"""A short form of the campaign of odd inputs, and what its oracle notices."""

import signal
import warnings

import numpy as np
import pytest

from campaign import inputs
from campaign.inputs_oracle import FaultError, Refused, check_predictions, check_probabilities, watched
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
