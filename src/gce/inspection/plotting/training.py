"""Training risk, validation loss and duality gap by round."""

from __future__ import annotations

from typing import Any, Self

from gce.inspection.plotting.readings import TrainingCurves, training_curves
from gce.inspection.plotting.style import BLUE, GREEN, GREY, VERMILION, axes_for, spans_decades, whole_numbers


class TrainingDisplay:
    """Training risk, validation loss and duality gap after each round or epoch, averaged over members.

    Use :meth:`from_estimator` to create one. Parameters are stored as attributes.

    Parameters
    ----------
    curves : TrainingCurves
        The numbers, see :class:`gce.inspection.plotting.readings.TrainingCurves`.
    estimator_name : str, optional
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    risk_ : matplotlib Line2D
    validation_, gap_ : matplotlib Line2D or None
        None if no rows were held out, or if there is no duality gap. Over a pool, ``gap_`` is the proved bound on the
        suboptimality.
    ax_validation_ : matplotlib Axes
        ``ax_``, or a second axes if early stopping used a scorer instead of the loss.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from gce import GCERegressor
    >>> from gce.inspection import TrainingDisplay
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = GCERegressor(basis="tree", max_iter=2, cv=2, random_state=0).fit(X, X[:, 0] ** 2)
    >>> display = TrainingDisplay.from_estimator(model)
    >>> display.ax_.get_xlabel()
    'round'
    """

    def __init__(self, curves: TrainingCurves, *, estimator_name: str | None = None) -> None:
        self.curves = curves
        self.estimator_name = estimator_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the training of a fitted model.

        Parameters
        ----------
        estimator : estimator of gce
            Fitted.
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all lines, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        return cls(training_curves(estimator), estimator_name=type(estimator).__name__).plot(ax=ax, name=name, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Default: a new figure.
        name : str, optional
            Default: the class of the estimator.
        **kwargs
            For all lines, as in ``Axes.plot``.

        Returns
        -------
        TrainingDisplay
        """
        drawn = self.curves
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
            label = "suboptimality (proved)" if drawn.certified else "gap (lower estimate)"
            # a gap of 0 is not shown on a log scale
            (self.gap_,) = self.ax_.plot(drawn.steps, drawn.gap, **_style(label, GREEN, "--", kwargs))
        self._finish(shared, self.estimator_name if name is None else name)
        return self

    def _finish(self, shared: bool, name: str | None) -> None:
        drawn = self.curves
        positive_gap = None if drawn.gap is None else drawn.gap[drawn.gap > 0]
        if spans_decades(drawn.risk, drawn.validation if shared else None, positive_gap):
            self.ax_.set_yscale("log")
        place = {"transform": self.ax_.get_xaxis_transform(), "clip_on": False, "zorder": 5}
        kept = self.ax_.plot(
            drawn.best_steps,
            [0.0] * len(drawn.best_steps),
            "^",
            color=GREY,
            ms=6,
            label=f"best {drawn.unit} of a member",
            **place,
        )
        self.ax_.set(xlabel=drawn.unit, ylabel="loss" if shared else "training risk and gap", title=name or "")
        whole_numbers(self.ax_.xaxis)
        # one legend for both axes
        handles = [line for line in (self.risk_, self.validation_, self.gap_) if line is not None]
        self.ax_.legend(handles=handles + kept, frameon=False)


def _style(label: str, colour: str, dashes: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"label": label, "color": colour, "linestyle": dashes, "linewidth": 1.8, **given}
