"""Draw docs/images/architecture.svg: the packages from the ground up, and one fit's way through them.

Run as ``python docs/images/architecture.py``.
"""

from itertools import pairwise
from pathlib import Path

#: Packages from the top down, with what each is for and the height of its lane.
LANES = [
    ("cli", "the command line", 50),
    ("estimators", "scikit-learn's interface, input validation", 86),
    ("datasets", "the paper's data sets", 44),
    ("inspection", "edits, explanations, plots, reports", 50),
    ("theory", "capacity, bounds", 50),
    ("io", "model files, checkpoints, ONNX", 50),
    ("training", "plan, families, callbacks, result", 74),
    ("frank_wolfe", "active set, algorithms, simplex", 66),
    ("bases", "networks, trees, pools: oracles", 66),
    ("losses", "losses, risk, line search", 50),
    ("preprocessing", "frames, categories, scaling, folds", 50),
    ("distributed", "processes, logical shards", 44),
    ("_utils", "parameters, threads, random streams", 44),
]
WIDTH, LEFT, TOP = 1120, 268, 46
STYLE = """
svg { --paper: #ffffff; --lane: #f3f5f8; --line: #d5dae1; --ink: #1c2430; --soft: #5b6675;
      --call: #ffffff; --edge: #7b8796; --value: #dceafd; --value-edge: #3b78c9; --way: #c2500a; --read: #3b78c9; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #12161c; --lane: #1b212a; --line: #323b47; --ink: #e8ecf1; --soft: #a0abb9;
        --call: #262e39; --edge: #8a96a6; --value: #1d3a5f; --value-edge: #6ea8ee; --way: #ff9a4d; --read: #6ea8ee; }
}
text { font-family: system-ui, -apple-system, "DejaVu Sans", Helvetica, Arial, sans-serif; fill: var(--ink); }
.package { font-size: 15px; font-weight: 600; }
.about, .note { font-size: 11.5px; fill: var(--soft); }
.node { font-size: 13px; text-anchor: middle; }
.under { font-size: 11px; text-anchor: middle; fill: var(--soft); }
.call { fill: var(--call); stroke: var(--edge); }
.value { fill: var(--value); stroke: var(--value-edge); }
.frame { fill: none; stroke: var(--edge); stroke-dasharray: 4 3; }
.way, .read, .use { fill: none; stroke-width: 1.8; }
.way { stroke: var(--way); marker-end: url(#way); }
.read { stroke: var(--read); marker-end: url(#read); }
.use { stroke: var(--edge); stroke-width: 1.3; stroke-dasharray: 4 3; marker-end: url(#use); }
"""


class Drawing:
    """Lanes, nodes and arrows, as lines of SVG."""

    def __init__(self):
        self.lines, self.lanes, y = [], {}, TOP
        for i, (name, about, height) in enumerate(LANES):
            self.lanes[name] = (y, height)
            fill = "var(--lane)" if i % 2 == 0 else "var(--paper)"
            self.lines += [
                f'<rect x="0" y="{y}" width="{WIDTH}" height="{height}" fill="{fill}"/>',
                f'<text class="package" x="16" y="{y + height / 2 - 1}">{name}</text>',
                f'<text class="about" x="16" y="{y + height / 2 + 14}">{about}</text>',
            ]
            y += height
        self.height = y + 12
        self.lines.append(f'<path d="M{LEFT - 12} {TOP}V{y}" stroke="var(--line)"/>')

    def middle(self, lane, down=0):
        """Vertical centre of a lane."""
        y, height = self.lanes[lane]
        return y + height / 2 + down

    def node(self, lane, x, width, text, under=None, kind="call", down=0, height=None):
        """A box with a name and, below it, what it is; returns left, top, right and bottom."""
        height = height or (40 if under else 28)
        y = self.middle(lane, down) - height / 2
        radius = 13 if kind == "value" else 4
        middle, base = x + width / 2, y + height / 2 + 4.5
        self.lines.append(
            f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{min(radius, height / 2)}"/>'
        )
        self.lines.append(f'<text class="node" x="{middle}" y="{base - (7 if under else 0)}">{text}</text>')
        if under:
            self.lines.append(f'<text class="under" x="{middle}" y="{base + 9}">{under}</text>')
        return x, y, x + width, y + height

    def arrow(self, kind, *points):
        """A line through points, with a head at its end."""
        self.lines.append(f'<path class="{kind}" d="M' + "L".join(f"{x} {y}" for x, y in points) + '"/>')

    def note(self, x, y, text, anchor="start"):
        """A few words beside an arrow."""
        self.lines.append(f'<text class="note" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')

    def svg(self):
        """The whole picture."""
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0L8 4L0 8z" fill="var(--{colour})"/></marker>'
            for name, colour in (("way", "way"), ("read", "read"), ("use", "edge"))
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">',
                "<title>The packages of gce, and one fit's way through them</title>",
                f"<style>{STYLE}</style><defs>{heads}</defs>",
                f'<rect width="{WIDTH}" height="{self.height}" fill="var(--paper)"/>',
                *self.lines,
                "</svg>\n",
            ]
        )


def middle(box):
    """Horizontal centre of a box."""
    return (box[0] + box[2]) / 2


