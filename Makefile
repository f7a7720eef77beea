# Two commands do everything: `make demo` and `make test`. Each sets up .venv first, from constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread per test process: two processes with two threads each would compete for two cores.
TEST_ENV := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Each process begins with half of the files, so that what a file's tests share is made once, and takes over from the other.
PYTEST := $(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: demo test lint types kernels unit experiments processors wheel campaign docs bench bench-small accuracy tables autogluon distributed table1 figure1 ablations clean

$(VENV)/ready: pyproject.toml constraints.txt setup.py $(wildcard native/* src/gce/kernels/*.hpp)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/ready
	PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

# What runs on one core (two environments, wheel, types, lint) runs two at a time; pytest starts two processes.
test:
	$(MAKE) --output-sync=target -j2 wheel types lint
	$(MAKE) unit
	$(MAKE) experiments

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/check_docstrings.py

types: $(VENV)/ready
	$(BIN)/mypy

# The compiled kernels of native/ again, after a change of them.
kernels: $(VENV)/ready
	$(BIN)/python setup.py --quiet build_ext --inplace

# The tests of the package.
unit: $(VENV)/ready
	$(PYTEST) tests --ignore=tests/paper --ignore=tests/benchmarks --ignore=tests/site

# The tests of paper/ and benchmarks/.
experiments: $(VENV)/ready
	$(PYTEST) tests/paper tests/benchmarks

# The tests of numerics with the instruction sets of other processors, which takes long on two cores. Less with ARGS, e.g.
# `make processors ARGS="same_bits inference"`.
processors: $(VENV)/ready
	$(BIN)/python tests/processors.py $(ARGS)

# What the library promises on a bad day, tried 21,536 times in some twelve minutes on two cores, into campaign/results.md. Less with
# ARGS, e.g. `make campaign ARGS="kills --cases 20"`.
campaign: $(VENV)/ready
	$(BIN)/python -m campaign $(ARGS)

# The documentation site into build/docs/html, with every example run and warnings as errors; then its pages in Chromium.
docs: $(VENV)/docs
	$(BIN)/python -m sphinx -W --keep-going -q -c docs -d build/docs/doctrees . build/docs/html
	$(BIN)/python -m pytest tests/site

$(VENV)/docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

# Both distributions; the wheel is imported in an environment without the checkout and without development tools.
wheel: $(VENV)/ready build/clean/ready
	rm -rf dist
	$(BIN)/python -m build --sdist --wheel --no-isolation --outdir dist > /dev/null
	$(BIN)/twine check --strict dist/*
	build/clean/bin/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	build/clean/bin/python -m pip check
	cd build && clean/bin/python ../tests/wheel_smoke.py

# The dependencies alone: they do not change with the code, and are installed while .venv is.
DEPENDENCIES := import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'])
build/clean/ready: pyproject.toml constraints.txt
	rm -rf build/clean
	$(PYTHON) -m venv build/clean
	build/clean/bin/python -m pip install --quiet -c constraints.txt torch==2.13.0
	build/clean/bin/python -m pip install --quiet -c constraints.txt $$($(PYTHON) -c "$(DEPENDENCIES)")
	touch $@

# gce inside AutoGluon and TabArena, which want their own versions of torch, scikit-learn and pandas: an environment of
# their own. Tests of tests/integrations are skipped without these packages.
autogluon: build/autogluon/ready
	$(TEST_ENV) build/autogluon/bin/python -m pytest tests/integrations/test_autogluon.py tests/integrations/test_tabarena.py

build/autogluon/ready: pyproject.toml
	rm -rf build/autogluon
	$(PYTHON) -m venv build/autogluon
	build/autogluon/bin/python -m pip install --quiet torch==2.13.0
	build/autogluon/bin/python -m pip install --quiet -e '.[autogluon]' pytest tabarena==0.1.0
	touch $@

# The recipes of docs/scaling.md for Ray and Spark, in an environment of their own; Spark needs Java 17.
distributed: build/distributed/ready
	$(TEST_ENV) build/distributed/bin/python -m pytest tests/integrations/test_ray.py tests/integrations/test_spark.py

build/distributed/ready: pyproject.toml constraints.txt
	rm -rf build/distributed
	$(PYTHON) -m venv build/distributed
	build/distributed/bin/python -m pip install --quiet -c constraints.txt torch==2.13.0
	build/distributed/bin/python -m pip install --quiet -c constraints.txt -e '.[arrow]' pytest pandas "ray[train]" pyspark
	touch $@

# Side-by-side tables into benchmarks/results/speed.md, in a quarter of an hour: leave the machine alone meanwhile.
# Data sets are looked for in GCE_DATA_HOME, then fetched.
bench: $(VENV)/bench
	$(BIN)/python benchmarks/speed.py

$(VENV)/bench: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[bench]'
	touch $@

# GCE and its peers at their defaults on the development sets, into benchmarks/results/accuracy.md: kill it and run it
# again, nothing is repeated. Less with ARGS, e.g. `make accuracy ARGS="--models GCE CatBoost --sets boston iris"`.
accuracy: $(VENV)/bench
	$(BIN)/python benchmarks/accuracy.py $(ARGS)

# The same on tables with categories, dates and text, into benchmarks/results/tables.md. AutoGluon is left out unless an
# environment of its own is named: `make tables ARGS="--autogluon-python /elsewhere/bin/python"`.
tables: $(VENV)/bench
	$(BIN)/python benchmarks/tables.py $(ARGS)

# The paper's experiments: kill one and run it again, nothing is repeated. What has been run is committed under
# paper/results; `--folder` starts afresh elsewhere. More with ARGS, e.g. `make table1 ARGS="--full"`.
table1: $(VENV)/paper
	$(BIN)/python -m paper.data_sets > /dev/null
	$(BIN)/python -m paper.table1 $(ARGS)

figure1: $(VENV)/paper
	$(BIN)/python -m paper.figure1 $(ARGS)

ablations: $(VENV)/paper
	$(BIN)/python -m paper.ablations $(ARGS)

$(VENV)/paper: $(VENV)/ready
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[paper]'
	touch $@

bench-small: $(VENV)/ready
	$(BIN)/python benchmarks/small_sets.py --only "RandomForest(500)" "GCE default"

clean:
	rm -rf $(VENV) dist build out
