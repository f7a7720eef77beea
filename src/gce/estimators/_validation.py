"""Input validation: what users give to ``fit`` and ``predict``, checked as scikit-learn does, encoded and split."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import _check_y, check_consistent_length, validate_data
from torch import Tensor

from gce._utils.devices import as_numpy, find_device
from gce._utils.random import Streams
from gce._utils.warn import warn_user
from gce.estimators._encoding import fit_table, learn_statistics, statistics_again
from gce.losses import Loss, Ordinal
from gce.losses.base import is_finite, non_finite
from gce.preprocessing import (
    Frame,
    Schema,
    Table,
    check_regression_targets,
    fill_masked,
    is_tabular,
    read_frame,
    refuse_class,
    select_columns,
    targets_as_array,
)
from gce.preprocessing.columns import CategoryTotals
from gce.preprocessing.row_hashes import hash_samples
from gce.preprocessing.sample_weights import check_sample_weight, normalize_equal, rescale_weights
from gce.preprocessing.schema import text_that_reads_as_dates
from gce.preprocessing.shards import Shards
from gce.preprocessing.sparse import Matrix, SparseRows, check_sparse, densify_small, stack_rows, take
from gce.preprocessing.splits import (
    Members,
    TrainingRows,
    check_groups,
    from_splits,
    from_validation_set,
    splits_for,
    training_rows_first,
)
from gce.preprocessing.target_statistics import with_statistics
from gce.preprocessing.targets import (
    as_bound,
    category_order,
    check_base_score,
    check_order,
    has_labels,
    lacking_classes,
)
from gce.training.data import FitData, GivenTargets
from gce.training.problem import Metric, Problem
from gce.training.result import FitResult
from gce.training.scoring import ScorerMetric
from gce.training.targets import CLIPPED, NumberTarget, Target, with_base

Array = NDArray[np.float64]
#: From the task, the loss, targets ``(n, k)``, weights ``(n,)`` and the offset to the bound ``(k,)`` of the hull.
Bound = Callable[[Target, Loss, Tensor, Array, Tensor], Tensor]


class FitInput(NamedTuple):
    """The arguments of ``fit``, not yet validated; see :meth:`gce.GCERegressor.fit`."""

    X: Any
    y: Any
    sample_weight: Any = None
    groups: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    base_score: Any = None
    base_score_val: Any = None


class EncodedRows(NamedTuple):
    """Validated rows of a fit.

    Parameters
    ----------
    rows : TrainingRows
        Those of positive weight, with their targets encoded.
    schema : Schema
        The columns and their categories.
    target : Target
        What is predicted.
    loss : Loss
        The loss, defined for these targets.
    given : GivenTargets or None
        The targets before class weights and base scores; None without these.
    """

    rows: TrainingRows
    schema: Schema
    target: Target
    loss: Loss
    given: GivenTargets | None


def validate(
    model: Any,
    given: FitInput,
    *,
    seed: int,
    previous: FitResult | None = None,
    bound: Bound | None = None,
    statistics: bool = False,
) -> FitData:
    """Check and encode the data of a fit, and split it into folds.

    Parameters
    ----------
    model : estimator
    given : FitInput
    seed : int
    previous : FitResult, optional
        The fit that is continued: columns, classes, offset and bound are its own.
    bound : callable, optional
        Decides the bound of the hull. Default: the parameter ``bound``.
    statistics : bool, default=False
        Columns with many categories have statistics of the target, of each member's own training rows.

    Returns
    -------
    FitData
    """
    encoded = read_rows(model, given, previous)
    rows, schema, target, loss, _ = encoded
    members, X, y, targets = split_rows(model, given, encoded, seed)
    if previous is None:
        sources = with_statistics(schema, rows.X, rows.weight) if statistics else {}
        found, own = learn_statistics(sources, members, X, y, target, rows.groups)
        table = fit_table(model, rows, schema, found, own)
        offset, half_width = fit_constants(model, encoded, bound or hull_bound(model.bound))
    else:
        table, offset, half_width = previous.table, previous.offset, previous.bound
        own = statistics_again(table, members, X, y, target, rows.groups)
    problem = build_problem(model.device, table, loss, X, y, members, offset, half_width, own)
    return FitData(
        table=table,
        target=target,
        loss=loss,
        problem=problem,
        scorer=_scorer(model, target, loss, problem, y, members, given.sample_weight is not None),
        streams=Streams(seed, members.names),
        held_out_total=members.held_out_total,
        n_samples=len(rows.target),
        signs=monotonic_signs(model, table, target),
        interactions=None if model.interaction_cst is None else table.read_interactions(model.interaction_cst),
        given=None if targets is None else targets.take(training_rows_first(members.train)),
        base_score=given.base_score is not None or (previous is not None and previous.base_score),
        samples=hash_samples(rows.X, rows.target),
    )


def hull_bound(given: Any) -> Bound:
    """The bound that the user gave, or the default of the task."""

    def bound(target: Target, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        found = target.default_bound(loss, y, offset) if given is None else as_bound(given, y.shape[1])
        target.warn_of_bound(loss, y, offset, found)
        return found

    return bound


def output_scale(target: Target, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
    """No bound, but the scale of the outputs of an unbounded network."""
    return target.output_scale(loss, y, weight, offset)


def read_rows(
    model: Any,
    given: FitInput,
    previous: FitResult | None,
    counted: Mapping[int, CategoryTotals] = MappingProxyType({}),
) -> EncodedRows:
    """Rows of positive weight, encoded: like those of a previous fit, or as the first step of a new one.

    The values of some columns may have been ``counted`` in more rows than these.
    """
    frame, y = _read_both(model, as_numpy(given.X), targets_as_array(given.y), reset=previous is None)
    weight = check_sample_weight(given.sample_weight, y)
    kept = np.flatnonzero(weight)
    if len(kept) == 0:
        raise ValueError("all sample weights are zero: there is no row to fit")
    frame, weight = frame.take_rows(kept), weight[kept]
    if previous is None:
        # an interrupted fit must not leave the result of an earlier one behind other columns
        vars(model).pop("_result", None)
        schema = Schema.fit(frame, weight, model.categorical_features, counted)
        for message in (schema.warning, text_that_reads_as_dates(frame)):
            if message is not None:
                warn_user(message, UserWarning)
    else:
        schema = previous.table.schema
    X = schema.encode(frame)
    order = category_order(given.y)
    if previous is None:
        target, encoded, codes = model.learn_target(y[kept], normalize_equal(weight), order)
        schema, X = schema.with_telling_text(X, encoded, weight)
    else:
        target, encoded, codes = previous.target.encode_more(y[kept])
    loss = target.pick_loss(model.loss) if previous is None else previous.loss
    if isinstance(loss, Ordinal) and target.classes is not None:
        check_order(order, target.classes)
    base = None if given.base_score is None else check_base_score(given.base_score, len(y), encoded.shape[1])[kept]
    if base is not None and model.clip_predictions is not None:
        raise ValueError(CLIPPED)
    target = within_range(model, target, np.stack([encoded.min(0), encoded.max(0)]), previous)
    encoded, weight, targets = _weighted(target, loss, encoded, weight, base)
    weight = normalize_equal(weight)
    if previous is None:
        loss = loss.for_targets(torch.from_numpy(encoded), torch.from_numpy(weight))
    groups = None if given.groups is None else take(check_groups(given.groups, len(y)), kept)
    return EncodedRows(TrainingRows(X, encoded, codes, weight, kept, groups, len(y)), schema, target, loss, targets)


def within_range(model: Any, target: Target, ends: Array, previous: FitResult | None = None) -> Target:
    """A target whose predictions stay within the ends ``(2, k)`` of the encoded targets, if the model asks for it."""
    if model.clip_predictions is None:
        return target
    # a continued fit has learned from earlier targets too
    earlier = None if previous is None else cast(NumberTarget, previous.target).limits
    if earlier is not None:
        ends = np.stack([np.minimum(ends[0], earlier[0]), np.maximum(ends[1], earlier[1])])
    return cast(NumberTarget, target).clipped(ends)


def _weighted(
    target: Target, loss: Loss, y: Array, weight: Array, base: Array | None
) -> tuple[Array, Array, GivenTargets | None]:
    """Targets and weights with base scores and class weights in them, and what they were before where these changed."""
    moved, scaled = with_base(loss, y, weight, base)
    factor = target.row_factors(moved, scaled)
    found = rescale_weights(scaled * factor)
    if base is None and isinstance(factor, float):
        return moved, found, None
    share = np.divide(found, weight, out=np.ones_like(weight), where=weight > 0)
    return moved, found, GivenTargets(y, base, share)


def split_rows(
    model: Any, given: FitInput, encoded: EncodedRows, seed: int
) -> tuple[Members, Matrix, Array, GivenTargets | None]:
    """The members, with the rows and targets of all of them (given validation rows last)."""
    validation = _validation_rows(model, given, encoded)
    rows, target, targets = encoded.rows, encoded.target, encoded.given
    X, y, codes, weight = rows.X, rows.target, rows.codes, rows.weight
    if validation is not None:
        X_val, y_val, weight_val, targets_val = validation
        if y_val.shape[1] != y.shape[1]:
            raise ValueError(f"y_val has {y_val.shape[1]} target(s), but y has {y.shape[1]}")
        if targets is not None and targets_val is not None:
            targets = targets.followed_by(targets_val)
        members, y = from_validation_set(X, weight, X_val, weight_val), np.concatenate([y, y_val])
        return members, stack_rows(X, X_val), y, targets
    members = from_splits(X, weight, splits_for(model.cv, model.validation_fraction, rows, seed, model.time_limit))
    check_classes(target, codes, members)
    return members, X, y, targets


def check_classes(target: Target, codes: NDArray[np.intp] | None, members: Members) -> None:
    """Check that members train on the classes, of codes ``(n,)``, that are among the rows they hold out."""
    if codes is None:
        return
    for m, (train, held_out) in enumerate(zip(members.train, members.held_out, strict=True)):
        lacking = np.setdiff1d(codes[held_out > 0], codes[train > 0])
        if len(lacking):
            assert target.classes is not None
            raise ValueError(
                f"{lacking_classes(target.classes, lacking)} are in the validation rows of split {m} but not in "
                "its training rows: give every class more rows, use fewer folds or another cv"
            )


def read_samples(
    model: Any, schema: Schema, target: Target, loss: Loss, X: Any, y: Any, sample_weight: Any, base_score: Any = None
) -> tuple[Any, Any, Any, GivenTargets | None]:
    """Rows that are only predicted, with targets ``(n, k)`` and weights ``(n,)``; they need not have all classes."""
    X, y = schema.encode(_some_rows(read_table(model, X))), targets_as_array(y)
    check_consistent_length(X, y)
    weight, encoded = check_sample_weight(sample_weight, X), target.encode(np.asarray(y))
    base = None if base_score is None else check_base_score(base_score, *encoded.shape)
    return X, *_weighted(target, loss, encoded, weight, base)


def require_base_score(result: FitResult, given: Any, what: str, how: str) -> None:
    """Refuse rows without the base scores that those of the fit had: the model predicts only what these leave."""
    if given is None and result.base_score:
        raise ValueError(
            f"the model was fitted with base_score, which {what} needs too: give {how}; or zeros, for predictions of a "
            "base score of 0"
        )


def _some_rows(frame: Frame) -> Frame:
    """A frame that has rows, as whatever learns or measures something needs."""
    if len(frame) == 0:
        raise ValueError(f"X has 0 sample(s) and {len(frame.names)} feature(s): at least 1 of each is needed")
    return frame


def read_table(model: Any, X: Any) -> Frame:
    """Rows like those of the fit, column by column; there may be none."""
    _check_in_memory(model, X)
    names = getattr(model, "feature_names_in_", None)
    if names is None and _needs_no_check(model, X):
        return Frame.from_matrix(np.ascontiguousarray(X, dtype=np.float64))
    X = select_columns(check_sparse(fill_masked(as_numpy(X))), names)
    if is_tabular(X):
        return read_frame(validate_data(model, X, skip_check_array=True, reset=False))
    return _as_frame(_check_numbers(model, X, reset=False, ensure_min_samples=0), names)


def _needs_no_check(model: Any, X: Any) -> bool:
    """Whether rows are a plain array as scikit-learn's checks leave it; these take longer than predicting one row."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.shape[1] == model.n_features_in_
        and not np.isinf(X).any()
    )


