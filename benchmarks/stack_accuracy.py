"""A convex stack of five models beside each of them, their average, scikit-learn's stacking and Caruana's selection.

    python benchmarks/stack_accuracy.py answers [--answers out/stack_answers] [--jobs 16] [--gpu-jobs 4] [--seconds 540]
    python benchmarks/stack_accuracy.py compare [--answers out/stack_answers]

Members: RandomForest, HistGradientBoosting, MLP, LogisticRegression or Ridge (standardised, categories one-hot) and
GCE, all at their defaults with ``random_state=seed``. Seeds 0 to 4; the split is ``RandomState(seed).permutation(n)``,
the first 80 % to fit on. All rules see the same answers: out of five folds of the training rows for the weights, of
members refitted on all training rows for the test rows. Two more stacks: under ``fold_weight=0.5`` half of a member's
answer is the average of its five folds' models; under ``mix="probabilities"`` probabilities are mixed, not their
logarithms (the default).

The first command fits whatever has no answer yet (benchmarks/stack_answers.py) and can be killed and begun again; the
second weighs and judges in seconds, a line of JSON a result in benchmarks/results/stack_accuracy.jsonl, and
stack_accuracy.md. Sets are looked for in GCE_DATA_HOME.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from harness import RESULTS, run_script
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression, RidgeCV
from stack_answers import MEMBERS, REGRESSION, SETS, answer, held, machine

from gce.frank_wolfe.simplex import Outputs, Solution, greedy_selection, solve_simplex
from gce.losses import CrossEntropy, LogMixture, Loss, Squared
from gce.losses.risk import Risk

Array = NDArray[np.float64]
Line = dict[str, Any]

STACK, FOLDED, AVERAGE = "convex stack", "convex stack, fold_weight=0.5", "plain average"
MIXED = 'convex stack, mix="probabilities"'
FREE = "scikit-learn's stacking"
CARUANA, BAGGED = "Caruana's selection (50 rounds)", "Caruana's selection, bagged (20 x half the members)"
RIVALS = (FREE, CARUANA, BAGGED)
#: A mixture's log-loss is judged as scikit-learn judges it: no probability counts as less.
LEAST = np.finfo(np.float64).eps
#: The least probability that has a score, as in ``gce.training.predictions``.
SURE = 1e-5


@dataclass(frozen=True)
class OutOfFold:
    """What the members answered: ``held_out`` (P, n, k), ``test`` and (by the folds' models) ``test_folds`` (P, m, k),
    beside the targets of these rows.
    """

    held_out: Array
    test: Array
    test_folds: Array
    y_train: NDArray[Any]
    y_test: NDArray[Any]
    regression: bool

    def mixable(self, answers: Array, mix: str) -> Array:
        """Answers as they are combined: numbers and probabilities as they are, scores as logarithms of these."""
        return np.log(np.maximum(answers, SURE)) if mix == "scores" else answers

    def meant(self, combined: Array, mix: str) -> Array:
        """Numbers or probabilities that a combination stands for."""
        return softmax(combined, 1) if mix == "scores" else combined

    def problem(self, mix: str) -> tuple[Risk, Outputs]:
        """The risk of a combination of out-of-fold answers, as the stacking estimators write it."""
        n, answers = len(self.y_train), self.mixable(self.held_out, mix)
        loss: Loss = Squared()
        y = self.y_train[:, None]
        if mix == "scores":
            loss, y = CrossEntropy(), np.eye(answers.shape[2])[self.y_train]
        elif mix == "probabilities":  # the mixture's loss is a function of what the true class has
            loss, y, answers = LogMixture(), np.ones((n, 1)), answers[:, np.arange(n), self.y_train, None]
        weight = torch.full((1, n), 1 / n, dtype=torch.float64)
        risk = Risk(loss, torch.from_numpy(y), weight, torch.zeros(y.shape[1], dtype=torch.float64))
        return risk, Outputs([torch.from_numpy(np.ascontiguousarray(one)) for one in answers])

    def figures(self, pred: Array) -> Line:
        """Test loss of numbers or probabilities (m, k), and what else a reader asks for."""
        if self.regression:
            residual = pred[:, 0] - self.y_test
            squared = float(np.mean(residual**2))
            return {"loss": squared, "rmse": squared**0.5, "mae": float(np.mean(np.abs(residual)))}
        true = pred[np.arange(len(pred)), self.y_test]
        error = 100 * float((pred.argmax(1) != self.y_test).mean())
        return {"loss": float(-np.log(np.clip(true, LEAST, 1)).mean()), "error": error}

    def features(self, answers: Array) -> Array:
        """What scikit-learn's stacking shows its final estimator: for two classes without the first column."""
        shown = answers[:, :, 1:] if answers.shape[2] == 2 else answers
        return np.hstack(list(shown))


def free(evidence: OutOfFold) -> Array:
    """StackingRegressor's and StackingClassifier's answer with their default final estimators, (m, k)."""
    last: Any = RidgeCV() if evidence.regression else LogisticRegression()
    last.fit(evidence.features(evidence.held_out), evidence.y_train)
    shown = evidence.features(evidence.test)
    return last.predict(shown)[:, None] if evidence.regression else last.predict_proba(shown)


def weighed(evidence: OutOfFold, seed: int) -> Iterator[tuple[str, str, Array, Solution | None]]:
    """Each rule that gives weights: what it mixes, the weights, and the solution they come from."""
    default, other = ("numbers", "numbers") if evidence.regression else ("scores", "probabilities")
    best = solve_simplex(*evidence.problem(default))
    yield STACK, default, best.weights, best
    yield FOLDED, default, best.weights, best
    risk, outputs = evidence.problem(other)
    if not evidence.regression:
        mixed = solve_simplex(risk, outputs)
        yield MIXED, other, mixed.weights, mixed
    rng = np.random.default_rng(seed)
    chosen = greedy_selection(risk, outputs, max_iter=50, n_bags=1, bag_fraction=1.0, rng=rng)
    yield CARUANA, other, chosen.weights, chosen
    bagged = greedy_selection(risk, outputs, max_iter=50, n_bags=20, bag_fraction=0.5, rng=rng)
    yield BAGGED, other, bagged.weights, bagged
    yield AVERAGE, other, np.full(len(outputs), 1 / len(outputs)), None
    for member, alone in zip(MEMBERS, np.eye(len(outputs)), strict=True):
        yield member, other, alone, None


def judged(name: str, seed: int, arrays: dict[str, Any]) -> list[Line]:
    """A line for every rule on one set and seed."""
    parts = (arrays[key] for key in ("held_out", "test", "test_folds", "y_train", "y_test"))
    evidence = OutOfFold(*parts, name in REGRESSION)
    assert arrays["members"].tolist() == list(MEMBERS)
    head = {"set": name, "seed": seed, "members_on": str(arrays["machine"]), "weighed_on": machine()}
    lines = [{**head, "rule": FREE, **evidence.figures(free(evidence))}]
    for rule, mix, weights, solution in weighed(evidence, seed):
        test = (evidence.test + evidence.test_folds) / 2 if rule == FOLDED else evidence.test
        pred = evidence.meant(np.tensordot(weights, evidence.mixable(test, mix), 1), mix)
        proved = {} if solution is None else {"train_loss": solution.loss, "gap": solution.gap}
        lines.append({**head, "rule": rule, **evidence.figures(pred), "weights": weights.tolist(), **proved})
    return lines


def error_of_mean(values: Array) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def verdict(rule: str, difference: Array) -> tuple[str, bool]:
    """What must hold between the stack and another rule, and whether it does; ``difference`` a seed: stack - other."""
    if rule in RIVALS:
        return "at most one standard error above", float(difference.mean()) <= error_of_mean(difference)
    return "below", float(difference.mean()) < 0


def section(name: str, lines: list[Line]) -> list[str]:
    """One set's table, its verdicts and its weights."""
    extra = {"rmse": "RMSE", "mae": "MAE"} if name in REGRESSION else {"error": "error %"}
    loss = "squared loss" if name in REGRESSION else "log-loss"
    seeds = sorted({line["seed"] for line in lines})
    by = {(line["rule"], line["seed"]): line for line in lines}

    def column(rule: str, key: str) -> Array:
        return np.array([by[rule, seed][key] for seed in seeds])

    out = [f"## {name}", "", f"Means over seeds {seeds} ± standard errors; stack minus the other, paired by seed.", ""]
    columns = ["rule", f"test {loss}", *extra.values(), "stack must be", "stack minus it", "fold_weight=0.5 minus it"]
    out += [f"| {' | '.join(columns)} |"]
    out += ["|---|---:|" + "---:|" * len(extra) + "---|---:|---:|"]
    stacks = [rule for rule in (STACK, FOLDED, MIXED) if (rule, seeds[0]) in by]
    for rule in (*stacks, *MEMBERS, AVERAGE, *RIVALS):
        cells = [f"{column(rule, key).mean():.4f} ± {error_of_mean(column(rule, key)):.4f}" for key in ("loss", *extra)]
        if rule in stacks:
            out.append(f"| **{rule}** | {' | '.join(cells)} | | | |")
            continue
        judged = []
        for stack in (STACK, FOLDED):
            difference = column(stack, "loss") - column(rule, "loss")
            words, holds = verdict(rule, difference)
            paired = f"{difference.mean():+.5f} ± {error_of_mean(difference):.5f}"
            judged.append(f"{paired}: {'yes' if holds else '**no**'}")
        out.append(f"| {rule} | {' | '.join(cells)} | {words} | {' | '.join(judged)} |")
    out += ["", f"| weights, mean over seeds | {' | '.join(MEMBERS)} | training loss | largest gap |"]
    out += ["|---|" + "---:|" * (len(MEMBERS) + 2)]
    for rule in (*(rule for rule in stacks if rule != FOLDED), CARUANA, BAGGED):
        weights = np.array([by[rule, seed]["weights"] for seed in seeds]).mean(0)
        shown = " | ".join(f"{weight:.3f}" for weight in weights)
        out.append(f"| {rule} | {shown} | {column(rule, 'train_loss').mean():.6f} | {column(rule, 'gap').max():.1e} |")
    return [*out, ""]


def report(lines: list[Line]) -> str:
    words = __doc__.split("\n\n")
    made, weighed_on = (", ".join(sorted({line[key] for line in lines})) for key in ("members_on", "weighed_on"))
    out = ["# A convex stack of five models", "", words[2].replace("\n", " "), ""]
    out += ["scikit-learn's stacking is emulated on the same answers: RidgeCV() on the out-of-fold predictions, or"]
    out += ["LogisticRegression() on the out-of-fold probabilities, for two classes without the first column."]
    out += ["Caruana's selection and the plain average mix probabilities, as they are used to."]
    out += [f"A probability below {LEAST:.1e} counts as that in test losses. The largest gap bounds how far the"]
    out += ["training loss is above the least that any weights on the simplex have.", ""]
    out += [f"Members fitted on: {made}. Weighed on: {weighed_on}. Script: `benchmarks/stack_accuracy.py`.", ""]
    for name in SETS:
        own = [line for line in lines if line["set"] == name]
        out += section(name, own) if own else []
    return "\n".join(out)


def compare(folder: Path, results: Path) -> None:
    path = results / "stack_accuracy.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for name, seed, arrays in held(folder):
        lines = [line for line in lines if (line["set"], line["seed"]) != (name, seed)]
        lines += judged(name, seed, arrays)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = report(lines)
    (results / "stack_accuracy.md").write_text(text)
    sys.stdout.write(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=("answers", "compare"))
    parser.add_argument("--answers", type=Path, default=Path("out/stack_answers"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--rows", type=int, help="a trial on so many rows (in a folder of its own)")
    parser.add_argument("--jobs", type=int, default=1, help="processes for models on the CPU, one thread each")
    parser.add_argument("--gpu-jobs", type=int, default=2, help="processes that share a GPU, where there is one")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no fit after so long")
    given = parser.parse_args()
    if given.phase == "compare":
        compare(given.answers, given.results)
        return
    rest = (given.rows, given.jobs, given.gpu_jobs, given.seconds)
    for line in answer(given.answers, given.sets, given.seeds, *rest):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run_script(main)
