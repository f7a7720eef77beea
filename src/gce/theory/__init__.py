"""The paper's theory as pure functions, and what it says about a fitted model.

``capacity``: how rich a class is; ``shattering``: Proposition 2's constructions; ``bounds``: Theorems 1 to 3 and their
corollaries; ``complexity``: Rademacher's, of a hull, measured; ``report``: a fitted model's risk, bounded.
docs/theory.md says which statement is which function, and where this differs from the paper.
"""

from gce.theory.bounds import (
    admissible_constant,
    appendix_constant,
    covering_xi,
    excess_risk,
    fast_rate,
    hoeffding,
    lipschitz,
    loss_range,
    lq_lipschitz,
    mcdiarmid,
    one_sided_constant,
    stated_constant,
    stated_xi,
    theorem1_excess_risk,
)
from gce.theory.capacity import (
    finite_class,
    network_parameters,
    pseudodimension,
    relu_networks,
    single_neurons,
    tanh_networks,
    threshold_units,
    vc_lower_bound,
)
from gce.theory.complexity import RademacherEstimate, rademacher, suprema
from gce.theory.report import BoundReport, HeldOut, PaperBound, bound_report
from gce.theory.shattering import ConvexShattering, LinearShattering, shatters

__all__ = [
    "BoundReport",
    "ConvexShattering",
    "HeldOut",
    "LinearShattering",
    "PaperBound",
    "RademacherEstimate",
    "admissible_constant",
    "appendix_constant",
    "bound_report",
    "covering_xi",
    "excess_risk",
    "fast_rate",
    "finite_class",
    "hoeffding",
    "lipschitz",
    "loss_range",
    "lq_lipschitz",
    "mcdiarmid",
    "network_parameters",
    "one_sided_constant",
    "pseudodimension",
    "rademacher",
    "relu_networks",
    "shatters",
    "single_neurons",
    "stated_constant",
    "stated_xi",
    "suprema",
    "tanh_networks",
    "theorem1_excess_risk",
    "threshold_units",
    "vc_lower_bound",
]
