"""Twenty fits killed at random moments, each gone on with to the end: run by test_checkpoints.py.

A program of its own: it forks, so that packages are imported once. Its one argument is a folder to write to.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

import gce
from gce.bases import Forest, Tree

FOLDER, KILLS = Path(sys.argv[1]), 20
RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4))
Y = np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 2]) + 0.1 * RNG.normal(size=150)])


NET = gce.bases.Neural(hidden=6, max_epochs=10, inherit=0.5)
#: Every other fit is of several families.
BASES = NET, [Tree(max_leaf_nodes=6, min_samples_leaf=5), Forest(n_estimators=5), NET]


def fit(checkpoint, basis, callbacks=None):
    model = gce.GCERegressor(basis=basis, cv=3, max_atoms=15, n_iter_no_change=6, callbacks=callbacks, random_state=0)
    return model.fit(X, Y, checkpoint=checkpoint)


def course(model):
    """Everything that a fit leaves, but for the clock."""
    history = [{name: value for name, value in entry.items() if name != "seconds"} for entry in model.history_]
    state = {name: tensor.numpy().tobytes() for name, tensor in model.ensemble_.state_dict().items()}
    return history, state, model.predict(X).tobytes(), [stage.tobytes() for stage in model.staged_predict(X)]


class Alarm:
    """A callback that has the kernel end the process some seconds after a round, as SIGKILL would: no code runs then.

    Counted by rounds and not by the clock from the start, so that a busy machine does not move all kills to one end.
    """

    def __init__(self, rounds, seconds):
        self.rounds, self.seconds = rounds, seconds

    def __call__(self, step):
        self.rounds -= 1
        if self.rounds == 0:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)


def killed(folder, alarm, basis):
    """A fit in a process of its own, ended by an alarm; how many rounds it left."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        fit(folder, basis, callbacks=[alarm])
        os._exit(0)
    os.waitpid(child, 0)
    return len(list(folder.glob("*round-*.safetensors")))


def main():
    wholes, taken = [], []
    for i, basis in enumerate(BASES):
        wholes.append(course(fit(None, basis)))
        began = time.perf_counter()
        assert course(fit(FOLDER / f"whole-{i}", basis)) == wholes[i]
        taken.append(time.perf_counter() - began)
    rng, left = random.Random(0), []
    for number in range(KILLS):
        folder, kind = FOLDER / str(number), number % len(BASES)
        rounds = len(wholes[kind][0])
        alarm = Alarm(rng.randrange(1, rounds), rng.uniform(1e-6, taken[kind] / rounds))
        left.append((kind, killed(folder, alarm, BASES[kind])))
        assert course(fit(folder, BASES[kind])) == wholes[kind], f"kill {number}, after round {left[-1]}"
        assert not list(folder.glob("*.tmp")) + list(folder.glob(".*"))
    # kills that all came before the first round, or after the last, would prove nothing
    for kind, whole in enumerate(wholes):
        assert len({rounds for own, rounds in left if own == kind} - {0, len(whole[0])}) >= 3, left
    sys.stdout.write(f"{KILLS} kills, after rounds {sorted(left)} of {[len(whole[0]) for whole in wholes]}\n")


if __name__ == "__main__":
    main()
