"""The reference of the site lists every public name; test_examples.py has that each has an example."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = {path.stem: path for path in (DOCS / "api").glob("gce*.rst")}
PACKAGES = ("gce", "gce.bases", "gce.datasets", "gce.distributed", "gce.frank_wolfe", "gce.inspection", "gce.losses",
            "gce.theory", "gce.training")  # fmt: skip


def listed(package):
    """Names of the page of a package: lines of its summaries."""
    return re.findall(r"^   ([A-Za-z_]\w*)$", PAGES[package].read_text("utf-8"), flags=re.M)


def test_every_package_has_a_page_that_the_index_lists():
    assert sorted(PAGES) == sorted(PACKAGES)
    index = (DOCS / "api" / "index.rst").read_text("utf-8")
    assert all(re.search(rf"^   {re.escape(package)}$", index, flags=re.M) for package in PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_page_lists_the_public_names_and_no_others(package):
    names = [
        name
        for name in importlib.import_module(package).__all__
        if not inspect.ismodule(getattr(importlib.import_module(package), name)) and name != "__version__"
    ]
    assert sorted(listed(package)) == sorted(names)
