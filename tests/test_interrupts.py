"""Ctrl-C while an optional package is imported takes effect afterwards."""

import signal
import sys
import threading

import pytest

from gce._utils.interrupts import HeldInterrupts
from gce._utils.optional import import_optional


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C is heard, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def interrupted(tmp_path, monkeypatch):
    """The name of a module that is interrupted in the middle of its import."""
    source = "import signal\nsignal.raise_signal(signal.SIGINT)\nwhole = True\n"
    (tmp_path / "interrupted_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    yield "interrupted_module"
    sys.modules.pop("interrupted_module", None)


def test_an_import_is_finished_before_it_is_interrupted(interrupted):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        import_optional(interrupted, "cli")
    assert sys.modules[interrupted].whole
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_import_as_ever():
    found = []
    thread = threading.Thread(target=lambda: found.append(import_optional("json", "cli")))
    thread.start()
    thread.join()
    assert found == [sys.modules["json"]]


def test_an_error_of_an_import_is_raised_and_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ModuleNotFoundError, match=r"greedy-convex-ensemble\[cli\]"):
        import_optional("no_such_module_anywhere", "cli")
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HeldInterrupts():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
