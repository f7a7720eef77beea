"""A case that ends its process, hangs or takes memory is a fault. Each starts a process, so little is imported here."""

import os
import signal
import time

import campaign.isolated
from campaign.isolated import MOST_BYTES, isolated
from campaign.outcomes import Outcome, tallied


def hopeless(seed, folder):
    # of the process that runs the cases
    campaign.isolated.SECONDS = 1

    def run(case):
        if case == 1:
            os.kill(os.getpid(), signal.SIGSEGV)
        if case == 2:
            time.sleep(60)
        if case == 3:
            # only its memory is tried: on a busy machine pages may take longer than the second
            signal.alarm(0)
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
