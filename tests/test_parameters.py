"""Every parameter of every public class, with values of wrong types and sizes: a fit works, or an error names it."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
import torch
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer_names

import gce
from gce import losses
from gce._utils import peer_names
from gce._utils.params import check_parameters, look_up, rules_of
from gce.bases import BASES
from gce.cli.settings import apply
from gce.estimators._validation import FitInput, validate
from gce.losses import REGRESSION, Logistic, Loss
from gce.training.plan import plan_fit
from helpers import assert_same_model

ROWS = 16
X = np.random.default_rng(0).normal(size=(ROWS, 2))
y, LABELS = X[:, 0] + 0.1 * X[:, 1], (X[:, 0] > np.median(X[:, 0])).astype(int)
VALUES = (
    None,
    "word",
    float("nan"),
    float("inf"),
    -1,
    0,
    np.array([1.0, 2.0]),
    np.array(3),
    torch.tensor([1.0, 2.0]),
    torch.tensor(1.0),
    [1],
    [],
    {"a": 1},
    True,
    1e300,
    0.5,
    1.0,
    object(),
)
RIDGES = [("one", Ridge(1.0)), ("two", Ridge(2.0))]
LINES = [("one", LogisticRegression()), ("two", LogisticRegression(C=2.0))]
#: Classes, what they are given beside the parameter in question, and targets.
ESTIMATORS = {
    gce.GCERegressor: (
        {"basis": gce.bases.Tree(max_leaf_nodes=2), "max_iter": 1, "max_atoms": 1, "cv": 2, "random_state": 0},
        y,
    ),
    gce.GCEClassifier: (
        {
            "basis": gce.bases.Neural(hidden=1, max_epochs=1),
            "max_iter": 1,
            "max_atoms": 1,
            "cv": None,
            "random_state": 0,
        },
        LABELS,
    ),
    gce.NGCERegressor: ({"n_atoms": 1, "hidden": 1, "max_epochs": 1, "patience": 0, "random_state": 0}, y),
    gce.NGCEClassifier: ({"n_atoms": 1, "hidden": 1, "max_epochs": 1, "patience": 0, "random_state": 0}, LABELS),
    gce.NNRegressor: ({"hidden": 1, "max_epochs": 1, "patience": 0, "random_state": 0}, y),
    gce.NNClassifier: ({"hidden": 1, "max_epochs": 1, "patience": 0, "random_state": 0}, LABELS),
    gce.ConvexStackingRegressor: ({"estimators": RIDGES, "cv": 2, "random_state": 0}, y),
    gce.ConvexStackingClassifier: ({"estimators": LINES, "cv": 2, "random_state": 0}, LABELS),
    gce.GreedySelectionRegressor: ({"estimators": RIDGES, "cv": 2, "max_iter": 1, "random_state": 0}, y),
    gce.GreedySelectionClassifier: ({"estimators": LINES, "cv": 2, "max_iter": 1, "random_state": 0}, LABELS),
}
#: Objects, the parameter that they are, and what they are given themselves.
OBJECTS = {
    gce.bases.Neural: ("basis", {"hidden": 1, "max_epochs": 1}),
    gce.bases.Neuron: ("basis", {"max_epochs": 1}),
    gce.bases.Tree: ("basis", {"max_leaf_nodes": 2}),
    gce.bases.SymmetricTree: ("basis", {"max_depth": 1}),
    gce.bases.SignTree: ("basis", {"max_leaf_nodes": 2}),
    gce.bases.Forest: ("basis", {"n_estimators": 1}),
    gce.bases.Pool: ("basis", {"functions": None}),
    gce.bases.RegressorBasis: ("basis", {"estimator": Ridge()}),
    gce.bases.Union: ("basis", {"bases": [gce.bases.Tree(max_leaf_nodes=2)]}),
    gce.frank_wolfe.Boosting: ("algorithm", {}),
    gce.frank_wolfe.Blended: ("algorithm", {}),
    gce.frank_wolfe.Brent: ("line_search", {}),
    gce.frank_wolfe.OpenLoop: ("line_search", {}),
    losses.Power: ("loss", {}),
    losses.Huber: ("loss", {}),
    losses.PseudoHuber: ("loss", {}),
    losses.Quantile: ("loss", {}),
}
#: Parameters without a rule: what they may be depends on the rows or on the members, and is checked with these.
WITH_ROWS = {"bound", "categorical_features", "monotonic_cst", "cv", "estimators", "estimator", "bases", "outputs"}


def tried(make, targets, name, value):
    """What a fit says that does not name the parameter; None where it works, or names it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            make().fit(X, targets)
        except (ValueError, TypeError) as error:
            return (
                None if re.search(rf"\b{name}\b", str(error)) else f"{name}={value!r}: {type(error).__name__} {error}"
            )
        except Exception as error:
            return f"{name}={value!r}: {type(error).__name__} {error}"
    return None


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_take_a_value_or_name_the_parameter(kind):
    given, targets = ESTIMATORS[kind]
    said = [
        tried(lambda name=name, value=value: kind(**{**given, name: value}), targets, name, value)
        for name in inspect.signature(kind).parameters
        for value in VALUES
        # processes take long to start
        if not (name == "n_jobs" and value is VALUES[4])
    ]
    assert not list(filter(None, said))


