"""n_components="auto": what was estimated is kept, saved and said."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import nonneg
from nonneg import NMF, ConeNMF, MinVolNMF, PurificationNMF, compare_ranks
from nonneg.results import RankComparison


def test_the_estimate_is_kept(low_rank):
    model = NMF(max_iter=2, tol=0).fit(low_rank)
    assert isinstance(model.rank_estimate_, RankComparison)
    assert model.n_components_ == model.rank_estimate_.rank == 4
    ratio = model.rank_estimate_.estimates["singular-value-ratio"]
    assert ratio.curve.at(4)[0] == max(ratio.curve.mean)
    assert "ratio-condition" in ratio.certificate


def test_there_is_no_estimate_where_the_number_was_given(low_rank):
    model = NMF(max_iter=2, tol=0).fit(low_rank)
    for chosen in (3, None):
        again = copy.copy(model).set_params(n_components=chosen).fit(low_rank)
        assert not hasattr(again, "rank_estimate_")


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
    assert isinstance(again, RankComparison)


def test_weights_count_like_repeated_samples(low_rank, rng):
    counts = rng.integers(1, 4, size=60)
    weighted = NMF(max_iter=1, tol=0).fit(low_rank, sample_weight=counts).rank_estimate_
    repeated = NMF(max_iter=1, tol=0).fit(np.repeat(low_rank, counts, axis=0)).rank_estimate_
    assert weighted.rank == repeated.rank
    weighted, repeated = (found.estimates["singular-value-ratio"] for found in (weighted, repeated))
    # Squares are known up to some rounding of the largest.
    expected = repeated.singular_values**2
    np.testing.assert_allclose(weighted.singular_values**2, expected, rtol=0, atol=4e-15 * expected[0])


def test_partial_fit_estimates_from_its_first_batch(low_rank):
    model = NMF().partial_fit(low_rank[:30])
    assert model.rank_estimate_.rank == model.n_components_ == 4


@pytest.mark.parametrize(
    "estimator", [NMF, ConeNMF, MinVolNMF, PurificationNMF], ids=lambda one: one.__name__
)
def test_every_estimator_takes_the_combined_recommendation_and_logs_it(
    estimator, low_rank, caplog, monkeypatch
):
    found = RankComparison(3, "cross-validation is followed.", {}, {})
    monkeypatch.setattr("nonneg.rank_selection.comparison.automatic_rank", lambda data, **_: found)
    with caplog.at_level("INFO", logger="nonneg"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator().fit(low_rank)
    assert model.rank_estimate_ is found
    assert model.n_components_ == 3
    said = f"{estimator.__name__}: n_components='auto' takes 3: cross-validation is followed."
    assert said in [record.message for record in caplog.records]


@pytest.mark.slow
def test_digits_take_what_the_command_recommends(digits, caplog):
    """The largest ratio of singular values is one of many like it, and was taken without a word."""
    X = digits[::12, 18:46]
    with caplog.at_level("INFO", logger="nonneg"):
        found = NMF(max_iter=1, tol=0).fit(X).rank_estimate_
    ranks = {name: estimate.rank for name, estimate in found.estimates.items()}
    assert found.rank == ranks["cross-validation"] > ranks["singular-value-ratio"]
    assert found.reason.startswith("no number stands out")
    assert found.reason in caplog.text
    assert found.rank == compare_ranks(X, rng=0, methods=list(ranks)).rank


def test_the_default_compares_both_estimates(low_rank):
    found = NMF(max_iter=1, tol=0).fit(low_rank).rank_estimate_
    assert list(found.estimates) == ["singular-value-ratio", "cross-validation"]
    assert found.rank == 4


def test_weights_and_signs_leave_the_singular_values(rng):
    X = rng.random((40, 12))  # no step
    weighted = NMF(max_iter=1, tol=0).fit(X, sample_weight=rng.random(40)).rank_estimate_
    assert list(weighted.estimates) == ["singular-value-ratio"]
    assert "does not support sample weights" in weighted.reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signed = PurificationNMF(max_iter=1).fit(X - 0.1).rank_estimate_
    assert "Held-out errors need data without negative entries." in signed.reason


def test_verbose_shows_the_choice(low_rank, capsys):
    NMF(max_iter=1, tol=0, verbose=1).fit(low_rank)
    assert "n_components='auto' takes 4:" in capsys.readouterr().err
