"""Theorems about transform learning and joint diagonalization, checked by numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reproduction.data import gaussian_composite_model

from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError
from nonneg.transforms import theory

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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([1.0, 2.0], [1.0], [1.0], [1.0]), r"got \(2,\) and \(1,\) for TL-NMF"),
        (([1.0], [1.0], [1.0], [1.0, 2.0]), r"\(1,\) and \(2,\) for JD\+NMF"),
        (([1.0], [1.0], [], []), r"\(0,\) and \(0,\) for JD\+NMF"),
        (([[1.0]], [[1.0]], [1.0], [1.0]), r"got \(1, 1\) and \(1, 1\) for TL-NMF"),
    ],
)
def test_gaps_need_as_many_objectives_as_divergences(given, words):
    with pytest.raises(ShapeError, match=words):
        theory.solution_gaps(*given)


def test_solutions_are_those_within_the_tolerance():
    gaps = theory.solution_gaps(
        [5.0, 5.5, 5.6], [1.0, 2.0, 9.0], [2.0, 2.5, 2.6], [3.0, 4.0, 0.0], tolerance=0.5
    )
    assert (gaps.tl_lowest, gaps.tl_highest, gaps.jd_lowest, gaps.jd_highest) == (1.0, 2.0, 3.0, 4.0)
    assert gaps.objective_gap == 0.0


def test_the_order_may_be_missed_by_the_tolerance_and_no_more():
    gaps = theory.SolutionGaps(1.0, 2.0, 1.5, 3.0, 0.5)
    assert gaps.ordered(0.5)
    assert not gaps.ordered(0.49)
    assert theory.SolutionGaps(0.0, 0.0, 0.0, 0.0, 0.0).ordered()
    assert not theory.SolutionGaps(1.0, 1.0, 2.0, 2.0, 1.5).ordered()  # beyond the outer gap
    assert not theory.SolutionGaps(-1.0, 1.0, 2.0, 2.0, 0.5).ordered()


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


@pytest.mark.parametrize("eps0", [0.0, 0.5])
def test_no_plane_rotation_of_what_the_search_finds_is_better(eps0):
    rng = np.random.default_rng(4)
    A, B = (np.einsum("nab,ncb->nac", G, G) for G in rng.normal(size=(2, 5, 3, 6)))
    largest, where = theory.largest_sampling_divergence(A, B, eps0=eps0, n_init=2, rng=0)
    np.testing.assert_allclose(where @ where.T, np.eye(3), atol=1e-12)
    found, true = (np.einsum("ma,nab,mb->nm", where, M, where) + eps0 for M in (A, B))
    assert largest == pytest.approx(np.sum(found / true - np.log(found / true) - 1))
    c, s = np.cos(np.linspace(-0.8, 0.8, 41)), np.sin(np.linspace(-0.8, 0.8, 41))
    for pair in ([0, 1], [0, 2], [1, 2]):
        turned = np.tile(where, (41, 1, 1))
        turned[:, pair] = np.moveaxis(np.array([[c, s], [-s, c]]), 2, 0) @ where[pair]
        assert theory.sampling_divergence(turned, A, B, eps0=eps0).max() <= largest * (1 + 1e-3)
    alone = theory.largest_sampling_divergence(A, B, eps0=eps0, n_init=1, rng=0)[0]
    assert largest >= alone
    bounds = theory.divergence_bounds(0.25, A, B, eps0=eps0, n_init=1, rng=0)
    assert (bounds.divergence, bounds.largest) == (0.25, alone)
    assert bounds.gap == alone - 0.25
    deviation = theory.uniform_deviation(A, B)
    assert bounds.deviation == theory.deviation_bound(deviation, 5, 3)


def test_more_sweeps_and_starts_never_end_lower():
    rng = np.random.default_rng(5)
    A, B = (np.einsum("nab,ncb->nac", G, G) for G in rng.normal(size=(2, 6, 3, 7)))
    sweeps = [theory.largest_sampling_divergence(A, B, n_init=1, max_sweeps=n, rng=1)[0] for n in (0, 1, 3)]
    assert sweeps[0] < sweeps[1] <= sweeps[2]
    source = np.random.default_rng(1)
    each = [theory.largest_sampling_divergence(A, B, n_init=1, max_sweeps=0, rng=source)[0] for _ in range(6)]
    assert each[0] == sweeps[0]
    assert theory.largest_sampling_divergence(A, B, n_init=6, max_sweeps=0, rng=1)[0] == max(each)


@pytest.mark.parametrize(("factor", "deviation"), [(1.5, 0.5), (0.4, 0.6), (1.0, 0.0)])
def test_the_deviation_of_multiples_is_theirs(factor, deviation):
    found = TRUE.copy()
    found[3] *= factor
    assert theory.uniform_deviation(found, TRUE) == pytest.approx(deviation, abs=1e-9)


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
    assert theory.gaussian_bound(100, 50, 10, 3.0)[0] == math.inf
    n, t = 4000, 4.0
    d = (math.sqrt(10) + t) / math.sqrt(n)
    bound, probability = theory.gaussian_bound(n, 50, 10, t)
    assert bound == pytest.approx(500 * (3 * d) ** 2 / (1 - 3 * d))
    assert probability == pytest.approx((1 - 2 * math.exp(-8)) ** 50)
    assert theory.largest_sampling_divergence(covariances(n, 7), TRUE, n_init=1, rng=0)[0] < bound
    # The rate of Remark 3, 1 / S.
    far = [theory.gaussian_bound(10**e, 50, 10, t)[0] * 10**e for e in (9, 10)]
    assert far[1] == pytest.approx(far[0], rel=0.01)
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidParameterError, match=f"t must be positive, got {wrong}"):
            theory.gaussian_bound(10, 5, 5, wrong)
    # A small t says nothing: 1 - 2 exp(-t^2 / 2) is negative.
    assert theory.gaussian_bound(10, 1, 1, 1.0)[1] == theory.gaussian_bound(10, 2, 1, 1.0)[1] == 0.0


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
    with pytest.raises(InvalidParameterError, match=f"at least {min(shape)}, the smaller side"):
        theory.exact_factors(V, min(shape) - 1)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_power_of_zero_has_exact_factors_too(shape):
    V = np.random.default_rng(9).random(shape)
    V[1] = 0.0
    V[2, 0] = 0.0
    W, H = theory.exact_factors(V, 4)
    np.testing.assert_allclose(W @ H, V, atol=1e-15)
    np.testing.assert_allclose(H.sum(axis=1), 1.0)


def test_what_is_refused():
    for wrong in (0, 1.5, "few"):
        with pytest.raises(InvalidParameterError, match="n_realizations must be an integer of at least 1"):
            theory.sampling_divergence_limit(wrong)
    for at, name in enumerate(("n_realizations", "n_frames", "frame_length")):
        sizes = [1, 1, 1]
        theory.gaussian_bound(*sizes, 1.0)
        sizes[at] = 0
        with pytest.raises(InvalidParameterError, match=f"{name} must be an integer of at least 1, got 0"):
            theory.gaussian_bound(*sizes, 1.0)
    with pytest.raises(ShapeError, match=r"got \(10, 10\) and \(10, 10\)"):
        theory.uniform_deviation(TRUE[0], TRUE[0])
    found = covariances(20, 0)
    with pytest.raises(ShapeError, match=r"of the same shape .* got \(3, 10, 10\) and \(50, 10, 10\)"):
        theory.uniform_deviation(found[:3], TRUE)
    singular = TRUE.copy()
    singular[4] = 0.0
    with pytest.raises(InvalidDataError, match="The true covariance of frame 4 is not positive definite"):
        theory.uniform_deviation(found, singular)
    with pytest.raises(InvalidDataError, match=r"not negative, got the entry -1\.0"):
        theory.exact_factors(-np.ones((3, 2)), 2)
    with pytest.raises(InvalidDataError, match=r"not negative, got the entry -2\.0"):
        theory.exact_factors(np.array([[1.0, 1.0], [-2.0, 1.0]]), 2)
    with pytest.raises(InvalidDataError, match="not negative, got the entry nan"):
        theory.exact_factors(np.array([[1.0, np.nan]]), 2)
    with pytest.raises(InvalidDataError, match=r"got shape \(3,\)"):
        theory.exact_factors(np.ones(3), 2)
