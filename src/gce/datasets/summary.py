"""The table of data sets in the appendix of the paper."""

from __future__ import annotations

from gce.datasets import files, registry, splits
from gce.datasets.loading import is_present
from gce.datasets.registry import Spec

_HEAD = (
    "| data set | task | columns | rows | train | validation | test | paper: train | validation | test | here |",
    "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|",
)

_REASONS = {
    "msd": "the paper's table cuts the 463,715 predefined training rows twice; its code keeps the predefined test rows",
    "cifar10_f": "the paper's table cuts the 50,000 predefined training rows twice; likewise",
    "mnist": "the paper's table cuts the 60,000 predefined training rows twice; likewise",
    "covertype": "the paper's rows add up to 583,280 of 581,012; its code validates on 3,780",
    "kddcup99": "the paper's parts are 54, 13.5 and 32.5 % of the rows, which no cuts of 80/20 give; its code cuts "
    "80/20 and 80/20 again. The 41 columns are 122 with indicators in place of text, 118 in the tenth",
}


def table() -> str:
    """The twelve data sets as a Markdown table: sizes here and in the paper, and why they differ.

    Sizes are those of the reference split. The last column tells whether a data set can be loaded without a download.

    Returns
    -------
    str

    Examples
    --------
    >>> from gce import datasets
    >>> print(datasets.table().splitlines()[2][:40])
    | diabetes | regression | 10 | 442 | 282
    """
    lines = list(_HEAD)
    for name in registry.NAMES:
        spec = registry.SPECS[name]
        lines.append(_line(spec, name))
        if spec.stand_in:
            lines.append(_line(registry.SPECS[spec.stand_in], spec.stand_in))
    differing = [name for name in registry.NAMES if _ours(registry.SPECS[name]) != registry.SPECS[name].paper]
    notes = [f"- {name}: {_REASONS[name]}." for name in differing]
    return "\n".join([*lines, "", "\\* Sizes that differ from those of the paper:", "", *notes]) + "\n"


def _ours(spec: Spec) -> tuple[int, int, int]:
    return splits.sizes(spec, spec.rows)


def _line(spec: Spec, label: str) -> str:
    ours = _ours(spec)
    task = "regression" if spec.task == "regression" else f"{spec.classes} classes"
    numbers = [f"{n:,}" for n in (spec.columns, spec.rows, *ours, *spec.paper)]
    here = "yes" if is_present(spec, files.data_home()) else "no"
    return "| " + " | ".join([label + ("" if ours == spec.paper else " \\*"), task, *numbers, here]) + " |"
