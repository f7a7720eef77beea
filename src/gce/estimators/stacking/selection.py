"""Caruana's greedy ensemble selection."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from gce._utils.params import MOST, Rules, count, within
from gce.estimators.stacking.classification import ClassificationStack
from gce.estimators.stacking.regression import RegressionStack
from gce.estimators.stacking.solvers import GreedySelectionSolver, WeightSolver
from gce.losses import Loss


class GreedySelectionRegressor(RegressionStack):
    """Regression by Caruana's greedy selection of models, to compare with :class:`ConvexStackingRegressor`.

    Models are added one at a time, with replacement, each time the one that lowers the loss of the average most.
    ``gap_`` bounds how much the best weights could still improve on it.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members. ``set_params(name=...)`` replaces a member, ``set_params(name="drop")`` leaves it out.
    loss : {"auto", "squared_error", "absolute_error", "pseudo_huber", "quantile"} or Loss, default="auto"
        The loss that weights minimise; "auto" is "squared_error". For parameters give an object:
        ``gce.losses.Quantile(0.9)``.
    cv : None, int, splitter or iterable of (train, test), default=None
        Folds; every row must be held out exactly once. None is 5 folds. A number of folds is shuffled by
        ``random_state`` and does not split ``groups``.
    prefit : bool, default=False
        Members are fitted already and used as they are; ``fit`` finds weights on the rows it is given, on which members
        should not have been fitted. :func:`sklearn.base.clone` discards the fit of a member, unless it is wrapped in
        :class:`sklearn.frozen.FrozenEstimator`.
    fold_weight : float, default=0.0
        Weight of the average of the models fitted on folds in each member's predictions; the model fitted on all rows
        has the rest. At 1 no member is fitted on all rows; with ``prefit=True`` it must be 0. 0.5 often predicts better
        than 0, but keeps and evaluates one more model per fold.
    max_iter : int, default=50
        Number of selected models, one per iteration; the best of the averages along the way is kept.
    n_bags : int, default=1
        If more than 1, the average of that many selections, each among a random ``bag_fraction`` of the members.
    bag_fraction : float, default=0.5
        Fraction of the members in each bag.
    n_jobs : int, optional
        Number of joblib workers that fit members, on all rows and on folds.
    random_state : int, RandomState or None, default=None
        For shuffling folds and drawing bags; members have their own.
    verbose : int, default=0
        Verbosity of joblib while members are fitted.

    Attributes
    ----------
    weights_ : array of shape (members,)
        Non-negative, summing to 1, in the order of ``member_names_``. Members of zero weight are not evaluated by
        predictions.
    member_names_ : list of str
        Names of the members, without those dropped.
    risk_ : float
        Loss of the combination on the out-of-fold predictions.
    gap_ : float
        A certificate: no convex combination of the members has a loss below ``risk_ - gap_`` on these predictions.
    history_ : list of dict
        The final ``loss``, ``gap`` and number of members ``used``, with ``t`` and ``seconds``.
    n_iter_ : int
        Number of iterations: always ``max_iter``.
    estimators_ : list of fitted members
        In the order of ``member_names_``.
    named_estimators_ : Bunch
        The fitted members by name; ``"drop"`` for those dropped.
    n_features_in_ : int
        Number of columns, if rows have columns.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they have names.
    result_ : StackResult
        The fitted stack as one immutable value, from which the attributes above are read.

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

    parameter_rules: ClassVar[Rules] = {
        "max_iter": count(1, MOST),
        "n_bags": count(1, MOST),
        "bag_fraction": within(0, 1, "(]"),
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        cv: Any = None,
        prefit: bool = False,
        fold_weight: float = 0.0,
        max_iter: int = 50,
        n_bags: int = 1,
        bag_fraction: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.cv = cv
        self.prefit = prefit
        self.fold_weight = fold_weight
        self.max_iter = max_iter
        self.n_bags = n_bags
        self.bag_fraction = bag_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_iter_(self) -> int:
        """Number of iterations: always ``max_iter``."""
        check_is_fitted(self)
        return self.max_iter

    def _solver(self, seed: int) -> WeightSolver:
        return GreedySelectionSolver(self.max_iter, self.n_bags, self.bag_fraction, seed)


class GreedySelectionClassifier(ClassificationStack):
    """Classification by Caruana's greedy selection of models, to compare with :class:`ConvexStackingClassifier`.

    Models are added one at a time, with replacement, each time the one that lowers the loss of the average most.
    ``gap_`` bounds how much the best weights could still improve on it.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members. ``set_params(name=...)`` replaces a member, ``set_params(name="drop")`` leaves it out.
    loss : {"auto", "log_loss", "brier"} or Loss, default="auto"
        The loss that weights minimise; "auto" is "log_loss". "brier", the squared error of probabilities averaged over
        classes, needs ``mix="probabilities"``. A Loss object gets probabilities and one-hot targets; or scores, with
        targets 0 and 1 for two classes and one-hot targets for more.
    mix : {"scores", "probabilities"}, default="scores"
        What is combined. Scores are logarithms of probabilities if a member has ``predict_proba``, with probabilities
        below 1e-5 counted as 1e-5, and else its ``decision_function``, which should be log-odds: weights cannot change
        its unit. For "probabilities" all members need ``predict_proba``. Mixed probabilities need one number per row in
        memory, mixed scores one per row and class.
    cv : None, int, splitter or iterable of (train, test), default=None
        Folds; every row must be held out exactly once. None is 5 folds. A number of folds is shuffled by
        ``random_state``, stratified, and does not split ``groups``.
    prefit : bool, default=False
        Members are fitted already and used as they are; ``fit`` finds weights on the rows it is given, on which members
        should not have been fitted. :func:`sklearn.base.clone` discards the fit of a member, unless it is wrapped in
        :class:`sklearn.frozen.FrozenEstimator`.
    fold_weight : float, default=0.0
        Weight of the average of the models fitted on folds in each member's predictions; the model fitted on all rows
        has the rest. At 1 no member is fitted on all rows; with ``prefit=True`` it must be 0. 0.5 often predicts better
        than 0, but keeps and evaluates one more model per fold.
    max_iter : int, default=50
        Number of selected models, one per iteration; the best of the averages along the way is kept.
    n_bags : int, default=1
        If more than 1, the average of that many selections, each among a random ``bag_fraction`` of the members.
    bag_fraction : float, default=0.5
        Fraction of the members in each bag.
    n_jobs : int, optional
        Number of joblib workers that fit members, on all rows and on folds.
    random_state : int, RandomState or None, default=None
        For shuffling folds and drawing bags; members have their own.
    verbose : int, default=0
        Verbosity of joblib while members are fitted.

    Attributes
    ----------
    weights_ : array of shape (members,)
        Non-negative, summing to 1, in the order of ``member_names_``. Members of zero weight are not evaluated by
        predictions.
    member_names_ : list of str
        Names of the members, without those dropped.
    risk_ : float
        Loss of the combination on the out-of-fold predictions.
    gap_ : float
        A certificate: no convex combination of the members has a loss below ``risk_ - gap_`` on these predictions.
    history_ : list of dict
        The final ``loss``, ``gap`` and number of members ``used``, with ``t`` and ``seconds``.
    n_iter_ : int
        Number of iterations: always ``max_iter``.
    estimators_ : list of fitted members
        In the order of ``member_names_``.
    named_estimators_ : Bunch
        The fitted members by name; ``"drop"`` for those dropped.
    classes_ : array of shape (K,)
        Sorted classes. Members that are fitted here see their indices 0, 1, ..., as in scikit-learn's stacks; prefit
        members know classes as ``y`` has them.
    n_features_in_ : int
        Number of columns, if rows have columns.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if they have names.
    result_ : StackResult
        The fitted stack as one immutable value, from which the attributes above are read.

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

    parameter_rules: ClassVar[Rules] = {
        "max_iter": count(1, MOST),
        "n_bags": count(1, MOST),
        "bag_fraction": within(0, 1, "(]"),
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        mix: str = "scores",
        cv: Any = None,
        prefit: bool = False,
        fold_weight: float = 0.0,
        max_iter: int = 50,
        n_bags: int = 1,
        bag_fraction: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.mix = mix
        self.cv = cv
        self.prefit = prefit
        self.fold_weight = fold_weight
        self.max_iter = max_iter
        self.n_bags = n_bags
        self.bag_fraction = bag_fraction
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_iter_(self) -> int:
        """Number of iterations: always ``max_iter``."""
        check_is_fitted(self)
        return self.max_iter

    def _solver(self, seed: int) -> WeightSolver:
        return GreedySelectionSolver(self.max_iter, self.n_bags, self.bag_fraction, seed)
