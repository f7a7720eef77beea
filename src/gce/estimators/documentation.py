"""What the six classes say of themselves: the parts of their docstrings that they share."""

from __future__ import annotations

from typing import Any

GREEDY = """
    Every round asks the basis for the model that points best downhill, chooses which weights move and how far, and
    stops when the rows held out no longer improve. By default this is done four times over the same folds, for boosted
    trees of two shapes, a forest and small networks, and the shares of the four are solved exactly on the rows held
    out. Scores never leave ``offset_ +- bound_``.

    Parameters
    ----------
    algorithm : {"auto", "pairwise", "away", "frank-wolfe", "nonlinear", "blended", "boosting"} or Algorithm, \
default="auto"
        Which atoms' weights move in a round, and what the oracle minimises. "auto" is what suits the basis: "pairwise"
        for networks, "boosting" for trees.
    loss : %(loss)s, default="auto"
        %(loss_doc)s
    basis : {"auto", "neural", "neuron", "tree", "symmetric", "forest"}, Basis, or several of these, default="auto"
        The class of models that are combined: small two-layer networks (see :class:`gce.Neural`), single neurons,
        boosted trees (:class:`gce.Tree`, :class:`gce.SymmetricTree`), forests (:class:`gce.Forest`), or an object such
        as ``gce.Neural(hidden=100)``, ``gce.RegressorBasis(estimator)`` or ``gce.Pool(functions)``. Of several classes
        each is fitted by itself over the same folds, and their shares are the best for the rows held out. "auto":
        trees of two shapes, a forest and networks, in sizes that follow from the numbers of rows, columns and outputs;
        networks alone for sparse rows of more than 2^26 numbers (zeros counted), with ``monotonic_cst``, and where an
        algorithm is named.
    bound : float or array of shape (k,), optional
        Half the width of the hull around ``offset``. Default: %(bound)s. Boosted trees are then fitted in a hull with
        room to spare, which is drawn in until their budget is spent: ``bound_`` is what holds. A bound that is given
        is their budget.
    offset : float or "auto", default="auto"
        The constant around which the hull lies; "auto" is the best constant%(offset)s. The paper's is 0.
    line_search : {"auto", "exact", "brent", "1/(t+1)", "2/(t+1)"} or LineSearch, default="auto"
        "auto" is "exact" for all but forests.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Columns of text, booleans and categorical types are categories by themselves; a list of names, places or
        booleans adds others. A category becomes 0/1 inputs, one for each of its (at most 256) frequent levels.
    scale : {"auto", "each", "robust", "common"}, default="auto"
        Centred columns are divided by their own spread ("each"), by the distance of their quartiles where that is
        narrower ("robust"), or all by one number ("common"). "auto" is "common" for 32 columns or more of which nine in
        ten have a range of at most twice the median range (they look measured in one unit), else "robust".
    clip : float or None, default=4.0
        Then far values are drawn in by ``z / (1 + (z/clip)^4)^(1/4)``; None: they are not.
    monotonic_cst : array-like of shape (d,) or dict by name, optional
        For each column of ``X`` whether %(scores)s rise (1) or fall (-1) with it, or move as they like (0). Atoms are
        then networks whose weights keep their signs, and an average of monotone functions is monotone: it holds
        everywhere, not only on the training rows. Default: no column is constrained.
    max_atoms : int or "auto", default="auto"
        Most oracle calls of a member of a family (no limit for a pool, whose oracle trains nothing). "auto": 100
        networks, 500 trees (250 where steps are twice as long), one forest.
    max_iter : int, default=1000
        Most rounds of a family.
    tol : float, default=1e-6
        A member is done when its gap, or the fall of its training risk over ``n_iter_no_change`` rounds, is at most
        ``tol`` times its risk.
    cv : "auto", None, int, splitter or iterable of (train, test), default="auto"
        One member a split, all trained at once and averaged into one ensemble. "auto": 5 folds, 10 below 2,000 rows
        (fewer where a class has fewer rows). None: one hold-out.
    validation_fraction : float or None, default=0.2
        Share held out where ``cv`` is None; None trains on all rows, to the end.
    n_iter_no_change : int, None or "auto", default="auto"
        Rounds without a better validation value, or without a fall of the training risk, after which a member is done
        (boosted members together). "auto": 20 for networks, 30 for trees (15 where steps are twice as long).
    scoring : str or callable, optional
        What to watch on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds that the whole fit may take, from reading the rows to calibrating; families share them, and the best
        rounds so far are kept. A family that cannot end in its share is not begun, and a fit that was cut short says so
        by a ``ConvergenceWarning``. The first family gets a round however late it is.
    device : str, default="cpu"
        A torch device, or "auto" for a GPU where there is one.
    n_jobs : int, optional
        Threads for fits and predictions, at most 64 or one a processor, whichever is more; torch's own number is set
        during a fit and restored afterwards. Default: as many as torch uses.
    callbacks : iterable of callables, optional
        Each is called with every :class:`gce.Step`; a true answer stops the fit.
    verbose : bool or "auto", default="auto"
        A progress bar, which needs rich; "auto" draws one where standard error is a terminal, and in notebooks.
    warm_start : bool, default=False
        Go on from the last fit's last round.
    random_state : int, RandomState or None, default=None
%(task)s    Attributes
    ----------
    ensemble_ : ConvexEnsemble
        The frozen atoms; ``ensemble_.weights`` are on the simplex.
    history_ : list of dict
        One a round: ``t``, ``risk``, ``validation``, ``gap`` (exact oracles) or ``gap_lower`` (trained atoms: a lower
        estimate, which can prove "not optimal" but never "optimal"), ``size``, ``atoms``, ``seconds``; means over
        members, whose own values are lists in ``members``. The gap is that of the iterate the round started from. Of
        several families all rounds, one family after another (``family``), and at last what they came to.
    n_iter_ : int
        Rounds run.
    n_samples_fit_ : int
        Rows learned from, those of weight 0 and those given as ``X_val`` left out.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Table
        How columns are read: names, kinds, levels, gaps, scaling.
"""

