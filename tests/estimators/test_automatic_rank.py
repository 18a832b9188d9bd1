"""n_components="auto": what was estimated is kept, saved and said."""

from __future__ import annotations

import numpy as np
import pytest

import nonneg
from nonneg import NMF
from nonneg.rank_selection import RankResult


def test_the_estimate_is_kept(low_rank):
    model = NMF(max_iter=2, tol=0).fit(low_rank)
    assert isinstance(model.rank_estimate_, RankResult)
    assert model.n_components_ == model.rank_estimate_.rank == 4
    assert model.rank_estimate_.curve.at(4)[0] == max(model.rank_estimate_.curve.mean)
    assert "ratio-condition" in model.rank_estimate_.certificate


@pytest.mark.parametrize("chosen", [3, None])
def test_there_is_no_estimate_where_the_number_was_given(chosen, low_rank):
    model = NMF(max_iter=2, tol=0).fit(low_rank)
    model.set_params(n_components=chosen).fit(low_rank)
    assert not hasattr(model, "rank_estimate_")


def test_given_factors_decide_before_an_estimate(low_rank, rng):
    W, H = rng.random((60, 3)), rng.random((3, 40))
    model = NMF("auto", init="custom", max_iter=2, tol=0).fit(low_rank, W=W, H=H)
    assert model.n_components_ == 3
    assert not hasattr(model, "rank_estimate_")


def test_the_estimate_is_saved_with_the_model(low_rank, tmp_path):
    model = NMF(max_iter=2, tol=0).fit(low_rank)
    model.save(tmp_path / "model.npz")
    again = nonneg.load(tmp_path / "model.npz").rank_estimate_
    assert again.as_dict() == model.rank_estimate_.as_dict()
    assert dict(again.scores) == dict(model.rank_estimate_.scores)


def test_weights_count_like_repeated_samples(low_rank, rng):
    counts = rng.integers(1, 4, size=60)
    weighted = NMF(max_iter=1, tol=0).fit(low_rank, sample_weight=counts).rank_estimate_
    repeated = NMF(max_iter=1, tol=0).fit(np.repeat(low_rank, counts, axis=0)).rank_estimate_
    assert weighted.rank == repeated.rank
    # Squares are known up to some rounding of the largest.
    expected = repeated.singular_values**2
    np.testing.assert_allclose(weighted.singular_values**2, expected, rtol=0, atol=4e-15 * expected[0])


def test_partial_fit_estimates_from_its_first_batch(low_rank):
    model = NMF().partial_fit(low_rank[:30])
    assert model.rank_estimate_.rank == model.n_components_ == 4
