"""Contract of every registry, and of every entry of those that take data."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import TORCH, as_container, plain

from nonneg import factorize, select_anchors
from nonneg._registry import Registry
from nonneg.applications.audio import METHODS as AUDIO
from nonneg.applications.communities.methods import METHODS as COMMUNITIES
from nonneg.applications.topics.methods import METHODS as TOPICS
from nonneg.exceptions import UnknownNameError
from nonneg.initializers.registry import INITS
from nonneg.purification.initialization import INITS as PURIFICATION_INITS
from nonneg.rank_selection.estimate import METHODS as RANK_METHODS
from nonneg.separable.registry import METHODS as ANCHOR_METHODS
from nonneg.solvers.registry import SOLVERS
from nonneg.transforms.options import METHODS as TRANSFORM_METHODS

K = 4
REGISTRIES = {
    "solvers": SOLVERS,
    "initializations": INITS,
    "anchors": ANCHOR_METHODS,
    "transforms": TRANSFORM_METHODS,
    "purification": PURIFICATION_INITS,
    "rank": RANK_METHODS,
    "topics": TOPICS,
    "communities": COMMUNITIES,
    "audio": AUDIO,
}
ENTRIES = [
    pytest.param(registry, name, id=f"{which}, {name}")
    for which, registry in REGISTRIES.items()
    for name in registry
]
DRAWN_INITS = [name for name, entry in INITS.items() if not entry.takes_factors]


def samples(dtype=np.float64):
    """Positive samples among which the first four are pure."""
    rng = np.random.default_rng(0)
    weights = np.vstack([np.eye(K), rng.dirichlet(np.ones(K), size=26)])
    return (weights @ (0.1 + rng.gamma(1.0, size=(K, 11)))).astype(dtype)


@pytest.mark.parametrize(("registry", "name"), ENTRIES)
def test_every_entry_loads_and_has_a_summary(registry, name):
    assert isinstance(registry, Registry)
    assert callable(registry[name].run)
    assert registry[name].summary.strip()
    assert not registry[name].summary.endswith(".")
    assert registry.find(name) is registry[name]


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_a_near_name_is_suggested(registry):
    name = max(registry, key=len)
    with pytest.raises(UnknownNameError, match=f"(?s){registry.parameter}.*Did you mean .*{name}"):
        registry.find(name + "x")


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_unknown_parameters_are_refused_by_name(registry):
    name = next(iter(registry))
    with pytest.raises(UnknownNameError, match="does not accept no_such_parameter"):
        registry.check_options(name, ["no_such_parameter"])


def initial(X, name, seed=0):
    """The initial H: a run of no iteration returns it."""
    return factorize(X, K, init=name, rng=seed, max_iter=0, solver="mu").H


@pytest.mark.parametrize("name", DRAWN_INITS)
def test_initializations_keep_inputs_seeds_and_float32(name):
    X = samples()
    before = X.copy()
    X.setflags(write=False)
    first, again = initial(X, name), initial(X, name)
    np.testing.assert_array_equal(X, before)
    assert first.tobytes() == again.tobytes()
    assert first.min() >= 0
    assert initial(samples(np.float32), name).dtype == np.float32


# The other containers are in tests/initializers/test_registry.py, without a solver around them.
@pytest.mark.parametrize("name", DRAWN_INITS)
def test_initializations_of_a_fit_agree_over_containers(name):
    X = samples()
    expected = initial(X, name)
    for form in ("csr", "dask"):
        np.testing.assert_allclose(plain(initial(as_container(X, form), name)), expected, atol=1e-8)


@pytest.mark.parametrize("name", ANCHOR_METHODS)
def test_anchor_methods_keep_inputs_and_seeds(name):
    X = samples()
    before = X.copy()
    X.setflags(write=False)
    first = select_anchors(X, K, method=name, rng=0)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(select_anchors(X, K, method=name, rng=0).anchors, first.anchors)
    if first.members is None:
        assert sorted(first.anchors) == [0, 1, 2, 3]
    else:
        # Every average has one of the pure samples.
        assert sorted(at for group in first.members for at in set(group) & set(range(K))) == [0, 1, 2, 3]


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(name, *getattr(form, "values", (form,)), marks=getattr(form, "marks", ()))
        for name, method in ANCHOR_METHODS.items()
        for form in ("fortran", "csr", TORCH, *(() if method.in_process else ("dask",)))
    ],
)
def test_anchor_methods_agree_over_containers(name, form):
    X = samples()
    expected = select_anchors(X, K, method=name, rng=0).anchors
    np.testing.assert_array_equal(
        select_anchors(as_container(X, form), K, method=name, rng=0).anchors, expected
    )
