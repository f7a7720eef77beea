"""A short form of the campaign of altered files."""

from campaign import files
from campaign.outcomes import tallied


def test_altered_files_are_refused_in_a_sentence_or_used(tmp_path):
    tally = tallied(files.outcomes(range(300), 1, tmp_path))
    assert tally.faults == []
    assert tally.cases == 300
    assert {"bytes, wrong checksum: refused", "values, right checksum: refused", "values, right checksum: used"} <= set(
        tally.held
    )
