"""scikit-learn's contract: a task and a way of weighing, together, and nothing else."""

from __future__ import annotations

from typing import Any

from gce.losses import Loss
from gce.stacking.tasks import StackedClassification, StackedRegression
from gce.stacking.weighing import BestWeights, SelectedWeights

_MEMBERS = """
    Parameters
    ----------
    estimators : list of (str, estimator)
        The members and their names. A member is replaced by ``set_params(name=...)``, left out by
        ``set_params(name="drop")``.
"""

_LOSS = {
    "Regressor": """\
    loss : {"auto", "squared_error", "absolute_error", "pseudo_huber", "quantile"} or Loss, default="auto"
        What weights make small; "auto" is "squared_error". Parameters go with objects: ``gce.losses.Quantile(0.9)``.
""",
    "Classifier": """\
    loss : {"auto", "log_loss", "brier"} or Loss, default="auto"
        What weights make small; "auto" is "log_loss". "brier" (the squared error of probabilities, averaged over
        classes) is for ``mix="probabilities"``. A Loss object is given probabilities against one-hot rows; or scores,
        against 0 and 1 for two classes and one-hot rows for more.
    mix : {"scores", "probabilities"}, default="scores"
        What is combined: raw scores, which are logarithms of probabilities where a member has ``predict_proba`` and
        else its ``decision_function`` (weights cannot change its unit: it should be log-odds); or probabilities, which
        all members must have. Among scores no probability counts as less than 1e-5. Mixed probabilities need a number
        a row in memory, mixed scores one for every class.
""",
}

_FITTING = """\
    cv : None, int, splitter or iterable of (train, test), default=None
        Who answers for whom: every row must be held out exactly once. None: 5 folds. Folds of a given number are
        shuffled by ``random_state``, hold the same share of every class, and keep ``groups`` whole.
    prefit : bool, default=False
        The members are fitted: they are used as they are, and ``fit`` finds weights on the rows it is given, which
        members should not have seen. :func:`sklearn.base.clone` forgets fits, unless a member is wrapped in
        :class:`sklearn.frozen.FrozenEstimator`.
    fold_share : float, default=0.0
        What the models fitted on folds, averaged, count in each member's predictions, beside the one fitted on all
        rows. At 0, the only value for ``prefit``, members are those fitted on all rows; at 1 none is fitted on all
        rows. 0.5 often predicts better than 0, at the cost of a model more for each fold to keep and to ask.
%(weighing)s\
    n_jobs : int, optional
        Workers (joblib's) for the fits of members, on all rows and on folds.
    random_state : int, RandomState or None, default=None
        For folds of a given number%(random)s; members have their own.
    verbose : int, default=0
        joblib's messages while members are fitted.

    Attributes
    ----------
    weights_ : Series by name, or array of shape (members,) without pandas
        On the simplex. Members of weight 0 are never asked by predictions.
    risk_ : float
        The loss of the combination on the answers that weights were found on.
    gap_ : float
        A proof: no convex combination of the members has a loss below ``risk_ - gap_`` on these answers.
    history_ : list of dict
        Rounds of the solver: ``t``, ``loss``, ``gap``, ``used``, ``seconds``.
    estimators_ : list of fitted members, those dropped left out
    named_estimators_ : Bunch
        The same by name.
    n_features_in_ : int
        Where rows have columns.
    feature_names_in_ : array of shape (n_features_in_,)
        Where columns have names.
"""

_TOL = """\
    tol : float, default=1e-6
        Weights are found to a gap of ``tol`` times the loss; a ConvergenceWarning says where that is not reached.
"""

_SELECTION = """\
    rounds : int, default=50
        Models that are added, one a round; the best of the averages on the way is kept.
    bags : int, default=1
        More than 1: so many selections, each among ``share`` of the members drawn at random, are averaged.
    share : float, default=0.5
"""

_CLASSES = """\
    classes_ : array of shape (classes,)
        Members that are fitted here see their places, 0, 1, ..., as in scikit-learn's stacks; prefit members know
        classes as ``y`` has them.
"""


