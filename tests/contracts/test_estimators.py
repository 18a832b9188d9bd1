"""Contract of every estimator and application."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tests.references.containers import TORCH, as_container, plain

import nonneg
from nonneg import applications

K = 3


def low_rank(dtype):
    """Samples near rank 3 with pure ones among them, so that every family finds components."""
    rng = np.random.default_rng(0)
    weights = np.vstack([np.eye(K), rng.dirichlet(np.ones(K), size=37)])
    return (weights @ rng.gamma(1.0, size=(K, 12)) + 0.01 * rng.random((40, 12))).astype(dtype)


def frames(dtype):
    """Frames whose power has rank 2 after a rotation."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((30, 8)).astype(dtype) * rng.gamma(1.0, size=(30, 1)).astype(dtype)


def counts(dtype):
    """Word counts of documents about three subjects."""
    rng = np.random.default_rng(2)
    topics = np.kron(np.eye(K), np.ones((1, 8))) + 0.05
    return rng.poisson(4 * rng.dirichlet(0.2 * np.ones(K), size=60) @ topics).astype(dtype)


def graph(dtype):
    """Three cliques with a few edges between them."""
    rng = np.random.default_rng(3)
    A = np.kron(np.eye(K), np.ones((10, 10))) + (rng.random((30, 30)) < 0.05)
    A = np.maximum(A, A.T)
    np.fill_diagonal(A, 0)
    return A.astype(dtype)


def cube(dtype):
    """A hyperspectral image of three materials, with pure pixels."""
    return low_rank(dtype).reshape(8, 5, 12)


def recording(dtype):
    """Two tones that sound one after the other."""
    time = np.arange(4096) / 8000
    return (
        np.sin(2 * np.pi * 440 * time) * (time < 0.25) + np.sin(2 * np.pi * 900 * time) * (time > 0.2)
    ).astype(dtype)


def mutations(dtype):
    """Counts of 96 mutation types in 30 tumors."""
    rng = np.random.default_rng(4)
    return rng.poisson(rng.gamma(1.0, 300.0, (30, K)) @ rng.dirichlet(np.full(96, 0.2), K)).T.astype(dtype)


@dataclass(frozen=True, eq=False)
class Case:
    """An estimator with data for it."""

    make: Callable[[], Any]
    data: Callable[[Any], Any]
    found: Callable[[Any], Any]  # the main array of a fitted estimator
    containers: tuple[Any, ...] = ()  # the other forms of X that it accepts


