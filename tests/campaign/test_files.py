"""A short form of the campaign of altered files, and of what its processes report."""

import os
import signal
import time

from campaign import files
from campaign.isolated import MOST_BYTES, isolated
from campaign.outcomes import Outcome, tallied


def test_altered_files_are_refused_in_a_sentence_or_used(tmp_path):
    tally = tallied(files.outcomes(range(300), 1, tmp_path))
    assert tally.faults == []
    assert tally.cases == 300
    assert {"bytes, wrong checksum: refused", "values, right checksum: refused", "values, right checksum: used"} <= set(
        tally.held
    )


def hopeless(seed, folder):
    def run(case):
        if case == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if case == 2:
            signal.alarm(1)
            time.sleep(60)
        if case == 3:
            bytearray(MOST_BYTES + 2**28)[:: 2**12] = b"x" * (MOST_BYTES + 2**28 >> 12)
        return Outcome(case, "fine")

    return run


def test_what_ends_its_process_hangs_or_takes_memory_is_a_fault(tmp_path):
    tally = tallied(isolated(hopeless, range(5), 0, tmp_path))
    assert tally.held == {"fine": 2}
    assert [case for case, *_ in tally.faults] == [1, 2, 3]
    words = [words for *_, words in tally.faults]
    assert f"exit code {-signal.SIGSEGV}" in words[0]
    assert "took over" in words[1]
    assert "GiB of memory" in words[2]