def build_problem(
    device: Any,
    table: Table,
    loss: Loss,
    X: Matrix,
    y: Array,
    members: Members,
    offset: Array,
    bound: Array,
    statistics: Array | None = None,
) -> Problem:
    """Rows ``(N, d)`` and targets ``(N, k)`` as tensors on a device, training rows first.

    Statistics of the target ``(N, M p)`` are those of training rows; by default as of new rows.
    """
    where = find_device("cpu" if device == "auto" and isinstance(X, SparseRows) else device)
    order = training_rows_first(members.train)
    table.check_range(X)
    arrays = (
        y[order],
        take(members.train, order, axis=1),
        take(members.held_out, order, axis=1),
        offset,
        bound,
        members.count,
    )
    own = None if statistics is None else statistics[order]
    rows = densify_small(table.rows(take(X, order), where, own))
    return Problem(loss, rows, *(torch.from_numpy(array).to(where) for array in arrays))


def monotonic_signs(model: Any, table: Table, target: Target) -> tuple[int, ...] | None:
    """Whether predictions rise (1), fall (-1) or are free (0) with each encoded column; None where all are free."""
    if model.monotonic_cst is None:
        return None
    signs = tuple(table.monotonic_signs(model.monotonic_cst).tolist())
    target.check_monotonic()
    return signs


