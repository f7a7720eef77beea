"""Every public name: listed here, documented where it lives, with examples that run."""

import doctest
import inspect
from importlib import import_module

import matplotlib as mpl
import numpy as np
import pytest

PUBLIC = {
    "gce": """
        ConvexStackingClassifier ConvexStackingRegressor GCEClassifier GCERegressor GCESurvival
        GreedySelectionClassifier
        GreedySelectionRegressor ModelFileError NGCEClassifier NGCERegressor NNClassifier NNRegressor Shards bases
        datasets distributed frank_wolfe inspection load losses theory training
    """,
    "gce.distributed": "Division ProcessError World find_world process_group",
    "gce.bases": """
        Atoms Basis FitContext Forest ForestAtoms Networks Neural Neuron Pool Proposal RegressorBasis SignTree
        SymmetricTree Tree TreeAtoms Union Zero
    """,
    "gce.frank_wolfe": """
        Algorithm AwayStep Blended Boosting Brent ConvexEnsemble Exact FrankWolfe LineSearch NonlinearGreedy OpenLoop
        Pairwise Step
    """,
    "gce.losses": """
        REGRESSION CrossEntropy Gamma Hazards Huber LogMixture Logistic Loss MultiLabel NonFiniteError Ordinal Poisson
        Power PseudoHuber Quantile Quantiles ResidualLoss SoftPower SoftQuantile SoftQuantiles Squared Tweedie
        weighted_quantile
    """,
    "gce.training": "EarlyStopping MLflow OptunaPruning SharedEarlyStopping TensorBoard",
    "gce.inspection": """
        Explanation PathStep PruningPath ShapExplanation StagedErrorDisplay TrainingDisplay WeightsDisplay
        calibration_display concordance concordance_index partial_dependence partial_dependence_display
        residual_display
    """,
    "gce.theory": """
        BoundReport ConvexShattering HeldOut LinearShattering PaperBound RademacherEstimate admissible_constant
        appendix_constant bound_report covering_xi excess_risk fast_rate finite_class hoeffding lipschitz loss_range
        lq_lipschitz mcdiarmid network_parameters one_sided_constant pseudodimension rademacher relu_networks shatters
        single_neurons stated_constant stated_xi suprema tanh_networks theorem1_excess_risk threshold_units
        vc_lower_bound
    """,
    "gce.datasets": "NAMES SMALL CorruptDataError Dataset MissingDataError load present table",
}
NAMES = [f"{package}.{name}" for package, names in PUBLIC.items() for name in names.split()]
#: Tuples and dictionaries, which have no docstring of their own.
CONSTANTS = {"gce.losses.REGRESSION", "gce.datasets.NAMES", "gce.datasets.SMALL"}
DOCUMENTED = [name for name in NAMES if name not in CONSTANTS]
#: Packages, whose examples are those of their names.
PACKAGES = set(PUBLIC)


def value_of(name):
    package, own = name.rsplit(".", 1)
    return getattr(import_module(package), own)


def doc_of(name):
    """The docstring of the value itself, never one that it inherits."""
    value = value_of(name)
    own = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return inspect.cleandoc(own or "")


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_are_those_listed_here(package):
    module = import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert set(PUBLIC[package].split()) <= set(dir(module))


@pytest.mark.parametrize("package", [package for package in PUBLIC if package != "gce"])
def test_a_public_name_lives_in_one_package(package):
    elsewhere = {name for other in PUBLIC if other != package for name in PUBLIC[other].split()}
    # the two functions called load read different things
    assert set(PUBLIC[package].split()) & elsewhere <= {"load"}


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_name_has_a_summary(name):
    summary = doc_of(name).split("\n\n")[0]
    assert summary
    assert summary.endswith("."), f"the summary does not end with a period: {summary!r}"


def examples_of(name):
    """Examples of a name and, where it is a class, of its methods, to be run after ``from its.package import *``."""
    value, package = value_of(name), import_module(name.rsplit(".", 1)[0])
    globs = {"np": np, **{own: getattr(package, own) for own in package.__all__}}
    # a module's own examples only: the names in it are listed themselves
    finder = doctest.DocTestFinder(recurse=not inspect.ismodule(value))
    return [found for found in finder.find(value, name, module=inspect.getmodule(value), globs=globs) if found.examples]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_name_has_examples_that_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    written = "\nExamples\n--------\n" in doc_of(name) and ">>> " in doc_of(name)
    assert written or name in PACKAGES, "no section Examples"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    said = []
    for found in examples_of(name):
        runner.run(found, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
