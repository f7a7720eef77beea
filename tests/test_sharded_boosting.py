"""Boosted trees of rows in logical shards have the same bits for any number of processes."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gce._utils.random import Streams
from gce.bases import SymmetricTree, Tree
from gce.bases.trees import Bins, booster, replay
from gce.bases.trees.stored import StoredRows
from gce.distributed import Division, World
from gce.frank_wolfe import Boosting
from gce.losses import CrossEntropy, Logistic, PseudoHuber, Quantile, Squared
from gce.losses.line_search import Exact
from gce.preprocessing.encoder import Encoder
from gce.preprocessing.mixed import MixedRows
from gce.preprocessing.row_hashes import hash_rows
from gce.training import EarlyStopping
from gce.training.family_fit import FamilyFit, Method, ResumeState
from gce.training.problem import Problem

HELD_OUT, ROUNDS = 30, 20


class Meeting:
    """Where several threads add up or compare numbers, each in turn of the same calls."""

    def __init__(self, size, fails_at=None):
        self.size, self._fails_at, self.calls = size, fails_at, 0
        self.met, self._numbers, self._lock = threading.Barrier(size, timeout=20), [], threading.Lock()

    def combine(self, own, how):
        if self.calls == self._fails_at:
            raise ConnectionError("the others are gone")
        with self._lock:
            self._numbers.append(own.copy())
        self.met.wait()
        found = how(self._numbers, 0)
        if self.met.wait() == 0:
            self._numbers, self.calls = [], self.calls + 1
        self.met.wait()
        own[:] = found


class Thread(World):
    """One of the processes, as a thread."""

    def __init__(self, rank, meeting):
        self.rank, self.size, self._meeting = rank, meeting.size, meeting

    def add_up(self, numbers):
        self._meeting.combine(numbers, np.sum)

    def take_largest(self, numbers):
        self._meeting.combine(numbers, np.max)


def table(n, mixed):
    """Rows ``(n + HELD_OUT, 5)``; with missing values, and categories in the last column."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n + HELD_OUT, 5)).round(1)
    if mixed:
        X[:, 4] = rng.integers(-1, 9, len(X))
        X[rng.random(len(X)) < 0.1, 0] = np.nan
        X[rng.random(len(X)) < 0.1, 4] = np.nan
    return X


def targets(X, kind):
    known = np.nan_to_num(X)
    signal = np.sin(2 * known[:, 0]) + known[:, 1] * known[:, 2] + (known[:, 4] % 3 == 1)
    classes = (signal > 0).astype(int) + (signal > 1)
    return {
        "squared": (Squared(), signal[:, None]),
        "pseudo-Huber": (PseudoHuber(1.0), signal[:, None]),
        "two classes": (Logistic(), (signal > 0).astype(float)[:, None]),
        "three classes": (CrossEntropy(), np.eye(3)[classes]),
    }[kind]


class Rows:
    """All rows of a fit, and what each of several processes has of them."""

    def __init__(self, counts, kind, mixed=False, max_bins=16):
        self.counts, n = np.array(counts, np.int64), int(sum(counts))
        X = table(n, mixed)
        self.loss, y = targets(X, kind)
        self.y, self.n, rng = torch.from_numpy(y), n, np.random.default_rng(1)
        weight = rng.integers(0, 3, n) * rng.uniform(0.5, 2, n) + 1e-3
        self.weight = torch.from_numpy(weight / weight.sum())
        self.X = torch.from_numpy(X)
        if mixed:
            encoder = Encoder.fit(X, np.ones(len(X)), np.arange(4), "each", np.inf)
            self.X = MixedRows(torch.from_numpy(X), encoder, np.arange(5) == 4)
        blocks = [lambda c=c: np.ascontiguousarray(X[:, c : c + 4].T) for c in (0, 4)]
        self.max_bins, kinds = max_bins, np.arange(5) == 4 if mixed else None
        self.bins, self.codes = Bins.learn(blocks, len(X), 5, max_bins, kinds)
        filled = np.nan_to_num(X, nan=2.0**40) if mixed else X
        self.names = hash_rows(np.round(filled * 2.0**20))

    def problem(self, X, some, division):
        """The problem of some training rows and all rows held out."""
        held_out = torch.zeros(1, int(some.sum()), dtype=torch.float64)
        train = torch.zeros_like(held_out)
        train[0, : len(held_out[0]) - HELD_OUT] = self.weight[torch.from_numpy(some[: self.n])]
        held_out[0, len(held_out[0]) - HELD_OUT :] = 1 / HELD_OUT
        y, k = self.y[torch.from_numpy(some)], self.y.shape[1]
        offset, bound = self.y.mean(0), torch.full((k,), 40.0, dtype=torch.float64)
        return Problem(self.loss, X, y, train, held_out, offset, bound, division=division)

    def of_process(self, first, last, world):
        division = Division(self.counts, first, last, world)
        some = np.ones(self.n + HELD_OUT, bool)
        before, after = self.counts[:first].sum(), self.counts[:last].sum()
        some[:before] = some[after : self.n] = False
        codes, names = np.ascontiguousarray(self.codes[:, some]), np.ascontiguousarray(self.names[some])
        empty = self.X[:0] if isinstance(self.X, MixedRows) else None
        binned = {self.max_bins: (self.bins, codes)}
        X = StoredRows(codes.shape[1], self.X.shape[1], binned, division, names, empty)
        return self.problem(X, some, division)

    def in_memory(self):
        return self.problem(self.X, np.ones(self.n + HELD_OUT, bool), None)


