"""The union of several classes: every class is asked, the best proposal is taken, and it stays what it is."""

import io

import joblib
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from gce import GCEClassifier, GCERegressor
from gce._utils.codecs import Parts
from gce._utils.random import Streams
from gce.bases import (
    Basis,
    FitContext,
    Networks,
    Neural,
    Neuron,
    Pool,
    Proposal,
    RegressorBasis,
    SignTree,
    Tree,
    TreeAtoms,
    Union,
    Zero,
)
from gce.bases.mixed_atoms import MixedAtoms
from gce.bases.objectives import Joint, Linear, Quadratic
from gce.frank_wolfe.algorithms import ALGORITHMS
from gce.io.rounds import restore_rounds, store_rounds
from gce.losses.risk import Risk
from gce.preprocessing.mixed import Widths
from helpers import LOSSES, outputs_of, targets

TREE, STUMP, NET = (
    Tree(max_leaf_nodes=4, min_samples_leaf=2),
    Tree(max_leaf_nodes=2, min_samples_leaf=2),
    Neural(hidden=3, max_epochs=5),
)


def problem(loss="squared", seed=0, n=20, members=3):
    rng = np.random.default_rng(seed)
    X = torch.from_numpy(rng.normal(size=(n + 4, 3)))
    weight = torch.from_numpy(rng.uniform(0.1, 1, (members, n)))
    k = outputs_of(LOSSES[loss])
    offset = torch.zeros(k, dtype=torch.float64)
    risk = Risk(LOSSES[loss], targets(LOSSES[loss], n, rng), weight / weight.sum(1, keepdim=True), offset)
    pred = torch.from_numpy(rng.uniform(-1, 1, (members, n, k)))
    return X, risk, pred, torch.full((k,), 2.0, dtype=torch.float64)


def streams(members, t=1):
    return Streams(0, tuple(range(7, 7 + members))).at(t, torch.arange(members), torch.zeros(members, dtype=torch.long))


def proposals(bases, objective, X):
    return [
        base.minimize(objective, X, rng=streams(len(objective.model.unit)), context=FitContext()).atoms(X)
        for base in bases
    ]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(sorted(LOSSES)))
def test_the_linear_choice_is_the_oracle_of_the_union(seed, loss):
    X, risk, pred, bound = problem(loss, seed)
    D = risk.gradient(pred)
    bases = [STUMP, NET, RegressorBasis(Ridge())]
    outs = proposals(bases, Linear(D, bound, risk=risk), X)
    proposal = Union(bases, "linear").minimize(Linear(D, bound, risk=risk), X, rng=streams(3), context=FitContext())
    atoms, outputs = proposal.atoms, proposal.outputs
    inner = torch.stack([(D * out[:, :20]).sum((1, 2)) for out in outs])
    best = inner.argmin(0)
    torch.testing.assert_close(outputs, torch.stack([outs[b][m] for m, b in enumerate(best.tolist())]), rtol=0, atol=0)
    torch.testing.assert_close(atoms(X), outputs)
    assert outputs.abs().max() <= 2


@pytest.mark.parametrize("loss", ["squared", "logistic", "cross_entropy"])
def test_the_risks_choice_lowers_its_quadratic_most(loss):
    X, risk, pred, bound = problem(loss, seed=4)
    objective = Quadratic(risk, pred, risk.gradient(pred), bound)
    bases = [STUMP, TREE, RegressorBasis(Ridge())]
    outs = proposals(bases, objective, X)
    atoms = Union(bases, "risk").minimize(objective, X, rng=streams(3), context=FitContext()).atoms
    D, H = objective.model.gradient, objective.model.hessian
    sizes = torch.linspace(0, 1, 2001, dtype=torch.float64)
    for m in range(3):
        g = [out[m, :20] for out in outs]
        least = [min(float((D[m] * s * u + H[m] * (s * u) ** 2 / 2).sum()) for s in sizes) for u in g]
        assert torch.equal(atoms(X)[m, :20], g[int(np.argmin(least))])


def test_where_the_risk_is_asked_for_the_risk_decides():
    X, risk, pred, bound = problem("logistic", seed=1)
    objective = Joint(risk, pred, bound, start=0.3)
    bases = [STUMP, TREE]
    outs = proposals(bases, objective, X)
    sizes = torch.linspace(0, 1, 201, dtype=torch.float64)
    for choose in ("linear", "risk"):
        atoms = Union(bases, choose).minimize(objective, X, rng=streams(3), context=FitContext()).atoms
        along = [torch.stack([risk.value(pred + s * (out[:, :20] - pred)) for s in sizes]).amin(0) for out in outs]
        best = torch.stack(along).argmin(0).tolist()
        for m in range(3):
            assert torch.equal(atoms(X)[m], outs[best[m]][m])


