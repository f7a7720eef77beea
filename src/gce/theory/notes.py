"""The notes of a bound report: its reservations and assumptions."""

from __future__ import annotations

import numpy as np

from gce.losses import Logistic
from gce.theory.fitted import Array, Fitted


def reservations(model: Fitted, *, exact: bool) -> list[str]:
    """Why the training column is not a certificate.

    Parameters
    ----------
    model : Fitted
    exact : bool
        Whether the complexity is computed by an exact oracle.
    """
    chosen = ["the scaling of the columns"]
    if isinstance(model.offset, str):
        chosen.insert(0, "the offset")
    if model.bound is None and not isinstance(model.result_.loss, Logistic):
        chosen.insert(0, "B")
    listed = " and ".join([", ".join(chosen[:-1]), chosen[-1]] if len(chosen) > 1 else chosen)
    members = len(model.result_.ensemble.origin[:, 0].unique())
    averaged = f" and averaging {members} members cost" if members > 1 else " costs"
    return [
        f"The training column is not a certificate: {listed} {'were' if len(chosen) > 1 else 'was'} chosen from these "
        "rows, but the inequality is for a hull that does not depend on them. The same holds for a basis or a B "
        "that was tuned on them.",
        _of_pools() if exact else _of_trained_atoms(),
        f"Early stopping{averaged} nothing here: the bound is for all functions of the hull at once, and an average of "
        "them is one of them.",
    ]


def _of_pools() -> str:
    return (
        "The complexity is exact for each draw of signs (a pool). If its functions were chosen or trained on these "
        "rows, that is not accounted for."
    )


def _of_trained_atoms() -> str:
    return (
        "The complexity is a lower estimate: atoms are trained, not optimal. The supremum over their class, and with "
        "it the true bound, may be several times as large; an oracle trained longer finds more."
    )


def assumptions(model: Fitted, target: Array, target_held_out: Array | None) -> list[str]:
    """The assumption on the range of targets ``(n,)``, and a warning if it is violated."""
    if isinstance(model.result_.loss, Logistic):
        return []
    bound, offset = float(model.result_.bound[0]), float(model.result_.offset[0])
    words = [f"All targets, future ones included, are assumed within B = {bound:.4g} of the offset {offset:.4g}."]
    for where, given in (("training", target), ("held-out", target_held_out)):
        beyond = 0 if given is None else int((np.abs(given - offset) > bound).sum())
        if given is not None and beyond:
            words.append(
                f"WARNING: {beyond} of {len(given)} {where} targets are farther away. The assumption is violated and "
                "neither column is a bound: fit with a larger bound."
            )
    return words


def vacuous(total: float, largest: float) -> list[str]:
    """A note if the sum is not below the largest possible loss."""
    return [] if total < largest else [f"The training column is vacuous: no loss is larger than {largest:.4g}."]


def about_held_out(X: Array, held_out: Array | None) -> list[str]:
    """When held-out rows ``(m, d)`` give a certificate, or how to get one."""
    if held_out is None:
        return [
            "For a certificate, hold out rows that play no part in fitting, tuning or choosing the model, and pass "
            "them as X_held_out and y_held_out."
        ]
    words = [
        "The held-out column is a certificate if those rows played no part in fitting, tuning or choosing the model."
    ]
    training = {row.tobytes() for row in X + 0.0}  # + 0.0 turns -0.0 into 0.0
    again = sum(row.tobytes() in training for row in held_out + 0.0)
    if again:
        words.append(f"WARNING: {again} of {len(held_out)} held-out rows are also among the training rows.")
    return words