@pytest.mark.parametrize("kind", OBJECTS, ids=lambda kind: kind.__name__)
def test_objects_take_a_value_or_name_the_parameter(kind):
    role, own = OBJECTS[kind]
    limits = {"max_iter": 1, "max_atoms": 1, "cv": None, "random_state": 0}
    beside = {} if role == "basis" else {"basis": gce.bases.Tree(max_leaf_nodes=2)}

    def make(name, value):
        return gce.GCERegressor(**{**limits, **beside, role: kind(**{**own, name: value})})

    said = [
        tried(lambda name=name, value=value: make(name, value), y, name, value)
        for name in inspect.signature(kind).parameters
        for value in VALUES
    ]
    assert not list(filter(None, said))


@pytest.mark.parametrize("kind", [*ESTIMATORS, *OBJECTS], ids=lambda kind: kind.__name__)
def test_every_parameter_has_a_rule(kind):
    assert set(inspect.signature(kind).parameters) <= rules_of(kind).keys() | WITH_ROWS


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_jobs": 0.5}, "n_jobs must be an integer other than 0 or None, got 0.5"),
        ({"n_jobs": 1.0}, "n_jobs must be an integer other than 0 or None, got 1.0"),
        ({"tol": np.array([1.0, 2.0])}, r"tol must be a number of at least 0, got array\(\[1., 2.\]\)"),
        ({"warm_start": torch.tensor([1, 2])}, r"warm_start must be True or False, got tensor\(\[1, 2\]\)"),
        (
            {"basis": gce.bases.Neural(learning_rate=None)},
            "Neural: learning_rate must be positive and finite, got None",
        ),
        (
            {"basis": [gce.bases.Tree(), gce.bases.Neural(gain=np.nan)]},
            r"Neural: gain must be in \[0, inf\) or None, got nan",
        ),
        (
            {"basis": gce.bases.SymmetricTree(max_depth=1e300)},
            r"SymmetricTree: max_depth must be an integer from 1 to 16, got 1e\+300",
        ),
        ({"loss": losses.Power(q=1e300)}, r"Power: q must be in \[1, 100\], got 1e\+300"),
        ({"scoring": "roc_auc"}, "scoring='roc_auc' needs probabilities or scores of classes"),
        ({"scoring": "no such scorer"}, "scoring"),
    ],
)
def test_words(parameters, words):
    with pytest.raises(ValueError, match=words):
        gce.GCERegressor(max_iter=1, **parameters).fit(X, y)


def test_a_wrong_parameter_is_told_before_the_rows_are_looked_at():
    with pytest.raises(ValueError, match="max_iter must be"):
        gce.GCERegressor(max_iter="many").fit(None, None)


def test_a_users_own_parameters_have_no_rules():
    class Own(gce.bases.Neural):
        def __init__(self, size="large"):
            super().__init__()
            self.size = size

    check_parameters(Own(size=object()))


