"""Examples in docstrings: all of them run, and every public name of losses and training has one."""

import doctest
import importlib
import pkgutil

import pytest

import gce.losses
import gce.training

PACKAGES = ("gce._utils", "gce.losses", "gce.preprocessing", "gce.frank_wolfe.simplex")
MODULES = [
    *(
        f"{package}.{module.name}"
        for package in PACKAGES
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
    ),
    *(f"gce.training.{name}" for name in ("callbacks", "integrations", "progress")),
    *(f"gce.io.{name}" for name in ("migration", "values")),
    "gce.losses",
]
PUBLIC = [
    getattr(package, name)
    for package in (gce.losses, gce.training)
    for name in package.__all__
    if callable(getattr(package, name))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("public", PUBLIC, ids=lambda public: public.__name__)
def test_public_names_have_an_example(public):
    assert doctest.DocTestFinder(recurse=False).find(public)[0].examples
