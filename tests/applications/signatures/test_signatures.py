"""Mutational signatures: planted ones are found, names are checked, matches are honest."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from scipy.special import kl_div

import nonneg
from nonneg.applications import MutationalSignatures
from nonneg.applications.signatures import CHANNELS, SUBSTITUTIONS, match_signatures
from nonneg.applications.signatures.catalog import read_signatures
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonnegWarning,
    ShapeError,
)
from nonneg.metrics import match_components

pandas = pytest.importorskip("pandas")
K, TUMORS = 3, 50


def catalog(seed=0):
    rng = np.random.default_rng(seed)
    signatures = rng.dirichlet(np.full(96, 0.15), size=K)
    exposures = rng.gamma(0.7, 800.0, size=(TUMORS, K))
    return rng.poisson(exposures @ signatures), signatures, exposures


@pytest.fixture(scope="module")
def model():
    counts, _, _ = catalog()
    return MutationalSignatures([2, 3, 4], n_init=6, random_state=0).fit(counts.T)


def frame_of(counts):
    order = np.random.default_rng(5).permutation(96)
    return pandas.DataFrame(
        counts.T[order], index=[CHANNELS[at] for at in order], columns=[f"T{i}" for i in range(len(counts))]
    )


def test_the_96_channels_are_those_of_cosmic():
    assert len(set(CHANNELS)) == 96
    assert CHANNELS[:5] == ("A[C>A]A", "A[C>A]C", "A[C>A]G", "A[C>A]T", "C[C>A]A")
    assert CHANNELS[-1] == "T[T>G]T"
    assert [CHANNELS[16 * at][2:5] for at in range(6)] == list(SUBSTITUTIONS)


def test_planted_signatures_and_exposures_are_found(model):
    counts, signatures, exposures = catalog()
    assert model.n_signatures_ == K
    np.testing.assert_allclose(model.signatures_.sum(axis=1), 1.0)
    found = match_components(signatures, model.signatures_)
    assert found.cosines.min() > 0.99
    np.testing.assert_allclose(model.exposures_.sum(axis=1), counts.sum(axis=1), rtol=1e-6)
    error = np.abs(model.exposures_[:, found.permutation] - exposures)
    assert np.median(error / np.sqrt(exposures + 1)) < 3
    assert "signature" in model.rank_reason_
    assert model.certificate_["stability"].holds


def test_the_number_has_the_lowest_akaike_criterion():
    # Six signatures that share half of their mutations: fewer are as stable (they would be two).
    rng = np.random.default_rng(2)
    signatures = 0.5 * rng.dirichlet(np.full(96, 0.15), size=6) + 0.5 * rng.dirichlet(np.ones(96))
    counts = rng.poisson(((rng.random((60, 6)) < 0.5) * rng.gamma(1.0, 800.0, size=(60, 6))) @ signatures)
    counts = counts[counts.sum(axis=1) > 0]
    model = MutationalSignatures([2, 5, 6, 7], n_init=6, random_state=0).fit(counts)
    assert model.n_signatures_ == 6
    assert match_components(signatures, model.signatures_).cosines.min() > 0.95
    deviance = 2 * kl_div(counts, model.exposures_ @ model.signatures_).sum()
    criterion = deviance + 2 * 6 * (len(counts) + 95)
    shown = dict(each.split(": ") for each in model.rank_reason_[:-1].split("Criteria: ")[1].split(", "))
    assert list(shown) == ["2", "5", "6", "7"]
    assert float(shown["6"]) == pytest.approx(criterion, rel=1e-3)
    assert "range ends" not in model.rank_reason_
    assert "6 signatures have the lowest" in model.use_rank(5, counts).use_rank(7, counts).rank_reason_


def test_a_range_that_ends_too_early_says_so():
    counts, _, _ = catalog()
    for candidates, number in ([1, 2], 2), ([4, 5], 4):
        model = MutationalSignatures(candidates, n_init=4, random_state=0).fit(counts)
        assert model.rank_reason_.startswith(f"{number} signatures have the lowest Akaike criterion")
        assert "The range ends here: try a larger range." in model.rank_reason_


def test_by_default_there_are_at_most_as_many_signatures_as_tumors():
    counts = catalog()[0][:4]
    model = MutationalSignatures(n_init=2, random_state=0).fit(counts)
    assert [each.n_components for each in model.ranks_] == [1, 2, 3, 4]


def test_layouts_and_orders_of_names_do_not_matter(model):
    counts, _, _ = catalog()
    for X in (frame_of(counts), frame_of(counts).T, counts):
        np.testing.assert_allclose(model.transform(X), model.exposures_, rtol=1e-9, atol=1e-9)
    again = MutationalSignatures(3, n_init=2, random_state=0).fit(frame_of(counts))
    assert again.sample_names_[:2] == ["T0", "T1"]


def test_intervals_hold_the_uncertainty_of_counts_and_signatures():
    # Few mutations per tumor and few tumors: the signatures are uncertain, too.
    rng = np.random.default_rng([0, 9])
    signatures = rng.dirichlet(np.full(96, 0.2), size=K)
    exposures = rng.gamma(0.5, 200.0, size=(40, K))
    counts = rng.poisson(exposures @ signatures)
    model = MutationalSignatures(K, n_init=20, random_state=0).fit(counts)
    order = match_components(signatures, model.signatures_).permutation
    options = {"n_bootstrap": 40, "level": 0.9}
    low, high = model.exposure_intervals(counts, **options)
    assert (low <= high).all()
    inside = np.mean((low[:, order] <= exposures) & (exposures <= high[:, order]))
    assert 0.77 < inside < 0.97
    narrow = model.exposure_intervals(counts, n_bootstrap=20, level=0.5)
    assert np.mean(narrow[1] - narrow[0]) < np.mean(high - low)
    # A model that holds no signatures of restarts knows the counts' uncertainty alone, and says so.
    before = copy.copy(model)
    before.consensus_ = copy.copy(model.consensus_)
    before.consensus_.ranks_ = [dataclasses.replace(each, draws=None) for each in model.ranks_]
    with pytest.warns(NonnegWarning, match="of the counts alone"):
        old_low, old_high = before.exposure_intervals(counts, **options)
    covered = np.mean((old_low[:, order] <= exposures) & (exposures <= old_high[:, order]))
    assert covered < inside - 0.05
    assert np.mean(old_high - old_low) < np.mean(high - low)


def test_matches_are_named_only_where_they_are_evidence(model):
    _, signatures, _ = catalog()
    rng = np.random.default_rng(1)
    others = rng.dirichlet(np.full(96, 0.3), size=30)
    table = pandas.DataFrame(
        np.vstack([signatures[:2], others]).T, index=list(CHANNELS), columns=[f"SBS{at}" for at in range(32)]
    )
    found = model.match(table)
    assert sorted(each.name for each in found if each.name) == ["SBS0", "SBS1"]
    (unknown,) = [each for each in found if each.name is None]
    assert unknown.cosine < 0.85
    assert all(each.cosine >= each.second_cosine for each in found)
    # A flat signature is similar to any flat reference: the cosine is high and says nothing.
    flat = np.full(96, 1 / 96) * rng.uniform(0.9, 1.1, 96)
    flat_table = pandas.DataFrame(rng.uniform(0.8, 1.2, (96, 5)), index=list(CHANNELS))
    (match,) = match_signatures(flat[None], flat_table)
    assert match.cosine > 0.95
    assert match.name is None
    assert match.chance > 0.95


def test_saved_models_and_other_ranks(model, tmp_path):
    counts, _, _ = catalog()
    model.save(tmp_path / "m.npz")
    again = nonneg.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(again.transform(counts), model.transform(counts))
    assert again.n_signatures_ == K
    intervals = [each.exposure_intervals(counts[:5], n_bootstrap=4) for each in (model, again)]
    np.testing.assert_array_equal(*intervals)
    few = counts[:2] * (np.arange(96) % 2)  # other channels have no mutations
    np.testing.assert_array_equal(again.use_rank(K, few).signatures_, model.signatures_)
    with pytest.raises(InvalidParameterError, match=r"^9 was not among the candidates"):
        again.use_rank(9, counts)
    again.use_rank(2, counts)
    assert again.exposure_intervals(counts[:5], n_bootstrap=4)[0].shape == (5, 2)
    assert again.signatures_.shape == (2, 96)
    assert again.exposures_.shape == (TUMORS, 2)


def test_channels_without_counts_and_tumors_without_mutations():
    counts, _, _ = catalog()
    counts = counts.copy()
    counts[:, 7] = 0
    counts[4] = 0
    model = MutationalSignatures(3, n_init=3, random_state=0).fit(counts)
    np.testing.assert_array_equal(model.signatures_[:, 7], 0.0)
    np.testing.assert_array_equal(model.exposures_[4], 0.0)
    assert not model.channels_found_[7]
    assert model.exposure_intervals(counts[:2], n_bootstrap=3)[1].shape == (2, 3)


def test_wrong_tables_are_refused():
    counts, _, _ = catalog()
    good = frame_of(counts)
    with pytest.raises(InvalidDataError, match=r"1 missing .*1 unknown \(N\[C>A\]A\)"):
        MutationalSignatures(2).fit(good.rename(index={good.index[0]: "N[C>A]A"}))
    with pytest.raises(ShapeError, match="96 mutation types"):
        MutationalSignatures(2).fit(counts[:, :90])
    with pytest.raises(NegativeDataError, match=r"Sample 0, channel A\[C>A\]A"):
        MutationalSignatures(2).fit(np.where(np.eye(TUMORS, 96) > 0, -1, counts))
    with pytest.raises(InvalidDataError, match="are integers"):
        MutationalSignatures(2).fit(counts / counts.sum(axis=1, keepdims=True))
    with pytest.raises(InvalidParameterError, match="n_signatures=200"):
        MutationalSignatures([2, 200]).fit(counts)
    with pytest.raises(InvalidParameterError, match="'n_init' parameter of MutationalSignatures"):
        MutationalSignatures(2, n_init=1).fit(counts)
    with pytest.raises(InvalidDataError, match="no mutations"):
        MutationalSignatures(2).fit(np.zeros((96, 3)))


def test_references_are_read_by_rows_and_by_columns():
    weights = np.random.default_rng(0).random((4, 96))
    shares, order = weights / weights.sum(axis=1, keepdims=True), np.random.default_rng(1).permutation(96)
    frame = pandas.DataFrame(weights[:, order], index=[*"wxyz"], columns=[CHANNELS[at] for at in order])
    for table, expected in ((weights, "0123"), (weights.T, "0123"), (frame, "wxyz"), (frame.T, "wxyz")):
        found, names = read_signatures(table)
        np.testing.assert_allclose(found, shares)
        assert names == [*expected]
    for wrong, error in (
        (weights[:, :95], ShapeError),
        (-weights, InvalidDataError),
        (0 * weights, InvalidDataError),
    ):
        with pytest.raises(error):
            read_signatures(wrong)
