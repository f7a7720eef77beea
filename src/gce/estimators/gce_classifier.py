"""Classification by a greedy convex ensemble: parameters, the fit, and predictions after each round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike, NDArray

from gce._utils.params import Rules, checked_keywords
from gce.estimators._base import Array
from gce.estimators._editable import EditableEnsemble
from gce.estimators._greedy import GREEDY_RULES
from gce.estimators._session import FitSession, start_clock
from gce.estimators._tasks import Classification
from gce.estimators._validation import FitInput
from gce.frank_wolfe.algorithm import Algorithm
from gce.losses import Loss
from gce.losses.line_search import LineSearch
from gce.training.callbacks import Callback
from gce.training.families import sees_statistics
from gce.training.finish import calibrate
from gce.training.fit import run
from gce.training.scores import staged_scores
from gce.training.sklearn_callbacks import with_callbacks


class GCEClassifier(Classification, EditableEnsemble):
    """Classification by a greedy convex ensemble, for two classes or more.

    In every round the basis is asked for the model that is best aligned with the negative gradient, a step moves
    weights towards it, and early stopping on held-out rows ends the fit. By default this is done for up to four
    families over the same folds: boosted trees of two shapes, a forest and small networks. Their weights are then
    solved exactly on the held-out rows, and families that do not pay are left out (``result_.left_out`` says why). Raw
    scores never leave ``offset_ +- bound_``.

    Parameters
    ----------
    algorithm : {"auto", "pairwise", "away", "frank-wolfe", "nonlinear", "blended", "boosting"} or Algorithm, \
