"""A release says one version everywhere, needs what pyproject.toml says, and holds all its files."""

import re
import shutil
import subprocess
import sysconfig
import threading
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from setuptools import Extension
from setuptools.command.egg_info import FileList

import gce
from campaign import isolated
from gce.io import attributes, container, families, paths, values

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
#: Packages that conda-forge names otherwise.
CONDA_NAMES = {"torch": "pytorch"}
#: What people look for in a release, and what builds, tests and documents it.
NEEDED = [
    "CHANGELOG.md", "CITATION.cff", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "Dockerfile", ".dockerignore", "Makefile",
    "RELEASING.md", "SECURITY.md", "constraints.txt", "noxfile.py", "recipe/recipe.yaml",
    ".github/ISSUE_TEMPLATE/bug_report.yml", ".github/ISSUE_TEMPLATE/config.yml",
    ".github/ISSUE_TEMPLATE/feature_request.yml", ".github/pull_request_template.md",
    "benchmarks/results/accuracy.md", "campaign/__main__.py", "docs/conf.py", "examples/make_table.py",
    "paper/__init__.py", "tests/files/v7.json", "tests/wheel_smoke.py",
]  # fmt: skip
#: What setuptools adds to the sdist without being told.
BY_ITSELF = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}
MADE = (".so", ".pyd", ".pyc", ".o")
GIB, MIB = 2**30, 2**20


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def manifest():
    """Files that MANIFEST.in names, as setuptools reads it."""
    found = FileList()
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(ROOT)
        for line in text("MANIFEST.in").splitlines():
            if line and not line.startswith("#"):
                found.process_template_line(line)
    return {Path(name).as_posix() for name in found.files}


def tracked():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("an sdist is not a checkout")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    # a file that is about to be removed is still tracked
    return {name for name in done.stdout.splitlines() if (ROOT / name).exists()}