def _documented(weighing: str, random: str) -> Any:
    """Add what the four share to a docstring, before its examples."""

    def add(cls: type) -> type:
        task = "Regressor" if cls.__name__.endswith("Regressor") else "Classifier"
        shared = _MEMBERS + _LOSS[task] + _FITTING % {"weighing": weighing, "random": random}
        said, examples = (cls.__doc__ or "").split("\n    Examples\n")
        classes = _CLASSES if task == "Classifier" else ""
        cls.__doc__ = f"{said.rstrip()}\n{shared}{classes}\n    Examples\n{examples}"
        return cls

    return add


@_documented(_TOL, "")
class ConvexStackingRegressor(BestWeights, StackedRegression):
    """Regression by the best convex combination of models, with a certificate.

    Members are fitted on all rows; weights, non-negative and summing to 1, make the loss of their out-of-fold
    predictions as small as it can be made, to a gap that is proved. There is no final estimator to choose.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from gce import ConvexStackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    >>> stack = ConvexStackingRegressor(members, random_state=0).fit(X, y)
    >>> bool(stack.gap_ <= 1e-6 * stack.risk_)
    True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        cv: Any = None,
        prefit: bool = False,
        fold_share: float = 0.0,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.cv = cv
        self.prefit = prefit
        self.fold_share = fold_share
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


@_documented(_TOL, "")
class ConvexStackingClassifier(BestWeights, StackedClassification):
    """Classification by the best convex combination of models, with a certificate.

    Members are fitted on all rows; weights, non-negative and summing to 1, make the loss of their out-of-fold
    probabilities, or scores, as small as it can be made, to a gap that is proved. There is no final estimator to
    choose.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from gce import ConvexStackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    >>> stack = ConvexStackingClassifier(members, random_state=0).fit(X, y)
    >>> bool(stack.gap_ <= 1e-6 * stack.risk_)
    True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        mix: str = "scores",
        cv: Any = None,
        prefit: bool = False,
        fold_share: float = 0.0,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.mix = mix
        self.cv = cv
        self.prefit = prefit
        self.fold_share = fold_share
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


@_documented(_SELECTION, " and draws of bags")
class GreedySelectionRegressor(SelectedWeights, StackedRegression):
    """Regression by Caruana's greedy selection of models, to compare with :class:`ConvexStackingRegressor`.

    Models are added one at a time, with replacement, each the one that makes the average's loss least. ``gap_`` says
    how much the best weights could still bring.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from gce import GreedySelectionRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    >>> stack = GreedySelectionRegressor(members, random_state=0).fit(X, y)
    >>> bool(stack.gap_ > 1e-6 * stack.risk_)
    True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        cv: Any = None,
        prefit: bool = False,
        fold_share: float = 0.0,
        rounds: int = 50,
        bags: int = 1,
        share: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.cv = cv
        self.prefit = prefit
        self.fold_share = fold_share
        self.rounds = rounds
        self.bags = bags
        self.share = share
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


@_documented(_SELECTION, " and draws of bags")
class GreedySelectionClassifier(SelectedWeights, StackedClassification):
    """Classification by Caruana's greedy selection of models, to compare with :class:`ConvexStackingClassifier`.

    Models are added one at a time, with replacement, each the one that makes the average's loss least. ``gap_`` says
    how much the best weights could still bring.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from gce import GreedySelectionClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    >>> stack = GreedySelectionClassifier(members, mix="probabilities", random_state=0).fit(X, y)
    >>> bool(stack.gap_ > 1e-6 * stack.risk_)
    True
    """

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        mix: str = "scores",
        cv: Any = None,
        prefit: bool = False,
        fold_share: float = 0.0,
        rounds: int = 50,
        bags: int = 1,
        share: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.mix = mix
        self.cv = cv
        self.prefit = prefit
        self.fold_share = fold_share
        self.rounds = rounds
        self.bags = bags
        self.share = share
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