@pytest.mark.parametrize("kind", [gce.GCEClassifier, gce.GCERegressor, gce.NGCEClassifier, gce.NNRegressor])
def test_an_unknown_parameter_is_told_of_the_class_that_was_called(kind):
    with pytest.raises(
        TypeError, match=rf"{kind.__name__}.__init__\(\) got an unexpected keyword argument 'max_depth'"
    ):
        kind(max_depth=3)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("n_estimators", "use max_atoms=..."),
        ("iterations", "use max_atoms=..."),
        ("learning_rate", "it belongs to the basis: use basis=gce.bases.Tree(learning_rate=...)"),
        ("max_depth", "it belongs to the basis: use basis=gce.bases.Tree(max_depth=...)"),
        ("num_leaves", "it belongs to the basis: use basis=gce.bases.Tree(max_leaf_nodes=...)"),
        ("alpha", "it belongs to the loss: use loss=gce.losses.Quantile(quantile=...)"),
        ("early_stopping_rounds", "use n_iter_no_change=..."),
        ("cat_features", "use categorical_features=..."),
        ("categorical_feature", "use categorical_features=..."),
        ("objective", "use loss=..."),
        ("eval_set", "use fit(X, y, X_val=..., y_val=...)"),
        ("exposure", "use fit(X, y, base_score=numpy.log(exposure))"),
        ("sample_weight", "use fit(X, y, sample_weight=...)"),
        ("max_iters", "did you mean 'max_iter'?"),
    ],
)
def test_names_of_other_libraries_are_told_ours(name, ours):
    call = "GCERegressor.__init__() got an unexpected keyword argument"
    with pytest.raises(TypeError, match=f"^{re.escape(f'{call} {name!r}: {ours}')}$"):
        gce.GCERegressor(**{name: 1})
    with pytest.raises(ValueError, match=rf"Invalid parameter '{name}' for estimator GCERegressor: {re.escape(ours)}$"):
        gce.GCERegressor().set_params(**{name: 1})


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("eval_set", "use fit(X, y, X_val=..., y_val=...)"),
        ("exposure", "use fit(X, y, base_score=numpy.log(exposure))"),
        ("init_score", "use fit(X, y, base_score=...)"),
        ("cat_features", "use GCERegressor(categorical_features=...)"),
        ("early_stopping_rounds", "use GCERegressor(n_iter_no_change=...)"),
        ("cv", "use GCERegressor(cv=...)"),
    ],
)
def test_arguments_of_other_libraries_are_told_ours(name, ours):
    call = "GCERegressor.fit() got an unexpected keyword argument"
    with pytest.raises(TypeError, match=f"^{re.escape(f'{call} {name!r}: {ours}')}$"):
        gce.GCERegressor().fit([[0.0]], [0.0], **{name: None})


@pytest.mark.parametrize("kind", sorted(name for name in gce.__all__ if name[:3] in ("GCE", "NGC", "NNC", "NNR")))
def test_advice_is_a_call_that_works(kind):
    """What an error tells to write is taken by the constructor, and by ``fit``."""
    kind = getattr(gce, kind)
    fit, constructor = inspect.signature(kind.fit).parameters, inspect.signature(kind).parameters
    for name in peer_names._PARAMETERS:
        if name in constructor:
            continue
        with pytest.raises(TypeError, match=f"unexpected keyword argument {name!r}") as error:
            kind(**{name: 1})
        advice = re.search(r": use (fit\(X, y, )?(\w+)=", str(error.value))
        if advice is not None:
            assert advice[2] in (fit if advice[1] else constructor), str(error.value)
        objects = re.search(r"(basis|loss)=gce\.(\w+)\.(\w+)\((\w*)", str(error.value))
        if objects is not None:
            owner = getattr(getattr(gce, objects[2]), objects[3])
            assert not objects[4] or objects[4] in inspect.signature(owner).parameters


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (gce.losses.Quantile, "alpha", "use quantile=..."),
        (gce.losses.Quantiles, "alpha", "use levels=..."),
        (gce.losses.Huber, "alpha", "use delta=..."),
        (gce.losses.PseudoHuber, "epsilon", "use delta=..."),
        (gce.losses.Tweedie, "tweedie_variance_power", "use power=..."),
        (gce.bases.Tree, "num_leaves", "use max_leaf_nodes=..."),
        (gce.bases.Tree, "reg_lambda", "use l2_regularization=..."),
        (gce.bases.Tree, "max_leaf_node", "did you mean 'max_leaf_nodes'?"),
        (gce.bases.Tree, "n_estimators", "it belongs to the estimator: use GCERegressor(max_atoms=...)"),
        (gce.bases.Forest, "random_state", "it belongs to the estimator: use GCERegressor(random_state=...)"),
        (gce.bases.Forest, "colsample_bynode", "use max_features=..."),
        (gce.bases.Neural, "hidden_layer_sizes", "use hidden=..."),
        (gce.losses.Squared, "alpha", None),
    ],
)
def test_losses_and_bases_tell_our_names(kind, name, words):
    call = f"{kind.__name__}.__init__() got an unexpected keyword argument {name!r}"
    with pytest.raises(TypeError, match=f"^{re.escape(call if words is None else f'{call}: {words}')}$"):
        kind(**{name: 1})