def releases():
    """Version and date of each release in the changelog, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text("CHANGELOG.md"), re.M)


def test_all_files_name_one_version_and_one_date():
    citation = yaml.safe_load(text("CITATION.cff"))
    version, date = releases()[0]
    assert version == gce.__version__ == citation["version"] == RECIPE["context"]["version"]
    assert str(citation["date-released"]) == date
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "gce._utils.version.__version__"}


def test_the_changelog_begins_with_what_is_not_released():
    headings = re.findall(r"^## (.*)$", text("CHANGELOG.md"), re.M)
    assert headings[0] == "[Unreleased]"
    assert len(headings) == len(releases()) + 1
    assert releases() == sorted(releases(), key=lambda r: [int(part) for part in r[0].split(".")], reverse=True)


def conda(needs):
    """Requirements of pip as conda writes them."""
    return {f"{CONDA_NAMES.get(need.name, need.name)} {need.specifier}".strip() for need in map(Requirement, needs)}


def test_the_recipe_needs_what_the_project_needs():
    project, needs = PROJECT["project"], RECIPE["requirements"]
    expected = conda(project["dependencies"]) | conda(project["optional-dependencies"]["cli"])
    assert len(needs["run"]) == len(set(needs["run"]))
    assert set(needs["run"]) == expected | {f"python {project['requires-python']}"}
    assert conda(PROJECT["build-system"]["requires"]) <= set(needs["host"])
    assert RECIPE["package"]["name"] == project["name"]
    scripts = [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert RECIPE["build"]["python"]["entry_points"] == scripts
    assert RECIPE["about"]["summary"] == project["description"]
    assert RECIPE["about"]["license"] == project["license"]


@pytest.mark.parametrize("name", NEEDED)
def test_a_file_that_a_release_needs_is_in_the_sdist(name, manifest):
    assert (ROOT / name).is_file()
    assert name in manifest


def test_the_sdist_has_all_that_is_tracked_and_nothing_that_is_made(manifest):
    outside = {name for name in tracked() if not name.startswith(("src/", ".ci/"))}
    assert outside - manifest == BY_ITSELF
    assert not [name for name in manifest if name.endswith(MADE)]


@pytest.mark.parametrize("without_gil", [False, True])
def test_one_wheel_is_for_all_versions_where_python_has_a_stable_interface(without_gil, monkeypatch):
    # after setuptools, whose own distutils it is
    from distutils.core import run_setup

    monkeypatch.setitem(sysconfig.get_config_vars(), "Py_GIL_DISABLED", int(without_gil))
    monkeypatch.chdir(ROOT)
    project = run_setup("setup.py", stop_after="init")
    for extension in project.ext_modules:
        assert extension.py_limited_api != without_gil
        assert ("Py_LIMITED_API" in dict(extension.define_macros)) != without_gil
    assert ("py_limited_api" in project.get_option_dict("bdist_wheel")) != without_gil


@pytest.fixture
def build(monkeypatch, tmp_path):
    """The command that compiles two extensions of three sources each, by a compiler that a test gives it."""
    from distutils.core import run_setup

    monkeypatch.chdir(ROOT)
    project = run_setup("setup.py", stop_after="init")
    sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("native/*.cpp"))[:3]
    command = project.get_command_obj("build_ext")
    command.ensure_finalized()
    command.build_temp = command.build_lib = str(tmp_path)
    command.extensions = [Extension(f"gce._utils._native_{own}", sources) for own in ("one", "two")]
    for extension in command.extensions:
        extension._full_name, extension._file_name = extension.name, extension.name
        extension._links_to_dynamic = extension._needs_stub = False
    return command


def compiler_of(at_once, linked):
    """A compiler that ends once as many sources are being compiled as are expected, and what it links."""
    from distutils.ccompiler import new_compiler

    compiler, barrier = new_compiler(), threading.Barrier(at_once, timeout=60)

    def compile_one(sources, output_dir, **options):
        barrier.wait()
        return [f"{output_dir}/{source}.o" for source in sources]

    compiler.compile = compile_one
    compiler.link_shared_object = lambda objects, path, **options: linked.append([Path(one).stem for one in objects])
    return compiler


@pytest.mark.parametrize(("asked", "jobs"), [({"MAX_JOBS": "3"}, 3), ({"MAX_JOBS": "6"}, 6), ({}, 2)])
def test_sources_of_all_extensions_are_compiled_at_once(asked, jobs, build, monkeypatch):
    monkeypatch.delenv("MAX_JOBS", raising=False)
    for name, value in asked.items():
        monkeypatch.setenv(name, value)
    build.parallel = None if asked else jobs
    linked = []
    build.compiler = compiler_of(jobs, linked)
    build.build_extensions()
    names = [Path(source).name for source in build.extensions[0].sources]
    assert linked == [names, names]


def test_a_number_of_compilers_that_is_none_is_refused(build, monkeypatch):
    monkeypatch.setenv("MAX_JOBS", "0")
    with pytest.raises(SystemExit, match="MAX_JOBS must be a positive integer, got '0'"):
        build.build_extensions()


@pytest.mark.parametrize("path", ["README.md", "docs/start.md"])
def test_the_first_line_of_an_installation_is_that_of_processors(path):
    block = re.search(r"^```sh\n(.*?)^```", text(path), flags=re.M | re.S)[1].splitlines()
    assert block[0].startswith("pip install torch --index-url https://download.pytorch.org/whl/cpu ")
    assert block[1].startswith("pip install torch ")
    assert "NVIDIA GPU" in block[0]


def test_all_files_of_the_package_are_in_the_wheel():
    package = ROOT / "src" / "gce"
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["gce"]
    data = {path for pattern in patterns for path in package.glob(pattern)}
    left_out = [name for name in tracked() if name.startswith("src/") and not name.endswith(".py")]
    assert not [name for name in left_out if ROOT / name not in data]


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ("header of a file", f"{container.HEADER_BYTES // MIB} MiB"),
        ("JSON values in the header", f"{container.JSON_VALUES:,}"),
        ("tensors in a file", f"{container._MAX_TENSORS:,}"),
        ("families in a file", f"{families._MOST_FAMILIES:,}"),
        ("items of a list or array among the parameters", f"{values._MAX_ITEMS:,}"),
        ("text of one array, decoded", f"{attributes._MOST_TEXT // MIB} MiB"),
        # eight bytes each
        ("weights of all rounds, decoded from their changes", f"{8 * paths.MOST_READ // MIB} MiB"),
    ],
)
def test_limits_of_the_security_policy_are_those_of_the_code(limit, most):
    assert f"| {limit} | {most} |" in text("SECURITY.md")


def test_the_security_policy_names_what_the_campaign_allows():
    assert f"over {isolated.SECONDS} s or {isolated.MOST_BYTES // GIB} GiB" in text("SECURITY.md").replace("\n", " ")


def steps():
    """Instructions of the Dockerfile, without comments, each on one line."""
    lines = re.sub(r"^#.*\n", "", text("Dockerfile"), flags=re.M).replace("\\\n", "").splitlines()
    return [" ".join(line.split()) for line in lines if line.strip()]


def test_the_image_ends_warm_and_without_root():
    assert steps()[-4:] == ["RUN gce warmup", "USER gce", "WORKDIR /data", 'ENTRYPOINT ["gce"]']


def test_the_image_has_what_the_project_builds_and_tests_with():
    pins = re.findall(r"torch==\S+", text("constraints.txt"))
    assert [step for step in steps() if step.endswith(pins[0])]
    assert pins[0] in text("Makefile")
    assert f"ARG PYTHON={PROJECT['project']['requires-python'].removeprefix('>=')}" in steps()


def test_the_image_gets_all_sources_of_the_package():
    sent = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    assert {"native", "src", "constraints.txt"} | BY_ITSELF == sent


def test_the_readme_installs_the_package_by_its_name():
    page = text("README.md")
    assert f'pip install "{PROJECT["project"]["name"]}[cli,onnx]" pandas' in page
    assert "rattler-build build --recipe recipe" in page
    assert "docker build -t gce ." in page


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_forms_of_issues_are_complete(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.stem == "config":
        assert form == {"blank_issues_enabled": True}
        return
    assert form["name"]
    assert form["description"]
    asked = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in asked}) == len(asked)
    assert all(part["attributes"]["label"] for part in asked)
    assert any(part.get("validations", {}).get("required") for part in asked)