def fitted(problem, basis, rounds=ROUNDS, fit=None, **others):
    fit = FamilyFit("trees", 1, EarlyStopping(None, 0.0)) if fit is None else fit
    fit.run(problem, Method(Boosting(0.3), basis, Exact(), Streams(3, (7,))), max_iter=rounds, max_calls=9e9, **others)
    return fit


def divided(rows, ends, basis, meeting=None, fit=fitted):
    """The fits of processes that have the shards up to ``ends``."""
    meeting = Meeting(len(ends)) if meeting is None else meeting
    found = [None] * len(ends)

    def work(rank):
        try:
            problem = rows.of_process(ends[rank - 1] if rank else 0, ends[rank], Thread(rank, meeting))
            found[rank] = fit(problem, basis)
        except Exception as error:
            meeting.met.abort()
            found[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(ends))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def raised(found):
    """The fits, or the first error that is not of waiting for it."""
    errors = [one for one in found if isinstance(one, Exception)]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return found


def assert_equal_fits(one, other):
    assert len(one.rounds) == len(other.rounds)
    for a, b in zip(one.rounds, other.rounds, strict=True):
        assert a.columns == b.columns
        assert torch.equal(a.weights, b.weights)
        mine, theirs = dict(a.atoms.trees.tensors()), dict(b.atoms.trees.tensors())
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert one.stopping.best_round == other.stopping.best_round


def outputs_of(fits):
    """Predictions of all rows; those of rows held out are the same in all processes."""
    every = [fit.best_outputs for fit in fits]
    for own in every:
        assert torch.equal(own[:, -HELD_OUT:], every[0][:, -HELD_OUT:])
    return torch.cat([*(own[:, :-HELD_OUT] for own in every), every[0][:, -HELD_OUT:]], 1)


BASES = [
    Tree(max_leaf_nodes=7, min_samples_leaf=3, max_bins=16),
    Tree(max_leaf_nodes=7, min_samples_leaf=3, max_bins=16, subsample=0.6, max_features=0.6),
    SymmetricTree(max_depth=3, max_bins=16),
    SymmetricTree(max_depth=3, max_bins=16, outputs_per_tree="all", subsample=0.7),
    Tree(max_leaf_nodes=7, min_samples_leaf=3, max_bins=16, outputs_per_tree="all"),
]
KINDS = ["squared", "two classes", "three classes", "pseudo-Huber"]