COMPONENTS = [
    kind
    for package in (gce.bases, gce.losses)
    for kind in (getattr(package, name) for name in package.__all__)
    if isinstance(kind, type) and issubclass(kind, gce.bases.Basis | Loss)
]


@pytest.mark.parametrize("kind", COMPONENTS, ids=lambda kind: kind.__name__)
def test_losses_and_bases_keep_what_scikit_learn_asks_of_them(kind):
    signature = inspect.signature(kind)
    assert list(signature.parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values())
    for name in peer_names._PARAMETERS:
        if name in signature.parameters:
            continue
        with pytest.raises(TypeError, match=f"unexpected keyword argument {name!r}") as error:
            kind(**{name: 1})
        advice = re.search(r": use (GCERegressor\()?(\w+)=", str(error.value))
        if advice is not None:
            assert advice[2] in (inspect.signature(gce.GCERegressor) if advice[1] else signature).parameters
    if all(p.default is not p.empty for p in signature.parameters.values()):
        assert clone(kind()).get_params().keys() == signature.parameters.keys()
        assert repr(pickle.loads(pickle.dumps(kind()))) == repr(kind())


def test_methods_tell_our_names():
    model = gce.GCERegressor(basis="tree", max_iter=2, random_state=0).fit(np.eye(60), np.arange(60.0))
    call = "GCERegressor.predict_interval() got an unexpected keyword argument 'alpha': use coverage=..."
    with pytest.raises(TypeError, match=f"^{re.escape(call)}$"):
        model.predict_interval(np.eye(60), alpha=0.1)
    call = "GCERegressor.predict() got an unexpected keyword argument 'exposure': use base_score=numpy.log(exposure)"
    with pytest.raises(TypeError, match=f"^{re.escape(call)}$"):
        model.predict(np.eye(60), exposure=np.ones(60))
    assert list(inspect.signature(gce.GCERegressor.predict).parameters) == ["self", "X", "base_score"]


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (gce.GCERegressor, "mae", "use 'neg_mean_absolute_error'"),
        (gce.GCERegressor, "RMSE", "use 'neg_root_mean_squared_error'"),
        (gce.GCEClassifier, "auc", "use 'roc_auc'"),
        (gce.GCEClassifier, "logloss", "use 'neg_log_loss'"),
        (gce.GCEClassifier, "acuracy", "did you mean 'accuracy'?"),
        (gce.GCERegressor, "nothing", "the names are those of sklearn.metrics.get_scorer_names()"),
    ],
)
def test_scorers_of_other_libraries_are_told_ours(kind, name, words):
    with pytest.raises(ValueError, match=f"^{re.escape(f'unknown scoring {name!r}: {words}')}$"):
        kind(scoring=name).fit(np.eye(60), np.arange(60) % 2)


