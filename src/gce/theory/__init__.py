"""The paper's theory as pure functions, and generalisation bounds for fitted models.

``capacity``: VC and pseudodimension; ``shattering``: the constructions of Proposition 2; ``bounds``: Theorems 1 to 3
and their corollaries; ``complexity``: the Rademacher complexity of a hull, estimated; ``report``: bounds on the risk of
a fitted model. docs/theory.md lists the function of each statement, and the differences from the paper.
"""

from gce.theory.bounds import (
    admissible_constant,
    appendix_constant,
    excess_risk,
    hoeffding,
    lipschitz,
    loss_range,
    lq_lipschitz,
    mcdiarmid,
    one_sided_constant,
    stated_constant,
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
from gce.theory.rates import covering_xi, fast_rate, stated_xi, theorem1_excess_risk
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