@settings(max_examples=12, deadline=None)
@given(
    basis=st.sampled_from(BASES),
    kind=st.sampled_from(KINDS),
    mixed=st.booleans(),
    counts=st.lists(st.integers(0, 70), min_size=3, max_size=6).filter(lambda counts: sum(counts) > 10),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
@example(basis=BASES[0], kind="squared", mixed=False, counts=[40, 50, 60], cuts=(0.4, 0.7))
@example(basis=BASES[1], kind="pseudo-Huber", mixed=True, counts=[40, 50, 60], cuts=(0.4, 0.7))
@example(basis=BASES[2], kind="two classes", mixed=True, counts=[40, 0, 60, 70], cuts=(0.0, 0.5))
@example(basis=BASES[3], kind="three classes", mixed=False, counts=[40, 50, 60], cuts=(0.4, 0.4))
@example(basis=BASES[4], kind="three classes", mixed=False, counts=[0, 50, 60], cuts=(0.4, 0.7))
def test_fits_have_the_same_bits_for_any_number_of_processes(basis, kind, mixed, counts, cuts):
    rows, shards = Rows(counts, kind, mixed), len(counts)
    low, high = sorted(round(cut * shards) for cut in cuts)
    one = raised(divided(rows, [shards], basis))
    two = raised(divided(rows, [low, shards], basis))
    three = raised(divided(rows, [low, high, shards], basis))
    for fits in (two, three):
        for fit in fits:
            assert_equal_fits(fit, one[0])
        assert torch.equal(outputs_of(fits), one[0].best_outputs)


def test_a_round_sends_levels_leaves_and_risk():
    meeting, basis = Meeting(2), SymmetricTree(max_depth=3, max_bins=16)
    fit = raised(divided(Rows([60, 50, 40], "squared"), [1, 3], basis, meeting))[0]
    assert [int(own.atoms.trees.size.max()) for own in fit.rounds] == [15] * ROUNDS
    blocks = len(range(0, ROUNDS, booster._MOST_ROUNDS))
    # three levels, leaves, and what the round changed; before the rounds of a call the weights, and the latter
    assert meeting.calls == 5 * ROUNDS + 2 * blocks


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("basis", BASES)
def test_one_shard_is_the_fit_of_rows_in_memory(basis, kind, mixed):
    rows = Rows([150], kind, mixed)
    stored, memory = fitted(rows.of_process(0, 1, World()), basis), fitted(rows.in_memory(), basis)
    assert_equal_fits(stored, memory)
    assert torch.equal(stored.best_outputs, memory.best_outputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mixed", [False, True])
def test_shards_have_the_risk_of_all_rows(kind, mixed):
    rows = Rows([60, 50, 40], kind, mixed)
    several, memory = fitted(rows.of_process(0, 3, World()), BASES[2], 3), fitted(rows.in_memory(), BASES[2], 3)
    for one, other in zip(several.rounds, memory.rounds, strict=True):
        for name in one.columns:
            assert one.columns[name] == pytest.approx(other.columns[name], rel=1e-12), name


@pytest.mark.parametrize("kind", ["squared", "three classes", "pseudo-Huber"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("basis", BASES)
def test_predictions_are_replayed_to_the_bit(basis, mixed, kind, monkeypatch):
    monkeypatch.setattr(replay, "_ROUNDS_AT_ONCE", 3)
    rows = Rows([60, 50, 40], kind, mixed)
    problem, seen = rows.of_process(0, 3, World()), []
    fit = fitted(problem, basis, 8, resume=ResumeState(keep=lambda record, active: seen.append(active.pred)))
    steps = [(own.atoms, own.weights[:, -1]) for own in fit.rounds]
    for t in (1, 4, 8):
        assert torch.equal(problem.X.replay(steps[:t], basis.max_bins), seen[t - 1])


def test_constraints_are_those_of_the_columns():
    rows = Rows([60, 50, 40], "squared", mixed=True)
    signs = torch.zeros(rows.X.shape[1])
    signs[1], signs[2] = 1, -1
    basis = BASES[0].monotone(signs)
    fits = raised(divided(rows, [1, 3], basis))
    memory = fitted(rows.in_memory(), basis)
    free = fitted(rows.in_memory(), BASES[0])
    assert memory.rounds[-1].columns != free.rounds[-1].columns
    for fit in fits:
        for one, other in zip(fit.rounds, memory.rounds, strict=True):
            assert torch.equal(one.atoms.trees.value, other.atoms.trees.value)


@pytest.mark.parametrize("kind", ["squared", "pseudo-Huber"])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("first", [1, 7])
def test_a_fit_that_is_continued_is_one_that_never_stopped(kind, mixed, first):
    rows = Rows([60, 50, 40], kind, mixed)
    whole = fitted(rows.of_process(0, 3, World()), BASES[1])

    def interrupted(problem, basis):
        return fitted(problem, basis, fit=FamilyFit.resumed(fitted(problem, basis, first).record, "trees"))

    for fit in raised(divided(rows, [2, 3], BASES[1], fit=interrupted)):
        assert_equal_fits(fit, whole)


@pytest.mark.parametrize("kind", ["squared", "pseudo-Huber"])
@pytest.mark.parametrize("call", [0, 1, 5, 40])
def test_an_error_among_processes_is_raised(kind, call):
    rows = Rows([60, 50], kind)
    with pytest.raises(ConnectionError, match="the others are gone"):
        raised(divided(rows, [1, 2], BASES[0], Meeting(2, fails_at=call)))


def test_other_bins_are_refused():
    rows = Rows([60, 50], "squared")
    problem = rows.of_process(0, 2, World())
    fit = fitted(problem, BASES[0], 2)
    steps = [(own.atoms, own.weights[:, -1]) for own in fit.rounds]
    edges = tuple(edge + 0.01 for edge in rows.bins.edges)
    other = replace(problem.X, binned={16: (Bins(edges), rows.codes)})
    with pytest.raises(ValueError, match="were not grown by the bins"):
        other.replay(steps, 16)
    with pytest.raises(ValueError, match=r"max_bins in \[16\], not 8"):
        problem.X.replay(steps, 8)
    with pytest.raises(ValueError, match="same division"):
        replace(problem, division=None)
    with pytest.raises(ValueError, match="subsample < 1 needs hashes"):
        fitted(replace(problem, X=replace(problem.X, names=None)), BASES[1])


def test_codes_may_be_mapped_from_a_file(tmp_path):
    problem = Rows([60, 50], "squared").of_process(0, 2, World())
    bins, codes = problem.X.binned[16]
    codes.tofile(tmp_path / "codes")

    def mapped(mode):
        own = np.memmap(tmp_path / "codes", np.uint8, mode, shape=codes.shape)
        return replace(problem, X=replace(problem.X, binned={16: (bins, own)}))

    assert_equal_fits(fitted(mapped("c"), BASES[0]), fitted(problem, BASES[0]))
    with pytest.raises(ValueError, match="mapped with mode='c'"):
        fitted(mapped("r"), BASES[0])


def test_a_loss_with_kinks_is_refused():
    problem = Rows([60, 50], "squared").of_process(0, 2, World())
    with pytest.raises(ValueError, match="need a smooth loss"):
        fitted(replace(problem, loss=Quantile()), BASES[0])