default="auto"
        Which weights move in a round, and what the oracle minimises. "auto" is the one that suits the basis:
        "pairwise" for networks, "boosting" for trees.
    loss : {"auto", "log_loss", "ordinal"} or Loss, default="auto"
        "auto" is "log_loss": logistic with one score for two classes or for each of several labels, cross-entropy for
        more classes. "ordinal": classes in an order are learned by the probabilities to be above each. The order is
        that of an ordered category of pandas or of a polars Enum, where ``y`` is one, else the sorted one.
    basis : {"auto", "neural", "neuron", "tree", "symmetric", "forest"}, Basis, or several of these, default="auto"
        The class of models that are combined: small two-layer networks (:class:`gce.bases.Neural`), single neurons,
        boosted trees (:class:`gce.bases.Tree`, :class:`gce.bases.SymmetricTree`), forests (:class:`gce.bases.Forest`),
        or an object such as ``gce.bases.Neural(hidden=100)``, ``gce.bases.RegressorBasis(estimator)`` or
        ``gce.bases.Pool(functions)``. Several families, as a list or as a dict by name, are each fitted over the same
        folds, and weighted on the held-out rows. "auto": trees of two shapes, a forest and networks, whose sizes
        depend on the number of rows; networks alone for sparse matrices of more than 2^26 entries (zeros included), and
        where an algorithm is named.
    bound : float or array of shape (k,), optional
        Half the width of the hull around ``offset``. Default: 10. Boosted trees are then fitted in a wider hull, which
        is tightened afterwards to what their weights need: see ``bound_``. A bound that is given limits their sum of
        step sizes.
    offset : float or "auto", default="auto"
        The constant at the centre of the hull; "auto" is the best constant (the classes' log-odds). The paper uses 0.
    line_search : {"auto", "exact", "brent", "1/(t+1)", "2/(t+1)"} or LineSearch, default="auto"
        "auto" is "exact" for all but forests.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Columns of text, booleans and categorical types are always categorical; names, indices or a boolean mask add
        others. A category is one-hot encoded by its (at most 256) frequent categories.
    scale : {"auto", "each", "robust", "common"}, default="auto"
        Centred columns are divided by their own standard deviation ("each"), by their interquartile range where that is
        smaller ("robust"), or all by one number ("common"). "auto" is "common" for 32 columns or more of which nine in
        ten have a range of at most twice the median range (they look measured in one unit), else "robust".
    clip : float or None, default=4.0
        Outliers are then clipped smoothly by ``z / (1 + (z/clip)^4)^(1/4)``; None: not at all.
    monotonic_cst : array-like of shape (d,) or dict by name, optional
        For each column of ``X`` whether the log-odds of ``classes_[1]`` (two classes only; with ``loss="ordinal"`` the
        log-odds to be above each class) increase (1) or decrease (-1) with it, or are unconstrained (0). Trees, of
        forests too, are then split within bounds, networks' weights keep their signs, and an average of monotone
        functions is monotone: the constraint holds everywhere, not only on the training rows. Default: no column is
        constrained.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of lists, tuples or sets of columns, optional
        Sets of columns of ``X``, by index or name, that may interact: raw scores are sums of functions of the columns
        of one set each. Columns in no set form one more. "pairwise": any two columns; "no_interactions": each alone.
        Trees, of forests too, split columns of one set on a path, and a network looks at one set. Default: all columns.
    max_atoms : int or "auto", default="auto"
        Maximum number of oracle calls per member of a family (no limit for a pool, whose oracle trains nothing).
        "auto": 100 networks, 500 trees (250 at twice the learning rate), one forest. If there are several families,
        a number lowers the "auto" of each and never raises it; a basis that is named alone may have more.
    max_iter : int, default=1000
        Maximum number of rounds of a family.
    tol : float, default=1e-6
        A member is done when its training risk is within ``tol`` times itself of the least in the hull, as the oracle
        of a pool proves and the gap of trained atoms suggests, or falls by no more over ``n_iter_no_change`` rounds.
    cv : "auto", None, int, splitter or iterable of (train, test), default="auto"
        One member per split; all are trained together and averaged into one ensemble. "auto": 5 folds, 10 below 2,000
        rows (fewer where a class has fewer rows), and one hold-out set of a tenth beyond 200,000 rows, or where
        ``time_limit`` leaves less than a second for 4,000 rows. None: one hold-out set.
    validation_fraction : float or None, default=0.2
        Fraction of the rows held out where ``cv`` is None; None trains on all rows, to the end.
    n_iter_no_change : int, None or "auto", default="auto"
        Rounds without a better validation value, or without a decrease of the training risk, after which a member is
        done (boosted members together). "auto": 20 for networks, 30 for trees (15 at twice the learning rate).
    scoring : str or callable, optional
        What early stopping monitors on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds for the whole fit, from reading the rows to calibration; families share them, and the best rounds so far
        are kept. A family that cannot end in its share is skipped. If the limit changes the model in any way, a
        ``ConvergenceWarning`` says how; without the warning it is the model of a fit without a limit, to the last bit.
        The first family gets one round in any case.
    device : str, default="cpu"
        A torch device, or "auto" for a GPU where there is one.
    n_jobs : int, optional
        Number of threads for fits and predictions, at most 64 or the number of processors, whichever is more; torch's
        own setting is restored after a fit. Default: as many as torch uses.
    callbacks : iterable of callables, optional
        Each is called with every :class:`gce.frank_wolfe.Step`; a true return value stops the fit.
    verbose : bool or "auto", default="auto"
        A progress bar, which needs rich; "auto" shows one in terminals and notebooks.
    warm_start : bool, default=False
        Continue from the last round of the last fit.
    random_state : int, RandomState or None, default=None
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
        The frozen atoms; ``ensemble_.weights`` are on the simplex.
    history_ : list of dict
        One per round: ``t``, ``risk``, ``validation``, ``step_size``, ``n_atoms``, ``seconds``, and ``gap_lower``: a
        lower estimate of the duality gap of the iterate the round started from, which can prove "not optimal" but never
        "optimal". A pool, whose oracle is exact, has ``gap`` instead (NaN in rounds without a call of the oracle) and
        ``suboptimality``: the risk is proved to be at most this far above the least in the hull. All are means over
        members, whose own values are lists in ``members``. With several families, the rounds of one family after
        another (``family``), and last the ensemble of all, with the families that it does without and the reason
        (``left_out``) and ``weights_gap``: the held-out loss is at most this far above the least of all weights of the
        families that have one. Rounds and weights are chosen by ``validation``, which is therefore a little too good,
        of families and of all alike; ``result_.held_out`` has metrics of the final predictions for held-out rows.
    n_iter_ : int
        Rounds run by all families.
    n_samples_fit_ : int
        Rows of positive sample weight, those given as ``X_val`` left out.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Table
        How columns are encoded: names, kinds, categories, missing values, scaling.
    classes_ : array of shape (classes,)
        Sorted; probabilities have their columns in this order.
    ordered_classes_ : array of shape (classes,)
        With ``loss="ordinal"`` only: the classes in their order, the lowest first; categories without rows left out.
    temperature_ : float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gce import GCEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GCEClassifier(basis="tree", max_atoms=20, random_state=0).fit(X[::2], y[::2])
    >>> model.predict_proba(X[1::2]).shape
    (75, 3)
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    parameter_rules: ClassVar[Rules] = GREEDY_RULES

    def __init__(
        self,
        *,
        algorithm: str | Algorithm = "auto",
        loss: str | Loss = "auto",
        basis: Any = "auto",
        bound: float | ArrayLike | None = None,
        offset: float | str = "auto",
        line_search: str | LineSearch = "auto",
        categorical_features: Any = "from_dtype",
        scale: str = "auto",
        clip: float | None = 4.0,
        monotonic_cst: Mapping[str, int] | ArrayLike | None = None,
        interaction_cst: str | Sequence[Collection[int | str]] | None = None,
        max_atoms: int | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        cv: Any = "auto",
        validation_fraction: float | None = 0.2,
        n_iter_no_change: int | str | None = "auto",
        scoring: Any = None,
        time_limit: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        callbacks: Iterable[Callback] | None = None,
        verbose: bool | str = "auto",
        warm_start: bool = False,
        random_state: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        temperature: float | str = "auto",
    ) -> None:
        self.algorithm = algorithm
        self.loss = loss
        self.basis = basis
        self.bound = bound
        self.offset = offset
        self.line_search = line_search
        self.categorical_features = categorical_features
        self.scale = scale
        self.clip = clip
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.max_atoms = max_atoms
        self.max_iter = max_iter
        self.tol = tol
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scoring = scoring
        self.time_limit = time_limit
        self.device = device
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state
        self.class_weight = class_weight
        self.temperature = temperature

    @checked_keywords
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit the ensemble.

        Parameters
        ----------
        X : array-like, Tensor, data frame, sparse matrix or Shards of shape (n, d)
            Numbers, booleans, text and categories, with missing values (NaN, None, null) anywhere. Data frames of
            pandas, polars, pyarrow and whatever else narwhals reads. scipy's sparse matrices and arrays (numbers
            without missing values) stay sparse; they are fitted on the CPU. :class:`gce.Shards` are rows in files, with
            their targets, weights and groups: nothing else is given beside them but a checkpoint.
        y : array-like, Tensor, series of shape (n,), or array-like or frame of shape (n, labels)
            Classes; or 0 and 1 for each of several labels that a row may have (scikit-learn's multilabel-indicator).
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two rows, and a row of weight 0 is ignored; folds and the sizes that "auto"
            chooses go by the number of rows.
        groups : array-like of shape (n,), optional
            Rows of one group are never split between the training and the held-out rows of a member. Passed to ``cv``
            where that is a splitter. A group of nearly all rows is not held out, with a warning.
        X_val, y_val, sample_weight_val : optional
            Rows that early stopping monitors; one member is then trained on all rows of ``X``.
        checkpoint : str or Path, optional
            A folder of its own, to which every round is written when it ends. The same call after an interruption
            continues from there and ends in the same model, to the last bit on a CPU; after the fit it returns the
            model at once. Limits (``max_iter``, ``max_atoms``, ``time_limit``, ``tol``, ``n_iter_no_change``) may
            differ from call to call; with ``random_state=None`` the seed of the folder is used. The folder alone
            decides where to continue, whatever ``warm_start`` is. A folder of another fit is refused, and so is one
            that another process is using.

        Returns
        -------
        self
        """
        clock = start_clock(self.time_limit)
        given = FitInput(X, y, sample_weight, groups, X_val, y_val, sample_weight_val)
        with FitSession(self, given, clock=clock, checkpoint=checkpoint) as session:
            data = session.read(statistics=sees_statistics(self.basis))
            plan = session.plan(data)
            fitted = run(
                plan,
                data,
                previous=session.previous,
                store=session.store,
                clock=clock,
                callbacks=session.callbacks,
                task=session.task,
            )
            self._result = calibrate(fitted, data)
        return self

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict classes after each round.

        Each member keeps the weights of its best round from then on, so that the last predictions are those of
        ``predict``.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Yields
        ------
        array of shape (n,)
        """
        for pred in staged_scores(self.result_, self.code_rows(X), self.n_jobs):
            yield self.predict_from_raw(pred)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Predict class probabilities after each round.

        Parameters
        ----------
        X : array-like or data frame of shape (n, d)

        Yields
        ------
        array of shape (n, classes)
        """
        for pred in staged_scores(self.result_, self.code_rows(X), self.n_jobs):
            yield self.probabilities(pred)
