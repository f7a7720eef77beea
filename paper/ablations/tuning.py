"""GCE without tuning against tuned peers: Table 1's repeated splits, read again."""

from __future__ import annotations

import json

import numpy as np
from scipy.stats import rankdata

from paper.ablations.base import Ablation, Found, Scope, listed
from paper.ledger import Record
from paper.rounded import markdown

OURS, PEERS = "gce", ("xgb", "rf", "nn", "ngce")
#: What GCE would be with the peers' rows: it trains on validation rows too, and chooses nothing by them.
SAME_ROWS = "gce_holdout"


class Tuning(Ablation):
    """Ranks and costs of Table 1."""

    name, title = "tuning", "GCE without tuning against tuned peers"
    claim = "GCE does well with little tuning where XGBoost and random forests need much."

    def fits(self, scope: Scope) -> list[Record]:
        return []

    def section(self, found: Found, scope: Scope) -> str:
        path = scope.results / "table1.json"
        if not path.exists():
            return "Table 1 has not been run: `make table1`, then this again."
        cells = json.loads(path.read_text())["cells"]
        parts = [_INTRODUCTION]
        for ours in (OURS, SAME_ROWS):
            table = compared(cells, ours)
            if table:
                rows = [_row(name, *own) for name, own in table.items()]
                head = ["set", "splits", ours, *PEERS, "settings tried, in this order", "seconds a split"]
                parts += [f"`{ours}`:", markdown(head, rows), _sentence(ours, table)]
        return "\n\n".join(parts) if len(parts) > 1 else "Table 1 has no split on which all methods are done."


_INTRODUCTION = """\
From Table 1's repeated random splits, those on which all methods are done: mean rank by test error (1 is best, equal
errors share), and what each search cost. `gce` is the estimator as it comes, given training and validation rows;
`gce_holdout` is the same on the training rows alone, stopped by the validation rows, like its peers."""

Compared = dict[str, tuple[np.ndarray, list[list[Record]]]]


def compared(cells: list[Record], ours: str) -> Compared:
    """By set: ranks ``(splits, methods)``, and the cells of each method on those splits."""
    methods = (ours, *PEERS)
    table = {}
    for name in sorted({cell["set"] for cell in cells}):
        own = {
            (cell["method"], cell["split"]): cell
            for cell in cells
            if cell["set"] == name
            and isinstance(cell["split"], int)
            and cell["test"] is not None
            and cell["trials"] >= cell["wanted"]
        }
        splits = sorted({split for _, split in own if all((method, split) in own for method in methods)})
        if splits:
            ranks = np.array([rankdata([own[method, split]["test"] for method in methods]) for split in splits])
            table[name] = (ranks, [[own[method, split] for split in splits] for method in methods])
    return table


def _row(name: str, ranks: np.ndarray, cells: list[list[Record]]) -> list[str]:
    tried = " / ".join(f"{np.mean([cell['trials'] for cell in own]):.0f}" for own in cells)
    seconds = " / ".join(f"{np.mean([cell['seconds'] for cell in own]):.1f}" for own in cells)
    return [name, str(len(ranks)), *(f"{rank:.2f}" for rank in ranks.mean(0)), tried, seconds]


def _sentence(ours: str, table: Compared) -> str:
    """The mean rank over sets, each counting the same."""
    methods = (ours, *PEERS)
    mean = np.mean([ranks.mean(0) for ranks, _ in table.values()], axis=0)
    order = [f"{methods[i]} {mean[i]:.2f}" for i in np.argsort(mean)]
    first = [name for name, (ranks, _) in table.items() if ranks.mean(0).argmin() == 0]
    return f"Mean rank over sets: {', '.join(order)}. `{ours}` ranks first on {len(first)} sets ({listed(first)})."
