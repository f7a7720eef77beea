"""scikit-learn's own checks, on the default classes once and on tiny settings of every class and algorithm."""

from itertools import cycle

from sklearn.utils.estimator_checks import parametrize_with_checks

from gce import GCEClassifier, GCERegressor, NGCEClassifier, NGCERegressor, NNClassifier, NNRegressor
from gce.bases import Neural
from gce.frank_wolfe import Boosting
from gce.frank_wolfe.algorithms import ALGORITHMS

TINY = {"basis": Neural(hidden=4, max_epochs=40), "cv": 2, "max_atoms": 8}
#: Longer steps need fewer rounds, and networks that are trained with their weight take longer.
OTHERS = {
    "boosting": {"algorithm": Boosting(learning_rate=0.3), "basis": Neural(hidden=4, max_epochs=30), "max_atoms": 12},
    "nonlinear": {"basis": Neural(hidden=4, max_epochs=25), "max_atoms": 4},
}


def models():
    for kind in (GCERegressor, GCEClassifier):
        # all classes, each for so many rounds only: whole fits take minutes of these checks
        yield kind(max_iter=5)
        for basis in ("neural", "tree", "symmetric", "forest"):
            yield kind(basis=basis, max_iter=20, cv=2)
    # what these checks look at does not depend on both: each algorithm for one of the two
    for kind, algorithm in zip(cycle([GCERegressor, GCEClassifier]), ALGORITHMS, strict=False):
        yield kind(**{"algorithm": algorithm, **TINY, **OTHERS.get(algorithm, {})})
    for kind in (NGCERegressor, NGCEClassifier, NNRegressor, NNClassifier):
        yield kind(max_epochs=40)
    for kind in (NGCERegressor, NGCEClassifier):
        yield kind(coefficients="softmax", n_atoms=5, hidden=4, max_epochs=50, cv=2)


@parametrize_with_checks(list(models()))
def test_scikit_learn_check(estimator, check):
    check(estimator)
