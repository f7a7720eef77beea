"""Odd inputs: tables, targets, weights, parameters and arguments, made of valid ones by one to three mutations.

Cases run in processes of their own, one after another; the death of a process is a fault of its case, and the next
process goes on after it.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from campaign.outcomes import Outcome

PROMISE = (
    "odd inputs and parameters of every public class end in a finite prediction, or in a customary exception whose "
    "words name what was wrong, in bounded time, with few warnings"
)
FULL = 10_000
#: Seconds of a case.
SECONDS = 20
#: Seconds after which a process is ended that does not even answer the alarm: its first answer waits for imports too.
NO_ANSWER = 2 * SECONDS + 60
#: Cases of one process: what a case leaves behind, such as threads, does not add up.
BATCH = 1000
#: Address space of a process: absurd sizes are refused by the system, and not by the machine's end.
MEMORY = 16 << 30


def outcomes(cases: Iterable[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Run cases by their numbers."""
    numbers = iter(cases)
    while waiting := list(islice(numbers, BATCH)):
        while waiting:
            yield from _one_process(waiting, seed, folder)


def _one_process(waiting: list[int], seed: int, folder: Path) -> Iterator[Outcome]:
    """Outcomes of a process until it ends; cases that have one are removed from those that wait."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_cases, args=(list(waiting), seed, folder, theirs), daemon=True)
    process.start()
    theirs.close()
    while waiting:
        if ours.poll(NO_ANSWER):
            try:
                yield ours.recv()
                waiting.pop(0)
                continue
            except EOFError:
                process.join()
                words = f"its process ended with status {process.exitcode}"
        else:
            process.kill()
            words = f"no answer in {NO_ANSWER} s"
        yield Outcome(waiting.pop(0), "process", words)
        break
    process.join()


def run_cases(numbers: list[int], seed: int, folder: Path, answers: Connection) -> None:
    """Run cases in this process, and send their outcomes."""
    from campaign.inputs_oracle import quiet

    quiet()
    set_alarm()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    for number in numbers:
        own = folder / str(number)
        own.mkdir()
        os.chdir(own)
        answers.send(outcome_of(number, seed, own))
        os.chdir(folder)
        shutil.rmtree(own, ignore_errors=True)
    answers.close()


def set_alarm() -> Any:
    """Let a case that takes too long end in an exception; what was set before."""
    from campaign.inputs_oracle import Hang

    def alarm(*given: Any) -> None:
        raise Hang

    return signal.signal(signal.SIGALRM, alarm)


def outcome_of(number: int, seed: int, folder: Path) -> Outcome:
    """The outcome of one case, in this process."""
    from campaign.inputs_cases import case_of
    from campaign.inputs_oracle import Refused, said_of
    from campaign.inputs_words import shortened

    kind, words = "fuzzer", "the case itself"
    signal.alarm(SECONDS)
    try:
        case = case_of(seed, number)
        kind, words = case.kind, case.words
        return Outcome(number, f"{kind}: {case.calls(folder)}")
    except Refused as refused:
        return Outcome(number, f"{kind}: refused, {type(refused.error).__name__}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(number, kind, f"{shortened(words, 300)}: {said_of(error)}")
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    sys.exit("run python -m campaign inputs")
