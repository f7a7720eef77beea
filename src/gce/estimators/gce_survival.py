"""Survival analysis by a greedy convex ensemble: parameters, the fit, and predictions after each round."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from gce._utils.params import Rules, checked_keywords
from gce.estimators._base import Array
from gce.estimators._editable import EditableEnsemble
from gce.estimators._greedy import GREEDY_RULES
from gce.estimators._session import FitSession, start_clock
from gce.estimators._survival import Survival
from gce.estimators._validation import FitInput
from gce.frank_wolfe.algorithm import Algorithm
from gce.losses import Loss
from gce.losses.line_search import LineSearch
from gce.preprocessing.shards import Shards
from gce.preprocessing.survival import read_survival
from gce.training.callbacks import Callback
from gce.training.finish import calibrate
from gce.training.fit import run
from gce.training.scores import staged_scores
from gce.training.sklearn_callbacks import with_callbacks


class GCESurvival(Survival, EditableEnsemble):
    """Survival analysis by a greedy convex ensemble: when events happen, from times of which some are censored.

    The fit is that of :class:`gce.GCERegressor`, for the likelihood of right-censored times: boosted trees of two
    shapes, networks and, where hazards are proportional, a forest are learned over the same folds, and weighted on the
    held-out rows. Raw scores are logarithms of hazards, relative to that of all rows together.

    Parameters
    ----------
    algorithm : {"auto", "pairwise", "away", "frank-wolfe", "nonlinear", "blended", "boosting"} or Algorithm, \
default="auto"
        Which weights move in a round, and what the oracle minimises. "auto" is the one that suits the basis:
        "pairwise" for networks, "boosting" for trees.
    loss : {"auto", "cox", "hazards"} or gce.losses.Hazards, default="auto"
        "cox": proportional hazards, one score per row. "hazards": the logarithm of the hazard also changes with time,
        at a rate that depends on the row, which is a second score. "auto" is "cox".
    basis : {"auto", "neural", "neuron", "tree", "symmetric", "forest"}, Basis, or several of these, default="auto"
        The class of models that are combined: small two-layer networks (:class:`gce.bases.Neural`), single neurons,
        boosted trees (:class:`gce.bases.Tree`, :class:`gce.bases.SymmetricTree`), forests (:class:`gce.bases.Forest`),
        or an object such as ``gce.bases.Neural(hidden=100)``, ``gce.bases.RegressorBasis(estimator)`` or
        ``gce.bases.Pool(functions)``. Several families, as a list or as a dict by name, are each fitted over the same
        folds, and weighted on the held-out rows. "auto": trees of two shapes, a forest and networks, whose sizes
        depend on the number of rows; no forest with ``monotonic_cst`` or ``loss="hazards"``, and only the trees with
        ``interaction_cst``; networks alone for sparse matrices of more than 2^26 entries (zeros included), and where an
        algorithm is named.
    bound : float or array of shape (k,), optional
        Half the width of the hull around ``offset``. Default: 5, hazards from 1/150 to 150 times that of all rows.
        Boosted trees are then fitted in a wider hull, which is tightened afterwards to what their weights need: see
        ``bound_``. A bound that is given limits their sum of step sizes.
    offset : float or "auto", default="auto"
        The constant at the centre of the hull; "auto" is the best constant, which is close to 0.
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
        For each column of ``X`` whether the hazard increases (1) or decreases (-1) with it, or is unconstrained (0).
        Hazards must be proportional (``loss="cox"``). Trees are then split within bounds, networks' weights keep their
        signs, and an average of monotone functions is monotone: the constraint holds everywhere, not only on the
        training rows. Default: no column is constrained.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of lists, tuples or sets of columns, optional
        Sets of columns of ``X``, by index or name, that trees may combine on one path; columns in no set form one more.
        "pairwise": any two columns; "no_interactions": each alone, so that raw scores are sums of functions of one
        column. Only ``gce.bases.Tree`` and ``SymmetricTree`` can do so. Default: all columns.
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
        rows, and one hold-out set of a tenth beyond 200,000 rows, or where
        ``time_limit`` leaves less than a second for 4,000 rows. None: one hold-out set.
    validation_fraction : float or None, default=0.2
        Fraction of the rows held out where ``cv`` is None; None trains on all rows, to the end.
    n_iter_no_change : int, None or "auto", default="auto"
        Rounds without a better validation value, or without a decrease of the training risk, after which a member is
        done (boosted members together). "auto": 20 for networks, 30 for trees (15 at twice the learning rate).
    scoring : str or callable, optional
        What early stopping monitors on held-out rows: ``gce.inspection.concordance``, or another scorer of events and
        times and of risks. Default: the loss.
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
    event_times_ : array of shape (t,)
        The times of events, increasing; of more than a thousand, evenly spread ones.
    baseline_ : array of shape (t,)
        The cumulative baseline hazard at these, by Breslow's estimate on held-out rows; on the training rows where
        fewer than five events were held out.

    Examples
    --------
    >>> import numpy as np
    >>> from gce import GCESurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> event, time = rng.random(200) < 0.7, rng.exponential(np.exp(-X[:, 0]))
    >>> y = np.array(list(zip(event, time)), dtype=[("event", bool), ("time", float)])
    >>> model = GCESurvival(basis="tree", max_atoms=20, random_state=0).fit(X[:150], y[:150])
    >>> model.predict_survival_function(X[150:], times=[0.5, 1.0, 2.0]).shape
    (50, 3)
    >>> bool(model.score(X[150:], y[150:]) > 0.6)
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
        X : array-like, Tensor, data frame or sparse matrix of shape (n, d)
            Numbers, booleans, text and categories, with missing values (NaN, None, null) anywhere, as in
            :meth:`gce.GCERegressor.fit`.
        y : structured array of shape (n,), or array-like or frame of shape (n, 2)
            Whether the event happened (else the row was censored then) and when: scikit-survival's structured array
            with a boolean and a number, or two columns.
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
        if isinstance(X, Shards):
            raise TypeError("GCESurvival takes rows in memory, not Shards")
        y = None if y is None else read_survival(y)
        given = FitInput(X, y, sample_weight, groups, X_val, y_val, sample_weight_val)
        with FitSession(self, given, clock=clock, checkpoint=checkpoint) as session:
            # means of censored times by category would be no statistics of the times themselves
            data = session.read(statistics=False)
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

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predict risks after each round.

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
