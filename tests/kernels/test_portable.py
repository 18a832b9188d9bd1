"""Kernels in array operations, which run where compiled ones do not, against plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.kernels import grams
from nonneg.kernels.beta_products import array_api as beta_kernels
from nonneg.kernels.sparse_products import array_api as sparse_kernels

BETAS = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0]


@pytest.fixture
def csr():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((11, 7)) < 0.4, rng.random((11, 7)), 0.0)
    dense[4] = 0.0
    return sp.csr_array(dense)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:Sparse ")
@pytest.mark.parametrize("gathered", [1, 10, 1 << 25])
def test_sparse_products_without_triton(torch, csr, rng, monkeypatch, gathered):
    monkeypatch.setattr(sparse_kernels, "GATHERED", gathered)
    left, right = rng.random((11, 3)), rng.random((7, 3))
    indptr, indices, data, A, B = (
        torch.asarray(part) for part in (csr.indptr, csr.indices, csr.data, left, right)
    )
    np.testing.assert_allclose(sparse_kernels.sparse_times(indptr, indices, data, B), csr @ right)
    entries = (left @ right.T)[csr.tocoo().coords]
    np.testing.assert_allclose(sparse_kernels.sampled_product(indptr, indices, A, B), entries)
    np.testing.assert_allclose(sparse_kernels.row_sums(indptr, data), csr.sum(axis=1))
    nothing = sparse_kernels.sampled_product(0 * indptr, indices[:0], A, B)
    assert nothing.shape == (0,)


def divergence(x, v, beta):
    if beta == 1:
        return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / v), 0) - x + v
    if beta == 0:
        return x / v - np.log(np.where(x > 0, x, v) / v) - 1
    own = np.where(x > 0, np.where(x > 0, x, 1.0) ** beta, 0.0)
    return (own + (beta - 1) * v**beta - beta * x * v ** (beta - 1)) / (beta * (beta - 1))


@pytest.mark.parametrize("beta", BETAS)
def test_derivatives_and_losses_of_entries(beta, rng):
    x, v, weights = rng.random((6, 5)) + 0.1, rng.random((6, 5)) + 0.1, rng.random((6, 5))
    v[0, 0], bound = 1e-9, 1e-3
    safe = np.maximum(v, bound)
    ratio, power = beta_kernels.ratio_terms(x, v, beta, bound)
    np.testing.assert_allclose(ratio, x * safe ** (beta - 2))
    if beta == 1:
        assert power is None
        assert beta_kernels.ratio_terms(x, v, beta, bound, weights)[1] is weights
    else:
        np.testing.assert_allclose(power, safe ** (beta - 1))
        np.testing.assert_allclose(
            beta_kernels.ratio_terms(x, v, beta, bound, weights)[1], weights * safe ** (beta - 1)
        )
    terms = divergence(x, v if beta == 2 else safe, beta)
    np.testing.assert_allclose(beta_kernels.row_losses(x, v, beta, bound), terms.sum(axis=1), rtol=1e-9)
    both = beta_kernels.row_losses(x, v, beta, bound, weights, x > 0.5)
    np.testing.assert_allclose(both, (terms * weights * (x > 0.5)).sum(axis=1), rtol=1e-9)
    columns = beta_kernels.column_losses(x, v, beta, bound, weights[:, 0], weights)
    np.testing.assert_allclose(columns, weights[:, 0] @ (terms * weights), rtol=1e-9)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("weighted", [False, True])
def test_second_derivatives_are_true_or_those_of_the_majorizer(beta, weighted, rng):
    x, v = rng.random((4, 5)) + 0.1, rng.random((4, 5)) + 0.2
    weights = rng.random((4, 5)) if weighted else None
    scale = 1.0 if weights is None else weights
    slope = scale * (v ** (beta - 1) - x * v ** (beta - 2))
    true = scale * ((beta - 1) * v ** (beta - 2) + (2 - beta) * x * v ** (beta - 3))
    plain = scale * v ** (beta - 2)
    found = beta_kernels.newton_terms(x, v, weights, beta, 1e-12)
    np.testing.assert_allclose(found[0], slope, atol=1e-12)
    np.testing.assert_allclose(found[1], true if 1 <= beta <= 2 else plain)
    found = beta_kernels.newton_terms(x, v, weights, beta, 1e-12, exact=True)
    np.testing.assert_allclose(found[1], np.maximum(true, 0), atol=1e-12)
    if beta == 1.5:  # bounded where the model is small
        found = beta_kernels.newton_terms(x, v, weights, beta, 1e-12, curvature_bound=0.5)
        bounded = scale * (0.5 * np.maximum(v, 0.5) ** -0.5 + 0.5 * x * v**-1.5)
        np.testing.assert_allclose(found[1], bounded)


def all_grams(rng):
    """Masks of rows and the same Gram matrices in every form."""
    mask, other = rng.random((6, 9)) < 0.6, rng.random((9, 3))
    plain = np.einsum("ij,ja,jb->iab", mask, other, other)
    listed, lost = sp.csr_array(mask), sp.csr_array(~mask)
    return plain, {
        "listed": grams.ListedGrams(np.zeros((3, 3)), 1.0, other, listed.indptr, listed.indices),
        "missing": grams.ListedGrams(other.T @ other, -1.0, other, lost.indptr, lost.indices),
        "dense": grams.DenseGrams(plain),
        "masked": grams.WeightedGrams(mask, other),
    }


@pytest.mark.parametrize("entries", [1, 1 << 24])
def test_gram_matrices_of_rows_in_every_form(entries, rng, monkeypatch):
    monkeypatch.setattr(grams, "CHUNK_ENTRIES", entries)
    plain, forms = all_grams(rng)
    factor = rng.random((6, 3))
    ridged = plain + 0.5 * np.eye(3)
    for name, gram in forms.items():
        np.testing.assert_allclose(grams.gram_matrices(gram), plain, rtol=1e-10, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(grams.gram_matrices(gram.plus_ridge(0.5)), ridged, rtol=1e-10, atol=1e-12)
        twice = grams.gram_matrices(gram.plus_ridge(0.25).plus_ridge(0.25))
        np.testing.assert_allclose(twice, ridged, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            grams.gram_matrices(gram + forms["dense"]), 2 * plain, rtol=1e-10, atol=1e-12
        )
        for one, matrices in ((gram, plain), (gram.plus_ridge(0.5), ridged)):
            value = np.einsum("ia,iab,ib->", factor, matrices, factor)
            assert grams.quadratic_form(factor, one) == pytest.approx(value)
        if name != "dense":
            np.testing.assert_allclose(gram.dense_rows(2, 5), plain[2:5], rtol=1e-10, atol=1e-12)


def test_one_gram_matrix_for_all_rows(rng):
    A, factor = rng.random((7, 3)), rng.random((5, 3))
    gram = grams.SharedGram(A.T @ A)
    assert grams.quadratic_form(factor, gram) == pytest.approx(np.sum((factor @ A.T) ** 2))
    np.testing.assert_allclose(grams.gram_matrices(gram.plus_ridge(0.5)), A.T @ A + 0.5 * np.eye(3))
    assert gram.plus_ridge(0.0) is gram
    np.testing.assert_allclose((gram + gram).matrix, 2 * A.T @ A)