LOCAL = ("fortran", "csr", "csc")
EVERYWHERE = (*LOCAL, "anndata", "strict", TORCH, "dask", "dask-columns")
CASES = {
    "NMF": Case(
        lambda: nonneg.NMF(K, init="random", random_state=0, max_iter=20),
        low_rank,
        lambda model: model.components_,
        EVERYWHERE,
    ),
    "ConeNMF": Case(
        lambda: nonneg.ConeNMF(K, random_state=0), low_rank, lambda model: model.components_, EVERYWHERE
    ),
    "ConsensusNMF": Case(
        lambda: nonneg.ConsensusNMF(K, n_init=3, scale=None, random_state=0, max_iter=20),
        low_rank,
        lambda model: model.components_,
        EVERYWHERE,
    ),
    "IntegrativeNMF": Case(
        lambda: nonneg.IntegrativeNMF(K, max_iter=20), low_rank, lambda model: model.components_, EVERYWHERE
    ),
    "MinVolNMF": Case(
        lambda: nonneg.MinVolNMF(K, init="mv-dual", max_iter=20),
        low_rank,
        lambda model: model.components_,
        EVERYWHERE,
    ),
    "PurificationNMF": Case(
        lambda: nonneg.PurificationNMF(K, random_state=0, max_iter=5),
        low_rank,
        lambda model: model.components_,
        (*LOCAL, "anndata", "strict", TORCH, "dask"),
    ),
    "SeparableNMF": Case(
        lambda: nonneg.SeparableNMF(K, method="spa", random_state=0),
        low_rank,
        lambda model: model.components_,
        EVERYWHERE,
    ),
    "TransformNMF": Case(
        lambda: nonneg.TransformNMF(2, random_state=0, max_iter=5),
        frames,
        lambda model: model.components_,
        ("fortran",),
    ),
    "TopicModel": Case(
        lambda: applications.TopicModel(K, random_state=0), counts, lambda model: model.components_, LOCAL
    ),
    "MixedMembership": Case(
        lambda: applications.MixedMembership(K, random_state=0),
        graph,
        lambda model: model.memberships_,
        LOCAL,
    ),
    "MutationalSignatures": Case(
        lambda: applications.MutationalSignatures(K, n_init=3, random_state=0, max_iter=30),
        mutations,
        lambda model: model.signatures_,
    ),
    "Unmixing": Case(lambda: applications.Unmixing(K, random_state=0), cube, lambda model: model.endmembers_),
    "SourceSeparation": Case(
        lambda: applications.SourceSeparation(2, frame_length=64, max_iter=5, random_state=0),
        recording,
        lambda model: model.model_.components_,
    ),
}
WITH_TABLES = [name for name, case in CASES.items() if hasattr(case.make(), "set_output")]


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def fitted(case, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations
        return case.make().fit(X)


@cache
def fitted_once(case, dtype=np.float64):
    """A fitted estimator that no test changes."""
    return fitted(case, case.data(dtype))


def test_every_estimator_and_application_is_here():
    public = [getattr(home, name) for home in (nonneg, applications) for name in home.__all__]
    assert set(CASES) == {one.__name__ for one in public if inspect.isclass(one)}


@pytest.mark.covering(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inputs_are_not_modified(case, dtype):
    X = case.data(dtype)
    before = X.copy()
    X.setflags(write=False)
    fitted(case, X)
    np.testing.assert_array_equal(X, before)


def test_float32_stays_float32(case):
    for dtype in (np.float32, np.float64):
        assert case.found(fitted_once(case, dtype)).dtype == dtype


def test_one_seed_gives_one_result_and_a_clone_gives_it_again(case):
    X = case.data(np.float64)
    estimator = fitted_once(case)
    twin = clone(estimator)
    assert repr(twin.get_params()) == repr(estimator.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = twin.fit(X)
    assert case.found(estimator).tobytes() == case.found(second).tobytes()
    again = clone(estimator)
    assert not hasattr(again, "certificate_")


def test_parameters_are_stored_as_given(case):
    estimator = case.make()
    for name, value in estimator.get_params().items():
        assert getattr(estimator, name) is value


def test_a_pickled_estimator_is_the_same(case):
    model = fitted_once(case)
    read = pickle.loads(pickle.dumps(model))  # noqa: S301
    np.testing.assert_array_equal(case.found(read), case.found(model))
    assert str(read.certificate_) == str(model.certificate_)
    # The encoding of the training data does not travel with the model.
    assert not hasattr(read, "result_")


def test_a_pickle_does_not_grow_with_the_training_data():
    X = np.random.default_rng(0).random((5000, 12))
    sizes = [
        len(pickle.dumps(nonneg.NMF(3, init="random", max_iter=2, tol=0.0, random_state=0).fit(X[:n])))
        for n in (50, 5000)
    ]
    assert max(sizes) < 10_000
    assert abs(sizes[1] - sizes[0]) < 100


# In these `NMF` stands for the others, which read the data in the same way.
ONE_FOR_ALL = ("fortran", "csc", "strict", "dask-columns")


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(
            name,
            word,
            id=f"{name}, {word}",
            marks=pytest.mark.slow
            if word in ONE_FOR_ALL and name not in ("NMF", "TransformNMF")
            else getattr(form, "marks", ()),
        )
        for name, case in CASES.items()
        for form in case.containers
        for word in getattr(form, "values", (form,))
    ],
)
def test_containers_agree(name, form):
    case = CASES[name]
    X = case.data(np.float64)
    expected = case.found(fitted_once(case))
    given = as_container(X.copy(), form)
    found = plain(case.found(fitted(case, given)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_array_equal(plain(given), X)


@pytest.mark.parametrize("name", WITH_TABLES)
def test_set_output_gives_a_table_with_the_names_of_the_components(name):
    pandas = pytest.importorskip("pandas")
    case = CASES[name]
    X = case.data(np.float64)
    model = copy.copy(fitted_once(case)).set_output(transform="pandas")
    table = model.transform(X)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == list(model.get_feature_names_out())
    assert len(table) == len(X)


def test_every_fit_has_a_certificate_that_reads_and_tests(case):
    certificate = fitted_once(case).certificate_
    assert len(certificate) > 0
    for statement in certificate:
        assert statement.sentence
        assert statement.verdict in set(nonneg.results.Verdict)


def test_the_right_parameter_is_named_in_errors():
    for name, case in CASES.items():
        first = next(iter(inspect.signature(type(case.make())).parameters))
        broken = case.make().set_params(**{first: -3})
        with pytest.raises(ValueError, match=first):
            broken.fit(case.data(np.float64))
        assert name
