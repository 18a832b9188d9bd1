"""The four initializations, and the paper's algorithms from them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from reproduction.cr1.algorithm_runs import Fit, Initialization, best_multiple, has_converged, run_from
from reproduction.cr1.initializations import INITS, Samples, make_init, seeded
from reproduction.cr1.real_sets import FILMS, QUICK, load_set, weighted, without_empty_columns
from reproduction.data.store import is_available

from nonneg.exceptions import UnknownNameError
from nonneg.iteration.history import History


@pytest.fixture(scope="module")
def real():
    return load_set(QUICK)


@pytest.fixture(scope="module")
def samples(real):
    return Samples.of(real.X)


@pytest.mark.parametrize("kind", INITS)
def test_a_start_is_nonnegative_and_its_run_repeatable(kind, real, samples):
    one, other = (make_init(kind, samples, real.k, seeded(kind, 3)) for _ in range(2))
    assert one.W.shape == (90, 4)
    assert one.Ht.shape == (64, 4)
    assert one.W.min() >= 0
    assert one.Ht.min() >= 0
    np.testing.assert_array_equal(one.W, other.W)
    np.testing.assert_array_equal(one.Ht, other.Ht)
    assert one.seconds > 0


@pytest.mark.parametrize("kind", ["rand", "cr1-nmf", "spkm"])
def test_runs_differ_in_what_is_drawn(kind, real, samples):
    first, second = (make_init(kind, samples, real.k, seeded(kind, run)) for run in (0, 1))
    assert np.abs(first.W - second.W).max() > 0


@pytest.mark.parametrize("kind", INITS)
def test_sparse_samples_have_the_start_of_dense_ones(kind, real, samples):
    sparse = Samples.of(scipy.sparse.csr_array(real.X))
    dense, other = (make_init(kind, data, real.k, seeded(kind, 1)) for data in (samples, sparse))
    np.testing.assert_allclose(other.Ht, dense.Ht, atol=1e-8)
    np.testing.assert_allclose(other.W, dense.W, atol=1e-8)


def test_the_start_of_cones_is_perturbed_by_its_mean_coefficient(real, samples):
    init = make_init("cr1-nmf", samples, real.k, seeded("cr1-nmf", 0), first=5)
    np.testing.assert_allclose(np.linalg.norm(init.Ht, axis=0), 1.0)
    added = init.W.min()
    coefficients = init.W - added
    own = coefficients > 1e-9
    np.testing.assert_array_equal(own.sum(axis=1), 1)
    assert added == pytest.approx(coefficients[own].mean())


def test_an_unknown_start_is_named(real, samples):
    with pytest.raises(UnknownNameError, match="nndsvd"):
        make_init("svd", samples, real.k, seeded("svd", 0))


def test_multiplicative_updates_begin_with_the_basis(real, samples):
    init = make_init("rand", samples, real.k, seeded("rand", 0))
    fit = run_from("mult", samples, init, max_iter=2)
    V, W, H = real.X.T, init.Ht, init.W.T
    for _ in range(2):
        W = W * (V @ H.T) / (W @ H @ H.T)
        H = H * (W.T @ V) / (W.T @ W @ H)
    np.testing.assert_allclose(fit.Ht, W, rtol=1e-10)
    np.testing.assert_allclose(fit.W, H.T, rtol=1e-10)
    assert fit.errors[-1] == pytest.approx(np.linalg.norm(V - W @ H) / np.linalg.norm(V))


def test_least_squares_forget_the_coefficients_they_are_given(real, samples):
    init = make_init("spkm", samples, real.k, seeded("spkm", 0))
    other = Initialization(init.W[::-1].copy(), init.Ht, 0.0)
    fits = [run_from("nnlsb", samples, given, max_iter=2) for given in (init, other)]
    np.testing.assert_allclose(fits[0].Ht, fits[1].Ht, atol=1e-9)


def test_hals_begins_with_the_best_multiple(real, samples):
    init = make_init("rand", samples, real.k, seeded("rand", 0))
    a = best_multiple(samples, init.W, init.Ht)
    product = init.W @ init.Ht.T
    near = [np.linalg.norm(real.X - factor * a * product) for factor in (0.99, 1.0, 1.01)]
    assert np.argmin(near) == 1
    larger = Initialization(init.W, 7.0 * init.Ht, 0.0)
    fits = [run_from("hals", samples, given, max_iter=3) for given in (init, larger)]
    np.testing.assert_allclose(fits[1].errors, fits[0].errors, rtol=1e-9)
    assert fits[0].errors[-1] < fits[0].errors[0]


def test_zeros_of_nndsvd_do_not_hold_multiplicative_updates(real, samples):
    init = make_init("nndsvd", samples, real.k, seeded("nndsvd", 0))
    assert (init.Ht == 0).any()
    fit = run_from("mult", samples, init, max_iter=5)
    assert np.all(fit.Ht[init.Ht == 0] > 0)


def test_components_are_compared_as_if_the_basis_had_unit_length():
    W = np.array([[1.0, 0.6], [0.2, 1.0]])
    Ht = np.array([[1.0, 0.0], [0.0, 2.0]])
    fit = Fit(W, Ht, [], [])
    np.testing.assert_array_equal(fit.labels, [1, 1])
    np.testing.assert_array_equal(Fit(W, Ht / [1.0, 2.0], [], []).labels, [0, 1])


def test_a_run_has_settled_when_ten_iterations_changed_nothing():
    def settled(errors):
        history = History()
        for i, error in enumerate(errors):
            history.record(i + 1, float(i), {"loss": 0.5 * error**2})
        return has_converged(SimpleNamespace(history=history))

    assert not settled([1.0] * 9)
    assert settled([1.0] * 10)
    assert settled([2.0] + [1.0] * 10)
    assert not settled([1.0 + 2e-5 * i for i in range(10)])
    assert settled([1.0 + 1e-5 * i for i in range(10)])


def test_words_of_every_document_are_left_out():
    counts = scipy.sparse.csr_array(np.array([[1.0, 2.0, 0.0, 0.0], [1.0, 0.0, 3.0, 0.0]]))
    found = weighted(counts)
    assert found.shape == (2, 2)
    np.testing.assert_allclose(found.toarray(), np.eye(2))
    assert without_empty_columns(counts).shape == (2, 3)


def test_sets_are_known_by_name():
    with pytest.raises(UnknownNameError, match="tr11"):
        load_set("tr99")


@pytest.mark.skipif(not is_available("orl_32x32"), reason="needs a data home with orl_32x32")
def test_a_film_goes_from_one_picture_to_another():
    pictures, films = load_set("orl_32x32"), load_set(FILMS)
    assert films.X.shape == (800, 1024)
    np.testing.assert_array_equal(np.bincount(films.y), 20)
    unit = films.X / np.linalg.norm(films.X, axis=1, keepdims=True)
    first, second = (picture / np.linalg.norm(picture) for picture in pictures.X[:2])
    assert unit[0] @ first > 0.999
    assert unit[19] @ second > 0.999
    assert np.all(np.diff(unit[:20] @ first) < 1e-3)