def draw_script(d):
    """The script of ``fit`` and the values that it makes; returns the boxes that others are joined to."""
    y, height = d.lanes["estimators"]
    d.lines.append(f'<rect class="frame" x="276" y="{y + 8}" width="600" height="{height - 16}" rx="6"/>')
    d.lines.append(f'<text class="node" style="text-anchor: start" x="288" y="{y + 27}">GCERegressor.fit(X, y)</text>')
    d.note(448, y + 27, "with FitSession: parameters checked, checkpoint opened, threads limited")
    validate = d.node("estimators", 288, 96, "validate", down=14)
    for x, name in ((445, "plan_fit"), (651, "run"), (863, "calibrate")):
        d.note(x - 6, y + height - 17, name, "end")
    line = d.middle("training")
    data = d.node("training", 290, 92, "FitData", "rows, folds", "value")
    plan_fit = d.node("training", 408, 74, "plan_fit")
    plan = d.node("training", 505, 98, "FitPlan", "“auto” resolved", "value")
    run = d.node("training", 626, 50, "run")
    family = d.node("training", 702, 96, "FamilyFit", "one per family", "value")
    calibrate = d.node("training", 824, 78, "calibrate")
    result = d.node("training", 928, 104, "FitResult", "immutable", "value")
    way = [data, plan_fit, plan, run, family, calibrate, result]
    for one, other in pairwise(way):
        d.arrow("way", (one[2], line), (other[0], line))
    d.arrow("way", (middle(validate), validate[3]), (middle(validate), data[1]))
    for call in (plan_fit, run, calibrate):
        d.arrow("use", (middle(call), y + height - 8), (middle(call), call[1]))
    return data, run, family, calibrate, result


def draw_loop(d, family, calibrate):
    """A round of Frank-Wolfe, and the solver of the families' weights."""
    line, oracle = d.middle("frank_wolfe"), d.middle("bases")
    iterate = d.node("frank_wolfe", 684, 132, "Algorithm.iterate", "one Step per round")
    active = d.node("frank_wolfe", 544, 104, "ActiveSet", "weights, outputs", "value")
    solve = d.node("frank_wolfe", 850, 114, "solve_simplex", "family weights")
    minimize = d.node("bases", 684, 132, "Basis.minimize", "the oracle")
    proposal = d.node("bases", 544, 104, "Proposal", "atoms, outputs", "value")
    context = d.node("bases", 850, 114, "FitContext", "caches of one fit", "value")
    risk = d.node("losses", 684, 132, "Risk, LineSearch")
    d.arrow("way", (middle(family), family[3]), (middle(family), iterate[1]))
    d.arrow("way", (middle(iterate), iterate[3]), (middle(minimize), minimize[1]))
    d.arrow("way", (minimize[0], oracle), (proposal[2], oracle))
    d.arrow("way", (middle(proposal), proposal[1]), (middle(active), active[3]))
    d.arrow("way", (active[2], line), (iterate[0], line))
    d.arrow("use", (middle(calibrate) + 12, calibrate[3]), (middle(calibrate) + 12, solve[1]))
    d.arrow("use", (context[0], oracle), (minimize[2], oracle))
    low = d.middle("losses")
    d.arrow("use", (risk[2], low), (833, low), (833, line), (iterate[2], line))
    d.note(842, low + 4, "gradient, step size")


def draw_readers(d, result):
    """What reads the result."""
    rail, x, width = 1092, 900, 160
    d.lines.append(
        f'<path d="M{result[2]} {d.middle("training")}H{rail}V{d.middle("cli")}" fill="none" '
        'stroke="var(--read)" stroke-width="1.8"/>'
    )
    readers = [
        ("io", "save, to_onnx", None),
        ("theory", "bound_report", None),
        ("inspection", "edits, report, plots", "an edit gives a FitResult"),
        ("estimators", "predict, result_", "fitted attributes"),
        ("cli", "gce predict, inspect", None),
    ]
    for lane, text, under in readers:
        box = d.node(lane, x, width, text, under)
        d.arrow("read", (rail, d.middle(lane)), (box[2], d.middle(lane)))


def main():
    """Write the picture beside this file."""
    d = Drawing()
    data, run, family, calibrate, result = draw_script(d)
    draw_loop(d, family, calibrate)
    draw_readers(d, result)
    tables = d.node("preprocessing", 276, 120, "Table, splits")
    d.arrow("use", (middle(data), tables[1]), (middle(data), data[3]))
    store, line = d.node("io", 690, 104, "Checkpoint"), d.middle("io")
    d.arrow("use", (store[0], line), (middle(run) + 14, line), (middle(run) + 14, run[1]))
    d.note(16, 28, "Imports go down only: a package may import those below it.")
    keys = [("way", "one fit's way"), ("use", "calls and uses"), ("read", "reads the result")]
    for i, (kind, text) in enumerate(keys):
        x, y = 560 + 190 * i, 24
        d.arrow(kind, (x, y), (x + 40, y))
        d.note(x + 50, y + 4, text)
    (Path(__file__).parent / "architecture.svg").write_text(d.svg())


if __name__ == "__main__":
    main()
