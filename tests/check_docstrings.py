"""Docstrings of public names, checked by numpydoc: run by ``make lint``.

Without arguments the packages of ``CHECKED`` are; ``python tests/check_docstrings.py gce.bases`` checks others.
The checks are those of ``[tool.numpydoc_validation]`` in pyproject.toml.
"""

import inspect
import sys
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

from numpydoc.validate import validate

#: The public packages.
CHECKED = [
    "gce", "gce.bases", "gce.frank_wolfe", "gce.losses", "gce.training", "gce.inspection", "gce.theory", "gce.datasets",
]  # fmt: skip


def checks():
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    return set(settings["tool"]["numpydoc_validation"]["checks"])


def public_names(package):
    """Functions and classes of a package, and the methods and properties that a class brings or documents itself."""
    for name in import_module(package).__all__:
        value = getattr(import_module(package), name)
        if inspect.isfunction(value) or inspect.isclass(value):
            yield f"{package}.{name}"
        if inspect.isclass(value):
            yield from (f"{package}.{name}.{own}" for own in vars(value) if is_documented_here(value, own))


def is_documented_here(kind, name):
    """Whether a name is a public method or property whose documentation is not that of a base class."""
    value = vars(kind)[name]
    if name.startswith("_") or not (inspect.isroutine(value) or isinstance(value, classmethod | property)):
        return False
    inherited = any(name in vars(base) for base in kind.__mro__[1:])
    return bool(value.__doc__) or not inherited


def main(packages):
    wanted, counts = checks(), Counter()
    for package in packages:
        for name in public_names(package):
            for code, words in validate(name)["errors"]:
                if code in wanted:
                    sys.stderr.write(f"{name}: {code} {words}\n")
                    counts[code] += 1
    if counts:
        sys.stderr.write(f"{counts.total()} findings: {dict(sorted(counts.items()))}\n")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or CHECKED))
