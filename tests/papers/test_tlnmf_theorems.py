"""Theorems about transform learning and joint diagonalization, checked by numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproduction.data import gaussian_composite_model
from reproduction.tlnmf import theory

from nonneg.transforms.certificate import gaussian_bound

MODEL = gaussian_composite_model(50, 10, 5, rng=0)
TRUE = np.einsum("am,na,ab->nmb", MODEL.transform, MODEL.variances, MODEL.transform)


def covariances(n_realizations, seed):
    Y = MODEL.draw(n_realizations, rng=seed).Y
    return np.einsum("snm,snl->nml", Y, Y) / n_realizations


def random_transforms(n, rng):
    return np.linalg.qr(rng.normal(size=(n, 10, 10)))[0]


def itakura_saito(V, model, eps0=0.0):
    ratio = (V + eps0) / (model + eps0)
    return float((ratio - np.log(ratio) - 1).sum())


def test_gaps_of_hand_made_solutions():
    gaps = theory.solution_gaps([5.0, 5.0, 9.0], [1.0, 1.5, 0.1], [2.0, 3.0], [4.0, 0.5])
    # Solutions of TL are the first two; of JD the first, with C = 6.
    assert (gaps.tl_lowest, gaps.tl_highest, gaps.jd_lowest, gaps.jd_highest) == (1.0, 1.5, 4.0, 4.0)
    assert (gaps.inner, gaps.outer, gaps.objective_gap) == (2.5, 3.0, 1.0)
    assert gaps.ordered()


def test_what_is_no_solution_breaks_the_order():
    assert not theory.solution_gaps([5.0], [3.0], [2.0], [2.5]).ordered(1e-9)
    assert not theory.solution_gaps([5.0], [1.0], [1.0], [3.0]).ordered()  # JD below TL's C
    assert theory.solution_gaps([5.0], [1.0], [4.0 - 1e-9], [1.0]).ordered(1e-6)


def test_true_power_has_exact_factors_for_any_transform():
    rng = np.random.default_rng(1)
    for transform in random_transforms(3, rng):
        W, H = theory.factors_of_true_power(transform, MODEL.transform, MODEL.W, MODEL.H)
        np.testing.assert_allclose(W @ H, theory.transformed_power(transform, TRUE), rtol=1e-12)
        np.testing.assert_allclose(H.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.slow
def test_proposition_2_gap_and_lemma_6():
    found = covariances(400, 2)
    rng = np.random.default_rng(3)
    largest, where = theory.largest_sampling_divergence(found, TRUE, n_init=2, rng=rng)
    np.testing.assert_allclose(where @ where.T, np.eye(10), atol=1e-12)
    assert theory.sampling_divergence(where, found, TRUE) == pytest.approx(largest)
    random = theory.sampling_divergence(random_transforms(200, rng), found, TRUE)
    assert largest > random.max() > random.min() > 0
    # The factors of the true power bound the least I of any transform from above by Q_S: Proposition 2.
    W, H = theory.factors_of_true_power(where, MODEL.transform, MODEL.W, MODEL.H)
    assert itakura_saito(theory.transformed_power(where, found), W @ H) == pytest.approx(largest)
    bounds = theory.divergence_bounds(0.5, found, TRUE, n_init=1, rng=0)
    assert bounds.gap == pytest.approx(bounds.largest - 0.5)
    assert bounds.divergence < bounds.largest <= bounds.deviation < math.inf


def test_the_search_finds_the_largest_divergence_of_a_plane():
    rng = np.random.default_rng(4)
    A, B = (np.einsum("nab,ncb->nac", G, G) for G in rng.normal(size=(2, 7, 2, 5)))
    angles = np.linspace(0, np.pi / 2, 4001)
    turns = np.moveaxis(np.array([[np.cos(angles), np.sin(angles)], [-np.sin(angles), np.cos(angles)]]), 2, 0)
    best = theory.sampling_divergence(turns, A, B).max()
    assert theory.largest_sampling_divergence(A, B, rng=0)[0] == pytest.approx(best, rel=1e-3)


def test_deviation_bounds_the_relative_error_of_every_transform():
    found = covariances(300, 5)
    deviation = theory.uniform_deviation(found, TRUE)
    transforms = random_transforms(100, np.random.default_rng(6))
    errors = np.abs(
        theory.transformed_power(transforms, found) / theory.transformed_power(transforms, TRUE) - 1.0
    )
    assert errors.max() <= deviation
    # The bound is reached: an eigenvector of a whitened covariance as an atom.
    assert errors.max() > deviation / 4
    assert theory.deviation_bound(0.5, 3, 2) == pytest.approx(6 * 0.25 / 0.5)
    assert theory.deviation_bound(1.0, 3, 2) == math.inf


def test_theorem_4_holds_where_it_is_not_vacuous():
    assert gaussian_bound(100, 50, 10, 3.0)[0] == math.inf
    n, t = 4000, 4.0
    d = (math.sqrt(10) + t) / math.sqrt(n)
    bound, probability = gaussian_bound(n, 50, 10, t)
    assert bound == pytest.approx(500 * (3 * d) ** 2 / (1 - 3 * d))
    assert probability == pytest.approx((1 - 2 * math.exp(-8)) ** 50)
    assert theory.largest_sampling_divergence(covariances(n, 7), TRUE, n_init=1, rng=0)[0] < bound
    # The rate of Remark 3, 1 / S.
    far = [gaussian_bound(10**e, 50, 10, t)[0] * 10**e for e in (9, 10)]
    assert far[1] == pytest.approx(far[0], rel=0.01)
    # A small t says nothing: 1 - 2 exp(-t^2 / 2) is negative.
    assert gaussian_bound(10, 1, 1, 1.0)[1] == gaussian_bound(10, 2, 1, 1.0)[1] == 0.0


@pytest.mark.parametrize("n_realizations", [1, 2, 10, 100])
def test_divergence_tends_to_the_limit_of_remark_4(n_realizations):
    limit = theory.sampling_divergence_limit(n_realizations)
    rng = np.random.default_rng(8)
    # At the true transform the ratios are independent, with a chi-square distribution of S degrees.
    drawn = rng.chisquare(n_realizations, size=400_000) / n_realizations
    values = drawn - np.log(drawn) - 1
    assert values.mean() == pytest.approx(limit, abs=4 * values.std() / math.sqrt(values.size))
    if n_realizations >= 10:
        assert limit == pytest.approx(1 / n_realizations, rel=0.05)
        Q = [
            theory.sampling_divergence(MODEL.transform, covariances(n_realizations, seed), TRUE)
            for seed in range(6)
        ]
        assert np.mean(Q) / 500 == pytest.approx(limit, rel=0.1)


@pytest.mark.parametrize(("shape", "k"), [((4, 6), 4), ((4, 6), 5), ((6, 4), 4), ((6, 4), 7), ((5, 5), 5)])
def test_divergence_is_zero_from_the_smaller_side_on(shape, k):
    rng = np.random.default_rng(9)
    V = rng.random(shape)
    W, H = theory.exact_factors(V, k)
    assert W.shape == (shape[0], k)
    assert H.shape == (k, shape[1])
    assert min(W.min(), H.min()) >= 0
    np.testing.assert_allclose(H.sum(axis=1), 1.0)
    assert itakura_saito(V, W @ H, 1e-8) < 1e-14
