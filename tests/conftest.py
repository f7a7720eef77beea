import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser import CHROMIUM, Browser


@pytest.fixture(scope="session")
def browser():
    """One browser for all pages."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    with Browser() as opened:
        yield opened
