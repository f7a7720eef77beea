"""What the paper says in words, each as a small table; one file an ablation."""

from paper.ablations.base import Ablation
from paper.ablations.bounds import Bounds
from paper.ablations.coefficients import Parametrisations
from paper.ablations.hulls import Hulls
from paper.ablations.losses import Losses
from paper.ablations.sizes import Sizes
from paper.ablations.tuning import Tuning

#: By name, in the order of the page.
ABLATIONS: dict[str, Ablation] = {
    ablation.name: ablation for ablation in (Hulls(), Losses(), Parametrisations(), Bounds(), Sizes(), Tuning())
}

__all__ = ["ABLATIONS", "Ablation"]
