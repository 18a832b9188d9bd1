"""The rank from the singular values: planted ranks are found, and every way out is said."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg import estimate_rank
from nonneg.exceptions import (
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    UnknownNameError,
    UnsupportedError,
)
from nonneg.results import RankResult

CONTAINERS = {
    "numpy": lambda X: X,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(17, -1)),
    "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X),
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_planted_rank_is_found_in_every_container(container, low_rank):
    found = estimate_rank(CONTAINERS[container](low_rank))
    assert found.rank == 4
    assert "singular values 4 and 5" in found.reason


@pytest.mark.parametrize("rank", [2, 5, 9])
@pytest.mark.parametrize("shape", [(80, 40), (40, 700)])
def test_planted_ranks(rank, shape, rng):
    X = rng.gamma(1.0, size=(shape[0], rank)) @ rng.gamma(1.0, size=(rank, shape[1]))
    assert estimate_rank(X).rank == rank  # exact: the numerical rank
    assert estimate_rank(X * (1 + 0.05 * rng.random(shape))).rank == rank


def test_scores_are_ratios_of_singular_values(low_rank):
    found = estimate_rank(low_rank, k_min=3, k_max=8)
    values = np.linalg.svd(low_rank, compute_uv=False)
    assert list(found.scores) == [3, 4, 5, 6, 7, 8]
    for k, score in found.scores.items():
        assert score == pytest.approx(found.singular_values[k - 1] / found.singular_values[k], rel=1e-14)
    # Squares are known up to some rounding of the largest.
    squares = values[:9] ** 2
    np.testing.assert_allclose(found.singular_values**2, squares, rtol=0, atol=4e-15 * squares[0])


def test_digits_have_a_sensible_rank_by_default(digits):
    found = estimate_rank(digits)
    assert found.rank == 5
    assert found.k_max == 32
    # The steep end of the spectrum is why there is a default limit.
    assert estimate_rank(digits, k_max=60).rank == 58


def test_one_is_a_candidate_only_on_request(low_rank):
    assert estimate_rank(low_rank, k_min=1).rank in (1, 4)
    assert 1 in estimate_rank(low_rank, k_min=1).scores
    assert 1 not in estimate_rank(low_rank).scores


@pytest.mark.parametrize(
    ("X", "rank", "reason"),
    [
        (np.zeros((6, 5)), 1, "X is zero"),
        (np.ones((6, 5)), 1, "only 1 singular values lie above rounding"),
        (np.ones((6, 2)) + np.eye(6, 2), 1, "smaller dimension of X is 2"),
        (np.ones((1, 9)), 1, "smaller dimension of X is 1"),
        (np.eye(3), 2, "singular values 2 and 3"),
        (np.eye(4)[:, :3], 2, "singular values 2 and 3"),
    ],
)
def test_small_matrices_have_a_stated_way_out(X, rank, reason):
    found = estimate_rank(X)
    assert found.rank == rank
    assert reason in found.reason


def test_the_numerical_rank_is_the_limit(rng):
    X = rng.random((30, 3)) @ rng.random((3, 20))
    found = estimate_rank(X, k_max=15)
    assert found.numerical_rank == 3
    assert max(found.scores) == 3
    assert estimate_rank(X, k_min=8, k_max=15).rank == 3
    assert "fewer than k_min=8" in estimate_rank(X, k_min=8, k_max=15).reason


def test_a_k_min_beyond_the_ratios_is_said(rng):
    found = estimate_rank(rng.random((6, 5)), k_min=5)
    assert found.rank == 5
    assert "no candidate is left from k_min=5 on" in found.reason


@pytest.mark.parametrize(
    "options", [{"k_min": 0}, {"k_max": 0}, {"k_min": 2.5}, {"k_min": None}, {"k_min": 5, "k_max": 4}]
)
def test_wrong_limits_are_refused(options, low_rank):
    with pytest.raises(InvalidParameterError, match="Expected k_m"):
        estimate_rank(low_rank, **options)


def test_unknown_methods_say_the_near_ones(low_rank):
    with pytest.raises(UnknownNameError, match="Did you mean 'singular-value-ratio'"):
        estimate_rank(low_rank, method="singular-values-ratio")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (["ratio"], {}),
        ("cross-validation", {"method_params": {"n_folds": "5"}}),
        ("cross-validation", {"method_params": {"n_folds": 2.5}}),
        ("cross-validation", {"max_samples": "many"}),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(method, options, low_rank):
    named = next(iter(options.get("method_params", options)), "method")
    with pytest.raises(InvalidParameterError, match=named):
        estimate_rank(low_rank, method=method, **options)


def test_the_result_reads_and_copies(low_rank):
    found = nonneg.estimate_rank(low_rank)
    assert isinstance(found, RankResult)
    assert repr(found).startswith("RankResult(rank=4, method='singular-value-ratio': the ratio")
    assert dict(copy.deepcopy(found).scores) == dict(found.scores)


def cones(n_samples, seed, noise=0.1):
    rng = np.random.default_rng(seed)
    X = nonneg.datasets.circular_cones(n_samples, 200, 8, size_angle=0.3, rng=rng).X
    return np.maximum(X + noise * rng.standard_normal(X.shape), 0.0)


def test_the_number_of_cones_is_found_in_noise():
    # Eight cones of 200 features; the paper's setting, reduced. The mean of nonnegative points makes the
    # first ratio the largest one, which is why the search starts later.
    found = [estimate_rank(cones(1500, seed), k_min=4, k_max=32).rank for seed in range(10)]
    assert np.mean(np.array(found) == 8) >= 0.9


@pytest.mark.parametrize("container", ["numpy", "csr", "torch", "dask"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_normalized_points_count_alike(norm, container, low_rank, rng):
    lengths = rng.gamma(0.3, size=(60, 1)) * 100
    plain = estimate_rank(CONTAINERS[container](low_rank * lengths), normalize=norm)
    unit = low_rank / np.linalg.norm(low_rank, int(norm[1]), axis=1, keepdims=True)
    values = np.linalg.svd(unit, compute_uv=False)
    np.testing.assert_allclose(plain.singular_values, values[: len(plain.singular_values)], rtol=1e-9)
    assert plain.normalize == norm
    assert f"scaled to {norm} norm one" in plain.reason


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_fits_see_normalized_samples(norm, low_rank):
    X = low_rank * np.linspace(0.1, 5, len(low_rank))[:, None]
    by_hand = X / np.linalg.norm(X, int(norm[1]), axis=1, keepdims=True)
    options = {"method": "cross-validation", "candidates": [2, 4], "rng": 0}
    normalized, expected = estimate_rank(X, normalize=norm, **options), estimate_rank(by_hand, **options)
    np.testing.assert_allclose(normalized.curve.mean, expected.curve.mean, rtol=1e-6)


@pytest.mark.parametrize("normalize", ["l3", "max"])
def test_unknown_norms_are_refused(normalize, low_rank):
    with pytest.raises(UnknownNameError, match="normalize"):
        estimate_rank(low_rank, normalize=normalize)


def test_parameters_of_other_methods_are_refused(low_rank):
    with pytest.raises(UnsupportedError, match="does not accept n_folds; only 'cross-validation' does"):
        estimate_rank(low_rank, method_params={"n_folds": 5})
    with pytest.raises(UnknownNameError, match="Did you mean 'n_folds'"):
        estimate_rank(low_rank, method="cross-validation", method_params={"n_fold": 5})
    with pytest.raises(InvalidParameterError, match="method_params must be a dict or None"):
        estimate_rank(low_rank, method_params=[0.5])


def test_the_certificate_of_many_points_in_like_cones_holds():
    # Equal lengths, size angles and angles between the axes, and thirty times as many points as features:
    # what Theorem 9 asks for.
    from nonneg.datasets.cones import equiangular_directions

    rng = np.random.default_rng(0)
    n_features, n_cones, alpha, beta = 24, 4, 0.25, 1.1
    axes = equiangular_directions(n_cones, n_features, beta, rng=rng)
    labels = np.arange(20_000) % n_cones
    angles = rng.uniform(0, alpha, size=(20_000, 1))
    around = rng.standard_normal((20_000, n_features))
    around -= np.sum(around * axes[labels], axis=1, keepdims=True) * axes[labels]
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    X = np.cos(angles) * axes[labels] + np.sin(angles) * around
    found = estimate_rank(X, k_max=12)
    assert found.rank == n_cones
    condition = found.certificate["ratio-condition"]
    assert condition.holds
    assert condition.number < condition.threshold
    levels = [condition.quantities[name] for name in ("first_level", "cone_level", "floor_level")]
    # Equations (87) to (91) of the paper, for samples of unit length.
    f = 0.5 - np.sin(2 * alpha) / (4 * alpha)
    floor = f / (n_features - 1)
    weight = (1 - f - floor) / n_cones
    axes = floor + weight * (1 - np.cos(beta))
    expected = [floor + weight * (1 + (n_cones - 1) * np.cos(beta)), axes, floor]
    np.testing.assert_allclose(levels, expected, rtol=0.05)
    # (92) turns where the allowed deviation ends.
    (_, axes, floor), e = levels, condition.threshold
    assert (floor + e) / (floor - e) == pytest.approx((axes - e) / (floor + e), rel=1e-6)


def test_the_certificate_of_few_points_fails_and_says_what_to_do(low_rank):
    found = estimate_rank(low_rank)
    condition = found.certificate["ratio-condition"]
    assert condition.verdict == "fails"
    assert "normalize='l2'" in condition.sentence
    assert "normalize=" not in estimate_rank(low_rank, normalize="l2").certificate["ratio-condition"].sentence


def test_a_rank_of_one_has_nothing_to_verify(low_rank):
    found = estimate_rank(low_rank, candidates=[1])
    assert found.rank == 1
    assert {statement.verdict for statement in found.certificate} == {"not verifiable"}


def test_given_candidates_are_the_only_ones(low_rank):
    found = estimate_rank(low_rank, candidates=[6, 3, 9])
    assert list(found.scores) == [3, 6, 9]
    beyond = estimate_rank(np.ones((9, 2)) @ np.ones((2, 8)) + np.eye(9, 8), candidates=[20, 30])
    assert beyond.rank <= 7
    assert "no candidate" in beyond.reason


@pytest.mark.parametrize("candidates", [[], [0, 3], [2.5], "23", 5])
def test_wrong_candidates_are_refused(candidates, low_rank):
    with pytest.raises(InvalidParameterError, match="Expected candidates to be a sequence of integers"):
        estimate_rank(low_rank, candidates=candidates)


def test_nan_is_an_error_and_named_unless_it_is_missing(low_rank):
    X = low_rank.copy()
    X[3, 5] = np.nan
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 5\] is nan"):
        estimate_rank(X)
    with pytest.warns(NonnegWarning, match="singular values treat as zeros"):
        assert estimate_rank(X, missing="mask").rank >= 2


def test_negative_entries_are_for_the_ratio_alone(low_rank):
    X = low_rank - low_rank.mean()
    assert estimate_rank(X).rank >= 2
    with pytest.raises(NegativeDataError, match="estimate_rank"):
        estimate_rank(X, method="cross-validation")
