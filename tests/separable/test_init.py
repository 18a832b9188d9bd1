"""Accepted initializations; they name samples of X whatever steps come before the search."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import as_container

from nonneg import SeparableNMF, select_anchors
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError

N_ZERO = 7


@pytest.fixture
def with_zeros(noisy):
    """The points after some of zeros, which `normalize` leaves out."""
    return np.concatenate([np.zeros((N_ZERO, 20)), np.abs(noisy.X)])


@pytest.mark.parametrize("method", ["merit", "fast-gradient"])
def test_anchors_to_start_from_are_rows_of_the_data(method, with_zeros):
    given = np.array([3, 40, 11, 60, 25, 80])
    options = {"method": method, "normalize": "l1", "rng": 0, "max_iter": 15}
    plain = select_anchors(with_zeros[N_ZERO:], 6, init=given, **options)
    found = select_anchors(with_zeros, 6, init=given + N_ZERO, **options)
    np.testing.assert_array_equal(found.anchors, plain.anchors + N_ZERO)
    assert found.lam == plain.lam
    assert found.objective == plain.objective


def test_an_earlier_result_is_its_anchors(with_zeros):
    options = {"method": "merit", "normalize": "l1", "method_params": {"lam": 0.1}, "max_iter": 10}
    first = select_anchors(with_zeros, 6, **options)
    from_result = select_anchors(with_zeros, 6, init=first, **options)
    assert from_result.objective == select_anchors(with_zeros, 6, init=first.anchors, **options).objective


def test_samples_that_are_not_searched_are_refused(with_zeros):
    with pytest.raises(InvalidParameterError, match=r"init names sample 2, which 'normalize' left out"):
        select_anchors(with_zeros, 3, method="merit", normalize="l1", init=[10, 2, 30])
    with pytest.raises(InvalidParameterError, match="init contains 97, but samples are 0 to 96"):
        select_anchors(with_zeros, 3, method="merit", normalize="l1", init=[10, 97, 30])


@pytest.mark.parametrize("method", ["merit", "fast-gradient"])
def test_starts_that_are_none(method, noisy):
    with pytest.raises(UnknownNameError, match=r"init='merit' is not known.*'spa'"):
        select_anchors(noisy.X, 3, method=method, init="merit")
    for wrong in ([1.5, 2.0], [], [[1, 2, 3]] * 2, ["a"]):
        with pytest.raises(InvalidParameterError, match="or row indices"):
            select_anchors(noisy.X, 3, method=method, init=wrong)
    with pytest.raises(InvalidParameterError, match="init contains 90"):
        select_anchors(noisy.X, 3, method=method, init=[1, 90])
    with pytest.raises(UnsupportedError, match="init='xray' does not accept negative entries"):
        select_anchors(noisy.X - noisy.X.mean(), 3, method=method, init="xray")


def test_a_cone_search_starts_from_projections_of_nonnegative_points(noisy):
    X = np.abs(noisy.X)
    found = select_anchors(X, 6, method="merit", init="xray", reduce=8, max_iter=5)
    anchors = select_anchors(X, 6, method="xray", reduce=8).anchors
    assert (
        found.objective == select_anchors(X, 6, method="merit", init=anchors, reduce=8, max_iter=5).objective
    )


@pytest.mark.parametrize("method", ["merit", "fast-gradient"])
def test_names_of_greedy_methods(method, noisy):
    by_name = select_anchors(noisy.X, 6, method=method, init="fast-anchor", rng=0, max_iter=10)
    anchors = select_anchors(noisy.X, 6, method="fast-anchor").anchors
    by_anchors = select_anchors(noisy.X, 6, method=method, init=anchors, rng=0, max_iter=10)
    assert by_name.objective == by_anchors.objective


def test_a_start_that_is_drawn_follows_the_seed():
    # Points of noise, in which every drawing finds other corners.
    X = np.random.default_rng(0).random((60, 12))
    starts = {
        select_anchors(X, 5, method="merit", init="vca", rng=seed, max_iter=3).objective
        for seed in (0, 0, 0, 1, 1)
    }
    assert len(starts) == 2
    models = [
        SeparableNMF(5, method="merit", init="vca", random_state=3, max_iter=3).fit(X) for _ in range(2)
    ]
    assert models[0].result_.objective == models[1].result_.objective


@pytest.mark.parametrize("form", ["csr", "torch", "dask"])
def test_every_container_starts_from_anchors(form, noisy):
    pytest.importorskip({"torch": "torch", "dask": "dask"}.get(form, "scipy"))
    options = {"method": "merit", "init": [3, 40, 11, 60, 25, 80], "reduce": 12, "max_iter": 10}
    for rule in ("paper", "authors"):
        found = select_anchors(as_container(noisy.X, form), 6, method_params={"t_init": rule}, **options)
        same = select_anchors(noisy.X, 6, method_params={"t_init": rule}, **options)
        np.testing.assert_allclose(found.row_maxima, same.row_maxima, atol=1e-9)
        assert found.details["t_init"] == same.details["t_init"]
