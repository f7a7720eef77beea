"""Names that other libraries have for parameters, losses and bases, and ours for the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from difflib import get_close_matches

_ROUNDS = ("max_atoms", "n_atoms", "max_epochs", "max_iter")
_STOPPING = ("n_iter_no_change",)
_VALIDATION = ("X_val=..., y_val=...",)
_LEAVES = ("max_leaf_nodes", "basis=gce.bases.Tree(max_leaf_nodes=...)")
_DEPTH = ("max_depth", "basis=gce.bases.Tree(max_depth=...)")
_LEAF_ROWS = ("min_samples_leaf", "basis=gce.bases.Tree(min_samples_leaf=...)")
_PENALTY = ("weight_decay", "l2_regularization", "basis=gce.bases.Tree(l2_regularization=...)")
_ROW_SHARE = ("subsample", "basis=gce.bases.Tree(subsample=...)")
_COLUMN_SHARE = ("max_features", "basis=gce.bases.Tree(max_features=...)")
_BINS = ("max_bins", "basis=gce.bases.Tree(max_bins=...)")
_STEPS = ("learning_rate", "basis=gce.bases.Tree(learning_rate=...)")
_CATEGORIES = ("categorical_features",)
_LEVEL = ("quantile", "loss=gce.losses.Quantile(quantile=...)")
_BASE = ("base_score",)
_EPOCHS = ("max_epochs", "basis=gce.bases.Neural(max_epochs=...)")
_HIDDEN = ("hidden", "basis=gce.bases.Neural(hidden=...)")

#: For each name the alternatives, of which the first that a class has is named: a parameter, or how it is written.
_PARAMETERS = {
    **dict.fromkeys(("n_estimators", "iterations", "num_iterations", "num_boost_round", "num_round"), _ROUNDS),
    **dict.fromkeys(("n_iter", "num_trees", "n_trees", "max_rounds", "n_rounds"), _ROUNDS),
    **dict.fromkeys(("early_stopping_rounds", "early_stopping_round", "early_stopping"), _STOPPING),
    **dict.fromkeys(("od_wait", "n_iter_without_progress"), _STOPPING),
    **dict.fromkeys(("eval_set", "valid_sets", "valid_set", "validation_data", "evals", "validation_set"), _VALIDATION),
    **dict.fromkeys(("x_valid", "x_validation", "y_valid", "y_validation", "eval_names"), _VALIDATION),
    **dict.fromkeys(("eval_sample_weight", "sample_weight_eval_set"), ("sample_weight_val",)),
    **dict.fromkeys(("eval_init_score", "base_margin_eval_set"), ("base_score_val",)),
    **dict.fromkeys(("num_leaves", "max_leaves", "max_leaf_nodes"), _LEAVES),
    **dict.fromkeys(("max_depth", "depth"), _DEPTH),
    **dict.fromkeys(("min_samples_leaf", "min_child_samples", "min_data_in_leaf", "min_child_weight"), _LEAF_ROWS),
    **dict.fromkeys(("reg_lambda", "lambda_l2", "l2_leaf_reg", "l2_regularization", "weight_decay"), _PENALTY),
    **dict.fromkeys(("subsample", "bagging_fraction"), _ROW_SHARE),
    **dict.fromkeys(("max_features", "colsample_bytree", "colsample_bynode", "feature_fraction", "rsm"), _COLUMN_SHARE),
    **dict.fromkeys(("max_bins", "max_bin", "border_count"), _BINS),
    **dict.fromkeys(("learning_rate", "learning_rate_init", "eta", "shrinkage_rate"), _STEPS),
    **dict.fromkeys(("cat_features", "categorical_feature", "categorical_columns"), _CATEGORIES),
    **dict.fromkeys(("enable_categorical", "categorical_indicator"), _CATEGORIES),
    **dict.fromkeys(("objective", "loss_function", "criterion", "application"), ("loss",)),
    **dict.fromkeys(("quantile", "quantile_alpha"), _LEVEL),
    "alpha": ("weight_decay", "delta", "coverage", "levels", *_LEVEL),
    **dict.fromkeys(("level", "tau", "quantiles"), ("levels", *_LEVEL)),
    "confidence": ("coverage",),
    **dict.fromkeys(("delta", "huber_slope", "epsilon"), ("delta", "loss=gce.losses.Huber(delta=...)")),
    **dict.fromkeys(("tweedie_variance_power", "power"), ("power", "loss=gce.losses.Tweedie(power=...)")),
    "exposure": ("base_score=numpy.log(exposure)",),
    **dict.fromkeys(("offset", "base_margin", "init_score", "baseline", "offset_column"), _BASE),
    **dict.fromkeys(("eval_metric", "metric", "custom_metric", "feval"), ("scoring",)),
    **dict.fromkeys(("seed", "random_seed"), ("random_state",)),
    **dict.fromkeys(("nthread", "num_threads", "thread_count", "n_threads"), ("n_jobs",)),
    **dict.fromkeys(("verbosity", "silent", "verbose_eval", "logging_level"), ("verbose",)),
    **dict.fromkeys(("task_type", "device_type", "tree_method"), ("device",)),
    **dict.fromkeys(("monotone_constraints", "monotonic_constraints"), ("monotonic_cst",)),
    **dict.fromkeys(("interaction_constraints",), ("interaction_cst",)),
    **dict.fromkeys(("class_weights", "scale_pos_weight", "is_unbalance", "auto_class_weights"), ("class_weight",)),
    **dict.fromkeys(("booster", "boosting_type", "boosting"), ("basis",)),
    **dict.fromkeys(("max_time", "timeout", "time_budget", "max_runtime_secs"), ("time_limit",)),
    **dict.fromkeys(("init_model", "xgb_model"), ("warm_start",)),
    **dict.fromkeys(("weight", "weights", "sample_weights"), ("sample_weight",)),
    **dict.fromkeys(("group", "group_id"), ("groups",)),
    **dict.fromkeys(("n_splits", "n_folds", "nfold", "folds"), ("cv",)),
    **dict.fromkeys(("epochs", "max_epochs"), _EPOCHS),
    **dict.fromkeys(("hidden_layer_sizes", "hidden", "layers"), _HIDDEN),
    "batch_size": ("batch_size", "basis=gce.bases.Neural(batch_size=...)"),
    "activation": ("activation", "basis=gce.bases.Neural(activation=...)"),
}

_SQUARED = ("mse", "rmse", "l2", "l2_root", "regression", "regression_l2", "mean_squared_error", "ls", "squarederror")
_SQUARED_ERRORS = ("squared", "root_mean_squared_error", "squared_loss", "reg:squarederror", "reg:linear")
_ABSOLUTE = ("mae", "l1", "regression_l1", "mean_absolute_error", "lad", "absolute", "reg:absoluteerror")
_LOG_LOSS = ("logloss", "binary", "multiclass", "softmax", "crossentropy", "cross_entropy", "binary_crossentropy")
_LOG_LOSSES = ("logistic", "binomial", "binary:logistic", "multi:softprob", "multi:softmax", "log", "deviance")

#: By their names in lower case.
_VALUES = {
    "loss": {
        **dict.fromkeys(_SQUARED + _SQUARED_ERRORS, "squared_error"),
        **dict.fromkeys(_ABSOLUTE, "absolute_error"),
        **dict.fromkeys(_LOG_LOSS + _LOG_LOSSES, "log_loss"),
        **dict.fromkeys(("reg:pseudohubererror", "pseudohuber"), "pseudo_huber"),
        **dict.fromkeys(("smooth_l1", "huber_loss"), "huber"),
        **dict.fromkeys(("pinball", "reg:quantileerror", "quantile_loss"), "quantile"),
        **dict.fromkeys(("count:poisson", "poisson_loss"), "poisson"),
        "reg:gamma": "gamma",
        "reg:tweedie": "tweedie",
        **dict.fromkeys(("survival:cox", "coxph", "cox_ph"), "cox"),
    },
    "scoring": {
        **dict.fromkeys(("mae", "l1", "mean_absolute_error", "absolute_error"), "neg_mean_absolute_error"),
        **dict.fromkeys(("mse", "l2", "mean_squared_error", "squared_error"), "neg_mean_squared_error"),
        **dict.fromkeys(("rmse", "root_mean_squared_error", "l2_root"), "neg_root_mean_squared_error"),
        **dict.fromkeys(("mape", "mean_absolute_percentage_error"), "neg_mean_absolute_percentage_error"),
        **dict.fromkeys(("medae", "median_absolute_error"), "neg_median_absolute_error"),
        **dict.fromkeys(("msle", "mean_squared_log_error"), "neg_mean_squared_log_error"),
        **dict.fromkeys(("rmsle", "root_mean_squared_log_error"), "neg_root_mean_squared_log_error"),
        **dict.fromkeys(("logloss", "log_loss", "binary_logloss", "multi_logloss", "mlogloss"), "neg_log_loss"),
        **dict.fromkeys(("crossentropy", "cross_entropy"), "neg_log_loss"),
        **dict.fromkeys(("auc", "rocauc", "auroc"), "roc_auc"),
        **dict.fromkeys(("aucpr", "prauc", "average_precision_score"), "average_precision"),
        **dict.fromkeys(("brier", "brier_score", "brier_score_loss"), "neg_brier_score"),
        **dict.fromkeys(("acc", "accuracy_score"), "accuracy"),
        **dict.fromkeys(("r2_score", "r_squared"), "r2"),
        **dict.fromkeys(("poisson", "mean_poisson_deviance"), "neg_mean_poisson_deviance"),
        **dict.fromkeys(("gamma", "mean_gamma_deviance"), "neg_mean_gamma_deviance"),
    },
    "basis": {
        **dict.fromkeys(("gbdt", "gbtree", "trees", "boosting", "xgboost", "lightgbm"), "tree"),
        **dict.fromkeys(("oblivious", "symmetrictree", "catboost"), "symmetric"),
        **dict.fromkeys(("rf", "random_forest", "randomforest"), "forest"),
        **dict.fromkeys(("nn", "mlp", "network", "neural_network"), "neural"),
    },
}
#: What a loss, a basis or a method may be given by mistake.
_OF_ESTIMATORS = ("max_atoms", "n_iter_no_change", "random_state", "n_jobs", "verbose", "device", "scoring", "cv")
_FOR = {"log_loss": "GCEClassifier", "cox": "GCESurvival"}


def parameter_advice(
    name: str, owner: str, constructor: Collection[str], fit: Collection[str], *, fitting: bool
) -> str:
    """What to write in place of an unknown keyword; empty where nothing is known.

    Parameters
    ----------
    name : str
        The keyword.
    owner : str
        Name of the class.
    constructor, fit : collections of str
        Names of the parameters of the constructor, and of the arguments of ``fit``.
    fitting : bool
        Whether the keyword was given to ``fit``.

    Examples
    --------
    >>> parameter_advice("n_estimators", "GCERegressor", ["max_atoms"], ["X", "y"], fitting=False)
    'use max_atoms=...'
    >>> parameter_advice("n_estimators", "GCERegressor", ["max_atoms"], ["X", "y"], fitting=True)
    'use GCERegressor(max_atoms=...)'
    """
    written, fits = _alternative(name, constructor, fit, fitting=fitting)
    if written is not None:
        ours = written.partition("=")[0]
        if fits:
            return f"use fit(X, y, {written})"
        use = f"use {owner}({written})" if fitting else f"use {written}"
        return f"it belongs to the {ours}: {use}" if "gce." in written else use
    near = get_close_matches(name, fit if fitting else constructor, n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _alternative(
    name: str, constructor: Collection[str], fit: Collection[str], *, fitting: bool
) -> tuple[str | None, bool]:
    """How the first alternative is written that there is, and whether it is an argument of ``fit``."""
    for written in (name, *_PARAMETERS.get(name.lower(), ())):
        ours, equals, _ = written.partition("=")
        written = written if equals else f"{written}=..."
        # a name that both have is the one that was not given
        if ours in constructor and (fitting or ours != name):
            return written, False
        if ours in fit and (not fitting or ours != name):
            return written, True
    return None, False


def argument_advice(name: str, known: Collection[str]) -> str:
    """What to write in place of an unknown argument of a loss, a basis or a method; empty where nothing is known.

    Parameters
    ----------
    name : str
        The keyword.
    known : collection of str
        Names of the arguments that there are.

    Examples
    --------
    >>> argument_advice("num_leaves", ["max_leaf_nodes"])
    'use max_leaf_nodes=...'
    >>> argument_advice("n_estimators", ["max_leaf_nodes"])
    'it belongs to the estimator: use GCERegressor(max_atoms=...)'
    """
    written, _ = _alternative(name, known, (), fitting=False)
    if written is not None:
        return f"use {written}"
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    ours = name if name in _OF_ESTIMATORS else _PARAMETERS.get(name.lower(), ("",))[0]
    return f"it belongs to the estimator: use GCERegressor({ours}=...)" if ours in _OF_ESTIMATORS else ""


def setting_advice(name: str, prefix: str, known: Collection[str], objects: Mapping[str, Mapping[str, str]]) -> str:
    """What to give to ``--set`` in place of an unknown parameter; empty where nothing is known.

    Parameters
    ----------
    name : str
        The parameter, without the prefix.
    prefix : str
        Such as "basis__", where it is one of an object.
    known : collection of str
        Names of the parameters of the model or object.
    objects : mapping of str to mapping of str to str
        For each parameter that is an object the names of objects, by their classes.

    Examples
    --------
    >>> setting_advice("n_estimators", "", ["max_atoms"], {})
    'use --set max_atoms=...'
    >>> setting_advice("learning_rate", "", ["basis"], {"basis": {"Tree": "tree"}})
    'use --set basis=tree --set basis__learning_rate=...'
    """
    written, _ = _alternative(name, known, (), fitting=False)
    if written is None:
        near = get_close_matches(name, known, n=1)
        return f"did you mean {prefix + near[0]!r}?" if near else ""
    ours, _, value = written.partition("=")
    if not value.startswith("gce."):
        return f"use --set {prefix}{ours}=..."
    kind, _, inside = value.partition("(")
    called, parameter = objects[ours][kind.rpartition(".")[2]], inside.partition("=")[0].strip(".)")
    return f"use --set {ours}={called}" + (f" --set {ours}__{parameter}=..." if parameter else "")


def value_advice(what: str, given: str, known: Collection[str]) -> str:
    """What to write in place of an unknown name of a loss or basis; empty where nothing is known.

    Parameters
    ----------
    what : str
        What has the name, such as "loss".
    given : str
        The name.
    known : collection of str
        The names that are valid here.

    Examples
    --------
    >>> value_advice("loss", "mae", ["squared_error", "absolute_error"])
    "use 'absolute_error'"
    >>> value_advice("loss", "binary:logistic", ["squared_error", "absolute_error"])
    "it is 'log_loss' of GCEClassifier"
    """
    ours = _VALUES.get(what, {}).get(given.lower())
    if ours is None:
        near = get_close_matches(given.lower(), known, n=1)
        return f"did you mean {near[0]!r}?" if near else ""
    return f"use {ours!r}" if ours in known else f"it is {ours!r} of {_FOR.get(ours, 'GCERegressor')}"