def fit_constants(model: Any, encoded: EncodedRows, bound: Bound) -> tuple[Array, Array]:
    """What a first fit decides and a continued one keeps: centre and bound of the hull."""
    rows, loss = encoded.rows, encoded.loss
    y = torch.from_numpy(rows.target)
    if isinstance(model.offset, str) and model.offset == "auto":
        offset = loss.start(y, torch.from_numpy(rows.weight))
        if offset.shape != y.shape[1:]:
            raise ValueError(
                f"start of the loss {loss} returned shape {tuple(offset.shape)} for targets of shape {tuple(y.shape)}: "
                f"it must return one score for each output, of shape {tuple(y.shape[1:])}"
            )
        if not is_finite(offset):
            raise non_finite("best constant", offset, loss, offset, y, "before the first round")
    else:
        offset = torch.full((rows.target.shape[1],), float(model.offset), dtype=torch.float64)
    return offset.numpy(), bound(encoded.target, loss, y, rows.weight, offset).numpy()


def _validation_rows(
    model: Any, given: FitInput, encoded: EncodedRows
) -> tuple[Matrix, Array, Array, GivenTargets | None] | None:
    """Rows given for validation, encoded as the training rows are."""
    if (given.X_val is None) != (given.y_val is None):
        raise ValueError("X_val and y_val must be given together")
    if given.X_val is None:
        for name in ("sample_weight_val", "base_score_val"):
            if getattr(given, name) is not None:
                raise ValueError(f"{name} needs X_val and y_val")
        return None
    if (given.base_score is None) != (given.base_score_val is None):
        raise ValueError("base_score and base_score_val must be given together where X_val is given")
    if not (model.cv is None or (isinstance(model.cv, str) and model.cv == "auto")):
        raise ValueError(f"X_val and cv={model.cv!r} both determine the held-out rows: give only one of them")
    _, schema, target, loss, _ = encoded
    own = given.X_val, given.y_val, given.sample_weight_val, given.base_score_val
    try:
        rows = read_samples(model, schema, target, loss, *own)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"validation rows (X_val, y_val): {error}") from error
    if not rows[2].any():
        raise ValueError("all of sample_weight_val is zero: there is nothing to monitor")
    return rows


