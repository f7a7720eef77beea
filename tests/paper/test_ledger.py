"""The ledger of the paper's experiments: nothing is repeated, nothing is lost."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from paper.ledger import Ledger

KEYS = [{"set": name, "seed": seed} for name in "ab" for seed in range(3)]


def counted(calls, key):
    def work():
        calls.append(key)
        return {"error": float(key["seed"])}

    return work


def test_each_fit_runs_once(tmp_path):
    calls = []
    for _ in range(3):
        ledger = Ledger(tmp_path / "deep" / "fits.jsonl")
        results = [ledger.once(key, counted(calls, key)) for key in KEYS]
    assert calls == KEYS
    assert [result["error"] for result in results] == [0, 1, 2] * 2
    assert ledger.items() == [(key, {"error": float(key["seed"])}) for key in KEYS]


def test_order_of_a_keys_parts_does_not_matter(tmp_path):
    ledger = Ledger(tmp_path / "fits.jsonl")
    ledger.once({"a": 1, "b": 2}, lambda: {"x": 0})
    assert {"b": 2, "a": 1} in ledger
    assert ledger[{"b": 2, "a": 1}] == {"x": 0}


@pytest.mark.parametrize("cut", range(1, 30, 4))
def test_a_line_cut_off_by_a_kill_is_run_again_and_no_other(tmp_path, cut):
    path, calls = tmp_path / "fits.jsonl", []
    for key in KEYS:
        Ledger(path).once(key, counted([], key))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    ledger = Ledger(path)
    for key in KEYS:
        ledger.once(key, counted(calls, key))
    # a missing line feed alone loses nothing
    assert calls == ([] if cut == 1 else KEYS[-1:])
    found = [key for key, _ in Ledger(path).items()]
    assert len(found) == len(KEYS)
    assert all(key in found for key in KEYS)


def append(path, worker):
    ledger = Ledger(path)
    for i in range(50):
        ledger.once({"worker": worker, "i": i}, lambda: {"text": "x" * 2000})


def test_several_processes_write_whole_lines(tmp_path):
    path = tmp_path / "fits.jsonl"
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(append, [path] * 4, range(4)))
    assert len(Ledger(path)) == 200
    assert len([line for line in path.read_text().splitlines() if line]) == 200