@pytest.mark.parametrize("kind", [list, np.array, lambda y: np.array(y, dtype=object)])
def test_a_regressor_of_text_names_the_classifier(kind):
    words = "^y holds text, such as 'a', not numbers: use GCEClassifier for classes$"
    for model in (gce.GCERegressor(), gce.NGCERegressor()):
        with pytest.raises(ValueError, match=words):
            model.fit(np.eye(60), kind(["a", "b"] * 30))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["max_depth=3"], "'max_depth' is not a parameter: use --set basis=tree --set basis__max_depth=..."),
        (["n_estimators=3"], "'n_estimators' is not a parameter: use --set max_atoms=..."),
        (["alpha=.1"], "'alpha' is not a parameter: use --set loss=quantile --set loss__quantile=..."),
        (["max_atom=3"], "'max_atom' is not a parameter: did you mean 'max_atoms'?"),
        (["basis=tree", "basis__num_leaves=3"],
         "'basis__num_leaves' is not a parameter: use --set basis__max_leaf_nodes=..."),
        (["basis=tree", "basis__max_dept=3"], "'basis__max_dept' is not a parameter: did you mean 'basis__max_depth'?"),
    ],
)  # fmt: skip
def test_advice_on_the_command_line_is_what_can_be_given_there(options, words):
    model = gce.GCERegressor()
    with pytest.raises(typer.BadParameter) as error:
        apply(model, options)
    assert error.value.message == words
    usable = [f"{name}=1" for name in re.findall(r"--set (\w+)=\.\.\.", words)]
    apply(model, [*re.findall(r"--set (\w+=\w+)", words), *usable])


def test_every_advice_on_the_command_line_can_be_given():
    for name in set(peer_names._PARAMETERS) - set(gce.GCERegressor().get_params()):
        with pytest.raises(typer.BadParameter) as error:
            apply(gce.GCERegressor(), [f"{name}=1"])
        advice = error.value.message
        usable = [f"{name}=1" for name in re.findall(r"--set (\w+)=\.\.\.", advice)]
        apply(gce.GCERegressor(), [*re.findall(r"--set (\w+=\w+)", advice), *usable])


def test_every_scorer_that_is_named_exists():
    names = set(get_scorer_names())
    assert set(peer_names._VALUES["scoring"].values()) <= names
    assert not set(peer_names._VALUES["scoring"]) & names


@pytest.mark.parametrize(
    ("name", "known", "words"),
    [
        ("mae", REGRESSION, "use 'absolute_error'"),
        ("RMSE", REGRESSION, "use 'squared_error'"),
        ("reg:squarederror", REGRESSION, "use 'squared_error'"),
        ("squared_eror", REGRESSION, "did you mean 'squared_error'?"),
        ("binary:logistic", REGRESSION, "it is 'log_loss' of GCEClassifier"),
        ("survival:cox", REGRESSION, "it is 'cox' of GCESurvival"),
        ("mae", {"log_loss": Logistic()}, "it is 'absolute_error' of GCERegressor"),
    ],
)
def test_losses_of_other_libraries_are_told_ours(name, known, words):
    with pytest.raises(ValueError, match=f"^{re.escape(f'unknown loss {name!r}: {words}')}$"):
        look_up("loss", name, known, Loss)


def test_every_loss_and_basis_that_is_named_exists():
    losses = {*REGRESSION, "log_loss", "cox"}
    assert set(peer_names._VALUES["loss"].values()) <= losses
    assert not set(peer_names._VALUES["loss"]) & losses
    assert set(peer_names._VALUES["basis"].values()) <= set(BASES)
    assert not set(peer_names._VALUES["basis"]) & set(BASES)


def test_constructors_keep_what_scikit_learn_asks_of_them():
    for kind in (gce.GCERegressor, gce.NGCEClassifier, gce.ConvexStackingRegressor):
        assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(kind).parameters.values())
        assert list(inspect.signature(kind).parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    assert "sample_weight" in inspect.signature(gce.GCERegressor.fit).parameters
    model = gce.GCERegressor(max_atoms=3)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).max_atoms == 3

    class Own(gce.GCERegressor):
        def __init__(self, size=1, **rest):
            super().__init__(**rest)
            self.size = size

    assert Own(size=2, max_atoms=3).max_atoms == 3
    with pytest.raises(TypeError, match="n_estimators"):
        Own(n_estimators=3)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (
            "basis__hidden",
            r"basis__hidden cannot be set, because basis='auto' is a name.*basis=gce.bases.Neural\(hidden=...\)",
        ),
        ("basis__max_leaf_nodes", r"basis=gce.bases.Tree\(max_leaf_nodes=...\)"),
        ("algorithm__learning_rate", r"algorithm=gce.frank_wolfe.Boosting\(learning_rate=...\)"),
        ("loss__quantile", r"loss=gce.losses.Quantile\(quantile=...\)"),
        ("basis__nothing", "is a name: give an object$"),
    ],
)
def test_a_parameter_of_an_object_needs_the_object(key, words):
    model = gce.GCERegressor()
    with pytest.raises(ValueError, match=words):
        model.set_params(**{key: 3})
    model.set_params(basis=gce.bases.Neural(), basis__hidden=3)
    assert model.basis.hidden == 3