TRAINED = """
    learning_rate, min_learning_rate : float, default=%(rate)s, 1e-5
        Adam's first rate, and the floor of its schedule.
    patience : int, default=10
        Epochs without progress of the training risk after which the rate is divided by 10.
    last_epochs : int, default=10
        Epochs at the floor.
    max_epochs : int, optional
        Default: 500, on large data (beyond 4,096 training rows) 100.
    batch_size : int, optional
        Default: all rows, in float64; on large data n/32 rows but between 1,024 and 8,192, in float32. A number:
        mini-batches of that size, in float32.
    weight_decay : float, default=%(decay)s
        Half of it times the squared length of the networks' parameters is added to the risk, which is measured in units
        of the offset's own: one value means the same whatever the unit of ``y``. The schedule, and the choice of an
        epoch where nothing is held out, look at the risk alone.
    categorical_features, scale, clip, monotonic_cst
        As in :class:`%(greedy)s`.
    cv : None, "auto", int, splitter or iterable of (train, test), default=None
        None: one hold-out, as in the paper. Otherwise one member a split, trained at once and averaged.
    validation_fraction : float or None, default=0.2
        Share held out where ``cv`` is None (more where that is too small to hold a row of each class): the best epoch
        is the one best there. None trains on all rows and keeps the epoch of the least training risk.
    n_iter_no_change : int or None, default=50
        Epochs without a better validation value after which a member is done; None waits for the schedule's end.
    scoring : str or callable, optional
        What to watch on held-out rows: any scikit-learn scorer. Default: the loss.
    time_limit : float, optional
        Seconds after which training stops with the best epoch so far.
    device, n_jobs, random_state
        As in :class:`GCERegressor`.
%(task)s    Attributes
    ----------
    ensemble_ : ConvexEnsemble
    history_ : list of dict
        One an epoch: ``epoch``, ``risk`` (running over the epoch where there are mini-batches), ``validation``,
        ``seconds``; means over members, whose own values are lists in ``members``.
    n_iter_ : int
        Epochs run.
    n_samples_fit_ : int
        Rows learned from, those of weight 0 and those given as ``X_val`` left out.
    offset_, bound_ : array of shape (k,)
    loss_ : Loss
    table_ : Table
        How columns are read: names, kinds, levels, gaps, scaling.
"""

NONGREEDY = """
    ``n_atoms`` networks and their weights are one model, trained by Adam: what a greedy ensemble is compared with where
    the number of atoms is known. Weights stay on the simplex at every step, scores in ``offset_ +- bound_``.

    Parameters
    ----------
    n_atoms : int, default=100
    basis : {"neural", "neuron"}, default="neural"
        Atoms: two-layer networks with one hidden layer for all outputs, or single neurons ``bound * tanh(u'x)``, to
        which ``hidden``, ``activation`` and ``output`` mean nothing.
    hidden : int, default=10
        Hidden units of an atom.
    coefficients : {"absolute", "softmax"}, default="absolute"
        Weights as functions of free numbers: ``(1/k + |v_i|) / (1 + sum |v|)``, or a softmax (which the paper found not
        to work well).
    loss, bound, offset
        As in :class:`%(greedy)s`.
    activation : {"relu", "tanh"}, default="relu"
    output : {"hardtanh", "tanh"}, default="hardtanh"\
"""

NETWORK = """
    One two-layer network, its outputs not bounded, regularised by weight decay: the paper's baseline.

    Parameters
    ----------
    hidden : int, default=1000
    loss, offset
        As in :class:`%(greedy)s`.
    activation : {"relu", "tanh"}, default="relu"\
"""


_CLASSES = """\
    class_weight : dict, "balanced" or None, default=None
        What a row of each class counts, beside its sample weight, in training and validation; "balanced" gives all
        classes the same weight.
    temperature : float or "auto", default="auto"
        Probabilities are those of scores divided by it. "auto": the one that makes the log-loss of the held-out rows
        (each member's own, where there are several) and of one row of unknown class least, if that is less than
        without; 1 turns it off. Scores, their bound and the predicted classes are untouched.
"""

_TASK = {
    "Regressor": (
        "\n",
        "    residuals_ : array of shape (r, k)\n        Sorted residuals of held-out rows, for intervals.\n",
    ),
    "Classifier": (_CLASSES + "\n", "    temperature_ : float\n    classes_ : array of shape (classes,)\n"),
}


def documented(text: str, **parts: str) -> Any:
    def add(cls: type) -> type:
        parameters, attributes = next(own for task, own in _TASK.items() if cls.__name__.endswith(task))
        cls.__doc__ = (cls.__doc__ or "") + text % {**parts, "task": parameters} + attributes
        return cls

    return add
