from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.feature_extraction.text import TfidfTransformer

from nonneg.datasets import tfidf


@pytest.fixture
def counts():
    rng = np.random.default_rng(3)
    dense = rng.poisson(0.7, size=(40, 25))
    dense[5] = 0
    dense[:, 7] = 0
    return scipy.sparse.csr_array(dense.astype(np.float64))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_weights_are_scikit_learns(counts, kind):
    expected = TfidfTransformer().fit_transform(counts).toarray()
    np.testing.assert_allclose(tfidf(counts.asformat(kind)).toarray(), expected, rtol=1e-12)


def test_the_input_stays_as_it_is(counts):
    before = counts.copy()
    tfidf(counts)
    np.testing.assert_array_equal(counts.toarray(), before.toarray())


@pytest.mark.parametrize(
    ("given", "expected"), [(np.float32, np.float32), (np.float64, np.float64), (np.uint8, np.float64)]
)
def test_floating_types_are_kept(counts, given, expected):
    weighted = tfidf(counts.astype(given))
    assert weighted.dtype == expected
    np.testing.assert_allclose(weighted.toarray(), tfidf(counts).toarray(), rtol=1e-5)


def test_logarithms_of_counts_without_smoothing_are_the_formula(counts):
    dense = counts.toarray()
    present = np.maximum((dense > 0).sum(axis=0), 1)
    expected = np.where(dense > 0, 1 + np.log(np.maximum(dense, 1)), 0.0) * np.log(40 / present)
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    expected /= np.where(lengths > 0, lengths, 1.0)
    found = tfidf(counts, logarithmic=True, smooth=False).toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.abs(found - tfidf(counts).toarray()).max() > 0.01


def test_a_word_of_every_document_weighs_nothing_without_smoothing(counts):
    dense = counts.toarray()
    dense[:, 0] = 1.0
    weighted = tfidf(scipy.sparse.csr_array(dense), smooth=False).toarray()
    assert not weighted[:, 0].any()
    assert weighted[:, 1].any()


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("logarithmic", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_weights_are_those_of_the_formula(smooth, logarithmic, dtype):
    counts = np.array([[2, 0, 1, 0], [0, 3, 1, 0], [0, 0, 0, 0], [5, 1, 1, 0]], dtype=dtype)
    present = np.count_nonzero(counts, axis=0)
    inverse = 1 + np.log(5 / (1 + present)) if smooth else np.log(4 / np.maximum(present, 1))
    terms = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) if logarithmic else counts
    expected = terms * inverse
    lengths = np.linalg.norm(expected, axis=1, keepdims=True)
    found = tfidf(counts, logarithmic=logarithmic, smooth=smooth)
    np.testing.assert_allclose(found.toarray(), expected / np.where(lengths > 0, lengths, 1), rtol=1e-6)
    assert found.dtype == (np.float64 if dtype == np.int32 else dtype)
