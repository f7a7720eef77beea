"""Second pass over shards: codes, targets and weights of all training rows in files, and the data of the fit.

Categories and statistics of the target are learned from all rows, the rest of the encoding from the chosen rows, which
are all rows where there are few. Boosted trees and networks learn from all rows, trees of forests from samples of all
rows, all other models from the sample.
Held-out rows are known to every process, so that what is decided on them is decided alike.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_classifier

from gce._utils.random import Streams
from gce._utils.version import __version__
from gce._utils.workspace import Workspace
from gce.distributed import Division, World
from gce.estimators._encoding import fit_table
from gce.estimators._shard_blocks import ShardReader, compare_files
from gce.estimators._shard_choice import HELD_OUT, Chosen, choose_rows
from gce.estimators._shard_files import CodeFiles
from gce.estimators._shard_statistics import learn_from_shards
from gce.estimators._validation import (
    Bound,
    FitInput,
    build_problem,
    check_classes,
    fit_constants,
    hull_bound,
    monotonic_signs,
    read_rows,
    within_range,
)
from gce.losses import Loss, Ordinal
from gce.preprocessing.splits import from_splits, training_rows_first
from gce.preprocessing.target_statistics import with_statistics
from gce.training.data import FitData
from gce.training.families import sees_statistics
from gce.training.plan import bases_on_all_rows
from gce.training.targets import Target

#: Parameters that may differ among processes: callbacks may be of one process only.
_FREE = ("n_jobs", "verbose", "callbacks")


def read_shards(model: Any, given: FitInput, *, seed: int, world: World, files: Workspace) -> FitData:
    """Read and encode shards.

    Parameters
    ----------
    model : estimator
    given : FitInput
        Its ``X`` is a :class:`gce.Shards`.
    seed : int
    world : World
        The processes of the fit.
    files : Workspace
        Holds the codes for the length of the fit.

    Returns
    -------
    FitData
        Its problem has the chosen rows, and ``divided`` all of them.
    """
    _check_arguments(model, given, world)
    opened = given.X.open()
    if not opened.targets:
        raise ValueError("Shards for a fit need a target: give target='the name of a column'")
    _check_task(model, len(opened.targets))
    source = opened.fingerprint()
    compare_files(world, source["files"])
    world.check_equal({"version": __version__, "torch": torch.__version__, **_words(model), **source})
    reader = ShardReader(opened, world, is_classifier(model))
    chosen = choose_rows(reader, seed, _fraction(model), model.categorical_features)
    division = Division(chosen.counts, reader.own.start, reader.own.stop, world)
    sample = FitInput(chosen.features, chosen.y, chosen.weight, chosen.group)
    encoded = read_rows(model, sample, None, chosen.categories)
    rows, schema, target, loss, targets = encoded
    # encoded, they are there twice
    chosen, held = replace(chosen, features=None, categories={}), np.flatnonzero(chosen.held_out)
    members = from_splits(rows.X, rows.weight, [(np.flatnonzero(~chosen.held_out), held)])
    check_classes(target, rows.codes, members)
    sources = with_statistics(schema, rows.X, rows.weight) if sees_statistics(model.basis) else {}
    found, own, of_rows = learn_from_shards(reader, chosen, encoded, members, sources)
    table = fit_table(model, rows, schema, found, own)
    offset, bound = fit_constants(model, encoded, _reaching(model.bound, chosen, target, loss))
    problem = build_problem("cpu", table, loss, rows.X, rows.target, members, offset, bound, own)
    data = FitData(
        table=table,
        target=target if chosen.range_y is None else within_range(model, target, _encoded_range(chosen, target)),
        loss=loss,
        problem=problem,
        scorer=None,
        streams=Streams(seed, members.names),
        held_out_total=members.held_out_total,
        n_samples=int(chosen.counts.sum()) + len(held),
        signs=monotonic_signs(model, table, target),
        interactions=None if model.interaction_cst is None else table.read_interactions(model.interaction_cst),
        given=None if targets is None else targets.take(training_rows_first(members.train)),
        source=source,
        world=world,
    )
    bases = bases_on_all_rows(model, data)
    if not bases:
        return data
    written = CodeFiles(reader, chosen, division, data, of_rows, files).write(bases)
    return replace(data, divided=written)


def _check_task(model: Any, targets: int) -> None:
    """Refuse tasks whose targets are encoded from rows in memory only."""
    if isinstance(model.loss, Ordinal) or (isinstance(model.loss, str) and model.loss == "ordinal"):
        raise ValueError("loss='ordinal' takes rows in memory, not Shards: give X and y")
    if is_classifier(model) and targets > 1:
        raise ValueError(f"a classifier of Shards has one target, got {targets}: several labels need rows in memory")


def _check_arguments(model: Any, given: FitInput, world: World) -> None:
    """Refuse what rows in files cannot be fitted with."""
    others = ("y", "sample_weight", "groups", "X_val", "y_val", "sample_weight_val", "base_score", "base_score_val")
    extra = [name for name in others if getattr(given, name) is not None]
    if extra:
        raise ValueError(
            f"{', '.join(extra)} cannot be given beside Shards: name the columns in Shards(target=..., "
            "sample_weight=..., groups=...)"
        )
    if not (model.cv is None or (isinstance(model.cv, str) and model.cv == "auto")):
        raise ValueError(f"cv must be 'auto' or None for Shards, of which rows are held out once, got {model.cv!r}")
    if model.scoring is not None:
        raise ValueError(f"scoring={model.scoring!r} cannot be used with Shards: early stopping monitors the loss")
    if str(model.device) not in ("auto", "cpu"):
        raise ValueError(f"device={model.device!r} cannot be used with Shards, whose rows are on processors")
    if model.warm_start:
        raise ValueError("warm_start=True cannot be used with Shards: give a checkpoint, which continues")
    if world.size > 1 and model.time_limit is not None:
        raise ValueError(
            f"time_limit={model.time_limit!r} cannot be used with {world.size} processes, whose clocks differ: limit "
            "max_iter or max_atoms"
        )


def _words(model: Any) -> dict[str, str]:
    """The parameters of a model, for comparison; the repr of a generator of random numbers has its address."""
    own = {name: value for name, value in model.get_params(deep=False).items() if name not in _FREE}
    if not isinstance(own["random_state"], int | None):
        del own["random_state"]
    return {f"the parameter {name}": repr(value) for name, value in own.items()}


def _fraction(model: Any) -> float | None:
    return HELD_OUT if model.cv is not None else model.validation_fraction


def _encoded_range(chosen: Chosen, target: Target) -> NDArray[np.float64]:
    """The least and the greatest targets of all rows, encoded, ``(2, k)``."""
    assert chosen.range_y is not None
    return target.encode(chosen.range_y if chosen.range_y.shape[1] > 1 else chosen.range_y[:, 0])


def _reaching(given: Any, chosen: Chosen, target: Target, loss: Loss) -> Bound:
    """A bound for the targets of all rows, not only of the chosen ones; all must be in the domain of the loss."""
    if chosen.range_y is None:
        return hull_bound(given)
    ends = torch.from_numpy(_encoded_range(chosen, target))
    loss.check_targets(ends)
    if given is not None:
        return hull_bound(given)
    return lambda kind, loss, y, weight, offset: hull_bound(None)(kind, loss, ends, weight, offset)
