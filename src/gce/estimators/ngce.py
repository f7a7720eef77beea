"""Non-greedy convex ensembles: a given number of atoms and their weights, trained all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from gce._utils.params import Rules, checked_keywords
from gce.bases.neural.mixture import COEFFICIENTS
from gce.bases.neural.network import Activation, Bounded
from gce.estimators._editable import EditableEnsemble
from gce.estimators._joint import NGCE_RULES, atom_architecture, deadline_after
from gce.estimators._session import FitSession
from gce.estimators._tasks import Classification, Regression
from gce.estimators._validation import FitInput, validate
from gce.losses import Loss
from gce.training.finish import calibrate_joint
from gce.training.joint import plan_joint_fit, train
from gce.training.sklearn_callbacks import with_callbacks


class NGCERegressor(Regression, EditableEnsemble):
    """Regression by a convex ensemble of a given size, trained all at once, for one target or several.

    ``n_atoms`` networks and their weights are one model, trained by Adam: what a greedy ensemble is compared with where
    the number of atoms is known. Weights stay on the simplex at every step, raw scores in ``offset_ +- bound_``.

    Parameters
    ----------
    n_atoms : int, default=100
    basis : {"neural", "neuron"}, default="neural"
        Atoms: two-layer networks with one hidden layer for all outputs, or single neurons ``bound * tanh(u'x)``, for
        which ``hidden``, ``activation`` and ``output`` are ignored.
    hidden : int, default=10
        Hidden units of an atom.
    coefficients : {"absolute", "softmax"}, default="absolute"
        Weights as functions of free numbers: ``(1/k + |v_i|) / (1 + sum |v|)``, or a softmax (which the paper found not
        to work well).
    loss, bound, offset
        As in :class:`gce.GCERegressor`.
    activation : {"relu", "tanh"}, default="relu"
    output : {"hardtanh", "tanh"}, default="hardtanh"
    learning_rate, min_learning_rate : float, default=1e-2, 1e-5
        Adam's first learning rate, and the floor of its schedule.
    patience : int, default=10
        Epochs without progress of the training risk after which the learning rate is divided by 10.
    last_epochs : int, default=10
        Epochs at the floor.
    max_epochs : int, optional
        Default: 500; beyond 4,096 training rows 100.
    batch_size : int, optional
        Default: all rows, in float64; beyond 4,096 training rows n/32 rows but between 1,024 and 8,192, in float32. A
        number: mini-batches of that size, in float32.
    weight_decay : float, default=0
        Half of it times the squared l2 norm of the networks' parameters is added to the risk, which is divided by that
        of the offset: one value means the same whatever the unit of ``y``. The schedule, and the choice of an epoch
        where nothing is held out, look at the risk alone.
    categorical_features, scale, clip, monotonic_cst
        As in :class:`gce.GCERegressor`.
    cv : None, "auto", int, splitter or iterable of (train, test), default=None
        None: one hold-out set, as in the paper. Otherwise one member per split; all are trained together and averaged.
    validation_fraction : float or None, default=0.2
        Fraction of the rows held out where ``cv`` is None (more where that is too small to hold a row of each class):
        the best epoch is chosen there. None trains on all rows and keeps the epoch of the least training risk.
    n_iter_no_change : int or None, default=50
        Epochs without a better validation value after which a member is done; None waits for the end of the schedule.
    scoring : str or callable, optional
        What is monitored on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds after which training stops with the best epoch so far.
    device, n_jobs, random_state
        As in :class:`gce.GCERegressor`.

    Attributes
    ----------
    result_ : FitResult
        The result of the fit, which all other attributes are part of.
    ensemble_ : ConvexEnsemble
    history_ : list of dict
        One per epoch: ``epoch``, ``risk`` (running over the epoch with mini-batches), ``validation``, ``seconds``;
        means over members, whose own values are lists in ``members``.
    n_iter_ : int
        Epochs run.
    n_samples_fit_ : int
        Rows of positive sample weight, those given as ``X_val`` left out.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Table
        How columns are encoded: names, kinds, categories, missing values, scaling.
    residuals_ : array of shape (r, k)
        Sorted residuals of held-out rows, for prediction intervals.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gce import NGCERegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NGCERegressor(n_atoms=3, max_epochs=5, random_state=0).fit(X, y)
    >>> model.predict(X).shape
    (442,)
    """

    parameter_rules: ClassVar[Rules] = NGCE_RULES

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        basis: str = "neural",
        hidden: int = 10,
        coefficients: str = "absolute",
        loss: str | Loss = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_atoms = n_atoms
        self.basis = basis
        self.hidden = hidden
        self.coefficients = coefficients
        self.loss = loss
        self.bound = bound
        self.offset = offset
        self.activation, self.output = activation, output
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    @checked_keywords
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X, y, sample_weight, groups, X_val, y_val, sample_weight_val
            As in :meth:`gce.GCERegressor.fit`.

        Returns
        -------
        self
        """
        deadline = deadline_after(self.time_limit)
        given = FitInput(X, y, sample_weight, groups, X_val, y_val, sample_weight_val)
        with FitSession(self, given) as session:
            data = validate(self, given, seed=session.seed)
            plan = plan_joint_fit(
                self,
                data,
                architecture=atom_architecture(self.basis, self.hidden, self.activation, self.output),
                atoms=int(self.n_atoms),
                coefficients=COEFFICIENTS[self.coefficients],
                deadline=deadline,
            )
            session.task.begin(rounds=0)
            self._result = calibrate_joint(*train(plan, data), data, deadline)
        return self


class NGCEClassifier(Classification, EditableEnsemble):
    """Classification by a convex ensemble of a given size, trained all at once, for two classes or more.

    ``n_atoms`` networks and their weights are one model, trained by Adam: what a greedy ensemble is compared with where
    the number of atoms is known. Weights stay on the simplex at every step, raw scores in ``offset_ +- bound_``.

    Parameters
    ----------
    n_atoms : int, default=100
    basis : {"neural", "neuron"}, default="neural"
        Atoms: two-layer networks with one hidden layer for all outputs, or single neurons ``bound * tanh(u'x)``, for
        which ``hidden``, ``activation`` and ``output`` are ignored.
    hidden : int, default=10
        Hidden units of an atom.
    coefficients : {"absolute", "softmax"}, default="absolute"
        Weights as functions of free numbers: ``(1/k + |v_i|) / (1 + sum |v|)``, or a softmax (which the paper found not
        to work well).
    loss, bound, offset
        As in :class:`gce.GCEClassifier`.
    activation : {"relu", "tanh"}, default="relu"
    output : {"hardtanh", "tanh"}, default="hardtanh"
    learning_rate, min_learning_rate : float, default=1e-2, 1e-5
        Adam's first learning rate, and the floor of its schedule.
    patience : int, default=10
        Epochs without progress of the training risk after which the learning rate is divided by 10.
    last_epochs : int, default=10
        Epochs at the floor.
    max_epochs : int, optional
        Default: 500; beyond 4,096 training rows 100.
    batch_size : int, optional
        Default: all rows, in float64; beyond 4,096 training rows n/32 rows but between 1,024 and 8,192, in float32. A
        number: mini-batches of that size, in float32.
    weight_decay : float, default=0
        Half of it times the squared l2 norm of the networks' parameters is added to the risk, which is divided by that
        of the offset: one value means the same whatever the unit of ``y``. The schedule, and the choice of an epoch
        where nothing is held out, look at the risk alone.
    categorical_features, scale, clip, monotonic_cst
        As in :class:`gce.GCEClassifier`.
    cv : None, "auto", int, splitter or iterable of (train, test), default=None
        None: one hold-out set, as in the paper. Otherwise one member per split; all are trained together and averaged.
    validation_fraction : float or None, default=0.2
        Fraction of the rows held out where ``cv`` is None (more where that is too small to hold a row of each class):
        the best epoch is chosen there. None trains on all rows and keeps the epoch of the least training risk.
    n_iter_no_change : int or None, default=50
        Epochs without a better validation value after which a member is done; None waits for the end of the schedule.
    scoring : str or callable, optional
        What is monitored on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds after which training stops with the best epoch so far.
    device, n_jobs, random_state
        As in :class:`gce.GCEClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Factors of the sample weights by class, in training and validation; "balanced" gives all classes the same
        total weight.
    temperature : float or "auto", default="auto"
        Probabilities are those of scores divided by it. "auto": the temperature that minimises the log-loss of the
        held-out rows (each member's own, where there are several) and of one row of unknown class, if that is less
        than without; 1 turns it off. Scores, their bound and the predicted classes are unchanged.

    Attributes
    ----------
    result_ : FitResult
        The result of the fit, which all other attributes are part of.
    ensemble_ : ConvexEnsemble
    history_ : list of dict
        One per epoch: ``epoch``, ``risk`` (running over the epoch with mini-batches), ``validation``, ``seconds``;
        means over members, whose own values are lists in ``members``.
    n_iter_ : int
        Epochs run.
    n_samples_fit_ : int
        Rows of positive sample weight, those given as ``X_val`` left out.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Table
        How columns are encoded: names, kinds, categories, missing values, scaling.
    classes_ : array of shape (classes,)
    temperature_ : float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gce import NGCEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NGCEClassifier(n_atoms=3, max_epochs=5, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    parameter_rules: ClassVar[Rules] = NGCE_RULES

    def __init__(
        self,
        *,
        n_atoms: int = 100,
        basis: str = "neural",
        hidden: int = 10,
        coefficients: str = "absolute",
        loss: str | Loss = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        activation: Activation = "relu",
        output: Bounded = "hardtanh",
        learning_rate: float = 1e-2,
        min_learning_rate: float = 1e-5,
        patience: int = 10,
        last_epochs: int = 10,
        max_epochs: int | None = None,
        batch_size: int | None = None,
        weight_decay: float = 0.0,
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        cv: Any = None,
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | None = 50,
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        temperature: float | str = "auto",
    ) -> None:
        self.n_atoms = n_atoms
        self.basis = basis
        self.hidden = hidden
        self.coefficients = coefficients
        self.loss = loss
        self.bound = bound
        self.offset = offset
        self.activation, self.output = activation, output
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.patience, self.last_epochs = patience, last_epochs
        self.max_epochs, self.batch_size = max_epochs, batch_size
        self.weight_decay = weight_decay
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.class_weight = class_weight
        self.temperature = temperature

    @checked_keywords
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X, y, sample_weight, groups, X_val, y_val, sample_weight_val
            As in :meth:`gce.GCEClassifier.fit`.

        Returns
        -------
        self
        """
        deadline = deadline_after(self.time_limit)
        given = FitInput(X, y, sample_weight, groups, X_val, y_val, sample_weight_val)
        with FitSession(self, given) as session:
            data = validate(self, given, seed=session.seed)
            plan = plan_joint_fit(
                self,
                data,
                architecture=atom_architecture(self.basis, self.hidden, self.activation, self.output),
                atoms=int(self.n_atoms),
                coefficients=COEFFICIENTS[self.coefficients],
                deadline=deadline,
            )
            session.task.begin(rounds=0)
            self._result = calibrate_joint(*train(plan, data), data, deadline)
        return self
