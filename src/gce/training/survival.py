"""Times until an event as targets: the scale that they are learned on, and the baseline of predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gce._utils.params import look_up
from gce.losses import Hazards, Loss
from gce.losses.hazards import weighted_sum
from gce.preprocessing.sample_weights import effective_count
from gce.preprocessing.survival import check_events, nelson_aalen, read_survival
from gce.training.calibration import Calibration, HeldOutScores, evidence_rows

Array = NDArray[np.float64]

#: Most intervals of hazards that change, and least events of one.
_MOST_INTERVALS, _LEAST_EVENTS = 10, 10
#: Least events among held-out rows for a baseline; with fewer it is that of the training rows.
_LEAST_HELD_OUT = 5
#: How hazards may change with time: the degree of the polynomial.
_DEGREE = 1


@dataclass(frozen=True, eq=False)
class SurvivalTarget:
    """Times until an event, some of them censored.

    Models are learned on another scale of time: the cumulative hazard of all rows together, by Nelson and Aalen with
    sample weights, linear between the times of events. On it all rows together have the hazard 1 at all times, so that
    what is left to learn is by how much the hazard of a row differs from that.

    Why that serves Cox's model too: the likelihood of proportional hazards with baseline ``H`` is, for a row with time
    ``t`` and score ``f``, ``H(t) exp(f) - [event] (f + log dH(t))``. For given scores it is least in ``H`` at Breslow's
    estimate (the derivative in each jump ``dH`` of ``dH sum_{at risk} exp(f) - [events] log dH`` is 0 there), and with
    that put in, it is the negative logarithm of Cox's partial likelihood up to a constant. With ``H`` that of Nelson
    and Aalen, which is Breslow's of equal scores, the part that depends on ``f`` is the loss :class:`Hazards`; after
    the fit ``H`` is Breslow's for the scores of held-out rows, or of the training rows where few events were held out.

    Parameters
    ----------
    times : array of shape (t,)
        Times of events, increasing.
    scale : array of shape (t,)
        The cumulative hazard of all rows at these.
    loss : Hazards
        The loss of times on this scale.

    Attributes
    ----------
    classes, label_order : None
    one_dimensional : bool
        Always True: the risk is one number per row.
    repeats : int
        Always 1.
    """

    times: Array
    scale: Array
    loss: Hazards

    classes: ClassVar[None] = None
    label_order: ClassVar[None] = None
    classifies: ClassVar[bool] = False
    has_intervals: ClassVar[bool] = False
    one_dimensional: ClassVar[bool] = True
    repeats: ClassVar[int] = 1

    @classmethod
    def learn(cls, y: Any, loss: str | Loss, weight: Array) -> tuple[SurvivalTarget, Array, None]:
        """The task of events and times ``(n, 2)`` of weights ``(n,)``, and these encoded."""
        given = read_survival(y)
        check_events(given)
        times, scale = nelson_aalen(given, weight)
        event = given[:, 0] > 0
        at = np.interp(given[event, 1], times, scale)
        found = cls(times, scale, _pick_loss(loss, at, weight[event]))
        return found, found._encoded(given), None

    @property
    def outputs(self) -> int:
        """How many scores a row has."""
        return self.loss.degree + 1

    def learned_time(self, time: Array) -> Array:
        """Times on the scale that is learned, of any shape: from 0 linear from event to event, constant after the last.

        Parameters
        ----------
        time : array
            Times of the user.
        """
        return np.interp(time, np.append(0.0, self.times), np.append(0.0, self.scale))

    def _encoded(self, y: Array) -> Array:
        event, time = y.T
        target = np.zeros((len(y), self.outputs))
        target[:, 0] = np.where(event > 0, 1.0, -1.0) * self.learned_time(time)
        return target

    def encode(self, y: Any) -> Array:
        return self._encoded(read_survival(y))

    def encode_more(self, y: Any) -> tuple[SurvivalTarget, Array, None]:
        given = read_survival(y)
        check_events(given)
        return self, self._encoded(given), None

    def decode(self, target: Array) -> Array:
        event, learned = target[:, 0] > 0, np.abs(target[:, 0])
        return np.column_stack([event, np.interp(learned, np.append(0.0, self.scale), np.append(0.0, self.times))])

    def summed(self, target: Array) -> tuple[Array, None]:
        return target, None

    def predicted(self, loss: Loss, pred: Tensor) -> Array:
        return loss.predict(pred)[:, 0].cpu().numpy()

    def decision(self, loss: Loss, pred: Tensor) -> Array:
        return self.predicted(loss, pred)

    def pick_loss(self, given: str | Loss) -> Loss:
        return self.loss

    def default_bound(self, loss: Loss, y: Tensor, offset: Tensor) -> Tensor:
        return loss.default_bound(y, offset)

    def output_scale(self, loss: Loss, y: Tensor, weight: Array, offset: Tensor) -> Tensor:
        return torch.ones_like(offset)

    def warn_of_bound(self, loss: Loss, y: Tensor, offset: Tensor, bound: Tensor) -> None:
        """Hazards reach every time to some degree."""

    def row_factors(self, target: Array, weight: Array) -> float:
        return 1.0

    def check_monotonic(self) -> None:
        if self.loss.degree > 0:
            raise ValueError(
                "monotonic_cst needs hazards that are proportional: with loss='hazards' they change with time, and a "
                "row's may be above another's first and below it later; use loss='cox'"
            )

    def calibrate(self, loss: Loss, rows: HeldOutScores) -> Calibration | None:
        # a baseline jumps at events alone: without any, it would say that nothing ever happens
        event = rows.y[:, 0] > 0
        enough = bool(event.any()) and round(evidence_rows(rows.weight[event])) >= _LEAST_HELD_OUT
        return self._calibrated(rows) if enough else None

    def calibrate_in_sample(self, loss: Loss, n_rows: int, train: Callable[[], HeldOutScores]) -> Calibration:
        return self._calibrated(train())

    def _calibrated(self, rows: HeldOutScores) -> Calibration:
        hazards = self.loss.hazards(rows.pred).cpu().numpy()
        signed, weight = rows.y[:, 0].cpu().numpy(), rows.weight.cpu().numpy()
        return Calibration(baseline=breslow(signed, weight, hazards, self.loss, self.scale))

    def metrics(self, loss: Loss, rows: HeldOutScores) -> dict[str, float]:
        # an import of an estimator does not load it
        from gce.training.metrics import of_times

        signed = rows.y[:, 0].cpu().numpy()
        y = np.column_stack([signed > 0, np.abs(signed)])
        return of_times(y, self.predicted(loss, rows.pred), rows.weight.cpu().numpy())

    def stored(self, calibration: Calibration) -> dict[str, Any]:
        return {"event_times_": self.times, "_scale": self.scale, "baseline_": calibration.baseline}

    def cumulative_hazard(self, pred: Tensor, baseline: Array, times: Array) -> Array:
        """Cumulative hazards at some times.

        Parameters
        ----------
        pred : Tensor of shape (n, k)
            Raw scores.
        baseline : array of shape (t,)
            The cumulative hazard of a row of hazard 1, at the times of events.
        times : array of shape (m,)

        Returns
        -------
        array of shape (n, m)
        """
        weight = torch.from_numpy(self.by_interval(baseline, times)).to(pred.device)
        return weighted_sum(self.loss.hazards(pred), weight).cpu().numpy()

    def by_interval(self, baseline: Array, times: Array) -> Array:
        """What a hazard of 1 in one interval adds to the cumulative hazard at each of some times, ``(K, m)``."""
        # the baseline at the ends of intervals, which are times of events
        learned, ends = np.append(0.0, self.scale), np.array([0.0, *self.loss.ends])
        ends = np.interp(ends, learned, np.append(0.0, baseline))
        ends[-1] = np.inf
        at = np.interp(times, np.append(0.0, self.times), np.append(0.0, baseline))
        return np.diff(np.minimum(at, ends[:, None]), axis=0)


def _pick_loss(given: str | Loss, at: Array, weight: Array) -> Hazards:
    """The loss of a name, for events at times ``(e,)`` of the scale that is learned, with their weights."""
    last, events = (float(at.max()),), effective_count(weight)
    intervals = min(_MOST_INTERVALS, max(2, int(events // _LEAST_EVENTS)))
    ends = np.unique(_quantiles(at, weight * (events / weight.sum()), np.arange(1, intervals + 1) / intervals))
    known = {"cox": Hazards(last), "hazards": Hazards(tuple(ends.tolist()), min(_DEGREE, len(ends) - 1))}
    return look_up("loss", "cox" if given == "auto" else given, known, Hazards)


def _quantiles(values: Array, weight: Array, levels: Array) -> Array:
    """Quantiles of values that are repeated by their weights: one of the values, the higher one in between."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    place = np.ceil((reached[-1] - 1) * levels)
    return values[order][np.searchsorted(reached, place, side="right").clip(max=len(values) - 1)]


def breslow(signed: Array, weight: Array, hazards: Array, loss: Hazards, at: Array) -> Array:
    """Breslow's estimate of the cumulative baseline hazard.

    Parameters
    ----------
    signed : array of shape (n,)
        Times, negative where censored.
    weight : array of shape (n,)
    hazards : array of shape (n, K)
        Of each row in the intervals of ``loss``, relative to the baseline.
    loss : Hazards
    at : array of shape (t,)
        Times that the estimate is wanted at.

    Returns
    -------
    array of shape (t,)
        The sum over events until then of the event's weight / the hazards of all rows at risk.
    """
    time = np.abs(signed)
    order = np.argsort(-time, kind="stable")
    at_risk = np.cumsum(weight[order, None] * hazards[order], axis=0)
    event = np.flatnonzero(signed > 0)
    event = event[np.argsort(time[event], kind="stable")]
    # all rows whose time is not before that of the event
    last = np.searchsorted(-time[order], -time[event], side="right") - 1
    interval = loss.interval(torch.from_numpy(time[event])).numpy()
    jumps = np.cumsum(weight[event] / at_risk[last, interval])
    return np.append(0.0, jumps)[np.searchsorted(time[event], at, side="right")]
