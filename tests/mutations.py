"""Mutated model files, each refused in one sentence or as good as the original: run by test_model_files.py.

A program of its own, because its memory is measured. Its one argument is a folder to write to.
"""

import os
import random
import resource
import signal
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np

import gce
from gce.bases import Forest, Tree
from gce.io import container
from mutated_bytes import BLIND, INFORMED, STRANGE
from mutated_contents import altered, hostile

FOLDER = Path(sys.argv[1])
ROWS = np.random.default_rng(1).normal(size=(20, 3))
SECONDS, GIB = 20, 2**30


def fitted():
    """Some models, to be mutated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    many, three = np.column_stack([X[:, 0] ** 2, X[:, 1]]), np.array(["a", "b", "c"])[np.arange(40) % 3]
    greedy = {"max_atoms": 3, "cv": 2, "random_state": 0}
    basis = {"hidden": 2, "max_epochs": 2}
    at_once = {"hidden": 2, "max_epochs": 2, "random_state": 0}
    yield gce.GCERegressor(basis=gce.bases.Neural(**basis, shared=False), **greedy).fit(X, many)
    yield gce.GCEClassifier(basis=gce.bases.Neural(**basis, batch_size=16), **greedy).fit(X, three)
    trees = {"tree": Tree(max_leaf_nodes=4, min_samples_leaf=2), "forest": Forest(n_estimators=3)}
    yield gce.GCERegressor(basis=trees["tree"], **{**greedy, "max_atoms": 12}).fit(X, many)
    yield gce.GCEClassifier(basis=trees, **greedy).fit(X, three)
    yield gce.NGCERegressor(n_atoms=2, cv=2, **at_once).fit(X, many)
    yield gce.NGCERegressor(n_atoms=2, cv=2, **at_once).fit(X, many).reweight(X, many)
    yield gce.NNClassifier(**at_once).fit(X, three)


def said(model):
    name = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    return getattr(model, name)(ROWS)


class Trial:
    """Loads files and takes down what came of it."""

    def __init__(self):
        self.path, self.outcomes, self.files = FOLDER / "mutated.safetensors", Counter(), 0

    def load(self, what):
        """A model, or None where the file was refused as it should be."""
        self.files += 1
        signal.alarm(SECONDS)
        try:
            model = gce.load(self.path)
        except gce.ModelFileError as error:
            message = str(error)
            assert "\n" not in message, message
            assert message.startswith(repr(str(self.path))), message
            assert len(message) < 500, message
            self.outcomes[what, "refused"] += 1
            return None
        finally:
            signal.alarm(0)
        self.outcomes[what, "loaded"] += 1
        return model

    def raw(self, data, what, expected=None):
        """Bytes: refused, or as good as the original."""
        self.path.write_bytes(data)
        model = self.load(what)
        assert model is None or (expected is not None and np.array_equal(said(model), expected)), what

    def contents(self, meta, tensors, what):
        container.write(self.path, meta, tensors)
        return self.load(what)


def main():
    # a payload that is executed leaves its mark here
    os.chdir(FOLDER)
    # these files need not outlive a power cut
    os.fsync = lambda *_: None
    rng, trial, sources, taken_in = random.Random(0), Trial(), [], []
    for i, model in enumerate(fitted()):
        for resumable in (True, False) if model.result_.has_stages else (False,):
            path = FOLDER / f"{i}-{resumable}.safetensors"
            model.save(path, resumable=resumable)
            sources.append((path.read_bytes(), said(model), gce.load(path), *container.read(path)))
    trial.raw(sources[0][0], "original", sources[0][1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for make in STRANGE:
        trial.raw(make(), "strange")
    for *_, model, meta, tensors in sources:
        for number, edit in enumerate(hostile(model)):
            body, parts = deepcopy(meta), dict(tensors)
            edit(body, parts)
            if trial.contents(body, parts, "hostile") is not None:
                taken_in.append((type(model).__name__, number))
    assert not taken_in, f"contents that no fit leaves were taken: {taken_in}"
    for _ in range(1000):
        raw, expected, *_ = rng.choice(sources)
        change = rng.choice(BLIND + INFORMED)
        trial.raw(change(raw, rng), change.__name__, expected)
    for _ in range(100):
        *_, meta, tensors = rng.choice(sources)
        body, parts = deepcopy(meta), dict(tensors)
        altered(body, parts, rng)
        model = trial.contents(body, parts, "altered")
        assert model is None or len(said(model)) == len(ROWS)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    assert not (FOLDER / "executed").exists(), "a payload was executed"
    assert taken < GIB, f"{taken / GIB:.2f} GiB were taken"
    sys.stdout.write(f"{trial.files} files, {taken / 2**20:.0f} MiB: {dict(trial.outcomes)}\n")


if __name__ == "__main__":
    main()
