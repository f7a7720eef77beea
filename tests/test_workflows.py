"""The workflow files name versions and sessions that exist."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
noxfile = pytest.importorskip("nox") and __import__("noxfile")


def jobs(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]


def test_every_version_of_python_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [c.rsplit(" ", 1)[1] for c in project["classifiers"] if "Python :: 3." in c]
    assert jobs("ci.yml")["tests"]["strategy"]["matrix"]["python"] == noxfile.PYTHONS == named
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_sessions_exist_and_permissions_are_few(path):
    flow = yaml.safe_load(path.read_text())
    assert flow["permissions"] == {"contents": "read"}
    assert "concurrency" in flow
    for job in flow["jobs"].values():
        for name in re.findall(r"nox --session (.+)", "\n".join(step.get("run", "") for step in job["steps"])):
            matrix = job.get("strategy", {}).get("matrix", {})
            for session in matrix["session"] if "matrix.session" in name else [name]:
                assert callable(getattr(noxfile, session.split("-")[0], None)), session


def test_the_floors_are_those_of_the_project():
    pins = noxfile.floors()
    assert "torch==2.7" in pins
    assert any(pin.startswith("polars==") for pin in pins)
    assert all(pin.count("==") == 1 for pin in pins)
    assert len({pin.split("==")[0] for pin in pins}) == len(pins)


@pytest.mark.parametrize(("target", "commands"), [("lint", noxfile.LINT), ("types", noxfile.TYPES)])
def test_make_and_nox_run_the_same_commands(target, commands):
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)[1]
    assert [line.strip().replace("$(BIN)/", "") for line in recipe.splitlines()] == list(commands)
