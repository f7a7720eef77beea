"""Convex stacking: the best convex combination of models that people already have."""

from __future__ import annotations

from typing import Any, ClassVar

from gce._utils.params import Rules, at_least
from gce.estimators.stacking.classification import ClassificationStack
from gce.estimators.stacking.regression import RegressionStack
from gce.estimators.stacking.solvers import ConvexSolver, WeightSolver
from gce.losses import Loss


class ConvexStackingRegressor(RegressionStack):
    """Regression by the best convex combination of models, with a certificate.

    Members are fitted on all rows. Their weights, non-negative and summing to 1, minimise the loss of their out-of-fold
    predictions, to a proven gap. There is no final estimator to choose.

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
    tol : float, default=1e-6
        Weights are solved to a gap of ``tol`` times the loss; a ConvergenceWarning reports if that is not reached.
    n_jobs : int, optional
        Number of joblib workers that fit members, on all rows and on folds.
    random_state : int, RandomState or None, default=None
        For shuffling folds; members have their own.
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
        Iterations of the solver: ``t``, ``loss``, ``gap``, ``used``, ``seconds``.
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
    >>> from gce import ConvexStackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(max_depth=3, random_state=0))]
    >>> stack = ConvexStackingRegressor(members, random_state=0).fit(X, y)
    >>> bool(stack.gap_ <= 1e-6 * stack.risk_)
    True
    """

    parameter_rules: ClassVar[Rules] = {"tol": at_least(0)}

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        cv: Any = None,
        prefit: bool = False,
        fold_weight: float = 0.0,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.loss = loss
        self.cv = cv
        self.prefit = prefit
        self.fold_weight = fold_weight
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self, seed: int) -> WeightSolver:
        return ConvexSolver(self.tol)


class ConvexStackingClassifier(ClassificationStack):
    """Classification by the best convex combination of models, with a certificate.

    Members are fitted on all rows. Their weights, non-negative and summing to 1, minimise the loss of their out-of-fold
    probabilities or scores, to a proven gap. There is no final estimator to choose.

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
    tol : float, default=1e-6
        Weights are solved to a gap of ``tol`` times the loss; a ConvergenceWarning reports if that is not reached.
    n_jobs : int, optional
        Number of joblib workers that fit members, on all rows and on folds.
    random_state : int, RandomState or None, default=None
        For shuffling folds; members have their own.
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
        Iterations of the solver: ``t``, ``loss``, ``gap``, ``used``, ``seconds``.
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
    >>> from gce import ConvexStackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=3, random_state=0))]
    >>> stack = ConvexStackingClassifier(members, random_state=0).fit(X, y)
    >>> bool(stack.gap_ <= 1e-6 * stack.risk_)
    True
    """

    parameter_rules: ClassVar[Rules] = {"tol": at_least(0)}

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        loss: str | Loss = "auto",
        mix: str = "scores",
        cv: Any = None,
        prefit: bool = False,
        fold_weight: float = 0.0,
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
        self.fold_weight = fold_weight
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _solver(self, seed: int) -> WeightSolver:
        return ConvexSolver(self.tol)
