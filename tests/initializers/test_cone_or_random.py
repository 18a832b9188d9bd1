"""The initialization that the data choose: cones where samples lie in cones, random components elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.containers import as_container

from nonneg import factorize
from nonneg.cones.initialization import cone_init
from nonneg.data import as_data_matrix
from nonneg.initializers import cone_or_random
from nonneg.initializers.cone_or_random import cone_or_random_init, unexplained_by_cones


def samples(kind, rng, n=300):
    axes = rng.gamma(0.5, size=(8, 60))
    weights = np.eye(8)[np.arange(n) % 8] if kind == "cones" else rng.dirichlet(np.full(8, 0.5), n)
    return weights @ axes * np.exp(0.2 * rng.standard_normal((n, 60)))


def fraction(X, k=8, seed=0, **container):
    return unexplained_by_cones(as_data_matrix(X, **container), k, np.random.default_rng(seed))


def test_cones_and_mixtures_are_told_apart(rng):
    for seed in range(5):
        assert fraction(samples("cones", rng), seed=seed) < 0.2
        assert 0.5 < fraction(samples("mixtures", rng), seed=seed) <= 1


def test_what_cones_leave_is_computed_as_defined(rng):
    X = rng.gamma(1.0, size=(40, 6))
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = units @ units.T
    chosen = [int(np.argmin(cosines.sum(axis=1)))]
    for _ in range(2):
        chosen.append(int(np.argmin(cosines[chosen].max(axis=0))))
    squares = (X * X).sum(axis=1)
    left = squares @ (1 - cosines[chosen].max(axis=0) ** 2)
    mean = X.sum(axis=0) / np.linalg.norm(X.sum(axis=0))
    single = squares.sum() - ((X @ mean) ** 2).sum()
    assert fraction(X, 3) == pytest.approx(left / single, rel=1e-2)


def test_units_zeros_and_weights_of_zero_do_not_matter(rng):
    X = samples("mixtures", rng, 80)
    for scale in (2.0**-40, 1e-6, 1e6):
        assert fraction(scale * X) == pytest.approx(fraction(X))
        _, Ht = cone_or_random_init(as_data_matrix(X), 8, rng=0)
        W, scaled_Ht = cone_or_random_init(as_data_matrix(scale * X), 8, rng=0)
        np.testing.assert_array_equal(scaled_Ht, Ht)
        np.testing.assert_allclose(W, scale * cone_or_random_init(as_data_matrix(X), 8, rng=0)[0])
    assert fraction(np.vstack([X, np.zeros((5, 60))])) == pytest.approx(fraction(X))
    odd = np.vstack([X, np.eye(5, 60)])
    assert fraction(odd, weights=np.repeat([1.0, 0.0], [80, 5])) == pytest.approx(fraction(X))


def test_sparse_data_get_random_components(rng):
    X = samples("cones", rng)
    _, Ht = cone_or_random_init(as_data_matrix(as_container(X, "csr")), 8, rng=3)
    np.testing.assert_array_equal(Ht, np.random.default_rng(3).random((60, 8)))


def test_the_two_branches(rng):
    cones, mixtures = as_data_matrix(samples("cones", rng)), as_data_matrix(samples("mixtures", rng))
    for found, expected in zip(cone_or_random_init(cones, 8, rng=3), cone_init(cones, 8), strict=True):
        np.testing.assert_array_equal(found, expected)
    W, Ht = cone_or_random_init(mixtures, 8, rng=3)
    assert not np.array_equal(Ht, cone_or_random_init(mixtures, 8, rng=4)[1])
    # The best multiple of the sum of the components in every row.
    np.testing.assert_allclose(
        W[:, :1] * (Ht.sum(axis=1) @ Ht.sum(axis=1)), mixtures.times(Ht.sum(axis=1)[:, None])
    )
    np.testing.assert_array_equal(W, np.repeat(W[:, :1], 8, axis=1))


@pytest.mark.parametrize("transposed", [False, True])
def test_plenty_of_samples_or_features_are_fitted_in_part(rng, transposed):
    # Components of a few samples fit all of them nearly as well as components of all.
    H = rng.gamma(0.5, size=(3, 30))
    X = rng.dirichlet(np.full(3, 0.5), 800) @ H + 0.01 * rng.random((800, 30))
    X = X.T.copy() if transposed else X
    W, Ht = cone_or_random_init(as_data_matrix(X), 3, rng=0)
    assert (W.shape, Ht.shape) == ((len(X), 3), (X.shape[1], 3))
    assert min(W.min(), Ht.min()) > 0

    def loss(init, n):
        return np.median([factorize(X, 3, init=init, rng=seed, max_iter=n, tol=0).loss for seed in range(3)])

    assert loss("cone-or-random", 2) < 0.5 * loss("random", 2)
    strict = cone_or_random_init(as_data_matrix(as_container(X, "strict")), 3, rng=0)
    for mine, theirs in zip((W, Ht), strict, strict=True):
        np.testing.assert_allclose(np.asarray(theirs), mine, rtol=1e-8)
    single = cone_or_random_init(as_data_matrix(X.astype(np.float32)), 3, rng=0)
    assert all(factor.dtype == np.float32 for factor in single)
    for unit in (1e-6, 1e6):
        for mine, theirs in zip(
            (W, Ht), cone_or_random_init(as_data_matrix(unit * X), 3, rng=0), strict=True
        ):
            sizes = theirs.sum() / mine.sum()
            np.testing.assert_allclose(theirs, sizes * mine, rtol=1e-6, atol=1e-9 * float(theirs.max()))


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((4, 3)),
        np.zeros((500, 3)),
        np.ones((3, 500)),
        np.ones((1, 3)),
        np.outer(np.arange(1.0, 9), np.ones(4)),
    ],
)
def test_degenerate_data(X):
    W, Ht = cone_or_random_init(as_data_matrix(X), 2, rng=0)
    assert np.isfinite(W).all()
    assert np.isfinite(Ht).all()


def test_a_fit_of_cones_is_ahead_after_few_iterations(rng):
    X = samples("cones", rng)

    def loss(init):
        return np.median([factorize(X, 8, init=init, rng=seed, max_iter=3, tol=0).loss for seed in range(3)])

    assert loss("cone-or-random") < 0.9 * min(loss("random"), loss("nndsvda"))


def test_extrapolation_brings_the_fit_of_a_part_further(rng):
    X = rng.dirichlet(np.full(6, 0.3), 120) @ rng.gamma(0.5, size=(6, 40)) + 0.01 * rng.random((120, 40))
    W, Ht = cone_init(as_data_matrix(X), 6)
    plain_W, plain_Ht = W, Ht
    for _ in range(cone_or_random._ITERATIONS):
        plain_W = cone_or_random._updated(plain_W, plain_Ht.T @ plain_Ht, X @ plain_Ht)
        plain_Ht = cone_or_random._updated(plain_Ht, plain_W.T @ plain_W, X.T @ plain_W)
    W, Ht = cone_or_random._fitted(X, W, Ht)
    assert min(W.min(), Ht.min()) >= 0
    assert np.linalg.norm(X - W @ Ht.T) < 0.9 * np.linalg.norm(X - plain_W @ plain_Ht.T)


@pytest.mark.parametrize(("gain", "n_iter"), [(1.0, 10), (0.0, 20)])
def test_a_part_is_fitted_for_as_long_as_it_gains(gain, n_iter, rng, monkeypatch):
    updates, update = [], cone_or_random._updated
    monkeypatch.setattr(cone_or_random, "_GAIN", gain)
    monkeypatch.setattr(cone_or_random, "_updated", lambda *given: (updates.append(1), update(*given))[1])
    X = rng.random((30, 20))
    cone_or_random._fitted(X, rng.random((30, 3)), rng.random((20, 3)))
    assert len(updates) == 2 * n_iter


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
def test_rows_begin_with_the_best_multiple_of_all_components(rng, size):
    X, Ht = rng.random((7, 5)), size * rng.random((5, 3))
    W, kept = cone_or_random._with_multiples(as_data_matrix(X), Ht)
    total = Ht.sum(axis=1)
    np.testing.assert_allclose(W, np.tile((X @ total / (total @ total))[:, None], (1, 3)))
    assert kept is Ht
    W, _ = cone_or_random._with_multiples(as_data_matrix(X), 0 * Ht)
    np.testing.assert_array_equal(W, 0.0)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("n", "fitted"), [(399, False), (400, True)])
def test_ten_times_as_many_samples_as_needed_are_plenty(rng, monkeypatch, n, fitted, transposed):
    # 20 per component, of two.
    X = rng.random((n, 3))
    X = X.T.copy() if transposed else X
    parts = []
    plain = cone_or_random._fitted_to_some
    monkeypatch.setattr(cone_or_random, "_fitted_to_some", lambda *given: parts.append(1) or plain(*given))
    cone_or_random_init(as_data_matrix(X), 2, rng=0)
    assert bool(parts) == fitted
    parts.clear()
    cone_or_random_init(as_data_matrix(X, weights=np.ones(len(X))), 2, rng=0)
    cone_or_random_init(as_data_matrix(X, mask=X > 0.1), 2, rng=0)
    assert not parts


def test_samples_that_decide_are_some_of_those_that_count(rng):
    X = rng.random((30, 4)) * 7.0
    X[3] = 0.0
    rows = cone_or_random._some_rows(as_data_matrix(X), 30, rng)
    np.testing.assert_allclose(rows, np.delete(X, 3, axis=0) / X.max())
    some = cone_or_random._some_rows(as_data_matrix(X), 29, np.random.default_rng(1))
    assert len(some) in (28, 29)
    chosen = [int(np.argmin(np.abs(X / X.max() - row * some.max()).sum(axis=1))) for row in some]
    assert chosen == sorted(set(chosen))
    weights = np.where(np.arange(30) < 10, 1.0, 0.0)
    rows = cone_or_random._some_rows(as_data_matrix(X, weights=weights), 30, rng)
    np.testing.assert_allclose(rows, np.delete(X[:10], 3, axis=0) / X[:10].max())
    assert len(cone_or_random._some_rows(as_data_matrix(np.zeros((4, 3))), 9, rng)) == 0
    assert unexplained_by_cones(as_data_matrix(np.zeros((4, 3))), 2, rng) == 1.0


def test_the_entries_of_a_factor_are_positive():
    factor = np.array([[0.0, 4.0], [0.001, 3.999]])
    found = cone_or_random._positive(as_data_matrix(np.ones((2, 2))), factor)
    np.testing.assert_allclose(found, [[0.002, 4.0], [0.002, 3.999]])


def test_a_rejected_extrapolation_is_taken_back(rng, monkeypatch):
    # As the formulas say, with every extrapolation written out.
    X = rng.random((12, 6))
    W, Ht = rng.random((12, 2)), rng.random((6, 2))
    monkeypatch.setattr(cone_or_random, "_MOMENTUM", 2.0)  # so long that some are rejected
    monkeypatch.setattr(cone_or_random, "_MAX_ITERATIONS", 10)
    update = cone_or_random._updated
    momentum, ceiling, least = 2.0, 1.0, np.inf
    best_W, best_Ht, from_W, from_Ht, rejected = W, Ht, W, Ht, 0
    for _ in range(10):
        new_W = update(from_W, from_Ht.T @ from_Ht, X @ from_Ht)
        ahead = np.maximum(new_W + momentum * (new_W - best_W), 0.0)
        new_Ht = update(from_Ht, ahead.T @ ahead, X.T @ ahead)
        loss = 0.5 * np.sum((X - ahead @ new_Ht.T) ** 2)
        if loss > least:
            rejected += 1
            from_W, from_Ht, ceiling, momentum = best_W, best_Ht, momentum, momentum / 1.5
            continue
        from_W, from_Ht = ahead, np.maximum(new_Ht + momentum * (new_Ht - best_Ht), 0.0)
        best_W, best_Ht, least = new_W, new_Ht, loss
        ceiling = min(1.0, 1.01 * ceiling)
        momentum = min(ceiling, 1.05 * momentum)
    assert 0 < rejected < 9
    found_W, found_Ht = cone_or_random._fitted(X, W, Ht)
    np.testing.assert_allclose(found_W, best_W, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found_Ht, best_Ht, rtol=1e-6, atol=1e-9)
