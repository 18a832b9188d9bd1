"""Catalogs with wrong names or numbers, and matches at the limits."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse

from nonneg.applications import MutationalSignatures
from nonneg.applications.signatures.catalog import CHANNELS, read_catalog, read_signatures
from nonneg.applications.signatures.matching import match_signatures
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    NonnegWarning,
    ShapeError,
)

pandas = pytest.importorskip("pandas")
COUNTS = np.random.default_rng(0).integers(0, 9, (3, 96))


def frame(counts, names=CHANNELS):
    return pandas.DataFrame(counts.T, index=list(names), columns=[f"T{at}" for at in range(len(counts))])


@pytest.mark.parametrize("transposed", [False, True])
def test_catalogs_in_either_layout(transposed):
    for X in (frame(COUNTS), COUNTS.T, scipy.sparse.csr_array(COUNTS.T)):
        counts, names = read_catalog(X.T if transposed else X)
        np.testing.assert_array_equal(counts, COUNTS)
        assert names == (["T0", "T1", "T2"] if hasattr(X, "iloc") else None)
        assert counts.dtype == np.float64
    # A square array has channels in rows, as in COSMIC's tables.
    square = np.arange(96 * 96).reshape(96, 96)
    counts, _ = read_catalog(square)
    np.testing.assert_array_equal(counts, square.T)


def test_a_frame_without_an_index_is_refused_with_the_way_out():
    frame_of_polars = type("DataFrame", (), {"columns": ["type", "T0"]})()
    with pytest.raises(DataTypeError, match=r"X.to_pandas\(\), with set_index"):
        read_catalog(frame_of_polars)


def test_names_may_have_spaces_around():
    counts, names = read_catalog(frame(COUNTS, [f" {name} " for name in CHANNELS]))
    np.testing.assert_array_equal(counts, COUNTS)
    assert names == ["T0", "T1", "T2"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (4, r"4 missing \(A\[C>A\]A, A\[C>A\]C, A\[C>A\]G, A\[C>A\]T\); 4 unknown \(x0, x1, x2, x3\)\. "),
        (5, r"5 missing \(.*A\[C>A\]T, \.\.\.\); 5 unknown \(x0, x1, x2, x3, \.\.\.\)"),
    ],
)
def test_wrong_names_are_counted_and_four_of_them_told(wrong, message):
    names = [f"x{at}" if at < wrong else name for at, name in enumerate(CHANNELS)]
    with pytest.raises(InvalidDataError, match=message):
        read_catalog(frame(COUNTS, names))


def test_repeated_names_are_told():
    twice = pandas.concat([frame(COUNTS), frame(COUNTS).iloc[:1]])
    with pytest.raises(InvalidDataError, match=r"columns: 1 repeated \(A\[C>A\]A\)\. Rename"):
        read_catalog(twice)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.nan, NonFiniteDataError, r"Sample 1, channel A\[C>A\]G is nan"),
        (-2, NegativeDataError, r"Sample 1, channel A\[C>A\]G is -2: expected a count"),
        (0.5, InvalidDataError, r"Sample 1, channel A\[C>A\]G is 0.5, but counts of mutations are integers"),
    ],
)
def test_numbers_that_are_no_counts(value, error, message):
    counts = COUNTS.astype(float)
    counts[1, 2] = value
    with pytest.raises(error, match=message):
        read_catalog(counts)
    with pytest.raises(InvalidDataError, match="contains text"):
        read_catalog(np.full((3, 96), "a"))
    for shape in ((95, 3), (96,), (96, 2, 2)):
        with pytest.raises(ShapeError, match=r"got an array of shape \(9"):
            read_catalog(np.ones(shape))


def test_zeros_are_counts():
    assert not read_catalog(np.zeros((96, 2)))[0].any()
    assert read_catalog(np.zeros((96, 0)))[0].shape == (0, 96)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e-9])
def test_references_are_nonnegative(value):
    table = np.ones((2, 96))
    table[1, 5] = value
    with pytest.raises(InvalidDataError, match="none of them all zero"):
        read_signatures(table)
    table[1] = 0.0
    with pytest.raises(InvalidDataError, match="none of them all zero"):
        read_signatures(table)
    table[1, 0] = 2.0
    assert read_signatures(table)[0][1, 0] == 1.0


def test_the_two_most_similar_ones_and_their_cosines():
    known = np.eye(3, 96) + 1e-3
    row = np.zeros(96)
    row[:3] = 0.2, 0.9, 0.5
    (found,) = match_signatures(5 * row[None], known)
    unit = known / np.linalg.norm(known, axis=1, keepdims=True)
    cosines = unit @ row / np.linalg.norm(row)
    assert (found.nearest, found.second, found.signature) == ("1", "2", 0)
    assert found.cosine == pytest.approx(cosines[1])
    assert found.second_cosine == pytest.approx(cosines[2])
    # With one known signature the second is the first.
    (only,) = match_signatures(row[None], known[1:2])
    assert (only.nearest, only.second) == ("0", "0")
    # A row of zeros resembles nothing.
    (none,) = match_signatures(np.zeros((1, 96)), known)
    assert (none.cosine, none.name) == (0.0, None)


@pytest.mark.parametrize(("beyond", "name"), [(-1e-9, "1"), (1e-9, None)])
def test_a_match_begins_at_the_threshold(beyond, name):
    known = np.random.default_rng(2).dirichlet(np.full(96, 0.2), 3)
    row = 0.7 * known[1] + 0.3 * known[0]
    cosine = row @ known[1] / np.linalg.norm(row) / np.linalg.norm(known[1])
    (found,) = match_signatures(row[None], known, threshold=cosine + beyond)
    assert found.name == name
    assert found.cosine == pytest.approx(cosine)
    assert found.cosine > found.chance


def test_what_shuffled_channels_reach_is_no_match():
    # A constant signature is the same whatever the order.
    (found,) = match_signatures(np.full((1, 96), 0.3), np.ones((1, 96)))
    assert found.cosine == pytest.approx(1.0)
    assert found.chance == pytest.approx(1.0)
    # The 99th percentile of 200 shuffled copies, whatever the seed.
    row = np.random.default_rng(0).dirichlet(np.full(96, 0.2))
    known = np.random.default_rng(1).dirichlet(np.full(96, 0.2), 4)
    chances = [match_signatures(row[None], known, rng=seed)[0].chance for seed in (0, 1, 0)]
    assert chances[0] == chances[2]
    assert 0.1 < min(chances) < max(chances) < 0.9


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.gamma(1.0, 300.0, (12, 2)) @ rng.dirichlet(np.full(96, 0.1), 2))
    return MutationalSignatures(2, n_init=3, max_iter=50, tol=1e-2, random_state=0).fit(counts), counts


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        ({"level": 0.0}, True),
        ({"level": 1.0}, True),
        ({"n_bootstrap": 1}, True),
        ({"n_bootstrap": 2, "level": 0.01}, False),
    ],
)
def test_levels_lie_between_zero_and_one(options, refused, fitted):
    model, counts = fitted
    if refused:
        with pytest.raises(InvalidParameterError, match="level must be between 0 and 1, and n_bootstrap at"):
            model.exposure_intervals(counts, **options)
    else:
        assert model.exposure_intervals(counts, **options)[0].shape == (12, 2)


def test_models_without_draws_warn_the_caller(fitted, monkeypatch):
    model, counts = fitted
    monkeypatch.setattr(
        model.consensus_, "ranks_", [dataclasses.replace(each, draws=None) for each in model.ranks_]
    )
    with pytest.warns(NonnegWarning, match="of the counts alone") as caught:
        model.exposure_intervals(counts, n_bootstrap=2)
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samples_are_numbered_and_precision_is_kept(fitted):
    model, counts = fitted
    assert model.sample_names_ == [str(at) for at in range(12)]
    assert model.signatures_.dtype == model.exposures_.dtype == np.float64
    single = MutationalSignatures(2, n_init=2, max_iter=20, tol=0.1, random_state=0).fit(
        counts.astype(np.float32)
    )
    assert single.signatures_.dtype == single.exposures_.dtype == np.float32
