"""Spectra of all genes in TPM and as scores, and variable genes, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import nnls

from nonneg.consensus.genes import check_columns, score_spectra, tpm_spectra, variable_genes
from nonneg.data import as_data_matrix
from nonneg.exceptions import (
    InvalidDataError,
    InvalidParameterError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    W = rng.dirichlet(np.full(3, 0.3), size=50)
    return rng.poisson(W @ rng.gamma(0.3, 30.0, size=(3, 20))).astype(float), 5 * W


def test_tpm_spectra_are_nonnegative_regressions_on_shares(table):
    counts, W = table
    tpm = counts / counts.sum(axis=1, keepdims=True) * 1e6
    shares = W / W.sum(axis=1, keepdims=True)
    expected = np.array([nnls(shares, column)[0] for column in tpm.T]).T
    for form in (counts, sp.csr_array(counts)):
        np.testing.assert_allclose(tpm_spectra(form, W), expected, rtol=1e-6, atol=1e-3)


def test_scores_are_regressions_of_z_scores(table):
    counts, W = table
    tpm = counts / counts.sum(axis=1, keepdims=True) * 1e6
    spread = np.sqrt(np.maximum(tpm.var(axis=0), 1e-12))
    expected = np.linalg.lstsq(W, (tpm - tpm.mean(axis=0)) / spread, rcond=None)[0]
    for form in (counts, sp.csr_array(counts)):
        np.testing.assert_allclose(score_spectra(form, W), expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("spectra", [score_spectra, tpm_spectra])
def test_spectra_do_not_depend_on_how_counts_are_stored(table, spectra):
    """Counts in small integers, repeated and unsorted entries, a gene without counts."""
    counts, W = table
    counts[:, 3] = 0.0
    rows, columns = np.nonzero(counts)
    order = np.random.default_rng(1).permutation(2 * len(rows))
    halves = np.concatenate([np.floor(counts[rows, columns] / 2), np.ceil(counts[rows, columns] / 2)])
    rows, columns = np.tile(rows, 2)[order], np.tile(columns, 2)[order]
    twice = sp.coo_array((halves[order], (rows, columns)), shape=counts.shape)
    raw = sp.csr_array((halves[order][np.argsort(rows)], columns[np.argsort(rows)],
                        np.searchsorted(np.sort(rows), np.arange(51))), shape=counts.shape)  # fmt: skip
    copies = raw.data.copy(), raw.indices.copy()
    expected = spectra(counts, W)
    small = sp.csc_matrix(counts.astype(np.uint8))
    for form in (
        sp.csr_array(counts),
        small,
        small.toarray(),
        sp.csr_matrix(counts, dtype=np.float32),
        twice,
        raw,
    ):
        np.testing.assert_allclose(spectra(form, W), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_array_equal(raw.data, copies[0])
    np.testing.assert_array_equal(raw.indices, copies[1])


def test_genes_that_vary_more_than_their_mean_explains_are_chosen():
    rng = np.random.default_rng(1)
    mean = rng.gamma(1.0, 5.0, size=200)
    counts = rng.poisson(np.broadcast_to(mean, (300, 200))).astype(float)
    groups = rng.integers(0, 2, 300)
    counts[:, 10:20] = rng.poisson(np.where(groups[:, None] == 1, 20.0, 0.5), size=(300, 10))
    np.testing.assert_array_equal(variable_genes(sp.csr_array(counts), 10), np.arange(10, 20))


def test_usages_of_other_samples_are_refused(table):
    with pytest.raises(ShapeError, match="49 samples"):
        score_spectra(table[0], table[1][:49])


@pytest.mark.parametrize("seed", range(3))
def test_variable_genes_are_those_of_the_published_rule(seed):
    rng = np.random.default_rng(seed)
    counts = rng.negative_binomial(rng.gamma(2.0, 1.0, 40) + 0.1, 0.2, size=(60, 40)).astype(float)
    counts[:, 7] = 0.0
    tpm = counts / counts.sum(axis=1, keepdims=True) * 1e6
    mean, variance = tpm.mean(axis=0), tpm.var(axis=0)
    with np.errstate(invalid="ignore"):
        fano = np.where(mean > 0, variance / mean, 0.0)
    top = np.argsort(-mean)[:20]
    slope = np.min(np.sqrt(variance[top]) / mean[top]) ** 2
    inner = np.ones(40, dtype=bool)
    for values in (mean, fano):
        inner &= (values > np.quantile(values, 0.1)) & (values < np.quantile(values, 0.9))
    ratio = np.where(mean > 0, fano / (slope * mean + np.median(fano[inner])), -1.0)
    best = np.argsort(-ratio)
    for n in range(1, 41):
        np.testing.assert_array_equal(variable_genes(counts, n), np.sort(best[: min(n, 39)]))


@pytest.mark.parametrize(("n_empty", "shown"), [(5, "(0, 1, 2, 3, 4)"), (6, "(0, 1, 2, 3, 4, ...)")])
def test_at_most_five_empty_genes_are_named(n_empty, shown):
    X = np.ones((3, 8))
    X[:, :n_empty] = 0.0
    with pytest.raises(InvalidDataError) as caught:
        check_columns(as_data_matrix(X), None, "them")
    assert f"{n_empty} of 8 features are zero in all samples {shown}, such as" in str(caught.value)


def test_samples_without_usage_or_counts_have_no_share(table):
    counts, W = table[0].copy(), table[1].copy()
    counts[3], W[7] = 0.0, 0.0
    with np.errstate(invalid="ignore"):
        tpm = np.nan_to_num(counts / counts.sum(axis=1, keepdims=True) * 1e6)
        shares = np.nan_to_num(W / W.sum(axis=1, keepdims=True))
    expected = np.array([nnls(shares, column)[0] for column in tpm.T]).T
    np.testing.assert_allclose(tpm_spectra(counts, W), expected, rtol=1e-6, atol=1e-3)
    small = tpm_spectra(np.array([[0.2, 0.3], [0.0, 0.0]]), np.array([[2.0], [0.0]]))
    np.testing.assert_allclose(small, [[4e5, 6e5]])


def test_a_number_of_genes_is_at_least_one(table):
    with pytest.raises(InvalidParameterError, match="n_genes must be an integer of at least 1, got 0"):
        variable_genes(table[0], 0)
    assert len(variable_genes(table[0], 1)) == 1
    for wrong in (table[0][0], table[0][:, :, None]):
        with pytest.raises(ShapeError, match="Expected counts of the 50 samples"):
            score_spectra(wrong, table[1])


def test_counts_of_genes_are_numbers_of_at_least_zero(table):
    for sign, error in ((-1.0, NegativeDataError), (np.nan, NonFiniteDataError)):
        for counts in (sign * table[0], sp.csr_array(sign * table[0])):
            with pytest.raises(error, match="gene_spectra"):
                score_spectra(counts, table[1])
