"""Risk, validation and gap against rounds."""

from __future__ import annotations

from typing import Any, Self

from gce.plotting.readings import Course, course
from gce.plotting.style import BLUE, GREEN, GREY, VERMILION, axes_for, spans_decades, whole_numbers


class TrainingDisplay:
    """How a fit went: training risk, validation and duality gap after each round (or epoch), means over members.

    Use :meth:`from_estimator` to make one. Parameters are stored as attributes.

    Parameters
    ----------
    course : Course
        The numbers, see :class:`gce.plotting.readings.Course`.
    estimator_name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    risk_ : matplotlib Line2D
    validation_, gap_ : matplotlib Line2D or None
        None where nothing was held out, and where a model has no gap.
    ax_validation_ : matplotlib Axes
        ``ax_``, or an axes of its own where a scorer was watched in place of the loss.
    """

    def __init__(self, course: Course, *, estimator_name: str | None = None) -> None:
        self.course = course
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw a fitted model's training.

        Parameters
        ----------
        estimator : GCE..., NGCE... or NN... estimator
            Fitted.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the estimator's class.
        **kwargs
            For every line, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        return cls(course(estimator), estimator_name=type(estimator).__name__).plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
        **kwargs
            For every line, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        drawn = self.course
        self.ax_ = self.ax_validation_ = axes_for(ax)
        self.figure_ = self.ax_.figure
        shared = drawn.validation is None or drawn.watches_loss
        if not shared:
            self.ax_validation_ = self.ax_.twinx()
            self.ax_validation_.spines["top"].set_visible(False)
            self.ax_validation_.set_ylabel("validation (negative score)", color=VERMILION)
        (self.risk_,) = self.ax_.plot(drawn.steps, drawn.risk, **_style("training risk", BLUE, "-", kwargs))
        self.validation_ = self.gap_ = None
        if drawn.validation is not None:
            style = _style("validation", VERMILION, "-", kwargs)
            (self.validation_,) = self.ax_validation_.plot(drawn.steps, drawn.validation, **style)
        if drawn.gap is not None:
            label = "duality gap" if drawn.certified else "gap (lower estimate)"
            # a gap of 0 has no place on a log scale, and ends the line where it stands
            (self.gap_,) = self.ax_.plot(drawn.steps, drawn.gap, **_style(label, GREEN, "--", kwargs))
        self._dress(shared, self.estimator_name if name is None else name)
        return self

    def _dress(self, shared: bool, name: str | None) -> None:
        drawn = self.course
        positive_gap = None if drawn.gap is None else drawn.gap[drawn.gap > 0]
        if spans_decades(drawn.risk, drawn.validation if shared else None, positive_gap):
            self.ax_.set_yscale("log")
        place = {"transform": self.ax_.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        kept = self.ax_.plot(
            drawn.best, [0.0] * len(drawn.best), "^", color=GREY, ms=6, label=f"{drawn.unit} kept of a member", **place
        )
        self.ax_.set(xlabel=drawn.unit, ylabel="loss" if shared else "training risk and gap", title=name or "")
        whole_numbers(self.ax_.xaxis)
        # twins draw apart: one legend for both
        handles = [line for line in (self.risk_, self.validation_, self.gap_) if line is not None]
        self.ax_.legend(handles=handles + kept, frameon=False)


def _style(label: str, colour: str, dashes: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "color": colour, "linestyle": dashes, "linewidth": 1.8, **given}
