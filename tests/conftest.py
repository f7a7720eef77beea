import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import CHROMIUM, Browser

#: Tests of tools that use the limits, locks and terminals of POSIX; the tests of the package itself run everywhere.
collect_ignore = (
    [] if os.name == "posix" else ["benchmarks", "campaign", "paper", "test_release.py", "test_terminal.py"]
)


@pytest.fixture(autouse=True)
def no_figure_left_open():
    """Figures of one test do not count in another: matplotlib warns beyond twenty."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def browser():
    """One browser for all pages."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with Browser() as opened:
        yield opened