@pytest.mark.parametrize("weight", [{0: "heavy"}, {0: None}, {0: np.array([1.0, 2.0])}, {0: np.nan}, {0: 10**400}])
def test_a_weight_of_a_class_is_a_positive_number(weight):
    with pytest.raises(ValueError, match="class weights must be positive numbers, got class_weight="):
        gce.GCEClassifier(max_iter=1, class_weight=weight).fit(X, LABELS)


def test_a_scorer_that_cannot_judge_a_constant_may_judge_rounds():
    """A deviance wants positive predictions, which an offset of 0 is not."""
    model = gce.GCERegressor(
        scoring="neg_mean_poisson_deviance", offset=0.0, basis="tree", algorithm="boosting", cv=None, max_iter=5
    )
    scores = [entry["validation"] for entry in model.fit(X, np.exp(0.1 * X[:, 0]) + 3).history_]
    assert np.isfinite(scores).all()
    assert scores[-1] < scores[0]


FAMILIES = ["neural", "neuron", "tree", "symmetric", "forest"]
CAP_ROWS = np.random.default_rng(0).normal(size=(200, 3))
CAP_TARGET = CAP_ROWS[:, 0] - CAP_ROWS[:, 1] ** 2


def limits_of(**parameters):
    """Oracle calls and rounds that each family of a fit may have."""
    model = gce.GCERegressor(cv=2, random_state=0, **parameters)
    data = validate(model, FitInput(CAP_ROWS, CAP_TARGET), seed=0, previous=None, statistics=False)
    plan = plan_fit(model, data)
    return {family.name: (family.max_calls, family.max_rounds) for family in plan.families}


@settings(max_examples=40, deadline=None)
@given(
    basis=st.just("auto") | st.lists(st.sampled_from(FAMILIES), min_size=2, unique=True),
    max_atoms=st.just("auto") | st.integers(1, 2000),
    max_iter=st.integers(1, 2000),
)
def test_a_cap_lowers_the_limit_of_each_family_and_raises_none(basis, max_atoms, max_iter):
    usual = limits_of(basis=basis)
    for name, (calls, rounds) in limits_of(basis=basis, max_atoms=max_atoms, max_iter=max_iter).items():
        cap = np.inf if max_atoms == "auto" else max_atoms
        assert calls == min(usual[name][0], cap)
        assert rounds == min(usual[name][1], cap, max_iter)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_basis_that_is_named_alone_has_the_number_that_is_given_with_it(name):
    assert limits_of(basis=name, max_atoms=700) == {name: (700, 700)}
    assert limits_of(basis=name) == {name: limits_of(basis=FAMILIES)[name]}


@pytest.mark.parametrize("caps", [{"max_atoms": 10**6}, {"max_iter": 10**6}, {"max_atoms": 500, "max_iter": 500}])
def test_a_cap_that_nothing_reaches_changes_nothing(caps):
    one, other = (gce.GCERegressor(cv=2, random_state=0, **limits).fit(CAP_ROWS, CAP_TARGET) for limits in ({}, caps))
    assert_same_model(one, other, CAP_ROWS)


def test_one_forest_is_one_forest_whatever_the_cap():
    model = gce.GCERegressor(max_atoms=5, cv=2, random_state=0).fit(CAP_ROWS, CAP_TARGET)
    rounds = [entry["family"] for entry in model.history_[:-1]]
    assert {name: rounds.count(name) for name in rounds} == {"tree": 5, "symmetric": 5, "forest": 1, "neural": 5}
