"""scikit-learn's own checks, on stacks of tiny members."""

from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from gce import ConvexStackingClassifier, ConvexStackingRegressor, GreedySelectionClassifier, GreedySelectionRegressor

NUMBERS = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=2, random_state=0))]
CLASSES = [("logistic", LogisticRegression(max_iter=1000)), ("bayes", GaussianNB())]


def models():
    yield ConvexStackingRegressor(NUMBERS, cv=3)
    yield GreedySelectionRegressor(NUMBERS, cv=3, max_iter=5)
    yield ConvexStackingClassifier(CLASSES, cv=3)
    yield ConvexStackingClassifier(CLASSES, cv=3, mix="probabilities")
    yield GreedySelectionClassifier(CLASSES, cv=3, max_iter=5, fold_weight=0.5)


@parametrize_with_checks(list(models()))
def test_scikit_learn_check(estimator, check):
    check(estimator)