def _scorer(
    model: Any, target: Target, loss: Loss, problem: Problem, y: Array, members: Members, weighted: bool
) -> Metric | None:
    """What early stopping monitors in place of the loss."""
    if model.scoring is None or not members.held_out.any():
        return None
    order = training_rows_first(members.train)
    labels, held_out = target.decode(y[order]), members.held_out[:, order]
    return ScorerMetric(model.scoring, loss, problem.offset, labels, held_out, target, weighted)


def _check_in_memory(model: Any, X: Any) -> None:
    refuse_class(X)
    if isinstance(X, Shards):
        raise TypeError(
            f"{type(model).__name__} takes rows in memory here, not Shards: fit them with GCERegressor, "
            "GCEClassifier, and predict them with predict_shards"
        )


def _read_both(model: Any, X: Any, y: Any, reset: bool) -> tuple[Frame, NDArray[Any]]:
    """Rows and targets, checked as scikit-learn does."""
    _check_in_memory(model, X)
    several = model.__sklearn_tags__().target_tags.multi_output or (is_classifier(model) and has_labels(y))
    about_y = {"multi_output": several, "y_numeric": is_regressor(model)}
    if is_regressor(model):
        check_regression_targets(y)
    X = select_columns(check_sparse(fill_masked(X)), None if reset else getattr(model, "feature_names_in_", None))
    if is_tabular(X):
        validate_data(model, X, y, skip_check_array=True, reset=reset)
        with np.errstate(over="ignore", invalid="ignore"):
            frame, y = _some_rows(read_frame(X)), _check_y(y, estimator=model, **about_y)
        check_consistent_length(frame.columns[0], y)
        return frame, y
    X, y = _check_numbers(model, X, y=y, reset=reset, **about_y)
    return _as_frame(X, getattr(model, "feature_names_in_", None)), y


def _check_numbers(model: Any, X: Any, **given: Any) -> Any:
    """A matrix as scikit-learn checks it, with ``y`` if given: values may be missing, but not infinite."""
    form: dict[str, Any] = {"accept_sparse": "csr"} if issparse(X) else {"order": "C"}
    # where a sum or a conversion overflows it looks at each number, and names the infinite ones
    with np.errstate(over="ignore", invalid="ignore"):
        return validate_data(model, X, **given, **form, dtype=np.float64, ensure_all_finite="allow-nan")


def _as_frame(X: Any, names: Any) -> Frame:
    if issparse(X) and np.isnan(X.data).any():
        words = "give X.toarray(), where NaN means missing, or numbers in place of NaN"
        raise ValueError(f"X is sparse and contains NaN, which sparse rows cannot have: {words}")
    return Frame.from_matrix(SparseRows.from_matrix(X) if issparse(X) else X, names)
