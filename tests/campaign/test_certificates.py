"""A short form of the campaign of certificates."""

import pytest

from campaign import certificates
from campaign.outcomes import tallied


def test_gaps_claim_what_an_independent_solver_confirms(tmp_path):
    tally = tallied(certificates.outcomes(range(15), 1, tmp_path))
    assert tally.faults == []
    assert tally.cases == 15


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"suboptimality": 0.1, "gap": 1.0}, "suboptimality"),
        ({"suboptimality": 1.0, "gap": 0.2}, "gap"),
        ({"suboptimality": 1.0, "gap": float("nan")}, "tol"),
    ],
)
def test_a_claim_below_the_distance_from_the_optimum_is_a_fault(entry, words):
    first = {"t": 1, "risk": 2.5, "suboptimality": 2.0, "gap": 3.0}
    with pytest.raises(certificates.FalseClaimError, match=words):
        certificates.check_rounds([first, {"t": 2, "risk": 2.0, **entry}], 1.0, 0.1)