def test_lengths_are_the_atoms_own_or_where_the_quadratic_is_least():
    X, risk, pred, bound = problem("logistic", seed=2)
    objective = Quadratic(risk, pred, risk.gradient(pred), bound)
    tree = Union([TREE]).minimize(objective, X, rng=streams(3), context=FitContext())
    alone = TREE.minimize(objective, X, rng=streams(3), context=FitContext())
    assert torch.equal(tree.step_length, alone.step_length)
    net = Union([NET]).minimize(objective, X, rng=streams(3), context=FitContext())
    g, model = net.evaluate(X)[:, :20], objective.model
    wanted = -(model.gradient * g).sum((1, 2)) / (model.hessian * g**2).sum((1, 2))
    torch.testing.assert_close(net.step_length, wanted.clamp(min=0))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, np.where(X[:, 2] > 0, X[:, 0], np.sin(3 * X[:, 1])) + 0.05 * rng.normal(size=60)


@pytest.mark.parametrize("base", [TREE, NET, RegressorBasis(DecisionTreeRegressor(max_depth=2))])
@pytest.mark.parametrize("algorithm", ["pairwise", "boosting", "nonlinear"])
def test_a_union_of_one_class_is_that_class(base, algorithm, table):
    given = {"algorithm": algorithm, "max_atoms": 6, "random_state": 0, "line_search": "exact", "max_iter": 6}
    one, alone = GCERegressor(basis=Union([base]), **given), GCERegressor(basis=base, **given)
    np.testing.assert_allclose(one.fit(*table).predict(table[0]), alone.fit(*table).predict(table[0]), rtol=1e-9)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("choose", ["linear", "risk"])
def test_every_algorithm_holds_several_kinds(algorithm, choose, table):
    X, y = table
    basis = Union([STUMP, NET, RegressorBasis(DecisionTreeRegressor(max_depth=3))], choose)
    given = {"basis": basis, "algorithm": algorithm, "max_atoms": 10, "random_state": 0}
    model = GCERegressor(**given).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 0.8 * y.var()
    assert not any(isinstance(part, MixedAtoms) for part in model.ensemble_.parts)
    assert len(model.ensemble_.parts) == len({type(part) for part in model.ensemble_.parts})
    assert (np.abs(model.predict(10 * X) - model.offset_) <= model.bound_ * (1 + 1e-12)).all()
    weights = model.ensemble_.weights
    assert (weights >= 0).all()
    assert float(weights.sum()) == pytest.approx(1, abs=1e-12)
    assert GCEClassifier(**given).fit(X, np.digitize(y, [-0.3, 0.5])).score(X, np.digitize(y, [-0.3, 0.5])) > 0.6


class Turns(Basis):
    """A class whose members get models of two kinds in turns: what is stored and selected must be mixed."""

    def minimize(self, objective, X, *, rng, context):
        union = Union([Neuron(), NET])
        atoms = union.minimize(objective, X, rng=rng, context=context).atoms
        some = [base.minimize(objective, X, rng=rng, context=context).atoms for base in union.bases]
        place = torch.arange(len(atoms))
        return Proposal(MixedAtoms(some, place % 2, place))


def test_members_with_atoms_of_different_kinds(table, tmp_path):
    X, y = table
    given = {"basis": Turns(), "max_atoms": 4, "max_iter": 4, "cv": 4, "random_state": 0}
    model = GCERegressor(**given).fit(X, y)
    kinds = [part for part in model.ensemble_.parts if not isinstance(part, Zero)]
    assert len(kinds) == 2
    assert all(type(part) is Networks for part in kinds)
    # members leave, and the others get what stands where they now stand
    assert len({tuple(record.members) for record in model.result_.families[0].rounds}) > 1
    got = {
        (m, record.t): int(record.atoms.kind[p])
        for record in model.result_.families[0].rounds
        for m, p in record.position.items()
    }
    seen = [{got[tuple(born)] for born in own.tolist()} for own in _origins(model.ensemble_)]
    assert seen in ([{0}, {1}], [{1}, {0}])
    # files, resumption and stages see the same rounds
    rows = model.encode_rows(X)
    (family,) = model.result_.families
    again = restore_rounds(store_rounds(family.rounds, 4), 4, 1, Widths(3, 3), family.bound)
    for old, new in zip(family.rounds, again, strict=True):
        torch.testing.assert_close(new.atoms(rows), old.atoms(rows), rtol=1e-12, atol=0)
    *_, last = model.staged_predict(X)
    np.testing.assert_allclose(last, model.predict(X), rtol=1e-12)
    folder = tmp_path / "rounds"
    GCERegressor(**{**given, "max_iter": 2}).fit(X, y, checkpoint=folder)
    assert np.array_equal(GCERegressor(**given).fit(X, y, checkpoint=folder).predict(X), model.predict(X))


def _origins(ensemble):
    first = 0
    for part in ensemble.parts:
        own = ensemble.origin[first : first + len(part)]
        first += len(part)
        if not isinstance(part, Zero):
            yield own


def mixed_atoms():
    X, risk, pred, bound = problem()
    objective = Linear(risk.gradient(pred), bound, risk=risk)
    nets, trees = (base.minimize(objective, X, rng=streams(3), context=FitContext()).atoms for base in (NET, STUMP))
    return X, MixedAtoms([nets, trees], torch.tensor([1, 0, 1]), torch.tensor([2, 1, 0])), nets, trees


