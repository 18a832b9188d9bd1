"""The rank from the singular values: planted ranks are found, and every way out is said."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import nonneg
from nonneg.exceptions import InvalidParameterError, UnknownNameError
from nonneg.rank_selection import RankResult, estimate_rank

HOLDERS = {
    "numpy": lambda X: X,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(17, -1)),
    "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X),
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_planted_rank_is_found_in_every_holder(holder, low_rank):
    found = estimate_rank(HOLDERS[holder](low_rank))
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
        assert score == pytest.approx(values[k - 1] / values[k], rel=1e-9)
    np.testing.assert_allclose(found.singular_values, values[:9], rtol=1e-10)


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
        (np.ones((6, 5)), 1, "only 1 singular values stand above rounding"),
        (np.ones((6, 2)) + np.eye(6, 2), 1, "a side of 2"),
        (np.ones((1, 9)), 1, "a side of 1"),
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


@pytest.mark.parametrize("options", [{"k_min": 0}, {"k_max": 0}, {"k_min": 2.5}, {"k_min": 5, "k_max": 4}])
def test_wrong_limits_are_refused(options, low_rank):
    with pytest.raises(InvalidParameterError, match="Expected k_m"):
        estimate_rank(low_rank, **options)


def test_unknown_methods_say_the_near_ones(low_rank):
    with pytest.raises(UnknownNameError, match="Did you mean 'singular-value-ratio'"):
        estimate_rank(low_rank, method="singular-values-ratio")


def test_the_result_reads_and_copies(low_rank):
    found = nonneg.estimate_rank(low_rank)
    assert isinstance(found, RankResult)
    assert repr(found).startswith("RankResult(rank=4, method='singular-value-ratio': the ratio")
    assert dict(copy.deepcopy(found).scores) == dict(found.scores)
    with pytest.raises(TypeError):
        found.scores[4] = 0.0
