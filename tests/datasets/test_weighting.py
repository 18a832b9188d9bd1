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