def test_assorted_atoms_are_selected_joined_and_scaled():
    X, atoms, nets, trees = mixed_atoms()
    outs = torch.stack([trees(X)[2], nets(X)[1], trees(X)[0]])
    torch.testing.assert_close(atoms(X), outs)
    assert [(type(part), place) for part, place in map(atoms.at, range(3))] == [
        (TreeAtoms, 2),
        (Networks, 1),
        (TreeAtoms, 0),
    ]
    torch.testing.assert_close(atoms.select(torch.tensor([2, 0]))(X), outs[[2, 0]])
    assert len(atoms.select(torch.tensor([2, 0])).parts) == 1
    twice = MixedAtoms.cat([atoms, atoms.select(torch.tensor([1, 2]))])
    assert len(twice.parts) == 2
    torch.testing.assert_close(twice(X), outs[[0, 1, 2, 1, 2]])
    torch.testing.assert_close(atoms.scaled(0.25)(X), outs / 4)
    weights = torch.tensor([[0.5], [0.2], [0.3]], dtype=torch.float64)
    torch.testing.assert_close(atoms.mix(X, weights), (weights[..., None] * outs).sum(0))


def test_a_fit_leaves_no_state_in_its_basis():
    union = Union([STUMP])
    X, risk, pred, bound = problem()
    union.minimize(Linear(risk.gradient(pred), bound, risk=risk), X, rng=streams(3), context=FitContext())
    assert vars(union).keys() == {"bases", "choose"}
    assert vars(STUMP).keys() == STUMP.get_params().keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": torch.tensor([0, 2, 0])}, "out of range"),
        ({"kind": torch.tensor([0, -1, 0])}, "out of range"),
        ({"place": torch.tensor([0, 0, 3])}, "out of range"),
        ({"place": torch.tensor([0, 0])}, "'place' must be"),
    ],
)
def test_files_with_atoms_elsewhere_are_refused(change, message):
    X, risk, pred, bound = problem()
    objective = Linear(risk.gradient(pred), bound, risk=risk)
    some = [
        base.minimize(objective, X, rng=streams(3), context=FitContext()).atoms for base in (NET, Neuron(max_epochs=2))
    ]
    whole = MixedAtoms(some, torch.tensor([0, 1, 0]), torch.tensor([0, 1, 2])).stored()
    again = MixedAtoms.restored(Parts(whole.meta, whole.tensors), Widths(3, 3), bound)
    torch.testing.assert_close(again(X)[1], some[1](X)[1])
    with pytest.raises(ValueError, match=message):
        MixedAtoms.restored(Parts(whole.meta, {**whole.tensors, **change}), Widths(3, 3), bound)
    nested = Parts(dict(whole.meta), dict(whole.tensors))
    nested.meta["parts"] = {"kinds": ["assorted"], "0": whole.meta}
    with pytest.raises(ValueError, match="must not contain mixed atoms"):
        MixedAtoms.restored(nested, Widths(3, 3), bound)


def test_one_foreign_model_makes_the_union_foreign(table, tmp_path):
    X, y = table
    basis = Union([RegressorBasis(DecisionTreeRegressor(max_depth=3)), STUMP])
    model = GCERegressor(basis=basis, max_atoms=3, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="a fitted DecisionTreeRegressor is not gce's own"):
        model.save(tmp_path / "model.gce")
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    assert np.array_equal(joblib.load(file).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (Union([]), "at least one basis"),
        (Union("tree"), "needs a list of bases"),
        (Union([TREE, "neural"]), "needs a list of bases"),
        (Union(TREE), "needs a list of bases"),
        (Union([TREE], "best"), "choose must be 'linear' or 'risk', got 'best'"),
        (Union([TREE, Pool(functions=[np.sin])]), "Pool is a finite pool"),
    ],
)
def test_bad_parameters_are_named(basis, message, table):
    with pytest.raises(ValueError, match=message):
        GCERegressor(basis=basis, random_state=0).fit(*table)


def test_signs_are_kept_by_all_or_refused(table):
    X, y = table
    given = {"monotonic_cst": [1, 0, 0], "max_atoms": 3, "random_state": 0}
    model = GCERegressor(basis=Union([NET, Neural(hidden=2, max_epochs=3)]), **given).fit(X, y)
    moved = X + np.array([0.5, 0, 0])
    assert (model.predict(moved) >= model.predict(X) - 1e-12).all()
    mixed = GCERegressor(basis=Union([NET, TREE]), **given).fit(X, y)
    assert (mixed.predict(moved) >= mixed.predict(X) - 1e-12).all()
    with pytest.raises(ValueError, match="SignTree does not support monotonic_cst"):
        GCERegressor(basis=Union([NET, SignTree()]), **given).fit(X, y)


def test_the_finest_precision_is_everyones():
    assert Union([Neural()]).dtype(10_000) == torch.float32
    assert Union([Neural(), TREE]).dtype(10_000) == torch.float64
    assert Union([Neural(), TREE]).dtype(10) == torch.float64
