"""What a row gets does not depend on its place or its neighbours: the same bits alone, in any lane, in any block."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.datasets import load_breast_cancer, load_iris

from gce import GCEClassifier
from gce.bases import Networks
from gce.bases.neural.network import SingleNeuron, TwoLayer
from gce.losses import links
from gce.preprocessing import Standardizer
from gce.preprocessing.sparse import SparseRows
from helpers import oracle_problem

NETWORKS = {
    "5-relu-hardtanh": TwoLayer(5, "relu", "hardtanh"),
    "3-tanh-tanh": TwoLayer(3, "tanh", "tanh"),
    "60-relu-hardtanh": TwoLayer(60, "relu", "hardtanh"),
    "10-relu-identity": TwoLayer(10, "relu", "identity"),
    "neuron": SingleNeuron(),
}
#: Every lane of two tiles, and the borders of larger blocks.
PLACES = [*range(385), 1_023, 1_024, 2_099]


def networks(name, dtype, models, d):
    """Seven random atoms of three outputs."""
    _, _, start = oracle_problem(NETWORKS[name], 10, d, 3 // models, members=7 * models, dtype=dtype)
    return Networks(NETWORKS[name], start, torch.tensor([1.0, 2.0, 0.3], dtype=torch.float64), models)


def drawn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("d", [0, 1, 4, 11])
@pytest.mark.parametrize("models", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name, dtype, models, d):
    nets, weights = networks(name, dtype, models, d), drawn(7, 3, seed=2)
    row, crowd = drawn(1, d), drawn(2_100, d, seed=1)
    crowd[PLACES] = row
    alone, mixed = nets(row), nets.mix(row, weights)
    assert torch.equal(nets(crowd)[:, PLACES], alone.expand(-1, len(PLACES), -1))
    assert torch.equal(nets.mix(crowd, weights)[PLACES], mixed.expand(len(PLACES), -1))
    if d > 1:
        assert not torch.equal(nets.mix(crowd, weights)[-3], mixed[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_sparse_rows(name, dtype):
    nets, weights = networks(name, dtype, 1, 30), drawn(7, 3, seed=2)
    rng = np.random.default_rng(0)
    crowd = np.where(rng.random((2_100, 30)) < 0.2, rng.normal(size=(2_100, 30)), 0)
    crowd[PLACES] = crowd[0]
    rows = SparseRows(sp.csr_array(crowd), drawn(30, seed=3))
    alone = nets.mix(rows[:1], weights)
    found = nets.mix(rows, weights)
    assert torch.equal(found[PLACES], alone.expand(len(PLACES), -1))
    torch.testing.assert_close(found, nets.mix(torch.from_numpy(rows.toarray()), weights), rtol=1e-4, atol=1e-5)


LINKS = {"sigmoid": 1, "softmax": 3, "log_odds": 1, "centred_log": 3}


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    link, scores = getattr(links, name), 3 * drawn(137, LINKS[name])
    given = scores if name in ("sigmoid", "softmax") else links.softmax(torch.cat([scores, -scores], 1))[:, :-1]
    whole = link(given)
    for first in range(137):
        for last in {first + 1, min(first + 10, 137), 137}:
            assert torch.equal(link(given[first:last]), whole[first:last])
    # in rows that lie apart, and of several members at once
    assert torch.equal(link(given.T.contiguous().T), whole)
    assert torch.equal(link(given[None].expand(2, -1, -1))[1], whole)


def told(name, x):
    """A function of a number, rounded once."""
    with localcontext() as context:
        context.prec = 60
        x = Decimal(x)
        if name == "sigmoid":
            return float(1 / (1 + (-x).exp()))
        if name == "tanh":
            return float(((2 * x).exp() - 1) / ((2 * x).exp() + 1))
        return float(x.ln() - (1 - x).ln())


def test_links_and_curves_are_right():
    """To four units in the last place: fewer than eight operations round what is not far smaller than the answer."""
    rng = np.random.default_rng(0)
    scores = np.concatenate([rng.normal(size=60) * size for size in (1e-9, 0.1, 1, 10, 200)] + [[0.0, 709.0, -709.0]])
    found = links.sigmoid(torch.from_numpy(scores)[:, None]).numpy()
    eps = np.finfo(float).eps
    np.testing.assert_allclose(found[:, 1], [told("sigmoid", x) for x in scores], rtol=4 * eps, atol=0)
    np.testing.assert_allclose(found[:, 0], [told("sigmoid", -x) for x in scores], rtol=4 * eps, atol=0)
    p = found[(found > 1e-300) & (found < 1)]
    odds = np.array([told("log_odds", x) for x in p])
    # log p and log(1 - p) are rounded before they are subtracted, and 1 - p before its logarithm is taken
    np.testing.assert_allclose(links.log_odds(torch.from_numpy(p)), odds, rtol=4 * eps, atol=4 * eps)
    neuron = Networks(SingleNeuron(), [torch.ones(1, 1, 1).double()], torch.ones(1).double())
    inputs = torch.from_numpy(scores)[:, None]
    units = neuron(inputs)[0, :, 0].numpy()
    np.testing.assert_allclose(units, [told("tanh", x) for x in scores], rtol=4 * eps, atol=0)
    assert np.abs(units).max() == 1


def test_what_is_no_number_stays_so():
    nan, inf = torch.nan, torch.inf
    found = links.sigmoid(torch.tensor([[nan], [inf], [-inf]], dtype=torch.float64))
    np.testing.assert_array_equal(found, [[nan, nan], [0, 1], [1, 0]])
    found = links.softmax(torch.tensor([[nan, 0.0], [0.0, nan], [-inf, 0.0]], dtype=torch.float64))
    np.testing.assert_array_equal(found, [[nan, nan], [nan, nan], [0, 1]])
    np.testing.assert_array_equal(links.log_odds(torch.tensor([0.0, 1.0, nan]).double()), [-inf, inf, nan])
    neuron = Networks(SingleNeuron(), [torch.ones(1, 1, 1).double()], torch.ones(1).double())
    out = neuron(torch.tensor([[nan], [inf], [-inf], [1e308]]).double())
    np.testing.assert_array_equal(out[0, :, 0], [nan, 1, -1, 1])


def test_scaling():
    """Dense rows in any layout, sparse rows, by numpy: the same operations, each rounded once."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5)) * 10.0 ** rng.integers(-3, 4, (700, 5))
    scaling = Standardizer.fit(X, np.ones(700), 4.0, "robust")
    whole = scaling.transform(X)
    for rows in (slice(0, 1), slice(3, 13), slice(699, 700)):
        np.testing.assert_array_equal(scaling.transform(X[rows]), whole[rows])
    np.testing.assert_array_equal(scaling.transform(np.asfortranarray(X)), whole)
    np.testing.assert_array_equal(scaling.transform(np.repeat(X, 2, 0)[::2]), whole)
    sparse = scaling.transform_sparse(SparseRows.from_matrix(X))
    for rows in (slice(0, 1), slice(3, 13), slice(699, 700)):
        np.testing.assert_array_equal(
            scaling.transform_sparse(SparseRows.from_matrix(X[rows])).toarray(), sparse[rows].toarray()
        )
    np.testing.assert_array_equal(scaling._clip_smoothly((X - scaling.mean) * (1 / scaling.scale)), whole)


@pytest.mark.parametrize("basis", ["auto", "tree", "forest", "neural"])
@pytest.mark.parametrize("data", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_classifiers(data, basis):
    X, y = data(return_X_y=True)
    model = GCEClassifier(basis=basis, max_atoms=8, cv=2, random_state=0).fit(X, y)
    whole, raw = model.predict_proba(X), model.decision_function(X)
    for size in (1, 10, 77):
        blocks = [X[first : first + size] for first in range(0, len(X), size)]
        np.testing.assert_array_equal(np.concatenate([model.predict_proba(block) for block in blocks]), whole)
        np.testing.assert_array_equal(np.concatenate([model.decision_function(block) for block in blocks]), raw)
