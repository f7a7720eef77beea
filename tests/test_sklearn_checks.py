"""scikit-learn's own checks, on the default classes once and on tiny settings of every class and algorithm."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from gce import GCEClassifier, GCERegressor, Neural, NGCEClassifier, NGCERegressor, NNClassifier, NNRegressor
from gce.algorithms import ALGORITHMS

TINY = {"basis": Neural(hidden=4, max_epochs=40), "cv": 2}


def models():
    for kind in (GCERegressor, GCEClassifier):
        # all classes, each for so many rounds only: whole fits take minutes of these checks
        yield kind(max_iter=5)
        for basis in ("neural", "tree", "symmetric", "forest"):
            yield kind(basis=basis, max_iter=20, cv=2)
        for algorithm in ALGORITHMS:
            # short steps are many
            yield kind(algorithm=algorithm, **TINY | {"max_atoms": 30 if algorithm == "boosting" else 8})
    for kind in (NGCERegressor, NGCEClassifier, NNRegressor, NNClassifier):
        yield kind(max_epochs=40)
    for kind in (NGCERegressor, NGCEClassifier):
        yield kind(coefficients="softmax", n_atoms=5, hidden=4, max_epochs=50, cv=2)


@parametrize_with_checks(list(models()))
def test_scikit_learn_check(estimator, check):
    check(estimator)
